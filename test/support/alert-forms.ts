/**
 * The two forms of a condition side by side: rows in a store and the query, the same rows as the
 * daemon's metrics and promtool.
 *
 * Rows become what a Prometheus would have scraped once a minute: TailMetrics takes each row as soon
 * as its bucket is over. Times count from T0_S in the store, from 0 for promtool.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CONDITIONS, settingsOf, type Overrides } from '../../alerts/conditions.js';
import type { Condition, Settings } from '../../alerts/condition.js';
import { prometheusRules } from '../../alerts/prometheus-rules.js';
import { METRICS, type MetricId } from '../../dashboards/metric-names.js';
import { ROW_COLUMNS, type RowTable } from '../../src/aggregate/rows.js';
import { AlertBook, type Found } from '../../src/alerting/alert-book.js';
import { TailMetrics } from '../../src/metrics/tail-metrics.js';
import type { Store } from '../../src/store/store.js';
import { requireProgram } from './debian.js';

/** A whole hour, on a day of its own: 15 January 2027. */
export const T0_S = 1_799_971_200;
export const STEP_MINUTES = 2;

export interface Row {
  readonly table: RowTable;
  readonly row: readonly unknown[];
}

/** A row with these columns; 0 for numbers that are not named. */
export function rowOf(table: RowTable, values: Readonly<Record<string, unknown>>): Row {
  return { table, row: ROW_COLUMNS[table].map((name) => values[name] ?? 0) };
}

/** The same rows of another instance, with buckets from T0_S on, `times` as far apart. */
export function stretched(rows: readonly Row[], times: number, instance: string): Row[] {
  const withBucket = rows.filter(({ table }) => bucketIndex(table) >= 0);
  const answers = withBucket.filter(({ table }) => table === 'responses');
  const firstS = Math.min(...answers.map(bucketOf));
  return withBucket.map((one) => {
    const row = [instance, ...one.row.slice(1)];
    // Minutes begin before the first request.
    const offsetS = Math.max(0, Math.floor(((bucketOf(one) - firstS) * times) / 10) * 10);
    row[bucketIndex(one.table)] = T0_S + offsetS;
    return { table: one.table, row };
  });
}

function bucketIndex(table: RowTable): number {
  return (ROW_COLUMNS[table] as readonly string[]).indexOf('bucket');
}

export function bucketOf({ table, row }: Row): number {
  return Number(row[bucketIndex(table)]);
}

export async function insertRows(store: Store, rows: readonly Row[], token: string): Promise<void> {
  for (const table of new Set(rows.map((one) => one.table))) {
    const own = rows.filter((one) => one.table === table).map(({ row }) => row);
    await store.insertBlock({ table, columns: ROW_COLUMNS[table], rows: own }, `${token} ${table}`);
  }
}

export const LOG_CONDITIONS: readonly Condition[] = CONDITIONS.filter(
  ({ evaluate }) => evaluate.clock === 'log',
);

/** For whom a condition holds at each step, in one query for them all. */
async function heldAt(
  store: Store,
  { evaluate, labels }: Condition,
  settings: Settings,
  minutes: readonly number[],
  instance: string,
): Promise<ReadonlyMap<number, readonly Found[]>> {
  if (!('sql' in evaluate)) throw new Error('a condition of the daemon alone');
  const sql = evaluate.sql(settings).replace(/\nORDER BY [^)]*$/, '');
  const steps = minutes.map((minute) => {
    const own = sql.replaceAll('{to:UInt32}', String(T0_S + minute * 60));
    return `SELECT ${minute} AS minute, * FROM (${own})`;
  });
  const rows = await store.query<{ minute: number; value: number } & Record<string, string>>(
    steps.join('\nUNION ALL\n'),
    { instance },
  );
  const found = new Map<number, readonly Found[]>();
  for (const row of rows) {
    const own = Object.fromEntries(labels.map((label) => [label, row[label]!]));
    found.set(row.minute, [...(found.get(row.minute) ?? []), { labels: own, value: row.value }]);
  }
  return found;
}

