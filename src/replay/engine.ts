/**
 * Requests in, decisions out: orders the events of all logs by decision time and judges each one as
 * nginx's limiter would have, against what its log says it did.
 *
 * Follows ngx_http_limit_req_handler(): limits in the order of the configuration, the first one
 * over its burst ends it, all are charged when none is. What leaves the reorder buffer depends on
 * the log times given to advance() alone.
 *
 * An access line is written when its request ends, so an event waits in the calendar until the
 * watermark has passed its decision time; a short window behind the calendar then shows each key's
 * neighbours, whose order may be uncertain (key-sweep.ts).
 *
 * Units: epoch milliseconds, thousandths of a request.
 */
import { Calendar } from './calendar.js';
import { DecisionWindow } from './decision-window.js';
import { EventPool } from './event-pool.js';
import { KeySweep, NARROW_MS } from './key-sweep.js';
import { LineOrder } from './line-order.js';
import type { LimitRow, RuleRow } from './limit-table.js';
import { NO_EVENT, Parked, type PlainRequest } from './parked.js';
import { isAccepted, isDelayed, isRejected, OUTCOME, STATUS } from './status.js';
import { Verdict } from './verdict.js';
import type { ZoneReplay } from './zone-replay.js';

export const FLAG = {
  /** Came after its decision time had been passed. */
  late: 1,
  /** Known from the error log alone. */
  errorOnly: 2,
  /** Rejected because a zone had no page for its node. */
  exhausted: 4,
  /** Passed only because its zone had forgotten the key's debt. */
  admittedByEviction: 8,
  /** nginx answered before its limits were asked. */
  early: 16,
  /** Waits at the start of its interval; judged at its estimate. */
  wide: 32,
  /** Not a request: a reload or restart, in its place among them. */
  control: 64,
  /** The log does not carry the outcome; it was inferred, and is not reported as logged. */
  inferred: 128,
  /** The time is known to the second only. */
  coarse: 256,
  /** Rejected because a limit_conn zone had no room for its node. */
  connExhausted: 512,
  /** A "limiting connections" line was found for it. */
  connLine: 1024,
  settled: 2048,
  /** Other requests of a key may have come before or after. */
  openOrder: 4096,
  /** The zone was full: whether the key was still known depends on the order of others. */
  nearEviction: 8192,
  /** The key may have been in debt before the log begins. */
  warm: 16384,
  /** Its details are kept until it is decided. */
  detailed: 32768,
} as const;

/** keyId of a limit whose key is empty: nginx skips it. */
export const NO_KEY = -1;
/** keyId of a limit whose key cannot be derived from what is logged. */
export const UNKNOWN_KEY = -2;
/** An interval longer than this is no matter of clocks: the header came slowly. */
export const WIDE_MS = 4;
/** The smallest zone holds more short keys than this. */
const LEAST_FLOOD = 128;
/** More slow requests of one key than this at a time are not told apart any more. */
const MOST_OPEN = 256;

/** An event and the millisecond of the calendar in which it waits. */
export interface Waiting {
  readonly event: number;
  readonly ms: number;
}

/** A request that was let pass by its only limit, as its log says, and as the replay does. */
export interface PlainDecision {
  ms: number;
  rules: number;
  httpStatus: number;
  connLogged: number;
  keyId: number;
  keyLength: number;
  /** That of the lookup, as EventPool.excessMilliReq. */
  excessMilliReq: number;
}

export interface EngineOptions {
  readonly rules: readonly RuleRow[];
  readonly zones: readonly ZoneReplay[];
  /** How long after its decision a request may still be logged. */
  readonly latenessMs: number;
  /** Neither logged outcomes nor error-log lines touch verdicts, order or state. */
  readonly isAudit: boolean;
  /** Largest distance between the cached clocks of two workers; 0 for one worker. */
  readonly skewMs: number;
  /** Called once for each request before its place among ties is found: joins lines, infers outcomes. */
  readonly onSettle?: (event: number) => void;
  readonly onControl?: (event: number) => void;
  readonly onDecision: (event: number) => void;
  /**
   * Called in place of onDecision for requests with nothing to be told of them but this; the object
   * is the same each time. Without it all are decided as events.
   */
  readonly onPlain?: (plain: PlainDecision) => void;
}

