/**
 * `limitlens alerts`: which alerts fire, asked of the store once; and `limitlens alerts rules`, the
 * same ones as rules of Prometheus.
 */
import { prometheusRules } from '../../alerts/prometheus-rules.js';
import { parseBase, parseThresholds } from '../alerting/alert-options.js';
import { evaluateOnce, type Evaluation, type OneAlert } from '../alerting/evaluate-once.js';
import { askStore } from './asked-store.js';
import type { Output } from './output.js';
import type { StoreChoice } from './store-choice.js';
import { timeOf } from './store-filter.js';

export interface RulesChoice {
  /** See parseThresholds(). */
  readonly threshold: readonly string[];
  readonly runbooksUrl?: string;
}

export interface AlertsOptions extends StoreChoice, RulesChoice {
  readonly instance?: string;
  /** ISO 8601, or how long ago. */
  readonly at?: string;
  readonly format: 'text' | 'json';
}

/** @returns 0 none fires, 1 one does */
export async function alertsCommand(options: AlertsOptions, output: Output): Promise<number> {
  const overrides = parseThresholds('--threshold', options.threshold);
  const runbooksUrl = parseBase('--runbooks-url', options.runbooksUrl);
  const nowMs = Date.now();
  const atMs = timeOf('--at', options.at, nowMs);
  const evaluation = await askStore(options, (store) =>
    evaluateOnce(store, {
      overrides,
      instance: options.instance ?? '',
      nowS: Math.floor(nowMs / 1000),
      ...(atMs === undefined ? {} : { atS: Math.floor(atMs / 10_000) * 10 }),
      ...(runbooksUrl === undefined ? {} : { runbooksUrl }),
    }),
  );
  await output.write(
    options.format === 'json' ? `${JSON.stringify(evaluation)}\n` : evaluationText(evaluation),
  );
  return evaluation.alerts.some(({ state }) => state === 'firing') ? 1 : 0;
}

/** Prints the rules. */
export async function alertRulesCommand(choice: RulesChoice, output: Output): Promise<void> {
  const overrides = parseThresholds('--threshold', choice.threshold);
  await output.write(prometheusRules(parseBase('--runbooks-url', choice.runbooksUrl), overrides));
}

function evaluationText(evaluation: Evaluation): string {
  const { atS, alerts, evaluated, notEvaluated } = evaluation;
  const firing = alerts.filter(({ state }) => state === 'firing');
  const pending = alerts.filter(({ state }) => state === 'pending');
  const blocks = [
    [
      atS === null
        ? 'The store holds no requests yet.'
        : `At ${timeText(atS)}: ${firing.length} firing, ${pending.length} pending, of ${evaluated.length} conditions.`,
    ],
    ...[...firing, ...pending].map(alertLines),
    [`Not asked, only a running daemon knows: ${notEvaluated.join(', ')}.`],
  ];
  return `${blocks.map((block) => block.join('\n')).join('\n\n')}\n`;
}

function alertLines({ name, state, labels, annotations }: OneAlert): string[] {
  const { severity, ...rest } = labels;
  const own = Object.entries(rest).filter(([label]) => label !== 'alertname');
  return [
    `${state === 'firing' ? 'FIRES' : 'pending'}  ${name} (${severity})  ${own.map(([label, value]) => `${label}=${value}`).join(' ')}`,
    `  ${annotations['description']}`,
    `  ${annotations['runbook_url']}`,
  ];
}

function timeText(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
}
