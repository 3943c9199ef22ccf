/**
 * `limitlens top` of logs: the same numbers as of a store, as they grow, through a rotation, from the
 * end of a long log, in bounded memory.
 */
import assert from 'node:assert/strict';
import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { ROW_COLUMNS } from '../src/aggregate/rows.js';
import { WatchedLogs } from '../src/daemon/watched-logs.js';
import { findTailLogs } from '../src/daemon/tail-logs.js';
import { knownToItsEnd } from '../src/input/follow-end.js';
import { readConfs } from '../src/pipeline/confs.js';
import { RecentRows } from '../src/top/recent-rows.js';
import { takeSnapshot, type TopSnapshot } from '../src/top/snapshot.js';
import { CLI } from './support/agreement.js';
import { mustRun, runCli } from './support/cli.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';
import { Terminal } from './support/terminal.js';

const SAMPLES = ['--conf', 'samples/nginx.conf', 'samples/access.log', 'samples/error.log'];
const ROWS = 24;
const COLUMNS = 80;
const BEGIN_MS = Date.UTC(2026, 2, 2, 10, 0, 0);

/** A site of one zone, and its empty log. */
function makeSite(t: Cleanup): { conf: string; log: string } {
  const dir = makeTempDir(t);
  const conf = join(dir, 'nginx.conf');
  const log = join(dir, 'access.log');
  writeFileSync(
    conf,
    `events {}
http {
  log_format short '$remote_addr $msec $request_time "$request" $status $limit_req_status';
  limit_req_zone $remote_addr zone=front:1m rate=1r/s;
  server {
    server_name front.example;
    access_log ${log} short;
    location / { limit_req zone=front burst=2 nodelay; limit_req_status 429; root /srv; }
  }
}
`,
  );
  writeFileSync(log, '');
  return { conf, log };
}

/** Requests of one client in one millisecond: three pass, the others are rejected. */
function burst(atS: number, client: string, requests: number): string {
  const time = ((BEGIN_MS + atS * 1000) / 1000).toFixed(3);
  return Array.from({ length: requests }, (_, n) =>
    n < 3
      ? `${client} ${time} 0.000 "GET / HTTP/1.1" 200 PASSED\n`
      : `${client} ${time} 0.000 "GET / HTTP/1.1" 429 REJECTED\n`,
  ).join('');
}

void suite('top of logs', { timeout: 300_000 }, () => {
  test('shows of logs what it shows of a store that holds them', async (t) => {
    const store = join(makeTempDir(t), 'store');
    await mustRun(['import', '--store', store, ...SAMPLES]);
    for (const sort of ['rejected', 'excess']) {
      const top = ['top', '--once', '--format', 'json', '--top', '200', '--sort', sort];
      const ofLogs = await mustRun([...top, ...SAMPLES]);
      const ofStore = await mustRun([...top, '--store', store]);
      const snapshot = JSON.parse(ofLogs.stdout) as TopSnapshot;
      assert.deepEqual(snapshot, JSON.parse(ofStore.stdout));
      assert.deepEqual(
        [snapshot.zones.length, snapshot.keys[0]?.rejected],
        [4, sort === 'excess' ? 80 : 164],
      );
    }
  });

  test('follows a log as it grows and is rotated, in a terminal', async (t) => {
    const { conf, log } = makeSite(t);
    const args = `--conf ${conf} --lateness 1s --interval 500ms --ascii`;
    const command = `echo; ${process.execPath} ${CLI} top ${args}; echo code=$?`;
    const env = { TERM: 'xterm-256color', LC_ALL: 'C', NO_COLOR: '1' };
    const terminal = new Terminal(command, ROWS, COLUMNS, env);
    t.after(() => {
      terminal.kill();
    });
    const shows = (line: RegExp): Promise<void> =>
      terminal.until(({ lines }) => lines.some((one) => line.test(one)));
    await shows(/^In the logs there are no requests yet/);
    // Log time alone decides: a bucket is shown when the line before the newest is past it.
    appendFileSync(log, burst(5, '192.0.2.1', 33) + burst(15, '192.0.2.9', 1));
    appendFileSync(log, burst(25, '192.0.2.9', 1));
    await shows(/^ +30 +0 +0 +3 +3\.000 +front +192\.0\.2\.1$/);
    assert.ok(terminal.fits(ROWS, COLUMNS), terminal.shown.lines.join('\n'));

    renameSync(log, `${log}.1`);
    appendFileSync(`${log}.1`, burst(26, '192.0.2.2', 43));
    writeFileSync(
      log,
      burst(27, '192.0.2.3', 53) + burst(45, '192.0.2.9', 1) + burst(55, '192.0.2.9', 1),
    );
    await shows(/^ +50 .* front +192\.0\.2\.3$/);
    await shows(/^ +40 .* front +192\.0\.2\.2$/);
    terminal.type('q');
    assert.equal(await terminal.ended, 0);
    assert.match(terminal.shown.normal, /code=0/);
  });

  test('says what it needs', async (t) => {
    const { conf, log } = makeSite(t);
    const wrong: [string[], RegExp][] = [
      [[log], /expected --conf FILE/],
      [['--conf', conf, '-'], /keys are read from standard input/],
      [['--conf', conf, log, '--store', 'x'], /either logs or a store/],
      [['--conf', conf, log, '--window', '0s'], /--window/],
    ];
    for (const [args, message] of wrong) {
      const run = await runCli(['top', '--once', ...args]);
      assert.equal(run.code, 64, args.join(' '));
      assert.match(run.stderr, message);
    }
  });
});

