/**
 * The requests of one key that lie so close together that their order is not certain, judged in one
 * sweep: each one's excess, its bounds, and what stands in the key's node afterwards.
 *
 * Excess follows ngx_http_limit_req_lookup(), in the order that key-cluster.ts and charge-order.ts
 * find. What they leave open widens the bounds: each request that may as well have come before
 * counts one request up, each one that may as well have come after counts one down.
 *
 * Units: thousandths of a request, milliseconds. Slots are event + position.
 *
 * Not here: the order itself, and the verdict that an excess leads to (verdict.ts).
 */
import { elapsedMs, excessAfter, lastAfter } from '../limit-req/arithmetic.js';
import { ChargeOrder } from './charge-order.js';
import { FLAG, NARROW_MS, WIDE_MS } from './event-flags.js';
import type { EventPool } from './event-pool.js';
import { KeyCluster, ROLE } from './key-cluster.js';
import type { LimitRow } from './limit-table.js';
import type { ZoneReplay } from './zone-replay.js';

const ONE_REQUEST = 1000;
/** Estimates are never this far off: a clock was set. */
const FAR_MS = 10_000;
/** How far a last charge's estimated time may be from nginx's clock. */
const CLOCK_MS = 2;

/** What a lookup found in a key's node. */
export interface FoundExcess {
  excessMilliReq: number;
  lowMilliReq: number;
  highMilliReq: number;
}

export class KeySweep {
  readonly #pool: EventPool;
  readonly #cluster: KeyCluster;
  readonly #order: ChargeOrder;
  #openSlots: readonly number[] | undefined;

  // The key's state while it is swept.
  #excess = 0;
  #last = 0;
  #low = 0;
  #high = 0;
  #rate = 0;

  /** Judge the next request without its neighbours: the node may be gone before they come. */
  isAlone = false;

  readonly #skewMs: number;
  readonly #countAhead: (slot: number, untilMs: number) => number;

