/**
 * Requests in, decisions out: orders the events of all logs by decision time and judges each one as
 * nginx's limiter would have, against what its log says it did.
 *
 * What leaves the reorder buffer depends on the log times given to advance() alone.
 *
 * An access line is written when its request ends, so an event waits in the calendar until the
 * watermark has passed its decision time; a short window behind the calendar then shows each key's
 * neighbours, whose order may be uncertain (key-sweep.ts).
 *
 * Units: epoch milliseconds, thousandths of a request.
 *
 * Not here: the order within a millisecond (tie-order.ts), what the limits say of a request
 * (request-judge.ts).
 */
import { KEY_FIELD, KEY_FIELDS } from '../keys/key-table.js';
import { Calendar } from './calendar.js';
import { DecisionWindow } from './decision-window.js';
import { FLAG, NO_KEY, WIDE_MS } from './event-flags.js';
import { EventPool } from './event-pool.js';
import { KeySweep } from './key-sweep.js';
import { LineOrder } from './line-order.js';
import { OpenIntervals } from './open-intervals.js';
import type { LimitRow, RuleRow } from './limit-table.js';
import { NO_EVENT, Parked, type PlainRequest } from './parked.js';
import { type PlainDecision, PlainPass } from './plain-pass.js';
import { RequestJudge } from './request-judge.js';
import { STATUS } from './status.js';
import { TieOrder } from './tie-order.js';
import type { ZoneReplay } from './zone-replay.js';

