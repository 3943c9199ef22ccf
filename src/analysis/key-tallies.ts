/**
 * Numbers by key, for as many keys as fit: the heaviest are what is asked for in the end.
 *
 * When there are too many, the lighter half goes. A key that was dropped and came again has numbers
 * that are too low, so what is dropped is counted.
 */
export class KeyTallies<T> {
  #dropped = 0;
  readonly #tallies = new Map<string, T>();
  readonly #fresh: () => T;
  readonly #weightOf: (tally: T) => number;
  readonly #most: number;

  /** @param most keys held at one time */
  constructor(fresh: () => T, weightOf: (tally: T) => number, most = 100_000) {
    this.#fresh = fresh;
    this.#weightOf = weightOf;
    this.#most = most;
  }

  get size(): number {
    return this.#tallies.size;
  }

  /** Keys dropped so far, each as often as it was; 0 means that all numbers are exact. */
  get dropped(): number {
    return this.#dropped;
  }

  /** The key's numbers, to be changed by the caller. */
  of(key: string): T {
    const known = this.#tallies.get(key);
    if (known !== undefined) return known;
    if (this.#tallies.size >= this.#most) this.#dropHalf();
    const tally = this.#fresh();
    this.#tallies.set(key, tally);
    return tally;
  }

  /** The heaviest first; of equal ones in order of their keys. */
  heaviest(count: number): [key: string, tally: T][] {
    const all = [...this.#tallies].filter(([, tally]) => this.#weightOf(tally) > 0);
    return all
      .sort(([a, x], [b, y]) => this.#weightOf(y) - this.#weightOf(x) || (a < b ? -1 : 1))
      .slice(0, count);
  }

  #dropHalf(): void {
    const weights = [...this.#tallies.values()].map(this.#weightOf).sort((a, b) => a - b);
    const median = weights[weights.length >> 1]!;
    let left = weights.length >> 1;
    for (const [key, tally] of this.#tallies) {
      if (left === 0) break;
      if (this.#weightOf(tally) > median) continue;
      this.#tallies.delete(key);
      this.#dropped++;
      left--;
    }
  }
}
