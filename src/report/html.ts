/**
 * The report as one page to send: everything in one file, no script, nothing fetched.
 *
 * The page's own policy allows its one style and nothing else, so that even a mistake in escaping
 * could neither run nor load anything. It is well-formed as XML, too. Times are UTC.
 *
 * Not here: asking the store (report.ts, html-timeline.ts), writing the file (html-file.ts).
 */
import { createHash } from 'node:crypto';
import { chart, isoTime, stepText } from './html-chart.js';
import {
  agreementSection,
  dryRunSection,
  examplesSection,
  findingsSection,
  linesSection,
  unknownsSection,
  type DryRunShown,
} from './html-evidence.js';
import { markup, NOTHING, shown, type Markup } from './html-markup.js';
import { STYLE } from './html-style.js';
import { htmlTable } from './html-table.js';
import type { Timeline } from './html-timeline.js';
import { memoryTable, plain, zoneSection, zonesTable } from './html-zones.js';
import type { Report, ZoneReport } from './report.js';
import { SOURCE_MEANINGS } from './report-text.js';
import { count, share } from './table.js';

export interface ReportPage {
  readonly report: Report;
  /** null for a store without requests in the time asked for. */
  readonly timeline: Timeline | null;
  readonly dryRun: DryRunShown;
  /** Zones with charts, from zonesToDraw(). */
  readonly drawn: readonly ZoneReport[];
  readonly version: string;
  readonly madeMs: number;
}

/** More charts than anybody would look through. */
const MOST_DRAWN = 20;

/** The zones that are drawn: those that refused or delayed most, in the order of the report. */
export function zonesToDraw(zones: readonly ZoneReport[]): ZoneReport[] {
  const weight = (zone: ZoneReport): number =>
    zone.rejected + zone.exhausted + zone.rejectedDryRun + zone.delayed + zone.delayedDryRun;
  const heaviest = zones.toSorted((a, b) => weight(b) - weight(a)).slice(0, MOST_DRAWN);
  return zones.filter((zone) => heaviest.includes(zone));
}

/** The whole page, ending in a newline. */
export function reportHtml(page: ReportPage): string {
  const { report } = page;
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const { source } = markup`<html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta http-equiv="Content-Security-Policy" content="${policy}" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <meta name="referrer" content="no-referrer" />
      <meta name="generator" content="${`limitlens ${page.version}`}" />
      <title>${`limitlens report${spanTitle(report)}`}</title>
      <style>${{ source: STYLE }}</style>
    </head>
    <body>
      ${header(page)}
      <main>
        ${report.spans.length === 0 ? markup`<p>The store holds no requests of this time.</p>` : sections(page)}
      </main>
      <footer>
        <p>
          Made by limitlens ${page.version} at ${isoTime(page.madeMs)} from the logs of nginx.
          Addresses and keys are those of clients: mind whom this is sent to.
        </p>
      </footer>
    </body>
  </html>`;
  return `<!DOCTYPE html>\n${source}\n`;
}

function spanTitle({ spans }: Report): string {
  if (spans.length === 0) return '';
  const [from, to] = [
    Math.min(...spans.map(({ fromMs }) => fromMs)),
    Math.max(...spans.map(({ toMs }) => toMs)),
  ];
  return `, ${isoTime(from)} to ${isoTime(to)}`;
}

function header({ report }: ReportPage): Markup {
  return markup`<header>
    <h1>What nginx’s limits did</h1>
    ${htmlTable(
      'The time that this report is about, UTC',
      [
        { title: 'instance' },
        { title: 'from' },
        { title: 'to' },
        { title: 'requests', isNumber: true },
      ],
      report.spans.map((span) => [
        shown(span.instance),
        isoTime(span.fromMs),
        isoTime(span.toMs),
        count(span.requests),
      ]),
    )}
  </header>`;
}