/** What an engine has not judged: events, and parked requests by their handles. */
export interface Waiting {
  /** In decision order, with their milliseconds. */
  readonly window: { readonly members: Int32Array; readonly ms: Float64Array };
  /** In order of the milliseconds they wait in. */
  readonly calendar: { readonly members: Int32Array; readonly ms: Float64Array };
  /** Whether the session has begun with its first request. */
  readonly hasSettled: boolean;
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
  /** Whether headers come slowly as a rule, also those of requests that had a body to send. */
  readonly areHeadersSlow?: () => boolean;
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
  readonly parked: Parked;
  readonly #calendar: Calendar;
  /** Which events left which error-log lines; fed by whoever joins them. */
  readonly lineOrder: LineOrder;
  readonly #sweep: KeySweep;
  readonly #windowMs: number;
  /** Out of the calendar, in decision order, not judged yet. */
  readonly #window = new DecisionWindow();
  /** The first request of all is settled on the long way: a session begins with it. */
  #hasSettled = false;
  readonly #plainPass: PlainPass | undefined;
  readonly #tied: number[] = [];
  readonly #wides: number[] = [];
  readonly #ties: TieOrder;
  readonly #open: OpenIntervals;
  readonly #judge: RequestJudge;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.rules = options.rules;
    this.zones = options.zones;
    this.pool = new EventPool(strideOf(options.rules));
    this.parked = new Parked(this.pool);
    this.#calendar = new Calendar(options.latenessMs + 4096, this.pool, this.parked);
    this.lineOrder = new LineOrder(this.pool, options.skewMs);
    this.#ties = new TieOrder(this.pool, this.parked);
    this.#open = new OpenIntervals(
      this.pool,
      this.parked,
      this.#calendar,
      this.lineOrder,
      (rules) => this.rules[rules]!,
      () => options.areHeadersSlow?.() === true,
    );
    this.#sweep = new KeySweep(this.pool, options.skewMs, (slot, untilMs) =>
      this.#open.countAhead(slot, this.#limitOf(slot).zoneIndex, untilMs),
    );
    if (options.onPlain !== undefined) {
      this.#plainPass = new PlainPass(this.parked, this.#sweep, options.onPlain);
    }
    this.#judge = new RequestJudge(this.pool, this.#sweep, this.#window, this.#limitOf);
    this.#windowMs = options.skewMs + 4;
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
    const record = this.parked.add(request, order, takenMs);
    this.#putParked(record, this.rules[request.rules]!.limits.length, ms, keys);
  }

  /** The same for a request in the form of Parked.addNumbers(). */
  parkNumbers(
    numbers: Int32Array,
    from: number,
    order: number,
    ms: number,
    takenMs: number,
    keys: Int32Array,
  ): void {
    const record = this.parked.addNumbers(numbers, from, order, takenMs);
    this.#putParked(record, this.rules[numbers[from]!]!.limits.length, ms, keys);
  }

  #putParked(record: number, length: number, ms: number, keys: Int32Array): void {
    const { parked } = this;
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

  /** What has not been judged. */
  waiting(): Waiting {
    return {
      window: this.#window.entries(),
      calendar: this.#calendar.entries(),
      hasSettled: this.#hasSettled,
    };
  }

  /** Takes back what waiting() told, into an engine that holds nothing. Links are made anew. */
  resume({ window, calendar, hasSettled }: Waiting): void {
    const { pool } = this;
    this.#hasSettled = hasSettled;
    for (let i = 0; i < window.members.length; i++) {
      const member = window.members[i]!;
      for (let slot = 0; member >= 0 && slot < pool.slots; slot++)
        pool.nextInKey[member + slot] = -1;
      this.#append(member, window.ms[i]!);
    }
    for (let i = 0; i < calendar.members.length; i++) {
      this.#calendar.put(calendar.members[i]!, calendar.ms[i]!);
    }
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
      this.#append(head, calendar.cursorMs);
      return;
    }
    const tied = this.#tied;
    clear(tied);
    const wides = this.#wides;
    clear(wides);
    for (let member = head; member !== NO_EVENT; member = calendar.next(member)) {
      calendar.size--;
      if (member >= 0 && pool.flags[member]! & FLAG.wide) wides.push(member);
      else tied.push(member);
    }
    let lines = 0;
    for (let i = 0; i < tied.length; i++) {
      this.#settle(tied[i]!);
      if (this.#ties.isLimitedLine(tied[i]!)) lines++;
    }
    if (wides.length > 0) lines += this.#openWides(wides, tied);
    if (tied.length > 1) {
      this.#ties.sort(tied);
      if (lines > 0 && !this.#options.isAudit) this.#ties.weaveLines(tied);
    }
    for (let i = 0; i < tied.length; i++) this.#append(tied[i]!, calendar.cursorMs);
  }

  /** Makes events of all members of a list of the cursor's millisecond. @returns the list */
  #unparkList(head: number): number {
    const { pool } = this;
    const calendar = this.#calendar;
    const events: number[] = [];
    for (let member = head; member !== NO_EVENT; member = calendar.next(member))
      events.push(member);
    for (const [i, member] of events.entries()) {
      if (member < 0) events[i] = this.parked.unpark(member, calendar.cursorMs);
    }
    for (const [i, event] of events.entries()) pool.next[event] = events[i + 1] ?? NO_EVENT;
    return events[0]!;
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
      if (!this.#open.begin(event)) continue;
      tied.push(event);
      if (this.#ties.isLimitedLine(event)) lines++;
    }
    return lines;
  }

  /** @param ms when a parked request was decided */
  #append(member: number, ms: number): void {
    if (member < 0 && this.#appendPlain(member, ms)) return;
    const { pool } = this;
    const event = member >= 0 ? member : this.#settledEvent(member, ms);
    this.#window.push(event, pool.estMs[event]!);
    const rules = pool.rules[event]!;
    if (rules < 0) return;
    const { limits } = this.rules[rules]!;
    const base = event;
    for (let i = 0; i < limits.length; i++) {
      const key = pool.keyId[base + i]!;
      if (key < 0) continue;
      const { records } = limits[i]!.zone.keys;
      const at = key * KEY_FIELDS + KEY_FIELD.chainEnd;
      const end = records[at]!;
      if (end !== NO_EVENT) pool.nextInKey[end >= 0 ? end : this.#materialize(end)] = base + i;
      records[at] = base + i;
    }
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
        const rules = pool.rules[event]!;
        if (rules >= 0) this.#judge.judge(event, this.rules[rules]!);
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
  #appendPlain(handle: number, ms: number): boolean {
    if (this.#plainPass === undefined || !this.#hasSettled) return false;
    const parked = this.parked;
    if (parked.limitReqStatusOf(handle) !== STATUS.passed) return false;
    const { limits } = this.rules[parked.rulesOf(handle)]!;
    if (limits.length !== 1) return false;
    const key = parked.keyOf(handle);
    if (key < 0) return false;
    const { records } = limits[0]!.zone.keys;
    const at = key * KEY_FIELDS + KEY_FIELD.chainEnd;
    if (records[at] !== NO_EVENT) return false;
    records[at] = handle;
    parked.setNext(handle, this.#window.push(handle, ms));
    return true;
  }

  #settledEvent(handle: number, ms: number): number {
    const event = this.parked.unpark(handle, ms);
    this.pool.flags[event]! |= FLAG.settled;
    return event;
  }

  /** Makes an event of a parked request in the window. */
  #materialize(handle: number): number {
    const place = this.parked.next(handle);
    const event = this.#asEvent(handle, this.#window.msAt(place));
    this.#window.replace(place, event);
    return event;
  }

  /** Makes an event of a parked request that has been in the window, and its key's only one. */
  #asEvent(handle: number, ms: number): number {
    const event = this.#settledEvent(handle, ms);
    const { pool } = this;
    const { keys } = this.rules[pool.rules[event]!]!.limits[0]!.zone;
    keys.records[pool.keyId[event]! * KEY_FIELDS + KEY_FIELD.chainEnd] = event;
    return event;
  }

  /**
   * Judges a parked request without making an event of it: nobody of its key is near.
   *
   * @returns false, with nothing changed, when that is not enough
   */
  #passPlain(handle: number, ms: number): boolean {
    const parked = this.parked;
    const { limits } = this.rules[parked.rulesOf(handle)]!;
    const { keys } = limits[0]!.zone;
    if (!this.#plainPass!.pass(handle, ms, limits[0]!)) return false;
    const key = parked.keyOf(handle);
    keys.records[key * KEY_FIELDS + KEY_FIELD.chainEnd] = NO_EVENT;
    keys.release(key);
    parked.release(handle);
    return true;
  }

  readonly #limitOf = (slot: number): LimitRow => {
    const { pool } = this;
    const event = pool.eventOf(slot);
    return this.rules[pool.rules[event]!]!.limits[slot - event]!;
  };

  #leave(event: number): void {
    const { pool } = this;
    const rules = pool.rules[event]!;
    if (rules < 0) return;
    const { limits } = this.rules[rules]!;
    const base = event;
    for (let i = 0; i < limits.length; i++) {
      const key = pool.keyId[base + i]!;
      if (key < 0) continue;
      const { zone } = limits[i]!;
      const at = key * KEY_FIELDS + KEY_FIELD.chainEnd;
      if (zone.keys.records[at] === base + i) zone.keys.records[at] = NO_EVENT;
      this.#open.end(zone, key, base + i);
      zone.keys.release(key);
    }
  }
}

/** Setting the length of an array is a call into the runtime, popping is not. */
function clear(list: number[]): void {
  while (list.length > 0) list.pop();
}
