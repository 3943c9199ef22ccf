/**
 * What stays bounded however long the log and however many the keys.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Examples } from '../src/aggregate/examples.js';
import { selectHeaviest } from '../src/aggregate/heaviest.js';
import { KeyMinutes } from '../src/aggregate/key-minutes.js';
import { LineCounts } from '../src/aggregate/line-counts.js';
import { Names } from '../src/aggregate/names.js';
import { WORD } from '../src/aggregate/outcome-words.js';
import { Responses } from '../src/aggregate/responses.js';
import { TouchedSums } from '../src/aggregate/touched-sums.js';
import { excessFraction } from '../src/aggregate/zone-counts.js';
import { KeyTable } from '../src/keys/key-table.js';
import { aggregateTrace, rowsOf, sumBy, type Row } from './support/aggregate-trace.js';
import { traceDir } from './support/truth.js';

function rowsInto(rows: Row[]) {
  return {
    row: (table: Row['table'], row: readonly unknown[]) => void rows.push({ table, row }),
  };
}

function idOf(keys: KeyTable, text: string): number {
  const bytes = Buffer.from(text);
  return keys.intern(bytes, 0, bytes.length);
}

test('the heaviest are those that a sort would choose', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -1, max: 6 })), fc.nat({ max: 12 }), (totals, keep) => {
      const chosen = selectHeaviest(Int32Array.from(totals), totals.length, keep);
      const sorted = [...totals.keys()]
        .filter((i) => totals[i]! >= 0)
        .sort((a, b) => totals[b]! - totals[a]! || a - b)
        .slice(0, keep)
        .sort((a, b) => a - b);
      assert.deepEqual([...chosen], sorted);
    }),
  );
});

test('touched sums are what a map would hold', () => {
  const step = fc.tuple(fc.nat({ max: 500 }), fc.integer({ min: 1, max: 9 }));
  fc.assert(
    fc.property(fc.array(fc.array(step)), (rounds) => {
      const sums = new TouchedSums(2, 1);
      for (const steps of rounds) {
        const expected = new Map<number, number>();
        for (const [cell, n] of steps) {
          const at = sums.count(cell, n);
          sums.values[at + 1]! += 2 * n;
          expected.set(cell, (expected.get(cell) ?? 0) + n);
        }
        const cells = [...expected.keys()].sort((a, b) => a - b);
        assert.deepEqual([...sums.cells()], cells);
        for (const cell of cells) {
          assert.deepEqual(sums.of(cell), [expected.get(cell), 2 * expected.get(cell)!]);
        }
        sums.clear();
      }
    }),
  );
});

test('a minute keeps every limited key and the heaviest others, in the order of their coming', () => {
  const keys = new KeyTable();
  const minutes = new KeyMinutes({ keys }, 2, 1000);
  const seen: [string, number, number][] = [
    ['light', WORD.passed, 1],
    ['heavy', WORD.passed, 9],
    ['limited', WORD.rejected, 1],
    ['middle', WORD.passed, 5],
    ['dry', WORD.delayed_dry_run, 1],
    ['full', WORD.exhausted_dry_run, 1],
  ];
  for (const [text, word, n] of seen) {
    for (let i = 1; i <= n; i++)
      minutes.count(idOf(keys, text), word, i * 10, i * 10 - 0.5, i * 10 + 0.5);
  }
  const rows: [string, readonly (number | null)[]][] = [];
  minutes.emit((text, columns) => void rows.push([text, columns]));
  assert.deepEqual(rows, [
    ['heavy', [9, 0, 0, 0, 0, 0, 90, 89, 91]],
    ['limited', [0, 0, 1, 0, 0, 0, 10, 9, 11]],
    ['middle', [5, 0, 0, 0, 0, 0, 50, 49, 51]],
    ['dry', [0, 0, 0, 1, 0, 0, 10, 9, 11]],
    ['full', [0, 0, 0, 0, 0, 1, 10, 9, 11]],
  ]);
  assert.equal(keys.size, 0, 'all keys are given back');
});

test('a flood of keys: memory ends, limited ones come first, the rest is counted', () => {
  const keys = new KeyTable();
  const minutes = new KeyMinutes({ keys }, 50, 100);
  for (let i = 0; i < 1000; i++) minutes.count(idOf(keys, `passed ${i}`), WORD.passed, 0, 0, 0);
  assert.equal(minutes.size, 100);
  for (let i = 0; i < 1000; i++) minutes.count(idOf(keys, `limited ${i}`), WORD.rejected, 1, 1, 1);
  assert.equal(minutes.size, 200);
  assert.equal(minutes.untracked, 1800);
  minutes.count(idOf(keys, 'passed 7'), WORD.rejected, 1, 1, 1);
  let limited = 0;
  let others = 0;
  minutes.emit((_text, columns) => void (columns[2]! > 0 ? limited++ : others++));
  assert.deepEqual([limited, others], [101, 50]);
  minutes.count(idOf(keys, 'passed 1'), WORD.passed, 0, 0, 0);
  assert.equal(minutes.size, 1);
});

test('keys of a minute are told once, bucket by bucket, and go on after a restart', () => {
  const minutesOf = (): KeyMinutes & { table: KeyTable } => {
    const table = new KeyTable();
    return Object.assign(new KeyMinutes({ keys: table }, 1, 3), { table });
  };
  const count = (minutes: ReturnType<typeof minutesOf>, ...texts: string[]): void => {
    for (const text of texts) minutes.count(idOf(minutes.table, text), WORD.passed, 0, 0, 0);
  };
  const first = minutesOf();
  count(first, 'a', 'b', 'a');
  assert.deepEqual([first.size, first.takeNew()], [2, 2]);
  count(first, 'b', 'c', 'd', 'd');
  // Two requests had no room: of one key, or of two.
  const second = minutesOf();
  second.restore(first.snapshot(), first.told());
  for (const minutes of [first, second]) {
    assert.deepEqual([minutes.size, minutes.takeNew()], [3, 3]);
    assert.equal(minutes.takeNew(), 0);
    minutes.clear();
    count(minutes, 'd');
    assert.deepEqual([minutes.size, minutes.takeNew()], [1, 1]);
  }
});

test('a state from before there were bounds goes on without an upper one', () => {
  const keys = new KeyTable();
  const minutes = new KeyMinutes({ keys }, 1, 10);
  minutes.restore([{ key: Buffer.from('k').toString('base64'), columns: [5, 1, 2, 0, 0, 0, 900] }]);
  minutes.count(idOf(keys, 'k'), WORD.passed, 700, 600, 800);
  const rows: unknown[] = [];
  minutes.emit((text, columns) => void rows.push(text, ...columns));
  assert.deepEqual(rows, ['k', 6, 1, 2, 0, 0, 0, 900, 600, null]);
});

test('an excess beyond 2^31 thousandths counts as that', () => {
  const keys = new KeyTable();
  const minutes = new KeyMinutes({ keys }, 1, 10);
  minutes.count(idOf(keys, 'k'), WORD.delayed, 5e12, 4e12, 6e12);
  const excess: unknown[] = [];
  minutes.emit((_text, columns) => void excess.push(...columns.slice(6)));
  assert.deepEqual(excess, [2 ** 31 - 1, 2 ** 31 - 1, null]);
});

test('of the passed keys of a capture the heaviest few come out, of the limited ones all', () => {
  const all = rowsOf(
    aggregateTrace(traceDir('g_mixed_2workers'), { keysPerMinute: 1e6 }).rows,
    'key_minutes',
  );
  const { rows } = aggregateTrace(traceDir('g_mixed_2workers'), { keysPerMinute: 3 });
  const isLimited = (row: Record<string, unknown>): boolean =>
    Number(row['delayed']) + Number(row['rejected']) > 0;
  const kept = rowsOf(rows, 'key_minutes');
  assert.deepEqual(kept.filter(isLimited), all.filter(isLimited));
  const minutes = new Set(all.map(({ minute }) => minute));
  const others = kept.filter((row) => !isLimited(row));
  assert.equal(others.length, 3 * minutes.size);
  const heaviest = Math.max(
    ...all.filter((row) => !isLimited(row)).map((r) => Number(r['passed'])),
  );
  assert.ok(others.some((row) => row['passed'] === heaviest));
});

test('examples: five of a place, status and source in a minute, without arguments', () => {
  const { rows } = aggregateTrace(traceDir('i_mixed_status'));
  const examples = rowsOf(rows, 'examples').map((row) => ({
    ...row,
    minute: Math.floor(Number(row['time']) / 60_000),
  }));
  const names = ['server', 'location', 'status', 'source', 'minute'];
  const counts = sumBy(
    examples.map((row) => ({ ...row, one: 1 })),
    'one',
    ...names,
  );
  assert.ok(Object.keys(counts).length >= 6);
  assert.ok(Object.values(counts).every((n) => n <= 5));
  assert.ok(
    examples.every((row) => !String((row as Record<string, unknown>)['path']).includes('?')),
  );
  for (const row of rowsOf(rows, 'examples')) {
    const isOurs = row['source'] === 'limit_req';
    assert.equal(row['zone'], isOurs ? 'perkey' : '');
    assert.equal(Number(row['excess_milli']) > 4000, isOurs);
    assert.equal(row['request_method'], 'GET');
    assert.equal(String(row['key']).length > 0, isOurs);
  }
});

test('examples: another minute begins anew', () => {
  const examples = new Examples();
  const wanted = (): boolean[] => Array.from({ length: 6 }, () => examples.isWanted(0, 503, 1));
  assert.deepEqual(wanted(), [true, true, true, true, true, false]);
  assert.equal(examples.isWanted(1, 503, 1), true);
  assert.equal(examples.isWanted(0, 429, 1), true);
  assert.equal(examples.isWanted(0, 503, 5), true);
  examples.clear();
  assert.equal(examples.isWanted(0, 503, 1), true);
});

test('lines count in buckets of 10 s, whichever way they are batched', () => {
  const one: Row[] = [];
  const batched: Row[] = [];
  const single = new LineCounts(rowsInto(one), 'x');
  const many = new LineCounts(rowsInto(batched), 'x');
  const steps: [string, number, 'access' | 'error', string, number][] = [
    ['a', 12_345, 'access', '', 3],
    ['e', 12_999, 'error', 'warn', 2],
    ['a', 19_999, 'access', '', 1],
    ['a', 20_000, 'access', '', 4],
    ['e', 19_000, 'error', 'warn', 1],
    ['a', 31_000, 'access', '', 1],
  ];
  for (const [source, ms, kind, reason, n] of steps) {
    many.count(source, ms, kind, reason, n);
    for (let i = 0; i < n; i++) single.count(source, ms, kind, reason, 1);
  }
  single.flush();
  many.flush();
  assert.deepEqual(one, batched);
  assert.deepEqual(
    one.map(({ row }) => row.join(' ')),
    [
      'x a 10 access  4',
      'x e 10 error warn 2',
      'x e 10 error warn 1',
      'x a 20 access  4',
      'x a 30 access  1',
    ],
  );
});

test('lines without a time count with the lines around them', () => {
  const rows: Row[] = [];
  const lines = new LineCounts(rowsInto(rows), 'x');
  lines.count('a', NaN, 'unparsable', 'no time', 2);
  lines.count('a', 25_000, 'access', '', 1);
  lines.count('a', NaN, 'unparsable', 'no time', 1);
  lines.flush();
  assert.deepEqual(
    rows.map(({ row }) => row.join(' ')),
    ['x a 20 unparsable no time 2', 'x a 20 access  1', 'x a 20 unparsable no time 1'],
  );
});

test('samples: twenty of a source and reason, each cut', () => {
  const rows: Row[] = [];
  const lines = new LineCounts(rowsInto(rows), 'x');
  for (let i = 0; i < 30; i++) lines.sample('a', i, 'status', 'y'.repeat(5000));
  lines.sample('a', 99, 'time', 'z');
  lines.sample('b', 99, 'status', 'z');
  assert.equal(rows.length, 22);
  assert.equal(String(rows[0]!.row[4]).length, 2048);
});

test('responses: any status finds its place, and rows come by place and status', () => {
  const places = new Names();
  const late = places.of('b.example', '/');
  const early = places.of('a.example', '/');
  const responses = new Responses(places);
  for (const status of [503, 200, -1, 999, 1000]) responses.count(early, status, 0, 0);
  responses.count(late, 200, 1, 4);
  const rows: Row[] = [];
  responses.emit(rowsInto(rows), 'x', 10);
  assert.deepEqual(
    rows.map(({ row }) => row.join(' ')),
    [
      'x b.example / 10 200 limit_req REJECTED 1',
      'x a.example / 10 0   2',
      'x a.example / 10 200   1',
      'x a.example / 10 503   1',
      'x a.example / 10 999   1',
    ],
  );
  responses.emit(rowsInto(rows), 'x', 20);
  assert.equal(rows.length, 5);
});

const fractions: readonly (readonly [number, number, number])[] = [
  [0, 0, 0],
  [1, 0, 21],
  [0, 20_000, 0],
  [999, 20_000, 0],
  [1000, 20_000, 1],
  [19_999, 20_000, 19],
  [20_000, 20_000, 20],
  [20_001, 20_000, 21],
];
for (const [excess, burst, fraction] of fractions) {
  test(`an excess of ${excess} at a burst of ${burst} is in class ${fraction}`, () => {
    assert.equal(excessFraction(excess, burst), fraction);
  });
}
