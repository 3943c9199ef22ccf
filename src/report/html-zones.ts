/**
 * The zones on the page: what each decided, how far above the rate its keys came, its memory, and
 * the keys that were limited most.
 */
import { chart, type Chart, type Series } from './html-chart.js';
import { markup, NOTHING, shown, type Markup } from './html-markup.js';
import { htmlTable } from './html-table.js';
import { zoneName, type Timeline, type TimelineRule, type ZoneTimeline } from './html-timeline.js';
import type { KeyReport, ZoneReport } from './report.js';
import { dryRunText, rateText, zoneNumbers } from './report-text.js';
import { count, share } from './table.js';

/** Outcomes in the order in which they are stacked; what was skipped costs nobody anything. */
const OUTCOMES = [
  ['passed', 'passed', 's-passed'],
  ['delayed', 'delayed', 's-delayed'],
  ['rejected', 'rejected', 's-rejected'],
  ['exhausted', 'zone exhausted', 's-exhausted'],
  ['delayed_dry_run', 'delayed, dry run', 's-dry-delayed'],
  ['rejected_dry_run', 'rejected, dry run', 's-dry-rejected'],
  ['exhausted_dry_run', 'zone exhausted, dry run', 's-dry-rejected'],
] as const;

/** All zones, one row each, with links to those that are drawn. */
export function zonesTable(zones: readonly ZoneReport[], drawn: readonly ZoneReport[]): Markup {
  return htmlTable(
    'What each zone decided, in requests. Near limit: let through with four fifths of the burst used up.',
    [
      { title: 'instance' },
      { title: 'zone' },
      { title: 'key' },
      ...['rate', 'passed', 'delayed', 'rejected', 'dry run: delayed / rejected'].map(number),
      ...['zone exhausted', 'skipped', 'near limit', 'largest excess'].map(number),
    ],
    zones.map((zone) => [
      shown(zone.instance),
      nameOf(zone, drawn.indexOf(zone)),
      zone.keyExpression === null ? '-' : markup`<code>${shown(zone.keyExpression)}</code>`,
      ...zoneNumbers(zone),
    ]),
  );
}

function number(title: string): { title: string; isNumber: true } {
  return { title, isNumber: true };
}

function nameOf(zone: ZoneReport, place: number): Markup {
  const name = shown(zone.zone);
  const conn = zone.kind === 'limit_conn' ? ' (limit_conn)' : '';
  return place < 0 ? markup`${name}${conn}` : markup`<a href="#zone-${place}">${name}</a>${conn}`;
}

