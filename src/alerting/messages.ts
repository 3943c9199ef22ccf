/**
 * Alerts as receivers get them: Alertmanager's v2 API, and the body that Alertmanager itself posts to
 * webhooks (version 4), which many programs understand.
 *
 * Labels are those of the condition with `alertname` and `severity`, and do not change while an alert
 * lives. No label holds what a client sent; the names of zones and files are still written so that
 * they stay one line and hide nothing. Nothing here is a template, so braces are just braces.
 */
import { createHash } from 'node:crypto';
import { alertTexts, CONDITIONS, settingsOf, type Overrides } from '../../alerts/conditions.js';
import { RUNBOOKS } from '../../alerts/prometheus-rules.js';
import { alertId, type Alert, type Labels } from './alert-book.js';

/** How Go writes no time at all, in the body of a webhook. */
const NO_TIME = '0001-01-01T00:00:00Z';
const LONGEST_LABEL = 1024;

export interface MessageOptions {
  readonly overrides: Overrides;
  /** Where the pages of alerts/runbooks can be read. */
  readonly runbooksUrl?: string;
  /** Where limitlens itself can be seen. */
  readonly externalUrl: string;
}

export interface PostableAlert {
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly startsAt: string;
  readonly endsAt: string;
  readonly generatorURL: string;
}

export interface WebhookAlert extends PostableAlert {
  readonly status: 'firing' | 'resolved';
  readonly fingerprint: string;
  /** What the condition measured, beside Alertmanager's fields. */
  readonly value: number;
}

/** One line without characters that drive a terminal or hide others; cut when endless. */
export function oneLine(text: string): string {
  const shown = text.replace(
    /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return shown.length <= LONGEST_LABEL ? shown : `${shown.slice(0, LONGEST_LABEL)}…`;
}

/** The labels and annotations of an alert, the same ones as Prometheus would give it. */
export function describeAlert(
  alert: Pick<Alert, 'name' | 'labels' | 'value'>,
  { overrides, runbooksUrl }: Pick<MessageOptions, 'overrides' | 'runbooksUrl'>,
): { readonly labels: Labels; readonly annotations: Labels } {
  const condition = CONDITIONS.find(({ name }) => name === alert.name)!;
  const own = Object.fromEntries(
    Object.entries(alert.labels).map(([name, value]) => [name, oneLine(value)]),
  );
  const texts = alertTexts(condition, own, alert.value, settingsOf(condition, overrides));
  return {
    labels: { alertname: alert.name, severity: condition.severity, ...own },
    annotations: {
      ...texts,
      runbook_url: `${runbooksUrl ?? RUNBOOKS}/${condition.runbook}.md`,
    },
  };
}

/** @param validMs until when a receiver that hears no more may take the alert to last */
export function postableAlert(
  alert: Alert,
  validMs: number,
  options: MessageOptions,
): PostableAlert {
  return {
    ...describeAlert(alert, options),
    startsAt: timeText(alert.startsMs),
    endsAt: timeText(alert.endsMs ?? validMs),
    generatorURL: options.externalUrl,
  };
}

export function webhookAlert(alert: Alert, options: MessageOptions): WebhookAlert {
  const id = alertId(alert.name, alert.labels);
  return {
    status: alert.state === 'resolved' ? 'resolved' : 'firing',
    ...describeAlert(alert, options),
    startsAt: timeText(alert.startsMs),
    endsAt: timeText(alert.endsMs),
    generatorURL: options.externalUrl,
    fingerprint: createHash('sha256').update(id).digest('hex').slice(0, 16),
    value: alert.value,
  };
}

/** The body of a webhook. @param alerts not none */
export function webhookBody(
  alerts: readonly WebhookAlert[],
  instance: string,
  externalUrl: string,
): string {
  return JSON.stringify({
    version: '4',
    groupKey: `limitlens:${instance}`,
    truncatedAlerts: 0,
    status: alerts.some(({ status }) => status === 'firing') ? 'firing' : 'resolved',
    receiver: 'limitlens',
    groupLabels: { instance: oneLine(instance) },
    commonLabels: common(alerts.map(({ labels }) => labels)),
    commonAnnotations: common(alerts.map(({ annotations }) => annotations)),
    externalURL: externalUrl,
    alerts,
  });
}

function common([first = {}, ...others]: readonly Labels[]): Labels {
  const shared = Object.entries(first).filter(([name, value]) =>
    others.every((labels) => labels[name] === value),
  );
  return Object.fromEntries(shared);
}

function timeText(ms: number | null): string {
  return ms === null ? NO_TIME : new Date(ms).toISOString();
}
