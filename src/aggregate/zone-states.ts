/**
 * The memory of each zone, in buckets of 10 s in which it was asked: the rows of `zone_state`.
 *
 * Nodes and sums are read when a bucket ends, which its successor's first request shows; so that
 * one request's nodes already count. Capacity is that for keys of the length last seen.
 *
 * Distinct keys of a minute: each bucket tells how many the minute has had by its end, and how many
 * of them were new in it. A minute in one piece has the same number by the most of the one and the
 * sum of the other; one whose pieces knew nothing of each other has at least the one, and at most
 * the other.
 */
import type { ZoneReplay } from '../replay/zone-replay.js';
import type { KeyMinutes } from './key-minutes.js';
import type { RowSink } from './rows.js';

const COUNTS = [
  'evictions',
  'evictionsInDebt',
  'admittedByEviction',
  'allocationFailures',
  'nodesCreated',
] as const;

/** What a zone counted that no row holds yet. */
export interface ZoneStatePart {
  readonly index: number;
  readonly zone: string;
  readonly wasAsked: boolean;
  readonly keyLengthBytes: number;
  readonly counts: readonly number[];
}

export class ZoneStates {
  readonly #zones: readonly ZoneReplay[];
  readonly #keys: readonly KeyMinutes[];
  readonly #asked: Uint8Array;
  readonly #keyLengthBytes: Int32Array;
  /** Sums that rows hold already, COUNTS.length of them per zone. */
  readonly #emitted: Float64Array;
  readonly #firstKeys: readonly ZoneReplay['keys'][];
  #hasBegun = false;

  /** @param keys by zone: those of the open minute */
  constructor(zones: readonly ZoneReplay[], keys: readonly KeyMinutes[]) {
    this.#zones = zones;
    this.#keys = keys;
    this.#asked = new Uint8Array(zones.length);
    this.#keyLengthBytes = new Int32Array(zones.length).fill(4);
    this.#emitted = new Float64Array(zones.length * COUNTS.length);
    this.#firstKeys = zones.map(({ keys }) => keys);
  }

  /**
   * The first request has been decided. A zone that was taken up from an earlier import since brings
   * its evictions with it, which are in rows already; those of this request are not.
   */
  begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    for (const [i, { keys, counts, memory }] of this.#zones.entries()) {
      if (keys === this.#firstKeys[i]) continue;
      const forced = memory.evictedForced.subarray(0, memory.evictedCount);
      const before = counts.evictions - forced.reduce((sum, one) => sum + one, 0);
      this.#emitted[i * COUNTS.length + COUNTS.indexOf('evictions')] = before;
    }
  }

  note(zoneIndex: number, keyLengthBytes: number): void {
    this.#asked[zoneIndex] = 1;
    this.#keyLengthBytes[zoneIndex] = keyLengthBytes;
  }

  /** Hands the bucket's rows over, and begins an empty one. */
  emit(sink: RowSink, instance: string, bucketS: number): void {
    for (const [i, zone] of this.#zones.entries()) {
      if (this.#asked[i] === 0) continue;
      const { memory } = zone;
      const capacity = memory.capacityNodes(this.#keyLengthBytes[i]!);
      const counts = this.#pending(i);
      const keys = this.#keys[i]!;
      const numbers = [memory.nodes, capacity, ...counts, keys.size, keys.takeNew()];
      sink.row('zone_state', [instance, zone.name, bucketS, ...numbers]);
      this.#asked[i] = 0;
      this.#setPending(
        i,
        counts.map(() => 0),
      );
    }
  }

  snapshot(): ZoneStatePart[] {
    return this.#zones.map((zone, index) => ({
      index,
      zone: zone.name,
      wasAsked: this.#asked[index] === 1,
      keyLengthBytes: this.#keyLengthBytes[index]!,
      counts: this.#pending(index),
    }));
  }

  /** Goes on whether the zones' own sums were restored or begin at zero. */
  restore(parts: readonly ZoneStatePart[]): void {
    this.#hasBegun = true;
    for (const { index, zone, wasAsked, keyLengthBytes, counts } of parts) {
      if (this.#zones[index]?.name !== zone) continue;
      this.#asked[index] = wasAsked ? 1 : 0;
      this.#keyLengthBytes[index] = keyLengthBytes;
      this.#setPending(index, counts);
    }
  }

  #pending(index: number): number[] {
    const { counts } = this.#zones[index]!;
    return COUNTS.map((name, i) => counts[name] - this.#emitted[index * COUNTS.length + i]!);
  }

  #setPending(index: number, pending: readonly number[]): void {
    const { counts } = this.#zones[index]!;
    const emitted = COUNTS.map((name, i) => counts[name] - pending[i]!);
    this.#emitted.set(emitted, index * COUNTS.length);
  }
}
