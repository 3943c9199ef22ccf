/**
 * The requests of one key that lie so close together that their order is not certain, judged in one
 * sweep: each one's excess, its bounds, and what stands in the key's node afterwards.
 *
 * Excess follows ngx_http_limit_req_lookup(). Order is settled by what is honest to use: the error
 * log (its lines are written in decision order), the connection, and the arithmetic itself. An
 * error-log line states its request's excess to the thousandth, and every charge is exactly one
 * request; so a line tells how many charges came before it, and requests that left no line are
 * moved to the side of it where they must have been.
 *
 * What is left open widens the bounds: each request that may as well have come before counts one
 * request up, each one that may as well have come after counts one down.
 *
 * Units: thousandths of a request, milliseconds. Slots are event + position.
 */
import { elapsedMs, excessAfter, lastAfter } from '../limit-req/arithmetic.js';
import type { EventPool } from './event-pool.js';
import type { LimitRow } from './limit-table.js';
import { isAccepted, isRejected, STATUS } from './status.js';
import type { ZoneReplay } from './zone-replay.js';

const ONE_REQUEST = 1000;
/** FLAG.openOrder of the engine, which imports this file. */
const OPEN_ORDER = 4096;
/** FLAG.inferred of the engine. */
const INFERRED = 128;
/** Beyond this a cluster is cut; its requests are then judged in the order found. */
export const MOST_IN_CLUSTER = 96;
/** Events whose interval is no longer than this were decided when they were created. */
export const NARROW_MS = 1;
/** How often a cluster's order is corrected. */
const MOVES_PER_EVENT = 4;
/** Estimates are never this far off: a clock was set. */
const FAR_MS = 10_000;
/** How far a last charge's estimated time may be from nginx's clock. */
const CLOCK_MS = 2;

/** What the log says a request did to a limit. */
const ROLE = { charged: 0, rejectedHere: 1, lookedUp: 2, open: 3 } as const;

export class KeySweep {
  readonly #pool: EventPool;
  /** Clocks of two workers, as cached by each, may differ by this much. */
  readonly skewMs: number;

  readonly #events = new Int32Array(MOST_IN_CLUSTER);
  readonly #slots = new Int32Array(MOST_IN_CLUSTER);
  readonly #roles = new Uint8Array(MOST_IN_CLUSTER);
  readonly #anchors = new Float64Array(MOST_IN_CLUSTER);
  readonly #before = new Int32Array(MOST_IN_CLUSTER);
  readonly #after = new Int32Array(MOST_IN_CLUSTER);
  readonly #solid = new Uint8Array(MOST_IN_CLUSTER);
  #count = 0;
  #openSlots: readonly number[] | undefined;
  #startExcess = 0;
  #startLast = 0;
  /** The key's excess is known to less than a request, so that charges can be counted. */
  #isCountSure = false;

  // The key's state while it is swept.
  #excess = 0;
  #last = 0;
  #low = 0;
  #high = 0;
  #rate = 0;

  /** Judge the next request without its neighbours: the node may be gone before they come. */
  isAlone = false;

  constructor(pool: EventPool, skewMs: number) {
    this.#pool = pool;
    this.skewMs = skewMs;
  }

