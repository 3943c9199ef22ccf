/**
 * Location and keys of a request from its error-log line alone.
 *
 * A line gives client, server, request line, Host and Referer: put side by side they are a line of
 * a log_format, from which location and keys are found as from any other. The request line is the
 * one that the client sent, also where an error page has changed what the access log shows.
 *
 * Not here: which line belongs to which request (line-join.ts).
 */
import { compileLogFormat, type LineScanner } from '../../parsers/access/line-scanner.js';
import { planKey, type KeyPlan } from '../keys/key-plan.js';
import type { ReplayEngine } from './engine.js';
import { NO_KEY, UNKNOWN_KEY } from './event-flags.js';
import type { Generation, Generations } from './generations.js';
import type { WaitingLine } from './line-join.js';
import type { RuleRow } from './limit-table.js';
import { RuleFinder } from './rule-finder.js';

/** What a line tells; the rest is what a client sent, and may be cut off. */
const SURE = ['remote_addr', 'server_name'];
const SENT = ['request', 'http_host', 'http_referer'];

/** A line with what is known of its request beyond that. */
export interface ToldRequest {
  readonly line: WaitingLine;
  /** The request line as sent, or its beginning. */
  readonly request: string;
  readonly referrer: string;
  /** The request line is cut off, or is another request's: a subrequest has but its parent's. */
  readonly isUnsure: boolean;
}

export interface ToldRules {
  readonly rules: number;
  /** The rules of the request line's own location. */
  readonly isOwnLocation: boolean;
  /** A rewrite there may have led the request on before its limits were asked. */
  readonly mayBeRewritten: boolean;
}

interface Plans {
  readonly finder: RuleFinder;
  /** By rule set of the common numbering, by limit; null for a key that the line cannot tell. */
  readonly keys: Map<number, (KeyPlan | null)[]>;
}

export class LineRules {
  readonly #engine: ReplayEngine;
  readonly #generations: Generations;
  readonly #onNote: (note: string) => void;
  readonly #whole = new FieldWriter([...SURE, ...SENT]);
  readonly #sure = new FieldWriter(SURE);
  readonly #plans = new Map<string, Plans>();

  /** @param onNote told of keys that an error log cannot tell */
  constructor(
    engine: ReplayEngine,
    generations: Generations,
    onNote: (note: string) => void = () => undefined,
  ) {
    this.#engine = engine;
    this.#generations = generations;
    this.#onNote = onNote;
  }

  /**
   * The rules that the request was under: those of its location, or, where these lack the line's
   * zone, the only ones of the server that have it.
   *
   * @returns undefined when that cannot be told
   */
  find(told: ToldRequest): ToldRules | undefined {
    const { line, request, isUnsure } = told;
    const generation = this.#generations.of(line.pid, line.secondMs);
    // A request line that is cut behind its path still tells the location.
    const writer = !isUnsure || request.includes('?') ? this.#whole : this.#sure;
    writer.write(told);
    const found = this.#plansOf(generation, writer).finder.find(writer.bytes);
    if (found >= 0 && hasZone(this.#engine.rules[found]!, line)) {
      const mayBeRewritten = this.#generations.ruleSets[found]!.rewriteWhere !== undefined;
      return { rules: found, isOwnLocation: true, mayBeRewritten };
    }
    const { conf, ruleBase } = generation;
    const others = conf.ruleSets.filter(
      ({ id, serverName }) =>
        serverName === line.server && hasZone(this.#engine.rules[ruleBase + id]!, line),
    );
    if (others.length !== 1) return undefined;
    return { rules: ruleBase + others[0]!.id, isOwnLocation: false, mayBeRewritten: false };
  }

  /** Whether the line's request may have been limited, and logged, under another URI than its own. */
  mayBeLed(line: WaitingLine): boolean {
    if (line.request === '') return false;
    const told = { line, request: line.request, referrer: '', isUnsure: false };
    const found = this.find(told);
    return found?.isOwnLocation !== true || found.mayBeRewritten;
  }

  /**
   * Gives the event these rules and the keys that the line tells, in place of any it has. Under the
   * same rules a key that the line does not tell stays as it is.
   */
  apply(event: number, told: ToldRequest, found: ToldRules): void {
    const { pool, rules } = this.#engine;
    const isSame = pool.rules[event] === found.rules;
    if (!isSame) this.#releaseKeys(event);
    pool.rules[event] = found.rules;
    const generation = this.#generations.of(told.line.pid, told.line.secondMs);
    const writer = told.isUnsure || !found.isOwnLocation ? this.#sure : this.#whole;
    writer.write(told);
    const keys = this.#keysOf(generation, writer, found.rules);
    for (const [i, limit] of rules[found.rules]!.limits.entries()) {
      const plan = keys[i] ?? null;
      if (isSame && plan === null) continue;
      if (isSame && pool.keyId[event + i]! >= 0) limit.zone.keys.release(pool.keyId[event + i]!);
      const length = plan === null ? UNKNOWN_KEY : plan.evaluate(writer.bytes, writer.scanner);
      if (plan === null || length <= 0) {
        pool.keyId[event + i] = length === 0 ? NO_KEY : UNKNOWN_KEY;
        continue;
      }
      const id = limit.zone.keys.intern(plan.out, 0, length);
      limit.zone.keys.retain(id);
      pool.keyId[event + i] = id;
      pool.keyLength[event + i] = plan.keyLengthBytes;
    }
  }

  #releaseKeys(event: number): void {
    const { pool, rules } = this.#engine;
    const old = pool.rules[event]!;
    if (old < 0) return;
    for (const [i, limit] of rules[old]!.limits.entries()) {
      const id = pool.keyId[event + i]!;
      if (id >= 0) limit.zone.keys.release(id);
    }
  }

  #plansOf(generation: Generation, writer: FieldWriter): Plans {
    const name = `${generation.index} ${writer === this.#sure ? 'sure' : 'whole'}`;
    let plans = this.#plans.get(name);
    if (plans === undefined) {
      plans = { finder: new RuleFinder(writer.scanner, generation, []), keys: new Map() };
      this.#plans.set(name, plans);
    }
    return plans;
  }

  #keysOf(generation: Generation, writer: FieldWriter, rules: number): (KeyPlan | null)[] {
    const { keys } = this.#plansOf(generation, writer);
    let plans = keys.get(rules);
    if (plans === undefined) keys.set(rules, (plans = this.#planKeys(generation, writer, rules)));
    return plans;
  }

  #planKeys(generation: Generation, writer: FieldWriter, rules: number): (KeyPlan | null)[] {
    const ruleSet = this.#generations.ruleSets[rules]!;
    return ruleSet.limits.map((limit): KeyPlan | null => {
      const planned = planKey(generation.conf.reqZones.get(limit.zone)!.keyExpression, {
        conf: generation.conf,
        zone: limit.zone,
        variables: writer.scanner.variables,
        escape: 'none',
        constants: { server_name: ruleSet.serverName },
      });
      if ('plan' in planned) return planned.plan;
      if (writer === this.#whole) this.#onNote(`without an access log: ${planned.why}`);
      return null;
    });
  }
}

/** Whether the line's zone is one of the rule set's. */
export function hasZone(rule: RuleRow, line: WaitingLine): boolean {
  if (line.kind === 'connections') return rule.connZones.includes(line.zone);
  return rule.limits.some((limit) => limit.zone.name === line.zone);
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
  write({ line, request, referrer }: ToldRequest): void {
    const { starts, ends } = this.scanner;
    const all = [line.client, line.server, request, line.host, referrer];
    const values = all.slice(0, starts.length);
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
