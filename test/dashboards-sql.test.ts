/**
 * Every statement of the dashboards on the real engine, expanded as Grafana does: panels, choices of
 * variables and annotations, over several ranges and choices, on an empty store and a filled one.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { ANNOTATIONS } from '../dashboards/catalogue/annotations.js';
import { DASHBOARDS } from '../dashboards/catalogue/dashboards.js';
import type { Panel } from '../dashboards/catalogue/panel.js';
import { variableValue, VARIABLES } from '../dashboards/catalogue/variables.js';
import { ALL, expand, type TimeRange, type VariableValue } from '../dashboards/expand.js';
import { openStore, type Store } from '../src/store/store.js';
import { columnsOf, type TableName } from '../src/store/tables.js';
import { makeTempDir } from './support/temp-dir.js';

const T0_S = 1_794_000_000; // on a minute
const T0_MS = T0_S * 1000;
const HOUR_MS = 3_600_000;

const QUARTER: TimeRange = { fromMs: T0_MS, toMs: T0_MS + HOUR_MS / 4, intervalMs: 20_000 };
const RANGES: readonly TimeRange[] = [
  QUARTER,
  { fromMs: T0_MS - 6 * HOUR_MS + 7, toMs: T0_MS + 500, intervalMs: 60_000 },
  { fromMs: T0_MS - 720 * HOUR_MS, toMs: T0_MS + HOUR_MS, intervalMs: 3_600_000 },
  { fromMs: T0_MS - 9000 * HOUR_MS, toMs: T0_MS - 8999 * HOUR_MS, intervalMs: 60_000 },
];

/** What clients can send, or somebody may write into a configuration. */
const HOSTILE = [
  '\\',
  "'",
  "' OR 1=1 --",
  "\\' OR 1=1 --",
  '$__timeFilter(bucket)',
  '${zone:singlequote}',
  '$zone',
  '$__all ',
  'a,b',
  '{a}',
  '%27%2527',
  '~ ^/[a-z]{1,3}\\.php$',
  '<script>alert(1)</script>',
  'é\n\t\u0000\u202e"`;)(',
];

type Choice = Readonly<Record<string, VariableValue>>;
const EVERYTHING: Choice = { instance: ALL, server: ALL, location: ALL, zone: ALL, key: 'k0' };
const CHOICES: readonly Choice[] = [
  EVERYTHING,
  { instance: ['edge'], server: ['s0'], location: ['l0'], zone: ['z0'], key: 'k0' },
  {
    instance: ['edge', 'core'],
    server: ['s0', 's1'],
    location: ['l0', 'l1'],
    zone: ['z0', 'z1'],
    key: 'k1',
  },
  // As Grafana has it when a variable is made to hold one value only.
  { instance: 'edge', server: 's0', location: 'l0', zone: 'z0', key: '' },
  Object.fromEntries(
    Object.keys(EVERYTHING).map((name, n) => [
      name,
      name === 'key' ? variableValue(HOSTILE[3]!) : HOSTILE.slice(n, n + 5).map(variableValue),
    ]),
  ),
];

const PANELS: readonly Panel[] = DASHBOARDS.flatMap(({ panels }) => panels);

const STATEMENTS: readonly (readonly [id: string, sql: string])[] = [
  ...PANELS.map(({ id, sql }) => [id, sql] as const),
  ...VARIABLES.map(({ name, sql }) => [`variable ${name}`, sql] as const),
  ...ANNOTATIONS.map(({ id, sql }) => [`annotation ${id}`, sql] as const),
];

