/**
 * When a record of the spool has a state, and how long one with lines that can't be read again waits
 * for it: a state that takes long is made rarely, and within bounds.
 */
import assert from 'node:assert/strict';
import { mock, test, type TestContext } from 'node:test';
import { OpenRecord } from '../src/daemon/open-record.js';
import type { Checkpoint } from '../src/store/write-ahead.js';

/** A clock that stands still between the moments that a test names. */
function clockOf(t: TestContext): (ms: number) => void {
  let nowMs = 1000;
  mock.method(performance, 'now', () => nowMs);
  t.after(() => {
    mock.restoreAll();
  });
  return (ms) => void (nowMs += ms);
}

const LIVE = [{ sourceId: 'l', name: 'l', fromByte: 0, toByte: 100, isLive: true }];
const FILE = [{ sourceId: 'f', name: 'f', fromByte: 0, toByte: 100 }];

function checkpoint(sequence: number): Checkpoint {
  return { instance: 'i', sequence, sources: [], state: 'x'.repeat(1000), logTimeMs: 0 };
}

function closed(tookMs: number): OpenRecord {
  const record = new OpenRecord();
  record.note(LIVE, 0);
  record.closed(1);
  record.stateWritten(checkpoint(1), tookMs);
  return record;
}

for (const [tookMs, waitMs] of [
  [1, 20],
  [20, 400],
  [300, 6000],
  [5000, 10_000],
] as const) {
  test(`after a state that took ${tookMs} ms, live lines wait ${waitMs} ms for the next`, (t) => {
    const pass = clockOf(t);
    const record = closed(tookMs);
    record.note(LIVE, 0);
    pass(waitMs - 1);
    assert.equal(record.canWait, true);
    pass(1);
    assert.equal(record.canWait, false);
  });
}

test('lines of files wait for no state, and a record names the steps since the newest one', (t) => {
  clockOf(t);
  const record = closed(5000);
  record.note(FILE, 7);
  assert.equal(record.canWait, false);
  assert.deepEqual(
    [record.isStateDue(false), record.hasLive, record.isEmpty],
    [false, false, false],
  );
  const place = record.place(undefined);
  assert.deepEqual([place.sequence, place.base, place.ranges.length], [2, 1, 1]);
  record.note([{ ...FILE[0]!, fromByte: 100, toByte: 8000 }], 8);
  assert.equal(record.isStateDue(false), true, 'eight times the bytes of the state');
  const whole = record.place(checkpoint(2));
  assert.deepEqual([whole.base, whole.ranges.map(({ step }) => step)], [2, [0, 1]]);
});
