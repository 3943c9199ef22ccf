/**
 * What a zone's memory keeps true whatever is done to it: the order of use, pins, who is freed
 * when room is needed; and the small sums of arithmetic.ts at their edges.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  decayedExcess,
  delayMs,
  elapsedMs,
  excessAfter,
  isIdle,
  lastAfter,
} from '../src/limit-req/arithmetic.js';
import { ZoneMemory, type ZoneMemorySnapshot } from '../src/limit-req/zone-memory.js';

const NOW_MS = 8_000_000;
const MINUTE_MS = 60_000;

function zone(sizeBytes = 32 * 1024, rateMilliRps = 1000): ZoneMemory {
  return new ZoneMemory({ sizeBytes, nameLength: 5, rateMilliRps, initialNodes: 2 });
}

/** Keys from the oldest to the newest. */
function order(memory: ZoneMemory): number[] {
  const keys: number[] = [];
  for (let node = memory.tail(); node >= 0; node = memory.nextNewer(node)) {
    keys.push(memory.keyOf(node));
  }
  return keys;
}

function evicted(memory: ZoneMemory): { key: number; isForced: boolean }[] {
  return Array.from({ length: memory.evictedCount }, (_, i) => ({
    key: memory.evictedKeys[i]!,
    isForced: memory.evictedForced[i] === 1,
  }));
}

/** Fills a zone of 32k with keys 0 to 190, a millisecond apart. */
function fullZone(): ZoneMemory {
  const memory = zone();
  for (let key = 0; key < 191; key++) memory.create(key, 8, NOW_MS + key);
  assert.equal(memory.nodes, 191);
  assert.equal(memory.pagesFree, 0);
  return memory;
}

test('the sums at their edges', () => {
  assert.equal(elapsedMs(100, 90), 0);
  assert.equal(elapsedMs(MINUTE_MS, 0), 0);
  assert.equal(elapsedMs(MINUTE_MS + 1, 0), 1);
  assert.equal(lastAfter(100, 90), 100);
  assert.equal(lastAfter(100, 100), 100);
  assert.equal(lastAfter(MINUTE_MS + 101, 100), 100);
  // 166 · 7 = 1162 thousandths of a milliReq: one whole one drains.
  assert.equal(decayedExcess(500, 0, 166, 7), 499);
  assert.equal(excessAfter(500, 0, 166, 7), 1499);
  assert.equal(excessAfter(0, 0, 5000, 1000), 0);
  assert.equal(delayMs(980, 0, 5000), 196);
  assert.equal(delayMs(2000, 2000, 5000), 0);
  assert.equal(delayMs(9000, Infinity, 5000), 0);
  // A product beyond 2^31, which bit operations would cut.
  assert.equal(excessAfter(40_000_000, 0, 1_000_000, 30_000), 10_001_000);
});

test('a node is idle after a minute, either way, and only without debt', () => {
  assert.equal(isIdle(0, 0, 1000, MINUTE_MS - 1), false);
  assert.equal(isIdle(0, 0, 1000, MINUTE_MS), true);
  assert.equal(isIdle(0, MINUTE_MS, 1000, 0), true);
  assert.equal(isIdle(60_001, 0, 1000, MINUTE_MS), false);
  assert.equal(isIdle(60_000, 0, 1000, MINUTE_MS), true);
});

test('creating a node frees two idle ones at most, while there is room for all', () => {
  const memory = zone();
  for (let key = 0; key < 5; key++) memory.create(key, 8, NOW_MS);
  memory.create(9, 8, NOW_MS + MINUTE_MS);
  assert.deepEqual(evicted(memory), [
    { key: 0, isForced: false },
    { key: 1, isForced: false },
  ]);
  assert.equal(memory.allocFailures, 0);
  assert.deepEqual(order(memory), [2, 3, 4, 9]);
});

test('a full zone frees its oldest node by force, and says what it owed', () => {
  const memory = fullZone();
  const oldest = memory.tail();
  memory.excessMilliReq[oldest] = 3000;
  assert.equal(memory.nodesInDebt(NOW_MS), 1);
  const node = memory.create(500, 8, NOW_MS + 2000);
  assert.ok(node >= 0);
  assert.deepEqual(evicted(memory), [{ key: 0, isForced: true }]);
  assert.equal(memory.evictedExcessMilliReq[0], 1000);
  assert.equal(memory.allocFailures, 1);
  assert.equal(memory.find(0), -1);
  assert.equal(memory.find(500), node);
  assert.equal(memory.nodes, 191);
  assert.equal(memory.nodesInDebt(NOW_MS), 0);
});

test('after a forced eviction up to two idle nodes go as well', () => {
  const memory = fullZone();
  memory.excessMilliReq[memory.tail()] = 1_000_000;
  memory.create(500, 8, NOW_MS + 2 * MINUTE_MS);
  assert.deepEqual(evicted(memory), [
    { key: 0, isForced: true },
    { key: 1, isForced: false },
    { key: 2, isForced: false },
  ]);
});

