/**
 * The analysis of retries for a terminal.
 */
import { durationText } from '../report/durations.js';
import { cell, count, share, table } from '../report/table.js';
import type { RetriesAnalysis, ZoneRetries } from './retries.js';
import type { PlaceRetries, Quantiles } from './retry-place.js';
import type { RetryStorm } from './retry-storms.js';

/** Ends in a newline. */
export function retriesText(analysis: RetriesAnalysis): string {
  const { zones, dryRunRejects, unknowns } = analysis;
  const lines =
    zones.length === 0 ? ['No request was refused by limit_req in these logs.', ''] : [];
  for (const zone of zones) lines.push(...zoneLines(zone), '');
  if (dryRunRejects > 0) {
    lines.push(
      `${count(dryRunRejects)} requests would have been refused under dry run; their clients got ` +
        'their answers, so nothing can be said about retries.',
      '',
    );
  }
  lines.push('Not known from logs:', ...unknowns.map((text) => `  - ${text}`));
  return `${lines.join('\n')}\n`;
}

function zoneLines(zone: ZoneRetries): string[] {
  return [
    `Zone ${cell(zone.zone)} (${cell(zone.keyExpression)})`,
    ...indented(places(zone)),
    ...indented(zone.places.flatMap(remarks)),
    ...indented(storms(zone.storms)),
    ...indented(worst(zone)),
  ];
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

function places(zone: ZoneRetries): string[] {
  const titles = ['refused', 'came back', 'too soon', 'share', 'after', 'wait', 'Retry-After'];
  return table(
    [{ title: 'PLACE' }, ...titles.map((title) => ({ title, isNumber: true }))],
    zone.places.map((place) => [
      cell(placeOf(place)),
      count(place.rejects),
      count(place.returned),
      count(place.tooSoon),
      share(place.tooSoon, place.returned - place.unsure),
      median(place.gapMs),
      median(place.waitMs),
      place.retryAfterSeconds === null ? '-' : `${place.retryAfterSeconds} s`,
    ]),
  );
}

function placeOf({ server, location }: PlaceRetries): string {
  return `${server === '' ? '(no name)' : server} ${location}`.trimEnd();
}

function median(quantiles: Quantiles | null): string {
  return quantiles === null ? '-' : durationText(quantiles.p50);
}

function remarks(place: PlaceRetries): string[] {
  const { rejects, returned, tooSoon, unsure, rejectedAgain, sameRequest, notReturned } = place;
  const { open, withoutWait, withoutKey } = place;
  const lines = [
    `${cell(placeOf(place), 100)} (${place.where}): after ${count(rejects)} refusals the key came ` +
      `again ${count(returned)} times and ${count(notReturned)} times not; ${count(rejectedAgain)} ` +
      `of those that came were refused again, ${count(sameRequest)} of them with the same method and path.`,
  ];
  if (tooSoon > 0) {
    lines.push(
      `  ${count(tooSoon)} came before the debt had drained, and could but be refused: an answer ` +
        `with Retry-After: ${place.retryAfterSeconds ?? '-'} would have told them.`,
    );
  }
  const leftOut = [
    [open, 'came so late in the log that nothing followed'],
    [unsure, 'came back about when they might: the times do not tell'],
    [withoutWait, 'were refused for want of memory, or with an excess that is not known'],
    [withoutKey, 'have a key that the log does not tell'],
  ] as const;
  for (const [n, what] of leftOut) if (n > 0) lines.push(`  ${count(n)} ${what}.`);
  return lines;
}

const MOST_STORMS = 20;

function storms(all: readonly RetryStorm[]): string[] {
  const shown = all.toSorted((a, b) => b.retries - a.retries).slice(0, MOST_STORMS);
  const lines = table(
    [
      { title: 'RETRY STORM' },
      { title: 'minutes', isNumber: true },
      { title: 'refused', isNumber: true },
      { title: 'retries', isNumber: true },
      { title: 'for each first', isNumber: true },
      { title: 'worst keys' },
    ],
    shown.map((storm) => [
      new Date(storm.fromMs).toISOString().replace(':00.000Z', 'Z'),
      count(Math.round((storm.toMs - storm.fromMs) / 60_000)),
      count(storm.rejects),
      share(storm.retries, storm.rejects),
      storm.rejectsPerFirst === null ? '-' : storm.rejectsPerFirst.toFixed(1),
      storm.worstKeys.map(({ key, retries }) => `${cell(key, 24)} (${count(retries)})`).join(', '),
    ]),
  );
  return all.length === shown.length
    ? lines
    : [...lines, `(${all.length - shown.length} smaller ones: --format json)`];
}

function worst(zone: ZoneRetries): string[] {
  return table(
    [
      { title: 'WORST KEYS' },
      { title: 'refused', isNumber: true },
      { title: 'retries', isNumber: true },
      { title: 'too soon', isNumber: true },
    ],
    zone.worstKeys.map((row) => [
      cell(row.key, 48),
      count(row.rejects),
      count(row.retries),
      count(row.tooSoon),
    ]),
  );
}
