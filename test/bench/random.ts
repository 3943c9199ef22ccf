/**
 * Seeded random numbers for the benchmark's corpus: the same seed gives the same corpus on every
 * machine, which Math.random() cannot do.
 *
 * The generator is xorshift128 (Marsaglia, 2003): four 32-bit words of state, period 2^128 - 1. Good
 * enough to draw traffic from, and no good for secrets.
 */
const UINT32 = 2 ** 32;
const WARM_UP_DRAWS = 16;

export class Random {
  #x: number;
  #y: number;
  #z: number;
  #w: number;

  /** @param seed any integer; only its low 32 bits count */
  constructor(seed: number) {
    this.#x = (seed ^ 0x2545f491) >>> 0;
    this.#y = 0x6c078965;
    this.#z = 0x9d2c5680;
    this.#w = 0x1b873593;
    // Neighbouring seeds differ in few bits at first; some draws spread them.
    for (let i = 0; i < WARM_UP_DRAWS; i++) this.uniform();
  }

  /** In [0, 1), with 32 random bits. */
  uniform(): number {
    const t = this.#x ^ (this.#x << 11);
    this.#x = this.#y;
    this.#y = this.#z;
    this.#z = this.#w;
    this.#w = (this.#w ^ (this.#w >>> 19) ^ t ^ (t >>> 8)) >>> 0;
    return this.#w / UINT32;
  }

  /** An integer in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.uniform() * bound);
  }

  /** The gap to the next arrival of a Poisson process. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.uniform());
  }

  /** Standard normal, by Box and Muller's transform. */
  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    return radius * Math.cos(2 * Math.PI * this.uniform());
  }
}

/** Ranks from 0, of which rank r is drawn in proportion to 1 / (r + 1)^exponent. */
export class Zipf {
  readonly #cumulative: Float64Array;

  constructor(ranks: number, exponent: number) {
    this.#cumulative = new Float64Array(ranks);
    let sum = 0;
    for (let rank = 0; rank < ranks; rank++) {
      sum += (rank + 1) ** -exponent;
      this.#cumulative[rank] = sum;
    }
  }

  draw(random: Random): number {
    const cumulative = this.#cumulative;
    let low = 0;
    let high = cumulative.length - 1;
    const target = random.uniform() * cumulative[high]!;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (cumulative[middle]! > target) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
