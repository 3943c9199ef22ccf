/**
 * A server that fails in the middle: what is tried again, what is not, and that nothing counts twice.
 */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { EXIT, InputError } from '../src/errors.js';
import { openStore } from '../src/store/store.js';
import { columnsOf } from '../src/store/tables.js';
import { startFakeServer, type Fault } from './support/clickhouse-http.js';
import { makeTempDir } from './support/temp-dir.js';

const ATTEMPTS = 3;
/** Requests per block. */
const REQUESTS = 5;

// One server for all: what a test writes carries its own name.
const server = await startFakeServer({ dataPath: makeTempDir({ after }) });
const waitsMs: number[] = [];
const store = await openStore({
  url: server.url,
  createIfMissing: true,
  retryPolicy: {
    attempts: ATTEMPTS,
    firstWaitMs: 100,
    wait: (ms) => Promise.resolve(waitsMs.push(ms)),
    random: () => 0,
  },
});
after(async () => {
  await store.close();
  await server.close();
});
beforeEach(() => {
  server.setFaults([]);
  waitsMs.length = 0;
});

function insert(name: string): Promise<void> {
  const rows = [['i', 'rz', 1_700_000_040, name, REQUESTS]];
  return store.insertBlock({ table: 'agreement', columns: columnsOf('agreement'), rows }, name);
}

async function requestsOf(name: string): Promise<number | undefined> {
  const [row] = await store.query<{ requests: number }>(
    'SELECT sum(requests) AS requests FROM agreement WHERE class = {name:String}',
    { name },
  );
  return row?.requests;
}

const INSERT = /^INSERT INTO agreement/;
const passing: readonly [string, Omit<Fault, 'sql'>][] = [
  ['a connection that breaks before', { kind: 'reset' }],
  ['a connection that breaks after the insert', { kind: 'lost-answer' }],
  ['a proxy’s 502', { kind: 'page', status: 502 }],
  ['a proxy’s 503', { kind: 'page', status: 503 }],
  ['too many parts', { kind: 'exception', code: 252, type: 'TOO_MANY_PARTS' }],
  ['memory limit', { kind: 'exception', code: 241, type: 'MEMORY_LIMIT_EXCEEDED' }],
  ['keeper away', { kind: 'exception', code: 999, type: 'KEEPER_EXCEPTION' }],
];
for (const [what, fault] of passing) {
  test(`insert, ${what}: tried again, counted once`, async () => {
    server.setFaults([{ ...fault, sql: INSERT, times: ATTEMPTS - 1 }]);
    await insert(what);
    assert.deepEqual(waitsMs, [100, 200]);
    assert.equal(await requestsOf(what), REQUESTS);
  });
}

test('the last attempt failed: an InputError that names the store', async () => {
  server.setFaults([{ kind: 'reset', sql: INSERT, times: ATTEMPTS }]);
  await assert.rejects(insert('never'), (error) => {
    assert.ok(error instanceof InputError, String(error));
    assert.equal(error.exitCode, EXIT.io);
    return error.message.startsWith(`${server.url}/limitlens: `);
  });
  assert.equal(waitsMs.length, ATTEMPTS - 1);
  assert.equal(await requestsOf('never'), 0);
});

const lasting: readonly [string, number, string][] = [
  ['a syntax error', 62, 'SYNTAX_ERROR'],
  ['a type mismatch', 53, 'TYPE_MISMATCH'],
  ['input that does not parse', 27, 'CANNOT_PARSE_INPUT_ASSERTION_FAILED'],
  ['no such column', 16, 'NO_SUCH_COLUMN_IN_TABLE'],
];
for (const [what, code, type] of lasting) {
  test(`insert, ${what}: not tried again`, async () => {
    server.setFaults([{ kind: 'exception', sql: INSERT, code, type, status: 400 }]);
    await assert.rejects(insert('never'), (error: Error & { type?: string }) => {
      assert.ok(!(error instanceof InputError));
      return error.type === type;
    });
    assert.deepEqual(waitsMs, []);
  });
}

test('no space left: told at once', async () => {
  server.setFaults([{ kind: 'exception', sql: INSERT, code: 243, type: 'NOT_ENOUGH_SPACE' }]);
  await assert.rejects(insert('never'), /no space is left on the disk/);
  assert.deepEqual(waitsMs, []);
});

const QUERY = 'SELECT number FROM numbers(50000)';
for (const kind of ['half-answer', 'reset'] as const) {
  test(`query, ${kind}: asked again, the answer whole`, async () => {
    server.setFaults([{ kind, sql: /numbers/ }]);
    assert.equal((await store.query(QUERY)).length, 50_000);
    assert.deepEqual(waitsMs, [100]);
  });
}

test('query, an exception after the first rows: tried again when it may pass', async () => {
  const late = { kind: 'late-exception', sql: /numbers/ } as const;
  server.setFaults([{ ...late, code: 241, type: 'MEMORY_LIMIT_EXCEEDED' }]);
  assert.equal((await store.query(QUERY)).length, 50_000);
  assert.deepEqual(waitsMs, [100]);
  server.setFaults([{ ...late, code: 159, type: 'TIMEOUT_EXCEEDED' }]);
  await assert.rejects(store.query(QUERY), /took longer than it may/);
  assert.equal(waitsMs.length, 1);
});

test('begin and commit survive lost answers', async () => {
  const ranges = [{ sourceId: 'a', fromByte: 0, toByte: 1 }];
  const intent = { instance: 'i', sequence: 1, ranges, startedBy: 'me' };
  const checkpoint = { instance: 'i', sequence: 1, sources: [], state: 's', logTimeMs: 1 };
  server.setFaults([
    { kind: 'lost-answer', sql: /^INSERT INTO intents/ },
    { kind: 'lost-answer', sql: /^INSERT INTO checkpoints/ },
  ]);
  await store.begin(intent);
  assert.deepEqual(await store.pendingIntent('i'), intent);
  await store.commit(intent, checkpoint);
  assert.deepEqual(await store.checkpoint('i'), checkpoint);
});

test('two writers of one instance: the second is told of the first', async (t) => {
  const second = await openStore({ url: server.url, createIfMissing: false });
  t.after(() => second.close());
  const intent = (sourceId: string) => {
    const ranges = [{ sourceId, fromByte: 0, toByte: 1 }];
    return { instance: 'two', sequence: 1, ranges, startedBy: sourceId };
  };
  const begun = await Promise.allSettled([store.begin(intent('a')), second.begin(intent('b'))]);
  const pending = await store.pendingIntent('two');
  const [winner, loser] = pending?.startedBy === 'a' ? begun : begun.toReversed();
  assert.equal(winner?.status, 'fulfilled');
  assert.equal(loser?.status, 'rejected');
  assert.match(String(loser.reason), new RegExp(`begun by ${pending?.startedBy}`));
});
