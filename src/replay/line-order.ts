/**
 * The order of the error log over requests that left a line: nginx writes the line when it decides,
 * so lines stand in decision order, also where a request's own times leave its decision open.
 *
 * Remembers the events of the last lines by rank. Units: epoch milliseconds.
 */
import type { EventPool } from './event-pool.js';

/** Lines remembered; a power of two. A request waits for the lateness at most. */
const MOST_LINES = 1 << 16;
/** Neighbours asked on either side. */
export const NEIGHBOURS = 48;

export class LineOrder {
  readonly #pool: EventPool;
  readonly #ranks = new Float64Array(MOST_LINES).fill(-1);
  readonly #lo = new Float64Array(MOST_LINES);
  readonly #hi = new Float64Array(MOST_LINES);

  readonly #skewMs: number;

  /** @param skewMs clocks of two workers, as cached by each, may differ by this much */
  constructor(pool: EventPool, skewMs: number) {
    this.#pool = pool;
    this.#skewMs = skewMs;
  }

  /** What is remembered of the lines from this rank on: rank, lo and hi of each. */
  entriesFrom(rank: number): Float64Array {
    const found: number[] = [];
    for (let at = 0; at < MOST_LINES; at++) {
      if (this.#ranks[at]! < Math.max(0, rank)) continue;
      found.push(this.#ranks[at]!, this.#lo[at]!, this.#hi[at]!);
    }
    return Float64Array.from(found);
  }

  /** Remembers what entriesFrom() told. */
  restore(entries: Float64Array): void {
    for (let i = 0; i + 2 < entries.length; i += 3) {
      const at = entries[i]! & (MOST_LINES - 1);
      this.#ranks[at] = entries[i]!;
      this.#lo[at] = entries[i + 1]!;
      this.#hi[at] = entries[i + 2]!;
    }
  }

  /** The event was found to have left this line. */
  note(event: number, rank: number): void {
    this.#pool.errorRank[event] = rank;
    this.update(event);
  }

  /** The event's interval changed. */
  update(event: number): void {
    const rank = this.#pool.errorRank[event]!;
    if (rank < 0) return;
    const at = rank & (MOST_LINES - 1);
    this.#ranks[at] = rank;
    this.#lo[at] = this.#pool.loMs[event]!;
    this.#hi[at] = this.#pool.hiMs[event]!;
  }

  /**
   * The part of the event's interval that its neighbours in the error log leave open: not before
   * an earlier line's first moment, not after a later line's last.
   *
   * @returns [lo, hi], the event's own where its neighbours contradict it
   */
  narrowed(event: number): readonly [number, number] {
    const pool = this.#pool;
    const rank = pool.errorRank[event]!;
    const lo = pool.loMs[event]!;
    const hi = pool.hiMs[event]!;
    if (rank < 0) return [lo, hi];
    return this.#between(rank, lo, hi, 0) ?? this.#between(rank, lo, hi, this.#skewMs) ?? [lo, hi];
  }

  /** What [lo, hi] and the neighbours, each taken to be `skewMs` off, have in common. */
  #between(
    rank: number,
    ownLo: number,
    ownHi: number,
    skewMs: number,
  ): readonly [number, number] | undefined {
    let lo = ownLo;
    let hi = ownHi;
    for (let step = 1; step <= NEIGHBOURS; step++) {
      const before = (rank - step) & (MOST_LINES - 1);
      if (rank >= step && this.#ranks[before] === rank - step)
        lo = Math.max(lo, this.#lo[before]! - skewMs);
      const after = (rank + step) & (MOST_LINES - 1);
      if (this.#ranks[after] === rank + step) hi = Math.min(hi, this.#hi[after]! + skewMs);
    }
    return lo <= hi ? [lo, hi] : undefined;
  }
}
