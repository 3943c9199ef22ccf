/**
 * Slow requests: those whose decision may lie anywhere between their header and their answer.
 *
 * Such a request waits in the calendar where it may have been decided first. There it is shown to
 * its keys, as one that may be charged at any moment from now on, and goes on to where it is judged.
 *
 * Units: epoch milliseconds. Not here: what an open request does to the excess of its key
 * (key-sweep.ts), how long a request's interval is (access-feed.ts, line-order.ts).
 */
import type { Calendar } from './calendar.js';
import { FLAG, NARROW_MS } from './event-flags.js';
import type { EventPool } from './event-pool.js';
import type { LineOrder } from './line-order.js';
import type { RuleRow } from './limit-table.js';
import type { Parked } from './parked.js';
import { isRejected } from './status.js';
import type { ZoneReplay } from './zone-replay.js';

/** More slow requests of one key than this at a time are not told apart any more. */
const MOST_OPEN = 256;
/** No more requests than this are looked through for those that a slow one may have come after. */
const MOST_AHEAD = 8192;

export class OpenIntervals {
  readonly #pool: EventPool;
  readonly #parked: Parked;
  readonly #calendar: Calendar;
  readonly #lineOrder: LineOrder;
  readonly #ruleOf: (rules: number) => RuleRow;
  readonly #areHeadersSlow: () => boolean;

  /** @param areHeadersSlow as in EngineOptions */
  constructor(
    pool: EventPool,
    parked: Parked,
    calendar: Calendar,
    lineOrder: LineOrder,
    ruleOf: (rules: number) => RuleRow,
    areHeadersSlow: () => boolean,
  ) {
    this.#pool = pool;
    this.#parked = parked;
    this.#calendar = calendar;
    this.#lineOrder = lineOrder;
    this.#ruleOf = ruleOf;
    this.#areHeadersSlow = areHeadersSlow;
  }

  /**
   * The interval of a slow request begins: shows it to its keys, and puts it where it is judged.
   *
   * @returns true, and does neither, when its neighbours in the error log leave no more than now
   */
  begin(event: number): boolean {
    const pool = this.#pool;
    const calendar = this.#calendar;
    pool.flags[event]! &= ~FLAG.wide;
    const [lo, hi] = this.#lineOrder.narrowed(event);
    pool.loMs[event] = lo;
    pool.hiMs[event] = hi;
    if (hi - lo <= NARROW_MS && lo < calendar.cursorMs + 1) {
      pool.estMs[event] = calendar.cursorMs;
      return true;
    }
    if (pool.flags[event]! & FLAG.afterLimits && !this.#areHeadersSlow()) {
      pool.estMs[event] = Math.max(lo, calendar.cursorMs);
      pool.hiMs[event] = Math.min(hi, pool.estMs[event] + NARROW_MS);
      if (pool.estMs[event] < calendar.cursorMs + 1) return true;
    }
    pool.estMs[event] = Math.max(lo, Math.min(pool.estMs[event]!, hi));
    this.#show(event);
    const est = Math.max(Math.floor(pool.estMs[event]), calendar.cursorMs + 1);
    pool.estMs[event] = est;
    calendar.put(event, est);
    return false;
  }

  /** A request has been judged: it is open no more. Does nothing for one that never was. */
  end(zone: ZoneReplay, key: number, slot: number): void {
    if (zone.openSlots.size === 0) return;
    const slots = zone.openSlots.get(key);
    if (slots === undefined) return;
    const at = slots.indexOf(slot);
    if (at >= 0) slots.splice(at, 1);
    if (slots.length === 0) zone.openSlots.delete(key);
  }

  /** Requests of the slot's key in the calendar up to a moment, those that were refused left out. */
  countAhead(slot: number, zoneIndex: number, untilMs: number): number {
    const pool = this.#pool;
    const parked = this.#parked;
    const key = pool.keyId[slot]!;
    let count = 0;
    this.#calendar.visit(untilMs, MOST_AHEAD, (member) => {
      const isEvent = member >= 0;
      const rules = isEvent ? pool.rules[member]! : parked.rulesOf(member);
      const logged = isEvent ? pool.logged[member]! : parked.limitReqStatusOf(member);
      if (rules < 0 || isRejected(logged)) return;
      const { limits } = this.#ruleOf(rules);
      for (let i = 0; i < limits.length; i++) {
        const other = isEvent ? pool.keyId[member + i]! : parked.keyOf(member, i);
        if (other === key && limits[i]!.zoneIndex === zoneIndex) count++;
      }
    });
    return count;
  }

  #show(event: number): void {
    const pool = this.#pool;
    const rules = pool.rules[event]!;
    const limits = rules < 0 ? [] : this.#ruleOf(rules).limits;
    for (let i = 0; i < limits.length; i++) {
      const slot = event + i;
      const key = pool.keyId[slot]!;
      if (key < 0) continue;
      const { openSlots } = limits[i]!.zone;
      const slots = openSlots.get(key);
      if (slots === undefined) openSlots.set(key, [slot]);
      else if (slots.length < MOST_OPEN) slots.push(slot);
      pool.openCharges[slot] = 0;
    }
  }
}
