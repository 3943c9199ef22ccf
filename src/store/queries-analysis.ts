/**
 * The named questions behind zones, dry-run and sources.
 *
 * As in queries.ts: values are bound as parameters, excess comes in thousandths of a request, times
 * in epoch milliseconds, and sums are taken while reading.
 */
import { BUCKET_SECONDS, inBuckets, inForce, MINUTE_SECONDS, type Filter } from './filter.js';
import type { StoredExample } from './queries.js';
import type { Store } from './store.js';

export interface ZoneBucket {
  readonly instance: string;
  readonly zone: string;
  /** Begin of the step. */
  readonly timeMs: number;
  /** The most in the step. */
  readonly nodes: number;
  readonly capacityNodes: number;
  readonly evictions: number;
  readonly evictionsInDebt: number;
  readonly admittedByEviction: number;
  readonly allocationFailures: number;
  readonly keysCreated: number;
}

/** The memory of each zone in steps of `stepSeconds`, a multiple of the bucket's 10 s. */
export async function zoneBuckets(
  store: Store,
  stepSeconds: number,
  filter: Filter = {},
): Promise<ZoneBucket[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<ZoneBucket>(
    `SELECT instance, zone,
       toUnixTimestamp(toStartOfInterval(bucket, toIntervalSecond({step:UInt32}))) * 1000 AS timeMs,
       max(nodes) AS nodes, max(capacity_nodes) AS capacityNodes, sum(evictions) AS evictions,
       sum(evictions_in_debt) AS evictionsInDebt, sum(admitted_by_eviction) AS admittedByEviction,
       sum(allocation_failures) AS allocationFailures, sum(keys_created) AS keysCreated
     FROM zone_state WHERE ${sql}
     GROUP BY instance, zone, timeMs ORDER BY instance, zone, timeMs`,
    { ...params, step: stepSeconds },
  );
}

/** The same in buckets of 10 s, of those alone in which the zone dropped a node by force. */
export async function evictionBuckets(store: Store, filter: Filter = {}): Promise<ZoneBucket[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<ZoneBucket>(
    `SELECT instance, zone, toUnixTimestamp(bucket) * 1000 AS timeMs,
       max(zone_state.nodes) AS nodes, max(capacity_nodes) AS capacityNodes,
       sum(zone_state.evictions) AS evictions, sum(evictions_in_debt) AS evictionsInDebt,
       sum(admitted_by_eviction) AS admittedByEviction,
       sum(allocation_failures) AS allocationFailures, sum(keys_created) AS keysCreated
     FROM zone_state WHERE ${sql}
     GROUP BY instance, zone, bucket HAVING evictions > 0 ORDER BY instance, zone, timeMs`,
    params,
  );
}

export interface ZoneCapacity {
  readonly instance: string;
  readonly zone: string;
  readonly capacityNodes: number;
}

/** The capacities that each zone had, one for each slot size of its keys (and size of the zone). */
export async function zoneCapacities(store: Store, filter: Filter = {}): Promise<ZoneCapacity[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<ZoneCapacity>(
    `SELECT DISTINCT instance, zone, capacity_nodes AS capacityNodes
     FROM zone_state WHERE ${sql} ORDER BY instance, zone, capacityNodes`,
    params,
  );
}

export interface ZoneMinutes {
  readonly instance: string;
  readonly zone: string;
  /** Minutes in which the zone was asked. */
  readonly minutes: number;
  readonly createdMean: number;
  readonly createdMax: number;
}

/** New nodes per minute. */
export async function createdPerMinute(store: Store, filter: Filter = {}): Promise<ZoneMinutes[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<ZoneMinutes>(
    `SELECT instance, zone, count() AS minutes, avg(created) AS createdMean,
       max(created) AS createdMax
     FROM (
       SELECT instance, zone, toStartOfMinute(bucket) AS minute, sum(keys_created) AS created
       FROM zone_state WHERE ${sql} GROUP BY instance, zone, minute
     )
     GROUP BY instance, zone ORDER BY instance, zone`,
    params,
  );
}

export interface KeysPerMinute {
  readonly instance: string;
  readonly zone: string;
  /** Distinct keys of a minute, at least. */
  readonly keysMean: number;
  readonly keysMax: number;
  /** At most; null where rows of a minute do not tell. */
  readonly keysMostMean: number | null;
  readonly keysMostMax: number | null;
}

/**
 * Distinct keys per minute. A minute that was stored in one piece has one number; of one in several
 * that knew nothing of each other, the largest piece is the least, and their sum the most. Rows of
 * schema version 1 do not count: there at least as many as key_minutes holds, limited and heaviest.
 */