function expandWhole(id: string, sql: string, range: TimeRange, choice: Choice): string {
  const expanded = expand(sql, range, choice);
  assert.doesNotMatch(expanded, /\$|\[\[/, `${id} is not expanded to its end`);
  return expanded;
}

async function openTemp(t: test.TestContext): Promise<Store> {
  const store = await openStore({ path: join(makeTempDir(t), 'store'), createIfMissing: true });
  t.after(() => store.close());
  return store;
}

async function insert(store: Store, table: TableName, rows: readonly unknown[][]): Promise<void> {
  await store.insertBlock({ table, columns: columnsOf(table), rows }, `${table}/${rows.length}`);
}

const RULES = [
  { server: 's0', location: 'l0', burst: 20, delay: 5, dryRun: false },
  { server: 's1', location: 'l1', burst: 10, delay: 'nodelay', dryRun: true },
];

/** Names n: two plain ones, then the hostile ones; one row or two in each table for each. */
async function fill(store: Store): Promise<void> {
  const rows: Record<TableName, unknown[][]> = {
    zone_outcomes: [],
    responses: [],
    excess_histogram: [],
    key_minutes: [],
    zone_state: [],
    agreement: [],
    line_counts: [],
    unparsable_samples: [],
    examples: [],
    findings: [],
    marks: [],
    limits: [],
  };
  const names = Array.from({ length: 2 + HOSTILE.length }, (_, n) => n);
  for (const n of names) {
    const name = (prefix: string) => HOSTILE[n - 2] ?? `${prefix}${n}`;
    const i = n % 2 === 0 ? 'edge' : 'core';
    const [server, location, zone, key] = ['s', 'l', 'z', 'k'].map(name);
    for (const atS of [T0_S, T0_S + 60]) {
      const limit = [i, zone, 'limit_req', server, location, atS];
      rows.zone_outcomes.push([...limit, 'passed', 100 + n, 3, 5000, 900, 0]);
      rows.zone_outcomes.push([...limit, 'rejected', n + 1, 0, 21_000, 21_000, 0]);
      rows.zone_outcomes.push([...limit, 'rejected_dry_run', 1, 0, 21_000, 21_000, 0]);
      rows.zone_outcomes.push([...limit, 'delayed_dry_run', 1, 0, 6000, 6000, 0]);
      rows.responses.push([i, server, location, atS, 503, 'limit_req', 'REJECTED', n + 1]);
      rows.responses.push([i, server, location, atS, 200, '', 'PASSED', 100]);
      rows.excess_histogram.push([i, zone, atS, n % 22, 5]);
      rows.key_minutes.push([
        ...[i, zone, key, atS, 1000 + n, 1, n + 1, 0, 2, 0],
        ...[1000 * n, 900 * n, 1000 * n + 500],
      ]);
      rows.zone_state.push([i, zone, atS, 100 + n, 191, 3, n % 3, 1, n % 2, 9, 40 + n, 40 + n]);
      rows.agreement.push([i, zone, atS, 'agree', 90], [i, zone, atS, 'explained', 99]);
      rows.agreement.push([i, zone, atS, 'order', 10]);
      rows.line_counts.push([i, `${name('f')}.log`, atS, 'unparsable', 'not the format', 2]);
    }
    const atMs = T0_MS + n;
    rows.unparsable_samples.push([i, 'f', n, 'not the format', name('raw')]);
    rows.examples.push([i, server, location, 503, 'limit_req', atMs, 'GET', '/a', zone, key, 7000]);
    rows.findings.push([i, 'burst_differs', name('x'), name('m'), atMs, atMs + 9000, '{}']);
    rows.marks.push([i, atMs, 'reload', name('d')]);
    rows.limits.push([i, zone, T0_MS - 5, '$uri', 32_768, 10_000, 191, JSON.stringify(RULES)]);
  }
  for (const [table, list] of Object.entries(rows)) await insert(store, table as TableName, list);
}

interface Column {
  readonly name: string;
  readonly type: string;
}

const NUMBER = /^(Nullable\()?(U?Int\d+|Float\d+)\)?$/;
const TIME = /^DateTime/;
const TEXT = /^(LowCardinality\()?String/;

/** What the panel's kind cannot draw in a result with these columns. */
function misfits(panel: Panel, columns: readonly Column[]): string[] {
  const [first, ...others] = columns;
  switch (panel.kind) {
    case 'table':
      return columns.filter(({ type }) => /^(Array|Tuple|Map)/.test(type)).map(({ name }) => name);
    case 'stat':
      return columns.filter(({ type }) => !NUMBER.test(type)).map(({ name }) => name);
    case 'bar':
      return [
        ...(first !== undefined && TEXT.test(first.type) ? [] : ['no name first']),
        ...others.filter(({ type }) => !NUMBER.test(type)).map(({ name }) => name),
      ];
    default:
      return [
        ...(first?.name === 'time' && TIME.test(first.type) ? [] : ['no time first']),
        ...others
          .filter(({ name, type }) => !(name === 'series' ? TEXT : NUMBER).test(type))
          .map(({ name }) => name),
        ...(others.some(({ type }) => NUMBER.test(type)) ? [] : ['no number']),
      ];
  }
}

function assertAscending(id: string, rows: readonly Record<string, unknown>[]): void {
  const times = rows.map(({ time }) => String(time));
  assert.deepEqual(times, times.toSorted(), `${id}: time goes back`);
  const points = rows.map(({ time, series }) => JSON.stringify([time, series]));
  assert.equal(new Set(points).size, points.length, `${id}: two rows for one point`);
}

test('statements of the dashboards', async (t) => {
  const store = await openTemp(t);

  await t.test('on an empty store give nothing, or zeros', async () => {
    for (const [id, sql] of STATEMENTS) {
      const rows = await store.query<object>(expandWhole(id, sql, QUARTER, EVERYTHING));
      const isStat = PANELS.some((panel) => panel.id === id && panel.kind === 'stat');
      assert.equal(rows.length, isStat ? 1 : 0, id);
    }
  });

  await fill(store);

  await t.test('have columns that their panels can draw', async () => {
    for (const panel of PANELS) {
      const sql = expandWhole(panel.id, panel.sql, QUARTER, EVERYTHING);
      const columns = await store.query<Column>(`DESCRIBE TABLE (${sql})`);
      assert.deepEqual(misfits(panel, columns), [], panel.id);
      const names = columns.map(({ name }) => name);
      const isNamed = panel.kind === 'timeseries' && names[1] === 'series' && names.length === 3;
      assert.equal(panel.isNamedBySeries ?? false, isNamed, panel.id);
      const named = [
        ...Object.keys(panel.units ?? {}),
        ...(panel.hidden ?? []),
        ...(panel.drillDown ?? []).flatMap((drill) => [
          drill.column,
          ...Object.values(drill.variables),
        ]),
      ];
      assert.deepEqual(
        named.filter((name) => !names.includes(name)),
        [],
        `${panel.id} names columns that it has not`,
      );
    }
  });

  await t.test('run over every range, and show what is there', async () => {
    for (const [id, sql] of STATEMENTS) {
      for (const range of RANGES) {
        const rows = await store.query<Record<string, unknown>>(
          expandWhole(id, sql, range, EVERYTHING),
        );
        if (range === QUARTER && id !== 'health-sources') assert.ok(rows.length > 0, id);
        const kind = PANELS.find((panel) => panel.id === id)?.kind;
        if (kind === 'timeseries' || kind === 'state' || kind === 'heatmap') {
          assertAscending(id, rows);
        }
      }
    }
  });

  await t.test('run with one, two and hostile values chosen', async () => {
    for (const [id, sql] of STATEMENTS) {
      for (const choice of CHOICES) {
        await store.query(expandWhole(id, sql, QUARTER, choice));
      }
    }
  });

  await t.test('add up to what was stored', () => sums(store));
  await t.test('mean exactly the key that is chosen', () => oneKey(store));
  await t.test('mean exactly the names that are chosen', () => exactNames(store));
  await t.test('cannot be left by a value that is not encoded', () => rawValues(store));
});

function panelSql(id: string): string {
  const panel = PANELS.find((one) => one.id === id);
  assert.ok(panel !== undefined, id);
  return panel.sql;
}

/** Of zone z0: what fill() stores for n = 0, in two minutes. */
async function sums(store: Store): Promise<void> {
  const ask = (id: string) =>
    store.query<Record<string, unknown>>(
      expand(panelSql(id), QUARTER, { ...EVERYTHING, zone: ['z0'], server: ['s0'], key: 'k0' }),
    );
  const excess = {
    ...{ series: 'edge z0', 'at least': 0, 'at most': 0.5, excess: 0 },
    ...{ burst: 10, delay: 5 },
  };
  assert.deepEqual(await ask('keys-one-excess'), [
    { time: '2026-11-06 21:20:00', ...excess },
    { time: '2026-11-06 21:21:00', ...excess },
  ]);
  assert.deepEqual(await ask('zones-distinct-keys'), [
    { time: '2026-11-06 21:20:00', series: 'edge z0', 'distinct keys': 40 },
    { time: '2026-11-06 21:21:00', series: 'edge z0', 'distinct keys': 40 },
  ]);
  const [headroom] = await ask('zones-headroom');
  assert.deepEqual(headroom, {
    ...{ instance: 'edge', zone: 'z0', key: '$uri', size: 32_768, rate: 10 },
    ...{ nodes: 100, 'most nodes': 100, capacity: 191, headroom: 91 },
    ...{ evictions: 6, 'evictions in debt': 0, 'let through by them': 2 },
    'allocation failures': 0,
  });
  const [totals] = await ask('overview-totals');
  assert.deepEqual(totals, {
    ...{ 'all requests': 202, 'refused by limits': 2, delayed: 0 },
    'refused share': 2 / 202,
  });
  const [safe] = await ask('dry-run-safe-to-enforce');
  assert.deepEqual(safe, {
    ...{ instance: 'edge', zone: 'z0', server: 's0', location: 'l0', requests: 206 },
    ...{ 'would be rejected': 2, 'would be delayed': 2, 'rejected share': 2 / 206 },
    ...{ 'near limit': 6 / 206, 'safe to enforce': 'no' },
  });
  const [explained] = await ask('health-explained-total');
  assert.deepEqual(explained, { explained: 0.99, 'same verdict': 0.9, 'not logged': 0 });
}

async function oneKey(store: Store): Promise<void> {
  const sql = panelSql('keys-one-outcomes');
  for (const [n, key] of ['k0', 'k1', ...HOSTILE].entries()) {
    const choice = { ...EVERYTHING, key: variableValue(key) };
    const rows = await store.query<Record<string, number>>(expand(sql, QUARTER, choice));
    const passed = rows.map((row) => Math.round(row['let through']! * 20));
    assert.deepEqual(passed, [1000 + n, 1000 + n], JSON.stringify(key));
  }
}

async function exactNames(store: Store): Promise<void> {
  const sql = panelSql('overview-who-limits-whom');
  for (const [n, first] of HOSTILE.entries()) {
    for (const names of [[first], [first, HOSTILE[(n + 1) % HOSTILE.length]!]]) {
      for (const variable of ['zone', 'server', 'location']) {
        const choice = { ...EVERYTHING, [variable]: names.map(variableValue) };
        const rows = await store.query<Record<string, string>>(expand(sql, QUARTER, choice));
        const found = rows.map((row) => row[variable]);
        assert.deepEqual(found.toSorted(), names.toSorted(), variable);
      }
    }
  }
}

async function rawValues(store: Store): Promise<void> {
  const who = panelSql('overview-who-limits-whom');
  const one = panelSql('keys-one-outcomes');
  for (const value of HOSTILE) {
    const rows = await store.query(expand(who, QUARTER, { ...EVERYTHING, zone: [value] }));
    assert.ok(rows.length <= 2, `${JSON.stringify(value)} chose ${rows.length} zones`);
    const points = await store.query(expand(one, QUARTER, { ...EVERYTHING, key: value }));
    assert.ok(points.length <= 2, JSON.stringify(value));
  }
}
