/**
 * One replay from logs: the configurations, the engine, and the feeds of every log that is read.
 *
 * Lines come in, in the order of their times (the caller merges files); decisions come out in the
 * order in which nginx took them. What comes out depends on the lines and their times alone.
 */
import { compileLogFormat, type LineScanner } from '../../parsers/access/line-scanner.js';
import { attribute } from '../attribution/source.js';
import { AccessFeed, type FeedContext, type LineNumbers, type PendingSeek } from './access-feed.js';
import type { RequestDetails } from './line-details.js';
import { LineFeed } from './line-feed.js';
import { applyLine, seekersOf } from './request-lines.js';
import type { AccessFields } from './access-fields.js';
import { ReplayEngine } from './engine.js';
import type { PlainDecision } from './plain-pass.js';
import { FLAG } from './event-flags.js';
import { LineExtractor } from './line-extractor.js';
import { ErrorEvents, judgeByLine } from './error-events.js';
import { ErrorFeed } from './error-feed.js';
import { Generations, type GenerationInput } from './generations.js';
import { LineJoin, type WaitingLine } from './line-join.js';
import { LineRules } from './line-rules.js';
import type { RuleRow } from './limit-table.js';
import { restoreZone, snapshotZone, type SessionState } from './session-state.js';
import { isRejected, STATUS } from './status.js';

/** The clocks of nginx's workers are cached once per turn of their event loops. */
const WORKER_SKEW_MS = 10;
/** The calendar is turned in steps, not for every line. */
const STEP_MS = 16;
/** Headers are slow as a rule when so many were, and one of so many lines' was. */
const LEAST_SLOW = 4;
const MOST_PER_SLOW = 10;

export interface SessionOptions {
  readonly generations: readonly GenerationInput[];
  readonly isAudit: boolean;
  readonly latenessMs: number;
  /** The access log carries $connection. */
  readonly usesConnection: boolean;
  readonly hasErrorLog: boolean;
  /** There is no access log: lines of the error log stand for the requests they tell of. */
  readonly isErrorLogAlone?: boolean;
  readonly errorLogCount: number;
  readonly details: 'all' | 'refused';
  /** Sees the line of each request while it stands in its scanner; see AccessFeed.submit(). */
  readonly onSubmit?: FeedContext['onSubmit'];
  readonly onDecision: (event: number) => void;
  /** In place of onDecision for requests with nothing else to be told; see EngineOptions.onPlain. */
  readonly onPlain?: (plain: PlainDecision) => void;
  /** A limiting or delaying line whose request is in no access log. */
  readonly onUnmatchedLine: (line: WaitingLine) => void;
  readonly onMark: (mark: string, ms: number) => void;
  readonly onNote: (note: string) => void;
}

/** See ReplaySession.place; times may be infinite. */
export interface SessionPlace {
  readonly latestMs: number;
  readonly steppedMs: number;
  readonly startMs: number;
  readonly masterPid: number;
  readonly hasBegun: boolean;
  /** Requests made of error-log lines alone. */
  readonly errorEvents: number;
  /** See LineNumbers. */
  readonly slowHeaders: number;
}

export class ReplaySession {
  readonly generations: Generations;
  readonly engine: ReplayEngine;
  readonly join: LineJoin;
  readonly errorFeed: ErrorFeed;
  readonly detailsOf = new Map<number, RequestDetails>();
  readonly seeks = new Map<number, PendingSeek>();
  readonly #options: SessionOptions;
  readonly #lineNumbers: LineNumbers = { next: 0, slowHeaders: 0 };
  readonly #notes = new Set<string>();
  readonly #errorEvents: ErrorEvents | undefined;
  #lineRules: LineRules | undefined;
  #latestMs = -Infinity;
  #steppedMs = -Infinity;
  #masterPid = -1;
  #hasBegun = false;
  /** When the error log first shows nginx starting. */
  #startMs = Infinity;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.generations = new Generations(options.generations);
    for (const note of this.generations.notes) this.note(note);
    this.join = new LineJoin(options.usesConnection);
    this.engine = new ReplayEngine({
      rules: this.generations.rules,
      zones: this.generations.zones,
      latenessMs: options.latenessMs,
      isAudit: options.isAudit,
      skewMs: WORKER_SKEW_MS,
      areHeadersSlow: () => areHeadersSlow(this.#lineNumbers),
      onSettle: (event) => this.#settle(event),
      onControl: () => this.#restart(),
      onDecision: (event) => this.#decided(event),
      ...(options.onPlain === undefined ? {} : { onPlain: options.onPlain }),
    });
    const zones = new Set(this.generations.zones.map((zone) => zone.name));
    const errorEvents = options.isErrorLogAlone === true ? this.#makeErrorEvents() : undefined;
    this.#errorEvents = errorEvents;
    this.errorFeed = new ErrorFeed(
      {
        onLimit: (line, parsed) => {
          if (options.isAudit || errorEvents?.submit(line, parsed) === true) return;
          this.join.add(line);
        },
        onNoMemory: (zone, module, ms) => this.join.addAlert(`${module} ${zone}`, ms),
        onMark: (mark, pid, ms) => this.#mark(mark, pid, ms),
      },
      zones,
      options.errorLogCount,
    );
  }