export async function keysPerMinute(store: Store, filter: Filter = {}): Promise<KeysPerMinute[]> {
  const inMinutes = inBuckets(filter, 'minute', MINUTE_SECONDS);
  const inState = inBuckets(filter, MINUTE_OF_BUCKET, MINUTE_SECONDS);
  return store.query<KeysPerMinute>(
    `SELECT instance, zone, avg(least) AS keysMean, max(least) AS keysMax,
       if(countIf(most IS NULL) = 0, avg(most), NULL) AS keysMostMean,
       if(countIf(most IS NULL) = 0, max(most), NULL) AS keysMostMax
     FROM (
       SELECT instance, zone, minute, ifNull(max(keys_least), 0) AS least, max(keys_most) AS most
       FROM (
         SELECT instance, zone, ${MINUTE_OF_BUCKET} AS minute, ${KEYS_OF_MINUTE}
         FROM zone_state WHERE ${inState.sql} GROUP BY instance, zone, minute
         UNION ALL
         SELECT instance, zone, minute, toNullable(uniqExact(key)) AS keys_least,
           CAST(NULL, 'Nullable(UInt64)') AS keys_most
         FROM key_minutes WHERE ${inMinutes.sql} GROUP BY instance, zone, minute
       )
       GROUP BY instance, zone, minute
     )
     GROUP BY instance, zone ORDER BY instance, zone`,
    { ...inState.params, ...inMinutes.params },
  );
}

const MINUTE_OF_BUCKET = 'toStartOfMinute(bucket)';
const KEYS_OF_MINUTE = `max(keys_in_minute) AS keys_least,
           if(countIf(new_keys_in_minute IS NULL) = 0, sum(new_keys_in_minute), NULL) AS keys_most`;

export interface KeyCountStep {
  readonly instance: string;
  readonly zone: string;
  /** Begin of the step. */
  readonly timeMs: number;
  /** Of the minute in the step that had most; at least, and at most. */
  readonly keys: number;
  readonly keysMost: number;
}

/** Distinct keys of a minute, over time; minutes of which no row tells are left out. */
export async function keyCountSteps(
  store: Store,
  stepSeconds: number,
  filter: Filter = {},
): Promise<KeyCountStep[]> {
  const { sql, params } = inBuckets(filter, MINUTE_OF_BUCKET, MINUTE_SECONDS);
  return store.query<KeyCountStep>(
    `SELECT instance, zone,
       toUnixTimestamp(toStartOfInterval(minute, toIntervalSecond({step:UInt32}))) * 1000 AS timeMs,
       assumeNotNull(max(keys_least)) AS keys, assumeNotNull(max(keys_most)) AS keysMost
     FROM (
       SELECT instance, zone, ${MINUTE_OF_BUCKET} AS minute, ${KEYS_OF_MINUTE}
       FROM zone_state WHERE ${sql} GROUP BY instance, zone, minute HAVING keys_most IS NOT NULL
     )
     GROUP BY instance, zone, timeMs ORDER BY instance, zone, timeMs`,
    { ...params, step: Math.max(MINUTE_SECONDS, stepSeconds) },
  );
}

export interface OutcomeStep {
  readonly instance: string;
  readonly zone: string;
  readonly server: string;
  readonly location: string;
  readonly timeMs: number;
  readonly outcome: string;
  readonly requests: number;
}

/** What each limit_req rule decided, in steps of so many seconds. */
export async function outcomesByStep(
  store: Store,
  stepSeconds: number,
  filter: Filter = {},
): Promise<OutcomeStep[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<OutcomeStep>(
    `SELECT instance, zone, server, location, outcome,
       toUnixTimestamp(toStartOfInterval(bucket, toIntervalSecond({step:UInt32}))) * 1000 AS timeMs,
       sum(requests) AS requests
     FROM zone_outcomes WHERE ${sql} AND kind = 'limit_req'
     GROUP BY instance, zone, server, location, outcome, timeMs
     ORDER BY instance, zone, server, location, timeMs, outcome`,
    { ...params, step: stepSeconds },
  );
}

