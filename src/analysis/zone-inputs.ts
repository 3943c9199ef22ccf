/**
 * What an analysis of zones is made of, asked of a store.
 *
 * Not here: the same from logs without a store (zone-rows.ts), what it means (zones.ts).
 */
import type { Filter } from '../store/filter.js';
import { limits, timeSpan, zoneTotals, zoneStateLatest } from '../store/queries.js';
import type { StoredLimits, ZoneStateTotal } from '../store/queries.js';
import {
  createdPerMinute,
  evictionBuckets,
  keyCountSteps,
  keysPerMinute,
  zoneBuckets,
  zoneCapacities,
  type KeyCountStep,
  type KeysPerMinute,
  type ZoneBucket,
  type ZoneCapacity,
  type ZoneMinutes,
} from '../store/queries-analysis.js';
import type { Store } from '../store/store.js';

export interface ZoneInputs {
  readonly stepSeconds: number;
  readonly states: readonly ZoneStateTotal[];
  readonly buckets: readonly ZoneBucket[];
  /** Buckets of 10 s with evictions. */
  readonly evictions: readonly ZoneBucket[];
  readonly capacities: readonly ZoneCapacity[];
  readonly created: readonly ZoneMinutes[];
  readonly keys: readonly KeysPerMinute[];
  /** In steps of `stepSeconds`, or of a minute where that is less. */
  readonly keySteps: readonly KeyCountStep[];
  readonly limits: readonly StoredLimits[];
  /** Requests that nginx refused, or under dry run would have, for want of memory. */
  readonly exhausted: readonly { instance: string; zone: string; requests: number }[];
}

/** Points of a time line that are still told apart on a screen. */
const MOST_STEPS = 720;
const STEPS_SECONDS = [10, 60, 300, 3600, 21_600, 86_400];

/** The finest step in which so long a time has not too many. */
export function stepSecondsOf(spanMs: number): number {
  const fine = STEPS_SECONDS.find((seconds) => spanMs / 1000 / seconds <= MOST_STEPS);
  return fine ?? STEPS_SECONDS.at(-1)!;
}

export async function readZoneInputs(store: Store, filter: Filter): Promise<ZoneInputs> {
  const spans = await timeSpan(store, filter);
  const fromMs = Math.min(...spans.map((span) => span.fromMs));
  const toMs = Math.max(...spans.map((span) => span.toMs));
  const stepSeconds = stepSecondsOf(spans.length === 0 ? 0 : toMs - fromMs);
  return {
    stepSeconds,
    states: await zoneStateLatest(store, filter),
    buckets: await zoneBuckets(store, stepSeconds, filter),
    evictions: await evictionBuckets(store, filter),
    capacities: await zoneCapacities(store, filter),
    created: await createdPerMinute(store, filter),
    keys: await keysPerMinute(store, filter),
    keySteps: await keyCountSteps(store, stepSeconds, filter),
    limits: await limits(store, filter),
    exhausted: (await zoneTotals(store, filter)).filter(
      ({ kind, outcome }) => kind === 'limit_req' && outcome.startsWith('exhausted'),
    ),
  };
}
