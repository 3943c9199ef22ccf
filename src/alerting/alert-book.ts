/**
 * The alerts there are, and how they go from pending to firing to resolved.
 *
 * As in Prometheus: a condition that holds makes a pending alert for each set of labels; one that has
 * held for `for` fires; one that fired and holds no longer is resolved, and is remembered for a while
 * so that every receiver hears of it. What is not evaluated stays as it is.
 *
 * Two clocks: `for` runs on the clock of the condition (log time or wall clock); when an alert began
 * to fire and ended is of the wall clock, since receivers compare it with theirs. Both in epoch
 * milliseconds. Pure: no clock of its own, no I/O.
 */
import type { Condition, ConditionName, Settings } from '../../alerts/condition.js';

export type Labels = Readonly<Record<string, string>>;

/** A set of labels for which a condition holds. */
export interface Found {
  readonly labels: Labels;
  readonly value: number;
}

export interface Alert {
  readonly name: ConditionName;
  /** Those of its condition: what it is about. */
  readonly labels: Labels;
  readonly state: 'pending' | 'firing' | 'resolved';
  readonly value: number;
  /** Since when the condition holds, on its own clock. */
  readonly activeMs: number;
  /** Wall clock; null while pending. */
  readonly startsMs: number | null;
  /** Wall clock; null before it is resolved. */
  readonly endsMs: number | null;
}

export interface BookState {
  readonly alerts: readonly Alert[];
  /** When each condition was evaluated last, on its own clock. */
  readonly evaluated: Readonly<Partial<Record<ConditionName, number>>>;
}

/** As Prometheus: Alertmanagers hear of a resolved alert for so long. */
export const RESOLVED_KEPT_MS = 15 * 60_000;
/** A pending alert whose condition nobody looked at for longer has to hold anew. */
export const LONGEST_GAP_MS = 5 * 60_000;

/** What an alert is told apart by, whatever order its labels came in. */
export function alertId(name: ConditionName, labels: Labels): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([name, ...sorted]);
}

export class AlertBook {
  readonly #alerts = new Map<string, Alert>();
  readonly #evaluated: Partial<Record<ConditionName, number>> = {};

  constructor(state?: BookState) {
    for (const alert of state?.alerts ?? []) {
      this.#alerts.set(alertId(alert.name, alert.labels), alert);
    }
    Object.assign(this.#evaluated, state?.evaluated);
  }

  get alerts(): readonly Alert[] {
    return [...this.#alerts.values()];
  }

  snapshot(): BookState {
    return { alerts: this.alerts, evaluated: { ...this.#evaluated } };
  }

  /**
   * Takes up for which labels a condition holds at a moment.
   *
   * @param clockMs the moment on the condition's own clock; `nowMs` by the wall clock
   * @returns the alerts that have just begun to fire, or were just resolved
   */
  advance(
    { name }: Pick<Condition, 'name'>,
    { forSeconds }: Pick<Settings, 'forSeconds'>,
    found: readonly Found[],
    clockMs: number,
    nowMs: number,
  ): readonly Alert[] {
    const lastMs = this.#evaluated[name] ?? clockMs;
    const isGap = clockMs < lastMs || clockMs - lastMs > LONGEST_GAP_MS;
    this.#evaluated[name] = clockMs;
    const changes: Alert[] = [];
    const holds = new Set<string>();
    for (const { labels, value } of found) {
      const id = alertId(name, labels);
      holds.add(id);
      const before = this.#alerts.get(id);
      const goesOn = before?.state === 'firing' || (before?.state === 'pending' && !isGap);
      const activeMs = goesOn ? before.activeMs : clockMs;
      const alert = { name, labels, value, activeMs, endsMs: null };
      const hasFired = before?.state === 'firing';
      const fires = hasFired || clockMs - activeMs >= forSeconds * 1000;
      const startsMs = hasFired ? before.startsMs : fires ? nowMs : null;
      const after: Alert = { ...alert, state: fires ? 'firing' : 'pending', startsMs };
      // A pending alert takes the place of one resolved: what holds again has to hold for as long.
      this.#alerts.set(id, after);
      if (fires && !hasFired) changes.push(after);
    }
    for (const [id, alert] of this.#alerts) {
      if (alert.name === name && !holds.has(id)) changes.push(...this.#release(id, alert, nowMs));
    }
    return changes;
  }

  /** Its condition holds no longer. @returns the alert where it was just resolved */
  #release(id: string, alert: Alert, nowMs: number): Alert[] {
    if (alert.state === 'firing') {
      const resolved: Alert = { ...alert, state: 'resolved', endsMs: nowMs };
      this.#alerts.set(id, resolved);
      return [resolved];
    }
    if (alert.state === 'pending' || nowMs - (alert.endsMs ?? 0) > RESOLVED_KEPT_MS) {
      this.#alerts.delete(id);
    }
    return [];
  }
}