export interface RuleSpan {
  readonly instance: string;
  readonly zone: string;
  readonly server: string;
  readonly location: string;
  /** Begin of the first bucket with a decision, end of the last one. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** From when to when each limit_req rule was asked. */
export async function ruleSpans(store: Store, filter: Filter = {}): Promise<RuleSpan[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<RuleSpan>(
    `SELECT instance, zone, server, location, toUnixTimestamp(min(bucket)) * 1000 AS fromMs,
       (toUnixTimestamp(max(bucket)) + ${BUCKET_SECONDS}) * 1000 AS toMs
     FROM zone_outcomes
     WHERE ${sql} AND kind = 'limit_req' AND outcome NOT IN ('skipped', 'not_reached')
     GROUP BY instance, zone, server, location ORDER BY instance, zone, server, location`,
    params,
  );
}

export interface DryRunKeys {
  readonly instance: string;
  readonly zone: string;
  /** Distinct keys held in key_minutes. */
  readonly keys: number;
  readonly keysDelayed: number;
  readonly keysRejected: number;
}

/** How many keys of each zone would have been delayed or rejected. */
export async function dryRunKeys(store: Store, filter: Filter = {}): Promise<DryRunKeys[]> {
  const { sql, params } = inBuckets(filter, 'minute', MINUTE_SECONDS);
  return store.query<DryRunKeys>(
    `SELECT instance, zone, count() AS keys, countIf(delayed > 0) AS keysDelayed,
       countIf(refused > 0) AS keysRejected
     FROM (
       SELECT instance, zone, key, sum(delayed_dry_run) AS delayed,
         sum(rejected_dry_run) + sum(exhausted) AS refused
       FROM key_minutes WHERE ${sql} GROUP BY instance, zone, key
     )
     GROUP BY instance, zone ORDER BY instance, zone`,
    params,
  );
}

export interface KeysStep {
  readonly instance: string;
  readonly zone: string;
  readonly timeMs: number;
  readonly keys: number;
  readonly keysRejected: number;
}

/** Distinct keys of each zone and those that would have been rejected, by hour. */
export async function dryRunKeysByHour(store: Store, filter: Filter = {}): Promise<KeysStep[]> {
  const { sql, params } = inBuckets(filter, 'minute', MINUTE_SECONDS);
  return store.query<KeysStep>(
    `SELECT instance, zone, toUnixTimestamp(toStartOfHour(minute)) * 1000 AS timeMs,
       uniqExact(key) AS keys, uniqExactIf(key, rejected_dry_run + exhausted > 0) AS keysRejected
     FROM key_minutes WHERE ${sql}
     GROUP BY instance, zone, timeMs ORDER BY instance, zone, timeMs`,
    params,
  );
}

export interface ResponseStep {
  readonly instance: string;
  readonly server: string;
  readonly location: string;
  readonly status: number;
  readonly source: string;
  readonly limitReqStatus: string;
  readonly timeMs: number;
  readonly requests: number;
}

/** Who answered 429 or 503, and refusals with another status, by hour. */
export async function refusalsByHour(store: Store, filter: Filter = {}): Promise<ResponseStep[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<ResponseStep>(
    `SELECT instance, server, location, status, source, limit_req_status AS limitReqStatus,
       toUnixTimestamp(toStartOfHour(bucket)) * 1000 AS timeMs, sum(requests) AS requests
     FROM responses WHERE ${sql} AND (status IN (429, 503) OR source != '')
     GROUP BY instance, server, location, status, source, limit_req_status, timeMs
     ORDER BY instance, server, location, status, source, limitReqStatus, timeMs`,
    params,
  );
}

export interface PlaceTotal {
  readonly instance: string;
  readonly server: string;
  readonly location: string;
  readonly requests: number;
  /** Of them, those without a $limit_req_status: no limit was asked, or none is logged. */
  readonly withoutStatus: number;
}

/** All requests by where they were answered. */
export async function placeTotals(store: Store, filter: Filter = {}): Promise<PlaceTotal[]> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  return store.query<PlaceTotal>(
    `SELECT instance, server, location, sum(responses.requests) AS requests,
       sumIf(responses.requests, limit_req_status = '') AS withoutStatus
     FROM responses WHERE ${sql}
     GROUP BY instance, server, location ORDER BY instance, server, location`,
    params,
  );
}

/** The same columns as any example. */
export type PlaceExample = StoredExample;

/** The newest `count` requests of each place, status and source. */
export async function examplesByPlace(
  store: Store,
  count: number,
  filter: Filter = {},
): Promise<PlaceExample[]> {
  const { sql, params } = inForce(filter, 'time', 'time');
  return store.query<PlaceExample>(
    `SELECT instance, server, location, status, source, toUnixTimestamp64Milli(time) AS timeMs,
       request_method AS requestMethod, path, zone, key, excess_milli AS excessMilli
     FROM examples WHERE ${sql}
     ORDER BY instance, server, location, status, source, time DESC, path
     LIMIT {count:UInt32} BY instance, server, location, status, source`,
    { ...params, count },
  );
}
