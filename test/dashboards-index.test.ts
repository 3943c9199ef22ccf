/**
 * What panels read: of a store of 30 days, one hour must not cost more than the rows near it.
 *
 * EXPLAIN indexes = 1 tells how many granules of each table are left after the indexes; the tables
 * are merged first, so that each part holds as much time as it will in the end.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { ANNOTATIONS } from '../dashboards/catalogue/annotations.js';
import { DASHBOARDS } from '../dashboards/catalogue/dashboards.js';
import { VARIABLES } from '../dashboards/catalogue/variables.js';
import { ALL, expand, type TimeRange } from '../dashboards/expand.js';
import { openStore, type Store } from '../src/store/store.js';
import { columnsOf, TABLES, type TableName } from '../src/store/tables.js';
import { makeTempDir } from './support/temp-dir.js';

const HOUR_S = 3600;
const DAYS = 30;
/** In the middle of a month, so that the store has two partitions. */
const T0_S = Date.UTC(2026, 9, 15) / 1000;
const HOUR_FROM_S = T0_S + 10 * 24 * HOUR_S + 5 * HOUR_S;
const HOUR: TimeRange = {
  fromMs: HOUR_FROM_S * 1000,
  toMs: (HOUR_FROM_S + HOUR_S) * 1000,
  intervalMs: 20_000,
};

/** Rows of one zone or server at one time; bucket and name are put where the table has them. */
type RowsAt = (name: string, atS: number) => unknown[][];

const SERIES: Readonly<Partial<Record<TableName, RowsAt>>> = {
  zone_outcomes: (name, atS) =>
    ['passed', 'rejected'].map((outcome) => [
      ...['edge', name, 'limit_req', 's', '/', atS, outcome],
      ...[5, 1, 1000, 900, 0],
    ]),
  responses: (name, atS) =>
    [200, 503].map((status) => ['edge', name, '/', atS, status, 'limit_req', 'REJECTED', 5]),
  excess_histogram: (name, atS) => [0, 21].map((step) => ['edge', name, atS, step, 5]),
  key_minutes: (name, atS) =>
    ['a', 'b'].map((key) => ['edge', name, key, atS, 5, 1, 1, 0, 0, 0, 900, 800, 1000]),
  zone_state: (name, atS) =>
    [0, 30].map((s) => ['edge', name, atS + s, 100, 191, 1, 0, 0, 0, 1, 50, 25]),
  agreement: (name, atS) => ['agree', 'explained'].map((word) => ['edge', name, atS, word, 5]),
  line_counts: (name, atS) =>
    ['access', 'unparsable'].map((kind) => ['edge', name, atS, kind, '', 5]),
};
/** A row each of what never grows so large. */
const SMALL: Readonly<Partial<Record<TableName, unknown[]>>> = {
  examples: ['edge', 's', '/', 503, 'limit_req', T0_S * 1000, 'GET', '/', 'one', 'a', 7000],
  findings: ['edge', 'burst_differs', 'x', 'm', T0_S * 1000, T0_S * 1000, ''],
  limits: ['edge', 'one', T0_S * 1000, '$uri', 32_768, 10_000, 191, '[]'],
  marks: ['edge', HOUR.fromMs, 'reload', ''],
  unparsable_samples: ['edge', 'f', 1, 'not the format', 'raw'],
};
const BIG_TABLES = Object.keys(SERIES) as TableName[];

async function fill(store: Store): Promise<void> {
  for (const [name, row] of Object.entries(SMALL)) {
    const table = name as TableName;
    await store.insertBlock({ table, columns: columnsOf(table), rows: [row] }, table);
  }
  for (const table of BIG_TABLES) {
    for (const name of ['one', 'two']) {
      const rows: unknown[][] = [];
      for (let atS = T0_S; atS < T0_S + DAYS * 24 * HOUR_S; atS += 60) {
        rows.push(...SERIES[table]!(name, atS));
      }
      await store.insertBlock({ table, columns: columnsOf(table), rows }, `${table}/${name}`);
    }
    await store.query(`OPTIMIZE TABLE ${table} FINAL`, {}, { maxSeconds: 120 });
  }
}

