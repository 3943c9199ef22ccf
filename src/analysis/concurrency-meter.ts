/**
 * How many requests are under way: at most, on average, and for how much of the time.
 *
 * Swept in order of time. Requests are under way from their decision to their end; one that ends in
 * the millisecond in which another begins was there beside it.
 */
import { TimeHeap } from './time-heap.js';
import { WeightedHistogram } from './weighted-histogram.js';

/** Concurrency of a set of requests. Little's law: concurrency = arrivalsPerSecond · meanMs / 1000. */
export interface Concurrency {
  readonly requests: number;
  readonly arrivalsPerSecond: number;
  /** From decision to end. */
  readonly meanMs: number;
  /** L = λ·W. */
  readonly concurrency: number;
  /** The same, measured: the mean over time. */
  readonly measuredMean: number;
  readonly most: number;
  readonly mostAtMs: number | null;
  /** That many or fewer were under way for half, 90 % and 99 % of the time. */
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

export class ConcurrencyMeter {
  readonly #ends = new TimeHeap<null>();
  readonly #underWay = new WeightedHistogram();
  #requests = 0;
  #sumMs = 0;
  #fromMs = NaN;
  #toMs = NaN;
  #most = 0;
  #mostAtMs = NaN;

  /** @param startMs not before that of the request before */
  add(startMs: number, endMs: number): void {
    if (this.#requests === 0) this.#fromMs = this.#toMs = startMs;
    this.#sweep(startMs);
    this.#pass(startMs);
    this.#requests++;
    this.#sumMs += endMs - startMs;
    this.#ends.push(endMs, null);
    if (this.#ends.size <= this.#most) return;
    this.#most = this.#ends.size;
    this.#mostAtMs = startMs;
  }

  /** After the last request. */
  finish(): Concurrency {
    this.#sweep(Infinity);
    const spanMs = this.#toMs - this.#fromMs;
    const isEmpty = !(spanMs > 0);
    const arrivalsPerSecond = isEmpty ? 0 : (1000 * this.#requests) / spanMs;
    const meanMs = this.#requests === 0 ? 0 : this.#sumMs / this.#requests;
    const of = (share: number): number => (isEmpty ? this.#most : this.#underWay.quantile(share));
    return {
      requests: this.#requests,
      arrivalsPerSecond,
      meanMs,
      concurrency: (arrivalsPerSecond * meanMs) / 1000,
      measuredMean: isEmpty ? 0 : this.#underWay.mean,
      most: this.#most,
      mostAtMs: this.#requests === 0 ? null : this.#mostAtMs,
      p50: of(0.5),
      p90: of(0.9),
      p99: of(0.99),
    };
  }

  /** Lets all go that end before this moment. */
  #sweep(beforeMs: number): void {
    while (this.#ends.nextMs < beforeMs) {
      this.#pass(this.#ends.nextMs);
      this.#ends.pop();
    }
  }

  #pass(toMs: number): void {
    this.#underWay.add(this.#ends.size, toMs - this.#toMs);
    this.#toMs = toMs;
  }
}
