/**
 * Requests that only the error log tells of: its limiting and delaying lines as events of their own.
 *
 * With no access log at hand, limited and delayed requests are all there is. A line gives client,
 * server, request line, Host and Referer: put side by side they are a line of a log_format, from
 * which location and keys are found as from any other. What let a request pass left no line, so a
 * key's excess is known where a line states it, and lies anywhere up to the burst elsewhere; and
 * the verdict is what the configuration says of the excess stated (ngx_http_limit_req_account()).
 *
 * Times are whole seconds. Not here: lines whose request is in an access log (line-join.ts).
 */
import { compileLogFormat, type LineScanner } from '../../parsers/access/line-scanner.js';
import type { LimitLine } from '../../parsers/error/error-line.js';
import { planKey, type KeyPlan } from '../keys/key-plan.js';
import { delayMs } from '../limit-req/arithmetic.js';
import { applyLine, type RequestDetails } from './access-feed.js';
import type { EventPool } from './event-pool.js';
import { FLAG, NO_KEY, UNKNOWN_KEY, type ReplayEngine } from './engine.js';
import type { Generation, Generations } from './generations.js';
import type { WaitingLine } from './line-join.js';
import type { RuleRow } from './limit-table.js';
import { RuleFinder } from './rule-finder.js';
import { isRejected, OUTCOME, STATUS, withDryRun } from './status.js';

const SECOND_MS = 1000;
/** What a line tells; the rest is what a client sent, and may be cut off. */
const SURE = ['remote_addr', 'server_name'];
const SENT = ['request', 'http_host', 'http_referer'];

interface Plans {
  readonly finder: RuleFinder;
  /** By rule set of the common numbering, by limit; null for a key that the line cannot tell. */
  readonly keys: Map<number, (KeyPlan | null)[]>;
}

export interface ErrorEventsContext {
  readonly engine: ReplayEngine;
  readonly generations: Generations;
  readonly detailsOf: Map<number, RequestDetails>;
  readonly onNote: (note: string) => void;
}

export class ErrorEvents {
  readonly #context: ErrorEventsContext;
  readonly #whole = new FieldWriter([...SURE, ...SENT]);
  readonly #cut = new FieldWriter(SURE);
  readonly #plans = new Map<string, Plans>();
  #order = 0;

  constructor(context: ErrorEventsContext) {
    this.#context = context;
  }