  /**
   * Judges the cluster that begins at `firstSlot` of the key's chain, against the node's state.
   * Fills excess, bounds and slotState of each slot, and leaves the node as the last one did.
   *
   * @param limitOf the limit that a slot stands for
   */
  sweep(
    zone: ZoneReplay,
    node: number,
    firstSlot: number,
    limitOf: (slot: number) => LimitRow,
  ): void {
    if (this.isAlone || this.#pool.nextInKey[firstSlot]! < 0) this.#gatherOne(firstSlot);
    else this.#gather(firstSlot);
    this.#openSlots =
      zone.openSlots.size === 0 ? undefined : zone.openSlots.get(this.#pool.keyId[firstSlot]!);
    this.#load(zone, node);
    if (this.#count > 1) {
      this.#orderLines();
      this.#settle(limitOf);
      this.#load(zone, node);
    }
    for (let i = 0; i < this.#count; i++) this.#judge(i, limitOf(this.#slots[i]!), zone, i === 0);
    if (this.#count > 1) this.#openFloor(zone, node, limitOf(firstSlot));
    this.#store(zone, node);
  }

  /**
   * After a reload that changed the rate, nginx lets all the time since the last charge drain at the
   * new one; the bounds, which stand for that time at the old rate, widen by its uncertainty.
   */
  #changeRate(rateMilliRps: number): void {
    const old = this.#rate;
    this.#rate = rateMilliRps;
    if (old === 0) return;
    const spread = (Math.abs(rateMilliRps - old) * CLOCK_MS) / 1000;
    this.#low -= spread;
    this.#high += spread;
  }

  #load(zone: ZoneReplay, node: number): void {
    this.#excess = zone.memory.excessMilliReq[node]!;
    this.#last = zone.memory.lastMs[node]!;
    this.#low = zone.low[node]!;
    this.#high = zone.high[node]!;
    this.#rate = zone.rate[node]!;
  }

  #store(zone: ZoneReplay, node: number): void {
    zone.memory.excessMilliReq[node] = this.#excess;
    zone.memory.lastMs[node] = this.#last;
    zone.low[node] = this.#low;
    zone.high[node] = this.#high;
    zone.rate[node] = this.#rate;
  }

  #gatherOne(slot: number): void {
    const pool = this.#pool;
    const event = pool.eventOf(slot);
    const position = slot - event;
    this.#events[0] = event;
    this.#slots[0] = slot;
    this.#roles[0] = this.#roleOf(event, position);
    this.#anchors[0] = pool.anchorSlot[event] === position ? pool.anchorMilliReq[event]! : NaN;
    this.#count = 1;
  }

  #gather(firstSlot: number): void {
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
      this.#events[count] = event;
      this.#slots[count] = slot;
      this.#roles[count] = this.#roleOf(event, slot - event);
      this.#anchors[count] =
        pool.anchorSlot[event] === slot - event ? pool.anchorMilliReq[event]! : NaN;
      count++;
      const isNarrow = pool.hiMs[event]! - pool.loMs[event]! <= NARROW_MS;
      const reach = isNarrow ? pool.estMs[event]! : pool.hiMs[event]!;
      reachMs = Math.max(reachMs, reach + this.skewMs);
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

