/**
 * The requests of one key that lie so close together that their order is not certain: which they
 * are, what the log says each one did, and how many others may as well have come before or after.
 *
 * The honest grounds for an order are the error log (its lines are written in decision order), the
 * connection, and clocks that are further apart than they can err. Copies no part of nginx; that
 * both of a worker's clocks are read at once is ngx_time_update().
 *
 * Units: thousandths of a request, milliseconds. Slots are event + position; i and j are places in
 * the cluster.
 *
 * Not here: moving requests across lines by the charges that lines state (charge-order.ts), and
 * the sums that the order leads to (key-sweep.ts).
 */
import { FLAG, NARROW_MS } from './event-flags.js';
import type { EventPool } from './event-pool.js';
import type { LimitRow } from './limit-table.js';
import { isAccepted, isRejected, STATUS } from './status.js';

/** Beyond this a cluster is cut; its requests are then judged in the order found. */
const MOST_IN_CLUSTER = 96;

/** What the log says a request did to a limit. */
export const ROLE = { charged: 0, rejectedHere: 1, lookedUp: 2, open: 3 } as const;

export class KeyCluster {
  readonly #pool: EventPool;
  /** Clocks of two workers, as cached by each, may differ by this much. */
  readonly #skewMs: number;

  readonly events = new Int32Array(MOST_IN_CLUSTER);
  readonly slots = new Int32Array(MOST_IN_CLUSTER);
  readonly roles = new Uint8Array(MOST_IN_CLUSTER);
  /** Excess that a request's line states; NaN without one. */
  readonly anchors = new Float64Array(MOST_IN_CLUSTER);
  /** How many that stand before (after) a request may as well have come after (before) it. */
  readonly before = new Int32Array(MOST_IN_CLUSTER);
  readonly after = new Int32Array(MOST_IN_CLUSTER);
  /** Lines that no request could have changed sides of; told by whoever settles the order. */
  readonly solid = new Uint8Array(MOST_IN_CLUSTER);
  /** How many requests there are; what stands in the arrays beyond is of no meaning. */
  #count = 0;

  constructor(pool: EventPool, skewMs: number) {
    this.#pool = pool;
    this.#skewMs = skewMs;
  }

  get count(): number {
    return this.#count;
  }

  /** Takes the one request that nobody of its key stands near. */
  gatherOne(slot: number): void {
    const pool = this.#pool;
    const event = pool.eventOf(slot);
    const position = slot - event;
    this.events[0] = event;
    this.slots[0] = slot;
    this.roles[0] = this.#roleOf(event, position);
    this.anchors[0] = pool.anchorSlot[event] === position ? pool.anchorMilliReq[event]! : NaN;
    this.#count = 1;
  }

  /** Takes the requests of the key's chain from `firstSlot` on, as far as each may overlap the next. */
  gather(firstSlot: number): void {
    const pool = this.#pool;
    let count = 0;
    let reachMs = -Infinity;
    for (let slot = firstSlot; slot >= 0 && count < MOST_IN_CLUSTER; slot = pool.nextInKey[slot]!) {
      const event = pool.eventOf(slot);
      if (count > 0 && pool.loMs[event]! > reachMs) break;
      if (pool.slotState[slot] !== 0) continue;
      const isOpen = pool.logged[event] === STATUS.unknown;
      // Who was charged is only known once the engine has asked all limits of an open request.
      if (isOpen && count > 0) break;
      this.events[count] = event;
      this.slots[count] = slot;
      this.roles[count] = this.#roleOf(event, slot - event);
      this.anchors[count] =
        pool.anchorSlot[event] === slot - event ? pool.anchorMilliReq[event]! : NaN;
      count++;
      const isNarrow = pool.hiMs[event]! - pool.loMs[event]! <= NARROW_MS;
      const reach = isNarrow ? pool.estMs[event]! : pool.hiMs[event]!;
      reachMs = Math.max(reachMs, reach + this.#skewMs);
      if (isOpen) break;
    }
    this.#count = count;
  }

  #roleOf(event: number, position: number): number {
    const logged = this.#pool.logged[event]!;
    if (isAccepted(logged)) return ROLE.charged;
    if (!isRejected(logged)) return ROLE.open;
    const rejecting = this.#pool.anchorSlot[event]!;
    if (rejecting === position) return ROLE.rejectedHere;
    return ROLE.lookedUp;
  }

  /** Whether the order of a, which stands first, and b is beyond doubt. */
  isSettled(a: number, b: number): boolean {
    return this.isOrderSettled(this.events[a]!, this.events[b]!);
  }

