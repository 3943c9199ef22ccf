/**
 * The inputs of an analysis of zones from a replay's rows in memory, without a store.
 *
 * Takes the rows as they come and answers what readZoneInputs() asks a store; a test holds the two
 * against each other. Memory grows with the number of buckets, not with that of the requests.
 */
import type { RowSink, RowTable } from '../aggregate/rows.js';
import type { StoredLimits, ZoneStateTotal } from '../store/queries.js';
import type {
  KeyCountStep,
  KeysPerMinute,
  ZoneBucket,
  ZoneMinutes,
} from '../store/queries-analysis.js';
import { stepSecondsOf, type ZoneInputs } from './zone-inputs.js';

type StateRow = [string, string, ...number[]];

interface Named {
  readonly instance: string;
  readonly zone: string;
}

interface NamedCount extends Named {
  requests: number;
}

export class ZoneRows implements RowSink {
  /** Buckets of 10 s by instance, zone and begin. */
  readonly #buckets = new Map<string, ZoneBucket>();
  readonly #limits: StoredLimits[] = [];
  readonly #exhausted = new Map<string, NamedCount>();
  /** Of limit_conn zones, by instance, zone and outcome. */
  readonly #conn = new Map<string, NamedCount & { readonly outcome: string }>();
  /** By instance, zone and minute. */
  readonly #keys = new Map<string, KeyCountStep>();

  row(table: RowTable, row: readonly unknown[]): void {
    if (table === 'zone_state') this.#state(row as StateRow);
    else if (table === 'zone_outcomes') this.#outcome(row as (string | number)[]);
    else if (table === 'limits') this.#limit(row as (string | number)[]);
  }

  /** Everything so far. */
  inputs(): ZoneInputs {
    const fine = [...this.#buckets.values()].sort(byZoneAndTime);
    const times = fine.map(({ timeMs }) => timeMs);
    const spanMs = fine.length === 0 ? 0 : Math.max(...times) - Math.min(...times);
    const stepSeconds = stepSecondsOf(spanMs);
    const zones = [...groupBy(fine, zoneOf).values()];
    return {
      stepSeconds,
      states: zones.map(stateOf),
      buckets: inSteps(fine, stepSeconds * 1000),
      evictions: fine.filter(({ evictions }) => evictions > 0),
      capacities: zones.flatMap((buckets) =>
        [...new Set(buckets.map(({ capacityNodes }) => capacityNodes))].map((capacityNodes) => ({
          ...names(buckets[0]!),
          capacityNodes,
        })),
      ),
      created: zones.map(createdOf),
      keys: this.#keysPerMinute(),
      keySteps: this.#keySteps(Math.max(60, stepSeconds) * 1000),
      limits: this.#limits.toSorted((a, b) => a.sinceMs - b.sinceMs),
      exhausted: [...this.#exhausted.values()],
    };
  }

  /** What limit_conn zones did, by outcome. */
  connOutcomes(): readonly (Named & { readonly outcome: string; readonly requests: number })[] {
    return [...this.#conn.values()];
  }

  #state([instance, zone, ...numbers]: StateRow): void {
    const [bucketS, nodes, capacityNodes, evictions, inDebt, admitted, failures, created] =
      numbers as [number, number, number, number, number, number, number, number];
    const [keys, newKeys] = numbers.slice(8);
    if (keys !== undefined && newKeys !== undefined) {
      this.#countKeys({ instance, zone, timeMs: bucketS * 1000, keys, keysMost: newKeys });
    }
    const key = JSON.stringify([instance, zone, bucketS]);
    const bucket = {
      instance,
      zone,
      timeMs: bucketS * 1000,
      nodes,
      capacityNodes,
      evictions,
      evictionsInDebt: inDebt,
      admittedByEviction: admitted,
      allocationFailures: failures,
      keysCreated: created,
    };
    const known = this.#buckets.get(key);
    this.#buckets.set(key, known === undefined ? bucket : added(known, bucket));
  }

  #outcome(row: readonly (string | number)[]): void {
    const [instance, zone, kind, , , , outcome, requests] = row as string[];
    if (kind === 'limit_conn') this.#connOutcome([instance!, zone!, outcome!], Number(requests));
    if (kind !== 'limit_req' || !outcome!.startsWith('exhausted')) return;
    const key = JSON.stringify([instance, zone]);
    const known = this.#exhausted.get(key) ?? { instance: instance!, zone: zone!, requests: 0 };
    known.requests += Number(requests);
    this.#exhausted.set(key, known);
  }

  #connOutcome(name: readonly [string, string, string], requests: number): void {
    const [instance, zone, outcome] = name;
    const key = JSON.stringify(name);
    const known = this.#conn.get(key) ?? { instance, zone, outcome, requests: 0 };
    known.requests += requests;
    this.#conn.set(key, known);
  }