interface IndexStep {
  readonly Type: string;
  readonly Keys?: readonly string[];
  readonly 'Initial Granules': number;
  readonly 'Selected Granules': number;
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly Description?: string;
  readonly Indexes?: readonly IndexStep[];
  readonly Plans?: readonly PlanNode[];
}

interface Read {
  readonly table: string;
  readonly granules: number;
  readonly selected: number;
  readonly keys: readonly string[];
}

/** Every read of a table in the plan of this statement. */
async function readsOf(store: Store, sql: string): Promise<Read[]> {
  const [row] = await store.query<{ explain: string }>(`EXPLAIN indexes = 1, json = 1 ${sql}`);
  assert.ok(row !== undefined);
  const reads: Read[] = [];
  const visit = (node: PlanNode): void => {
    const steps = node.Indexes ?? [];
    const [first] = steps;
    if (first !== undefined) {
      reads.push({
        table: node.Description?.split('.').at(-1) ?? '',
        granules: first['Initial Granules'],
        selected: steps.at(-1)!['Selected Granules'],
        keys: steps.find(({ Type }) => Type === 'PrimaryKey')?.Keys ?? [],
      });
    }
    node.Plans?.forEach(visit);
  };
  (JSON.parse(row.explain) as { Plan: PlanNode }[]).forEach(({ Plan }) => visit(Plan));
  return reads;
}

const STATEMENTS: readonly (readonly [id: string, sql: string])[] = [
  ...DASHBOARDS.flatMap(({ panels }) => panels).map(({ id, sql }) => [id, sql] as const),
  ...VARIABLES.map(({ name, sql }) => [`variable ${name}`, sql] as const),
  ...ANNOTATIONS.map(({ id, sql }) => [`annotation ${id}`, sql] as const),
];

const EVERYTHING = { instance: ALL, server: ALL, location: ALL, zone: ALL, key: 'a' };
const ONE = { instance: ['edge'], server: ['one'], location: ['/'], zone: ['one'], key: 'a' };

test('one hour of a 30-day store', async (t) => {
  const store = await openStore({ path: join(makeTempDir(t), 'store'), createIfMissing: true });
  t.after(() => store.close());
  await fill(store);

  const seen = new Set<string>();
  for (const [choice, variables] of Object.entries({ everything: EVERYTHING, one: ONE })) {
    await t.test(`is read by the primary key with ${choice} chosen`, async () => {
      for (const [id, sql] of STATEMENTS) {
        for (const read of await readsOf(store, expand(sql, HOUR, variables))) {
          const where = `${id}: ${read.table} by ${read.keys.join()}`;
          if (choice === 'one' && sql.includes('$instance')) {
            assert.ok(read.keys.includes('instance'), where);
          }
          if (!(read.table in SERIES)) continue;
          seen.add(id);
          const timeColumn = TABLES[read.table as TableName].monthOf;
          assert.ok(timeColumn !== undefined && read.keys.includes(timeColumn), where);
        }
      }
    });

    await t.test(`costs at most a fifth of the granules with ${choice} chosen`, async () => {
      for (const [id, sql] of STATEMENTS) {
        for (const { table, granules, selected } of await readsOf(
          store,
          expand(sql, HOUR, variables),
        )) {
          if (!(table in SERIES)) continue;
          const where = `${id}: ${selected} of ${granules} granules of ${table}`;
          assert.ok(granules >= 20, where);
          assert.ok(selected >= 1 && selected <= granules / 5, where);
        }
      }
    });
  }

  await t.test('is what nearly all of the statements ask for', () => {
    const others = STATEMENTS.map(([id]) => id).filter((id) => !seen.has(id));
    assert.deepEqual(others, [
      'overview-examples',
      'overview-findings',
      'health-unparsable-samples',
      'health-sources',
      'health-marks',
      'annotation marks',
      'annotation findings',
    ]);
  });
});
