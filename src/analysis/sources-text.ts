/**
 * The analysis of sources for a terminal.
 */
import { cell, count, table } from '../report/table.js';
import type { SourceRow, SourcesAnalysis } from './sources.js';

const MOST_HOURS = 24;

/** Ends in a newline. */
export function sourcesText(analysis: SourcesAnalysis): string {
  const { totals, sources, findings, unknowns } = analysis;
  if (sources.length === 0) return 'No 429, no 503 and no other refusal in this time.\n';
  const blocks = [
    table(
      [{ title: 'SOURCE' }, { title: 'requests', isNumber: true }],
      totals.map((row) => [
        row.instance === 'default' ? row.source : cell(`${row.instance}: ${row.source}`),
        count(row.requests),
      ]),
    ),
    places(sources),
    hours(sources),
    examples(sources),
    findings.length === 0
      ? []
      : ['FINDINGS', ...findings.map(({ code, message }) => `  ${code}: ${cell(message, 300)}`)],
    unknowns.length === 0 ? [] : ['NOT KNOWN', ...unknowns.map((text) => `  ${text}`)],
  ];
  const texts = blocks.filter((block) => block.length > 0).map((block) => block.join('\n'));
  return `${texts.join('\n\n')}\n`;
}

function places(sources: readonly SourceRow[]): string[] {
  return table(
    [
      { title: 'WHERE' },
      { title: 'status' },
      { title: 'source' },
      { title: '$limit_req_status' },
      { title: 'requests', isNumber: true },
    ],
    sources.map((row) => [
      cell(`${row.server || '(no name)'} ${row.location}`.trimEnd(), 48),
      String(row.status),
      row.source,
      row.limitReqStatus === '' ? '-' : row.limitReqStatus,
      count(row.requests),
    ]),
  );
}

function hours(sources: readonly SourceRow[]): string[] {
  const names = [...new Set(sources.map(({ source }) => source))];
  const byHour = new Map<number, Map<string, number>>();
  for (const { source, hours: steps } of sources) {
    for (const { timeMs, requests } of steps) {
      const hour = byHour.get(timeMs) ?? new Map<string, number>();
      byHour.set(timeMs, hour);
      hour.set(source, (hour.get(source) ?? 0) + requests);
    }
  }
  const newest = [...byHour].sort(([a], [b]) => a - b).slice(-MOST_HOURS);
  return table(
    [{ title: 'HOUR' }, ...names.map((title) => ({ title, isNumber: true }))],
    newest.map(([timeMs, hour]) => [
      new Date(timeMs).toISOString().replace(':00.000Z', 'Z'),
      ...names.map((name) => count(hour.get(name) ?? 0)),
    ]),
  );
}

function examples(sources: readonly SourceRow[]): string[] {
  const rows = sources.flatMap((row) =>
    row.examples.map((example) => [
      new Date(example.timeMs).toISOString(),
      String(row.status),
      row.source,
      cell(`${example.method} ${example.path}`, 40),
      cell(example.zone === '' ? '-' : `${example.key} in ${example.zone}`, 48),
      example.zone === '' ? '-' : example.excess.toFixed(3),
    ]),
  );
  const titles = ['EXAMPLES', 'status', 'source', 'request', 'key'].map((title) => ({ title }));
  return table([...titles, { title: 'excess', isNumber: true }], rows);
}
