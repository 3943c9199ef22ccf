/**
 * The report for a terminal: zones, who answered 429 and 503, the keys that were limited most, how
 * far the logs bear the replay out, and what there is to look at.
 */
import type { Report, ZoneReport } from './report.js';
import { cell, count, harmless, share, table } from './table.js';

/** For people: what each source of a refusal means. */
export const SOURCE_MEANINGS: Readonly<Record<string, string>> = {
  limit_req: "limit_req's excess over the burst",
  limit_req_zone_exhausted: 'a limit_req zone without memory for the key',
  limit_conn: 'limit_conn',
  limit_conn_zone_exhausted: 'a limit_conn zone without memory for the key',
  upstream: 'the upstream server, passed through',
  nginx: 'nginx itself (return, deny, error_page, no live upstream)',
  unknown: 'the log does not tell',
};

/**
 * The whole report, ending in a newline.
 *
 * @param nothing what to say where it holds no requests
 */
export function reportText(report: Report, nothing = 'The store holds no requests yet.'): string {
  const isManyInstances = new Set(report.spans.map((span) => span.instance)).size > 1;
  const blocks = [
    spanLines(report, nothing),
    zoneLines(report, isManyInstances),
    sourceLines(report),
    ...report.zones.filter((zone) => zone.topKeys.length > 0).map(keyLines),
    memoryLines(report.zones),
    agreementLines(report.zones),
    findingLines(report),
    lineLines(report),
  ];
  const text = blocks
    .filter((block) => block.length > 0)
    .map((block) => block.join('\n'))
    .join('\n\n');
  return `${harmless(text)}\n`;
}

function spanLines(report: Report, nothing: string): string[] {
  if (report.spans.length === 0) return [nothing];
  return report.spans.map(
    (span) =>
      `${span.instance}: ${count(span.requests)} requests, ${time(span.fromMs)} to ${time(span.toMs)}`,
  );
}

function zoneLines(report: Report, isManyInstances: boolean): string[] {
  const rows = report.zones.map((zone) => [
    ...(isManyInstances ? [zone.instance] : []),
    zone.kind === 'limit_conn' ? `${zone.zone} (limit_conn)` : zone.zone,
    ...zoneNumbers(zone),
  ]);
  const numbers = [
    'passed',
    'delayed',
    'rejected',
    'dry run',
    'exhausted',
    'skipped',
    'near limit',
    'max excess',
  ];
  return table(
    [
      ...(isManyInstances ? [{ title: 'instance' }] : []),
      { title: 'ZONES' },
      { title: 'rate', isNumber: true },
      ...numbers.map((title) => ({ title, isNumber: true })),
    ],
    rows,
  );
}

/** Rate, passed, delayed, rejected, dry run, exhausted, skipped, near limit, largest excess. */
export function zoneNumbers(zone: ZoneReport): string[] {
  return [
    rateText(zone),
    count(zone.passed),
    count(zone.delayed),
    count(zone.rejected),
    dryRunText(zone),
    count(zone.exhausted + zone.exhaustedDryRun),
    count(zone.skipped),
    count(zone.nearLimit),
    zone.kind === 'limit_conn' ? '-' : zone.excessMax.toFixed(3),
  ];
}

/** What would have been: delayed / rejected under dry run. */
export function dryRunText(of: { delayedDryRun: number; rejectedDryRun: number }): string {
  if (of.delayedDryRun + of.rejectedDryRun === 0) return '-';
  return `${count(of.delayedDryRun)} / ${count(of.rejectedDryRun)}`;
}

/** As the configuration would have it: `10r/s`. */
export function rateText(zone: Pick<ZoneReport, 'rateMilliRps'>): string {
  if (zone.rateMilliRps === null) return '-';
  return zone.rateMilliRps % 1000 === 0
    ? `${zone.rateMilliRps / 1000}r/s`
    : `${(zone.rateMilliRps / 1000).toFixed(3)}r/s`;
}

