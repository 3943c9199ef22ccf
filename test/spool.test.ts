/**
 * The spool's files: what survives a crash between any two of them, what is removed and when.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { EXIT, InputError } from '../src/errors.js';
import { Spool, type Place, type TableRows } from '../src/daemon/spool.js';
import { rangesOf, stepsAfter } from '../src/daemon/tail-steps.js';
import { makeTempDir } from './support/temp-dir.js';

const MANY = 1 << 20;
const STATE = Buffer.from('a state');

function rowsOf(n: number): TableRows[] {
  return [{ table: 'agreement', columns: ['instance', 'requests'], rows: [['i', n]] }];
}

function placeOf(sequence: number, base: number): Place {
  const range = { sourceId: 'a', name: '/a.log', fromByte: sequence - 1, toByte: sequence };
  const ranges = rangesOf([range], { untilMs: sequence, sequence, step: 0 });
  return { version: 1, sequence, base, ranges, startedBy: 'me', sources: [], logTimeMs: 0 };
}

/** A record with a state, then two without. */
async function fill(spool: Spool): Promise<void> {
  await spool.append(placeOf(1, 1), rowsOf(1), STATE);
  await spool.append(placeOf(2, 1), rowsOf(2));
  await spool.append(placeOf(3, 1), rowsOf(3));
}

function names(path: string): string[] {
  return readdirSync(path)
    .filter((name) => name !== 'lock')
    .map((name) => name.replace(/^0+/, ''))
    .sort();
}

test('records come back in order, after any restart, until they are sent', async (t) => {
  const path = makeTempDir(t);
  const first = await Spool.open(path, MANY);
  await fill(first);
  first.close();
  const spool = await Spool.open(path, MANY);
  t.after(() => spool.close());
  assert.deepEqual(spool.newest, placeOf(3, 1));
  for (const n of [1, 2, 3]) {
    assert.equal(spool.first, n);
    const record = await spool.read(n);
    assert.deepEqual(record.place, placeOf(n, 1));
    assert.deepEqual(record.tables, rowsOf(n));
    assert.deepEqual(record.state, n === 1 ? STATE : undefined);
    await spool.sent(n);
  }
  assert.equal(spool.first, undefined);
  assert.equal(spool.waitingBytes, 0);
  // From these the daemon goes on.
  assert.deepEqual(names(path), ['1.state', '3.place']);
  assert.deepEqual(await spool.state(1), STATE);
});

test('a newer state removes the older one when that has been sent', async (t) => {
  const path = makeTempDir(t);
  const spool = await Spool.open(path, MANY);
  t.after(() => spool.close());
  await fill(spool);
  await spool.sent(1);
  await spool.append(placeOf(4, 4), rowsOf(4), STATE);
  assert.deepEqual(names(path), [
    ...['2.place', '2.rows', '3.place', '3.rows'],
    ...['4.place', '4.rows', '4.state'],
  ]);
  for (const n of [2, 3, 4]) await spool.sent(n);
  assert.deepEqual(names(path), ['4.place', '4.state']);
});

test('killed between the files of a record: it was never there', async (t) => {
  for (const last of ['rows', 'state'] as const) {
    const path = makeTempDir(t);
    const first = await Spool.open(path, MANY);
    await fill(first);
    first.close();
    writeFileSync(join(path, '000000000004.rows'), 'half');
    if (last === 'state') writeFileSync(join(path, '000000000004.state'), 'whole');
    writeFileSync(join(path, '000000000004.place.tmp'), '{');
    const spool = await Spool.open(path, MANY);
    assert.equal(spool.newest?.sequence, 3);
    assert.ok(names(path).every((name) => !name.startsWith('4')));
    await spool.append(placeOf(4, 1), rowsOf(4));
    assert.deepEqual((await spool.read(4)).tables, rowsOf(4));
    spool.close();
  }
});

test('tells rows of steps done again from what they were, back to the newest state', async (t) => {
  const path = makeTempDir(t);
  const first = await Spool.open(path, MANY);
  await fill(first);
  await first.sent(1);
  first.close();
  const spool = await Spool.open(path, MANY);
  t.after(() => spool.close());
  for (const n of [2, 3]) {
    assert.equal(spool.isAsBefore(n, rowsOf(n)), true);
    assert.equal(spool.isAsBefore(n, rowsOf(n + 1)), false);
    assert.equal(spool.isAsBefore(n, []), false);
  }
  // Of those that nobody does again nothing is known.
  await spool.append(placeOf(4, 4), rowsOf(4), STATE);
  assert.equal(spool.isAsBefore(2, []), true);
});

test('is full from its bound on, while something waits', async (t) => {
  const spool = await Spool.open(makeTempDir(t), 100);
  t.after(() => spool.close());
  assert.equal(spool.isFull, false);
  await spool.append(placeOf(1, 1), rowsOf(1), Buffer.alloc(200));
  assert.equal(spool.isFull, true);
  await spool.sent(1);
  // The state is as large as it is, and needed.
  assert.equal(spool.isFull, false);
});

test('one process at a time; a dead one is no obstacle', async (t) => {
  const path = makeTempDir(t);
  const spool = await Spool.open(path, MANY);
  await assert.rejects(Spool.open(path, MANY), (error) => {
    assert.ok(error instanceof InputError);
    assert.equal(error.exitCode, EXIT.io);
    assert.match(error.message, new RegExp(`in use by process ${process.pid}`));
    return true;
  });
  const held = readFileSync(join(path, 'lock'), 'utf8');
  spool.close();
  assert.equal(existsSync(join(path, 'lock')), false);
  // The same number, another start.
  writeFileSync(join(path, 'lock'), `${held.split(' ')[0]} 1`);
  (await Spool.open(path, MANY)).close();
});

test('a folder that cannot be, and a file that is damaged, are told with what to do', async (t) => {
  const path = makeTempDir(t);
  writeFileSync(join(path, 'file'), '');
  await assert.rejects(Spool.open(join(path, 'file', 'spool'), MANY), /expected a folder to write/);
  const own = join(path, 'spool');
  mkdirSync(own);
  const first = await Spool.open(own, MANY);
  await fill(first);
  first.close();
  writeFileSync(join(own, '000000000002.rows'), 'no gzip');
  const spool = await Spool.open(own, MANY);
  await assert.rejects(spool.read(2), /000000000002\.rows: expected a whole file of the spool/);
  spool.close();
  rmSync(join(own, '000000000003.place'));
  writeFileSync(join(own, '000000000003.place'), '{');
  await assert.rejects(Spool.open(own, MANY), /000000000003\.place: expected a whole file/);
});

test('steps come out of ranges as they went in, those that read nothing too', () => {
  const range = (sourceId: string) => ({ sourceId, name: 'n', fromByte: 0, toByte: 1 });
  const ranges = [
    ...rangesOf([range('a'), range('b')], { untilMs: 5, sequence: 1, step: 0 }),
    ...rangesOf([range('a')], { untilMs: 6, sequence: 2, step: 0 }),
    ...rangesOf([], { untilMs: null, sequence: 2, step: 1 }),
  ];
  const shape = stepsAfter(0, ranges).map(({ sequence, untilMs, ranges: own }) => [
    ...[sequence, untilMs, own.map(({ sourceId }) => sourceId).join('')],
  ]);
  assert.deepEqual(shape, [
    [1, 5, 'ab'],
    [2, 6, 'a'],
    [2, null, ''],
  ]);
  assert.equal(stepsAfter(1, ranges).length, 2);
});
