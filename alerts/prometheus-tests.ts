/**
 * The cases of rule-cases.ts as promtool's unit tests, in YAML.
 *
 * The texts that promtool has to find in annotations are those that a daemon without Prometheus
 * would send: so the two forms cannot part.
 */
import { alertTexts, CONDITIONS } from './conditions.js';
import { quoted } from './forms.js';
import { RUNBOOKS } from './prometheus-rules.js';
import { RULE_CASES, type RuleCase } from './rule-cases.js';

const HEAD = `# Written by \`node dist/alerts/generate.js\` from alerts/rule-cases.ts.
# Run by \`promtool test rules alerts/prometheus.tests.yml\`.
rule_files:
  - prometheus.rules.yml
evaluation_interval: 1m
tests:
`;

export function prometheusTests(runbooksUrl = RUNBOOKS): string {
  return HEAD + RULE_CASES.map((one) => testOf(one, runbooksUrl)).join('');
}

function testOf(one: RuleCase, runbooksUrl: string): string {
  const lines = [
    `  - name: ${quoted(`${one.condition}: ${one.title}`)}`,
    '    interval: 1m',
    '    input_series:',
    ...one.series.flatMap(([series, values]) => [
      `      - series: ${quoted(series)}`,
      `        values: ${quoted(values)}`,
    ]),
    '    alert_rule_test:',
    `      - eval_time: ${one.atMinutes}m`,
    `        alertname: ${one.condition}`,
    ...expected(one, runbooksUrl),
  ];
  return `${lines.join('\n')}\n`;
}

function expected({ condition: name, fires }: RuleCase, runbooksUrl: string): string[] {
  if (fires === null) return ['        exp_alerts: []'];
  const condition = CONDITIONS.find((one) => one.name === name)!;
  const texts = alertTexts(condition, fires.labels, fires.value);
  const labels = { severity: condition.severity, ...fires.labels };
  const annotations = { ...texts, runbook_url: `${runbooksUrl}/${condition.runbook}.md` };
  return [
    '        exp_alerts:',
    '          - exp_labels:',
    ...pairs(labels),
    '            exp_annotations:',
    ...pairs(annotations),
  ];
}

function pairs(values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).map(([name, value]) => `              ${name}: ${quoted(value)}`);
}
