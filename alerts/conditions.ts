/**
 * All conditions, in the order in which a person would look.
 *
 * Not here: what a condition consists of (condition.ts), the rules for Prometheus
 * (prometheus-rules.ts).
 */
import type { Condition, ConditionName, LabelText, Settings } from './condition.js';
import { valueText, windowText } from './condition.js';
import { PIPELINE_CONDITIONS } from './pipeline-conditions.js';
import { ZONE_CONDITIONS } from './zone-conditions.js';

export const CONDITIONS: readonly Condition[] = [...ZONE_CONDITIONS, ...PIPELINE_CONDITIONS];

/** Numbers that someone wants otherwise. */
export type Overrides = Partial<Record<ConditionName, Partial<Settings>>>;

export function settingsOf(condition: Condition, overrides: Overrides = {}): Settings {
  return { ...condition.defaults, ...overrides[condition.name] };
}

/** The conditions that are not switched off. */
export function conditionsInForce(overrides: Overrides = {}): readonly Condition[] {
  return CONDITIONS.filter((one) => settingsOf(one, overrides).threshold !== Infinity);
}

export interface AlertTexts {
  readonly summary: string;
  readonly description: string;
}

/** The texts of one alert, in the words that Prometheus would fill in. */
export function alertTexts(
  condition: Condition,
  labels: Readonly<Record<string, string>>,
  value: number,
  settings: Settings = condition.defaults,
): AlertTexts {
  const label: LabelText = (name) => labels[name] ?? '';
  return {
    summary: condition.summary(label),
    description: condition.description(
      label,
      valueText(value, condition.unit),
      windowText(settings.windowSeconds),
    ),
  };
}
