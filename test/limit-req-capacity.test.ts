/**
 * How many keys a zone holds: the tables measured with nginx's real allocator, to the number, and
 * the formula against filling a zone of any size.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  limitConnCapacityNodes,
  limitConnSizeBytes,
  limitReqCapacityNodes,
  limitReqSizeBytes,
} from '../src/limit-req/capacity.js';
import {
  limitConnNodeBytes,
  limitConnOverhead,
  limitReqNodeBytes,
  limitReqOverhead,
  usablePages,
} from '../src/limit-req/layout.js';
import { Slab } from '../src/limit-req/slab.js';

const KIB = 1024;
const SIZES = [32, 64, 256, 1024, 10_240].map((kib) => kib * KIB);

type Row = readonly [shortest: number, longest: number, capacities: readonly number[]];

const LIMIT_REQ: readonly Row[] = [
  [1, 48, [191, 447, 1983, 8095, 81_375]],
  [49, 176, [80, 208, 976, 4032, 40_672]],
  [177, 432, [40, 104, 488, 2016, 20_336]],
  [433, 944, [20, 52, 244, 1008, 10_168]],
  [945, 1968, [10, 26, 122, 504, 5084]],
  [1969, 4016, [5, 13, 61, 252, 2542]],
  [4017, 4017, [2, 6, 30, 126, 1271]],
];

const LIMIT_CONN: readonly Row[] = [
  [1, 28, [383, 895, 3967, 16_191, 162_751]],
  [29, 92, [160, 416, 1952, 8064, 81_344]],
  [93, 220, [80, 208, 976, 4032, 40_672]],
  [221, 255, [40, 104, 488, 2016, 20_336]],
];

/** Fills a zone until an allocation fails. */
function fill(sizeBytes: number, nodeBytes: number, overhead: readonly number[]): number {
  const slab = new Slab(sizeBytes);
  for (const bytes of overhead) assert.ok(slab.alloc(bytes) >= 0);
  let nodes = 0;
  while (slab.alloc(nodeBytes) >= 0) nodes++;
  return nodes;
}

test('usable pages of 32k, 64k, 256k, 1m and 10m', () => {
  assert.deepEqual(SIZES.map(usablePages), [7, 15, 63, 254, 2544]);
});

for (const [shortest, longest, capacities] of LIMIT_REQ) {
  test(`limit_req keys of ${shortest} to ${longest} bytes: ${capacities.join(', ')}`, () => {
    for (const length of [shortest, longest]) {
      const nodeBytes = limitReqNodeBytes(length);
      const overhead = limitReqOverhead(5);
      assert.deepEqual(
        SIZES.map((size) => limitReqCapacityNodes(size, length, 5)),
        capacities,
      );
      assert.deepEqual(
        SIZES.map((size) => fill(size, nodeBytes, overhead)),
        capacities,
      );
    }
  });
}

for (const [shortest, longest, capacities] of LIMIT_CONN) {
  test(`limit_conn keys of ${shortest} to ${longest} bytes: ${capacities.join(', ')}`, () => {
    for (const length of [shortest, longest]) {
      const nodeBytes = limitConnNodeBytes(length);
      const overhead = limitConnOverhead(5);
      assert.deepEqual(
        SIZES.map((size) => limitConnCapacityNodes(size, length, 5)),
        capacities,
      );
      assert.deepEqual(
        SIZES.map((size) => fill(size, nodeBytes, overhead)),
        capacities,
      );
    }
  });
}

test('a zone name of 43 characters or more shares the page of the nodes', () => {
  assert.equal(limitReqCapacityNodes(32 * KIB, 8, 42), 6 * 32 - 1);
  assert.equal(limitReqCapacityNodes(32 * KIB, 8, 43), 7 * 32 - 2);
});

const sizeBytes = fc.integer({ min: 32 * KIB, max: 300 * KIB });
const keyLengthBytes = fc.oneof(
  fc.integer({ min: 1, max: 5000 }),
  fc.integer({ max: 70_000, min: 1 }),
);
const nameLength = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 5000 }));

test('the capacity is what filling a zone of any size gives', () => {
  fc.assert(
    fc.property(sizeBytes, keyLengthBytes, nameLength, (size, length, name) => {
      assert.equal(
        limitReqCapacityNodes(size, length, name),
        fill(size, limitReqNodeBytes(length), limitReqOverhead(name)),
      );
      assert.equal(
        limitConnCapacityNodes(size, length, name),
        fill(size, limitConnNodeBytes(length), limitConnOverhead(name)),
      );
    }),
    { numRuns: 200 },
  );
});

test('the size for a number of keys holds them, and a page less does not', () => {
  assert.equal(limitReqSizeBytes(191, 8, 5), 32 * KIB);
  assert.equal(limitReqSizeBytes(192, 8, 5), 36 * KIB);
  const nodes = fc.integer({ min: 1, max: 3_000_000 });
  fc.assert(
    fc.property(nodes, fc.integer({ min: 1, max: 255 }), (count, length) => {
      const reqBytes = limitReqSizeBytes(count, length, 5);
      const connBytes = limitConnSizeBytes(count, length, 5);
      assert.ok(limitReqCapacityNodes(reqBytes, length, 5) >= count);
      assert.ok(limitConnCapacityNodes(connBytes, length, 5) >= count);
      const isSmallest = (bytes: number, capacity: (bytes: number) => number): boolean =>
        bytes === 32 * KIB || capacity(bytes - 4096) < count;
      assert.ok(isSmallest(reqBytes, (bytes) => limitReqCapacityNodes(bytes, length, 5)));
      assert.ok(isSmallest(connBytes, (bytes) => limitConnCapacityNodes(bytes, length, 5)));
    }),
    { numRuns: 200 },
  );
});
