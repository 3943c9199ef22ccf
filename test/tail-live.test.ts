/**
 * Lines that come once, by standard input and by syslog: what is stored in the end is what an import
 * of the same requests stores, and files beside them lose nothing when the daemon is killed.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
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

test('killed with a file and standard input: the file counts once, what was received at most once', async (t) => {
  const scene = new TailScene(t, server);
  const conf = scene.conf(siteConf(`access_log ${scene.path('access.log')} rich;`));
  const isAccess = ({ name }: LogLine): boolean => name === 'access.log';
  const sums = async (kind: string): Promise<number> => {
    const rows = (await scene.rows())['line_counts']!.map((row) => {
      const { key, lines } = JSON.parse(row) as { key: string; lines: number };
      return { ...(JSON.parse(key) as { kind: string }), lines };
    });
    return rows.filter((row) => row.kind === kind).reduce((sum, { lines }) => sum + lines, 0);
  };
  for (const n of [0, 1, 2] as const) {
    const daemon = scene.tail(conf, scene.path('access.log'), '-');
    await daemon.until('"follows"');
    for (let at = 0; at < third(n).length; at += 100) {
      const lines = third(n).slice(at, at + 100);
      daemon.child.stdin!.write(textOf(lines.filter((line) => !isAccess(line))));
      scene.append(
        'access.log',
        lines.filter(isAccess).map(({ text }) => text),
      );
    }
    await daemon.until('"stored"');
    if (n < 2) await daemon.end('SIGKILL');
    else assert.equal(await daemon.end('SIGTERM'), 0, daemon.said);
  }
  assert.equal(await sums('access'), LINES.filter(isAccess).length);
  const received = await sums('limit_line');
  const sent = LINES.filter(({ text }) => /(limiting|delaying) request/.test(text)).length;
  assert.ok(received > 0 && received <= sent, `${received} of ${sent} lines`);
  const requests = (await scene.rows())['zone_outcomes']!.map(
    (row) => JSON.parse(row) as { requests: string | number; zone: string },
  );
  const counted = requests.reduce((sum, row) => sum + Number(row.requests), 0);
  assert.ok(counted >= LINES.filter(isAccess).length);
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
    for (let batch = 0; batch < 24; batch++) {
      const requests = [0, 1, 2].map((i) => ({ atMs: i, path: `/x?k=k${(batch + i) % 2}` }));
      await sendTraffic(nginx.port, requests);
      while ((await daemon.metric('limitlens_syslog_messages_total')) !== lines());
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
