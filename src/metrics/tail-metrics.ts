/**
 * What the daemon exports: the metrics of dashboards/metric-names.ts, from the rows that the store
 * took.
 *
 * So the counters say what the store says, a bucket of 10 s later than the request at most. Label
 * sets that are known beforehand begin at zero; no label holds a client or a key. The only importer
 * of prom-client. Not here: serving them (http.ts).
 */
import {
  collectDefaultMetrics,
  Counter,
  Gauge,
  Histogram,
  Registry,
  type Metric as PromMetric,
} from 'prom-client';
import { METRICS, type MetricId } from '../../dashboards/metric-names.js';
import { AGREEMENT_WORDS } from '../aggregate/agreement-classes.js';
import { LINE_KINDS } from '../aggregate/line-counts.js';
import { OUTCOME_WORDS } from '../aggregate/outcome-words.js';
import { ROW_COLUMNS, type RowTable } from '../aggregate/rows.js';
import { SOURCE_WORDS } from '../attribution/source.js';
import { BinnedHistogram, type Bin } from './binned-histogram.js';

const ZONE_COUNTERS = [
  ['zoneEvictions', 'evictions'],
  ['zoneEvictionsInDebt', 'evictions_in_debt'],
  ['zoneAdmittedByEviction', 'admitted_by_eviction'],
  ['zoneAllocationFailures', 'allocation_failures'],
  ['zoneMinuteKeys', 'new_keys_in_minute'],
] as const satisfies readonly (readonly [MetricId, string])[];

export interface TailMetricsOptions {
  readonly instance: string;
  readonly version: string;
  readonly zones: readonly string[];
  readonly connZones: readonly string[];
}

/** limit_conn knows neither delays nor excess. */
const CONN_OUTCOMES = [
  'passed',
  'rejected',
  'rejected_dry_run',
  'exhausted',
  'exhausted_dry_run',
] as const;

/** The fractions of `excess_histogram`: steps of 5 % of the burst, then all of it, then more. */
const EXCESS_BINS: readonly Bin[] = [
  ...Array.from({ length: 20 }, (_, i) => ({ upTo: (i + 1) / 20, middle: (i + 0.5) / 20 })),
  { upTo: 1, middle: 1 },
  { upTo: Infinity, middle: 1 },
];
const EXCESS_BOUNDS = [0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 1, Infinity];

/** Of prom-client's own: those of the process, by Prometheus' names for them. */
const PROCESS_METRICS = [
  // This one brings the other two up to date.
  'process_cpu_user_seconds_total',
  'process_cpu_system_seconds_total',
  'process_cpu_seconds_total',
  'process_start_time_seconds',
  'process_resident_memory_bytes',
  'process_open_fds',
  'process_max_fds',
] as const;

/** Reasons follow from log formats, which are few; hostile lines bring no more. */
const MOST_REASONS = 64;
/** Zones that no configuration names, as lines of syslog may claim any. */
const MOST_OTHER_ZONES = 64;
const OTHER = 'other';

type Row = Readonly<Record<string, unknown>>;

