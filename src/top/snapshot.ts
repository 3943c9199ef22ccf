/**
 * What `limitlens top` shows of one moment, asked of the store.
 *
 * Rates are requests per second over the window, which ends with the newest whole bucket that the
 * store holds, whenever that was; so a store of old logs shows their end. Keys are counted by the
 * minute, zones' memory by the last hour. Times are epoch milliseconds, excess is in requests.
 */
import {
  BUCKET_SECONDS,
  inBuckets,
  MINUTE_SECONDS,
  ofInstance,
  type Filter,
} from '../store/filter.js';
import { limits, sources429503, zoneStateLatest, zoneTotals } from '../store/queries.js';
import type { Store } from '../store/store.js';

export interface TopSnapshot {
  /** End of the window; null for a store without requests. */
  readonly atMs: number | null;
  readonly windowMs: number;
  readonly requestsPerSecond: number;
  readonly zones: readonly TopZone[];
  readonly sources: readonly TopSource[];
  readonly keys: readonly TopKey[];
  /** From when on keys are counted. */
  readonly keysSinceMs: number | null;
}

export interface TopZone {
  readonly instance: string;
  readonly zone: string;
  readonly kind: 'limit_req' | 'limit_conn';
  readonly rateMilliRps: number | null;
  readonly passedPerSecond: number;
  readonly delayedPerSecond: number;
  /** Rejected, and refused for lack of memory. */
  readonly rejectedPerSecond: number;
  /** What would have been delayed or rejected under dry run. */
  readonly dryRunPerSecond: number;
  readonly excessMax: number;
  /** Keys held at last; null when the last hour does not tell. */
  readonly nodes: number | null;
  readonly capacityNodes: number | null;
  /** Keys dropped with debt in the last hour. */
  readonly evictionsInDebt: number;
}

export interface TopSource {
  readonly status: number;
  readonly source: string;
  readonly perSecond: number;
}

export interface TopKey {
  readonly zone: string;
  readonly key: string;
  readonly passed: number;
  readonly delayed: number;
  readonly rejected: number;
  readonly dryRun: number;
  readonly excessMax: number;
}

export type KeyOrder = 'rejected' | 'excess';

export interface SnapshotOptions {
  readonly instance?: string;
  /** A multiple of the bucket of 10 s. */
  readonly windowMs: number;
  readonly keys: number;
  readonly order: KeyOrder;
  readonly nowMs: number;
}

const BUCKET_MS = BUCKET_SECONDS * 1000;
const MINUTE_MS = MINUTE_SECONDS * 1000;
const HOUR_MS = 3_600_000;

export async function readSnapshot(store: Store, options: SnapshotOptions): Promise<TopSnapshot> {
  const { windowMs, instance } = options;
  const ofOne = instance === undefined ? {} : { instance };
  const atMs = await newestWhole(store, ofOne, options.nowMs);
  if (atMs === null) {
    return {
      ...{ atMs, windowMs, requestsPerSecond: 0, zones: [], sources: [], keys: [] },
      keysSinceMs: null,
    };
  }
  const filter = { ...ofOne, sinceMs: atMs - windowMs, untilMs: atMs };
  const lastHour = { ...ofOne, sinceMs: atMs - HOUR_MS, untilMs: atMs };
  const perSecond = (requests: number): number => (requests * 1000) / windowMs;
  const keysSinceMs = Math.floor((atMs - Math.max(windowMs, MINUTE_MS)) / MINUTE_MS) * MINUTE_MS;
  return {
    atMs,
    windowMs,
    requestsPerSecond: perSecond(await requestsIn(store, filter)),
    zones: await zonesIn(store, filter, lastHour, perSecond),
    sources: await sourcesIn(store, filter, perSecond),
    keys: await keysIn(store, { ...filter, sinceMs: keysSinceMs }, options),
    keysSinceMs,
  };
}

/** The end of the newest bucket; of the one before while requests may still come for it. */
async function newestWhole(store: Store, filter: Filter, nowMs: number): Promise<number | null> {
  const { sql, params } = ofInstance(filter);
  const [row] = await store.query<{ buckets: number; newest: number }>(
    `SELECT count() AS buckets, toUnixTimestamp(max(bucket)) AS newest
     FROM responses WHERE ${sql}`,
    params,
  );
  if (row === undefined || row.buckets === 0) return null;
  const endMs = row.newest * 1000 + BUCKET_MS;
  return endMs > nowMs - BUCKET_MS ? endMs - BUCKET_MS : endMs;
}