  /**
   * Hands the request behind a line to the engine.
   *
   * @returns false when it can't be told under which rules it was
   */
  submit(line: WaitingLine, parsed: LimitLine): boolean {
    const { engine, generations } = this.#context;
    const generation = generations.of(line.pid, line.secondMs);
    const rules = this.#rulesOf(generation, line, parsed);
    if (rules < 0) return false;
    const { pool } = engine;
    const event = pool.take();
    pool.rules[event] = rules;
    pool.pid[event] = line.pid;
    pool.connection[event] = line.connection;
    pool.order[event] = this.#order++;
    pool.flags[event] = FLAG.coarse | FLAG.errorOnly;
    pool.loMs[event] = line.secondMs;
    pool.estMs[event] = line.secondMs;
    pool.hiMs[event] = line.secondMs + SECOND_MS;
    pool.endMs[event] = line.secondMs;
    const rule = engine.rules[rules]!;
    if (line.kind === 'connections') {
      pool.logged[event] = STATUS.none;
      pool.connLogged[event] = line.isDryRun ? STATUS.rejectedDryRun : STATUS.rejected;
    }
    if (line.kind !== 'delayed' && !line.isDryRun) {
      pool.httpStatus[event] =
        line.kind === 'connections' ? rule.limitConnStatus : rule.limitReqStatus;
    }
    applyLine(engine, event, line);
    this.#setKeys(event, generation, line, parsed);
    this.#context.engine.pool.flags[event]! |= FLAG.detailed;
    this.#context.detailsOf.set(event, {
      requestId: null,
      method: parsed.request?.method ?? '',
      path: parsed.request?.path ?? '',
      client: line.client,
    });
    engine.submit(event);
    return true;
  }

  /** The rules in the request's location; where those lack the line's zone, the only ones with it. */
  #rulesOf(generation: Generation, line: WaitingLine, parsed: LimitLine): number {
    const raw = parsed.request?.raw ?? '';
    // A cut request line still tells its path when the cut is behind it.
    const isPathWhole = !parsed.truncated || raw.includes('?');
    // A subrequest has a location of its own, and arguments that no line tells.
    const writer = isPathWhole && parsed.subrequest === null ? this.#whole : this.#cut;
    writer.write(line, parsed);
    const { engine } = this.#context;
    const found = this.#plansOf(generation, writer).finder.find(writer.bytes);
    if (found >= 0 && hasZone(engine.rules[found]!, line)) return found;
    const { conf, ruleBase } = generation;
    const others = conf.ruleSets.filter(
      ({ id, serverName }) =>
        serverName === line.server && hasZone(engine.rules[ruleBase + id]!, line),
    );
    return others.length === 1 ? ruleBase + others[0]!.id : -1;
  }

  #setKeys(event: number, generation: Generation, line: WaitingLine, parsed: LimitLine): void {
    const { engine } = this.#context;
    const { pool } = engine;
    const rules = pool.rules[event]!;
    const writer = parsed.truncated || parsed.subrequest !== null ? this.#cut : this.#whole;
    writer.write(line, parsed);
    const plans = this.#plansOf(generation, writer);
    let keys = plans.keys.get(rules);
    if (keys === undefined) {
      keys = this.#planKeys(generation, writer.scanner, rules);
      plans.keys.set(rules, keys);
    }
    for (const [i, limit] of engine.rules[rules]!.limits.entries()) {
      const slot = event + i;
      const plan = keys[i] ?? null;
      const length = plan === null ? UNKNOWN_KEY : plan.evaluate(writer.bytes, writer.scanner);
      if (plan === null || length <= 0) {
        pool.keyId[slot] = length === 0 ? NO_KEY : UNKNOWN_KEY;
        continue;
      }
      const id = limit.zone.keys.intern(plan.out, 0, length);
      limit.zone.keys.retain(id);
      pool.keyId[slot] = id;
      pool.keyLength[slot] = plan.keyLengthBytes;
    }
  }

  #plansOf(generation: Generation, writer: FieldWriter): Plans {
    const name = `${generation.index} ${writer === this.#cut ? 'cut' : 'whole'}`;
    let plans = this.#plans.get(name);
    if (plans === undefined) {
      plans = { finder: new RuleFinder(writer.scanner, generation, []), keys: new Map() };
      this.#plans.set(name, plans);
    }
    return plans;
  }

  #planKeys(generation: Generation, scanner: LineScanner, rules: number): (KeyPlan | null)[] {
    const ruleSet = this.#context.generations.ruleSets[rules]!;
    return ruleSet.limits.map((limit): KeyPlan | null => {
      const planned = planKey(generation.conf.reqZones.get(limit.zone)!.keyExpression, {
        conf: generation.conf,
        zone: limit.zone,
        variables: scanner.variables,
        escape: 'none',
        constants: { server_name: ruleSet.serverName },
      });
      if ('plan' in planned) return planned.plan;
      this.#context.onNote(`without an access log: ${planned.why}`);
      return null;
    });
  }
}

function hasZone(rule: RuleRow, line: WaitingLine): boolean {
  if (line.kind === 'connections') return rule.connZones.includes(line.zone);
  return rule.limits.some((limit) => limit.zone.name === line.zone);
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

/** Values side by side, as a scanner leaves them: nothing has to be found in what is put together. */
class FieldWriter {
  readonly scanner: LineScanner;
  bytes: Uint8Array = new Uint8Array(0);

  constructor(variables: readonly string[]) {
    const text = variables.map((name) => `$${name}`).join(' ');
    this.scanner = compileLogFormat({ name: 'error log', escape: 'none', text });
  }

  /** Values stay latin1, as in the line. */
  write(line: WaitingLine, parsed: LimitLine): void {
    const { starts, ends } = this.scanner;
    const { client, server } = line;
    const sent = [parsed.request?.raw ?? '', parsed.host ?? '', parsed.referrer ?? ''];
    const values = [client, server, ...sent].slice(0, starts.length);
    this.bytes = Buffer.from(values.join(' '), 'latin1');
    let at = 0;
    for (const [i, value] of values.entries()) {
      starts[i] = at;
      at += value.length;
      ends[i] = at;
      at += 1;
    }
  }
}