function sections(page: ReportPage): Markup {
  const { report, timeline, drawn } = page;
  const left = report.zones.length - drawn.length;
  return markup`<h2>At first sight</h2>
    ${summary(report)} ${findingsSection(report)}
    <h2>Who answered 429 and 503</h2>
    ${timeline === null ? NOTHING : sourcesChart(timeline)} ${sourcesTable(report)}
    <h2>Zones</h2>
    ${zonesTable(report.zones, drawn)} ${memoryTable(report.zones)}
    ${left > 0 ? markup`<p class="soft">Of the ${count(report.zones.length)} zones, the ${count(drawn.length)} that refused and delayed most are drawn below.</p>` : NOTHING}
    ${timeline === null ? NOTHING : markup`<p class="soft">Charts are in steps of ${stepText(timeline.stepMs)}.</p>`}
    ${timeline === null ? NOTHING : drawn.map((zone, i) => zoneSection(zone, i, timeline))}
    <h2>Dry run</h2>
    ${dryRunSection(page.dryRun)}
    <h2>Examples</h2>
    ${examplesSection(report)}
    <h2>How far this can be believed</h2>
    ${agreementSection(report.zones)}
    <h3>What the logs do not tell</h3>
    ${unknownsSection(report)}
    <h3>What was read</h3>
    ${linesSection(report)}`;
}

function summary({ spans, zones, sources }: Report): Markup {
  const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
  const requests = sum(spans.map((span) => span.requests));
  const limited = sources.filter(({ source }) => source.startsWith('limit_'));
  const refused = sum(limited.map((row) => row.requests));
  const others = sum(sources.map((row) => row.requests)) - refused;
  const forgotten = sum(zones.map(({ evictionsInDebt }) => evictionsInDebt));
  const letIn = sum(zones.map(({ admittedByEviction }) => admittedByEviction));
  const lines = [
    `${count(refused)} of ${count(requests)} requests were refused by limits (${share(refused, requests)}).`,
    `${count(others)} more answers of 429 or 503 came from the upstream, from nginx itself, or from nobody known.`,
    `Zones delayed ${count(sum(zones.map(({ delayed }) => delayed)))} times, and would have rejected ${count(sum(zones.map(({ rejectedDryRun }) => rejectedDryRun)))} more under dry run.`,
    forgotten === 0
      ? 'No zone forgot a key that was still in debt.'
      : `Full zones forgot ${count(forgotten)} keys that were still in debt, and let ${count(letIn)} requests in by that.`,
  ];
  return markup`<ul>
    ${lines.map((line) => markup`<li>${line}</li>`)}
  </ul>`;
}

const SOURCE_STYLES: Readonly<Record<string, string>> = {
  limit_req: 's-rejected',
  limit_req_zone_exhausted: 's-exhausted',
  limit_conn: 's-delayed',
  limit_conn_zone_exhausted: 's-dry-delayed',
  upstream: 's-passed',
  nginx: 's-other',
  unknown: 's-dry-rejected',
};

function sourcesChart({ fromMs, stepMs, steps, sources }: Timeline): Markup {
  return chart({
    ...{ title: 'Refusals by who gave them', unit: 'requests per second' },
    ...{ fromMs, stepMs, steps, format: plain },
    bars: Object.entries(SOURCE_STYLES).map(([name, style]) => ({
      name,
      style,
      values: sources.get(name) ?? [],
    })),
  });
}

function sourcesTable({ sources }: Report): Markup {
  if (sources.length === 0) return markup`<p>Nobody: no request was answered so.</p>`;
  return htmlTable(
    'Answers of 429 and 503, and refusals that ended with another status',
    [
      { title: 'status', isNumber: true },
      { title: 'source' },
      { title: 'server, location' },
      { title: 'requests', isNumber: true },
      { title: 'that is' },
    ],
    sources.map((row) => [
      String(row.status),
      row.source === '' ? 'unknown' : shown(row.source),
      shown(`${row.server || '(no name)'} ${row.location}`),
      count(row.requests),
      SOURCE_MEANINGS[row.source] ?? '',
    ]),
  );
}
