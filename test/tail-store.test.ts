/**
 * The daemon and a ClickHouse server that is away, slow, refuses or restarts: what is stored in the
 * end is what one import stores.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, beforeEach, test, type TestContext } from 'node:test';
import { openStore } from '../src/store/store.js';
import { startFakeServer, type Fault } from './support/clickhouse-http.js';
import {
  assertSameRows,
  captureLines,
  storedRows,
  TailSite,
  type LogLine,
  type StoredRows,
  type TailProcess,
} from './support/tail-site.js';
import { makeTempDir } from './support/temp-dir.js';

const LINES = captureLines(1);
const AWAY = 'the store does not take what is sent';
const BACK = 'the store takes again what is sent';

// The engine takes one folder per process: one server for all, with a database for each test.
let removeData: () => unknown = () => undefined;
const dataPath = makeTempDir({ after: (remove) => (removeData = remove) });
const server = await startFakeServer({ dataPath });
after(async () => {
  await server.close();
  removeData();
});
beforeEach(async () => {
  server.setFaults([]);
  await server.start();
});
// Every test writes the same lines; how they are cut into files makes no difference.
let expected: StoredRows | undefined;
let scenes = 0;

interface Scene {
  readonly site: TailSite;
  readonly spool: string;
  /** Starts the daemon; it is killed when the test ends. */
  readonly tail: (...more: string[]) => TailProcess;
  /** Compares the daemon's rows with those of an import of the logs. */
  readonly compare: () => Promise<void>;
}

function sceneOf(t: TestContext): Scene {
  const site = new TailSite(makeTempDir(t));
  const optionsOf = (name: string): string[] => ['--clickhouse', server.url, '--database', name];
  const rowsOf = async (name: string): Promise<StoredRows> => {
    const store = await openStore({ url: server.url, database: name, createIfMissing: false });
    const rows = await storedRows(store);
    await store.close();
    return rows;
  };
  const database = `scene_${scenes++}`;
  const spool = site.path('spool');
  const interval = ['--commit-interval', '100ms'];
  return {
    site,
    spool,
    tail: (...more) => {
      const daemon = site.tail(optionsOf(database), '--spool', spool, ...interval, ...more);
      t.after(() => daemon.child.kill('SIGKILL'));
      return daemon;
    },
    compare: async () => {
      if (expected === undefined) {
        await site.import(optionsOf('imported'));
        expected = await rowsOf('imported');
      }
      assertSameRows(await rowsOf(database), expected);
    },
  };
}

function third(n: 0 | 1 | 2): LogLine[] {
  const share = Math.ceil(LINES.length / 3);
  return LINES.slice(n * share, (n + 1) * share);
}

test('the server stops, the daemon is killed and starts without it, the server comes back', async (t) => {
  const { site, tail, compare } = sceneOf(t);
  site.write(third(0));
  const first = tail();
  await first.until('"stored"');
  assert.equal(await first.metric('limitlens_store_up'), 1);
  await server.stop();
  site.write(third(1));
  await first.until(AWAY);
  assert.equal((await first.get('/readyz')).status, 503);
  assert.equal(await first.metric('limitlens_store_up'), 0);
  assert.ok((await first.metric('limitlens_store_pending_bytes')) > 0);
  await first.end('SIGKILL');

  const second = tail();
  await second.until('begins without it');
  await second.until('"follows"');
  site.rotate('access.log');
  site.write(third(2));
  await server.start();
  await second.until(BACK);
  assert.equal(await second.end('SIGTERM'), 0, second.said);
  assert.equal(first.said.split(AWAY).length, 2, 'told once');
  await compare();
});

const INSERT = /^INSERT INTO/;
const FAULTS: readonly Fault[] = [
  // As a restart in the middle: the statement was done or was not.
  { kind: 'lost-answer', sql: /^INSERT INTO zone_outcomes/, times: 4 },
  { kind: 'reset', sql: /^INSERT INTO responses/, times: 4 },
  { kind: 'lost-answer', sql: /^INSERT INTO checkpoints/, times: 4 },
  { kind: 'lost-answer', sql: /^INSERT INTO intents/, times: 3 },
  { kind: 'page', status: 500, sql: INSERT, times: 3 },
  { kind: 'exception', code: 243, type: 'NOT_ENOUGH_SPACE', sql: INSERT },
  { kind: 'exception', code: 241, type: 'MEMORY_LIMIT_EXCEEDED', sql: INSERT, times: 3 },
  { kind: 'exception', code: 1001, type: 'STD_EXCEPTION', sql: INSERT },
  { kind: 'exception', code: 516, type: 'AUTHENTICATION_FAILED', sql: INSERT },
  { kind: 'slow', afterMs: 100, sql: INSERT, times: 10 },
];
test('the server restarts, refuses, is full, has no memory, is slow: all arrives once', async (t) => {
  const { site, tail, compare } = sceneOf(t);
  site.write(third(0));
  const daemon = tail();
  await daemon.until('"stored"');
  server.setFaults(FAULTS);
  site.write(third(1));
  await daemon.until(BACK);
  assert.ok((await daemon.metric('limitlens_store_retries_total')) > 0);
  site.write(third(2));
  assert.equal(await daemon.end('SIGTERM'), 0, daemon.said);
  // What failed to the end is in the spool.
  server.setFaults([]);
  const last = tail();
  await last.until('"follows"');
  assert.equal(await last.end('SIGTERM'), 0, last.said);
  await compare();
});

test('a spool that is full stops reading; with the server back reading goes on', async (t) => {
  const { site, tail, compare } = sceneOf(t);
  site.write(third(0));
  const daemon = tail('--spool-max', '20KiB');
  await daemon.until('"stored"');
  await server.stop();
  const before = daemon.said.length;
  site.write(third(1));
  await daemon.until('the spool is full: stops reading', before);
  assert.equal(await daemon.metric('limitlens_backpressure'), 1);
  site.write(third(2));
  await server.start();
  await daemon.until('the spool has room again', before);
  assert.equal(await daemon.end('SIGTERM'), 0, daemon.said);
  await compare();
});

test('killed, and the spool is lost; ended while the server is away', async (t) => {
  const { site, tail, spool, compare } = sceneOf(t);
  site.write(third(0));
  const first = tail();
  await first.until('"stored"');
  site.write(third(1));
  await first.end('SIGKILL');
  rmSync(spool, { recursive: true });
  const second = tail();
  await second.until('"stored"');
  await server.stop();
  site.write(third(2));
  assert.equal(await second.end('SIGTERM'), 0, second.said);
  assert.match(second.said, /ends with records that the store does not have/);
  await server.start();
  const last = tail();
  await last.until('"stored"');
  assert.equal(await last.end('SIGTERM'), 0, last.said);
  await compare();
});

test('a server that takes statements and never answers does not hold up the end', async (t) => {
  const { site, tail, compare } = sceneOf(t);
  site.write(third(0));
  const first = tail();
  await first.until('"stored"');
  server.setFaults([{ kind: 'silence', sql: INSERT }]);
  site.write([...third(1), ...third(2)]);
  assert.equal(await first.end('SIGTERM'), 0, first.said);
  assert.match(first.said, /ends though the store has not answered/);
  const last = tail();
  await last.until('"stored"');
  assert.equal(await last.end('SIGTERM'), 0, last.said);
  await compare();
});
