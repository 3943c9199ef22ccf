/**
 * The reorder buffer: events wait in the millisecond of their estimated decision.
 *
 * A heap would cost a logarithm per request; decision times are integers within a bounded window,
 * so a ring of one list per millisecond gives them back in order for a constant cost, and hands out
 * all events of one millisecond together, which is where ties have to be settled.
 *
 * Lists keep insertion order. A bit per millisecond lets quiet stretches be skipped 32 at a time.
 */
export class Calendar {
  readonly #heads: Int32Array;
  readonly #tails: Int32Array;
  readonly #bits: Uint32Array;
  readonly spanMs: number;
  /** Events before this millisecond have all been taken out. */
  cursorMs = 0;
  size = 0;

  /** @param spanMs longest distance between the cursor and an event; rounded up to a power of two */
  constructor(spanMs: number) {
    let slots = 64;
    while (slots < spanMs) slots *= 2;
    this.spanMs = slots;
    this.#heads = new Int32Array(slots).fill(-1);
    this.#tails = new Int32Array(slots).fill(-1);
    this.#bits = new Uint32Array(slots >>> 5);
  }

  /** Whether `ms` can be put now: not yet passed, and within the span. */
  accepts(ms: number): boolean {
    return ms >= this.cursorMs && ms < this.cursorMs + this.spanMs;
  }

  put(event: number, ms: number, next: Float64Array): void {
    const slot = ms % this.spanMs;
    next[event] = -1;
    const tail = this.#tails[slot]!;
    if (tail < 0) {
      this.#heads[slot] = event;
      this.#bits[slot >>> 5]! |= 1 << (slot & 31);
    } else {
      next[tail] = event;
    }
    this.#tails[slot] = event;
    this.size++;
  }

  /**
   * The first millisecond in [cursorMs, limitMs) that holds events, or limitMs when there is none.
   * The cursor moves there; it never moves back.
   */
  advance(limitMs: number): number {
    if (limitMs <= this.cursorMs) return this.cursorMs;
    if (this.size === 0) {
      this.cursorMs = limitMs;
      return limitMs;
    }
    let ms = this.cursorMs;
    while (ms < limitMs) {
      const slot = ms % this.spanMs;
      const word = this.#bits[slot >>> 5]! >>> (slot & 31);
      if (word !== 0) {
        ms += 31 - Math.clz32(word & -word);
        break;
      }
      ms += 32 - (slot & 31);
    }
    this.cursorMs = Math.min(ms, limitMs);
    return this.cursorMs;
  }

  /** All that waits, in order of time; events of one millisecond in the order they were put. */
  entries(next: Float64Array): { readonly event: number; readonly ms: number }[] {
    const found: { event: number; ms: number }[] = [];
    for (let ms = this.cursorMs; found.length < this.size; ms++) {
      const head = this.#heads[ms % this.spanMs]!;
      for (let event = head; event >= 0; event = next[event]!) found.push({ event, ms });
    }
    return found;
  }

  /** Takes the whole list of the cursor's millisecond: its first event, linked by `next`, or -1. */
  takeList(next: Float64Array): number {
    const slot = this.cursorMs % this.spanMs;
    const head = this.#heads[slot]!;
    if (head < 0) return -1;
    this.#heads[slot] = -1;
    this.#tails[slot] = -1;
    this.#bits[slot >>> 5]! &= ~(1 << (slot & 31));
    for (let event = head; event >= 0; event = next[event]!) this.size--;
    return head;
  }
}
