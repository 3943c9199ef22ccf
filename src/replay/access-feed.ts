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
import type { LineScanner } from '../../parsers/access/line-scanner.js';
import type { ServerConf } from '../../parsers/conf/model.js';
import { planKey, type KeyPlan } from '../keys/key-plan.js';
import { AccessFields } from './access-fields.js';
import { delayMs } from '../limit-req/arithmetic.js';
import { FLAG, NO_KEY, UNKNOWN_KEY, WIDE_MS, type ReplayEngine } from './engine.js';
import type { Generation, Generations } from './generations.js';
import type { LineJoin, Seeker } from './line-join.js';
import type { RuleRow } from './limit-table.js';
import { REFUSED, RuleFinder } from './rule-finder.js';
import { isDelayed, isRejected, STATUS } from './status.js';

/** nginx answers these on its own, before any location's limit is asked. */
const EARLY_STATUSES = new Set([400, 408, 413, 414, 421, 431, 494, 495, 496, 497, 501, 505]);
const SECOND_MS = 1000;

/** What only some uses need of a request. */
export interface RequestDetails {
  readonly requestId: string | null;
  readonly method: string;
  readonly path: string;
  readonly client: string;
}

/** What a request still needs to find its error-log line without a connection number. */
export interface PendingSeek {
  readonly client: string;
  readonly request: string;
}

export interface FeedContext {
  readonly engine: ReplayEngine;
  readonly generations: Generations;
  readonly join: LineJoin;
  readonly isAudit: boolean;
  /** Keep details of every request, or of refused ones only. */
  readonly details: 'all' | 'refused';
  readonly detailsOf: Map<number, RequestDetails>;
  readonly seeks: Map<number, PendingSeek>;
  /** A key or a server that this format does not tell, once per kind. */
  readonly onNote: (note: string) => void;
}

export class AccessFeed {
  readonly fields: AccessFields;
  readonly #scanner: LineScanner;
  readonly #context: FeedContext;
  readonly #fileServers: readonly string[] | null;
  readonly #finders: (RuleFinder | undefined)[] = [];
  readonly #plans: ((KeyPlan | null)[] | undefined)[] = [];
  #order = 0;

  /**
   * @param servers names of the servers that write to this file; null when that is not known
   */
  constructor(scanner: LineScanner, context: FeedContext, servers: readonly string[] | null) {
    this.#scanner = scanner;
    this.#context = context;
    this.#fileServers = servers;
    this.fields = new AccessFields(scanner);
  }

  /** Hands the line just scanned to the engine. @param endMs fields.endMs() of the line */
  submit(bytes: Uint8Array, endMs: number): void {
    const { engine, generations } = this.#context;
    const { fields } = this;
    const { pool } = engine;
    const event = pool.take();
    const pid = fields.pid(bytes);
    const requestMs = fields.requestMs(bytes);
    const generation = generations.of(pid, requestMs > 0 ? endMs - requestMs : endMs);
    const rules = this.#finderOf(generation).find(bytes);
    pool.rules[event] = rules;
    pool.pid[event] = pid;
    pool.endMs[event] = endMs;
    pool.order[event] = this.#order++;
    pool.connection[event] = fields.connection(bytes);
    pool.connectionRequests[event] = fields.connectionRequests(bytes);
    const status = fields.httpStatus(bytes);
    pool.httpStatus[event] = status;
    pool.upstreamStatus[event] = fields.upstreamStatus(bytes);
    pool.connLogged[event] = fields.limitConnStatus();
    const { isAudit } = this.#context;
    const inLog = fields.limitReqStatus();
    const logged = isAudit ? STATUS.unknown : inLog;
    pool.logged[event] = logged;
    if (isAudit) pool.auditLogged[event] = inLog;
    if (rules === REFUSED || (EARLY_STATUSES.has(status) && !isRejected(logged))) {
      pool.flags[event]! |= FLAG.early;
    }
    this.#setInterval(event, bytes, endMs, requestMs);
    if (rules >= 0) this.#setKeys(event, bytes, generation, rules);
    this.#keepDetails(event, bytes, status, logged);
    if (!isAudit && rules >= 0) this.#seekLine(event, bytes, logged);
    engine.submit(event);
  }

