/**
 * The conditions as rules of Prometheus, in YAML.
 */
import type { Condition } from './condition.js';
import { valueTemplate, windowText } from './condition.js';
import { conditionsInForce, settingsOf, type Overrides } from './conditions.js';
import { durationOf, quoted } from './forms.js';

/** Where runbooks are when nothing else is said: from the root of the repository. */
export const RUNBOOKS = 'alerts/runbooks';

const HEAD = `# As \`limitlens alerts rules\` writes them, with other numbers where --threshold NAME=VALUE says so;
# the reasons of these numbers are in alerts/*-conditions.ts.
# limitlens has a label \`instance\` of its own (which nginx): scrape it with honor_labels: true.
`;

export function prometheusRules(runbooksUrl = RUNBOOKS, overrides: Overrides = {}): string {
  const rules = conditionsInForce(overrides).map((condition) =>
    ruleOf(condition, runbooksUrl, overrides),
  );
  return `${HEAD}groups:\n  - name: limitlens\n    rules:\n${rules.join('\n')}`;
}

function ruleOf(condition: Condition, runbooksUrl: string, overrides: Overrides): string {
  const settings = settingsOf(condition, overrides);
  const label = (name: string): string => `{{ $labels.${name} }}`;
  const value = valueTemplate(condition.unit);
  const lines = [
    `      - alert: ${condition.name}`,
    `        expr: ${quoted(condition.promql(settings))}`,
    `        for: ${durationOf(settings.forSeconds)}`,
    '        labels:',
    `          severity: ${condition.severity}`,
    '        annotations:',
    `          summary: ${quoted(condition.summary(label))}`,
    `          description: ${quoted(condition.description(label, value, windowText(settings.windowSeconds)))}`,
    `          runbook_url: ${quoted(`${runbooksUrl}/${condition.runbook}.md`)}`,
  ];
  return `${lines.join('\n')}\n`;
}
