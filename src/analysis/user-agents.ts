/**
 * Refused keys behind which many clients stand: one address with many user agents is a NAT, or a
 * proxy, and refusing it refuses many people.
 *
 * From logs alone, since user agents are stored nowhere. What is kept of one is a hash; keys and
 * agents are bounded. Empty agents do not count.
 */
import { decidingLimit, effectiveStatus } from '../aggregate/outcome-words.js';
import type { AccessFields } from '../replay/access-fields.js';
import type { ReplaySession } from '../replay/session.js';
import { isRejected } from '../replay/status.js';
import { KeyTallies } from './key-tallies.js';
import type { SourceFinding } from './sources.js';

/** Refusals and agents from which on a key is worth a look. */
const ENOUGH_REFUSALS = 10;
const MANY_AGENTS = 5;
/** More agents of one key are not told apart. */
const MOST_AGENTS = 64;
const MOST_KEYS = 10_000;
const MOST_FINDINGS = 20;
const DASH = 0x2d;

interface KeyAgents {
  refused: number;
  readonly agents: Set<number>;
}

export class UserAgents {
  readonly #session: ReplaySession;
  /** Of requests that are not decided yet. */
  readonly #waiting = new Map<number, number>();
  readonly #tallies = new KeyTallies<KeyAgents>(
    () => ({ refused: 0, agents: new Set() }),
    ({ refused }) => refused,
    MOST_KEYS,
  );
  #lacks = false;

  constructor(session: ReplaySession) {
    this.#session = session;
  }

  /** Some log has no $http_user_agent. */
  get isIncomplete(): boolean {
    return this.#lacks;
  }

  /** A request's line, while it stands in its scanner. */
  submit(event: number, line: Uint8Array, { scanner }: AccessFields): void {
    const index = scanner.indexOf('http_user_agent');
    if (index < 0) {
      this.#lacks = true;
      return;
    }
    const start = scanner.starts[index]!;
    const end = scanner.ends[index]!;
    const isEmpty = end === start || (end === start + 1 && line[start] === DASH);
    if (!isEmpty) this.#waiting.set(event, hash(line, start, end));
  }

  decide(event: number): void {
    const agent = this.#waiting.get(event);
    if (agent === undefined) return;
    this.#waiting.delete(event);
    const { pool, rules } = this.#session.engine;
    const rule = rules[pool.rules[event]!];
    const status = effectiveStatus(pool, event);
    if (rule === undefined || rule.limits.length === 0 || !isRejected(status)) return;
    const position = decidingLimit(pool, event, status, rule.limits);
    const keyId = pool.keyId[event + position]!;
    if (keyId < 0) return;
    const { zone } = rule.limits[position]!;
    const tally = this.#tallies.of(JSON.stringify([zone.name, zone.keys.text(keyId)]));
    tally.refused++;
    if (tally.agents.size < MOST_AGENTS) tally.agents.add(agent);
  }

  /** Those with most refusals first. */
  findings(instance: string): SourceFinding[] {
    const many = this.#tallies
      .heaviest(Infinity)
      .filter(([, { refused, agents }]) => {
        return refused >= ENOUGH_REFUSALS && agents.size >= MANY_AGENTS;
      })
      .slice(0, MOST_FINDINGS);
    return many.map(([name, { refused, agents }]) => {
      const [zone, key] = JSON.parse(name) as [string, string];
      const number = agents.size >= MOST_AGENTS ? `at least ${MOST_AGENTS}` : String(agents.size);
      return {
        code: 'many_user_agents',
        instance,
        subject: `${zone} ${key}`,
        message:
          `${refused} requests of ${key} were refused in zone ${zone}, with ${number} different user ` +
          'agents: many clients behind one key (a NAT or a proxy), who share its rate',
      };
    });
  }
}

/** FNV-1a. */
function hash(bytes: Uint8Array, start: number, end: number): number {
  let value = 0x811c9dc5;
  for (let i = start; i < end; i++) value = Math.imul(value ^ bytes[i]!, 0x01000193);
  return value >>> 0;
}
