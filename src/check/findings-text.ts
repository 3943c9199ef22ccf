/**
 * Findings for a terminal and for programs.
 *
 * A configuration may hold anything: what could drive a terminal or turn text around is escaped.
 */
import { formatWhere } from '../errors.js';
import { type Finding, SEVERITIES } from './finding.js';
import { count } from './conf-lines.js';

const WIDTH = 80;

/**
 * Each finding as `FILE:LINE: severity: message [code]`, the reason (once, where several
 * share it), and the lines to write; a count of them at the end.
 */
export function findingsText(findings: readonly Finding[]): string {
  const said = new Set<string>();
  const blocks = findings.map((found) => {
    const isSaid = said.has(found.why);
    said.add(found.why);
    return lines(found, isSaid).map(escapeLine).join('\n');
  });
  return `${[...blocks, summary(findings)].join('\n\n')}\n`;
}

/** An object with the array `findings`; fields as in Finding. */
export function findingsJson(findings: readonly Finding[]): string {
  return `${JSON.stringify({ findings }, null, 2)}\n`;
}

function lines(
  { code, severity, where, message, why, fix }: Finding,
  isSaid: boolean,
): readonly string[] {
  const place = where === null ? '' : `${formatWhere(where)}: `;
  return [
    `${place}${severity}: ${message} [${code}]`,
    ...(isSaid ? [] : wrap(why, '    ')),
    ...(fix === null ? [] : fix.split('\n').map((line) => `  + ${line}`)),
  ];
}

function summary(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'Nothing to remark.';
  const counts = SEVERITIES.map((severity) => {
    return { severity, n: findings.filter((found) => found.severity === severity).length };
  });
  const texts = counts
    .filter(({ n }) => n > 0)
    .map(({ severity, n }) => (severity === 'info' ? `${n} info` : count(n, severity)));
  return `${texts.join(', ')}.`;
}

function wrap(text: string, indent: string): readonly string[] {
  const out: string[] = [];
  let line = indent;
  for (const next of text.split(' ')) {
    if (line.length > indent.length && line.length + 1 + next.length > WIDTH) {
      out.push(line);
      line = indent;
    }
    line += line.length > indent.length ? ` ${next}` : next;
  }
  return [...out, line];
}

/** One finding's line stays one line, and plain text. */
function escapeLine(line: string): string {
  return line.replace(
    /[\0-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