  #isSettled(a: number, b: number): boolean {
    return this.#isOrderSettled(this.#events[a]!, this.#events[b]!);
  }

  /** Whether the order of two events is beyond doubt, given that i stands before j. */
  #isOrderSettled(i: number, j: number): boolean {
    const pool = this.#pool;
    if (pool.errorRank[i]! >= 0 && pool.errorRank[j]! >= 0) return true;
    if (pool.connection[i]! >= 0 && pool.connection[i] === pool.connection[j]) return true;
    const isOneWorker = pool.pid[i] === pool.pid[j] || pool.pid[i]! < 0 || pool.pid[j]! < 0;
    const skew = isOneWorker ? 0 : this.skewMs;
    const isNarrow =
      pool.hiMs[i]! - pool.loMs[i]! <= NARROW_MS && pool.hiMs[j]! - pool.loMs[j]! <= NARROW_MS;
    // Both clocks of one worker are read at once, so the truncated wall clock orders its turns.
    return isNarrow ? pool.estMs[j]! > pool.estMs[i]! + skew : pool.loMs[j]! > pool.hiMs[i]! + skew;
  }

  /** Lines stand in lock order, which the clocks of two workers need not follow. */
  #orderLines(): void {
    const ranks = this.#pool.errorRank;
    for (let i = 1; i < this.#count; i++) {
      const rank = ranks[this.#events[i]!]!;
      if (rank < 0) continue;
      let to = i;
      for (let j = i - 1; j >= 0; j--) {
        const other = ranks[this.#events[j]!]!;
        if (other >= 0 && other < rank) break;
        if (other > rank) to = j;
      }
      if (to < i) this.#move(i, to);
    }
  }

  /** Moves requests without a line across the lines, then counts what stays open. */
  #settle(limitOf: (slot: number) => LimitRow): void {
    let previousAnchor = -1;
    this.#startExcess = this.#excess;
    this.#startLast = this.#last;
    this.#restart(limitOf, 0);
    // Times known to the second let lines be moved to and fro without end.
    let movesLeft = MOVES_PER_EVENT * this.#count;
    for (let i = 0; i < this.#count; i++) {
      const limit = limitOf(this.#slots[i]!);
      const anchor = this.#anchors[i]!;
      if (!Number.isNaN(anchor) && movesLeft > 0) {
        const shift = this.#chargesMissing(i, anchor, limit);
        const moved =
          shift > 0 ? this.#pull(i, shift) : shift < 0 ? this.#push(i, previousAnchor, -shift) : 0;
        if (moved > 0) {
          movesLeft--;
          // The sweep so far saw another order: begin again at the moved ones' new place.
          this.#restart(limitOf, i + (shift > 0 ? moved : -moved));
          i += shift > 0 ? moved : -moved;
        }
        previousAnchor = i;
      } else if (Number.isNaN(anchor) && movesLeft > 0) {
        const moved = this.#makeRoom(i, previousAnchor, limit, limitOf);
        if (moved > 0) {
          movesLeft--;
          this.#restart(limitOf, i - moved);
          i -= moved;
        }
      }
      this.#advance(i, limit);
    }
    this.#markSolid(limitOf);
    this.#countOpen();
  }

  /** How many charges more (or fewer) before event i would explain the excess that its line states. */
  #chargesMissing(i: number, anchor: number, limit: LimitRow): number {
    if (!this.#isCountSure) return 0;
    const now = this.#pool.estMs[this.#events[i]!]!;
    const excess = excessAfter(this.#excess, this.#last, limit.rateMilliRps, now);
    const shift = Math.round((anchor - excess) / ONE_REQUEST);
    if (shift === 0) return 0;
    const tolerance = Math.min(ONE_REQUEST / 2 - 1, this.#clockSpread(this.#events[i]!, limit));
    return Math.abs(anchor - excess - shift * ONE_REQUEST) <= tolerance ? shift : 0;
  }

  /** Moves up to `wanted` later charges without a line in front of event i. */
  #pull(i: number, wanted: number): number {
    let moved = 0;
    for (let j = i + 1; j < this.#count && moved < wanted; j++) {
      const canMove = this.#isMovable(j)
        ? !this.#isSettled(i + moved, j)
        : this.#isMisplacedLine(i + moved, j);
      if (!canMove) continue;
      this.#move(j, i + moved);
      moved++;
    }
    return moved;
  }

  /** Moves up to `wanted` earlier charges without a line behind event i, latest first. */
  #push(i: number, previousAnchor: number, wanted: number): number {
    let moved = 0;
    for (let j = i - 1; j > previousAnchor && moved < wanted; j--) {
      if (!this.#isMovable(j) || this.#isSettled(j, i - moved)) continue;
      this.#move(j, i);
      moved++;
    }
    return moved > 0 ? moved : this.#moveBack(i, wanted);
  }

  /**
   * A request that passed where it would have been delayed, had all before it come before it: lets
   * those go first that could bear more, latest first.
   */
  #makeRoom(
    i: number,
    previousAnchor: number,
    limit: LimitRow,
    limitOf: (slot: number) => LimitRow,
  ): number {
    if (!this.#isCountSure || this.#roles[i] !== ROLE.charged) return 0;
    const event = this.#events[i]!;
    const most = this.#ceiling(i, limit);
    const now = this.#pool.estMs[event]!;
    const excess = excessAfter(this.#excess, this.#last, limit.rateMilliRps, now);
    const wanted = Math.ceil((excess - most - this.#clockSpread(event, limit)) / ONE_REQUEST);
    let moved = 0;
    for (let j = i - 1; j > previousAnchor && moved < wanted; j--) {
      if (!this.#isMovable(j) || this.#isSettled(j, i - moved)) continue;
      if (this.#ceiling(j, limitOf(this.#slots[j]!)) <= most) continue;
      this.#move(j, i);
      moved++;
    }
    return moved;
  }

  /** The most that the excess of event i, which was let through, can have been. */
  #ceiling(i: number, limit: LimitRow): number {
    const { burstMilliReq: burst, delayMilliReq: delay, rateMilliRps: rate } = limit;
    const pool = this.#pool;
    const event = this.#events[i]!;
    if (pool.logged[event] !== STATUS.passed || pool.flags[event]! & INFERRED) return burst;
    // A delay of less than a millisecond is none.
    return Math.min(burst, delay + Math.ceil(rate / 1000) - 1);
  }

  /**
   * Two workers write their lines after they let go of the zone's lock, so once in a while two lines
   * stand the wrong way round. A line with far too low an excess belongs before others' charges.
   */
  #moveBack(i: number, wanted: number): number {
    let passed = 0;
    for (let j = i - 1; j >= 0 && this.#areOfTwoWorkers(j, i); j--) {
      if (this.#roles[j] === ROLE.charged) passed++;
      if (passed < wanted) continue;
      this.#move(i, j);
      return i - j;
    }
    return 0;
  }

  /** A later line of another worker whose lower excess shows that it was charged first. */
  #isMisplacedLine(i: number, j: number): boolean {
    const isCharge = this.#roles[j] === ROLE.charged;
    return isCharge && this.#areOfTwoWorkers(i, j) && this.#anchors[j]! < this.#anchors[i]!;
  }

  #areOfTwoWorkers(a: number, b: number): boolean {
    const pool = this.#pool;
    const i = this.#events[a]!;
    const j = this.#events[b]!;
    if (pool.pid[i]! < 0 || pool.pid[j]! < 0 || pool.pid[i] === pool.pid[j]) return false;
    return Math.abs(pool.estMs[i]! - pool.estMs[j]!) <= this.skewMs;
  }

  #isMovable(i: number): boolean {
    return this.#roles[i] === ROLE.charged && this.#pool.errorRank[this.#events[i]!]! < 0;
  }

  #move(from: number, to: number): void {
    const event = this.#events[from]!;
    const slot = this.#slots[from]!;
    const role = this.#roles[from]!;
    const anchor = this.#anchors[from]!;
    const step = from < to ? 1 : -1;
    for (let k = from; k !== to; k += step) {
      this.#events[k] = this.#events[k + step]!;
      this.#slots[k] = this.#slots[k + step]!;
      this.#roles[k] = this.#roles[k + step]!;
      this.#anchors[k] = this.#anchors[k + step]!;
    }
    this.#events[to] = event;
    this.#slots[to] = slot;
    this.#roles[to] = role;
    this.#anchors[to] = anchor;
  }

  #restart(limitOf: (slot: number) => LimitRow, end: number): void {
    this.#excess = this.#startExcess;
    this.#last = this.#startLast;
    this.#isCountSure = this.#high - this.#low <= ONE_REQUEST / 2;
    for (let k = 0; k < end; k++) this.#advance(k, limitOf(this.#slots[k]!));
  }

  /** How much of a request the uncertainty of event's time and of the last charge's amounts to. */
  #clockSpread(event: number, limit: LimitRow): number {
    const spreadMs = this.#pool.hiMs[event]! - this.#pool.loMs[event]! + 2;
    return (limit.rateMilliRps * spreadMs) / 1000 + 2;
  }

  /** The point state after event i, without bounds: enough to count charges. */
  #advance(i: number, limit: LimitRow): void {
    const event = this.#events[i]!;
    const now = this.#pool.estMs[event]!;
    const anchor = this.#anchors[i]!;
    const isCharged = this.#roles[i] === ROLE.charged;
    // A line states what no count of earlier requests need find out again.
    if (anchor > 0 && this.#clockSpread(event, limit) < ONE_REQUEST / 4) {
      this.#excess = isCharged ? anchor : anchor - ONE_REQUEST;
      this.#last = lastAfter(this.#last, now);
      this.#isCountSure = true;
      return;
    }
    if (!isCharged) return;
    this.#excess = excessAfter(this.#excess, this.#last, limit.rateMilliRps, now);
    this.#last = lastAfter(this.#last, now);
  }

  /**
   * A line is solid when no request could change sides: no charge without a line, of uncertain
   * order towards it, on one of its sides. An exchange of two across it would not show. And its
   * excess must be what the charges before it amount to, more closely than the clock could blur.
   */
  #markSolid(limitOf: (slot: number) => LimitRow): void {
    this.#restart(limitOf, 0);
    for (let i = 0; i < this.#count; i++) {
      const limit = limitOf(this.#slots[i]!);
      const isExplained = this.#isExplained(i, limit);
      this.#advance(i, limit);
      this.#solid[i] = 0;
      if (!isExplained) continue;
      let left = 0;
      let right = 0;
      for (let j = 0; j < this.#count; j++) {
        if (j === i || !this.#isMovable(j)) continue;
        if (j < i ? this.#isSettled(j, i) : this.#isSettled(i, j)) continue;
        if (j < i) left++;
        else right++;
      }
      if (left === 0 || right === 0) this.#solid[i] = 1;
    }
  }

  /** Event i has a line, and its excess is that of the charges before it. */
  #isExplained(i: number, limit: LimitRow): boolean {
    const anchor = this.#anchors[i]!;
    const event = this.#events[i]!;
    const spread = this.#clockSpread(event, limit);
    if (Number.isNaN(anchor) || !this.#isCountSure || spread >= ONE_REQUEST / 2) return false;
    const now = this.#pool.estMs[event]!;
    const excess = excessAfter(this.#excess, this.#last, limit.rateMilliRps, now);
    return Math.abs(anchor - excess) <= spread;
  }

  #countOpen(): void {
    for (let i = 0; i < this.#count; i++) {
      let before = 0;
      let after = 0;
      // Which side of a solid line a request is on shows by its charge alone.
      const shows = this.#roles[i] === ROLE.charged;
      for (let j = i - 1; j >= 0 && !this.#solid[i] && !(shows && this.#solid[j]); j--) {
        if (this.#mayCharge(j) && !this.#isSettled(j, i)) before++;
      }
      for (let j = i + 1; j < this.#count && !this.#solid[i]; j++) {
        if (shows && this.#solid[j]) break;
        if (this.#mayCharge(j) && !this.#isSettled(i, j)) after++;
      }
      this.#before[i] = before;
      this.#after[i] = after;
    }
  }

  #mayCharge(i: number): boolean {
    return this.#roles[i] === ROLE.charged || this.#roles[i] === ROLE.open;
  }

  /** Excess and bounds of event i, then what it leaves. */
  #judge(i: number, limit: LimitRow, zone: ZoneReplay, isFirst: boolean): void {
    const pool = this.#pool;
    const event = this.#events[i]!;
    const slot = this.#slots[i]!;
    const { rateMilliRps: rate } = limit;
    if (rate !== this.#rate) this.#changeRate(rate);
    const now = pool.estMs[event]!;
    const lo = pool.loMs[event]!;
    const hi = pool.hiMs[event]!;
    let excess = excessAfter(this.#excess, this.#last, rate, now);
    const open = this.#count > 1;
    const before = (open ? this.#before[i]! : 0) + pool.openCharges[slot]!;
    let after = open ? this.#after[i]! : 0;
    if (this.#openSlots !== undefined) after += this.#countOpenSlots(event, slot);
    if (this.#roles[i] === ROLE.open) after += this.#countLaterTies(event, slot);
    let low = this.#low - (rate * elapsedMs(this.#last, hi)) / 1000 + ONE_REQUEST * (1 - before);
    let high = this.#high - (rate * sinceEstimate(this.#last, lo)) / 1000 + ONE_REQUEST;
    // Truncation leaves up to a thousandth more than the exact sum.
    if (rate % 1000 !== 0) high += 1;
    // Had others come first, the first of them would have found the key idle as well.
    high = Math.max(high, 0) + ONE_REQUEST * after;
    if (isFirst) {
      if (zone.maybeEvicted) low = 0;
      if (zone.ghost !== null) high = Math.max(high, this.#ghostHigh(zone, rate, lo));
    }
    low = low < 0 ? 0 : low;
    high = high < 0 ? 0 : high;
    if (excess < low) excess = Math.ceil(low);
    if (excess > high) excess = Math.floor(high);
    pool.priorMilliReq[slot] = excess;
    pool.priorLowMilliReq[slot] = low;
    pool.priorHighMilliReq[slot] = high;
    pool.slotState[slot] = 1;
    if (before + after > 0) pool.flags[event]! |= OPEN_ORDER;
    if (isFirst) this.#reconcileMemory(i, limit, zone, now);
    this.#learn(i, limit, before + after > 0);
    this.#publish(i, limit, low, high, excess);
    if (this.#roles[i] !== ROLE.charged) return;
    this.#charge(limit, now, lo, hi);
    if (this.#openSlots !== undefined) this.#noteOpenCharge(event);
  }

  /**
   * Judges a request that nginx let pass at once, with nobody of its key near it: nearly all there
   * are. The same sums as #judge(), without the cluster.
   *
   * @returns false, with nothing changed, when it takes more than that
   */
  judgeAlone(zone: ZoneReplay, node: number, event: number, limit: LimitRow): boolean {
    const pool = this.#pool;
    const { memory } = zone;
    const { rateMilliRps, burstMilliReq, delayMilliReq } = limit;
    const oldRate = zone.rate[node]!;
    if (oldRate !== rateMilliRps && oldRate !== 0) return false;
    const rate = rateMilliRps / 1000;
    const last = memory.lastMs[node]!;
    const stored = memory.excessMilliReq[node]!;
    const now = pool.estMs[event]!;
    const lo = pool.loMs[event]!;
    const hi = pool.hiMs[event]!;
    const truncation = rateMilliRps % 1000 === 0 ? 0 : 1;
    const zoneLow = zone.low[node]!;
    const zoneHigh = zone.high[node]!;
    const low = Math.max(0, zoneLow - rate * elapsedMs(last, hi) + ONE_REQUEST);
    const high = Math.max(0, zoneHigh - rate * elapsedMs(last, lo) + ONE_REQUEST + truncation);
    // Nothing to learn, and no verdict but one.
    if (high > burstMilliReq || high > delayMilliReq) return false;
    let excess = excessAfter(stored, last, rateMilliRps, now);
    const charged = excess;
    if (excess < low) excess = Math.ceil(low);
    if (excess > high) excess = Math.floor(high);
    pool.priorMilliReq[event] = excess;
    pool.priorLowMilliReq[event] = low;
    pool.priorHighMilliReq[event] = high;
    pool.slotState[event] = 1;
    pool.lowMilliReq[event] = low;
    pool.highMilliReq[event] = high;
    const shown = Math.min(Math.max(excess, Math.ceil(low)), Math.floor(high));
    pool.excessMilliReq[event] = shown < low ? low : shown;
    const ms = elapsedMs(last, now);
    zone.low[node] = Math.max(zoneLow - rate * ms + ONE_REQUEST, -rate * Math.max(0, now - lo));
    zone.high[node] = Math.max(
      zoneHigh - rate * ms + ONE_REQUEST + truncation,
      rate * Math.max(0, hi - now),
    );
    zone.rate[node] = rateMilliRps;
    memory.excessMilliReq[node] = charged;
    memory.lastMs[node] = lastAfter(last, now);
    return true;
  }

  /**
   * The same for a request decided at `now` or in the millisecond behind it, that is no event.
   *
   * @returns the excess that EventPool.excessMilliReq would hold; -1, with nothing changed, when it
   *   takes more than that
   */
  passAlone(zone: ZoneReplay, node: number, now: number, limit: LimitRow): number {
    const { memory } = zone;
    const { rateMilliRps, burstMilliReq, delayMilliReq } = limit;
    const oldRate = zone.rate[node]!;
    if (oldRate !== rateMilliRps && oldRate !== 0) return -1;
    const rate = rateMilliRps / 1000;
    const last = memory.lastMs[node]!;
    const truncation = rateMilliRps % 1000 === 0 ? 0 : 1;
    const zoneLow = zone.low[node]!;
    const zoneHigh = zone.high[node]!;
    const ms = elapsedMs(last, now);
    const low = Math.max(0, zoneLow - rate * elapsedMs(last, now + 1) + ONE_REQUEST);
    const high = Math.max(0, zoneHigh - rate * ms + ONE_REQUEST + truncation);
    if (high > burstMilliReq || high > delayMilliReq) return -1;
    const charged = excessAfter(memory.excessMilliReq[node]!, last, rateMilliRps, now);
    let excess = charged;
    if (excess < low) excess = Math.ceil(low);
    if (excess > high) excess = Math.floor(high);
    zone.low[node] = Math.max(zoneLow - rate * ms + ONE_REQUEST, 0);
    zone.high[node] = Math.max(zoneHigh - rate * ms + ONE_REQUEST + truncation, rate);
    zone.rate[node] = rateMilliRps;
    memory.excessMilliReq[node] = charged;
    memory.lastMs[node] = lastAfter(last, now);
    const shown = Math.min(Math.max(excess, Math.ceil(low)), Math.floor(high));
    return shown < low ? low : shown;
  }

  /** Charges an open request, once all of its limits have let it pass. */
  chargeLater(zone: ZoneReplay, node: number, event: number, limit: LimitRow): void {
    const pool = this.#pool;
    this.#load(zone, node);
    this.#charge(limit, pool.estMs[event]!, pool.loMs[event]!, pool.hiMs[event]!);
    this.#store(zone, node);
  }

  /** Requests judged later that may have been decided before this one. */
  #countOpenSlots(event: number, slot: number): number {
    const pool = this.#pool;
    let count = 0;
    for (const other of this.#openSlots!) {
      if (other === slot || pool.slotState[other] !== 0) continue;
      const otherEvent = pool.eventOf(other);
      if (pool.loMs[otherEvent]! > pool.hiMs[event]! || this.#isInCluster(other)) continue;
      if (isRejected(pool.logged[otherEvent]!) || this.#isOrderSettled(event, otherEvent)) continue;
      count++;
    }
    return count;
  }

  /** Tells the requests judged later that a charge went ahead which may as well have come after. */
  #noteOpenCharge(event: number): void {
    const pool = this.#pool;
    for (const other of this.#openSlots!) {
      if (pool.slotState[other] !== 0 || this.#isInCluster(other)) continue;
      if (!this.#isOrderSettled(event, pool.eventOf(other))) pool.openCharges[other]!++;
    }
  }

  #isInCluster(slot: number): boolean {
    for (let i = 0; i < this.#count; i++) if (this.#slots[i] === slot) return true;
    return false;
  }

  /** Requests of unknown outcome that stand behind this one and may have come before it. */
  #countLaterTies(event: number, slot: number): number {
    const pool = this.#pool;
    let count = 0;
    for (let next = pool.nextInKey[slot]!; next >= 0; next = pool.nextInKey[next]!) {
      const other = pool.eventOf(next);
      if (this.#isOrderSettled(event, other)) break;
      count++;
      pool.openCharges[next]!++;
    }
    return count;
  }

  #ghostHigh(zone: ZoneReplay, rate: number, lo: number): number {
    const ghost = zone.ghost!;
    return ghost.highMilliReq - (rate * elapsedMs(ghost.lastMs, lo)) / 1000 + ONE_REQUEST + 1;
  }

  /** Where the log shows that nginx had (or had not) forgotten the key, the node follows. */
  #reconcileMemory(i: number, limit: LimitRow, zone: ZoneReplay, now: number): void {
    const anchor = this.#anchors[i]!;
    const isLimited = this.#roles[i] === ROLE.rejectedHere || anchor > 0;
    const ghost = zone.ghost;
    if (ghost !== null && zone.isFresh && isLimited) {
      this.#excess = ghost.excessMilliReq;
      this.#last = ghost.lastMs;
      this.#low = ghost.lowMilliReq;
      this.#high = ghost.highMilliReq;
    } else if (zone.maybeEvicted && this.#roles[i] === ROLE.charged && Number.isNaN(anchor)) {
      const low =
        this.#low - (limit.rateMilliRps * elapsedMs(this.#last, now)) / 1000 + ONE_REQUEST;
      if (low <= limit.burstMilliReq) return;
      this.#excess = 0;
      this.#last = 0;
      this.#low = 0;
      this.#high = 0;
    }
  }

  /** The line's excess, or the outcome alone, narrows (or corrects) the key's state. */
  #learn(i: number, limit: LimitRow, isOpen: boolean): void {
    const pool = this.#pool;
    const event = this.#events[i]!;
    const anchor = this.#anchors[i]!;
    const rate = limit.rateMilliRps / 1000;
    const sinceEst = elapsedMs(this.#last, pool.estMs[event]!);
    const sinceLo = sinceEstimate(this.#last, pool.loMs[event]!);
    const sinceHi = elapsedMs(this.#last, pool.hiMs[event]!);
    if (!Number.isNaN(anchor) && anchor > 0) {
      const base = anchor - ONE_REQUEST;
      this.#narrow(base + rate * sinceLo - 1, base + rate * sinceHi);
      const point = base + Math.trunc(rate * sinceEst);
      this.#excess = Math.min(Math.max(point, Math.ceil(this.#low)), Math.floor(this.#high));
      if (this.#low === this.#high) this.#excess = this.#low;
      return;
    }
    if (isOpen) return;
    const { burstMilliReq: burst } = limit;
    if (this.#roles[i] === ROLE.charged) {
      const most = this.#ceiling(i, limit) - ONE_REQUEST + rate * sinceHi + 1;
      if (this.#high > most) this.#narrow(-Infinity, most);
    } else if (this.#roles[i] === ROLE.rejectedHere) {
      const least = burst + 1 - ONE_REQUEST + rate * sinceLo - 1;
      if (this.#low < least) this.#narrow(least, Infinity);
    }
    if (this.#excess > this.#high) this.#excess = Math.floor(this.#high);
    if (this.#excess < this.#low) this.#excess = Math.ceil(this.#low);
  }

  /** Cuts the bounds to [low, high]; where they contradict each other the log is right. */
  #narrow(low: number, high: number): void {
    const cutLow = Math.max(this.#low, low);
    const cutHigh = Math.min(this.#high, high);
    if (cutLow <= cutHigh) {
      this.#low = cutLow;
      this.#high = cutHigh;
    } else {
      this.#low = low === -Infinity ? high : low;
      this.#high = high === Infinity ? low : high;
    }
  }

  /** The bounds to show: the line's own number, or what the request's outcome leaves of them. */
  #publish(i: number, limit: LimitRow, low: number, high: number, excess: number): void {
    const pool = this.#pool;
    const slot = this.#slots[i]!;
    const anchor = this.#anchors[i]!;
    if (!Number.isNaN(anchor)) {
      pool.excessMilliReq[slot] = anchor;
      pool.lowMilliReq[slot] = anchor;
      pool.highMilliReq[slot] = anchor;
      return;
    }
    const { burstMilliReq: burst } = limit;
    if (this.#roles[i] === ROLE.charged) {
      const most = this.#ceiling(i, limit);
      if (low <= most) high = Math.min(high, most);
    }
    if (this.#roles[i] === ROLE.rejectedHere && high > burst) low = Math.max(low, burst + 1);
    pool.lowMilliReq[slot] = low;
    pool.highMilliReq[slot] = high;
    pool.excessMilliReq[slot] = Math.min(Math.max(excess, Math.ceil(low)), Math.floor(high));
    if (pool.excessMilliReq[slot] < low) pool.excessMilliReq[slot] = low;
  }

  #charge(limit: LimitRow, now: number, lo: number, hi: number): void {
    const rate = limit.rateMilliRps / 1000;
    const ms = elapsedMs(this.#last, now);
    const truncation = limit.rateMilliRps % 1000 === 0 ? 0 : 1;
    this.#low = Math.max(this.#low - rate * ms + ONE_REQUEST, -rate * Math.max(0, now - lo));
    this.#high = Math.max(
      this.#high - rate * ms + ONE_REQUEST + truncation,
      rate * Math.max(0, hi - now),
    );
    this.#excess = excessAfter(this.#excess, this.#last, limit.rateMilliRps, now);
    this.#last = lastAfter(this.#last, now);
  }

  /**
   * Inside a cluster of uncertain times, which request found the key idle is uncertain too; the
   * lower bound must not rest on the order chosen.
   */
  #openFloor(zone: ZoneReplay, node: number, limit: LimitRow): void {
    const pool = this.#pool;
    let firstLo = Infinity;
    let isWide = false;
    let charges = 0;
    for (let i = 0; i < this.#count; i++) {
      const event = this.#events[i]!;
      firstLo = Math.min(firstLo, pool.loMs[event]!);
      if (pool.hiMs[event]! - pool.loMs[event]! > NARROW_MS) isWide = true;
      if (this.#roles[i] === ROLE.charged) charges++;
    }
    if (!isWide || charges === 0) return;
    const rate = limit.rateMilliRps / 1000;
    const start = Math.max(
      zone.low[node]! - rate * elapsedMs(zone.memory.lastMs[node]!, firstLo),
      -ONE_REQUEST,
    );
    const low = start + ONE_REQUEST * charges - rate * (this.#last - firstLo);
    if (low < this.#low) this.#low = low;
  }
}

/**
 * Time since the last charge, for an upper bound. That charge's own time is an estimate; where it
 * lies behind this moment, it may as well have come before it.
 */
function sinceEstimate(lastMs: number, ms: number): number {
  const elapsed = ms - lastMs;
  return elapsed < 0 && elapsed > -FAR_MS ? elapsed : elapsedMs(lastMs, ms);
}
