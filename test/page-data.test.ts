/**
 * What the page computes without a browser: grids, piles, addresses, times, numbers.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Panel } from '../dashboards/catalogue/panel.js';
import { variableValue } from '../dashboards/catalogue/variables.js';
import { largest, seriesOf, stacked } from '../dashboards/page/series-data.js';
import {
  defaultRange,
  inputTime,
  moved,
  resolve,
  timeOfInput,
} from '../dashboards/page/time-range.js';
import { formatNumber, formatTick, formatTime } from '../dashboards/page/units.js';
import {
  addressOf,
  nameOf,
  parseState,
  valueOf,
  withValues,
} from '../dashboards/page/url-state.js';
import type { PanelAnswer } from '../dashboards/page/wire.js';

const STEP_MS = 20_000;
const PANEL = {
  ...{ id: 'p', title: 'P', question: '?', why: '.', sql: '' },
  ...{ kind: 'timeseries', unit: 'requests per second', draw: 'stacked bars', width: 12 },
} as const satisfies Panel;

function answerOf(rows: PanelAnswer['rows'], names: readonly string[]): PanelAnswer {
  const columns = names.map((name) => ({
    name,
    type: name === 'time' ? 'time' : name === 'series' ? 'text' : 'number',
  })) as PanelAnswer['columns'];
  return { ...{ id: 'p', fromMs: 0, toMs: 80_000, stepMs: STEP_MS, isCut: false }, columns, rows };
}

test('every step of the range is on the grid, with nothing where there is no row', () => {
  const rows = [
    [20_000, 'a', 1],
    [60_000, 'a', 3],
    [60_000, 'b', 5],
  ];
  const data = seriesOf(answerOf(rows, ['time', 'series', 'n']), {
    ...PANEL,
    isNamedBySeries: true,
  });
  assert.deepEqual(data, {
    times: [0, 20, 40, 60],
    series: [
      { name: 'a', group: 'a', column: 'n', values: [null, 1, null, 3], total: 4 },
      { name: 'b', group: 'b', column: 'n', values: [null, null, null, 5], total: 5 },
    ],
  });
});

test('a row that begins before the range is drawn too', () => {
  const answer = { ...answerOf([[0, 1]], ['time', 'n']), fromMs: 10_000 };
  assert.deepEqual(seriesOf(answer, PANEL).times, [0, 20, 40, 60]);
});

test('bars of nothing but zeros are left out, a line of zeros is a line', () => {
  const answer = answerOf([[0, 0, 1, null]], ['time', 'zero', 'one', 'none']);
  const names = (draw: 'stacked bars' | 'lines'): string[] =>
    seriesOf(answer, { ...PANEL, draw }).series.map(({ name }) => name);
  assert.deepEqual(names('stacked bars'), ['one']);
  assert.deepEqual(names('lines'), ['zero', 'one']);
});

test('of many series the largest are drawn, and a pile keeps its height', () => {
  const rows = Array.from({ length: 50 }, (_, n) => [0, `s${n}`, n + 1]);
  const data = seriesOf(answerOf(rows, ['time', 'series', 'n']), {
    ...PANEL,
    isNamedBySeries: true,
  });
  const lines = largest(data, 20, false);
  assert.deepEqual([lines.series.length, lines.leftOut], [20, 30]);
  assert.equal(lines.series[0]!.name, 's30');
  const bars = largest(data, 20, true);
  assert.equal(bars.series.at(-1)!.name, '30 others');
  const heights = stacked(bars.series, () => true).map((values) => values[0]);
  assert.equal(heights.at(-1), (50 * 51) / 2);
});

test('piles grow by each series that is shown, and by no other', () => {
  const series = [1, 2, 4].map((n) => ({
    ...{ name: `${n}`, group: undefined, column: '', total: n },
    values: [n, null],
  }));
  assert.deepEqual(
    stacked(series, (at) => at !== 1),
    [
      [1, 0],
      [null, null],
      [5, 0],
    ],
  );
});

test('an address says the whole state, whatever the names are', () => {
  const text = fc.string({ unit: 'binary', maxLength: 20 });
  const name = fc.constantFrom('instance', 'zone', 'key');
  const values = fc.dictionary(name, fc.array(text, { minLength: 1, maxLength: 3 }));
  fc.assert(
    fc.property(values, fc.option(text), (chosen, from) => {
      const state = { page: 'keys', from, to: 'now', values: { ...chosen } };
      const address = new URL(addressOf(state), 'http://h.example/prefix/zones?old=1');
      assert.match(address.href, /^http:\/\/h\.example\/prefix\/keys\?/);
      assert.deepEqual(parseState(address.pathname, address.search), state);
    }),
    { seed: 1 },
  );
});

test('values of variables are encoded as the catalogue does', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (name) => {
      assert.equal(valueOf(name), variableValue(name));
      assert.equal(nameOf(valueOf(name)), name);
    }),
    { seed: 1 },
  );
  assert.equal(nameOf('50%'), '50%');
});

test('a variable without values is All', () => {
  const state = { page: 'keys', from: null, to: null, values: { zone: ['a'], key: ['k'] } };
  assert.deepEqual(withValues(state, { zone: [], server: ['s'] }).values, {
    ...{ key: ['k'], server: ['s'] },
  });
  assert.deepEqual(parseState('/', ''), { page: 'overview', from: null, to: null, values: {} });
});

test('times of an address, and the default for old and for new data', () => {
  const nowMs = Date.UTC(2026, 2, 2, 10);
  const span = { fromMs: nowMs - 9_000_000, toMs: nowMs - 7_200_000 };
  assert.equal(resolve('now', span, nowMs), nowMs);
  assert.equal(resolve('now-6h', span, nowMs), nowMs - 21_600_000);
  assert.equal(resolve('now-7d', span, nowMs), nowMs - 7 * 86_400_000);
  assert.equal(resolve('first', span, nowMs), span.fromMs);
  assert.equal(resolve('last', null, nowMs), nowMs);
  assert.equal(resolve('1794000000000', span, nowMs), 1_794_000_000_000);
  assert.equal(resolve('tomorrow', span, nowMs), undefined);
  assert.equal(defaultRange(span, nowMs).from, 'first');
  assert.equal(defaultRange({ ...span, toMs: nowMs - 5000 }, nowMs).from, 'now-1h');
  assert.equal(defaultRange(null, nowMs).from, 'now-1h');
  assert.deepEqual(moved({ fromMs: 0, toMs: 200_000 }, 1), { fromMs: 100_000, toMs: 300_000 });
  assert.deepEqual(moved({ fromMs: 0, toMs: 200_000 }, 0), { fromMs: -100_000, toMs: 300_000 });
  assert.equal(timeOfInput(inputTime(nowMs)), nowMs);
  assert.equal(timeOfInput(''), undefined);
});

const numbers = [
  [1234, 'requests', '1,234', '1,234'],
  [0.1214738, 'ratio', '12.1 %', '12.1 %'],
  [0, 'ratio', '0 %', '0 %'],
  [802.4551, 'milliseconds', '802.455 ms', '802.455 ms'],
  [1_048_576, 'bytes', '1 MiB', '1 MiB'],
  [0, 'bytes', '0 B', '0 B'],
  [11_628, 'seconds', '3.23 h', '3.23 h'],
  [59, 'seconds', '59 s', '59 s'],
  [2.65, 'requests per second', '2.65 r/s', '2.65 r/s'],
  [1_250_000, 'nodes', '1,250,000', '1.25M'],
] as const;
for (const [value, unit, exact, tick] of numbers) {
  test(`${value} ${unit}`, () => {
    assert.equal(formatNumber(value, unit), exact);
    assert.equal(formatTick(value, unit), tick);
  });
}

test('times are UTC, with milliseconds where there are any', () => {
  assert.equal(formatTime(Date.UTC(2026, 2, 2, 10)), '2026-03-02 10:00:00');
  assert.equal(formatTime(Date.UTC(2026, 2, 2, 10) + 7), '2026-03-02 10:00:00.007');
});