/** What fires at each step, by the store: `name{labels}` in order. */
export async function firingByStore(
  store: Store,
  instance: string,
  minutes: number,
  conditions: readonly Condition[],
  overrides: Overrides,
): Promise<ReadonlyMap<number, readonly string[]>> {
  const steps = Array.from({ length: minutes / STEP_MINUTES + 1 }, (_, i) => i * STEP_MINUTES);
  const firing = new Map<number, string[]>(steps.map((minute) => [minute, []]));
  for (const condition of conditions) {
    const settings = settingsOf(condition, overrides);
    const held = await heldAt(store, condition, settings, steps, instance);
    const book = new AlertBook();
    for (const minute of steps) {
      const ms = (T0_S + minute * 60) * 1000;
      book.advance(condition, settings, held.get(minute) ?? [], ms, ms);
      const now = book.alerts.filter(({ state }) => state === 'firing');
      firing.get(minute)!.push(...now.map(({ name, labels }) => alertText(name, labels)).sort());
    }
  }
  return firing;
}

export function alertText(name: string, labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${name}${JSON.stringify(Object.fromEntries(pairs))}`;
}

const SCRAPED: readonly MetricId[] = [
  'limitReqRequests',
  'responses',
  'zoneNodes',
  'zoneCapacityNodes',
  'zoneEvictionsInDebt',
  'zoneAllocationFailures',
  'replayDecisions',
  'lines',
  'parseErrors',
];

/** A series for each set of labels, with its value at each minute; `_` before there was one. */
export async function scrape(
  rows: readonly Row[],
  minutes: number,
  options: { readonly instance: string; readonly zones: readonly string[] },
): Promise<ReadonlyMap<string, readonly string[]>> {
  const metrics = new TailMetrics({ ...options, version: '0', connZones: [] });
  const inOrder = [...rows].sort((a, b) => bucketOf(a) - bucketOf(b));
  const series = new Map<string, string[]>();
  for (let minute = 0, next = 0; minute <= minutes; minute++) {
    for (; next < inOrder.length; next++) {
      const row = inOrder[next]!;
      if (bucketOf(row) + 10 > T0_S + minute * 60) break;
      metrics.stored(row.table, row.row);
    }
    for (const id of SCRAPED) {
      for (const { labels, value } of await metrics.samples(id)) {
        const pairs = Object.entries(labels).map(
          ([name, text]) => `${name}=${JSON.stringify(text)}`,
        );
        const name = `${METRICS[id].name}{${pairs.sort().join(',')}}`;
        const values = series.get(name) ?? Array<string>(minute).fill('_');
        series.set(name, [...values, String(value)]);
      }
    }
  }
  return series;
}

/** Holds promtool to what fires at each step. @returns its complaints; empty when it agrees */
export function promtoolDiffers(
  folder: string,
  series: ReadonlyMap<string, readonly string[]>,
  firing: ReadonlyMap<number, readonly string[]>,
  conditions: readonly Condition[],
  overrides: Overrides,
): string {
  // Without annotations: their values are held to promtool's elsewhere.
  const rules = prometheusRules(undefined, overrides).replaceAll(
    / {8}annotations:\n(?: {10}.*\n)+/g,
    '',
  );
  writeFileSync(join(folder, 'rules.yml'), rules);
  const test = {
    rule_files: ['rules.yml'],
    evaluation_interval: `${STEP_MINUTES}m`,
    tests: [
      {
        interval: '1m',
        input_series: [...series].map(([name, values]) => ({
          series: name,
          values: values.join(' '),
        })),
        alert_rule_test: [...firing].flatMap(([minute, alerts]) =>
          conditions.map(({ name, severity }) => ({
            eval_time: `${minute}m`,
            alertname: name,
            exp_alerts: alerts
              .filter((text) => text.startsWith(`${name}{`))
              .map((text) => ({
                exp_labels: {
                  severity,
                  ...(JSON.parse(text.slice(name.length)) as Record<string, string>),
                },
              })),
          })),
        ),
      },
    ],
  };
  // JSON is YAML.
  writeFileSync(join(folder, 'tests.yml'), JSON.stringify(test));
  const run = spawnSync(requireProgram('promtool'), ['test', 'rules', join(folder, 'tests.yml')], {
    encoding: 'utf8',
  });
  return run.status === 0 ? '' : run.stdout + run.stderr;
}