/** Most limits one rule set can have; nginx has no bound, real configurations have one to four. */
export function strideOf(rules: readonly RuleRow[]): number {
  return rules.reduce((most, rule) => Math.max(most, rule.limits.length), 1);
}

export class ReplayEngine {
  readonly pool: EventPool;
  rules: readonly RuleRow[];
  zones: readonly ZoneReplay[];
  readonly #options: EngineOptions;
  readonly #parked: Parked;
  readonly #calendar: Calendar;
  /** Which events left which error-log lines; fed by whoever joins them. */
  readonly lineOrder: LineOrder;
  readonly #sweep: KeySweep;
  readonly #windowMs: number;
  /** Last slot of each key's chain inside the window, by zone; -1 for none. */
  #chainEnds: Int32Array[];
  /** Out of the calendar, in decision order, not judged yet. */
  readonly #window = new DecisionWindow();
  /** The first request of all is settled on the long way: a session begins with it. */
  #hasSettled = false;
  readonly #plain: PlainDecision = {
    ms: 0,
    rules: 0,
    httpStatus: 0,
    connLogged: 0,
    keyId: 0,
    keyLength: 0,
    excessMilliReq: 0,
  };
  readonly #tied: number[] = [];
  readonly #wides: number[] = [];
  readonly #lines: number[] = [];
  readonly #verdict = new Verdict();

  constructor(options: EngineOptions) {
    this.#options = options;
    this.rules = options.rules;
    this.zones = options.zones;
    this.pool = new EventPool(strideOf(options.rules));
    this.#parked = new Parked(this.pool);
    this.#calendar = new Calendar(options.latenessMs + 4096, this.pool, this.#parked);
    this.lineOrder = new LineOrder(this.pool);
    this.#sweep = new KeySweep(this.pool, options.skewMs);
    this.#windowMs = options.skewMs + 4;
    this.#chainEnds = options.zones.map(() => new Int32Array(1024).fill(-1));
  }

  /** Everything decided before this moment has been judged. */
  get cursorMs(): number {
    return this.#calendar.cursorMs;
  }

  /** Goes on behind another replay: what it judged is not judged again. */
  startAt(cursorMs: number): void {
    this.#calendar.cursorMs = cursorMs;
  }

  /**
   * Hands over an event taken from the pool and filled in. It belongs to the engine from here, and
   * is released after onDecision.
   */
  submit(event: number): void {
    const { pool } = this;
    const calendar = this.#calendar;
    let ms = pool.estMs[event]!;
    if (!Number.isInteger(ms)) throw new Error(`a decision time must be whole milliseconds: ${ms}`);
    if (calendar.cursorMs === 0 && calendar.size === 0) {
      calendar.cursorMs = Math.max(0, ms - this.#options.latenessMs);
    }
    if (ms < calendar.cursorMs) {
      pool.flags[event]! |= FLAG.late;
      ms = calendar.cursorMs;
      pool.estMs[event] = ms;
      if (pool.hiMs[event]! < ms) pool.hiMs[event] = ms + 1;
    } else if (!calendar.accepts(ms)) {
      this.advance(ms - calendar.spanMs + 1);
    }
    this.lineOrder.update(event);
    // A request whose header came slowly waits where it may have been decided first, to be seen by
    // those in between.
    const lo = pool.loMs[event]!;
    if (pool.hiMs[event]! - lo > WIDE_MS && lo < ms && calendar.accepts(Math.floor(lo))) {
      pool.flags[event]! |= FLAG.wide;
      ms = Math.floor(lo);
    }
    calendar.put(event, ms);
  }

  /**
   * Hands over a request with nothing uncertain about it, decided at `ms` (parked.ts).
   *
   * @param ms a moment that canPark() accepts
   * @param keys by limit: a retained keyId with the length of its node's key, side by side
   */
  park(request: PlainRequest, order: number, ms: number, takenMs: number, keys: Int32Array): void {
    const parked = this.#parked;
    const record = parked.add(request, order, takenMs);
    const { length } = this.rules[request.rules]!.limits;
    for (let i = 0; i < this.pool.slots; i++) {
      if (i < length) parked.setKey(record, i, keys[2 * i]!, keys[2 * i + 1]!);
      else parked.setKey(record, i, NO_KEY, 0);
    }
    this.#calendar.put(parked.handleOf(record), ms);
  }

  /** Whether a request decided at `ms` comes neither too early nor too late to be parked. */
  canPark(ms: number): boolean {
    return this.#calendar.accepts(ms);
  }

  /** Judges everything that was decided before the watermark. */
  advance(watermarkMs: number): void {
    const calendar = this.#calendar;
    while (calendar.advance(watermarkMs) < watermarkMs) {
      const ms = calendar.cursorMs;
      this.#judgeUntil(ms - this.#windowMs);
      const head = calendar.takeList();
      if (head !== NO_EVENT) this.#enter(head);
      calendar.cursorMs = ms + 1;
    }
    this.#judgeUntil(watermarkMs - this.#windowMs);
  }

  /**
   * What has not been judged: the window in decision order, then what the calendar holds. Parked
   * requests become events by it.
   */
  waiting(): { readonly window: readonly number[]; readonly calendar: readonly Waiting[] } {
    const window = this.#window
      .entries()
      .map(({ member }) => (member >= 0 ? member : this.#materialize(member)));
    const calendar = this.#calendar;
    const entries = calendar.entries().map(({ member, ms }): Waiting => {
      return { ms, event: member >= 0 ? member : this.#parked.unpark(member, ms) };
    });
    calendar.clear();
    for (const { event, ms } of entries) calendar.put(event, ms);
    return { window, calendar: entries };
  }

  /** Takes back what waiting() told, into an engine that holds nothing. Links are made anew. */
  resume(window: readonly number[], calendar: readonly Waiting[]): void {
    const { pool } = this;
    for (const event of window) {
      for (let slot = event; slot < event + pool.slots; slot++) pool.nextInKey[slot] = -1;
      this.#append(event);
    }
    for (const { event, ms } of calendar) this.#calendar.put(event, ms);
  }

  /** Judges all that is left, at the end of the input. The cursor stops behind the last event. */
  flush(): void {
    const calendar = this.#calendar;
    while (calendar.size > 0) {
      this.advance(calendar.advance(calendar.cursorMs + calendar.spanMs) + 1);
    }
    this.#judgeUntil(Infinity);
  }

  /** Orders the members of one millisecond and appends them to the window. */
  #enter(first: number): void {
    const { pool } = this;
    const calendar = this.#calendar;
    // A session begins with the first request that is settled, which has to be an event for that.
    const head = this.#hasSettled ? first : this.#unparkList(first);
    const isWide = head >= 0 && (pool.flags[head]! & FLAG.wide) !== 0;
    if (!isWide && calendar.next(head) === NO_EVENT) {
      calendar.size--;
      this.#settle(head);
      this.#append(head);
      return;
    }
    const tied = this.#tied;
    tied.length = 0;
    const wides = this.#wides;
    wides.length = 0;
    for (let member = head; member !== NO_EVENT; member = calendar.next(member)) {
      calendar.size--;
      if (member >= 0 && pool.flags[member]! & FLAG.wide) wides.push(member);
      else tied.push(member);
    }
    let lines = 0;
    for (let i = 0; i < tied.length; i++) {
      this.#settle(tied[i]!);
      if (this.#isLimitedLine(tied[i]!)) lines++;
    }
    if (wides.length > 0) lines += this.#openWides(wides, tied);
    if (tied.length > 1) {
      this.#sortTies(tied);
      if (lines > 0 && !this.#options.isAudit) this.#weaveLines(tied);
    }
    for (let i = 0; i < tied.length; i++) this.#append(tied[i]!);
  }

  /** Makes events of all members of a list of the cursor's millisecond. @returns the list */
  #unparkList(head: number): number {
    const { pool } = this;
    const calendar = this.#calendar;
    const events: number[] = [];
    for (let member = head; member !== NO_EVENT; member = calendar.next(member))
      events.push(member);
    for (const [i, member] of events.entries()) {
      if (member < 0) events[i] = this.#parked.unpark(member, calendar.cursorMs);
    }
    for (const [i, event] of events.entries()) pool.next[event] = events[i + 1] ?? NO_EVENT;
    return events[0]!;
  }

  /** Ties are few and mostly in order already. */
  #sortTies(tied: number[]): void {
    if (tied.length > 16) {
      tied.sort(this.#compare);
      return;
    }
    for (let i = 1; i < tied.length; i++) {
      const event = tied[i]!;
      let j = i - 1;
      for (; j >= 0 && this.#compare(tied[j]!, event) > 0; j--) tied[j + 1] = tied[j]!;
      tied[j + 1] = event;
    }
  }

  /** A parked request has nothing that is left to be found out. */
  #settle(event: number): void {
    if (event < 0) return;
    const { pool } = this;
    const settled = FLAG.control | FLAG.settled;
    if (pool.flags[event]! & settled) return;
    pool.flags[event]! |= FLAG.settled;
    this.#hasSettled = true;
    this.#options.onSettle?.(event);
  }

  /**
   * Opens the intervals of slow requests. Those that the error log places in this millisecond join
   * its ties.
   *
   * @returns how many of these left a line
   */
  #openWides(wides: readonly number[], tied: number[]): number {
    let lines = 0;
    for (const event of wides) {
      this.#settle(event);
      if (!this.#openWide(event)) continue;
      tied.push(event);
      if (this.#isLimitedLine(event)) lines++;
    }
    return lines;
  }

  /**
   * The interval of a slow request begins: shows it to its keys, and puts it where it is judged.
   *
   * @returns true, and does neither, when its neighbours in the error log leave no more than now
   */
  #openWide(event: number): boolean {
    const { pool } = this;
    const calendar = this.#calendar;
    pool.flags[event]! &= ~FLAG.wide;
    const [lo, hi] = this.lineOrder.narrowed(event);
    pool.loMs[event] = lo;
    pool.hiMs[event] = hi;
    if (hi - lo <= NARROW_MS && lo < calendar.cursorMs + 1) {
      pool.estMs[event] = calendar.cursorMs;
      return true;
    }
    pool.estMs[event] = Math.max(lo, Math.min(pool.estMs[event]!, hi));
    const rules = pool.rules[event]!;
    const limits = rules < 0 ? [] : this.rules[rules]!.limits;
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
    const est = Math.max(Math.floor(pool.estMs[event]), calendar.cursorMs + 1);
    pool.estMs[event] = est;
    calendar.put(event, est);
    return false;
  }

  /** Accept order: what is left to order requests of one millisecond when nothing else does. */
  readonly #compare = (a: number, b: number): number => {
    const byConnection = this.#connectionOf(a) - this.#connectionOf(b);
    if (byConnection !== 0) return byConnection;
    const byRequest = this.#connectionRequestsOf(a) - this.#connectionRequestsOf(b);
    return byRequest !== 0 ? byRequest : this.#orderOf(a) - this.#orderOf(b);
  };

  #connectionOf(member: number): number {
    return member >= 0 ? this.pool.connection[member]! : this.#parked.connectionOf(member);
  }

  #connectionRequestsOf(member: number): number {
    if (member < 0) return this.#parked.connectionRequestsOf(member);
    return this.pool.connectionRequests[member]!;
  }

  #orderOf(member: number): number {
    return member >= 0 ? this.pool.order[member]! : this.#parked.orderOf(member);
  }

  #loggedOf(member: number): number {
    return member >= 0 ? this.pool.logged[member]! : this.#parked.limitReqStatusOf(member);
  }

  #isLimitedLine(member: number): boolean {
    const logged = this.#loggedOf(member);
    return isRejected(logged) || isDelayed(logged);
  }

  /**
   * Orders the lines among ties as the error log does, and puts requests without a line before
   * them: within a millisecond a key's excess only grows, so the ones let through came first. On
   * one connection the order of the requests stands.
   */
  #weaveLines(tied: number[]): void {
    const lines = this.#lines;
    lines.length = 0;
    let others = 0;
    for (let i = 0; i < tied.length; i++) {
      const member = tied[i]!;
      if (this.#isLimitedLine(member)) lines.push(member);
      else tied[others++] = member;
    }
    if (lines.length > 1) lines.sort(this.#compareLines);
    for (let i = 0; i < lines.length; i++) tied[others + i] = lines[i]!;
    // On one connection a request may have come after a line all the same.
    for (let i = others - 1; i >= 0; i--) {
      const gap = this.#lastLineBefore(tied[i]!, lines);
      if (gap > 0) moveBehind(tied, i, tied.indexOf(lines[gap - 1]!));
    }
  }

  readonly #compareLines = (a: number, b: number): number => {
    const rankA = this.#lineRank(a);
    const rankB = this.#lineRank(b);
    // Within a millisecond delayed requests come before rejected ones, where no line says otherwise.
    if (rankA === rankB) return this.#rejectedRank(a) - this.#rejectedRank(b);
    return rankA < rankB ? -1 : 1;
  };

  /** Its line's rank; a rejected request whose line was not found came when there was no more room. */
  #lineRank(member: number): number {
    const rank = member >= 0 ? this.pool.errorRank[member]! : -1;
    return rank < 0 && isRejected(this.#loggedOf(member)) ? Infinity : rank;
  }

  #rejectedRank(member: number): number {
    return isRejected(this.#loggedOf(member)) ? 1 : 0;
  }

  /** How many lines there are up to the last one of an earlier request on the event's connection. */
  #lastLineBefore(member: number, lines: readonly number[]): number {
    const connection = this.#connectionOf(member);
    if (connection < 0) return 0;
    const requests = this.#connectionRequestsOf(member);
    for (let i = lines.length - 1; i >= 0; i--) {
      const line = lines[i]!;
      const isEarlier = this.#connectionRequestsOf(line) < requests;
      if (isEarlier && this.#connectionOf(line) === connection) return i + 1;
    }
    return 0;
  }

  #append(member: number): void {
    if (member < 0 && this.#appendPlain(member)) return;
    const { pool } = this;
    const event = member >= 0 ? member : this.#settledEvent(member, this.#calendar.cursorMs);
    this.#window.push(event, pool.estMs[event]!);
    const rules = pool.rules[event]!;
    if (rules < 0) return;
    const { limits } = this.rules[rules]!;
    const base = event;
    for (let i = 0; i < limits.length; i++) {
      const key = pool.keyId[base + i]!;
      if (key < 0) continue;
      const ends = this.#endsFor(limits[i]!.zoneIndex, key);
      const end = ends[key]!;
      if (end !== NO_EVENT) pool.nextInKey[end >= 0 ? end : this.#materialize(end)] = base + i;
      ends[key] = base + i;
    }
  }

  #endsFor(zoneIndex: number, key: number): Int32Array {
    let ends = this.#chainEnds[zoneIndex]!;
    if (key >= ends.length) {
      const longer = new Int32Array(Math.max(key + 1, ends.length * 2)).fill(-1);
      longer.set(ends);
      ends = longer;
      this.#chainEnds[zoneIndex] = longer;
    }
    return ends;
  }

  #judgeUntil(limitMs: number): void {
    const { pool } = this;
    const window = this.#window;
    for (let ms = window.firstMs; ms < limitMs; ms = window.firstMs) {
      const member = window.shift();
      if (member < 0 && this.#passPlain(member, ms)) continue;
      const event = member >= 0 ? member : this.#asEvent(member, ms);
      if (pool.flags[event]! & FLAG.control) {
        this.#options.onControl?.(event);
      } else {
        this.#decide(event);
        this.#options.onDecision(event);
        this.#leave(event);
      }
      pool.release(event);
    }
  }

  /**
   * Appends a parked request as it is, when nobody of its key is in the window and it was let pass by
   * a rule set with one limit.
   *
   * @returns false, with nothing changed, when it has to be an event
   */
  #appendPlain(handle: number): boolean {
    if (this.#options.onPlain === undefined || !this.#hasSettled) return false;
    const parked = this.#parked;
    if (parked.limitReqStatusOf(handle) !== STATUS.passed) return false;
    const { limits } = this.rules[parked.rulesOf(handle)]!;
    if (limits.length !== 1) return false;
    const key = parked.keyOf(handle);
    if (key < 0) return false;
    const ends = this.#endsFor(limits[0]!.zoneIndex, key);
    if (ends[key] !== NO_EVENT) return false;
    ends[key] = handle;
    parked.setNext(handle, this.#window.push(handle, this.#calendar.cursorMs));
    return true;
  }

  #settledEvent(handle: number, ms: number): number {
    const event = this.#parked.unpark(handle, ms);
    this.pool.flags[event]! |= FLAG.settled;
    return event;
  }

  /** Makes an event of a parked request in the window. */
  #materialize(handle: number): number {
    const place = this.#parked.next(handle);
    const event = this.#asEvent(handle, this.#window.msAt(place));
    this.#window.replace(place, event);
    return event;
  }

  /** Makes an event of a parked request that has been in the window, and its key's only one. */
  #asEvent(handle: number, ms: number): number {
    const event = this.#settledEvent(handle, ms);
    const { pool } = this;
    const { zoneIndex } = this.rules[pool.rules[event]!]!.limits[0]!;
    this.#chainEnds[zoneIndex]![pool.keyId[event]!] = event;
    return event;
  }

  /**
   * Judges a parked request without making an event of it: nobody of its key is near.
   *
   * @returns false, with nothing changed, when that is not enough
   */
  #passPlain(handle: number, ms: number): boolean {
    const parked = this.#parked;
    const rules = parked.rulesOf(handle);
    const limit = this.rules[rules]!.limits[0]!;
    const { zone, zoneIndex } = limit;
    const { memory } = zone;
    if (zone.openSlots.size > 0 || ms < zone.warmUntilMs) return false;
    const key = parked.keyOf(handle);
    let node = memory.find(key);
    if (zone.hasShadow(key)) return false;
    if (node < 0) {
      // With pages to spare and none evicted so far there is nothing to know of a new node.
      if (zone.counts.evictions > 0 || memory.pagesFree === 0) return false;
      node = zone.locate(key, parked.keyLengthOf(handle), ms, true);
    } else if (zone.counts.evictions > 0 && zone.isNearEviction(node, ms)) return false;
    const excess = this.#sweep.passAlone(zone, node, ms, limit);
    if (excess < 0) return false;
    memory.touch(node);
    const plain = this.#plain;
    plain.ms = ms;
    plain.rules = rules;
    plain.httpStatus = parked.httpStatusOf(handle);
    plain.connLogged = parked.limitConnStatusOf(handle);
    plain.keyId = key;
    plain.keyLength = parked.keyLengthOf(handle);
    plain.excessMilliReq = excess;
    this.#options.onPlain!(plain);
    this.#chainEnds[zoneIndex]![key] = NO_EVENT;
    zone.keys.release(key);
    parked.release(handle);
    return true;
  }

  #decide(event: number): void {
    const { pool } = this;
    const index = pool.rules[event]!;
    if (index < 0) return;
    const rule = this.rules[index]!;
    if (rule.limits.length === 0) return;
    const isAnsweredEarly = pool.logged[event]! <= STATUS.none && rule.returnsEarly;
    if (pool.flags[event]! & FLAG.early || isAnsweredEarly) return;
    if (rule.limits.length === 1 && this.#passAlone(event, rule.limits[0]!)) return;
    this.#verdict.reset();
    const base = event;
    for (let i = 0; i < rule.limits.length; i++) {
      if (this.#askLimit(event, base + i, i, rule.limits[i]!)) break;
    }
    if (!this.#verdict.wasAsked) return;
    if (pool.logged[event] === STATUS.unknown) this.#chargeOpen(event, rule);
    pool.verdict[event] = this.#verdict.status(rule.isDryRun);
    pool.possible[event] = this.#verdict.possible(rule.isDryRun) | (1 << pool.verdict[event]);
  }

  /**
   * The short way for a request that passed its only limit with nothing uncertain about it.
   *
   * @returns false when the long way has to be gone; a lookup made here is not made again there
   */
  #passAlone(event: number, limit: LimitRow): boolean {
    const { pool } = this;
    if (pool.logged[event] !== STATUS.passed || pool.nextInKey[event]! >= 0) return false;
    const key = pool.keyId[event]!;
    if (key < 0 || pool.slotState[event] !== 0 || pool.openCharges[event] !== 0) return false;
    const { zone } = limit;
    const now = pool.estMs[event]!;
    if (zone.openSlots.size > 0 || now < zone.warmUntilMs) return false;
    const node = zone.memory.find(key);
    if (node < 0 || zone.hasShadow(key)) return false;
    if (zone.counts.evictions > 0 && zone.isNearEviction(node, now)) return false;
    if (!this.#sweep.judgeAlone(zone, node, event, limit)) return false;
    zone.memory.touch(node);
    pool.outcome[event] = OUTCOME.passed;
    pool.verdict[event] = STATUS.passed;
    pool.possible[event] = 1 << STATUS.passed;
    return true;
  }

  /** @returns true when this limit ended the request */
  #askLimit(event: number, slot: number, position: number, limit: LimitRow): boolean {
    const { pool } = this;
    const key = pool.keyId[slot]!;
    const logged = pool.logged[event]!;
    if (key < 0) {
      pool.outcome[slot] = key === NO_KEY ? OUTCOME.skipped : OUTCOME.unknown;
      return false;
    }
    if (logged === STATUS.none) return false;
    const { zone } = limit;
    const now = pool.estMs[event]!;
    const verdict = this.#verdict;
    verdict.wasAsked = true;
    if (pool.flags[event]! & FLAG.exhausted && pool.anchorSlot[event] === position) {
      if (zone.failToLocate(key, pool.keyLength[slot]!, now)) verdict.exhaust(position);
      pool.outcome[slot] = OUTCOME.exhausted;
      return true;
    }
    // A reject whose line was not found may have been one for want of memory: then the model tells.
    const isPlain = !isRejected(logged) || pool.errorRank[event]! >= 0;
    const hasNode = logged !== STATUS.unknown && isPlain;
    const node = zone.locate(key, pool.keyLength[slot]!, now, hasNode);
    if (zone.hadNoPage) verdict.exhaust(position);
    if (node < 0) {
      pool.outcome[slot] = OUTCOME.exhausted;
      return true;
    }
    // What was judged with a node that has gone since is judged anew.
    const wasJudged = pool.slotState[slot] !== 0;
    if (!wasJudged || zone.isFresh) {
      this.#sweep.isAlone = wasJudged || this.#mayPushOut(zone, pool.keyLength[slot]!);
      this.#sweep.sweep(zone, node, slot, this.#limitOf);
    }
    if (zone.maybeEvicted || zone.ghost !== null) pool.flags[event]! |= FLAG.nearEviction;
    if (now < zone.warmUntilMs) pool.flags[event]! |= FLAG.warm;
    const waits = verdict.add(
      position,
      pool.priorMilliReq[slot]!,
      pool.priorLowMilliReq[slot]!,
      pool.priorHighMilliReq[slot]!,
      limit,
    );
    if (this.#isRejectedBy(event, position)) {
      pool.outcome[slot] = OUTCOME.rejected;
      return true;
    }
    const isDelayedHere = isDelayed(logged) ? pool.anchorSlot[event] === position || waits : waits;
    pool.outcome[slot] =
      isDelayedHere && logged !== STATUS.passed ? OUTCOME.delayed : OUTCOME.passed;
    const { rateMilliRps, burstMilliReq } = limit;
    if (zone.chargeShadow(key, rateMilliRps, burstMilliReq, now, isAccepted(logged))) {
      pool.flags[event]! |= FLAG.admittedByEviction;
    }
    return false;
  }

  /** A flood can push a key out between two of its requests, if the window holds enough others. */
  #mayPushOut(zone: ZoneReplay, keyLengthBytes: number): boolean {
    if (this.#window.size < LEAST_FLOOD) return false;
    const { memory, counts } = zone;
    const most = counts.evictions > 0 ? memory.nodes : memory.capacityNodes(keyLengthBytes);
    return this.#window.size >= most;
  }

  /** What happened where the log tells, else what the model says. */
  #isRejectedBy(event: number, position: number): boolean {
    const { pool } = this;
    const logged = pool.logged[event]!;
    if (logged === STATUS.unknown) return this.#verdict.rejectedAt === position;
    if (!isRejected(logged)) return false;
    const known = pool.anchorSlot[event]!;
    return known >= 0 ? known === position : this.#verdict.rejectedAt === position;
  }

  /** Charges every limit of a request that the log says nothing about, if all let it pass. */
  #chargeOpen(event: number, rule: RuleRow): void {
    const { pool } = this;
    if (this.#verdict.rejectedAt >= 0) return;
    const base = event;
    for (let i = 0; i < rule.limits.length; i++) {
      const limit = rule.limits[i]!;
      const key = pool.keyId[base + i]!;
      if (key < 0 || pool.slotState[base + i] === 0) continue;
      const node = limit.zone.memory.find(key);
      if (node >= 0) this.#sweep.chargeLater(limit.zone, node, event, limit);
      const { rateMilliRps, burstMilliReq, zone } = limit;
      zone.chargeShadow(key, rateMilliRps, burstMilliReq, pool.estMs[event]!, true);
    }
  }

  readonly #limitOf = (slot: number): LimitRow => {
    const { pool } = this;
    const event = pool.eventOf(slot);
    return this.rules[pool.rules[event]!]!.limits[slot - event]!;
  };

  #closeOpen(zone: ZoneReplay, key: number, slot: number): void {
    if (zone.openSlots.size === 0) return;
    const slots = zone.openSlots.get(key);
    if (slots === undefined) return;
    const at = slots.indexOf(slot);
    if (at >= 0) slots.splice(at, 1);
    if (slots.length === 0) zone.openSlots.delete(key);
  }

  #leave(event: number): void {
    const { pool } = this;
    const rules = pool.rules[event]!;
    if (rules < 0) return;
    const { limits } = this.rules[rules]!;
    const base = event;
    for (let i = 0; i < limits.length; i++) {
      const key = pool.keyId[base + i]!;
      if (key < 0) continue;
      const ends = this.#chainEnds[limits[i]!.zoneIndex]!;
      if (ends[key] === base + i) ends[key] = -1;
      this.#closeOpen(limits[i]!.zone, key, base + i);
      limits[i]!.zone.keys.release(key);
    }
  }
}

/** Takes an element out and puts it behind another one further on. */
function moveBehind(list: number[], from: number, behind: number): void {
  const moved = list[from]!;
  for (let i = from; i < behind; i++) list[i] = list[i + 1]!;
  list[behind] = moved;
}
