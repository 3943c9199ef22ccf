/**
 * Lines that come once, by standard input and by syslog: what is stored in the end is what an import
 * of the same requests stores, and files beside them lose nothing when the daemon is killed.
 */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { TailState } from '../src/daemon/tail-state.js';
import { unpackState } from '../src/store/write-ahead.js';
import { startFakeServer } from './support/clickhouse-http.js';
import { linesOf } from './support/captures.js';
import { completeConf, startNginx } from './support/nginx.js';
import { captureLines, type LogLine } from './support/tail-site.js';
import { RICH, siteConf, TailScene } from './support/tail-scene.js';
import { makeTempDir } from './support/temp-dir.js';
import { sendTraffic } from './support/traffic.js';

const LINES = captureLines(1);
const server = await startFakeServer({ dataPath: makeTempDir({ after }) });
after(() => server.close());

function textOf(lines: readonly LogLine[], wrap = (text: string): string => text): string {
  return lines.map(({ text }) => `${wrap(text)}\n`).join('');
}

function third(n: 0 | 1 | 2): LogLine[] {
  const share = Math.ceil(LINES.length / 3);
  return LINES.slice(n * share, (n + 1) * share);
}

/** The lines as files, imported. */
async function importedFiles(scene: TailScene, conf: string): ReturnType<TailScene['imported']> {
  for (const { name, text } of LINES) scene.append(`whole/${name}`, [text]);
  const files = ['--error-log', scene.path('whole/error.log'), scene.path('whole/access.log')];
  return scene.imported(conf, ...files);
}

test('standard input, as kubectl logs and containers write it, until it ends', async (t) => {
  const scene = new TailScene(t, server);
  const conf = scene.conf(siteConf('access_log /dev/stdout rich; error_log stderr notice;'));
  const daemon = scene.tail(conf, '-');
  await daemon.until('"follows"');
  const stdin = daemon.child.stdin!;
  stdin.write('/docker-entrypoint.sh: Configuration complete; ready for start up\n');
  stdin.write(textOf(third(0), (text) => `[pod/nginx-7d5c/nginx] ${text}`));
  await daemon.until('"stored"');
  stdin.write(textOf(third(1), (text) => `2026-11-30T07:10:44.123456789Z stdout F ${text}`));
  const last = textOf(third(2), (text) =>
    JSON.stringify({ log: `${text}\n`, stream: 'stdout', time: '2026-11-30T07:10:44.123456789Z' }),
  );
  const middle = Math.floor(last.length / 2);
  stdin.write(last.slice(0, middle));
  stdin.end(last.slice(middle));
  assert.deepEqual(await daemon.exit, [0, null], daemon.said);
  assert.match(daemon.said, /lines received are stored once/);
  const found = await scene.rows();
  const unparsable = found['line_counts']!.filter((row) => row.includes('unparsable'));
  assert.equal(unparsable.length, 1, "the entry point's line");
  const expected = await importedFiles(scene, conf);
  for (const table of ['zone_outcomes', 'responses', 'zone_state', 'agreement', 'marks']) {
    assert.deepEqual(found[table], expected[table], table);
  }
});

/** Waits until a state on disk holds so many bytes of an input, or what came of them. */
async function untilKept(scene: TailScene, name: string, bytes: number): Promise<void> {
  const folder = scene.path('spool/default');
  for (;;) {
    for (const file of readdirSync(folder).filter((entry) => entry.endsWith('.state'))) {
      // It may have been replaced since.
      const packed = await readFile(join(folder, file)).catch(() => undefined);
      if (packed === undefined) continue;
      const { tail } = JSON.parse((await unpackState(packed)).state) as TailState;
      const source = tail.sources.find((other) => other.name === name);
      const waiting = Buffer.from(source?.lines ?? '', 'base64').length;
      if ((source?.offset ?? 0) + waiting >= bytes) return;
    }
    await pause(50);
  }
}

test('killed with a file and standard input: what a state holds of either counts once', async (t) => {
  const scene = new TailScene(t, server);
  const conf = scene.conf(
    siteConf(`access_log ${scene.path('access.log')} rich; error_log stderr notice;`),
  );
  let sentBytes = 0;
  for (const n of [0, 1, 2] as const) {
    const daemon = scene.tail(conf, scene.path('access.log'), '-');
    await daemon.until('"follows"');
    const sent = textOf(third(n).filter(({ name }) => name === 'error.log'));
    daemon.child.stdin!.write(sent);
    sentBytes += sent.length;
    const logged = third(n).filter(({ name }) => name === 'access.log');
    scene.append(
      'access.log',
      logged.map(({ text }) => text),
    );
    await untilKept(scene, 'stdin error', sentBytes);
    if (n < 2) await daemon.end('SIGKILL');
    else assert.equal(await daemon.end('SIGTERM'), 0, daemon.said);
  }
  await scene.assertStored(await importedFiles(scene, conf));
});

for (const kind of ['UDP', 'a unix socket'] as const) {
  test(`syslog from the real nginx over ${kind}`, async (t) => {
    const scene = new TailScene(t, server);
    const httpOf = (port: number, logs: string): string => `
      log_format rich ${RICH};
      limit_req_zone $arg_k zone=perkey:1m rate=5r/s;
      server {
        listen 127.0.0.1:${port};
        server_name a.example;
        ${logs}
        location / { limit_req zone=perkey burst=3 delay=1; try_files /none =404; }
      }`;
    const path = scene.path('nginx.sock');
    const told = kind === 'UDP' ? 'udp://127.0.0.1:0' : `unix:${path}`;
    const logsAt = (to: string): string =>
      `access_log syslog:server=${to},nohostname rich; error_log syslog:server=${to},tag=err notice;`;
    // The configuration that limitlens reads has no files, so that they are not followed.
    const conf = scene.conf(
      completeConf(httpOf(8080, logsAt('127.0.0.1:5514')), 1).replaceAll(/^error_log.*$/gm, ''),
    );
    const daemon = scene.tail(conf, '--syslog', told);
    await daemon.until('"follows"');
    const port = /"port":(\d+),"bufferBytes"/.exec(daemon.said)![1]!;
    const to = kind === 'UDP' ? `127.0.0.1:${port}` : `unix:${path}`;
    const nginx = await startNginx(t, {
      http: ([listen], dir) =>
        httpOf(
          listen!,
          `${logsAt(to)} access_log ${dir}/access.log rich; error_log ${dir}/server.log notice;`,
        ),
    });
    const lines = (): number =>
      ['access.log', 'server.log'].reduce((sum, log) => sum + linesOf(nginx.path(log)).length, 0);
    // A unix socket holds ten datagrams, and nginx does not wait: they are given time to be taken.
    for (let batch = 0; batch < 16; batch++) {
      const requests = [0, 1, 2].map((i) => ({ atMs: i, path: `/x?k=k${(batch + i) % 2}` }));
      await sendTraffic(nginx.port, requests);
      while ((await daemon.metric('limitlens_syslog_messages_total')) !== lines()) await pause(50);
    }
    await nginx.stop();
    const metrics = await (await daemon.get('/metrics')).text();
    for (const by of ['kernel', 'queue']) {
      assert.match(
        metrics,
        new RegExp(`^limitlens_syslog_dropped_total\\{.*by="${by}".*\\} 0$`, 'm'),
      );
    }
    assert.equal(await daemon.end('SIGTERM'), 0, daemon.said);
    const files = ['--error-log', nginx.path('server.log'), nginx.path('access.log')];
    await scene.assertStored(await scene.imported(conf, ...files));
  });
}
