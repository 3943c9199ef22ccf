/**
 * Rows of one table in memory, joined as the store joins them: those of one time and of the same
 * names are one, whose numbers are sums or maxima.
 */
import type { Filter } from '../store/filter.js';

/** Which columns of a table are told apart by, added up, and of which the largest counts. */
export interface Shape {
  readonly time: 'bucket' | 'minute';
  readonly names: readonly string[];
  readonly sums: readonly string[];
  readonly maxima: readonly string[];
}

/** What rows of the same names were joined to; the sums first. */
export interface Joined {
  readonly names: readonly string[];
  readonly numbers: number[];
}

export class JoinedRows {
  readonly #shape: Shape;
  readonly #most: number;
  readonly #byTime = new Map<number, Map<string, Joined>>();

  /** @param most names at one time; beyond that, new ones are left out */
  constructor(shape: Shape, most = Infinity) {
    this.#shape = shape;
    this.#most = most;
  }

  get newestMs(): number | null {
    return this.#byTime.size === 0 ? null : Math.max(...this.#byTime.keys());
  }

  add(columns: readonly string[], row: readonly unknown[]): void {
    const { time, names, sums, maxima } = this.#shape;
    const at = (column: string): unknown => row[columns.indexOf(column)];
    const ms = Number(at(time)) * 1000;
    let joined = this.#byTime.get(ms);
    if (joined === undefined) this.#byTime.set(ms, (joined = new Map<string, Joined>()));
    const own = names.map((column) => String(at(column)));
    const numbers = [...sums, ...maxima].map((column) => Number(at(column)));
    this.#join(joined, { names: own, numbers }, this.#most);
  }

  /** Of all times asked for, oldest first. */
  in({ instance, sinceMs = -Infinity, untilMs = Infinity }: Filter): [number, Joined][] {
    return [...this.#byTime.entries()]
      .filter(([ms]) => ms >= sinceMs && ms < untilMs)
      .sort(([a], [b]) => a - b)
      .flatMap(([ms, joined]) => Array.from(joined.values(), (one): [number, Joined] => [ms, one]))
      .filter(([, { names }]) => instance === undefined || names[0] === instance);
  }

  /** The same, joined over time. */
  over(filter: Filter): Joined[] {
    const all = new Map<string, Joined>();
    for (const [, joined] of this.in(filter)) this.#join(all, joined, Infinity);
    return [...all.values()];
  }

  forget(beforeMs: number): void {
    for (const ms of this.#byTime.keys()) if (ms < beforeMs) this.#byTime.delete(ms);
  }

  #join(into: Map<string, Joined>, { names, numbers }: Joined, most: number): void {
    const id = JSON.stringify(names);
    const known = into.get(id);
    if (known === undefined) {
      if (into.size < most) into.set(id, { names, numbers: [...numbers] });
      return;
    }
    for (const [i, number] of numbers.entries()) {
      const before = known.numbers[i]!;
      known.numbers[i] = i < this.#shape.sums.length ? before + number : Math.max(before, number);
    }
  }
}
