/**
 * The alerts at one moment, from the store alone: which fire, and which would if it went on.
 *
 * No memory is needed for `for`: the windows that ended earlier are asked as well, minute by minute.
 * What only a running daemon knows is left out and named. Units: epoch seconds.
 */
import type { Condition, ConditionName, Settings } from '../../alerts/condition.js';
import {
  CONDITIONS,
  conditionsInForce,
  settingsOf,
  type Overrides,
} from '../../alerts/conditions.js';
import type { Store } from '../store/store.js';
import { alertId, type Found, type Labels } from './alert-book.js';
import { describeAlert } from './messages.js';
import { askStore } from './readings.js';

const STEP_S = 60;

export interface OneAlert {
  readonly name: ConditionName;
  readonly state: 'firing' | 'pending';
  readonly value: number;
  /** With alertname and severity. */
  readonly labels: Labels;
  readonly annotations: Labels;
}

export interface Evaluation {
  /** End of the windows of log time; null for a store without requests. */
  readonly atS: number | null;
  /** What was evaluated by the wall clock was so at this time. */
  readonly nowS: number;
  readonly alerts: readonly OneAlert[];
  readonly evaluated: readonly ConditionName[];
  /** Only a running daemon can tell these. */
  readonly notEvaluated: readonly ConditionName[];
}

export interface EvaluateOptions {
  readonly overrides: Overrides;
  readonly runbooksUrl?: string;
  /** Empty for all. */
  readonly instance: string;
  /** The moment, also for what goes by the wall clock; else the newest that the store has, and now. */
  readonly atS?: number;
  readonly nowS: number;
}

/** @throws InputError (io) when the store does not answer */
export async function evaluateOnce(
  store: Pick<Store, 'query'>,
  options: EvaluateOptions,
): Promise<Evaluation> {
  const { overrides, atS = await newestS(store, options.instance) } = options;
  const nowS = options.atS ?? options.nowS;
  const alerts: OneAlert[] = [];
  const evaluated: ConditionName[] = [];
  for (const condition of conditionsInForce(overrides)) {
    const form = condition.evaluate;
    const toS = form.clock === 'log' ? atS : nowS;
    if ('metric' in form || toS === null) continue;
    evaluated.push(condition.name);
    const settings = settingsOf(condition, overrides);
    const ask = (at: number): Promise<readonly Found[]> =>
      askStore(store, condition, form, settings, at, options.instance);
    alerts.push(...(await holding(condition, settings, ask, toS, options)));
  }
  const notEvaluated = CONDITIONS.filter(({ evaluate }) => 'metric' in evaluate);
  return { atS, nowS, alerts, evaluated, notEvaluated: notEvaluated.map(({ name }) => name) };
}

async function holding(
  { name }: Condition,
  settings: Settings,
  ask: (toS: number) => Promise<readonly Found[]>,
  toS: number,
  options: EvaluateOptions,
): Promise<readonly OneAlert[]> {
  const now = await ask(toS);
  let held = new Set(now.map(({ labels }) => alertId(name, labels)));
  for (let back = STEP_S; held.size > 0 && back < settings.forSeconds + STEP_S; back += STEP_S) {
    const then = await ask(toS - Math.min(back, settings.forSeconds));
    const ids = new Set(then.map(({ labels }) => alertId(name, labels)));
    held = new Set([...held].filter((id) => ids.has(id)));
  }
  return now.map(({ labels, value }) => ({
    name,
    state: held.has(alertId(name, labels)) ? 'firing' : 'pending',
    value,
    ...describeAlert({ name, labels, value }, options),
  }));
}

/** End of the newest bucket with requests, up to the next whole minute. */
async function newestS(store: Pick<Store, 'query'>, instance: string): Promise<number | null> {
  const [row] = await store.query<{ newest: number }>(
    `SELECT toUnixTimestamp(max(bucket)) AS newest FROM responses
     WHERE {instance:String} = '' OR instance = {instance:String}`,
    { instance },
  );
  const newest = row?.newest ?? 0;
  return newest === 0 ? null : Math.ceil((newest + 10) / STEP_S) * STEP_S;
}