  #finderOf(generation: Generation): RuleFinder {
    const known = this.#finders[generation.index];
    if (known !== undefined) return known;
    const names = this.#fileServers;
    const servers: readonly ServerConf[] =
      names === null
        ? []
        : generation.conf.servers.filter((server) => names.includes(server.names[0] ?? ''));
    const finder = new RuleFinder(this.#scanner, generation, servers);
    this.#finders[generation.index] = finder;
    if (finder.pathField === null && !finder.isPathless) {
      this.#context.onNote(
        `log_format "${this.#scanner.format.name}" tells no location: log $request (or $request_uri)`,
      );
    }
    return finder;
  }

  /** From the coarsest knowledge to the finest: when the limiter may have decided. */
  #setInterval(event: number, bytes: Uint8Array, endMs: number, requestMs: number): void {
    const { pool, rules } = this.#context.engine;
    const { fields } = this;
    const rule = rules[pool.rules[event]!];
    const logged = pool.logged[event]!;
    const mayBeDelayed = isDelayed(logged) || logged === STATUS.unknown;
    // The line that tells the delay may be missing: then it can have been any, up to the longest.
    const spare = rule === undefined || !mayBeDelayed ? 0 : rule.longestDelayMs;
    const upstreamMs = Math.max(0, fields.upstreamMs(bytes));
    if (!fields.hasMilliseconds) {
      pool.flags[event]! |= FLAG.coarse;
      pool.loMs[event] = endMs - (requestMs >= 0 ? requestMs : upstreamMs + spare);
      pool.hiMs[event] = endMs + SECOND_MS;
      pool.estMs[event] = pool.loMs[event]!;
      return;
    }
    const createdMs = requestMs < 0 ? endMs - upstreamMs - spare : endMs - requestMs;
    const latestMs = endMs - upstreamMs;
    pool.loMs[event] = createdMs;
    if (latestMs - createdMs <= spare + WIDE_MS) {
      pool.hiMs[event] = createdMs + 1;
      pool.estMs[event] = createdMs;
    } else {
      pool.hiMs[event] = latestMs + 1;
      pool.estMs[event] = latestMs;
    }
  }

  /** With the delay known from its line, the latest decision is known as well. */
  #narrowByDelay(event: number, bytes: Uint8Array, delay: number): void {
    const { pool } = this.#context.engine;
    if (!this.fields.hasMilliseconds) return;
    const latestMs = pool.endMs[event]! - Math.max(0, this.fields.upstreamMs(bytes)) - delay;
    const createdMs = pool.loMs[event]!;
    if (latestMs - createdMs <= WIDE_MS) {
      pool.hiMs[event] = createdMs + 1;
      pool.estMs[event] = createdMs;
    } else {
      pool.hiMs[event] = latestMs + 1;
      pool.estMs[event] = latestMs;
    }
  }

  #setKeys(event: number, bytes: Uint8Array, generation: Generation, rules: number): void {
    const { pool } = this.#context.engine;
    const { limits } = this.#context.engine.rules[rules]!;
    if (limits.length === 0) return;
    const plans = this.#plans[rules] ?? this.#planKeys(generation, rules);
    const base = event;
    for (let i = 0; i < limits.length; i++) {
      const plan = plans[i]!;
      if (plan === null) {
        pool.keyId[base + i] = UNKNOWN_KEY;
        continue;
      }
      const length = plan.evaluate(bytes, this.#scanner);
      if (length <= 0) {
        pool.keyId[base + i] = length === 0 ? NO_KEY : UNKNOWN_KEY;
        continue;
      }
      const { keys } = limits[i]!.zone;
      const id = keys.intern(plan.out, 0, length);
      keys.retain(id);
      pool.keyId[base + i] = id;
      pool.keyLength[base + i] = plan.keyLengthBytes;
    }
  }

  #planKeys(generation: Generation, rules: number): (KeyPlan | null)[] {
    const { generations, onNote } = this.#context;
    const ruleSet = generations.ruleSets[rules]!;
    const plans = ruleSet.limits.map((limit): KeyPlan | null => {
      const zone = generation.conf.reqZones.get(limit.zone)!;
      const planned = planKey(zone.keyExpression, {
        conf: generation.conf,
        zone: zone.name,
        variables: this.#scanner.variables,
        escape: this.#scanner.format.escape,
        constants: { server_name: ruleSet.serverName },
      });
      if ('plan' in planned) return planned.plan;
      onNote(planned.why);
      return null;
    });
    this.#plans[rules] = plans;
    return plans;
  }

  #keepDetails(event: number, bytes: Uint8Array, status: number, logged: number): void {
    const { details, detailsOf } = this.#context;
    const isRefused = status === 429 || status === 503 || isRejected(logged);
    if (details !== 'all' && !isRefused) return;
    const { fields } = this;
    detailsOf.set(event, {
      requestId: fields.requestId(bytes),
      method: fields.method(bytes),
      path: fields.path(bytes),
      client: fields.client(bytes),
    });
  }

  #seekLine(event: number, bytes: Uint8Array, logged: number): void {
    const { engine, join } = this.#context;
    const { pool } = engine;
    const rule = engine.rules[pool.rules[event]!]!;
    const mayHaveLine = logged === STATUS.unknown || isRejected(logged) || isDelayed(logged);
    const isConnRejected = isRejected(pool.connLogged[event]!);
    if (!(mayHaveLine && rule.limits.length > 0) && !isConnRejected) return;
    if (isRejected(logged) && rule.limits.length === 1) pool.anchorSlot[event] = 0;
    if (join.waiting === 0) return;
    if (this.fields.hasConnection) {
      this.#joinByConnection(event, bytes, rule);
      return;
    }
    const seek = { client: this.fields.client(bytes), request: this.fields.requestLine(bytes) };
    if (seek.request === '') return;
    this.#context.seeks.set(event, seek);
    for (const seeker of seekersOf(engine, event)) join.expect(seek.client, seek.request, seeker);
  }

  #joinByConnection(event: number, bytes: Uint8Array, rule: RuleRow): void {
    const { engine, join } = this.#context;
    const { pool } = engine;
    const isSame = this.fields.requestTest(bytes);
    const connection = pool.connection[event]!;
    for (const seeker of seekersOf(engine, event)) {
      const line = join.takeByConnection(connection, seeker, isSame);
      if (line === undefined) continue;
      const slot = applyLine(engine, event, line);
      if (line.kind === 'delayed' && !rule.isDryRun && slot >= 0) {
        const { delayMilliReq, rateMilliRps } = rule.limits[slot]!;
        this.#narrowByDelay(
          event,
          bytes,
          delayMs(line.excessMilliReq, delayMilliReq, rateMilliRps),
        );
      }
    }
  }
}

