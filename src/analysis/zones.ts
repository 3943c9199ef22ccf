/**
 * How full each limit_req zone is, what it forgot, and how large it would have to be.
 *
 * A full zone of open-source nginx says nothing: it drops its oldest key, debt and all
 * (ngx_http_limit_req_expire). What was dropped is known from the replay alone.
 *
 * Sizes in bytes, times in epoch milliseconds, keys in nodes. Not here: limit_conn zones, which
 * never forget a key (conn-zones.ts).
 */
import { capacityKeys, capacityTable, sizeForKeys } from '../check/zone-size.js';
import type {
  KeyCountStep,
  KeysPerMinute as StoredKeys,
  ZoneBucket,
} from '../store/queries-analysis.js';
import type { StoredLimits, ZoneStateTotal } from '../store/queries.js';
import type { LowerBound } from './lower-bound.js';
import type { ZoneInputs } from './zone-inputs.js';

export interface ZoneAnalysis {
  readonly kind: 'limit_req';
  readonly zone: string;
  readonly instance: string;
  readonly keyExpression: string | null;
  readonly sizeBytes: number | null;
  readonly rateMilliRps: number | null;
  /** In the newest step. */
  readonly nodes: number;
  readonly nodesMax: number;
  /** For keys of the length that the zone saw last. */
  readonly capacityNodes: number;
  /** The zone as it is, by the length of keys. */
  readonly capacityByKeyLength: readonly { keyLengthBytes: number; capacityNodes: number }[];
  /** Keys of several slot sizes were seen; their pages cannot be exchanged. */
  readonly hasMixedKeyLengths: boolean;
  readonly headroomNodes: number;
  /** nodesMax / capacityNodes. */
  readonly fullShare: number;
  readonly evictions: number;
  readonly evictionsInDebt: number;
  readonly admittedByEviction: number;
  /** As nginx logged them; as the replay has them where no log tells of any. */
  readonly allocationFailures: number;
  readonly keysCreated: number;
  /** Nodes made in a minute. A key counts again when its node had been removed in between. */
  readonly newKeysPerMinute: PerMinute;
  /** Distinct keys in a minute. */
  readonly keysPerMinute: KeysPerMinute;
  /**
   * A size that would have forgotten no key too early; null where the configuration is unknown, and
   * where requests found no memory that these logs do not show.
   */
  readonly sufficient: SufficientSize | null;
  /** Why the true numbers may be higher; null when no configuration was given that would tell. */
  readonly lowerBound: readonly LowerBound[] | null;
  readonly stepSeconds: number;
  /** As the replay has it, allocation failures too. */
  readonly buckets: readonly ZoneStep[];
  /** Distinct keys of the minute that had most, in steps of `stepSeconds`, or of a minute if less. */
  readonly keys: readonly Omit<KeyCountStep, 'instance' | 'zone'>[];
}

type ZoneStep = Omit<ZoneBucket, 'instance' | 'zone'>;

/** At least so many in the rows; `atMost` is the same where each minute was stored in one piece. */
export interface KeysPerMinute extends PerMinute {
  /** null where rows from before they were counted hold the limited and the heaviest keys alone. */
  readonly atMost: PerMinute | null;
  /** All keys were counted, as far as logs show them (see `lowerBound`). */
  readonly isExact: boolean;
}

export interface PerMinute {
  readonly mean: number;
  readonly max: number;
}

export interface SufficientSize {
  /** Upper estimate of the keys that had to be remembered at one time. */
  readonly nodes: number;
  readonly sizeBytes: number;
  readonly sizeMebibytes: number;
  /** As the configuration would have it: `2m`. */
  readonly zoneSize: string;
}

/** Longest keys of each slot size (facts of ngx_slab.c): 128 bytes to whole pages. */
const KEY_LENGTHS_BYTES = [48, 176, 432, 944, 1968, 4016] as const;
/** An idle node may go after a minute, if it has no debt (ngx_http_limit_req_expire). */
const IDLE_MS = 60_000;
/** With several slot sizes each may leave a page half used. */
const PAGES_OF_SLOT_SIZES_BYTES = 8 * 4096;

