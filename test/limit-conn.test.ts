/**
 * The limit_conn model against captures of real nginx, with takes and releases in their true order,
 * and what the captures do not show: several limits on one request, and restoring a zone.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  CONN_BUSY,
  CONN_NO_MEMORY,
  CONN_STATUS,
  ConnMemory,
  LimitConnModel,
  type ConnMemorySnapshot,
} from '../src/limit-req/limit-conn.js';
import { accessById, readTruth, traceDir, type TruthRecord } from './support/truth.js';

const MIB = 1 << 20;
const KEY_BYTES = 5;

/** A take or a release, in order of `order`, then of `tie`. */
interface ConnEvent {
  readonly order: number;
  readonly tie: number;
  readonly isRelease: boolean;
  readonly key: string;
  readonly most: number;
  readonly truth: TruthRecord;
}

/** Runs the events, and checks every take and every count; returns how many of each there were. */
function check(events: ConnEvent[]): { taken: number; rejected: number; released: number } {
  const memory = new ConnMemory({ sizeBytes: MIB, nameLength: 5 });
  const ids = new Map<string, number>();
  const heldBy = new Map<string, number>();
  const seen = { taken: 0, rejected: 0, released: 0 };
  events.sort((a, b) => a.order - b.order || a.tie - b.tie);
  for (const { isRelease, key, most, truth } of events) {
    const id = ids.get(key) ?? ids.size;
    ids.set(key, id);
    if (isRelease) {
      const node = heldBy.get(truth.requestId);
      assert.ok(node !== undefined, truth.requestId);
      const before = memory.connections(node);
      if (truth.connectionsAtRelease !== null) assert.equal(before, truth.connectionsAtRelease);
      assert.equal(memory.release(node), before - 1);
      seen.released++;
      continue;
    }
    const node = memory.acquire(id, KEY_BYTES, most);
    if (truth.isConnRejected === true) {
      assert.equal(node, CONN_BUSY, truth.requestId);
      seen.rejected++;
    } else {
      assert.equal(memory.connections(node), truth.connections, truth.requestId);
      heldBy.set(truth.requestId, node);
      seen.taken++;
    }
  }
  assert.equal(memory.nodes, 0);
  return seen;
}

test('q_limit_conn: every count and rejection, in the order of the debug log', () => {
  const dir = traceDir('q_limit_conn');
  const lines = accessById(dir);
  const events: ConnEvent[] = [];
  for (const truth of readTruth(dir)) {
    const common = { tie: 0, key: lines.get(truth.requestId)!.key, most: 3, truth };
    if (truth.connSeq !== null) {
      events.push({ ...common, order: truth.connSeq, isRelease: false });
    }
    if (truth.connReleaseSeq !== null) {
      events.push({ ...common, order: truth.connReleaseSeq, isRelease: true });
    }
  }
  assert.deepEqual(check(events), { taken: 154, rejected: 102, released: 154 });
});

/**
 * From the README of trace i: wall clock minus monotonic clock. The difference of two truncated
 * clocks makes $msec up to 1 ms early, so of equal times the release is the later.
 */
const I_WALL_MINUS_MONO_MS = 1_796_015_772_498;

test('i_mixed_status: every count and rejection, releases at $msec', () => {
  const dir = traceDir('i_mixed_status');
  const lines = accessById(dir);
  const events: ConnEvent[] = [];
  for (const [i, truth] of readTruth(dir).entries()) {
    if (truth.isConnRejected === null) continue;
    const line = lines.get(truth.requestId)!;
    const common = { key: line.key, most: line.uri.startsWith('/both') ? 2 : 1, truth };
    const decidedMonoMs = (truth.decisionMonoMs ?? truth.requestLineMonoMs) + (truth.delayMs ?? 0);
    events.push({ ...common, order: decidedMonoMs, tie: i, isRelease: false });
    if (truth.isConnRejected) continue;
    const releasedMonoMs = Math.round(line.msec * 1000) - I_WALL_MINUS_MONO_MS;
    events.push({ ...common, order: releasedMonoMs, tie: Infinity, isRelease: true });
  }
  assert.deepEqual(check(events), { taken: 167, rejected: 128, released: 167 });
});

