/**
 * Access-log lines of one file's format into events of the replay engine.
 *
 * Decision time: the limiter decides when the request's header is in, the line is written when the
 * request has ended. $msec − $request_time is when the request was created, which is the decision
 * but for the truncation of two clocks (a millisecond) and for headers that came slowly; then the
 * decision lies before $msec − $upstream_response_time − delay, and mostly just there.
 *
 * Works on bytes; strings are made for requests that were limited, and where details are asked for.
 */
import { compileLogFormat } from '../../parsers/access/line-scanner.js';
import { AccessFields } from './access-fields.js';
import { delayMs } from '../limit-req/arithmetic.js';
import type { ReplayEngine } from './engine.js';
import { FLAG, NO_KEY, UNKNOWN_KEY, WIDE_MS } from './event-flags.js';
import { LineDetails, type RequestDetails } from './line-details.js';
import type { LineJoin, WaitingLine } from './line-join.js';
import {
  isAfterLimits,
  isAnsweredEarly,
  isPlain,
  isPlainPass,
  isRefusal,
  isSmall,
} from './line-kinds.js';
import { hasZone, type LineRules } from './line-rules.js';
import { SLACK, type LineFacts } from './line-facts.js';
import type { RuleRow } from './limit-table.js';
import { applyLine, seekersOf } from './request-lines.js';
import { REFUSED } from './rule-finder.js';
import { isDelayed, isRejected, STATUS } from './status.js';

const SECOND_MS = 1000;

/** What a request still needs to find its error-log line without a connection number. */
export interface PendingSeek {
  readonly client: string;
  readonly request: string;
}

/** Lines submitted so far, by whatever feeds a session has. */
export interface LineNumbers {
  next: number;
  /** Of these, those without a body that took longer than their upstream: their headers were slow. */
  slowHeaders: number;
}

/** A line that isPlainPass() holds for, as numbers. */
export interface PassedLine {
  readonly endMs: number;
  readonly requestMs: number;
  /** See Parked.addNumbers(): its numbers begin in `words` at `requestAt`. */
  readonly words: Int32Array;
  readonly requestAt: number;
  /**
   * By limit, a keyId (-1 for an empty key, -2 for one not told) and the length of its node's key.
   *
   * @returns how many limits
   */
  readKeys(keys: Int32Array): number;
}

export interface FeedContext {
  readonly engine: ReplayEngine;
  readonly lineRules: LineRules;
  readonly join: LineJoin;
  readonly isAudit: boolean;
  /** Keep details of every request, or of refused ones only. */
  readonly details: 'all' | 'refused';
  readonly detailsOf: Map<number, RequestDetails>;
  readonly seeks: Map<number, PendingSeek>;
  /** One for all feeds: a log that was rotated is one log. */
  readonly numbers: LineNumbers;
  /** Called before the event is handed over; `line` as given to submit(). */
  readonly onSubmit?: ((event: number, line: Uint8Array, fields: AccessFields) => void) | undefined;
}

export class AccessFeed {
  readonly fields: AccessFields;
  readonly #context: FeedContext;
  /** The line whose details may be asked for, where it is not scanned. */
  #raw: Uint8Array = NO_LINE;
  #rawStart = 0;
  #rawEnd = 0;
  /** For such lines: the scanner of `fields` may hold another one. */
  #ownFields: AccessFields | undefined;
  /** By limit, a keyId and the length of its node's key. */
  readonly #keys = new Int32Array(128);
  /** Whether any request may go the short way. */
  readonly #mayPark: boolean;

  /** @param fields those of the format whose lines are submitted */
  constructor(fields: AccessFields, context: FeedContext) {
    this.#context = context;
    this.fields = fields;
    const isTold = context.onSubmit !== undefined || context.details === 'all';
    this.#mayPark = !isTold && !context.isAudit && fields.hasMilliseconds;
  }

  /** Number of the next line of the session; set to go on behind those of an earlier session. */
  get order(): number {
    return this.#context.numbers.next;
  }