/** @param lowerBound by zone; null when unknown */
export function analyseZones(
  inputs: ZoneInputs,
  lowerBound: ReadonlyMap<string, readonly LowerBound[]> | null,
): ZoneAnalysis[] {
  const zones = new Map<string, { instance: string; zone: string }>();
  for (const { instance, zone } of [...inputs.states, ...inputs.limits]) {
    zones.set(JSON.stringify([instance, zone]), { instance, zone });
  }
  return Array.from(zones.values(), ({ instance, zone }) => {
    const isOwn = (row: { instance: string; zone: string }): boolean =>
      row.instance === instance && row.zone === zone;
    return analyseZone(instance, zone, ownInputs(inputs, isOwn), lowerBound);
  }).sort((a, b) => compare(a.instance, b.instance) || compare(a.zone, b.zone));
}

function ownInputs(
  inputs: ZoneInputs,
  isOwn: (row: { instance: string; zone: string }) => boolean,
): ZoneInputs {
  return {
    stepSeconds: inputs.stepSeconds,
    states: inputs.states.filter(isOwn),
    buckets: inputs.buckets.filter(isOwn),
    evictions: inputs.evictions.filter(isOwn),
    capacities: inputs.capacities.filter(isOwn),
    created: inputs.created.filter(isOwn),
    keys: inputs.keys.filter(isOwn),
    keySteps: inputs.keySteps.filter(isOwn),
    limits: inputs.limits.filter(isOwn),
    exhausted: inputs.exhausted.filter(isOwn),
  };
}

const NEVER_ASKED: Omit<ZoneStateTotal, 'instance' | 'zone' | 'capacityNodes'> = {
  nodes: 0,
  nodesMax: 0,
  timeMs: 0,
  evictions: 0,
  evictionsInDebt: 0,
  admittedByEviction: 0,
  allocationFailures: 0,
  keysCreated: 0,
};

function analyseZone(
  instance: string,
  zone: string,
  inputs: ZoneInputs,
  lowerBound: ReadonlyMap<string, readonly LowerBound[]> | null,
): ZoneAnalysis {
  const limit = inputs.limits.at(-1);
  const state = inputs.states[0] ?? {
    ...NEVER_ASKED,
    instance,
    zone,
    capacityNodes: limit?.capacityNodes ?? 0,
  };
  const { nodes, nodesMax, capacityNodes } = state;
  const logged = inputs.exhausted.reduce((sum, row) => sum + row.requests, 0);
  const allocationFailures = logged > 0 ? logged : state.allocationFailures;
  const lengths = limit === undefined ? [] : keyLengths(limit, inputs);
  return {
    kind: 'limit_req',
    zone,
    instance,
    keyExpression: limit?.keyExpression ?? null,
    sizeBytes: limit?.sizeBytes ?? null,
    rateMilliRps: limit?.rateMilliRps ?? null,
    nodes,
    nodesMax,
    capacityNodes,
    capacityByKeyLength: limit === undefined ? [] : capacities(limit),
    hasMixedKeyLengths: lengths.length > 1,
    headroomNodes: Math.max(0, capacityNodes - nodesMax),
    fullShare: capacityNodes === 0 ? 0 : nodesMax / capacityNodes,
    evictions: state.evictions,
    evictionsInDebt: state.evictionsInDebt,
    admittedByEviction: state.admittedByEviction,
    allocationFailures,
    keysCreated: state.keysCreated,
    newKeysPerMinute: perMinute(inputs.created[0]?.createdMean, inputs.created[0]?.createdMax),
    keysPerMinute: keysPerMinute(inputs.keys[0]),
    sufficient:
      limit === undefined
        ? null
        : sufficientSize(limit, nodesMax, lengths, inputs, allocationFailures),
    lowerBound: lowerBound === null ? null : (lowerBound.get(zone) ?? []),
    stepSeconds: inputs.stepSeconds,
    buckets: inputs.buckets.map(ofTime),
    keys: inputs.keySteps.map(({ timeMs, keys, keysMost }) => ({ timeMs, keys, keysMost })),
  };
}