test('lcx: a 32k zone takes 383 keys and has no memory for the rest', () => {
  const memory = new ConnMemory({ sizeBytes: 32 * 1024, nameLength: 'cz'.length });
  const model = new LimitConnModel([memory]);
  const limits = [{ zone: 0, connections: 1 }];
  const held = new Int32Array(1);
  const lines = readFileSync('test/fixtures/lcx/access.log', 'latin1').trimEnd().split('\n');
  for (const [i, line] of lines.entries()) {
    const [, logged, key = ''] = / lcs=(\w+) (\w+)$/.exec(line)!;
    const status = model.decide(limits, [i], [key.length], held);
    const expected = logged === 'PASSED' ? CONN_STATUS.passed : CONN_STATUS.exhausted;
    assert.equal(status, expected, line);
  }
  assert.equal(memory.nodes, 383);
  assert.equal(memory.pagesFree, 0);
});

test('a rejection by a later limit gives back what earlier limits took', () => {
  const zones = [0, 1].map(() => new ConnMemory({ sizeBytes: MIB, nameLength: 2 }));
  const model = new LimitConnModel(zones);
  const limits = [
    { zone: 0, connections: 9 },
    { zone: 1, connections: 1 },
  ];
  const first = new Int32Array(2);
  const second = new Int32Array(2);
  assert.equal(model.decide(limits, [7, 7], [4, 4], first), CONN_STATUS.passed);
  assert.equal(model.decide(limits, [7, 7], [4, 4], second), CONN_STATUS.rejected);
  assert.equal(model.decidedBy, 1);
  assert.deepEqual([...second], [-1, -1]);
  assert.equal(zones[0]!.connections(zones[0]!.find(7)), 1);
  model.release(limits, first);
  assert.deepEqual(
    zones.map((zone) => zone.nodes),
    [0, 0],
  );
});

test('an empty key and one over 255 bytes are not limited', () => {
  const zone = new ConnMemory({ sizeBytes: MIB, nameLength: 2 });
  const model = new LimitConnModel([zone]);
  const limits = [{ zone: 0, connections: 1 }];
  const held = new Int32Array(1);
  assert.equal(model.decide(limits, [-1], [0], held), CONN_STATUS.none);
  assert.equal(model.decide(limits, [1], [256], held), CONN_STATUS.none);
  assert.equal(zone.nodes, 0);
  assert.equal(model.decide(limits, [1], [255], held), CONN_STATUS.passed);
});

/** Takes (a key below 500) and releases (the n-th connection held, modulo how many there are). */
const operation = fc.record({
  isRelease: fc.boolean(),
  n: fc.nat(499),
  keyLengthBytes: fc.constantFrom(4, 60, 200),
});

/** Runs operations and returns what each said, in order. */
function run(
  memory: ConnMemory,
  held: number[],
  operations: readonly { isRelease: boolean; n: number; keyLengthBytes: number }[],
): number[] {
  return operations.map(({ isRelease, n, keyLengthBytes }) => {
    if (isRelease && held.length > 0) {
      return memory.release(held.splice(n % held.length, 1)[0]!);
    }
    const node = memory.acquire(n, keyLengthBytes, 2);
    if (node >= 0) held.push(node);
    assert.ok(node >= 0 || node === CONN_BUSY || node === CONN_NO_MEMORY);
    return node;
  });
}

test('a restored zone goes on like the one it was taken from', () => {
  const operations = fc.array(operation, { maxLength: 400 });
  fc.assert(
    fc.property(operations, operations, (before, after) => {
      const memory = new ConnMemory({ sizeBytes: 32 * 1024, nameLength: 2 });
      const held: number[] = [];
      run(memory, held, before);
      const json = JSON.stringify(memory.snapshot());
      const restored = ConnMemory.restore(JSON.parse(json) as ConnMemorySnapshot);
      assert.deepEqual(run(restored, [...held], after), run(memory, held, after));
      assert.equal(restored.nodes, memory.nodes);
      assert.equal(restored.pagesFree, memory.pagesFree);
    }),
    { numRuns: 60 },
  );
});
