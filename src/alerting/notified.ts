/**
 * What became of notifications, for metrics and the log: so that silence is never mistaken for peace.
 */
import type { MetricId } from '../../dashboards/metric-names.js';

/** The daemon's log. */
export interface AlertLog {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** The daemon's metrics. */
export interface AlertMetrics {
  add(id: MetricId, labels: Readonly<Record<string, string>>, by: number): void;
  set(id: MetricId, labels: Readonly<Record<string, string>>, value: number): void;
}

export class Notified {
  readonly #metrics: AlertMetrics;
  readonly #log: AlertLog;
  readonly #isFailing = new Set<string>();

  constructor(metrics: AlertMetrics, log: AlertLog) {
    this.#metrics = metrics;
    this.#log = log;
  }

  /** A receiver's counters begin at zero. */
  begin(receiver: string): void {
    for (const id of ['notifications', 'notificationsFailed', 'notificationsMerged'] as const) {
      this.#metrics.add(id, { receiver }, 0);
    }
    for (const id of ['notificationQueueLength', 'notificationLastSuccess'] as const) {
      this.#metrics.set(id, { receiver }, 0);
    }
  }

  /** Nothing waits for a receiver that is told no more. */
  end(receiver: string): void {
    this.#metrics.set('notificationQueueLength', { receiver }, 0);
  }

  taken(receiver: string, nowMs: number): void {
    this.#metrics.add('notifications', { receiver }, 1);
    this.#metrics.set('notificationLastSuccess', { receiver }, nowMs / 1000);
    if (this.#isFailing.delete(receiver)) {
      this.#log.info('notifications are taken again', { receiver });
    }
  }

  failed(receiver: string, error: string, fields: Readonly<Record<string, unknown>>): void {
    this.#metrics.add('notificationsFailed', { receiver }, 1);
    this.#isFailing.add(receiver);
    this.#log.error('a notification failed', { receiver, error, ...fields });
  }

  merged(receiver: string): void {
    this.#metrics.add('notificationsMerged', { receiver }, 1);
    this.#log.warn('too many notifications wait; the two oldest became one', { receiver });
  }

  waiting(receiver: string, length: number): void {
    this.#metrics.set('notificationQueueLength', { receiver }, length);
  }
}
