/**
 * For which labels a condition holds: asked of the store, or of the daemon's own metrics.
 *
 * Of counters the gain within the window is taken as PromQL's increase() takes it, from what they
 * showed at each evaluation, without its extrapolation. Units: epoch seconds for the store, epoch
 * milliseconds for the daemon.
 */
import type { Condition, ProcessForm, Settings, StoreForm } from '../../alerts/condition.js';
import type { MetricId } from '../../dashboards/metric-names.js';
import type { Store } from '../store/store.js';
import { alertId, type Found, type Labels } from './alert-book.js';

/** An evaluation must not hold up the next one. */
const MOST_SECONDS = 20;

/**
 * @param toS end of the window; a multiple of 10
 * @param instance empty for all of them
 * @throws InputError (io) when the store does not answer
 */
export async function askStore(
  store: Pick<Store, 'query'>,
  { labels }: Condition,
  form: StoreForm,
  settings: Settings,
  toS: number,
  instance: string,
): Promise<readonly Found[]> {
  const rows = await store.query<Record<string, unknown>>(
    form.sql(settings),
    { to: toS, instance },
    { maxSeconds: MOST_SECONDS },
  );
  return rows.map((row) => ({ labels: labelsOf(labels, row), value: Number(row['value']) }));
}

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** What a metric of the daemon shows now. */
export type ReadMetric = (id: MetricId) => Promise<readonly Sample[]>;

/** A window of the values of each series, oldest first. */
type History = { readonly ms: number; readonly value: number }[];

export class ProcessReadings {
  readonly #read: ReadMetric;
  readonly #histories = new Map<string, History>();

  constructor(read: ReadMetric) {
    this.#read = read;
  }

  async ask(
    { name, labels }: Condition,
    form: ProcessForm,
    { threshold, windowSeconds }: Settings,
    nowMs: number,
  ): Promise<readonly Found[]> {
    const groups = new Map<string, Found>();
    for (const sample of await this.#read(form.metric)) {
      if (form.where !== undefined && sample.labels[form.where[0]] !== form.where[1]) continue;
      const group = labelsOf(labels, sample.labels);
      const id = alertId(name, group);
      const before = groups.get(id)?.value;
      let { value } = sample;
      if (form.take === 'increase') {
        const gained = this.#increase(alertId(name, sample.labels), value, windowSeconds, nowMs);
        value = gained + (before ?? 0);
      } else value = Math.max(value, before ?? -Infinity);
      groups.set(id, { labels: group, value });
    }
    return [...groups.values()].filter(({ value }) => value > threshold);
  }

  #increase(series: string, value: number, windowSeconds: number, nowMs: number): number {
    const history = this.#histories.get(series) ?? [];
    this.#histories.set(series, history);
    history.push({ ms: nowMs, value });
    // The newest one at or before the begin of the window is what gains are counted from.
    while (history.length > 1 && history[1]!.ms <= nowMs - windowSeconds * 1000) history.shift();
    return value - history[0]!.value;
  }
}

function labelsOf(names: readonly string[], row: Readonly<Record<string, unknown>>): Labels {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  return Object.fromEntries(names.map((name) => [name, text(row[name])]));
}
