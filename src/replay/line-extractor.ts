/**
 * From a scanned access-log line to its facts: numbers, the rule set it was under, and its keys.
 *
 * Needs the configurations, the log format, and nothing of the state of a replay; so it can work in
 * another thread than the replay does. Reads bytes, allocates nothing per line.
 */
import type { LineScanner } from '../../parsers/access/line-scanner.js';
import type { RuleSet, ServerConf } from '../../parsers/conf/model.js';
import { planKey, type KeyPlan } from '../keys/key-plan.js';
import { AccessFields } from './access-fields.js';
import type { Generation } from './generations.js';
import { LineFacts } from './line-facts.js';
import { RuleFinder } from './rule-finder.js';

/** What the extractor needs of the configurations. */
export interface RuleNumbering {
  readonly ruleSets: readonly RuleSet[];
  /** The configuration that decided a request of this worker (-1 when not logged) at this time. */
  of(pid: number, ms: number): Generation;
}

export class LineExtractor {
  readonly fields: AccessFields;
  readonly facts = new LineFacts();
  readonly #scanner: LineScanner;
  readonly #numbering: RuleNumbering;
  readonly #servers: readonly string[] | null;
  readonly #onNote: (note: string) => void;
  readonly #finders: (RuleFinder | undefined)[] = [];
  readonly #plans: ((KeyPlan | null)[] | undefined)[] = [];

  /**
   * @param servers names of the servers that write to this file; null when that is not known
   * @param onNote told of a key or a location that this format does not tell
   */
  constructor(
    scanner: LineScanner,
    numbering: RuleNumbering,
    servers: readonly string[] | null,
    onNote: (note: string) => void,
  ) {
    this.#scanner = scanner;
    this.#numbering = numbering;
    this.#servers = servers;
    this.#onNote = onNote;
    this.fields = new AccessFields(scanner);
  }

  /** Fills `facts` from the line just scanned. @param endMs fields.endMs() of the line */
  extract(bytes: Uint8Array, endMs: number): void {
    const { fields, facts } = this;
    facts.endMs = endMs;
    facts.requestMs = fields.requestMs(bytes);
    facts.upstreamMs = fields.upstreamMs(bytes);
    facts.httpStatus = fields.httpStatus(bytes);
    facts.limitReqStatus = fields.limitReqStatus();
    facts.limitConnStatus = fields.limitConnStatus();
    facts.upstreamStatus = fields.upstreamStatus(bytes);
    facts.connection = fields.connection(bytes);
    facts.connectionRequests = fields.connectionRequests(bytes);
    facts.pid = fields.pid(bytes);
    const createdMs = facts.requestMs > 0 ? endMs - facts.requestMs : endMs;
    const generation = this.#numbering.of(facts.pid, createdMs);
    facts.rules = this.#finderOf(generation).find(bytes);
    facts.keyCount = 0;
    if (facts.rules >= 0) this.#setKeys(bytes, generation);
  }

  #setKeys(bytes: Uint8Array, generation: Generation): void {
    const { facts } = this;
    const plans = this.#plans[facts.rules] ?? this.#planKeys(generation, facts.rules);
    facts.keyCount = plans.length;
    let at = 0;
    for (let i = 0; i < plans.length; i++) {
      const plan = plans[i]!;
      const length = plan === null ? -1 : plan.evaluate(bytes, this.#scanner);
      facts.keyLengths[i] = length;
      facts.keyStarts[i] = at;
      if (length <= 0) continue;
      facts.nodeKeyLengths[i] = plan.keyLengthBytes;
      if (at + length > facts.keyBytes.length) this.#growKeys(at + length);
      const { out } = plan;
      const { keyBytes } = facts;
      for (let k = 0; k < length; k++) keyBytes[at + k] = out[k]!;
      at += length;
    }
  }

  #growKeys(length: number): void {
    const longer = new Uint8Array(length * 2);
    longer.set(this.facts.keyBytes);
    this.facts.keyBytes = longer;
  }

  #finderOf(generation: Generation): RuleFinder {
    const known = this.#finders[generation.index];
    if (known !== undefined) return known;
    const names = this.#servers;
    const servers: readonly ServerConf[] =
      names === null
        ? []
        : generation.conf.servers.filter((server) => names.includes(server.names[0] ?? ''));
    const finder = new RuleFinder(this.#scanner, generation, servers);
    this.#finders[generation.index] = finder;
    if (finder.pathField === null && !finder.isPathless) {
      this.#onNote(
        `log_format "${this.#scanner.format.name}" tells no location: log $request (or $request_uri)`,
      );
    }
    return finder;
  }

  #planKeys(generation: Generation, rules: number): (KeyPlan | null)[] {
    const ruleSet = this.#numbering.ruleSets[rules]!;
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
      this.#onNote(planned.why);
      return null;
    });
    this.#plans[rules] = plans;
    return plans;
  }
}
