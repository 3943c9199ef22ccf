/**
 * The named questions that reports ask of the store, typed.
 *
 * Every value is bound as a parameter (filter.ts). Excess comes in thousandths of a request, times
 * in epoch milliseconds.
 *
 * Sums are taken while reading, since the engine adds up rows of one bucket only when it merges.
 */
import {
  BUCKET_SECONDS,
  inBuckets,
  inForce,
  MINUTE_SECONDS,
  ofInstance,
  type Filter,
} from './filter.js';
import type { Store } from './store.js';

export interface ZoneTotal {
  readonly instance: string;
  readonly zone: string;
  readonly kind: 'limit_req' | 'limit_conn';
  readonly outcome: string;
  readonly requests: number;
  readonly nearLimit: number;
  readonly excessSumMilli: number;
  readonly excessMaxMilli: number;
  readonly delayMsSum: number;
}

/** Per instance, zone and outcome. */
export async function zoneTotals(store: Store, filter: Filter = {}): Promise<ZoneTotal[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<ZoneTotal>(
    `SELECT instance, zone, kind, outcome, sum(requests) AS requests,
       sum(near_limit) AS nearLimit, sum(excess_sum_milli) AS excessSumMilli,
       max(excess_max_milli) AS excessMaxMilli, sum(delay_ms_sum) AS delayMsSum
     FROM zone_outcomes WHERE ${sql}
     GROUP BY instance, zone, kind, outcome ORDER BY instance, zone, kind, outcome`,
    params,
  );
}

/** Whose requests the store holds. */
export async function instanceNames(store: Store): Promise<string[]> {
  const rows = await store.query<{ instance: string }>(
    'SELECT DISTINCT instance FROM responses ORDER BY instance',
  );
  return rows.map(({ instance }) => instance);
}

export interface ResponseTotal {
  readonly instance: string;
  readonly server: string;
  readonly location: string;
  readonly status: number;
  readonly source: string;
  readonly limitReqStatus: string;
  readonly requests: number;
}

/** Who answered with 429 or 503, and limits that answered with another status. */
export async function sources429503(store: Store, filter: Filter = {}): Promise<ResponseTotal[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<ResponseTotal>(
    `SELECT instance, server, location, status, source, limit_req_status AS limitReqStatus,
       sum(requests) AS requests
     FROM responses WHERE ${sql} AND (status IN (429, 503) OR source != '')
     GROUP BY instance, server, location, status, source, limit_req_status
     ORDER BY requests DESC, instance, server, location, status, source, limitReqStatus`,
    params,
  );
}

export interface KeyTotal {
  readonly instance: string;
  readonly zone: string;
  readonly key: string;
  readonly passed: number;
  readonly delayed: number;
  readonly rejected: number;
  readonly delayedDryRun: number;
  readonly rejectedDryRun: number;
  readonly exhausted: number;
  readonly excessMaxMilli: number;
}

/** The `count` keys of a zone that were rejected most, with and without dry run; ties by delays. */
export async function topKeys(
  store: Store,
  zone: string,
  count: number,
  filter: Filter = {},
): Promise<KeyTotal[]> {
  const { sql, params } = inBuckets(filter, 'minute', MINUTE_SECONDS);
  return store.query<KeyTotal>(
    `SELECT instance, zone, key, sum(passed) AS passed, sum(delayed) AS delayed,
       sum(rejected) AS rejected, sum(delayed_dry_run) AS delayedDryRun,
       sum(rejected_dry_run) AS rejectedDryRun, sum(exhausted) AS exhausted,
       max(excess_max_milli) AS excessMaxMilli
     FROM key_minutes WHERE ${sql} AND zone = {zone:String}
     GROUP BY instance, zone, key
     ORDER BY rejected + rejectedDryRun + exhausted DESC, delayed + delayedDryRun DESC,
       excessMaxMilli DESC, instance, key
     LIMIT {count:UInt32}`,
    { ...params, zone, count },
  );
}

export interface AgreementTotal {
  readonly instance: string;
  readonly zone: string;
  readonly class: string;
  readonly requests: number;
}

