/**
 * Access logs that a real nginx writes from a buffer, seconds after other logs have their lines: what is
 * stored is what an import of all of them stores.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parseConf } from '../parsers/conf/read-conf.js';
import { holdMsOf } from '../src/daemon/buffered-logs.js';
import { linesOf } from './support/captures.js';
import { startFakeServer } from './support/clickhouse-http.js';
import { completeConf, startNginx } from './support/nginx.js';
import { RICH, TailScene } from './support/tail-scene.js';
import { makeTempDir } from './support/temp-dir.js';
import { sendTraffic } from './support/traffic.js';

const server = await startFakeServer({ dataPath: makeTempDir({ after }) });
after(() => server.close());

function httpOf(port: number, dir: string): string {
  return `
    log_format rich ${RICH};
    limit_req_zone $arg_k zone=perkey:1m rate=5r/s;
    error_log ${dir}/server.log notice;
    limit_req zone=perkey burst=3 delay=1;
    server {
      listen 127.0.0.1:${port};
      server_name a.example;
      location /soon { access_log ${dir}/soon.log rich; try_files /none =404; }
      location /late { access_log ${dir}/late.log rich buffer=64k flush=4s; try_files /none =404; }
    }`;
}

test('requests of a buffered log meet those of another log and their error-log lines', async (t) => {
  const scene = new TailScene(t, server);
  const nginx = await startNginx(t, { workers: 2, http: ([port], dir) => httpOf(port!, dir) });
  const conf = scene.conf(
    completeConf(httpOf(8080, nginx.dir), 2).replaceAll(/^error_log.*$/gm, ''),
  );
  // Shorter than the buffer waits: what is not waited for would come too late.
  const lateness = ['--lateness', '1s'];
  const daemon = scene.tail(conf, ...lateness);
  await daemon.until('"follows"');
  assert.match(daemon.said, /"holdMs":6000,"message":"an access log is buffered/);
  const requests = Array.from({ length: 80 }, (_, i) => {
    return { atMs: i * 100, path: `/${i % 2 === 0 ? 'soon' : 'late'}?k=k${(i >> 1) % 2}` };
  });
  await sendTraffic(nginx.port, requests);
  await nginx.stop();
  const logs = ['soon.log', 'late.log'].map((name) => nginx.path(name));
  assert.deepEqual(
    logs.map((log) => linesOf(log).length),
    [40, 40],
  );
  assert.equal(await daemon.end('SIGTERM'), 0, daemon.said);
  const files = ['--error-log', nginx.path('server.log'), ...logs];
  await scene.assertStored(await scene.imported(conf, ...lateness, ...files));
});

const cases: readonly [string, number, RegExp | undefined][] = [
  ['', 2000, undefined],
  ['buffer=32k flush=10s', 12_000, undefined],
  ['buffer=32k flush=90s', 92_000, /flushed less often than --lateness/],
  ['buffer=32k', 62_000, /flushed only when its buffer is full/],
  ['gzip flush=1s', 3000, /written compressed and cannot be followed/],
];
for (const [options, holdMs, warning] of cases) {
  test(`access_log access.log combined ${options}: lines wait ${holdMs} ms`, async (t) => {
    const text = `events {}\nhttp { access_log /var/log/a.log combined ${options}; server {} }\n`;
    const conf = parseConf('/etc/nginx/nginx.conf', { read: () => text, glob: () => [] }, '/etc/');
    assert.equal(holdMsOf({ confs: [conf], leftOut: [] }, 60_000), holdMs);
    if (warning === undefined) return;
    const scene = new TailScene(t, server);
    const own = scene.conf(text.replace('/var/log/a.log', scene.path('a.log')));
    const daemon = scene.tail(own, '--lateness', '60s');
    await daemon.until('"follows"');
    assert.match(daemon.said, warning);
    await daemon.end('SIGKILL');
  });
}
