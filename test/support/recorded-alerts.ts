/**
 * The daemon's log and metrics, as far as alerts write to them, kept in memory.
 */
import type { MetricId } from '../../dashboards/metric-names.js';
import type { AlertLog, AlertMetrics } from '../../src/alerting/notified.js';
import type { Sample } from '../../src/alerting/readings.js';

export interface Said {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export class RecordedAlerts implements AlertLog, AlertMetrics {
  readonly said: Said[] = [];
  readonly #values = new Map<MetricId, Map<string, Sample>>();
  #wake: () => void = () => undefined;

  info(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#say('info', message, fields);
  }

  warn(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#say('warn', message, fields);
  }

  error(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#say('error', message, fields);
  }

  add(id: MetricId, labels: Readonly<Record<string, string>>, by: number): void {
    const before = this.#values.get(id)?.get(JSON.stringify(labels))?.value ?? 0;
    this.set(id, labels, before + by);
  }

  set(id: MetricId, labels: Readonly<Record<string, string>>, value: number): void {
    const own = this.#values.get(id) ?? new Map<string, Sample>();
    this.#values.set(id, own.set(JSON.stringify(labels), { labels, value }));
    this.wake();
  }

  /** With the label `instance`, as the daemon's metrics have it. */
  samples(id: MetricId): Promise<readonly Sample[]> {
    const own = [...(this.#values.get(id)?.values() ?? [])];
    return Promise.resolve(
      own.map(({ labels, value }) => ({ labels: { instance: 'web1', ...labels }, value })),
    );
  }

  value(id: MetricId, receiver: string): number | undefined {
    return this.#values.get(id)?.get(JSON.stringify({ receiver }))?.value;
  }

  all(): unknown {
    return [this.said, [...this.#values].map(([id, own]) => [id, [...own.values()]])];
  }

  /** Waits for what is said or counted to make it true. */
  async until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  wake(): void {
    this.#wake();
  }

  #say(level: string, message: string, fields: Readonly<Record<string, unknown>>): void {
    this.said.push({ level, message, fields });
    this.wake();
  }
}