async function watch(
  { conf, log }: { conf: string; log: string },
  endBytes: number,
): Promise<WatchedLogs> {
  const generations = readConfs([conf]);
  return WatchedLogs.open({
    instance: 'default',
    generations,
    logs: await findTailLogs(
      [log],
      [],
      generations.map((one) => one.conf),
    ),
    latenessMs: 0,
    zone: undefined,
    endBytes,
    onNote: (note) => {
      assert.fail(note);
    },
  });
}

test('of a long log the end is read, from a whole line on, and then what is added', async (t) => {
  const site = makeSite(t);
  const old = burst(0, '192.0.2.1', 100);
  const end = burst(100, '192.0.2.2', 10);
  writeFileSync(site.log, old + end);
  const logs = await watch(site, Buffer.byteLength(end) + 20);
  const rows = new RecentRows(600_000);
  while (await logs.step());
  rows.take(logs.takeRows());
  appendFileSync(site.log, burst(200, '192.0.2.3', 7));
  while (await logs.step());
  await logs.finish();
  rows.take(logs.takeRows());
  await logs.close();
  const keys = await rows.keys({}, 'rejected', 10);
  assert.deepEqual(
    keys.map(({ key, passed, rejected }) => [key, passed, rejected]),
    [
      ['192.0.2.2', 3, 7],
      ['192.0.2.3', 3, 4],
    ],
  );
  assert.equal(await rows.requests({}), 17);
});

test('a log that is short, gzipped or gone is read from its beginning, if at all', async (t) => {
  const { log } = makeSite(t);
  writeFileSync(log, 'a line\n');
  assert.equal(await knownToItsEnd(log, 7), undefined);
  assert.equal((await knownToItsEnd(log, 6))?.offset, 7);
  writeFileSync(log, Buffer.from([0x1f, 0x8b, 8, 0, 0x0a, 0, 0, 0, 0, 0]));
  assert.equal(await knownToItsEnd(log, 2), undefined);
  assert.equal(await knownToItsEnd(`${log}.none`, 2), undefined);
});

test('what is older than the window is forgotten; a bucket told in parts is one', async () => {
  const rows = new RecentRows(60_000);
  const table = 'responses';
  const columns = ROW_COLUMNS[table];
  const row = (bucketS: number, requests: number): unknown[] => {
    return ['default', 's', '/', bucketS, 429, 'limit_req', 'REJECTED', requests];
  };
  for (let hour = 0; hour < 50; hour++) {
    for (const requests of [1, 2]) {
      rows.take([{ table, columns, rows: [row(hour * 3600, requests)] }]);
    }
  }
  assert.equal(await rows.requests({}), 3);
  const endMs = 49 * 3_600_000 + 10_000;
  const options = { windowMs: 60_000, keys: 1, order: 'rejected' as const, completeMs: endMs };
  const snapshot = await takeSnapshot(rows, options);
  assert.deepEqual(
    [snapshot.atMs, snapshot.requestsPerSecond, snapshot.sources],
    [endMs, 0.05, [{ status: 429, source: 'limit_req', perSecond: 0.05 }]],
  );
  // A window that began before anything is known is no longer than what is.
  const short = await takeSnapshot(rows, { ...options, sinceMs: endMs - 20_000 });
  assert.deepEqual([short.windowMs, short.requestsPerSecond], [20_000, 0.15]);
});