export class TailMetrics {
  readonly #registry = new Registry();
  readonly #instance: string;
  readonly #counters = new Map<MetricId, Counter>();
  readonly #gauges = new Map<MetricId, Gauge>();
  readonly #excess = new BinnedHistogram(METRICS.excessRatio, EXCESS_BINS, EXCESS_BOUNDS);
  readonly #reasons = new Set<string>();
  readonly #zones = new Set<string>();
  readonly #otherZones = new Set<string>();
  readonly #totals = new Map<string, number>();
  readonly #sources = new Set<string>();
  readonly #refused = new Set<string>();
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
    this.#registry.registerMetric(this.#excess as unknown as PromMetric);
    this.#addProcess();
    this.know(zones, connZones);
    for (const source of SOURCE_WORDS) {
      if (source === null) continue;
      for (const code of ['429', '503']) this.#add('responses', { code, source, instance });
    }
    for (const kind of LINE_KINDS) this.#add('lines', { kind });
    this.#add('storeRetries', {});
    this.#add('lateRequests', {});
    for (const result of ['taken', 'unchanged', 'refused']) this.#add('configReloads', { result });
    this.#set('configReloadSuccessful', {}, 1);
    for (const result of ['ok', 'failed']) this.#add('storeInserts', { result });
    for (const table of Object.keys(ROW_COLUMNS)) this.#add('storeRows', { table });
    this.#set('buildInfo', { version }, 1);
  }

  /** Zones of a configuration: what is counted of them begins at zero. */
  know(zones: Iterable<string>, connZones: Iterable<string>): void {
    const instance = this.#instance;
    for (const zone of zones) {
      this.#zones.add(zone);
      for (const outcome of OUTCOME_WORDS)
        this.#add('limitReqRequests', { zone, instance, outcome });
      this.#add('nearLimit', { zone, instance });
      this.#excess.add({ zone, instance }, 0, 0);
      for (const word of AGREEMENT_WORDS) {
        this.#add('replayDecisions', { zone, instance, class: word });
      }
      for (const [id] of ZONE_COUNTERS) this.#add(id, { zone, instance });
    }
    for (const zone of connZones) {
      this.#zones.add(zone);
      for (const outcome of CONN_OUTCOMES) {
        this.#add('limitConnRequests', { zone, instance, outcome });
      }
    }
  }

  /**
   * An attempt to take up another configuration. Successful is the last reload only where no file was
   * refused.
   *
   * @param nowS epoch seconds
   */
  reloaded(
    file: 'nginx.conf' | 'limitlens.yaml',
    result: 'taken' | 'unchanged' | 'refused',
    nowS: number,
  ): void {
    this.#add('configReloads', { result }, 1);
    if (result === 'refused') this.#refused.add(file);
    else this.#refused.delete(file);
    this.#set('configReloadSuccessful', {}, this.#refused.size > 0 ? 0 : 1);
    if (result !== 'refused') this.#set('configReloadTime', {}, nowS);
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
    else if (table === 'excess_histogram') this.#measure(row);
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

  /**
   * How far each source is: bytes that wait make its lag the age of the newest line seen, else there
   * is none. Sources that are not followed any more are forgotten.
   */
  sources(lagBytes: ReadonlyMap<string, number>, newestMs: number, nowMs: number): void {
    for (const source of this.#sources) {
      if (lagBytes.has(source)) continue;
      this.#sources.delete(source);
      for (const id of ['lastEventTime', 'sourceLag', 'sourceLagBytes'] as const) {
        this.#gauges.get(id)?.remove({ source });
      }
    }
    for (const [source, bytes] of lagBytes) {
      this.#sources.add(source);
      this.#set('sourceLagBytes', { source }, bytes);
      if (!Number.isFinite(newestMs)) continue;
      this.#set('lastEventTime', { source }, newestMs / 1000);
      this.#set('sourceLag', { source }, bytes > 0 ? Math.max(0, nowMs - newestMs) / 1000 : 0);
    }
  }

  /** What a socket of syslog has counted since its start. */
  received(
    source: string,
    counters: {
      readonly datagrams: number;
      readonly queueDrops: number;
      readonly kernelDrops: number | undefined;
    },
  ): void {
    this.#total('syslogMessages', { source }, counters.datagrams);
    this.#total('syslogDropped', { source, by: 'kernel' }, counters.kernelDrops ?? 0);
    this.#total('syslogDropped', { source, by: 'queue' }, counters.queueDrops);
  }

  /** A counter that is kept elsewhere. */
  #total(id: MetricId, labels: Readonly<Record<string, string>>, value: number): void {
    const key = JSON.stringify([id, labels]);
    this.#add(id, labels, Math.max(0, value - (this.#totals.get(key) ?? 0)));
    this.#totals.set(key, value);
  }

  /** The zone of a row as a label; of a bounded set, whatever lines claim. */
  #zoneOf(row: Row): string {
    const zone = String(row['zone']);
    if (this.#zones.has(zone)) return zone;
    if (this.#otherZones.size < MOST_OTHER_ZONES) this.#otherZones.add(zone);
    return this.#otherZones.has(zone) ? zone : OTHER;
  }

  #outcome(row: Row): void {
    const { instance, outcome } = row;
    const zone = this.#zoneOf(row);
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
    const { instance } = row;
    const zone = this.#zoneOf(row);
    this.#set('zoneNodes', { zone, instance }, Number(row['nodes']));
    this.#set('zoneCapacityNodes', { zone, instance }, Number(row['capacity_nodes']));
    for (const [id, column] of ZONE_COUNTERS)
      this.#add(id, { zone, instance }, Number(row[column] ?? 0));
  }

  /** Since the start of this process. */
  #agree(row: Row): void {
    const { instance } = row;
    const zone = this.#zoneOf(row);
    const sums = this.#agreement.get(zone) ?? { logged: 0, explained: 0 };
    this.#agreement.set(zone, sums);
    const requests = Number(row['requests']);
    this.#add('replayDecisions', { zone, instance, class: row['class'] }, requests);
    if (row['class'] === 'explained') sums.explained += requests;
    else if (row['class'] !== 'not_logged') sums.logged += requests;
    const share = sums.logged === 0 ? 1 : sums.explained / sums.logged;
    this.#set('replayAgreement', { zone, instance }, share);
  }

  #measure(row: Row): void {
    const labels = { zone: this.#zoneOf(row), instance: String(row['instance']) };
    this.#excess.add(labels, Number(row['fraction']), Number(row['requests']));
  }

  #addProcess(): void {
    const all = new Registry();
    collectDefaultMetrics({ register: all });
    for (const name of PROCESS_METRICS) {
      const metric = all.getSingleMetric(name);
      if (metric !== undefined) this.#registry.registerMetric(metric);
    }
  }

  #lines(row: Row): void {
    this.#add('lines', { kind: row['kind'] }, Number(row['lines']));
    if (row['kind'] !== 'unparsable') return;
    const reason = String(row['reason']);
    if (this.#reasons.size < MOST_REASONS) this.#reasons.add(reason);
    const told = this.#reasons.has(reason) ? reason : OTHER;
    this.#add('parseErrors', { reason: told }, Number(row['lines']));
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
