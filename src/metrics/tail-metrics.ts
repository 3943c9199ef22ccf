/**
 * What the daemon exports: the metrics of dashboards/metric-names.ts, from the rows that the store
 * took.
 *
 * So the counters say what the store says, a bucket of 10 s later than the request at most. Label
 * sets that are known beforehand begin at zero; no label holds a client or a key. The only importer
 * of prom-client. Not here: serving them (http.ts).
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { METRICS, type MetricId } from '../../dashboards/metric-names.js';
import { AGREEMENT_WORDS } from '../aggregate/agreement-classes.js';
import { LINE_KINDS } from '../aggregate/line-counts.js';
import { OUTCOME_WORDS } from '../aggregate/outcome-words.js';
import { ROW_COLUMNS, type RowTable } from '../aggregate/rows.js';
import { SOURCE_WORDS } from '../attribution/source.js';

const ZONE_COUNTERS = [
  ['zoneEvictions', 'evictions'],
  ['zoneEvictionsInDebt', 'evictions_in_debt'],
  ['zoneAdmittedByEviction', 'admitted_by_eviction'],
  ['zoneAllocationFailures', 'allocation_failures'],
] as const satisfies readonly (readonly [MetricId, string])[];

export interface TailMetricsOptions {
  readonly instance: string;
  readonly version: string;
  readonly zones: readonly string[];
  readonly connZones: readonly string[];
}

type Row = Readonly<Record<string, unknown>>;

export class TailMetrics {
  readonly #registry = new Registry();
  readonly #instance: string;
  readonly #counters = new Map<MetricId, Counter>();
  readonly #gauges = new Map<MetricId, Gauge>();
  readonly #agreement = new Map<string, { logged: number; explained: number }>();

  readonly #insertDuration = new Histogram({
    ...this.#definition('storeInsertDuration'),
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [this.#registry],
  });

  constructor(options: TailMetricsOptions) {
    const { instance, version, zones, connZones } = options;
    // Rules tell daemons apart by it; a metric that has it as a label of its own keeps that one.
    this.#registry.setDefaultLabels({ instance });
    this.#instance = instance;
    for (const zone of zones) {
      for (const outcome of OUTCOME_WORDS)
        this.#add('limitReqRequests', { zone, instance, outcome });
      this.#add('nearLimit', { zone, instance });
      for (const word of AGREEMENT_WORDS) {
        this.#add('replayDecisions', { zone, instance, class: word });
      }
      for (const [id] of ZONE_COUNTERS) this.#add(id, { zone, instance });
    }
    for (const zone of connZones) {
      for (const outcome of ['rejected', 'rejected_dry_run', 'exhausted']) {
        this.#add('limitConnRequests', { zone, instance, outcome });
      }
    }
    for (const source of SOURCE_WORDS) {
      if (source === null) continue;
      for (const code of ['429', '503']) this.#add('responses', { code, source, instance });
    }
    for (const kind of LINE_KINDS) this.#add('lines', { kind });
    this.#add('storeRetries', {});
    for (const result of ['ok', 'failed']) this.#add('storeInserts', { result });
    for (const table of Object.keys(ROW_COLUMNS)) this.#add('storeRows', { table });
    this.#set('buildInfo', { version }, 1);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** For parts of the daemon that have metrics of their own. */
  add(id: MetricId, labels: Readonly<Record<string, string>>, by: number): void {
    this.#add(id, labels, by);
  }

  set(id: MetricId, labels: Readonly<Record<string, string>>, value: number): void {
    this.#set(id, labels, value);
  }

  /** What a metric shows now, with all its labels; nothing before its first value. */
  async samples(
    id: MetricId,
  ): Promise<{ readonly labels: Readonly<Record<string, string>>; readonly value: number }[]> {
    const metric = this.#counters.get(id) ?? this.#gauges.get(id);
    const values = (await metric?.get())?.values ?? [];
    return values.map(({ labels, value }) => ({
      labels: { instance: this.#instance, ...asText(labels) },
      value,
    }));
  }

  /** Counts a row that the store took. */
  stored(table: RowTable, values: readonly unknown[]): void {
    const row: Row = Object.fromEntries(ROW_COLUMNS[table].map((name, i) => [name, values[i]]));
    this.#add('storeRows', { table }, 1);
    if (table === 'zone_outcomes') this.#outcome(row);
    else if (table === 'responses') this.#response(row);
    else if (table === 'zone_state') this.#zoneState(row);
    else if (table === 'agreement') this.#agree(row);
    else if (table === 'line_counts') this.#lines(row);
  }

  storeFailed(): void {
    this.#add('storeInserts', { result: 'failed' }, 1);
  }

  storeRetried(): void {
    this.#add('storeRetries', {}, 1);
  }

  /** A block was taken, in so much time. */
  inserted(seconds: number): void {
    this.#add('storeInserts', { result: 'ok' }, 1);
    this.#insertDuration.observe(seconds);
  }

  spool(waitingBytes: number, maxBytes: number, isHeld: boolean, isStoreUp: boolean): void {
    this.#set('storePendingBytes', {}, waitingBytes);
    this.#set('spoolCapacity', {}, maxBytes);
    this.#set('backpressure', {}, isHeld ? 1 : 0);
    this.#set('storeUp', {}, isStoreUp ? 1 : 0);
  }

  /** Bytes that wait in a log make its lag the age of the newest line seen; else there is none. */
  source(source: string, newestMs: number, lagBytes: number, nowMs: number): void {
    if (!Number.isFinite(newestMs)) return;
    this.#set('lastEventTime', { source }, newestMs / 1000);
    this.#set('sourceLag', { source }, lagBytes > 0 ? Math.max(0, nowMs - newestMs) / 1000 : 0);
  }

  #outcome(row: Row): void {
    const { zone, instance, outcome } = row;
    const id = row['kind'] === 'limit_conn' ? 'limitConnRequests' : 'limitReqRequests';
    this.#add(id, { zone, instance, outcome }, Number(row['requests']));
    if (id === 'limitReqRequests') {
      this.#add('nearLimit', { zone, instance }, Number(row['near_limit']));
    }
  }

  #response(row: Row): void {
    const { source, instance } = row;
    if (source === '' || source === null) return;
    this.#add('responses', { code: row['status'], source, instance }, Number(row['requests']));
  }

  #zoneState(row: Row): void {
    const { zone, instance } = row;
    this.#set('zoneNodes', { zone, instance }, Number(row['nodes']));
    this.#set('zoneCapacityNodes', { zone, instance }, Number(row['capacity_nodes']));
    for (const [id, column] of ZONE_COUNTERS)
      this.#add(id, { zone, instance }, Number(row[column]));
  }

  /** Since the start of this process. */
  #agree(row: Row): void {
    const { zone, instance } = row;
    const sums = this.#agreement.get(String(zone)) ?? { logged: 0, explained: 0 };
    this.#agreement.set(String(zone), sums);
    const requests = Number(row['requests']);
    this.#add('replayDecisions', { zone, instance, class: row['class'] }, requests);
    if (row['class'] === 'explained') sums.explained += requests;
    else if (row['class'] !== 'not_logged') sums.logged += requests;
    const share = sums.logged === 0 ? 1 : sums.explained / sums.logged;
    this.#set('replayAgreement', { zone, instance }, share);
  }

  #lines(row: Row): void {
    this.#add('lines', { kind: row['kind'] }, Number(row['lines']));
    if (row['kind'] !== 'unparsable') return;
    this.#add('parseErrors', { reason: row['reason'] }, Number(row['lines']));
  }

  #add(id: MetricId, labels: Readonly<Record<string, unknown>>, by = 0): void {
    let counter = this.#counters.get(id);
    if (counter === undefined) {
      counter = new Counter({ ...this.#definition(id), registers: [this.#registry] });
      this.#counters.set(id, counter);
    }
    counter.inc(asText(labels), by);
  }

  #set(id: MetricId, labels: Readonly<Record<string, unknown>>, value: number): void {
    let gauge = this.#gauges.get(id);
    if (gauge === undefined) {
      gauge = new Gauge({ ...this.#definition(id), registers: [this.#registry] });
      this.#gauges.set(id, gauge);
    }
    gauge.set(asText(labels), value);
  }

  #definition(id: MetricId): { name: string; help: string; labelNames: string[] } {
    const { name, help, labels } = METRICS[id];
    return { name, help, labelNames: [...labels] };
  }
}

function asText(labels: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]));
}