  set order(order: number) {
    const { numbers } = this.#context;
    numbers.next = Math.max(numbers.next, order);
  }

  /**
   * Hands a line to the engine.
   *
   * @param line the line, scanned by the scanner of `fields`; empty where isLineNeeded() says so
   */
  submit(facts: LineFacts, line: Uint8Array): void {
    if (this.#park(facts)) return;
    const { engine, isAudit } = this.#context;
    const { pool } = engine;
    const event = pool.take();
    const { rules } = facts;
    pool.rules[event] = rules;
    pool.pid[event] = facts.pid;
    pool.endMs[event] = facts.endMs;
    pool.order[event] = this.#context.numbers.next++;
    pool.connection[event] = facts.connection;
    pool.connectionRequests[event] = facts.connectionRequests;
    pool.httpStatus[event] = facts.httpStatus;
    pool.upstreamStatus[event] = facts.upstreamStatus;
    pool.connLogged[event] = facts.limitConnStatus;
    const logged = isAudit ? STATUS.unknown : facts.limitReqStatus;
    pool.logged[event] = logged;
    if (isAudit) pool.auditLogged[event] = facts.limitReqStatus;
    if (rules === REFUSED || isAnsweredEarly(facts, logged)) pool.flags[event]! |= FLAG.early;
    this.#setInterval(event, facts);
    if (rules >= 0) this.#setKeys(event, facts);
    if (this.#context.details === 'all' || isRefusal(facts)) this.#keepDetails(event, line);
    if (!isAudit && rules >= 0) this.#seekLine(event, facts, line);
    this.#context.onSubmit?.(event, line, this.fields);
    engine.submit(event);
  }

  /** Whether submit() has to be given this line scanned; else submitRaw() does. */
  readsLine(facts: LineFacts): boolean {
    const { join, details, isAudit } = this.#context;
    return details === 'all' || (!isAudit && facts.rules >= 0 && join.waiting > 0);
  }

  /** Hands a line to the engine that readsLine() has no need of: its details are found when asked. */
  submitRaw(facts: LineFacts, bytes: Uint8Array, start: number, end: number): void {
    this.#raw = bytes;
    this.#rawStart = start;
    this.#rawEnd = end;
    this.submit(facts, NO_LINE);
    this.#raw = NO_LINE;
  }

  /**
   * The short way for a request that was let pass, whose time is known to the millisecond and which
   * no error-log line can be about.
   *
   * @returns false, with nothing changed, when the long way has to be gone
   */
  #park(facts: LineFacts): boolean {
    if (!this.#mayPark) return false;
    const { engine, join } = this.#context;
    const { requestMs, endMs, rules } = facts;
    if (!isPlainPass(facts)) {
      if (!isDelayed(facts.limitReqStatus) || join.waiting > 0) return false;
      if (!isPlain(facts, engine.rules[rules]?.longestDelayMs ?? 0)) return false;
    }
    if (!isSmall(facts)) return false;
    const rule = engine.rules[rules]!;
    const createdMs = endMs - requestMs;
    if (!engine.canPark(createdMs)) return false;
    const keys = this.#keys;
    for (let i = 0; i < facts.keyCount; i++) {
      keys[2 * i] = takeKey(facts, i, rule);
      keys[2 * i + 1] = facts.nodeKeyLengths[i]!;
    }
    engine.park(facts, this.#context.numbers.next++, createdMs, requestMs, keys);
    return true;
  }

  /**
   * The same for a line that was found to be plain already.
   *
   * @returns false, with nothing changed, when it has to be submitted
   */
  parkPassed(line: PassedLine): boolean {
    if (!this.#mayPark) return false;
    const { engine, numbers } = this.#context;
    const { words, requestAt, requestMs } = line;
    const createdMs = line.endMs - requestMs;
    if (!engine.canPark(createdMs)) return false;
    const { limits } = engine.rules[words[requestAt]!]!;
    const keys = this.#keys;
    const count = line.readKeys(keys);
    for (let i = 0; i < count; i++) {
      const id = keys[2 * i]!;
      if (id >= 0) limits[i]!.zone.keys.retain(id);
      else keys[2 * i] = id === -1 ? NO_KEY : UNKNOWN_KEY;
    }
    engine.parkNumbers(words, requestAt, numbers.next++, createdMs, requestMs, keys);
    return true;
  }

  /** From the coarsest knowledge to the finest: when the limiter may have decided. */
  #setInterval(event: number, facts: LineFacts): void {
    const { pool, rules } = this.#context.engine;
    const { endMs, requestMs } = facts;
    const rule = rules[facts.rules];
    const logged = pool.logged[event]!;
    const mayBeDelayed = isDelayed(logged) || logged === STATUS.unknown;
    // The line that tells the delay may be missing: then it can have been any, up to the longest.
    const spare = rule === undefined || !mayBeDelayed ? 0 : rule.longestDelayMs;
    const upstreamMs = Math.max(0, facts.upstreamMs);
    if (!this.fields.hasMilliseconds) {
      pool.flags[event]! |= FLAG.coarse;
      pool.loMs[event] = endMs - (requestMs >= 0 ? requestMs : upstreamMs + spare);
      pool.hiMs[event] = endMs + SECOND_MS;
      pool.estMs[event] = pool.loMs[event]!;
      return;
    }
    const createdMs = requestMs < 0 ? endMs - upstreamMs - spare : endMs - requestMs;
    const latestMs = endMs - upstreamMs;
    const isAfter = isAfterLimits(facts, rule);
    if (isAfter) pool.flags[event]! |= FLAG.afterLimits;
    pool.loMs[event] = createdMs;
    if (latestMs - createdMs <= spare + WIDE_MS) {
      pool.hiMs[event] = createdMs + 1;
      pool.estMs[event] = createdMs;
    } else {
      // The header came slowly, or the answer went out slowly. Only where an upstream's time leaves
      // none for the answer, or a refusal needed none, was it the header.
      const wasRefused = isRejected(logged) || isRejected(pool.connLogged[event]!);
      const wasHeader = facts.upstreamMs >= 0 || requestMs < 0 || wasRefused;
      const isHeader = facts.slack === SLACK.header || wasHeader;
      if (!isAfter && isHeader && requestMs >= 0) this.#context.numbers.slowHeaders++;
      pool.hiMs[event] = latestMs + 1;
      pool.estMs[event] = isHeader ? latestMs : createdMs;
    }
  }

  /** With the delay known from its line, the latest decision is known as well. */
  #narrowByDelay(event: number, upstreamMs: number, delay: number): void {
    const { pool } = this.#context.engine;
    if (!this.fields.hasMilliseconds) return;
    const latestMs = pool.endMs[event]! - Math.max(0, upstreamMs) - delay;
    const createdMs = pool.loMs[event]!;
    if (latestMs - createdMs <= WIDE_MS) {
      pool.hiMs[event] = createdMs + 1;
      pool.estMs[event] = createdMs;
    } else {
      pool.hiMs[event] = latestMs + 1;
      pool.estMs[event] = latestMs;
    }
  }

  #setKeys(event: number, facts: LineFacts): void {
    const { pool, rules } = this.#context.engine;
    const rule = rules[facts.rules]!;
    for (let i = 0; i < facts.keyCount; i++) {
      const id = takeKey(facts, i, rule);
      pool.keyId[event + i] = id;
      if (id >= 0) pool.keyLength[event + i] = facts.nodeKeyLengths[i]!;
    }
  }

  #keepDetails(event: number, line: Uint8Array): void {
    this.#context.engine.pool.flags[event]! |= FLAG.detailed;
    if (this.#raw.length > 0) {
      this.#ownFields ??= new AccessFields(compileLogFormat(this.fields.scanner.format));
      const text = latin1Of(this.#raw, this.#rawStart, this.#rawEnd);
      this.#context.detailsOf.set(event, new LineDetails(text, this.#ownFields));
      return;
    }
    const { fields } = this;
    this.#context.detailsOf.set(event, {
      requestId: fields.requestId(line),
      method: fields.method(line),
      path: fields.path(line),
      client: fields.client(line),
    });
  }

  #seekLine(event: number, facts: LineFacts, line: Uint8Array): void {
    const { engine, join } = this.#context;
    const { pool } = engine;
    const rule = engine.rules[facts.rules]!;
    const logged = facts.limitReqStatus;
    const mayHaveLine = logged === STATUS.unknown || isRejected(logged) || isDelayed(logged);
    const isConnRejected = isRejected(pool.connLogged[event]!);
    const isLimited = isRejected(logged) || isDelayed(logged);
    if (!isLimited && !(mayHaveLine && rule.limits.length > 0) && !isConnRejected) return;
    if (isRejected(logged) && rule.limits.length === 1) pool.anchorSlot[event] = 0;
    if (join.waiting === 0 || line.length === 0) return;
    if (this.fields.hasConnection) {
      this.#joinByConnection(event, facts, line);
      return;
    }
    const seek = { client: this.fields.client(line), request: this.fields.requestLine(line) };
    if (seek.request === '') return;
    this.#context.seeks.set(event, seek);
    for (const seeker of seekersOf(engine, event)) join.expect(seek.client, seek.request, seeker);
  }

  /**
   * What an error page answered is logged under the page's own URI. The line that the limiter left
   * has the request as it came: its location and keys are those that count.
   */
  #takeUpRedirected(event: number, isSame: (request: string) => boolean | undefined): void {
    const { engine, join, lineRules } = this.#context;
    const connection = engine.pool.connection[event]!;
    for (const seeker of seekersOf(engine, event)) {
      if (seeker.kind === 'connections') continue;
      const line = join.findRedirected(connection, seeker, isSame);
      if (line === undefined) continue;
      const told = { line, request: line.request, referrer: '', isUnsure: line.request === '' };
      const found = lineRules.find(told);
      if (found === undefined) continue;
      // After a rewrite the limits were asked under the URI that the log has.
      const own = engine.rules[engine.pool.rules[event]!]!;
      if (found.mayBeRewritten && hasZone(own, line)) continue;
      lineRules.apply(event, told, found);
    }
  }

  #joinByConnection(event: number, facts: LineFacts, line: Uint8Array): void {
    const { engine, join, lineRules } = this.#context;
    const { pool } = engine;
    const mayBeLed = (line: WaitingLine): boolean => lineRules.mayBeLed(line);
    const isSame = this.fields.requestTest(line);
    const connection = pool.connection[event]!;
    const isLimited = isRejected(pool.logged[event]!) || isDelayed(pool.logged[event]!);
    if (isLimited && !this.fields.hasRequestLine) this.#takeUpRedirected(event, isSame);
    const rule = engine.rules[pool.rules[event]!]!;
    for (const seeker of seekersOf(engine, event)) {
      const found = join.takeByConnection(connection, seeker, isSame, mayBeLed);
      if (found === undefined) continue;
      const slot = applyLine(engine, event, found);
      if (found.kind === 'delayed' && !rule.isDryRun && slot >= 0) {
        const { delayMilliReq, rateMilliRps } = rule.limits[slot]!;
        this.#narrowByDelay(
          event,
          facts.upstreamMs,
          delayMs(found.excessMilliReq, delayMilliReq, rateMilliRps),
        );
      }
    }
  }
}

/** The retained id of the request's key for a limit, or what stands for none. */
function takeKey(facts: LineFacts, position: number, rule: RuleRow): number {
  const length = facts.keyLengths[position]!;
  if (length <= 0) return length === 0 ? NO_KEY : UNKNOWN_KEY;
  const { keys } = rule.limits[position]!.zone;
  const id = facts.hasKeyIds
    ? facts.keyIds[position]!
    : keys.intern(facts.keyBytes, facts.keyStarts[position]!, length);
  keys.retain(id);
  return id;
}

function latin1Of(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1');
}

const NO_LINE = new Uint8Array(0);