  /** Whether the order of two events is beyond doubt, given that i stands before j. */
  isOrderSettled(i: number, j: number): boolean {
    const pool = this.#pool;
    if (pool.errorRank[i]! >= 0 && pool.errorRank[j]! >= 0) return true;
    if (pool.connection[i]! >= 0 && pool.connection[i] === pool.connection[j]) return true;
    const isOneWorker = pool.pid[i] === pool.pid[j] || pool.pid[i]! < 0 || pool.pid[j]! < 0;
    const skew = isOneWorker ? 0 : this.#skewMs;
    const isNarrow =
      pool.hiMs[i]! - pool.loMs[i]! <= NARROW_MS && pool.hiMs[j]! - pool.loMs[j]! <= NARROW_MS;
    // Both clocks of one worker are read at once, so the truncated wall clock orders its turns.
    return isNarrow ? pool.estMs[j]! > pool.estMs[i]! + skew : pool.loMs[j]! > pool.hiMs[i]! + skew;
  }

  /** Two lines that two workers may have written the wrong way round. */
  areOfTwoWorkers(a: number, b: number): boolean {
    const pool = this.#pool;
    const i = this.events[a]!;
    const j = this.events[b]!;
    if (pool.pid[i]! < 0 || pool.pid[j]! < 0 || pool.pid[i] === pool.pid[j]) return false;
    return Math.abs(pool.estMs[i]! - pool.estMs[j]!) <= this.#skewMs;
  }

  /** A charge without a line. */
  isMovable(i: number): boolean {
    return this.roles[i] === ROLE.charged && this.#pool.errorRank[this.events[i]!]! < 0;
  }

  /** Takes a request out and puts it at another place; those between close up. */
  move(from: number, to: number): void {
    const event = this.events[from]!;
    const slot = this.slots[from]!;
    const role = this.roles[from]!;
    const anchor = this.anchors[from]!;
    const step = from < to ? 1 : -1;
    for (let k = from; k !== to; k += step) {
      this.events[k] = this.events[k + step]!;
      this.slots[k] = this.slots[k + step]!;
      this.roles[k] = this.roles[k + step]!;
      this.anchors[k] = this.anchors[k + step]!;
    }
    this.events[to] = event;
    this.slots[to] = slot;
    this.roles[to] = role;
    this.anchors[to] = anchor;
  }

  /** The most that the excess of event i, which was let through, can have been. */
  ceiling(i: number, limit: LimitRow): number {
    const { burstMilliReq: burst, delayMilliReq: delay, rateMilliRps: rate } = limit;
    const pool = this.#pool;
    const event = this.events[i]!;
    if (pool.logged[event] !== STATUS.passed || pool.flags[event]! & FLAG.inferred) return burst;
    // A delay of less than a millisecond is none.
    return Math.min(burst, delay + Math.ceil(rate / 1000) - 1);
  }

  /** Counts, for each request, those that may as well have come before or after it. */
  countOpen(): void {
    for (let i = 0; i < this.#count; i++) {
      let before = 0;
      let after = 0;
      // Which side of a solid line a request is on shows by its charge alone.
      const shows = this.roles[i] === ROLE.charged;
      for (let j = i - 1; j >= 0 && !this.solid[i] && !(shows && this.solid[j]); j--) {
        if (this.#mayCharge(j) && !this.isSettled(j, i)) before++;
      }
      for (let j = i + 1; j < this.#count && !this.solid[i]; j++) {
        if (shows && this.solid[j]) break;
        if (this.#mayCharge(j) && !this.isSettled(i, j)) after++;
      }
      this.before[i] = before;
      this.after[i] = after;
    }
  }

  #mayCharge(i: number): boolean {
    return this.roles[i] === ROLE.charged || this.roles[i] === ROLE.open;
  }

  /** Requests judged later that may have been decided before this one. */
  countOpenSlots(openSlots: readonly number[], event: number, slot: number): number {
    const pool = this.#pool;
    let count = 0;
    for (const other of openSlots) {
      if (other === slot || pool.slotState[other] !== 0) continue;
      const otherEvent = pool.eventOf(other);
      if (pool.loMs[otherEvent]! > pool.hiMs[event]! || this.#includes(other)) continue;
      if (isRejected(pool.logged[otherEvent]!) || this.isOrderSettled(event, otherEvent)) continue;
      count++;
    }
    return count;
  }

  /** Tells the requests judged later that a charge went ahead which may as well have come after. */
  noteOpenCharge(openSlots: readonly number[], event: number): void {
    const pool = this.#pool;
    for (const other of openSlots) {
      if (pool.slotState[other] !== 0 || this.#includes(other)) continue;
      if (!this.isOrderSettled(event, pool.eventOf(other))) pool.openCharges[other]!++;
    }
  }

  #includes(slot: number): boolean {
    for (let i = 0; i < this.#count; i++) if (this.slots[i] === slot) return true;
    return false;
  }

  /** Requests of unknown outcome that stand behind this one and may have come before it. */
  countLaterTies(event: number, slot: number): number {
    const pool = this.#pool;
    let count = 0;
    for (let next = pool.nextInKey[slot]!; next >= 0; next = pool.nextInKey[next]!) {
      const other = pool.eventOf(next);
      if (this.isOrderSettled(event, other)) break;
      count++;
      pool.openCharges[next]!++;
    }
    return count;
  }
}
