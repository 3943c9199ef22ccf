/**
 * The analysis of a dry run for a terminal.
 */
import { cell, count, share, table } from '../report/table.js';
import type { DryRunAnalysis, DryRunRule, DryRunVerdict } from './dry-run.js';

const VERDICTS: Readonly<Record<DryRunVerdict, string>> = {
  safe: 'safe to enforce',
  not_safe: 'not safe to enforce',
  not_enough_data: 'not enough data',
};

/** Ends in a newline. */
export function dryRunText({ verdict, rules, differences }: DryRunAnalysis): string {
  if (rules.length === 0) {
    return 'No rule was under dry run in this time: nothing to judge.\n';
  }
  const lines = [
    ...rules.flatMap((rule) => [...ruleLines(rule), '']),
    'What a dry run does not show:',
    ...differences.map((text) => `  - ${text}`),
    '',
    `All in all: ${VERDICTS[verdict]}.`,
  ];
  return `${lines.join('\n')}\n`;
}

function ruleLines(rule: DryRunRule): string[] {
  const place = rule.places
    .map(({ server, location }) => `${server === '' ? '(no name)' : server} ${location}`.trimEnd())
    .join(', ');
  const where = rule.where === null ? '' : ` (${rule.where})`;
  const instance = rule.instance === 'default' ? '' : `${rule.instance}: `;
  return [
    `${cell(`${instance}zone ${rule.zone}, ${place}${where}`, 200)}: ` +
      `${VERDICTS[rule.verdict]}`,
    ...rule.reasons.map((reason) => `  ${reason}`),
    ...(rule.notLogged === 0
      ? []
      : [
          `  ${count(rule.notLogged)} requests of the zone have no $limit_req_status: their outcomes are the ` +
            "error log's, or the replay's own. Log it, and they are nginx's.",
        ]),
    ...(rule.isInForce ? [] : ['  The newest configuration has it no longer under dry run.']),
    `  would be delayed: ${count(rule.wouldDelay)} of ${count(rule.requests)} requests ` +
      `(${share(rule.wouldDelay, rule.requests)}); keys of the zone that would see a reject: ` +
      `${count(rule.keys.rejected)} of at least ${count(rule.keys.seen)}`,
    ...indented(hours(rule)),
    ...indented(worst(rule)),
  ];
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

const MOST_HOURS = 24;

function hours(rule: DryRunRule): string[] {
  const shown = rule.hours.slice(-MOST_HOURS);
  const titles = ['requests', 'would delay', 'would reject', 'share', 'keys'];
  const lines = table(
    [{ title: 'HOUR' }, ...titles.map((title) => ({ title, isNumber: true }))],
    shown.map((hour) => [
      new Date(hour.timeMs).toISOString().replace(':00.000Z', 'Z'),
      count(hour.requests),
      count(hour.wouldDelay),
      count(hour.wouldReject),
      share(hour.wouldReject, hour.requests),
      count(hour.keysRejected),
    ]),
  );
  const left = rule.hours.length - shown.length;
  return left === 0 ? lines : [...lines, `(${left} earlier hours: --format json)`];
}

function worst(rule: DryRunRule): string[] {
  return table(
    [
      { title: `WORST KEYS${rule.keyExpression === null ? '' : ` (${rule.keyExpression})`}` },
      { title: 'passed', isNumber: true },
      { title: 'would delay', isNumber: true },
      { title: 'would reject', isNumber: true },
    ],
    rule.worstKeys.map((row) => [
      cell(row.key, 48),
      count(row.passed),
      count(row.delayed),
      count(row.rejected),
    ]),
  );
}