export function memoryTable(zones: readonly ZoneReport[]): Markup {
  return htmlTable(
    'Memory of the limit_req zones at the end of the time. A full zone drops its oldest key, debt and all, and logs nothing; this is known from the replay.',
    [
      { title: 'instance' },
      { title: 'zone' },
      ...['size in bytes', 'keys', 'capacity', 'full', 'forgotten'].map(number),
      ...['of them in debt', 'let in by it', 'no memory for a key'].map(number),
    ],
    zones
      .filter((zone) => zone.kind === 'limit_req')
      .map((zone) => [
        shown(zone.instance),
        shown(zone.zone),
        zone.sizeBytes === null ? '-' : count(zone.sizeBytes),
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

/** One zone with its charts. @param place its number on the page */
export function zoneSection(zone: ZoneReport, place: number, timeline: Timeline): Markup {
  const own = timeline.zones.get(zoneName(zone));
  if (own === undefined) return NOTHING;
  return markup`<section id="zone-${place}">
    <h3>
      ${shown(zone.zone)}${zone.kind === 'limit_conn' ? ' (limit_conn)' : ''}
      <span class="soft"
        >${shown(zone.instance)}${zone.rateMilliRps === null ? '' : `, ${rateText(zone)}`}</span
      >
    </h3>
    ${rulesTable(own.rules)} ${decisionsChart(own, timeline)}
    ${zone.kind === 'limit_conn' ? NOTHING : markup`${excessChart(own, timeline)}${memoryChart(zone, own, timeline)}`}
    ${keysTable(zone)}
  </section>`;
}

function rulesTable(rules: readonly TimelineRule[]): Markup {
  return htmlTable(
    'Its limits, in the newest configuration',
    [
      { title: 'server' },
      { title: 'location' },
      ...['burst', 'delay', 'status'].map(number),
      { title: 'dry run' },
      { title: 'line' },
    ],
    rules.map((rule) => [
      shown(rule.server === '' ? '(no name)' : rule.server),
      markup`<code>${shown(rule.location)}</code>`,
      count(rule.burst),
      rule.delay === 'nodelay' ? 'nodelay' : count(rule.delay),
      String(rule.status),
      rule.dryRun ? 'yes' : 'no',
      shown(rule.where),
    ]),
  );
}

function frame({ fromMs, stepMs, steps, marks }: Timeline): Omit<Chart, 'title' | 'unit'> {
  return {
    ...{ fromMs, stepMs, steps, format: plain },
    marks: marks.map(({ timeMs, mark, details }) => ({ timeMs, text: `${mark} ${details}` })),
  };
}

function decisionsChart(own: ZoneTimeline, timeline: Timeline): Markup {
  const bars = OUTCOMES.map(([outcome, name, style]): Series => {
    return { name, style, values: own.outcomes.get(outcome) ?? [] };
  });
  return chart({ ...frame(timeline), title: 'Decisions', unit: 'requests per second', bars });
}

/** The highest excess beside the lowest burst and delay, above which requests are turned away. */
function excessChart(own: ZoneTimeline, timeline: Timeline): Markup {
  const bursts = own.rules.map(({ burst }) => burst);
  const delays = own.rules.flatMap(({ delay }) => (delay === 'nodelay' ? [] : [delay]));
  return chart({
    ...frame(timeline),
    title: 'Largest excess of any key',
    unit: 'requests above the rate',
    lines: [{ name: 'largest excess', style: 's-excess', values: own.excessMax }],
    levels: [
      ...level('burst', 's-burst', bursts),
      ...level(
        'delay',
        's-delay',
        delays.filter((delay) => delay > 0),
      ),
    ],
  });
}

function level(
  name: string,
  style: string,
  values: readonly number[],
): { name: string; style: string; value: number }[] {
  const lowest = Math.min(...values);
  const isOne = values.every((value) => value === lowest);
  return values.length === 0
    ? []
    : [{ name: isOne ? name : `lowest ${name}`, style, value: lowest }];
}

function memoryChart(zone: ZoneReport, own: ZoneTimeline, timeline: Timeline): Markup {
  const drops = chart({
    ...frame(timeline),
    title: 'Keys forgotten',
    unit: 'keys in each step',
    bars: [
      { name: 'idle', style: 's-passed', values: own.evictions },
      { name: 'in debt', style: 's-rejected', values: own.evictionsInDebt },
    ],
  });
  const nodes = chart({
    ...frame(timeline),
    title: 'Keys held',
    unit: 'nodes of the zone',
    lines: [{ name: 'keys', style: 's-nodes', values: own.nodes }],
    levels: [{ name: 'capacity', style: 's-capacity', value: zone.capacityNodes }],
  });
  return markup`${nodes}${drops}`;
}

function isLimited(key: KeyReport): boolean {
  const { delayed, rejected, delayedDryRun, rejectedDryRun, exhausted } = key;
  return delayed + rejected + delayedDryRun + rejectedDryRun + exhausted > 0;
}

function keysTable(zone: ZoneReport): Markup {
  return htmlTable(
    'Keys that were limited most, in requests. Passed counts the minutes that are kept of a key: those with a limit at work, and the heaviest.',
    [
      { title: 'key' },
      ...['passed', 'delayed', 'rejected', 'zone exhausted'].map(number),
      ...['dry run: delayed / rejected', 'largest excess'].map(number),
    ],
    zone.topKeys
      .filter(isLimited)
      .map((key) => [
        markup`<bdi class="key">${shown(key.key)}</bdi>`,
        count(key.passed),
        count(key.delayed),
        count(key.rejected),
        count(key.exhausted),
        dryRunText(key),
        key.excessMax.toFixed(3),
      ]),
  );
}

/** Up to four digits that matter. */
export function plain(value: number): string {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 4 });
}