/** Per zone, how the replay's verdict compares with the log: `agree`, or a class of disagreement. */
export async function agreementByZone(
  store: Store,
  filter: Filter = {},
): Promise<AgreementTotal[]> {
  const { sql, params } = inBuckets(filter, 'bucket', MINUTE_SECONDS);
  return store.query<AgreementTotal>(
    `SELECT instance, zone, class, sum(requests) AS requests FROM agreement WHERE ${sql}
     GROUP BY instance, zone, class ORDER BY instance, zone, requests DESC, class`,
    params,
  );
}

export interface LineTotal {
  readonly instance: string;
  readonly source: string;
  readonly kind: string;
  readonly reason: string;
  readonly lines: number;
}

export async function lineTotals(store: Store, filter: Filter = {}): Promise<LineTotal[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<LineTotal>(
    `SELECT instance, source, kind, reason, sum(lines) AS lines FROM line_counts WHERE ${sql}
     GROUP BY instance, source, kind, reason ORDER BY instance, source, kind, reason`,
    params,
  );
}

export interface UnparsableSample {
  readonly instance: string;
  readonly source: string;
  readonly offset: number;
  readonly reason: string;
  readonly raw: string;
}

/** The first `count` samples of lines that could not be read; they have no time. */
export async function unparsableSamples(
  store: Store,
  count: number,
  filter: Pick<Filter, 'instance'> = {},
): Promise<UnparsableSample[]> {
  const { sql, params } = ofInstance(filter);
  return store.query<UnparsableSample>(
    `SELECT instance, source, offset, reason, raw FROM unparsable_samples
     WHERE ${sql} ORDER BY instance, source, offset LIMIT {count:UInt32}`,
    { ...params, count },
  );
}

export interface StoredFinding {
  readonly instance: string;
  readonly code: string;
  readonly subject: string;
  readonly message: string;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly details: string;
}

export async function findings(store: Store, filter: Filter = {}): Promise<StoredFinding[]> {
  const { sql, params } = inForce(filter, 'since', 'until');
  return store.query<StoredFinding>(
    `SELECT instance, code, subject, message, details,
       toUnixTimestamp64Milli(since) AS sinceMs, toUnixTimestamp64Milli(until) AS untilMs
     FROM findings FINAL WHERE ${sql} ORDER BY instance, code, subject, sinceMs`,
    params,
  );
}

export interface StoredMark {
  readonly instance: string;
  readonly timeMs: number;
  readonly mark: string;
  readonly details: string;
}

export async function marks(store: Store, filter: Filter = {}): Promise<StoredMark[]> {
  const { sql, params } = inForce(filter, 'time', 'time');
  return store.query<StoredMark>(
    `SELECT instance, toUnixTimestamp64Milli(time) AS timeMs, mark, details
     FROM marks WHERE ${sql} ORDER BY instance, timeMs, mark, details`,
    params,
  );
}

export interface StoredLimits {
  readonly instance: string;
  readonly zone: string;
  readonly sinceMs: number;
  readonly keyExpression: string;
  readonly sizeBytes: number;
  readonly rateMilliRps: number;
  readonly capacityNodes: number;
  /** JSON. */
  readonly rules: string;
}

/** The configuration of each zone, oldest first; `untilMs` leaves out what came in force later. */
export async function limits(store: Store, filter: Filter = {}): Promise<StoredLimits[]> {
  // What came in force before the time asked for is in force in it.
  const until: Record<string, unknown> = { ...filter };
  delete until['sinceMs'];
  const { sql, params } = inForce(until, 'since', 'since');
  return store.query<StoredLimits>(
    `SELECT instance, zone, toUnixTimestamp64Milli(since) AS sinceMs,
       key_expression AS keyExpression, size_bytes AS sizeBytes, rate_milli_rps AS rateMilliRps,
       capacity_nodes AS capacityNodes, rules
     FROM limits FINAL WHERE ${sql} ORDER BY instance, zone, sinceMs`,
    params,
  );
}

export interface StoredExample {
  readonly instance: string;
  readonly server: string;
  readonly location: string;
  readonly status: number;
  readonly source: string;
  readonly timeMs: number;
  readonly requestMethod: string;
  readonly path: string;
  readonly zone: string;
  readonly key: string;
  readonly excessMilli: number;
}

