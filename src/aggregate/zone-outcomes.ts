/**
 * What each limit of each place did, in buckets of 10 s: the rows of `zone_outcomes`.
 *
 * Excess in thousandths of a request, delays in milliseconds, both as the limiter saw them.
 */
import type { Names } from './names.js';
import { OUTCOME_WORDS } from './outcome-words.js';
import type { RowSink } from './rows.js';
import { TouchedSums } from './touched-sums.js';

const WORDS = OUTCOME_WORDS.length;
const NEAR = 1;
const EXCESS_SUM = 2;
const EXCESS_MAX = 3;
const DELAY = 4;
const FIELDS = 5;

/** Cells by their names, so that a later configuration finds them again. */
export interface OutcomeCell {
  readonly limit: readonly string[];
  readonly outcome: string;
  readonly sums: readonly number[];
}

export class ZoneOutcomes {
  readonly #limits: Names;
  readonly #sums: TouchedSums;

  /** @param limits names of limits: kind, zone, server, location */
  constructor(limits: Names) {
    this.#limits = limits;
    this.#sums = new TouchedSums(FIELDS, limits.list.length * WORDS);
  }

  /** Counts a request that was not measured: skipped, not reached, or of a limit_conn zone. */
  count(limit: number, word: number): void {
    this.#sums.count(limit * WORDS + word, 1);
  }

  /** Counts a request with its excess. */
  measure(
    limit: number,
    word: number,
    excessMilliReq: number,
    isNearLimit: boolean,
    delayMs: number,
  ): void {
    const at = this.#sums.count(limit * WORDS + word, 1);
    const { values } = this.#sums;
    values[at + EXCESS_SUM]! += excessMilliReq;
    if (excessMilliReq > values[at + EXCESS_MAX]!) values[at + EXCESS_MAX] = excessMilliReq;
    if (isNearLimit) values[at + NEAR]!++;
    if (delayMs > 0) values[at + DELAY]! += delayMs;
  }

  /** Hands the bucket's rows over, and begins an empty one. */
  emit(sink: RowSink, instance: string, bucketS: number): void {
    for (const { limit, outcome, sums } of this.cells()) {
      const [kind, zone, server, location] = limit;
      sink.row('zone_outcomes', [
        instance,
        zone,
        kind,
        server,
        location,
        bucketS,
        outcome,
        ...sums,
      ]);
    }
    this.#sums.clear();
  }

  /** By limit, then by outcome. */
  cells(): OutcomeCell[] {
    return Array.from(this.#sums.cells(), (cell) => ({
      limit: this.#limits.list[Math.floor(cell / WORDS)]!,
      outcome: OUTCOME_WORDS[cell % WORDS]!,
      sums: this.#sums.of(cell),
    }));
  }

  restore(cells: readonly OutcomeCell[]): void {
    this.#sums.clear();
    for (const { limit, outcome, sums } of cells) {
      const word = (OUTCOME_WORDS as readonly string[]).indexOf(outcome);
      const at = this.#sums.count(this.#limits.of(...limit) * WORDS + word, sums[0]!);
      this.#sums.values.set(sums, at);
    }
  }
}
