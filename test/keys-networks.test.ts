import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatAddress, parseAddress } from '../src/keys/address.js';
import { NO_CHOICE, Networks, parseNetwork, parseRange } from '../src/keys/networks.js';

function parse(text: string): readonly number[] | null {
  const bytes = Buffer.from(`1${text}1`, 'latin1');
  const out = new Uint8Array(16);
  const length = parseAddress(bytes, 1, bytes.length - 1, out);
  return length === 0 ? null : [...out.subarray(0, length)];
}

const zeros = (count: number) => Array<number>(count).fill(0);

const ADDRESSES: readonly (readonly [string, readonly number[] | null])[] = [
  ['192.0.2.7', [192, 0, 2, 7]],
  ['0.0.0.0', zeros(4)],
  ['010.1.1.1', [10, 1, 1, 1]],
  ['255.255.255.255', null],
  ['192.0.2', null],
  ['192.0.2.7.1', null],
  ['192.0.2.256', null],
  ['192.0.2.x', null],
  ['', null],
  ['unix:', null],
  ['::', zeros(16)],
  ['::1', [...zeros(15), 1]],
  ['1::', [0, 1, ...zeros(14)]],
  ['2001:DB8::a:1', [0x20, 1, 0xd, 0xb8, ...zeros(9), 10, 0, 1]],
  ['1:2:3:4:5:6:7:8', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
  ['1:2:3:4:5:6:1.2.3.4', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 1, 2, 3, 4]],
  ['::ffff:1.2.3.4', [...zeros(10), 255, 255, 1, 2, 3, 4]],
  ['1:2:3:4:5:6:7', null],
  ['1:2:3:4:5:6:7:8:9', null],
  ['1:2:3:4:5:6:7:1.2.3.4', null],
  ['1::2::3', null],
  [':::', null],
  [':1', null],
  ['1:', null],
  ['12345::', null],
  ['g::', null],
  ['[::1]', null],
  ['::1%eth0', null],
];

for (const [text, expected] of ADDRESSES) {
  test(`address ${JSON.stringify(text)}`, () => {
    assert.deepEqual(parse(text), expected);
  });
}

test('what is an address to node:net is the same address here, and the other way round', () => {
  const text = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.string({ unit: fc.constantFrom('0', '1', 'f', ':', '.', '::'), maxLength: 14 }),
  );
  fc.assert(
    fc.property(text, (address) => {
      const isAddress = isIP(address) !== 0 && address !== '255.255.255.255';
      // nginx reads leading zeros as decimal, and a part left out as 0; node:net refuses both.
      fc.pre(!/(^|[.:])0\d*\.|\.0\d|\.\.|^\.|\.$/.test(address));
      assert.equal(parse(address) !== null, isAddress, address);
    }),
    { numRuns: 2000 },
  );
});

test('an address formatted and parsed again is the same', () => {
  const raw = fc.oneof(
    fc.uint8Array({ minLength: 4, maxLength: 4 }),
    fc.array(fc.constantFrom(0, 0, 0, 1, 255), { minLength: 16, maxLength: 16 }),
    fc.uint8Array({ minLength: 16, maxLength: 16 }),
  );
  fc.assert(
    fc.property(raw, (bytes) => {
      fc.pre(bytes.length === 16 || bytes.some((byte) => byte !== 255));
      assert.deepEqual(parse(formatAddress(Uint8Array.from(bytes))), [...bytes]);
    }),
    { numRuns: 1000 },
  );
});

const FORMATS: readonly (readonly [readonly number[], string])[] = [
  [[192, 0, 2, 7], '192.0.2.7'],
  [zeros(16), '::'],
  [[...zeros(15), 1], '::1'],
  [[...zeros(15), 2], '::2'],
  [[...zeros(10), 255, 255, 1, 2, 3, 4], '::ffff:1.2.3.4'],
  [[...zeros(12), 1, 2, 3, 4], '::1.2.3.4'],
  [[0x20, 1, 0xd, 0xb8, ...zeros(9), 10, 0, 1], '2001:db8::a:1'],
  [[0x20, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1], '2001:0:1::1:1'],
  [[0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1], '1:0:1:1:1:1:1:1'],
  [[0, 1, ...zeros(14)], '1::'],
];

for (const [raw, text] of FORMATS) {
  test(`nginx writes ${raw.join(' ')} as ${text}`, () => {
    assert.equal(formatAddress(Uint8Array.from(raw)), text);
  });
}

test('networks are read with or without prefix, ranges with two addresses', () => {
  assert.deepEqual(parseNetwork('10.1.2.3/8'), {
    family: 4,
    first: 0x0a00_0000n,
    last: 0x0aff_ffffn,
    prefix: 8,
  });
  assert.equal(parseNetwork('::1')?.prefix, 128);
  assert.equal(parseNetwork('255.255.255.255')?.first, 0xffff_ffffn);
  for (const bad of ['10.0.0.0/33', '10.0.0.0/', 'x', '::/129', '10.0.0.0/-1', '1.1.1.1/8/8']) {
    assert.equal(parseNetwork(bad), undefined, bad);
  }
  assert.deepEqual(parseRange('10.0.0.0-10.0.0.9'), { first: 0x0a00_0000n, last: 0x0a00_0009n });
  for (const bad of ['10.0.0.9-10.0.0.1', '10.0.0.1', '::1-::2', '1.1.1.1-1.1.1.2-1.1.1.3']) {
    assert.equal(parseRange(bad), undefined, bad);
  }
});

/** Addresses and prefixes that meet each other often. */
const network = fc.oneof(
  fc
    .tuple(fc.constantFrom(0, 1, 10, 255), fc.nat(3), fc.constantFrom(0, 128, 255), fc.nat(32))
    .map(([a, b, c, prefix]) => `${a}.${b}.${c}.7/${prefix}`),
  fc
    .tuple(fc.constantFrom('', '2001', 'ffff'), fc.constantFrom('', '1', '8000'), fc.nat(128))
    .map(([a, b, prefix]) => `${a || 0}:0:0:0:${b || 0}:0:0:1/${prefix}`),
);

const address = fc.oneof(
  fc
    .tuple(fc.constantFrom(0, 1, 10, 255), fc.nat(3), fc.nat(255), fc.nat(8))
    .map((p) => p.join('.')),
  fc
    .tuple(fc.constantFrom('0', '2001', 'ffff'), fc.constantFrom('0', '1', '8000'), fc.nat(2))
    .map(([a, b, c]) => `${a}:0:0:0:${b}:0:0:${c}`),
);

test('the network found is the one with the longest prefix, the last of equal ones', () => {
  fc.assert(
    fc.property(fc.array(network, { maxLength: 12 }), fc.array(address), (networks, addresses) => {
      const parsed = networks.map((text, choice) => ({ ...parseNetwork(text)!, choice }));
      const table = new Networks(parsed.map((each) => ({ ...each, rank: each.prefix })));
      for (const text of addresses) {
        const raw = Uint8Array.from(parse(text)!);
        const { family, first } = parseNetwork(text)!;
        let best = -1;
        let expected = NO_CHOICE;
        for (const each of parsed) {
          const covers = each.family === family && each.first <= first && first <= each.last;
          if (!covers || each.prefix < best) continue;
          best = each.prefix;
          expected = each.choice;
        }
        assert.equal(table.find(raw, raw.length), expected, `${text} in ${networks.join(' ')}`);
      }
    }),
    { numRuns: 400 },
  );
});