/** Some limited requests, the newest first. */
export async function examples(
  store: Store,
  count: number,
  filter: Filter = {},
): Promise<StoredExample[]> {
  const { sql, params } = inForce(filter, 'time', 'time');
  return store.query<StoredExample>(
    `SELECT instance, server, location, status, source, toUnixTimestamp64Milli(time) AS timeMs,
       request_method AS requestMethod, path, zone, key, excess_milli AS excessMilli
     FROM examples WHERE ${sql}
     ORDER BY timeMs DESC, instance, server, location, path LIMIT {count:UInt32}`,
    { ...params, count },
  );
}

export interface ZoneStateTotal {
  readonly instance: string;
  readonly zone: string;
  /** In the newest bucket. */
  readonly nodes: number;
  readonly nodesMax: number;
  readonly capacityNodes: number;
  /** Begin of the newest bucket. */
  readonly timeMs: number;
  readonly evictions: number;
  readonly evictionsInDebt: number;
  readonly admittedByEviction: number;
  readonly allocationFailures: number;
  readonly keysCreated: number;
}

/** How full each zone is at the end of the time asked for, and what it forgot in it. */
export async function zoneStateLatest(
  store: Store,
  filter: Filter = {},
): Promise<ZoneStateTotal[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<ZoneStateTotal>(
    `SELECT instance, zone, argMax(b_nodes, bucket) AS nodes, max(b_nodes) AS nodesMax,
       argMax(b_capacity, bucket) AS capacityNodes, toUnixTimestamp(max(bucket)) * 1000 AS timeMs,
       sum(b_evictions) AS evictions, sum(b_in_debt) AS evictionsInDebt,
       sum(b_admitted) AS admittedByEviction, sum(b_failures) AS allocationFailures,
       sum(b_created) AS keysCreated
     FROM (
       SELECT instance, zone, bucket, max(nodes) AS b_nodes, max(capacity_nodes) AS b_capacity,
         sum(evictions) AS b_evictions, sum(evictions_in_debt) AS b_in_debt,
         sum(admitted_by_eviction) AS b_admitted, sum(allocation_failures) AS b_failures,
         sum(keys_created) AS b_created
       FROM zone_state WHERE ${sql} GROUP BY instance, zone, bucket
     )
     GROUP BY instance, zone ORDER BY instance, zone`,
    params,
  );
}

export interface HistogramBin {
  readonly instance: string;
  readonly zone: string;
  /** excess / burst in steps of 5 %: 0 to 20, and 21 for everything above. */
  readonly fraction: number;
  readonly requests: number;
}

export async function excessHistogram(store: Store, filter: Filter = {}): Promise<HistogramBin[]> {
  const { sql, params } = inBuckets(filter, 'bucket', MINUTE_SECONDS);
  return store.query<HistogramBin>(
    `SELECT instance, zone, fraction, sum(requests) AS requests FROM excess_histogram WHERE ${sql}
     GROUP BY instance, zone, fraction ORDER BY instance, zone, fraction`,
    params,
  );
}

export interface TimeSpan {
  readonly instance: string;
  /** Begin of the first bucket with a request. */
  readonly fromMs: number;
  /** End of the last one. */
  readonly toMs: number;
  readonly requests: number;
}

/** Which time the store knows of, per instance; empty when it holds nothing. */
export async function timeSpan(store: Store, filter: Filter = {}): Promise<TimeSpan[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<TimeSpan>(
    `SELECT instance, toUnixTimestamp(min(bucket)) * 1000 AS fromMs,
       (toUnixTimestamp(max(bucket)) + ${BUCKET_SECONDS}) * 1000 AS toMs,
       sum(requests) AS requests
     FROM responses WHERE ${sql} GROUP BY instance ORDER BY instance`,
    params,
  );
}

export interface StoredSource {
  readonly instance: string;
  readonly sourceId: string;
  readonly name: string;
  readonly offset: number;
  readonly lines: number;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly complete: boolean;
}

/** The log files that were counted, oldest first. */
export async function sources(
  store: Store,
  filter: Pick<Filter, 'instance'> = {},
): Promise<StoredSource[]> {
  const { sql, params } = ofInstance(filter);
  return store.query<StoredSource>(
    `SELECT instance, source_id AS sourceId, name, offset, lines, first_ms AS firstMs,
       last_ms AS lastMs, complete
     FROM sources FINAL WHERE ${sql} ORDER BY instance, firstMs, name, sourceId`,
    params,
  );
}
