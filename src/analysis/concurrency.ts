/**
 * How many requests are under way, in all and for each key, and what limit_conn does or would do.
 *
 * A request is under way from its decision to its end ($msec). limit_conn comes after limit_req and
 * after its delay (ngx_http_limit_conn_handler), and counts a request until its end: what limit_req
 * refused never gets there, and a delayed request begins later. Of equal times beginnings come
 * first, since $msec is up to a millisecond early. Under HTTP/2 and HTTP/3 nginx counts requests,
 * not connections; under HTTP/1.1 a connection has but one at a time. So requests are counted here.
 *
 * Memory follows the requests under way, not the length of the log. Times in epoch milliseconds.
 */
import { excessOf } from '../aggregate/limit-counter.js';
import { effectiveStatus } from '../aggregate/outcome-words.js';
import { EXIT, InputError } from '../errors.js';
import { delayMs } from '../limit-req/arithmetic.js';
import type { AccessFields } from '../replay/access-fields.js';
import { FLAG } from '../replay/event-flags.js';
import type { ReplaySession } from '../replay/session.js';
import { STATUS } from '../replay/status.js';
import { ConcurrencyMeter, type Concurrency } from './concurrency-meter.js';
import {
  ConfiguredConns,
  type ConfiguredAgreement,
  type ModelledConnZone,
} from './configured-conns.js';
import { ConnSubject, subjectsOf } from './conn-subjects.js';
import type { HeldRequest, KeysConcurrency } from './key-concurrency.js';
import { TimeHeap } from './time-heap.js';

export interface ConcurrencyAnalysis {
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly all: Concurrency;
  readonly subjects: readonly SubjectConcurrency[];
  /** The limit_conn that is in force, modelled and as logged; null where there is none. */
  readonly configured: ConfiguredAgreement | null;
  /** Longer under way than --lateness: counted from later on than they came. */
  readonly late: number;
  /** Refused by the limit_conn in force: how long they would have taken is not known. */
  readonly refusedByLimitConn: number;
  readonly unknowns: readonly string[];
}

/** The requests that a limit_conn zone sees, or would see. */
export interface SubjectConcurrency extends KeysConcurrency {
  /** null for a key that no zone has. */
  readonly zone: string | null;
  readonly keyExpression: string;
  /** Requests whose key is empty, or too long: nginx does not count them. */
  readonly notLimited: number;
  /** Requests whose key the log does not tell. */
  readonly withoutKey: number;
}

export interface ConcurrencyOptions {
  /** A key to count by instead of those of the configuration. */
  readonly key?: string;
  /** What limit_conn would have done with this many; several are tried by default. */
  readonly limitConn?: number;
  /** Instead of the usual numbers to try. */
  readonly tried?: readonly number[];
  /** Worst keys. */
  readonly top: number;
}

interface UnderWay {
  readonly startMs: number;
  readonly endMs: number;
  readonly parts: readonly (HeldRequest | null)[];
  /** Rule set, and STATUS code of $limit_conn_status. */
  readonly rules: number;
  readonly connLogged: number;
  /** By limit_conn line in force. */
  configured: Int32Array | null;
}

/** Takes the requests of one replay, as they are read and as they are decided. */
export class ConcurrencyTracker {
  readonly #session: ReplaySession;
  readonly #top: number;
  readonly #all = new ConcurrencyMeter();
  readonly #subjects: readonly ConnSubject[];
  readonly #configured: ConfiguredConns | null;
  readonly #starts = new TimeHeap<UnderWay>();
  readonly #ends = new TimeHeap<UnderWay>();
  #fromMs = Infinity;
  #toMs = -Infinity;
  #late = 0;
  #refused = 0;

  constructor(session: ReplaySession, options: ConcurrencyOptions) {
    this.#session = session;
    this.#top = options.top;
    this.#subjects = subjectsOf(session, options);
    const hasZones = this.#subjects.every(({ zone }) => zone !== null);
    this.#configured = hasZones ? new ConfiguredConns(session, this.#subjects) : null;
  }

