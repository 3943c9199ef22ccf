/**
 * Sizes for keys, and lines of zones that nginx's own reading turns back into the same numbers.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseConf } from '../parsers/conf/read-conf.js';
import { limitLine, zoneLine } from '../src/check/conf-lines.js';
import { capacityKeys, capacityTable, sizeForKeys, sizeText } from '../src/check/zone-size.js';

const KIB = 1024;
const MIB = 1024 * KIB;
const SIZES = [32 * KIB, 64 * KIB, 256 * KIB, MIB, 10 * MIB];

test('the capacities that were measured on nginx, by key length', () => {
  assert.deepEqual(capacityTable(SIZES, [48, 49, 432, 945, 4016, 4017], 6, 'limit_req'), [
    { keyLengthBytes: 48, capacityKeys: [191, 447, 1983, 8095, 81375] },
    { keyLengthBytes: 49, capacityKeys: [80, 208, 976, 4032, 40672] },
    { keyLengthBytes: 432, capacityKeys: [40, 104, 488, 2016, 20336] },
    { keyLengthBytes: 945, capacityKeys: [10, 26, 122, 504, 5084] },
    { keyLengthBytes: 4016, capacityKeys: [5, 13, 61, 252, 2542] },
    { keyLengthBytes: 4017, capacityKeys: [2, 6, 30, 126, 1271] },
  ]);
  assert.deepEqual(capacityTable(SIZES, [28, 255], 5, 'limit_conn'), [
    { keyLengthBytes: 28, capacityKeys: [383, 895, 3967, 16191, 162751] },
    { keyLengthBytes: 255, capacityKeys: [40, 104, 488, 2016, 20336] },
  ]);
});

const sizes = [
  [
    [191, 16, 6, 'limit_req'],
    { sizeBytes: 32 * KIB, sizeMebibytes: 0.031, zoneSize: '32k', capacityKeys: 191 },
  ],
  [
    [192, 16, 6, 'limit_req'],
    { sizeBytes: 36 * KIB, sizeMebibytes: 0.035, zoneSize: '36k', capacityKeys: 223 },
  ],
  [
    [8095, 48, 6, 'limit_req'],
    { sizeBytes: MIB, sizeMebibytes: 1, zoneSize: '1m', capacityKeys: 8095 },
  ],
  [
    [8096, 48, 6, 'limit_req'],
    { sizeBytes: 1028 * KIB, sizeMebibytes: 1.004, zoneSize: '2m', capacityKeys: 16223 },
  ],
  [
    [1, 28, 6, 'limit_conn'],
    { sizeBytes: 32 * KIB, sizeMebibytes: 0.031, zoneSize: '32k', capacityKeys: 383 },
  ],
] as const;
for (const [[keys, length, name, kind], expected] of sizes) {
  test(`${keys} ${kind} keys of ${length} bytes: ${expected.zoneSize}`, () => {
    assert.deepEqual(sizeForKeys(keys, length, name, kind), expected);
  });
}

test('a proposed size holds the keys, and a page less would not', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 200_000 }),
      fc.integer({ min: 1, max: 3000 }),
      fc.integer({ min: 1, max: 60 }),
      fc.constantFrom('limit_req', 'limit_conn'),
      (keys, length, name, kind) => {
        const { sizeBytes, capacityKeys: held } = sizeForKeys(keys, length, name, kind);
        assert.ok(held >= keys);
        assert.ok(capacityKeys(kind, sizeBytes, length, name) >= keys);
        const isSmallest = sizeBytes === 32 * KIB;
        assert.ok(isSmallest || capacityKeys(kind, sizeBytes - 4 * KIB, length, name) < keys);
      },
    ),
    { numRuns: 200 },
  );
});

test('a zone line and a limit line are read back as they were', () => {
  const text = fc.string({ unit: 'binary-ascii', minLength: 1 }).filter((s) => !/[$\0]/.test(s));
  fc.assert(
    fc.property(
      text,
      text.filter((name) => !name.includes(':')),
      fc.integer({ min: 32 * KIB, max: 4 * MIB }),
      fc.boolean(),
      fc.integer({ min: 1, max: 10_000 }),
      fc.integer({ min: 1, max: 100 }),
      fc.constantFrom(0, 3000, Infinity),
      (key, name, sizeBytes, isPerMinute, perUnit, burst, delayMilliReq) => {
        const rateMilliRps = isPerMinute ? Math.trunc((perUnit * 1000) / 60) : perUnit * 1000;
        const keyExpression = `$remote_addr:${key}`;
        const limit = { zone: name, burstMilliReq: burst * 1000, delayMilliReq };
        const zone = { name, keyExpression, sizeBytes, rateMilliRps };
        const inside = `${zoneLine(zone)}\nserver { ${limitLine(limit)} }`;
        const conf = parseConf('nginx.conf', {
          read: () => `events {}\nhttp {\n${inside}\n}`,
          glob: () => [],
        });
        assert.deepEqual(
          { ...conf.reqZones.get(name), where: undefined },
          { ...zone, where: undefined },
        );
        assert.deepEqual(
          { ...conf.servers[0]!.rules.limits[0], where: undefined },
          { ...limit, where: undefined },
        );
      },
    ),
    { numRuns: 300 },
  );
});

test('sizes are written in the unit that is exact', () => {
  assert.deepEqual([32 * KIB, 10 * MIB, 33_000].map(sizeText), ['32k', '10m', '33000']);
});
