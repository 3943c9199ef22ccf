/**
 * From a scanned access-log line to its facts: numbers, the rule set it was under, and its keys.
 *
 * Needs the configurations, the log format, and nothing of the state of a replay; so it can work in
 * another thread than the replay does. Reads bytes, allocates nothing per line.
 */
import type { LineScanner } from '../../parsers/access/line-scanner.js';
import type { RuleSet, ServerConf } from '../../parsers/conf/model.js';
import { KeyNumbering } from '../keys/key-numbers.js';
import { planKey, type KeyPlan } from '../keys/key-plan.js';
import { AccessFields } from './access-fields.js';
import { WIDE_MS } from './event-flags.js';
import type { Generation } from './generations.js';
import { LineFacts, SLACK } from './line-facts.js';
import { RuleFinder } from './rule-finder.js';
import { STATUS } from './status.js';

/** What the extractor needs of the configurations. */
export interface RuleNumbering {
  readonly ruleSets: readonly RuleSet[];
  /** The configuration that decided a request of this worker (-1 when not logged) at this time. */
  of(pid: number, ms: number): Generation;
}

/** How one limit's key is had, for lines that go to another thread. */
interface NumberedPlan {
  readonly plan: KeyPlan | null;
  readonly numbering: KeyNumbering;
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
  /** By rule set; used where keys are told by number. */
  readonly #numberedPlans: (NumberedPlan[] | undefined)[] = [];
  /** By zone and field. */
  readonly #numberings = new Map<string, KeyNumbering>();
  readonly #zoneIndexes: ReadonlyMap<string, number> | null;

  /**
   * @param servers names of the servers that write to this file; null when that is not known
   * @param onNote told of a key or a location that this format does not tell
   * @param zoneIndexes of each zone's name, when keys are to be told by number
   */
  constructor(
    scanner: LineScanner,
    numbering: RuleNumbering,
    servers: readonly string[] | null,
    onNote: (note: string) => void,
    zoneIndexes: ReadonlyMap<string, number> | null = null,
  ) {
    this.#scanner = scanner;
    this.#zoneIndexes = zoneIndexes;
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
    const slackMs = facts.requestMs - Math.max(0, facts.upstreamMs);
    facts.slack = slackMs > WIDE_MS ? fields.slack(bytes, facts.upstreamMs >= 0) : SLACK.unknown;
    facts.httpStatus = fields.httpStatus(bytes);
    facts.limitReqStatus = fields.limitReqStatus();
    facts.limitConnStatus = fields.limitConnStatus();
    facts.upstreamStatus = fields.upstreamStatus(bytes);
    facts.connection = fields.connection(bytes);
    facts.connectionRequests = fields.connectionRequests(bytes);
    facts.pid = fields.pid(bytes);
    const createdMs = facts.requestMs > 0 ? endMs - facts.requestMs : endMs;
    const generation = this.#numbering.of(facts.pid, createdMs);
    const finder = this.#finderOf(generation);
    facts.rules = finder.find(bytes);
    facts.keyCount = 0;
    if (facts.rules < 0) return;
    const wasAsked = facts.limitReqStatus > STATUS.none;
    if (wasAsked && this.#numbering.ruleSets[facts.rules]!.limits.length === 0) {
      const source = finder.findSource(bytes);
      if (source >= 0) facts.rules = source;
    }
    if (this.#zoneIndexes === null) this.#setKeys(bytes, generation);
    else this.#numberKeys(bytes, generation);
  }

  /** Sets the keys' numbers, and the bytes of those that have none yet. */
  #numberKeys(bytes: Uint8Array, generation: Generation): void {
    const { facts } = this;
    const { starts, ends } = this.#scanner;
    const plans = this.#numberedPlans[facts.rules] ?? this.#planNumbers(generation, facts.rules);
    facts.keyCount = plans.length;
    let at = 0;
    for (let i = 0; i < plans.length; i++) {
      const { plan, numbering } = plans[i]!;
      facts.isNewKey[i] = 0;
      if (plan === null) {
        facts.keyLengths[i] = -1;
        continue;
      }
      const { field } = plan;
      facts.keyNumberings[i] = numbering.index;
      facts.keyZones[i] = numbering.zoneIndex;
      if (field >= 0) {
        const start = starts[field]!;
        const known = numbering.find(bytes, start, ends[field]! - start);
        if (known >= 0) {
          facts.keyLengths[i] = 1;
          facts.keyIds[i] = known;
          continue;
        }
      }
      at = this.#numberKey(bytes, i, plan, numbering, at);
    }
  }

  /** @param at bytes of facts.keyBytes in use @returns the same with this key, if it is new */
  #numberKey(
    bytes: Uint8Array,
    position: number,
    plan: KeyPlan,
    numbering: KeyNumbering,
    at: number,
  ): number {
    const { facts } = this;
    const length = plan.evaluate(bytes, this.#scanner);
    facts.keyLengths[position] = length;
    if (length <= 0) return at;
    const { field, keyLengthBytes, out } = plan;
    const spelling = field >= 0 ? bytes : out;
    const start = field >= 0 ? this.#scanner.starts[field]! : 0;
    const spelled = field >= 0 ? this.#scanner.ends[field]! - start : length;
    const known = field >= 0 ? -1 : numbering.find(spelling, start, spelled);
    if (known >= 0) {
      facts.keyIds[position] = known;
      return at;
    }
    if (numbering.isFull) numbering.clear();
    facts.keyIds[position] = numbering.add(spelling, start, spelled);
    facts.isNewKey[position] = 1;
    facts.nodeKeyLengths[position] = keyLengthBytes;
    facts.keyStarts[position] = at;
    return this.#keepKey(out, length, at);
  }

  #keepKey(key: Uint8Array, length: number, at: number): number {
    if (at + length > this.facts.keyBytes.length) this.#growKeys(at + length);
    const { keyBytes } = this.facts;
    for (let k = 0; k < length; k++) keyBytes[at + k] = key[k]!;
    return at + length;
  }

  #planNumbers(generation: Generation, rules: number): NumberedPlan[] {
    const plans = this.#plans[rules] ?? this.#planKeys(generation, rules);
    const { limits } = this.#numbering.ruleSets[rules]!;
    const numbered = plans.map((plan, i): NumberedPlan => {
      const zoneIndex = this.#zoneIndexes!.get(limits[i]!.zone)!;
      const name = `${zoneIndex} ${plan?.field ?? -1}`;
      let numbering = this.#numberings.get(name);
      if (numbering === undefined) {
        numbering = new KeyNumbering(this.#numberings.size, zoneIndex);
        this.#numberings.set(name, numbering);
      }
      return { plan, numbering };
    });
    this.#numberedPlans[rules] = numbered;
    return numbered;
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
      at = this.#keepKey(plan.out, length, at);
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
