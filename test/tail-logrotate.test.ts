/**
 * The daemon beside a real nginx under load and the real logrotate: what it stores is what an import
 * of the same requests stores, which nginx also logs to files that are never rotated.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { after, test, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startFakeServer } from './support/clickhouse-http.js';
import { requireProgram } from './support/debian.js';
import { startNginx, type Nginx } from './support/nginx.js';
import type { TailProcess } from './support/tail-site.js';
import { RICH, TailScene } from './support/tail-scene.js';
import { makeTempDir } from './support/temp-dir.js';
import { sendTraffic } from './support/traffic.js';

const run = promisify(execFile);
const ROUNDS = 3;
const REQUESTS = 160;

const server = await startFakeServer({ dataPath: makeTempDir({ after }) });
after(() => server.close());

/** Two of each log: one to rotate, one to compare with. */
function startSite(t: TestContext): Promise<Nginx> {
  return startNginx(t, {
    http: ([port], dir) => `
      log_format rich ${RICH};
      limit_req_zone $arg_k zone=perkey:1m rate=5r/s;
      access_log ${dir}/access.log rich;
      access_log ${dir}/access-whole.log rich;
      error_log ${dir}/limit.log notice;
      error_log ${dir}/limit-whole.log notice;
      server {
        listen 127.0.0.1:${port};
        server_name a.example;
        location / { limit_req zone=perkey burst=3 delay=1; try_files /none =404; }
      }`,
  });
}

/** @returns runs logrotate once, by force */
function rotationOf(nginx: Nginx, directives: string): () => Promise<unknown> {
  const conf = nginx.path('logrotate.conf');
  const logs = `${nginx.path('access.log')} ${nginx.path('limit.log')}`;
  writeFileSync(conf, `${logs} {\n  rotate 10\n  sharedscripts\n  ${directives}\n}\n`);
  chmodSync(conf, 0o644);
  const args = ['-f', '-s', nginx.path('logrotate.state'), conf];
  return () => run(requireProgram('logrotate'), args);
}

function traffic(nginx: Nginx, requests = REQUESTS): Promise<unknown> {
  const schedule = Array.from({ length: requests }, (_, i) => ({
    atMs: i * 5,
    path: `/x?k=k${(i * 7) % 13}`,
    keepAlive: `c${i % 4}`,
  }));
  return sendTraffic(nginx.port, schedule);
}

/** nginx logs after it has answered; a line written between the copy and the cut would be lost. */
async function untilLogged(nginx: Nginx): Promise<void> {
  const sizes = (): string =>
    ['access.log', 'access-whole.log', 'limit.log', 'limit-whole.log']
      .map((name) => statSync(nginx.path(name)).size)
      .join(' ');
  for (let before = '', now = sizes(), quiet = 0; quiet < 10; before = now, now = sizes()) {
    quiet = now === before ? quiet + 1 : 0;
    await setTimeout(50);
  }
}

/** A daemon that has read something: what is rotated before its first look is none of its concern. */
async function startDaemon(scene: TailScene, nginx: Nginx): Promise<TailProcess> {
  await traffic(nginx, 20);
  const logs = ['--error-log', nginx.path('limit.log'), nginx.path('access.log')];
  const daemon = scene.tail(nginx.path('nginx.conf'), ...logs);
  await daemon.until('"stored"');
  return daemon;
}

async function assertAllIsStored(scene: TailScene, nginx: Nginx): Promise<void> {
  await scene.assertStored(
    await scene.imported(
      nginx.path('nginx.conf'),
      ...['--error-log', nginx.path('limit-whole.log'), nginx.path('access-whole.log')],
    ),
  );
}

const REOPEN = (nginx: Nginx): string =>
  `postrotate\n    kill -USR1 $(cat ${nginx.path('nginx.pid')})\n  endscript`;

test('renamed and created anew, under load', async (t) => {
  const scene = new TailScene(t, server);
  const nginx = await startSite(t);
  const rotate = rotationOf(nginx, `create\n  ${REOPEN(nginx)}`);
  const daemon = await startDaemon(scene, nginx);
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all([traffic(nginx), rotate()]);
  }
  await nginx.stop();
  assert.equal(await daemon.end('SIGTERM'), 0, daemon.said);
  assert.ok(existsSync(nginx.path(`access.log.${ROUNDS}`)));
  assert.ok(!daemon.said.includes('"lost"'), daemon.said);
  await assertAllIsStored(scene, nginx);
});

test('copied and cut, between requests', async (t) => {
  const scene = new TailScene(t, server);
  const nginx = await startSite(t);
  const rotate = rotationOf(nginx, 'copytruncate');
  const daemon = await startDaemon(scene, nginx);
  for (let round = 0; round < ROUNDS; round++) {
    await traffic(nginx);
    await untilLogged(nginx);
    await rotate();
  }
  await traffic(nginx);
  await nginx.stop();
  assert.equal(await daemon.end('SIGTERM'), 0, daemon.said);
  assert.ok(!daemon.said.includes('"lost"'), daemon.said);
  await assertAllIsStored(scene, nginx);
});

test('compressed a round later, under load, with the daemon killed and away for two rounds', async (t) => {
  const scene = new TailScene(t, server);
  const nginx = await startSite(t);
  const rotate = rotationOf(nginx, `create\n  compress\n  delaycompress\n  ${REOPEN(nginx)}`);
  const first = await startDaemon(scene, nginx);
  await Promise.all([traffic(nginx), rotate()]);
  await first.end('SIGKILL');
  for (let round = 0; round < 2; round++) {
    await Promise.all([traffic(nginx), rotate()]);
  }
  const second = await startDaemon(scene, nginx);
  await Promise.all([traffic(nginx), rotate()]);
  await nginx.stop();
  assert.equal(await second.end('SIGTERM'), 0, second.said);
  assert.ok(existsSync(nginx.path('access.log.2.gz')));
  assert.ok(!second.said.includes('"lost"'), second.said);
  await assertAllIsStored(scene, nginx);
});
