/**
 * One limit_req line in one location: how soon keys came back after it refused them.
 *
 * Times in milliseconds.
 */
import { WeightedHistogram } from './weighted-histogram.js';

export interface PlaceRetries {
  readonly server: string;
  readonly location: string;
  /** `FILE:LINE` of the limit_req that refused. */
  readonly where: string;
  readonly rejects: number;
  /** Refusals after which the key came again. */
  readonly returned: number;
  /** Of these, before the key could have been let through. */
  readonly tooSoon: number;
  /** tooSoon / (returned − unsure); null of nothing. */
  readonly tooSoonShare: number | null;
  /** Whole seconds in the log do not tell whether it was too soon. */
  readonly unsure: number;
  readonly rejectedAgain: number;
  /** With the same method and path, among those that were refused again. */
  readonly sameRequest: number;
  readonly notReturned: number;
  /** The log ends before that can be said. */
  readonly open: number;
  /** Refused for want of memory, or with an excess that is not known: no wait can be told. */
  readonly withoutWait: number;
  /** The log does not tell whose they were: nobody can be told to have come back. */
  readonly withoutKey: number;
  readonly gapMs: Quantiles | null;
  readonly waitMs: Quantiles | null;
  /** What an honest answer would have said at most: whole seconds. */
  readonly retryAfterSeconds: number | null;
  /** Returns by gap / wait. */
  readonly returnsByShareOfWait: readonly { readonly below: number | null; returns: number }[];
}

export interface Quantiles {
  readonly p50: number;
  readonly p90: number;
  readonly max: number;
}

/** A request of a key that had been refused. */
export interface KeyReturn {
  /** From decision to decision. */
  readonly gapMs: number;
  /** What the refused request would have had to wait; NaN where that is not known. */
  readonly waitMs: number;
  readonly isLetThrough: boolean;
  readonly isRejectedAgain: boolean;
  readonly isSameRequest: boolean;
  /** Times are whole seconds. */
  readonly isCoarse: boolean;
}

/** Two truncated clocks. */
const CLOCK_MS = 2;
const SECOND_MS = 1000;
const SHARES_OF_WAIT = [0.1, 0.5, 1, 2, Infinity];

export class RetryPlace {
  readonly server: string;
  readonly location: string;
  readonly where: string;
  rejects = 0;
  notReturned = 0;
  open = 0;
  withoutKey = 0;
  #returned = 0;
  #tooSoon = 0;
  #unsure = 0;
  #rejectedAgain = 0;
  #sameRequest = 0;
  #withoutWait = 0;
  readonly #gaps = new WeightedHistogram();
  readonly #waits = new WeightedHistogram();
  readonly #byShare = SHARES_OF_WAIT.map(() => 0);

  constructor(server: string, location: string, where: string) {
    this.server = server;
    this.location = location;
    this.where = where;
  }

  /** @param waitMs NaN where it is not known */
  countReject(waitMs: number): void {
    this.rejects++;
    if (Number.isNaN(waitMs)) this.#withoutWait++;
    else this.#waits.add(waitMs);
  }

  /** @returns whether it was too soon for certain */
  countReturn(found: KeyReturn): boolean {
    const { gapMs, waitMs, isLetThrough, isCoarse } = found;
    this.#returned++;
    this.#gaps.add(gapMs);
    if (found.isRejectedAgain) this.#rejectedAgain++;
    if (found.isSameRequest) this.#sameRequest++;
    if (Number.isNaN(waitMs)) {
      this.#unsure++;
      return false;
    }
    this.#byShare[SHARES_OF_WAIT.findIndex((share) => gapMs < share * waitMs)]!++;
    // Let through, it has waited long enough, whatever the clocks say.
    if (isLetThrough) return false;
    if (isCoarse && Math.abs(gapMs - waitMs) <= SECOND_MS) {
      this.#unsure++;
      return false;
    }
    const isTooSoon = gapMs < waitMs - (isCoarse ? 0 : CLOCK_MS);
    if (isTooSoon) this.#tooSoon++;
    return isTooSoon;
  }

  describe(): PlaceRetries {
    const judged = this.#returned - this.#unsure;
    const hasWait = this.#waits.total > 0;
    return {
      server: this.server,
      location: this.location,
      where: this.where,
      rejects: this.rejects,
      returned: this.#returned,
      tooSoon: this.#tooSoon,
      tooSoonShare: judged === 0 ? null : this.#tooSoon / judged,
      unsure: this.#unsure,
      rejectedAgain: this.#rejectedAgain,
      sameRequest: this.#sameRequest,
      notReturned: this.notReturned,
      open: this.open,
      withoutWait: this.#withoutWait,
      withoutKey: this.withoutKey,
      gapMs: quantilesOf(this.#gaps),
      waitMs: quantilesOf(this.#waits),
      retryAfterSeconds: hasWait ? Math.ceil(this.#waits.largest / SECOND_MS) : null,
      returnsByShareOfWait: SHARES_OF_WAIT.map((below, i) => ({
        below: below === Infinity ? null : below,
        returns: this.#byShare[i]!,
      })),
    };
  }
}

function quantilesOf(histogram: WeightedHistogram): Quantiles | null {
  if (histogram.total === 0) return null;
  return {
    p50: histogram.quantile(0.5),
    p90: histogram.quantile(0.9),
    max: histogram.largest,
  };
}