function sourceLines(report: Report): string[] {
  const rows = report.sources.map((row) => [
    String(row.status),
    row.source === '' ? 'unknown' : row.source,
    cell(`${row.server || '(no name)'} ${row.location}`.trim(), 36),
    count(row.requests),
    SOURCE_MEANINGS[row.source] ?? '',
  ]);
  return table(
    [
      { title: 'WHO ANSWERED' },
      { title: 'source' },
      { title: 'server, location' },
      { title: 'requests', isNumber: true },
      { title: 'that is' },
    ],
    rows,
  );
}

function keyLines(zone: ZoneReport): string[] {
  const limited = zone.topKeys.filter(
    (key) =>
      key.rejected + key.rejectedDryRun + key.delayed + key.delayedDryRun + key.exhausted > 0,
  );
  return table(
    [
      {
        title: `KEYS of ${zone.zone}${zone.keyExpression === null ? '' : ` (${cell(zone.keyExpression, 40)})`}`,
      },
      { title: 'passed', isNumber: true },
      { title: 'delayed', isNumber: true },
      { title: 'rejected', isNumber: true },
      { title: 'dry run', isNumber: true },
      { title: 'max excess', isNumber: true },
    ],
    limited.map((key) => [
      cell(key.key, 48),
      count(key.passed),
      count(key.delayed),
      count(key.rejected + key.exhausted),
      dryRunText(key),
      key.excessMax.toFixed(3),
    ]),
  );
}

function memoryLines(zones: readonly ZoneReport[]): string[] {
  return table(
    [
      { title: 'ZONE MEMORY' },
      { title: 'keys', isNumber: true },
      { title: 'capacity', isNumber: true },
      { title: 'full', isNumber: true },
      { title: 'forgotten', isNumber: true },
      { title: 'in debt', isNumber: true },
      { title: 'let in by it', isNumber: true },
      { title: 'no memory', isNumber: true },
    ],
    zones
      .filter((zone) => zone.kind === 'limit_req')
      .map((zone) => [
        zone.zone,
        count(zone.nodes),
        count(zone.capacityNodes),
        share(zone.nodes, zone.capacityNodes),
        count(zone.evictions),
        count(zone.evictionsInDebt),
        count(zone.admittedByEviction),
        count(zone.allocationFailures),
      ]),
  );
}

function agreementLines(zones: readonly ZoneReport[]): string[] {
  const rows: string[][] = [];
  for (const zone of zones) {
    const { agreement } = zone;
    if (agreement === null) continue;
    const classes = agreement.classes
      .slice(0, 3)
      .map((row) => `${row.class} ${count(row.requests)}`)
      .join(', ');
    rows.push([
      zone.zone === '' ? '(no zone)' : zone.zone,
      count(agreement.compared),
      share(agreement.agree, agreement.compared),
      share(agreement.explained, agreement.compared),
      classes === '' ? '-' : classes,
    ]);
  }
  return table(
    [
      { title: 'REPLAY AND LOG' },
      { title: 'compared', isNumber: true },
      { title: 'agree', isNumber: true },
      { title: 'explained', isNumber: true },
      { title: 'otherwise' },
    ],
    rows,
  );
}

function findingLines(report: Report): string[] {
  if (report.findings.length === 0) return [];
  return [
    'FINDINGS',
    ...report.findings.map(
      (finding) =>
        `  ${finding.code}: ${cell(finding.message, 300)} (since ${time(finding.sinceMs)})`,
    ),
  ];
}

function lineLines(report: Report): string[] {
  const totals = new Map<string, number>();
  for (const row of report.lines) totals.set(row.kind, (totals.get(row.kind) ?? 0) + row.lines);
  const parts = [...totals].map(([kind, lines]) => `${count(lines)} ${kind}`);
  if (parts.length === 0) return [];
  const lines = [`LINES  ${parts.join(', ')}`];
  for (const sample of report.unparsable) {
    lines.push(
      `  ${cell(sample.source)} byte ${sample.offset}: ${cell(sample.reason)}, found ${cell(sample.raw, 60)}`,
    );
  }
  return lines;
}

function time(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