  #countKeys(bucket: KeyCountStep): void {
    const timeMs = Math.floor(bucket.timeMs / 60_000) * 60_000;
    const name = JSON.stringify([bucket.instance, bucket.zone, timeMs]);
    const known = this.#keys.get(name) ?? { ...bucket, timeMs, keys: 0, keysMost: 0 };
    const keys = Math.max(known.keys, bucket.keys);
    this.#keys.set(name, { ...known, keys, keysMost: known.keysMost + bucket.keysMost });
  }

  #limit(row: readonly (string | number)[]): void {
    const [instance, zone, sinceMs, keyExpression, sizeBytes, rateMilliRps, capacityNodes, rules] =
      row as [string, string, number, string, number, number, number, string];
    this.#limits.push({
      instance,
      zone,
      sinceMs,
      keyExpression,
      sizeBytes,
      rateMilliRps,
      capacityNodes,
      rules,
    });
  }

  #keysPerMinute(): KeysPerMinute[] {
    return Array.from(groupBy([...this.#keys.values()], zoneOf).values(), (minutes) => {
      const least = minutes.map(({ keys }) => keys);
      const most = minutes.map(({ keysMost }) => keysMost);
      return {
        ...names(minutes[0]!),
        keysMean: mean(least),
        keysMax: Math.max(...least),
        keysMostMean: mean(most),
        keysMostMax: Math.max(...most),
      };
    });
  }

  #keySteps(stepMs: number): KeyCountStep[] {
    const inStep = Array.from(this.#keys.values(), (minute) => ({
      ...minute,
      timeMs: Math.floor(minute.timeMs / stepMs) * stepMs,
    }));
    const steps = groupBy(inStep, (minute) => `${minute.timeMs} ${zoneOf(minute)}`);
    return Array.from(steps.values(), (minutes) => ({
      ...minutes[0]!,
      keys: Math.max(...minutes.map(({ keys }) => keys)),
      keysMost: Math.max(...minutes.map(({ keysMost }) => keysMost)),
    })).sort(byZoneAndTime);
  }
}

/** Two rows of one zone and time, as the engine's max and sum would join them. */
function added(a: ZoneBucket, b: ZoneBucket): ZoneBucket {
  return {
    ...names(a),
    timeMs: a.timeMs,
    nodes: Math.max(a.nodes, b.nodes),
    capacityNodes: Math.max(a.capacityNodes, b.capacityNodes),
    evictions: a.evictions + b.evictions,
    evictionsInDebt: a.evictionsInDebt + b.evictionsInDebt,
    admittedByEviction: a.admittedByEviction + b.admittedByEviction,
    allocationFailures: a.allocationFailures + b.allocationFailures,
    keysCreated: a.keysCreated + b.keysCreated,
  };
}

function inSteps(fine: readonly ZoneBucket[], stepMs: number): ZoneBucket[] {
  const stepped = fine.map((bucket) => ({
    ...bucket,
    timeMs: Math.floor(bucket.timeMs / stepMs) * stepMs,
  }));
  const groups = groupBy(stepped, (bucket) => `${zoneOf(bucket)} ${bucket.timeMs}`);
  return Array.from(groups.values(), (group) => group.reduce(added));
}

function stateOf(buckets: readonly ZoneBucket[]): ZoneStateTotal {
  const newest = buckets.at(-1)!;
  const { keysCreated, ...sums } = buckets.reduce(added);
  return {
    ...sums,
    keysCreated,
    timeMs: newest.timeMs,
    nodes: newest.nodes,
    nodesMax: sums.nodes,
    capacityNodes: newest.capacityNodes,
  };
}

function createdOf(buckets: readonly ZoneBucket[]): ZoneMinutes {
  const minutes = inSteps(buckets, 60_000).map(({ keysCreated }) => keysCreated);
  return {
    ...names(buckets[0]!),
    minutes: minutes.length,
    createdMean: mean(minutes),
    createdMax: Math.max(...minutes),
  };
}

function names({ instance, zone }: Named): Named {
  return { instance, zone };
}

function zoneOf({ instance, zone }: Named): string {
  return JSON.stringify([instance, zone]);
}

function byZoneAndTime(a: Named & { timeMs: number }, b: Named & { timeMs: number }): number {
  const [one, other] = [zoneOf(a), zoneOf(b)];
  return one < other ? -1 : one > other ? 1 : a.timeMs - b.timeMs;
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