test('a pinned node at the tail stops every eviction', () => {
  const memory = fullZone();
  const oldest = memory.tail();
  memory.pin(oldest);
  memory.pin(oldest);
  assert.equal(memory.create(500, 8, NOW_MS + MINUTE_MS), -1);
  assert.equal(memory.evictedCount, 0);
  assert.equal(memory.allocFailures, 2);
  memory.unpin(oldest);
  assert.equal(memory.create(500, 8, NOW_MS + MINUTE_MS), -1);
  memory.unpin(oldest);
  assert.ok(memory.create(500, 8, NOW_MS) >= 0);
});

test('a node further up may be pinned: the search does not come that far', () => {
  const memory = fullZone();
  memory.pin(memory.nextNewer(memory.tail()));
  assert.ok(memory.create(500, 8, NOW_MS + 2 * MINUTE_MS) >= 0);
  assert.deepEqual(evicted(memory), [{ key: 0, isForced: false }]);
});

test('removing a node makes room, and its id is used again', () => {
  const memory = fullZone();
  const node = memory.find(100);
  memory.remove(node);
  assert.equal(memory.find(100), -1);
  assert.equal(memory.create(500, 8, NOW_MS), node);
  assert.equal(memory.evictedCount, 0);
});

const operation = fc.record({
  kind: fc.constantFrom('use', 'use', 'use', 'pin', 'unpin', 'remove', 'snapshot'),
  key: fc.oneof(fc.nat(9), fc.nat(400)),
  keyLengthBytes: fc.constantFrom(8, 8, 8, 60, 200, 1200, 5000),
  stepMs: fc.oneof(fc.nat(20), fc.constant(MINUTE_MS)),
});

type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** The zone under test, with a plain list of its keys and a count of pins beside it. */
class Checked {
  memory = zone(64 * 1024);
  /** From the oldest to the newest. */
  #keys: number[] = [];
  readonly #pins = new Map<number, number>();

  run({ kind, key, keyLengthBytes }: Operation, nowMs: number): void {
    const node = this.memory.find(key);
    assert.equal(node >= 0, this.#keys.includes(key));
    if (kind === 'snapshot') this.#restore();
    else if (kind === 'use') this.#use(key, keyLengthBytes, nowMs);
    else if (node >= 0) this.#change(kind, key, node);
    this.#check();
  }

  #restore(): void {
    const json = JSON.stringify(this.memory.snapshot());
    this.memory = ZoneMemory.restore(JSON.parse(json) as ZoneMemorySnapshot);
  }

  #use(key: number, keyLengthBytes: number, nowMs: number): void {
    const node = this.memory.find(key);
    if (node >= 0) {
      this.memory.touch(node);
      this.#keys.splice(this.#keys.indexOf(key), 1);
    } else {
      const made = this.memory.create(key, keyLengthBytes, nowMs);
      assert.equal(made, this.memory.find(key));
      for (const { key: gone } of evicted(this.memory)) {
        // Always the oldest, never a pinned one.
        assert.equal(gone, this.#keys.shift());
        assert.ok(!this.#pins.has(gone));
      }
      if (made < 0) return;
      assert.equal(this.memory.lastMs[made], nowMs);
    }
    this.#keys.push(key);
  }

  #change(kind: 'pin' | 'unpin' | 'remove', key: number, node: number): void {
    const pins = this.#pins.get(key) ?? 0;
    if (kind === 'pin') {
      this.memory.pin(node);
      this.#pins.set(key, pins + 1);
    } else if (kind === 'unpin' && pins > 0) {
      this.memory.unpin(node);
      if (pins === 1) this.#pins.delete(key);
      else this.#pins.set(key, pins - 1);
    } else if (kind === 'remove' && pins === 0) {
      this.memory.remove(node);
      this.#keys.splice(this.#keys.indexOf(key), 1);
    }
  }

  #check(): void {
    const { memory } = this;
    assert.deepEqual(order(memory), this.#keys);
    const fromNewest: number[] = [];
    for (let node = memory.head(); node >= 0; node = memory.nextOlder(node)) {
      fromNewest.push(memory.keyOf(node));
    }
    assert.deepEqual(fromNewest.reverse(), this.#keys);
    assert.equal(memory.nodes, this.#keys.length);
    assert.ok(memory.nodes <= memory.capacityNodes(8));
    assert.ok(memory.pagesFree >= 0 && memory.pagesFree < memory.pages);
    for (const key of this.#keys) {
      assert.equal(memory.isPinned(memory.find(key)), this.#pins.has(key));
    }
  }
}

test('order of use, pins and evictions hold through random operations and restores', () => {
  const operations = fc.array(operation, { maxLength: 250, size: 'max' });
  fc.assert(
    fc.property(operations, (sequence) => {
      const checked = new Checked();
      let nowMs = NOW_MS;
      for (const step of sequence) {
        nowMs += step.stepMs;
        checked.run(step, nowMs);
      }
    }),
    { numRuns: 60 },
  );
});