async function requestsIn(store: Store, filter: Filter): Promise<number> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  const [row] = await store.query<{ all: number }>(
    `SELECT sum(requests) AS all FROM responses WHERE ${sql}`,
    params,
  );
  return row?.all ?? 0;
}

async function zonesIn(
  store: Store,
  filter: Filter,
  lastHour: Filter,
  perSecond: (requests: number) => number,
): Promise<TopZone[]> {
  const totals = await zoneTotals(store, filter);
  const states = await zoneStateLatest(store, lastHour);
  const inForce = await limits(store, filter);
  const names = new Map(
    totals.map(({ instance, kind, zone }) => [
      JSON.stringify([instance, kind, zone]),
      { instance, kind, zone },
    ]),
  );
  const zones = Array.from(names.values(), ({ instance, kind, zone }): TopZone => {
    const own = totals.filter(
      (row) => row.instance === instance && row.kind === kind && row.zone === zone,
    );
    const isOwn = (row: { instance: string; zone: string }): boolean =>
      kind === 'limit_req' && row.instance === instance && row.zone === zone;
    const rate = (...outcomes: readonly string[]): number =>
      perSecond(
        own
          .filter(({ outcome }) => outcomes.includes(outcome))
          .reduce((sum, { requests }) => sum + requests, 0),
      );
    const state = states.find(isOwn);
    return {
      ...{ instance, zone, kind },
      rateMilliRps: inForce.filter(isOwn).at(-1)?.rateMilliRps ?? null,
      passedPerSecond: rate('passed'),
      delayedPerSecond: rate('delayed'),
      rejectedPerSecond: rate('rejected', 'exhausted'),
      dryRunPerSecond: rate('delayed_dry_run', 'rejected_dry_run', 'exhausted_dry_run'),
      excessMax: Math.max(0, ...own.map(({ excessMaxMilli }) => excessMaxMilli)) / 1000,
      nodes: state?.nodes ?? null,
      capacityNodes: state?.capacityNodes ?? null,
      evictionsInDebt: state?.evictionsInDebt ?? 0,
    };
  });
  return zones.sort((a, b) => weight(b) - weight(a));
}

/** What comes first: who is refused most, then who waits most, then who is busiest. */
function weight(zone: TopZone): number {
  const limited = zone.rejectedPerSecond * 1e12 + zone.delayedPerSecond * 1e6;
  return limited + zone.dryRunPerSecond * 1e3 + zone.passedPerSecond;
}

async function sourcesIn(
  store: Store,
  filter: Filter,
  perSecond: (requests: number) => number,
): Promise<TopSource[]> {
  const sums = new Map<string, { status: number; source: string; requests: number }>();
  for (const { status, source, requests } of await sources429503(store, filter)) {
    const name = `${status} ${source}`;
    const sum = sums.get(name) ?? { status, source: source || 'unknown', requests: 0 };
    sum.requests += requests;
    sums.set(name, sum);
  }
  return [...sums.values()]
    .sort((a, b) => b.requests - a.requests)
    .map(({ status, source, requests }) => ({ status, source, perSecond: perSecond(requests) }));
}

const ORDERS: Readonly<Record<KeyOrder, string>> = {
  rejected: 'refused + dryRun DESC, delayed DESC, excessMaxMilli DESC',
  excess: 'excessMaxMilli DESC, refused + dryRun DESC',
};

async function keysIn(
  store: Store,
  filter: Filter,
  { keys, order }: SnapshotOptions,
): Promise<TopKey[]> {
  const { sql, params } = inBuckets(filter, 'minute', MINUTE_SECONDS);
  const rows = await store.query<
    Omit<TopKey, 'excessMax' | 'rejected'> & {
      refused: number;
      excessMaxMilli: number;
    }
  >(
    `SELECT zone, key, sum(key_minutes.passed) AS passed, sum(key_minutes.delayed) AS delayed,
       sum(rejected) + sum(exhausted) AS refused,
       sum(delayed_dry_run) + sum(rejected_dry_run) AS dryRun,
       max(excess_max_milli) AS excessMaxMilli
     FROM key_minutes WHERE ${sql}
     GROUP BY instance, zone, key
     HAVING refused + dryRun + delayed > 0 OR excessMaxMilli > 0
     ORDER BY ${ORDERS[order]}, zone, key LIMIT {count:UInt32}`,
    { ...params, count: keys },
  );
  return rows.map(({ refused, excessMaxMilli, ...row }) => ({
    ...row,
    rejected: refused,
    excessMax: excessMaxMilli / 1000,
  }));
}