function ofTime(bucket: ZoneBucket): ZoneStep {
  const { timeMs, nodes, capacityNodes, evictions, keysCreated } = bucket;
  const { evictionsInDebt, admittedByEviction, allocationFailures } = bucket;
  return {
    timeMs,
    nodes,
    capacityNodes,
    evictions,
    evictionsInDebt,
    admittedByEviction,
    allocationFailures,
    keysCreated,
  };
}

function perMinute(mean = 0, max = 0): PerMinute {
  return { mean: Math.round(mean * 10) / 10, max };
}

function keysPerMinute(keys: StoredKeys | undefined): KeysPerMinute {
  if (keys === undefined) return { ...perMinute(), atMost: null, isExact: false };
  const { keysMean, keysMax, keysMostMean, keysMostMax } = keys;
  const atMost = keysMostMean === null ? null : perMinute(keysMostMean, keysMostMax ?? 0);
  return {
    ...perMinute(keysMean, keysMax),
    atMost,
    isExact: keysMostMean === keysMean && keysMostMax === keysMax,
  };
}

function capacities({ zone, sizeBytes }: StoredLimits): ZoneAnalysis['capacityByKeyLength'] {
  const rows = capacityTable([sizeBytes], KEY_LENGTHS_BYTES, zone.length, 'limit_req');
  return rows.map((row) => ({
    keyLengthBytes: row.keyLengthBytes,
    capacityNodes: row.capacityKeys[0]!,
  }));
}

/** The slot sizes that the zone's keys had, by their longest key; what an older size had is not. */
function keyLengths({ zone, sizeBytes }: StoredLimits, { capacities }: ZoneInputs): number[] {
  return KEY_LENGTHS_BYTES.filter((length) => {
    const capacity = capacityKeys('limit_req', sizeBytes, length, zone.length);
    return capacities.some(({ capacityNodes }) => capacityNodes === capacity);
  });
}

/**
 * The size for all keys that had to be remembered at one time.
 *
 * A node has to stay as long as it is younger than a minute or has debt, and debt is gone after
 * burst / rate. So what was dropped by force within that time counts on top of what was held. A
 * key that was dropped twice counts twice: the size suffices, and may be more than needed.
 */
function sufficientSize(
  limit: StoredLimits,
  nodesMax: number,
  lengths: readonly number[],
  { evictions }: ZoneInputs,
  allocationFailures: number,
): SufficientSize | null {
  const nodes = Math.max(1, nodesMax, neededNodes(evictions, lifeMs(limit)));
  const longest = lengths.at(-1) ?? KEY_LENGTHS_BYTES[0];
  const size = sizeForKeys(nodes, longest, limit.zone.length, 'limit_req');
  if (allocationFailures > 0 && size.sizeBytes <= limit.sizeBytes) return null;
  if (lengths.length <= 1) {
    const { sizeBytes, sizeMebibytes, zoneSize } = size;
    return { nodes, sizeBytes, sizeMebibytes, zoneSize };
  }
  const sizeBytes = size.sizeBytes + PAGES_OF_SLOT_SIZES_BYTES;
  const mebibytes = sizeBytes / 1024 / 1024;
  return {
    nodes,
    sizeBytes,
    sizeMebibytes: Math.round(mebibytes * 1000) / 1000,
    zoneSize: mebibytes > 1 ? `${Math.ceil(mebibytes)}m` : `${Math.ceil(sizeBytes / 1024)}k`,
  };
}

/** How long after its last request a key's node still matters. */
function lifeMs({ rateMilliRps, rules }: StoredLimits): number {
  const bursts = (JSON.parse(rules) as { burst: number }[]).map(({ burst }) => burst);
  return Math.max(IDLE_MS, (Math.max(0, ...bursts) * 1e6) / Math.max(1, rateMilliRps));
}

const BUCKET_MS = 10_000;

function neededNodes(evictions: readonly ZoneBucket[], windowMs: number): number {
  let most = 0;
  let within = 0;
  let from = 0;
  for (const bucket of evictions) {
    within += bucket.evictions;
    while (evictions[from]!.timeMs + BUCKET_MS <= bucket.timeMs - windowMs) {
      within -= evictions[from]!.evictions;
      from++;
    }
    most = Math.max(most, bucket.nodes + within);
  }
  return most;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
