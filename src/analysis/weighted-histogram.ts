/**
 * Quantiles of many values in little memory: counts by value, exact below 256, then 128 steps to a
 * doubling, so that a quantile is at most 1 % above the true value.
 *
 * Values are whole and not negative (milliseconds, requests under way). A weight is a number of
 * times, or how long the value stood.
 */
const EXACT_BELOW = 256;
const STEPS_PER_DOUBLING = 128;

export class WeightedHistogram {
  #weights = new Float64Array(EXACT_BELOW);
  #total = 0;
  #sum = 0;
  #largest = 0;

  add(value: number, weight = 1): void {
    if (weight <= 0) return;
    const step = stepOf(value);
    if (step >= this.#weights.length) this.#grow(step);
    this.#weights[step]! += weight;
    this.#total += weight;
    this.#sum += value * weight;
    if (value > this.#largest) this.#largest = value;
  }

  /** Of all weights. */
  get total(): number {
    return this.#total;
  }

  /** NaN of nothing. */
  get mean(): number {
    return this.#sum / this.#total;
  }

  /** Exact; 0 of nothing. */
  get largest(): number {
    return this.#largest;
  }

  /**
   * The smallest value that has at least this share of the weight at or below it.
   *
   * @param share 0 to 1
   * @returns NaN of nothing
   */
  quantile(share: number): number {
    if (this.#total === 0) return NaN;
    // Sums of fractions miss the whole by a hair.
    const wanted = share * this.#total * (1 - 1e-12);
    let below = 0;
    for (let step = 0; step < this.#weights.length; step++) {
      below += this.#weights[step]!;
      if (below >= wanted && below > 0) return Math.min(this.#largest, highestOf(step));
    }
    return this.#largest;
  }

  #grow(step: number): void {
    const longer = new Float64Array(Math.max(step + 1, this.#weights.length * 2));
    longer.set(this.#weights);
    this.#weights = longer;
  }
}

function stepOf(value: number): number {
  if (value < EXACT_BELOW) return Math.max(0, Math.floor(value));
  const doublings = Math.floor(Math.log2(value / EXACT_BELOW));
  const base = EXACT_BELOW * 2 ** doublings;
  const within = Math.floor(((value - base) / base) * STEPS_PER_DOUBLING);
  return EXACT_BELOW + doublings * STEPS_PER_DOUBLING + within;
}

/** The largest whole value of a step. */
function highestOf(step: number): number {
  if (step < EXACT_BELOW) return step;
  const above = step - EXACT_BELOW;
  const base = EXACT_BELOW * 2 ** Math.floor(above / STEPS_PER_DOUBLING);
  return base + ((above % STEPS_PER_DOUBLING) + 1) * (base / STEPS_PER_DOUBLING) - 1;
}
