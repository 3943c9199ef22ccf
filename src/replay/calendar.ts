/**
 * The reorder buffer: events wait in the millisecond of their estimated decision.
 *
 * A heap would cost a logarithm per request; decision times are integers within a bounded window,
 * so a ring of one list per millisecond gives them back in order for a constant cost, and hands out
 * all events of one millisecond together, which is where ties have to be settled.
 *
 * Lists keep insertion order. A bit per millisecond lets quiet stretches be skipped 32 at a time.
 * Members are events of the pool and parked requests, each linked in its own memory.
 */
import type { EventPool } from './event-pool.js';
import { NO_EVENT, type Parked } from './parked.js';

export class Calendar {
  readonly #pool: EventPool;
  readonly #parked: Parked;
  readonly #heads: Int32Array;
  readonly #tails: Int32Array;
  readonly #bits: Uint32Array;
  readonly spanMs: number;
  /** Events before this millisecond have all been taken out. */
  cursorMs = 0;
  size = 0;

  /** @param spanMs longest distance between the cursor and an event; rounded up to a power of two */
  constructor(spanMs: number, pool: EventPool, parked: Parked) {
    this.#pool = pool;
    this.#parked = parked;
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

  /** @param member an event, or the handle of a parked request that is in no list */
  put(member: number, ms: number): void {
    const slot = ms % this.spanMs;
    if (member >= 0) this.#pool.next[member] = NO_EVENT;
    const tail = this.#tails[slot]!;
    if (tail === NO_EVENT) {
      this.#heads[slot] = member;
      this.#bits[slot >>> 5]! |= 1 << (slot & 31);
    } else if (tail >= 0) {
      this.#pool.next[tail] = member;
    } else {
      this.#parked.setNext(tail, member);
    }
    this.#tails[slot] = member;
    this.size++;
  }

  /** The member behind this one in its list. */
  next(member: number): number {
    return member >= 0 ? this.#pool.next[member]! : this.#parked.next(member);
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

  /** All that waits, in order of time; members of one millisecond in the order they were put. */
  entries(): { readonly members: Int32Array; readonly ms: Float64Array } {
    const members = new Int32Array(this.size);
    const times = new Float64Array(this.size);
    let found = 0;
    for (let ms = this.cursorMs; found < this.size; ms++) {
      let member = this.#heads[ms % this.spanMs]!;
      for (; member !== NO_EVENT; member = this.next(member)) {
        members[found] = member;
        times[found++] = ms;
      }
    }
    return { members, ms: times };
  }

  /** Shows members in order of time, up to a moment, but no more than `most` of them. */
  visit(untilMs: number, most: number, show: (member: number) => void): void {
    const endMs = Math.min(untilMs + 1, this.cursorMs + this.spanMs);
    let left = Math.min(most, this.size);
    for (let ms = this.cursorMs; ms < endMs && left > 0; ms++) {
      let member = this.#heads[ms % this.spanMs]!;
      for (; member !== NO_EVENT && left > 0; member = this.next(member), left--) show(member);
    }
  }

  /** Takes the whole list of the cursor's millisecond. @returns its first member, or NO_EVENT */
  takeList(): number {
    const slot = this.cursorMs % this.spanMs;
    const head = this.#heads[slot]!;
    if (head === NO_EVENT) return NO_EVENT;
    this.#heads[slot] = NO_EVENT;
    this.#tails[slot] = NO_EVENT;
    this.#bits[slot >>> 5]! &= ~(1 << (slot & 31));
    return head;
  }
}