  #makeErrorEvents(): ErrorEvents {
    const lineRules = new LineRules(this.engine, this.generations, (note) => this.note(note));
    return new ErrorEvents(this.engine, lineRules, this.detailsOf);
  }

  /** STATUS code that the access log carries; an audit looks at it only here. */
  loggedOf(event: number): number {
    return this.#options.isAudit
      ? this.engine.pool.auditLogged[event]!
      : this.engine.pool.logged[event]!;
  }

  /** A feed for lines of one log. @param servers names of the servers that write to the file */
  accessFeed(scanner: LineScanner, servers: readonly string[] | null): LineFeed {
    // A line waits in its scanner for its turn, so no two files may share one.
    const own = compileLogFormat(scanner.format);
    const extractor = new LineExtractor(own, this.generations, servers, (note) => this.note(note));
    return new LineFeed(extractor, this.factsFeed(extractor.fields));
  }

  /** A feed for lines whose facts were read elsewhere. */
  factsFeed(fields: AccessFields): AccessFeed {
    return new AccessFeed(fields, {
      engine: this.engine,
      lineRules: new LineRules(this.engine, this.generations),
      join: this.join,
      isAudit: this.#options.isAudit,
      details: this.#options.details,
      detailsOf: this.detailsOf,
      seeks: this.seeks,
      numbers: this.#lineNumbers,
      onSubmit: this.#options.onSubmit,
    });
  }

  /** All lines before this moment have been handed in, from every log. */
  advance(ms: number): void {
    if (ms <= this.#latestMs) return;
    this.#latestMs = ms;
    if (ms - this.#steppedMs < STEP_MS) return;
    this.#steppedMs = ms;
    this.engine.advance(ms - this.#options.latenessMs);
    this.join.expire(
      this.engine.cursorMs - 2 * this.#options.latenessMs,
      this.#options.onUnmatchedLine,
    );
  }

  /**
   * Judges all that waits, at the end of the input.
   *
   * @param mayGoOn whether another import may bring the requests of the last lines
   */
  finish(mayGoOn = false): void {
    this.engine.flush();
    const untilMs = mayGoOn ? this.#latestMs - 2 * this.#options.latenessMs : Infinity;
    this.join.expire(untilMs, this.#options.onUnmatchedLine);
  }

  /** How long a decision waits for lines that come late. */
  get latenessMs(): number {
    return this.#options.latenessMs;
  }

  /** The latest time of any line handed in; -Infinity before the first. */
  get latestMs(): number {
    return this.#latestMs;
  }

  /** What another session goes on from; after finish(). */
  snapshot(): SessionState {
    const { generations } = this;
    return {
      version: 1,
      cursorMs: this.engine.cursorMs,
      masterPid: this.#masterPid,
      zones: generations.currentZones().map(({ zone, key }) => snapshotZone(zone, key)),
      lines: this.join.pending(),
    };
  }

  /** Goes on where the other session ended; before the first line. */
  restore(state: SessionState): void {
    const { generations } = this;
    const byName = new Map(state.zones.map((zone) => [zone.name, zone]));
    for (const { zone, key, rateMilliRps } of generations.firstZones()) {
      const old = byName.get(zone.name);
      if (old === undefined || old.sizeBytes !== zone.sizeBytes) continue;
      if (old.keyExpression === key) restoreZone(zone, old, rateMilliRps);
    }
    this.engine.startAt(state.cursorMs);
    this.addLines(state.lines);
    this.#masterPid = state.masterPid;
    this.#hasBegun = true;
  }

  /** Lines that an earlier session read, oldest first; before the first line. */
  addLines(lines: readonly WaitingLine[]): void {
    this.errorFeed.startAfter(lines.reduce((rank, line) => Math.max(rank, line.rank), -1));
    if (this.#options.isAudit) return;
    // JSON has no NaN.
    for (const line of lines) {
      this.join.add({ ...line, excessMilliReq: line.excessMilliReq ?? NaN });
    }
  }

  /** Paths of the access logs that a line's request goes to; null when that cannot be told. */
  accessLogsOf(line: WaitingLine): readonly string[] | null {
    this.#lineRules ??= new LineRules(this.engine, this.generations);
    const { request } = line;
    const told = { line, request, referrer: '', isUnsure: request === '' };
    const found = this.#lineRules.find(told);
    if (found === undefined) return null;
    return this.generations.ruleSets[found.rules]!.accessLogs.map(({ path }) => path);
  }

  /** Where the session stands between two lines, beside what engine and join hold. */
  get place(): SessionPlace {
    return {
      latestMs: this.#latestMs,
      steppedMs: this.#steppedMs,
      startMs: this.#startMs,
      masterPid: this.#masterPid,
      hasBegun: this.#hasBegun,
      errorEvents: this.#errorEvents?.order ?? 0,
      slowHeaders: this.#lineNumbers.slowHeaders,
    };
  }

  set place(place: SessionPlace) {
    this.#latestMs = place.latestMs;
    this.#steppedMs = place.steppedMs;
    this.#startMs = place.startMs;
    this.#masterPid = place.masterPid;
    this.#hasBegun = place.hasBegun;
    if (this.#errorEvents !== undefined) this.#errorEvents.order = place.errorEvents;
    this.#lineNumbers.slowHeaders = place.slowHeaders;
  }

  /** A log that does not show nginx starting began in the middle: keys may be in debt already. */
  #begin(firstMs: number): void {
    this.#hasBegun = true;
    if (this.#startMs <= firstMs) return;
    for (const rule of this.engine.rules) {
      for (const { zone, burstMilliReq, rateMilliRps } of rule.limits) {
        zone.warmSinceMs = firstMs;
        zone.warmHighMilliReq = Math.max(zone.warmHighMilliReq, burstMilliReq);
        const drainedMs = firstMs + ((burstMilliReq + 1000) * 1000) / rateMilliRps;
        zone.warmUntilMs = Math.max(zone.warmUntilMs, drainedMs);
      }
    }
  }

  #mark(mark: string, pid: number, ms: number): void {
    if (mark === 'reload') {
      this.generations.noteReload(ms);
      // Its "start worker processes" is no start, though the log began behind the real one.
      if (this.#masterPid === -1) this.#masterPid = pid;
    } else if (mark === 'worker') this.generations.noteWorker(pid, ms);
    else if (mark === 'start' && pid !== this.#masterPid) {
      this.#submitRestart(ms);
      if (this.#masterPid !== -1) this.generations.noteRestart(ms);
      this.#masterPid = pid;
      if (this.#startMs === Infinity) this.#startMs = ms;
    }
    if (mark !== 'worker') this.#options.onMark(mark, ms);
  }

  #submitRestart(ms: number): void {
    const { pool } = this.engine;
    const event = pool.take();
    pool.flags[event] = FLAG.control;
    pool.loMs[event] = ms;
    pool.hiMs[event] = ms;
    pool.estMs[event] = ms;
    pool.endMs[event] = ms;
    pool.order[event] = -1;
    // Before every request of its millisecond, also where connections are not logged.
    pool.connection[event] = -2;
    this.engine.submit(event);
  }

  #restart(): void {
    for (const zone of this.generations.zones) zone.reset();
  }

  /** Something that cannot be evaluated, said once. */
  note(note: string): void {
    if (this.#notes.has(note)) return;
    this.#notes.add(note);
    this.#options.onNote(note);
  }

  #settle(event: number): void {
    const { pool } = this.engine;
    if (!this.#hasBegun) this.#begin(pool.loMs[event]!);
    const rules = pool.rules[event]!;
    if (rules < 0 || this.#options.isAudit) return;
    const rule = this.engine.rules[rules]!;
    this.#seekLater(event);
    if (isRejected(pool.logged[event]!) && pool.errorRank[event]! < 0) {
      this.#seekAlert(event, rule);
    }
    const isConnRejected = isRejected(pool.connLogged[event]!);
    if (isConnRejected && !(pool.flags[event]! & FLAG.connLine)) this.#seekConnAlert(event, rule);
    if (pool.logged[event] === STATUS.unknown && rule.limits.length > 0) this.#infer(event, rule);
  }

  #seekLater(event: number): void {
    if (this.seeks.size === 0) return;
    const seek = this.seeks.get(event);
    if (seek === undefined) return;
    this.seeks.delete(event);
    for (const seeker of seekersOf(this.engine, event)) {
      const line = this.join.takeBySignature(seek.client, seek.request, seeker);
      if (line !== undefined) applyLine(this.engine, event, line);
    }
  }

  /** A refused request without a line: its zone may have had no page for its node. */
  #seekAlert(event: number, rule: RuleRow): void {
    const { pool } = this.engine;
    for (let i = 0; i < rule.limits.length; i++) {
      if (pool.keyId[event + i]! < 0) continue;
      const zone = `limit_req ${rule.limits[i]!.zone.name}`;
      if (!this.join.takeAlert(zone, pool.loMs[event]! - 1, pool.hiMs[event]! + 1)) continue;
      pool.flags[event]! |= FLAG.exhausted;
      pool.anchorSlot[event] = i;
      return;
    }
  }

  #seekConnAlert(event: number, rule: RuleRow): void {
    const { pool } = this.engine;
    for (const zone of rule.connZones) {
      if (
        !this.join.takeAlert(`limit_conn ${zone}`, pool.loMs[event]! - 1, pool.endMs[event]! + 1)
      ) {
        continue;
      }
      pool.flags[event]! |= FLAG.connExhausted;
      return;
    }
  }

  /** The log has no $limit_req_status: the error log and the response tell most of it. */
  #infer(event: number, rule: RuleRow): void {
    const { pool } = this.engine;
    if (pool.flags[event]! & FLAG.early) return;
    // Under dry run the response shows nothing: without lines only the model can tell.
    if (rule.isDryRun && !this.#options.hasErrorLog) return;
    const isRefusal = pool.httpStatus[event] === rule.limitReqStatus && !rule.isDryRun;
    if (this.#options.hasErrorLog || !isRefusal || pool.upstreamStatus[event]! > 0) {
      pool.logged[event] = STATUS.passed;
    } else if (pool.upstreamStatus[event] === 0) {
      pool.logged[event] = STATUS.rejected;
      if (rule.limits.length === 1) pool.anchorSlot[event] = 0;
    } else {
      return;
    }
    pool.flags[event]! |= FLAG.inferred;
  }

  #decided(event: number): void {
    const { pool } = this.engine;
    const rules = pool.rules[event]!;
    const rule = rules < 0 ? undefined : this.engine.rules[rules]!;
    const flags = pool.flags[event]!;
    if (flags & FLAG.errorOnly) judgeByLine(this.engine, event);
    const logged = pool.logged[event]!;
    const isAudit = this.#options.isAudit;
    const req = isAudit ? pool.verdict[event]! : logged;
    const httpStatus = pool.httpStatus[event]!;
    const isRefused = req === STATUS.rejected || pool.connLogged[event] === STATUS.rejected;
    if (!isRefused && httpStatus !== 429 && httpStatus !== 503) {
      this.#options.onDecision(event);
      if (flags & FLAG.detailed) this.detailsOf.delete(event);
      return;
    }
    pool.source[event] = attribute({
      httpStatus,
      isLimitReqRejected: req === STATUS.rejected,
      isLimitReqKnown: req !== STATUS.unknown,
      isZoneExhausted: (flags & FLAG.exhausted) !== 0,
      isLimitConnRejected: pool.connLogged[event] === STATUS.rejected,
      isLimitConnKnown: pool.connLogged[event] !== STATUS.unknown,
      isConnZoneExhausted: (flags & FLAG.connExhausted) !== 0,
      mayBeLimitReq: rule === undefined || rule.limits.length > 0,
      mayBeLimitConn: rule === undefined || rule.connZones.length > 0,
      upstreamStatus: pool.upstreamStatus[event]!,
    });
    this.#options.onDecision(event);
    if (flags & FLAG.detailed) this.detailsOf.delete(event);
  }
}

function areHeadersSlow({ slowHeaders, next }: LineNumbers): boolean {
  return slowHeaders >= LEAST_SLOW && slowHeaders * MOST_PER_SLOW >= next;
}
