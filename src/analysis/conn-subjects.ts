/**
 * By which keys requests under way are counted: those of the configuration's limit_conn zones, or
 * one that was asked for.
 *
 * A key is had from the line when it is read, and waits for the request's decision.
 */
import { EXIT, InputError } from '../errors.js';
import { planKey, type KeyPlan } from '../keys/key-plan.js';
import { KeyTable } from '../keys/key-table.js';
import { MAX_CONN_KEY_BYTES } from '../limit-req/layout.js';
import type { AccessFields } from '../replay/access-fields.js';
import type { Generation } from '../replay/generations.js';
import type { ReplaySession } from '../replay/session.js';
import { ConnCandidates } from './conn-candidates.js';
import { KeyConcurrencyMeter, type HeldRequest } from './key-concurrency.js';

/** What is tried where no number is asked for. */
const LADDER = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 100];
/** For a zone that does not exist: room for as many keys as can be under way. */
const AMPLE_ZONE = { sizeBytes: 64 << 20, nameLength: 8 };
const DEFAULT_KEY = '$binary_remote_addr';

/** @throws nothing; a key that the log does not tell shows with the first line */
export function subjectsOf(
  session: ReplaySession,
  options: {
    readonly key?: string;
    readonly limitConn?: number;
    readonly tried?: readonly number[];
  },
): ConnSubject[] {
  const ladder = options.tried ?? LADDER;
  const tried = options.limitConn === undefined ? ladder : [options.limitConn];
  const confs = session.generations.list.map(({ conf }) => conf);
  const zones = new Map(confs.flatMap((conf) => [...conf.connZones]));
  if (options.key === undefined && zones.size > 0) {
    return [...zones.values()].map(
      ({ name, keyExpression, sizeBytes }) =>
        new ConnSubject(session, { zone: name, keyExpression }, tried, {
          sizeBytes,
          nameLength: Buffer.byteLength(name),
        }),
    );
  }
  const keyExpression = options.key ?? DEFAULT_KEY;
  const isDemanded = options.key !== undefined;
  return [new ConnSubject(session, { zone: null, keyExpression, isDemanded }, tried, AMPLE_ZONE)];
}

export class ConnSubject {
  /** null for a key that was asked for. */
  readonly zone: string | null;
  readonly keyExpression: string;
  readonly keys = new KeyTable();
  readonly meter: KeyConcurrencyMeter;
  readonly memory: { readonly sizeBytes: number; readonly nameLength: number };
  notLimited = 0;
  withoutKey = 0;
  readonly #session: ReplaySession;
  readonly #isDemanded: boolean;
  /** By scanner and rule set. */
  readonly #plans = new Map<AccessFields, Map<number, KeyPlan | null>>();
  /** Keys of requests that are not decided yet, with their lengths in nginx. */
  readonly #waiting = new Map<number, { readonly keyId: number; readonly lengthBytes: number }>();

  constructor(
    session: ReplaySession,
    what: {
      readonly zone: string | null;
      readonly keyExpression: string;
      /** Asked for: a log that does not tell it will not do. */
      readonly isDemanded?: boolean;
    },
    tried: readonly number[],
    memory: { readonly sizeBytes: number; readonly nameLength: number },
  ) {
    this.#session = session;
    this.zone = what.zone;
    this.#isDemanded = what.isDemanded ?? false;
    this.keyExpression = what.keyExpression;
    this.memory = memory;
    this.meter = new KeyConcurrencyMeter(this.keys, new ConnCandidates(tried, memory));
  }

  submit(event: number, line: Uint8Array, fields: AccessFields): void {
    const { pool } = this.#session.engine;
    const rules = pool.rules[event]!;
    if (!this.#isAsked(rules)) return;
    const generation = this.#session.generations.of(pid(pool.pid[event]!), pool.loMs[event]!);
    const plan = this.#planOf(fields, rules, generation);
    const length = plan === null ? -1 : plan.evaluate(line, fields.scanner);
    if (plan === null || length < 0) {
      this.withoutKey++;
      return;
    }
    if (length === 0 || plan.keyLengthBytes > MAX_CONN_KEY_BYTES) {
      this.notLimited++;
      return;
    }
    const keyId = this.keys.intern(plan.out, 0, length);
    this.keys.retain(keyId);
    this.#waiting.set(event, { keyId, lengthBytes: plan.keyLengthBytes });
  }

  /**
   * The request has been decided.
   *
   * @param isCounted false when limit_conn never saw it
   * @returns null when it has no part in this; else its key stays retained until released
   */
  take(event: number, isCounted: boolean, startMs: number, endMs: number): HeldRequest | null {
    const waiting = this.#waiting.get(event);
    if (waiting === undefined) return null;
    this.#waiting.delete(event);
    const { keyId, lengthBytes: keyLengthBytes } = waiting;
    if (!isCounted) {
      this.keys.release(keyId);
      return null;
    }
    const held = new Int32Array(this.meter.candidates.connections.length);
    return { keyId, keyLengthBytes, startMs, endMs, held };
  }

  #isAsked(rules: number): boolean {
    if (this.zone === null) return true;
    const rule = this.#session.engine.rules[rules];
    return rule?.connZones.includes(this.zone) === true;
  }

  #planOf(fields: AccessFields, rules: number, generation: Generation): KeyPlan | null {
    const plans = this.#plans.get(fields) ?? new Map<number, KeyPlan | null>();
    this.#plans.set(fields, plans);
    const known = plans.get(rules);
    if (known !== undefined) return known;
    const plan = this.#plan(fields, rules, generation);
    plans.set(rules, plan);
    return plan;
  }

  #plan({ scanner }: AccessFields, rules: number, { conf }: Generation): KeyPlan | null {
    const zone = this.zone === null ? undefined : conf.connZones.get(this.zone);
    const ruleSet = this.#session.generations.ruleSets[rules];
    const planned = planKey(zone?.keyExpression ?? this.keyExpression, {
      conf,
      ...(this.zone === null ? {} : { zone: this.zone }),
      variables: scanner.variables,
      escape: scanner.format.escape,
      constants: ruleSet === undefined ? {} : { server_name: ruleSet.serverName },
    });
    if ('plan' in planned) return planned.plan;
    if (this.#isDemanded) {
      throw new InputError(
        `--key ${this.keyExpression}: log_format "${scanner.format.name}" does not tell it: ${planned.why}`,
        EXIT.badLines,
      );
    }
    this.#session.note(planned.why);
    return null;
  }
}

/** Generations.of() takes -1 for a worker that is not known. */
function pid(logged: number): number {
  return logged >= 0 ? logged : -1;
}
