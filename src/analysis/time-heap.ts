/**
 * Things to come, the earliest first; of equal times the one that was put in first.
 */
interface Entry<T> {
  readonly timeMs: number;
  readonly order: number;
  readonly item: T;
}

export class TimeHeap<T> {
  readonly #entries: Entry<T>[] = [];
  #order = 0;

  get size(): number {
    return this.#entries.length;
  }

  /** When the earliest is due; Infinity for none. */
  get nextMs(): number {
    return this.#entries[0]?.timeMs ?? Infinity;
  }

  push(timeMs: number, item: T): void {
    const entries = this.#entries;
    const entry = { timeMs, order: this.#order++, item };
    let at = entries.length;
    entries.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(entry, entries[parent]!)) break;
      entries[at] = entries[parent]!;
      at = parent;
    }
    entries[at] = entry;
  }

  /** Takes the earliest out; undefined when there is none. */
  pop(): T | undefined {
    const entries = this.#entries;
    const first = entries[0];
    const last = entries.pop();
    if (first === undefined || last === undefined) return undefined;
    if (entries.length > 0) this.#sink(last);
    return first.item;
  }

  #sink(entry: Entry<T>): void {
    const entries = this.#entries;
    let at = 0;
    for (let child = 1; child < entries.length; child = 2 * at + 1) {
      if (child + 1 < entries.length && isBefore(entries[child + 1]!, entries[child]!)) child++;
      if (!isBefore(entries[child]!, entry)) break;
      entries[at] = entries[child]!;
      at = child;
    }
    entries[at] = entry;
  }
}

function isBefore<T>(a: Entry<T>, b: Entry<T>): boolean {
  return a.timeMs < b.timeMs || (a.timeMs === b.timeMs && a.order < b.order);
}