/** The lines that a request may have caused, given what is known of its outcome. */
export function seekersOf(engine: ReplayEngine, event: number): Seeker[] {
  const { pool } = engine;
  const rule = engine.rules[pool.rules[event]!]!;
  const logged = pool.logged[event]!;
  const zones = rule.limits.map((limit) => limit.zone.name);
  const base = {
    fromMs: pool.loMs[event]! - 1,
    // Whatever the estimate says: a line is written before its request ends.
    toMs: pool.endMs[event]! + (pool.flags[event]! & FLAG.coarse ? SECOND_MS : 1),
    zones,
  };
  const seekers: Seeker[] = [];
  if (logged === STATUS.unknown ? rule.limits.length > 0 : isRejected(logged)) {
    seekers.push({ ...base, kind: 'rejected', isDryRun: rule.isDryRun });
  }
  if (logged === STATUS.unknown ? rule.limits.length > 0 : isDelayed(logged)) {
    seekers.push({ ...base, kind: 'delayed', isDryRun: rule.isDryRun });
  }
  if (isRejected(pool.connLogged[event]!)) {
    const isDryRun = pool.connLogged[event] === STATUS.rejectedDryRun;
    seekers.push({ ...base, kind: 'connections', isDryRun, zones: rule.connZones });
  }
  return seekers;
}

/** Notes on the event what its line says. @returns the position of the limit it names, or -1 */
export function applyLine(
  engine: ReplayEngine,
  event: number,
  line: {
    kind: string;
    isDryRun: boolean;
    rank: number;
    zone: string;
    excessMilliReq: number;
    pid: number;
  },
): number {
  const { pool } = engine;
  if (line.kind === 'connections') {
    pool.flags[event]! |= FLAG.connLine;
    return -1;
  }
  const rule = engine.rules[pool.rules[event]!]!;
  const slot = rule.limits.findIndex((limit) => limit.zone.name === line.zone);
  engine.lineOrder.note(event, line.rank);
  pool.anchorMilliReq[event] = line.excessMilliReq;
  pool.anchorSlot[event] = slot;
  if (pool.pid[event]! < 0) pool.pid[event] = line.pid;
  if (pool.logged[event] === STATUS.unknown) {
    const isReject = line.kind === 'rejected';
    const status = isReject ? STATUS.rejected : STATUS.delayed;
    const dry = isReject ? STATUS.rejectedDryRun : STATUS.delayedDryRun;
    pool.logged[event] = line.isDryRun ? dry : status;
  }
  return slot;
}
