/**
 * What `limitlens top` shows of one moment.
 *
 * Rates are requests per second over the window, which ends with the newest whole bucket that is
 * known, whenever that was; so a store of old logs shows their end. Keys are counted by the minute,
 * zones' memory by the last hour. Times are epoch milliseconds, excess is in requests.
 *
 * Not here: where the numbers come from: a store (store-inputs.ts), or logs (recent-rows.ts).
 */
import { BUCKET_SECONDS, MINUTE_SECONDS, type Filter } from '../store/filter.js';

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

/** What a snapshot is made of. A filter's times select whole buckets. */
export interface TopInputs {
  /** Begin of the newest bucket that has a request; null before the first. */
  newestBucketMs(filter: Filter): Promise<number | null>;
  requests(filter: Filter): Promise<number>;
  outcomes(filter: Filter): Promise<readonly OutcomeTotal[]>;
  /** Nodes as in the newest bucket. */
  states(filter: Filter): Promise<readonly StateTotal[]>;
  /** Of the zones in force at the end of the time, or before it; the later ones behind. */
  rates(filter: Filter): Promise<readonly ZoneRate[]>;
  /** Those who refused, and whoever answered 429 or 503. */
  sources(filter: Filter): Promise<readonly SourceTotal[]>;
  /** At most so many, the first in order. */
  keys(filter: Filter, order: KeyOrder, count: number): Promise<readonly TopKey[]>;
}

interface ZoneName {
  readonly instance: string;
  readonly zone: string;
}

export interface OutcomeTotal extends ZoneName {
  readonly kind: 'limit_req' | 'limit_conn';
  readonly outcome: string;
  readonly requests: number;
  readonly excessMaxMilli: number;
}

export interface StateTotal extends ZoneName {
  readonly nodes: number;
  readonly capacityNodes: number;
  readonly evictionsInDebt: number;
}

export interface ZoneRate extends ZoneName {
  readonly rateMilliRps: number;
}

export interface SourceTotal {
  readonly status: number;
  readonly source: string;
  readonly requests: number;
}

export interface SnapshotOptions {
  readonly instance?: string;
  /** A multiple of the bucket of 10 s. */
  readonly windowMs: number;
  readonly keys: number;
  readonly order: KeyOrder;
  /** For a bucket that ends later, requests may still come. */
  readonly completeMs: number;
  /** Nothing is known of the time before: the window is no longer than from here. */
  readonly sinceMs?: number;
}

const BUCKET_MS = BUCKET_SECONDS * 1000;
const MINUTE_MS = MINUTE_SECONDS * 1000;
const HOUR_MS = 3_600_000;

export async function takeSnapshot(
  inputs: TopInputs,
  options: SnapshotOptions,
): Promise<TopSnapshot> {
  const { instance, completeMs, sinceMs = -Infinity } = options;
  const ofOne = instance === undefined ? {} : { instance };
  const newestMs = await inputs.newestBucketMs(ofOne);
  if (newestMs === null) {
    const { windowMs } = options;
    const nothing = { requestsPerSecond: 0, zones: [], sources: [], keys: [], keysSinceMs: null };
    return { atMs: null, windowMs, ...nothing };
  }
  const atMs = newestMs + BUCKET_MS > completeMs ? newestMs : newestMs + BUCKET_MS;
  const windowMs = Math.max(BUCKET_MS, Math.min(options.windowMs, atMs - sinceMs));
  const filter = { ...ofOne, sinceMs: atMs - windowMs, untilMs: atMs };
  const lastHour = { ...ofOne, sinceMs: atMs - HOUR_MS, untilMs: atMs };
  const perSecond = (requests: number): number => (requests * 1000) / windowMs;
  const keysSinceMs = Math.floor((atMs - Math.max(windowMs, MINUTE_MS)) / MINUTE_MS) * MINUTE_MS;
  const inKeys = { ...filter, sinceMs: keysSinceMs };
  return {
    atMs,
    windowMs,
    requestsPerSecond: perSecond(await inputs.requests(filter)),
    zones: zonesOf(
      await inputs.outcomes(filter),
      await inputs.states(lastHour),
      await inputs.rates(filter),
      perSecond,
    ),
    sources: sourcesOf(await inputs.sources(filter), perSecond),
    keys: await inputs.keys(inKeys, options.order, options.keys),
    keysSinceMs,
  };
}

function zonesOf(
  totals: readonly OutcomeTotal[],
  states: readonly StateTotal[],
  rates: readonly ZoneRate[],
  perSecond: (requests: number) => number,
): TopZone[] {
  const names = new Map(
    totals.map(({ instance, kind, zone }) => [
      JSON.stringify([instance, zone, kind]),
      { instance, kind, zone },
    ]),
  );
  const inOrder = [...names.entries()].sort(([a], [b]) => (a < b ? -1 : 1));
  const zones = inOrder.map(([, { instance, kind, zone }]): TopZone => {
    const own = totals.filter(
      (row) => row.instance === instance && row.kind === kind && row.zone === zone,
    );
    const isOwn = (row: ZoneName): boolean =>
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
      rateMilliRps: rates.filter(isOwn).at(-1)?.rateMilliRps ?? null,
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

function sourcesOf(
  totals: readonly SourceTotal[],
  perSecond: (requests: number) => number,
): TopSource[] {
  const sums = new Map<string, { status: number; source: string; requests: number }>();
  for (const { status, source, requests } of totals) {
    const name = `${status} ${source}`;
    const sum = sums.get(name) ?? { status, source: source || 'unknown', requests: 0 };
    sum.requests += requests;
    sums.set(name, sum);
  }
  return [...sums.values()]
    .sort(
      (a, b) => b.requests - a.requests || a.status - b.status || (a.source < b.source ? -1 : 1),
    )
    .map(({ status, source, requests }) => ({ status, source, perSecond: perSecond(requests) }));
}