  /**
   * A request's line, while it stands in its scanner.
   *
   * @throws InputError 65 when the log does not tell the key that was asked for
   */
  submit(event: number, line: Uint8Array, fields: AccessFields): void {
    for (const subject of this.#subjects) subject.submit(event, line, fields);
  }

  decide(event: number): void {
    const { pool } = this.#session.engine;
    const atMs = pool.estMs[event]!;
    const endMs = Math.max(atMs, pool.endMs[event]!);
    if (atMs < this.#fromMs) this.#fromMs = atMs;
    if (endMs > this.#toMs) this.#toMs = endMs;
    if (pool.flags[event]! & FLAG.late) this.#late++;
    this.#all.add(atMs, endMs);
    this.#advance(atMs);
    const connLogged = pool.connLogged[event]!;
    if (connLogged === STATUS.rejected) this.#refused++;
    const isSeen = this.#reachesLimitConn(event);
    const startMs = Math.min(endMs, atMs + (isSeen ? this.#delayOf(event) : 0));
    const parts = this.#subjects.map((subject) => {
      const isAsked = isSeen && (subject.zone === null || connLogged !== STATUS.none);
      return subject.take(event, isAsked, startMs, endMs);
    });
    if (parts.every((part) => part === null)) return;
    const rules = pool.rules[event]!;
    this.#starts.push(startMs, { startMs, endMs, parts, rules, connLogged, configured: null });
  }

  /** The limit_conn zones in force, as modelled; after finish(). */
  get zones(): Map<string, ModelledConnZone> {
    return this.#configured?.zones ?? new Map<string, ModelledConnZone>();
  }

  finish(unknowns: readonly string[]): ConcurrencyAnalysis {
    this.#advance(Infinity);
    const hasAny = this.#toMs >= this.#fromMs;
    const spanMs = hasAny ? this.#toMs - this.#fromMs : 0;
    return {
      fromMs: hasAny ? this.#fromMs : null,
      toMs: hasAny ? this.#toMs : null,
      all: this.#all.finish(),
      subjects: this.#subjects.map((subject) => ({
        zone: subject.zone,
        keyExpression: subject.keyExpression,
        notLimited: subject.notLimited,
        withoutKey: subject.withoutKey,
        ...subject.meter.finish(spanMs, this.#top),
      })),
      configured: this.#configured?.agreement ?? null,
      late: this.#late,
      refusedByLimitConn: this.#refused,
      unknowns,
    };
  }

  /** What limit_req refused, or nginx answered before its limits, is never counted. */
  #reachesLimitConn(event: number): boolean {
    const { pool, rules } = this.#session.engine;
    if (pool.flags[event]! & FLAG.early) return false;
    const rule = rules[pool.rules[event]!];
    if (rule?.returnsEarly === true) return false;
    return effectiveStatus(pool, event) !== STATUS.rejected;
  }

  /** How long limit_req held the request back before limit_conn saw it. */
  #delayOf(event: number): number {
    const { pool, rules } = this.#session.engine;
    if (effectiveStatus(pool, event) !== STATUS.delayed) return 0;
    let longestMs = 0;
    for (const [i, limit] of (rules[pool.rules[event]!]?.limits ?? []).entries()) {
      const anchor = pool.anchorSlot[event] === i ? pool.anchorMilliReq[event]! : NaN;
      const excess = Number.isNaN(anchor) ? excessOf(pool, event, event + i, i) : anchor;
      if (excess < 0) continue;
      const { delayMilliReq, rateMilliRps } = limit;
      longestMs = Math.max(longestMs, delayMs(excess, delayMilliReq, rateMilliRps));
    }
    return longestMs;
  }

  /** Begins and ends all that is due before this moment. */
  #advance(beforeMs: number): void {
    for (;;) {
      const isStart = this.#starts.nextMs <= this.#ends.nextMs;
      const nextMs = isStart ? this.#starts.nextMs : this.#ends.nextMs;
      if (nextMs >= beforeMs || nextMs === Infinity) return;
      if (isStart) this.#begin(this.#starts.pop()!);
      else this.#end(this.#ends.pop()!);
    }
  }

  #begin(request: UnderWay): void {
    for (const [i, part] of request.parts.entries()) {
      if (part !== null) this.#subjects[i]!.meter.begin(part);
    }
    const { rules, parts, connLogged } = request;
    request.configured = this.#configured?.begin(rules, parts, connLogged, request.startMs) ?? null;
    this.#ends.push(request.endMs, request);
  }

  #end(request: UnderWay): void {
    if (request.configured !== null) {
      this.#configured!.end(request.rules, request.configured, request.endMs);
    }
    for (const [i, part] of request.parts.entries()) {
      if (part === null) continue;
      this.#subjects[i]!.meter.end(part);
      this.#subjects[i]!.keys.release(part.keyId);
    }
  }
}

/** @throws InputError for logs that do not tell how long requests took, or when they ended */
export function requireIntervals(
  logs: readonly {
    readonly path: string;
    readonly format: string;
    readonly fields: AccessFields;
  }[],
): void {
  if (logs.length === 0) {
    throw new InputError(
      'expected an access log: an error log does not tell when requests ended',
      EXIT.noInput,
    );
  }
  const lacking = logs.find(({ fields }) => !fields.hasRequestTime);
  if (lacking === undefined) return;
  throw new InputError(
    `${lacking.path}: log_format "${lacking.format}" has no $request_time, so how long a request was ` +
      'under way is not known\n  Log $request_time, and $msec for the end of it.',
    EXIT.badLines,
  );
}

/** Sentences, each with the field that would tell. */
export function concurrencyUnknowns(traits: {
  readonly hasMilliseconds: boolean;
  readonly hasLimitReqStatus: boolean;
  readonly hasErrorLog: boolean;
}): string[] {
  const unknowns = [
    'What clients do that are refused: they come again, or do not; the numbers are for the requests ' +
      'that came.',
  ];
  if (!traits.hasMilliseconds) {
    unknowns.push(
      'What was under way beside what, within a second: ends are whole seconds. Log $msec.',
    );
  }
  if (!traits.hasLimitReqStatus && !traits.hasErrorLog) {
    unknowns.push(
      'Which requests limit_req refused or held back: taken from the status. Log ' +
        '$limit_req_status, or give the error log.',
    );
  }
  return unknowns;
}
