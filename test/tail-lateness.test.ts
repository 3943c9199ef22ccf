/**
 * A daemon that was killed, and is started with another lateness: the steps that it does again have
 * to close the rows that they closed before, so they wait for late lines as they did.
 */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { JsonLog } from '../src/daemon/json-log.js';
import { latenessFor, type Start } from '../src/daemon/tail-start.js';
import { StateSeal } from '../src/pipeline/state-seal.js';

const STEP = { sequence: 8, untilMs: 1_772_445_600_000, ranges: [] };

/** @param tail what the state holds beside a session's */
function startWith(tail: unknown, steps: Start['steps']): Start {
  const state = JSON.stringify({ version: 1, cursorMs: 0, masterPid: -1, zones: [], tail });
  const checkpoint = { instance: 'default', sequence: 7, sources: [], state, logTimeMs: 0 };
  return { checkpoint, steps, closed: 8 };
}

function asked(start: Start, askedMs: number): { latenessMs: number; said: string } {
  const stream = new PassThrough();
  const latenessMs = latenessFor(start, askedMs, new StateSeal(), new JsonLog(stream));
  return { latenessMs, said: String(stream.read() ?? '') };
}

test('steps to be done again keep the lateness that they were done with, and it is said', () => {
  const { latenessMs, said } = asked(startWith({ latenessMs: 5000 }, [STEP]), 25_000);
  assert.equal(latenessMs, 5000);
  assert.match(said, /"latenessMs":5000,"askedMs":25000[^\n]*counts from the next start/);
});

const TAKEN_AS_ASKED: [string, Start][] = [
  ['nothing was ever counted', { checkpoint: undefined, steps: [], closed: 0 }],
  ['nothing is to be done again', startWith({ latenessMs: 5000 }, [])],
  ['it was the same', startWith({ latenessMs: 25_000 }, [STEP])],
  ['an earlier version did not note it', startWith({}, [STEP])],
  ['an import left the state', startWith(undefined, [STEP])],
];

for (const [why, start] of TAKEN_AS_ASKED) {
  test(`a lateness is taken as asked for where ${why}`, () => {
    assert.deepEqual(asked(start, 25_000), { latenessMs: 25_000, said: '' });
  });
}
