/**
 * What an alert is: one definition, from which Prometheus rules are written and which a daemon
 * without Prometheus evaluates on the store.
 *
 * Both forms give one value per set of labels, and fire while it is above the threshold for `for`.
 * Shares are 0 to 1, times seconds.
 */

import type { MetricId } from '../dashboards/metric-names.js';

export type ConditionName =
  | 'ZoneForgetsDebt'
  | 'ZoneNearlyFull'
  | 'ZoneOutOfMemory'
  | 'DryRunWouldReject'
  | 'RejectRatioHigh'
  | 'UpstreamRefuses'
  | 'LimitConnRefuses'
  | 'RefusalSourceUnknown'
  | 'ReplayAgreementLow'
  | 'SourceLagging'
  | 'LinesUnreadable'
  | 'StoreFailing'
  | 'NoEvents'
  | 'NotificationsFailing';

/** critical: clients are wronged, or data is lost, now; warning: today; info: worth a decision. */
export type AlertSeverity = 'critical' | 'warning' | 'info';

/** The numbers of a condition; all may be set by who runs it. */
export interface Settings {
  /** Fires above it; Infinity for never, and then there is no rule. */
  readonly threshold: number;
  /** Traffic below which the value says nothing; 0 where it always does. */
  readonly least: number;
  /** Over which time the value is taken; 0 for one of now. */
  readonly windowSeconds: number;
  /** For how long it has to hold. */
  readonly forSeconds: number;
}

/** How a value is written for people. */
export type Unit = 'count' | 'share' | 'seconds';

/** A label's value by its name: in a rule the template for it. */
export type LabelText = (name: string) => string;

/**
 * A query on the store: columns as `labels`, then `value`, one row for each set of labels that
 * fires. Its parameters: `{to:UInt32}`, the end of the window in epoch seconds, a multiple of 10;
 * `{instance:String}`, the one that is asked for, or nothing for all of them.
 */
export interface StoreForm {
  /**
   * What `to` is a time of. `log`: what was stored is judged by when it happened, so that what is
   * still being read is not taken for a lull, nor last night for now. `wall`: whether anything comes
   * at all, which only a clock outside of the log can tell.
   */
  readonly clock: 'log' | 'wall';
  readonly sql: (settings: Settings) => string;
}

/** The daemon's own state, which no store holds: one of its metrics, taken as `promql` takes it. */
export interface ProcessForm {
  readonly clock: 'wall';
  readonly metric: MetricId;
  /** Only samples with this label. */
  readonly where?: readonly [label: string, value: string];
  /** The greatest value of now, or the sum of what was gained within the window; by `labels`. */
  readonly take: 'value' | 'increase';
}

export interface Condition {
  readonly name: ConditionName;
  readonly severity: AlertSeverity;
  /** The names of labels that tell its alerts apart. */
  readonly labels: readonly string[];
  readonly unit: Unit;
  readonly defaults: Settings;
  readonly reasons: {
    readonly threshold: string;
    /** Of `least`; absent where that is 0. */
    readonly least?: string;
    readonly forSeconds: string;
  };
  /** Page of alerts/runbooks, without `.md`. */
  readonly runbook: string;
  readonly summary: (label: LabelText) => string;
  /** `within` is the window in words: `10 minutes`. */
  readonly description: (label: LabelText, value: string, within: string) => string;
  readonly promql: (settings: Settings) => string;
  readonly evaluate: StoreForm | ProcessForm;
}

/** A value as Prometheus's humanizePercentage, humanizeDuration and printf "%.0f" write it. */
export function valueText(value: number, unit: Unit): string {
  if (unit === 'share') return `${Number((value * 100).toPrecision(4))}%`;
  if (unit === 'seconds') return durationText(value);
  return value.toFixed(0);
}

/** What stands for the value in a rule's annotation. */
export function valueTemplate(unit: Unit): string {
  if (unit === 'share') return '{{ $value | humanizePercentage }}';
  if (unit === 'seconds') return '{{ $value | humanizeDuration }}';
  return '{{ $value | printf "%.0f" }}';
}

/** A window in words. */
export function windowText(seconds: number): string {
  if (seconds === 3600) return 'an hour';
  if (seconds % 3600 === 0) return `${seconds / 3600} hours`;
  return seconds % 60 === 0 ? `${seconds / 60} minutes` : `${seconds} seconds`;
}

function durationText(value: number): string {
  if (value < 60) return `${Number(value.toPrecision(4))}s`;
  const seconds = Math.trunc(value);
  const [days, hours, minutes] = [86_400, 3600, 60].map((unit) => Math.floor(seconds / unit)) as [
    number,
    number,
    number,
  ];
  const rest = `${minutes % 60}m ${seconds % 60}s`;
  if (days > 0) return `${days}d ${hours % 24}h ${rest}`;
  return hours > 0 ? `${hours}h ${rest}` : rest;
}
