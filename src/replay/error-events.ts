/**
 * Requests that only the error log tells of: its limiting and delaying lines as events of their own.
 *
 * With no access log at hand, limited and delayed requests are all there is. What let a request
 * pass left no line, so a key's excess is known where a line states it, and lies anywhere up to the
 * burst elsewhere; and the verdict is what the configuration says of the excess stated
 * (ngx_http_limit_req_account()). A request delayed by limit_req and then refused by limit_conn has
 * two lines, and counts as two.
 *
 * Times are whole seconds. Not here: lines whose request is in an access log (line-join.ts).
 */
import type { LimitLine } from '../../parsers/error/error-line.js';
import { delayMs } from '../limit-req/arithmetic.js';
import type { RequestDetails } from './line-details.js';
import { applyLine } from './request-lines.js';
import type { EventPool } from './event-pool.js';
import type { ReplayEngine } from './engine.js';
import { FLAG } from './event-flags.js';
import type { WaitingLine } from './line-join.js';
import type { LineRules } from './line-rules.js';
import { isRejected, OUTCOME, STATUS, withDryRun } from './status.js';

const SECOND_MS = 1000;

export class ErrorEvents {
  readonly #engine: ReplayEngine;
  readonly #lineRules: LineRules;
  readonly #detailsOf: Map<number, RequestDetails>;
  /** Lines submitted so far. */
  order = 0;

  constructor(engine: ReplayEngine, lineRules: LineRules, detailsOf: Map<number, RequestDetails>) {
    this.#engine = engine;
    this.#lineRules = lineRules;
    this.#detailsOf = detailsOf;
  }

  /**
   * Hands the request behind a line to the engine.
   *
   * @returns false when it can't be told under which rules it was
   */
  submit(line: WaitingLine, parsed: LimitLine): boolean {
    const told = {
      line,
      request: parsed.request?.raw ?? '',
      referrer: parsed.referrer ?? '',
      isUnsure: parsed.truncated || parsed.subrequest !== null,
    };
    const found = this.#lineRules.find(told);
    if (found === undefined) return false;
    const { pool, rules } = this.#engine;
    const rule = rules[found.rules]!;
    const event = pool.take();
    pool.pid[event] = line.pid;
    pool.connection[event] = line.connection;
    pool.order[event] = this.order++;
    pool.flags[event] = FLAG.coarse | FLAG.errorOnly;
    pool.loMs[event] = line.secondMs;
    pool.estMs[event] = line.secondMs;
    pool.hiMs[event] = line.secondMs + SECOND_MS;
    pool.endMs[event] = line.secondMs;
    if (line.kind === 'connections') {
      pool.logged[event] = STATUS.none;
      pool.connLogged[event] = line.isDryRun ? STATUS.rejectedDryRun : STATUS.rejected;
    }
    if (line.kind !== 'delayed' && !line.isDryRun) {
      pool.httpStatus[event] =
        line.kind === 'connections' ? rule.limitConnStatus : rule.limitReqStatus;
    }
    this.#lineRules.apply(event, told, found);
    applyLine(this.#engine, event, line);
    pool.flags[event] |= FLAG.detailed;
    this.#detailsOf.set(event, {
      requestId: null,
      method: parsed.request?.method ?? '',
      path: parsed.request?.path ?? '',
      client: line.client,
    });
    this.#engine.submit(event);
    return true;
  }
}

/**
 * What may be said of an event that only its line tells of: the verdict that the configuration
 * gives to the excess stated, and for limits without a statement anything that let it pass.
 */
export function judgeByLine(engine: ReplayEngine, event: number): void {
  const { pool } = engine;
  const { limits, isDryRun } = engine.rules[pool.rules[event]!]!;
  const stated = pool.anchorSlot[event]!;
  for (let i = 0; i < limits.length; i++) {
    const slot = event + i;
    if (i === stated || pool.slotState[slot] === 0) continue;
    pool.lowMilliReq[slot] = 0;
    pool.highMilliReq[slot] = limits[i]!.burstMilliReq;
  }
  if (stated < 0) return;
  state(pool, event, stated);
  const { burstMilliReq, delayMilliReq, rateMilliRps } = limits[stated]!;
  const excess = pool.anchorMilliReq[event]!;
  let verdict: number = STATUS.passed;
  if (excess > burstMilliReq) verdict = withDryRun(STATUS.rejected, isDryRun);
  else if (delayMs(excess, delayMilliReq, rateMilliRps) > 0) {
    verdict = withDryRun(STATUS.delayed, isDryRun);
  }
  pool.verdict[event] = verdict;
  pool.possible[event] = 1 << verdict;
}

/** The line is as good without a key: its limit and excess stand in it. */
function state(pool: EventPool, event: number, position: number): void {
  const slot = event + position;
  if (pool.slotState[slot] === 1) return;
  const excess = pool.anchorMilliReq[event]!;
  pool.slotState[slot] = 1;
  pool.excessMilliReq[slot] = excess;
  pool.lowMilliReq[slot] = excess;
  pool.highMilliReq[slot] = excess;
  pool.outcome[slot] = isRejected(pool.logged[event]!) ? OUTCOME.rejected : OUTCOME.delayed;
}