  /**
   * @param skewMs clocks of two workers, as cached by each, may differ by this much
   * @param countAhead requests of a slot's key that stand behind the window, up to a moment
   */
  constructor(
    pool: EventPool,
    skewMs: number,
    countAhead: (slot: number, untilMs: number) => number,
  ) {
    this.#pool = pool;
    this.#skewMs = skewMs;
    this.#countAhead = countAhead;
    this.#cluster = new KeyCluster(pool, skewMs);
    this.#order = new ChargeOrder(pool, this.#cluster);
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
    const cluster = this.#cluster;
    if (this.isAlone || this.#pool.nextInKey[firstSlot]! < 0) cluster.gatherOne(firstSlot);
    else cluster.gather(firstSlot);
    this.#openSlots =
      zone.openSlots.size === 0 ? undefined : zone.openSlots.get(this.#pool.keyId[firstSlot]!);
    this.#load(zone, node);
    const { count } = cluster;
    if (count > 1) {
      this.#order.settle(this.#excess, this.#last, this.#high - this.#low, limitOf);
    }
    for (let i = 0; i < count; i++) this.#judge(i, limitOf(cluster.slots[i]!), zone, i === 0);
    if (count > 1) this.#openFloor(zone, node, limitOf(firstSlot));
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

  /** Excess and bounds of event i, then what it leaves. */
  #judge(i: number, limit: LimitRow, zone: ZoneReplay, isFirst: boolean): void {
    const pool = this.#pool;
    const event = this.#cluster.events[i]!;
    const slot = this.#cluster.slots[i]!;
    const { rateMilliRps: rate } = limit;
    if (rate !== this.#rate) this.#changeRate(rate);
    const now = pool.estMs[event]!;
    const lo = pool.loMs[event]!;
    const hi = pool.hiMs[event]!;
    let excess = excessAfter(this.#excess, this.#last, rate, now);
    const open = this.#cluster.count > 1;
    let before = (open ? this.#cluster.before[i]! : 0) + pool.openCharges[slot]!;
    if (zone.earlyCharges.size > 0) before += this.#countEarly(zone, event, slot);
    let after = open ? this.#cluster.after[i]! : 0;
    if (this.#openSlots !== undefined)
      after += this.#cluster.countOpenSlots(this.#openSlots, event, slot);
    const mayBeLater = hi - now > WIDE_MS;
    if (mayBeLater) after += this.#countAhead(slot, hi + this.#skewMs);
    if (this.#cluster.roles[i] === ROLE.open) after += this.#cluster.countLaterTies(event, slot);
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
    if (before + after > 0) pool.flags[event]! |= FLAG.openOrder;
    if (isFirst) this.#reconcileMemory(i, limit, zone, now);
    this.#learn(i, limit, before + after > 0);
    this.#publish(i, limit, low, high, excess);
    if (this.#cluster.roles[i] !== ROLE.charged) return;
    this.#charge(limit, now, lo, hi);
    if (mayBeLater) {
      const charge = { hiMs: hi, pid: pool.pid[event]!, connection: pool.connection[event]! };
      zone.noteEarly(pool.keyId[slot]!, charge, now - this.#skewMs);
    }
    if (this.#openSlots !== undefined) this.#cluster.noteOpenCharge(this.#openSlots, event);
  }

  /** Requests charged before this one that may as well have come after it. */
  #countEarly(zone: ZoneReplay, event: number, slot: number): number {
    const pool = this.#pool;
    const connection = pool.connection[event]!;
    let count = 0;
    for (const early of zone.earlyOf(pool.keyId[slot]!, pool.loMs[event]! - this.#skewMs)) {
      // On one connection the order stands; those of this cluster are counted there.
      if (connection < 0 || early.connection !== connection) count++;
    }
    return count;
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
   * @param found takes the excess and the bounds that the event pool would hold
   * @returns false, with nothing changed, when it takes more than that
   */
  passAlone(
    zone: ZoneReplay,
    node: number,
    now: number,
    limit: LimitRow,
    found: FoundExcess,
  ): boolean {
    const { memory } = zone;
    const { rateMilliRps, burstMilliReq, delayMilliReq } = limit;
    const oldRate = zone.rate[node]!;
    if (oldRate !== rateMilliRps && oldRate !== 0) return false;
    const rate = rateMilliRps / 1000;
    const last = memory.lastMs[node]!;
    const truncation = rateMilliRps % 1000 === 0 ? 0 : 1;
    const zoneLow = zone.low[node]!;
    const zoneHigh = zone.high[node]!;
    const ms = elapsedMs(last, now);
    const low = Math.max(0, zoneLow - rate * elapsedMs(last, now + 1) + ONE_REQUEST);
    const high = Math.max(0, zoneHigh - rate * ms + ONE_REQUEST + truncation);
    if (high > burstMilliReq || high > delayMilliReq) return false;
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
    found.excessMilliReq = shown < low ? low : shown;
    found.lowMilliReq = low;
    found.highMilliReq = high;
    return true;
  }

  /** Charges an open request, once all of its limits have let it pass. */
  chargeLater(zone: ZoneReplay, node: number, event: number, limit: LimitRow): void {
    const pool = this.#pool;
    this.#load(zone, node);
    this.#charge(limit, pool.estMs[event]!, pool.loMs[event]!, pool.hiMs[event]!);
    this.#store(zone, node);
  }

  #ghostHigh(zone: ZoneReplay, rate: number, lo: number): number {
    const ghost = zone.ghost!;
    return ghost.highMilliReq - (rate * elapsedMs(ghost.lastMs, lo)) / 1000 + ONE_REQUEST + 1;
  }

  /** Where the log shows that nginx had (or had not) forgotten the key, the node follows. */
  #reconcileMemory(i: number, limit: LimitRow, zone: ZoneReplay, now: number): void {
    const anchor = this.#cluster.anchors[i]!;
    const isLimited = this.#cluster.roles[i] === ROLE.rejectedHere || anchor > 0;
    const ghost = zone.ghost;
    if (ghost !== null && zone.isFresh && isLimited) {
      this.#excess = ghost.excessMilliReq;
      this.#last = ghost.lastMs;
      this.#low = ghost.lowMilliReq;
      this.#high = ghost.highMilliReq;
    } else if (
      zone.maybeEvicted &&
      this.#cluster.roles[i] === ROLE.charged &&
      Number.isNaN(anchor)
    ) {
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
    const event = this.#cluster.events[i]!;
    const anchor = this.#cluster.anchors[i]!;
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
    if (this.#cluster.roles[i] === ROLE.charged) {
      const most = this.#cluster.ceiling(i, limit) - ONE_REQUEST + rate * sinceHi + 1;
      if (this.#high > most) this.#narrow(-Infinity, most);
    } else if (this.#cluster.roles[i] === ROLE.rejectedHere) {
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
    const slot = this.#cluster.slots[i]!;
    const anchor = this.#cluster.anchors[i]!;
    if (!Number.isNaN(anchor)) {
      pool.excessMilliReq[slot] = anchor;
      pool.lowMilliReq[slot] = anchor;
      pool.highMilliReq[slot] = anchor;
      return;
    }
    const { burstMilliReq: burst } = limit;
    if (this.#cluster.roles[i] === ROLE.charged) {
      const most = this.#cluster.ceiling(i, limit);
      if (low <= most) high = Math.min(high, most);
    }
    if (this.#cluster.roles[i] === ROLE.rejectedHere && high > burst)
      low = Math.max(low, burst + 1);
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
    for (let i = 0; i < this.#cluster.count; i++) {
      const event = this.#cluster.events[i]!;
      firstLo = Math.min(firstLo, pool.loMs[event]!);
      if (pool.hiMs[event]! - pool.loMs[event]! > NARROW_MS) isWide = true;
      if (this.#cluster.roles[i] === ROLE.charged) charges++;
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
