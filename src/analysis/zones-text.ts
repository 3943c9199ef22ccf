/**
 * The analysis of zones for a terminal.
 */
import { sizeText, type ZoneKind, type ZoneSize } from '../check/zone-size.js';
import { cell, count, share, table } from '../report/table.js';
import { lowerBoundLines } from './lower-bound-text.js';
import type { ZoneAnalysis } from './zones.js';

/** The tables, and for each zone what there is to say; ends in a newline. */
export function zonesText(zones: readonly ZoneAnalysis[]): string {
  if (zones.length === 0) return 'No limit_req zone is known here yet.\n';
  const blocks = [
    occupancy(zones),
    forgotten(zones),
    zones.flatMap(remarks),
    [
      'new/min: nodes made in a minute, mean and most; a key counts again when its node had gone.',
      ...keysLegend(zones),
      'would do: a size in which no key would have been forgotten before its time; rather too large.',
    ],
  ];
  const texts = blocks.filter((block) => block.length > 0).map((block) => block.join('\n'));
  return `${texts.join('\n\n')}\n`;
}

function nameOf({ instance, zone }: ZoneAnalysis): string {
  return instance === 'default' ? cell(zone) : cell(`${instance}: ${zone}`);
}

function occupancy(zones: readonly ZoneAnalysis[]): string[] {
  const titles = ['size', 'nodes', 'most', 'capacity', 'full', 'headroom', 'new/min', 'keys/min'];
  return table(
    [{ title: 'OCCUPANCY' }, ...titles.map((title) => ({ title, isNumber: true }))],
    zones.map((zone) => [
      nameOf(zone),
      zone.sizeBytes === null ? '-' : sizeText(zone.sizeBytes),
      atLeast(zone, zone.nodes),
      atLeast(zone, zone.nodesMax),
      count(zone.capacityNodes),
      share(zone.nodesMax, zone.capacityNodes),
      count(zone.headroomNodes),
      `${count(zone.newKeysPerMinute.mean)} (${count(zone.newKeysPerMinute.max)})`,
      keysOf(zone),
    ]),
  );
}

function keysOf(zone: ZoneAnalysis): string {
  const { mean, max, isExact } = zone.keysPerMinute;
  const text = `${count(mean)} (${count(max)})`;
  return isExact ? atLeast(zone, text) : `≥ ${text}`;
}

function keysLegend(zones: readonly ZoneAnalysis[]): string[] {
  const lines = ['keys/min: distinct keys in a minute, mean and most.'];
  const inPieces = zones.filter(({ keysPerMinute: { isExact, atMost } }) => !isExact && atMost);
  if (inPieces.length > 0) {
    const most = inPieces.map((zone) => {
      const { mean, max } = zone.keysPerMinute.atMost!;
      return `${nameOf(zone)} ${count(mean)} (${count(max)})`;
    });
    lines.push(
      '  Of minutes that were stored in several pieces, or had too many keys to hold, a lower bound; ' +
        `at most: ${most.join(', ')}.`,
    );
  }
  if (zones.some(({ keysPerMinute: { atMost } }) => atMost === null)) {
    lines.push(
      '  Older rows tell of the limited and the most frequent keys alone: there a lower bound.',
    );
  }
  return lines;
}

function forgotten(zones: readonly ZoneAnalysis[]): string[] {
  const titles = ['evictions', 'in debt', 'let in by it', 'no memory', 'would do'];
  return table(
    [{ title: 'FORGOTTEN' }, ...titles.map((title) => ({ title, isNumber: true }))],
    zones.map((zone) => [
      nameOf(zone),
      atLeast(zone, zone.evictions),
      atLeast(zone, zone.evictionsInDebt),
      atLeast(zone, zone.admittedByEviction),
      count(zone.allocationFailures),
      zone.sufficient === null
        ? '-'
        : `${zone.sufficient.zoneSize} (${zone.sufficient.sizeMebibytes} MiB)`,
    ]),
  );
}

/** `≥ 12` where the logs cannot show all requests. */
function atLeast(zone: ZoneAnalysis, value: number | string): string {
  const isLowerBound = zone.lowerBound !== null && zone.lowerBound.length > 0;
  return `${isLowerBound ? '≥ ' : ''}${typeof value === 'number' ? count(value) : value}`;
}

function remarks(zone: ZoneAnalysis): string[] {
  const name = nameOf(zone);
  const { evictionsInDebt, admittedByEviction, allocationFailures, sufficient } = zone;
  const lines: string[] = [];
  if (evictionsInDebt > 0) {
    lines.push(
      `${name}: the full zone forgot ${count(evictionsInDebt)} keys that still had debt, and let in ` +
        `${count(admittedByEviction)} requests that it would have refused. nginx logs none of this.`,
    );
    if (sufficient !== null) {
      lines.push(
        `  ${sufficient.zoneSize} would do: ${count(sufficient.nodes)} keys at one time, at most.`,
      );
    }
  }
  if (allocationFailures > 0) {
    const why = zone.hasMixedKeyLengths
      ? 'keys of different lengths share the zone: give long keys a zone of their own, or shorten them (a hash by map or js)'
      : 'make it larger';
    lines.push(
      `${name}: ${count(allocationFailures)} requests were refused for want of memory; ${why}.`,
    );
  }
  lines.push(...lowerBoundLines(name, zone.lowerBound ?? []));
  return lines;
}

export interface ZoneSizeAnswer extends ZoneSize {
  readonly kind: ZoneKind;
  readonly keys: number;
  readonly keyLengthBytes: number;
  readonly capacities: readonly { sizeBytes: number; capacityKeys: number }[];
}

export function zoneSizeText(answer: ZoneSizeAnswer): string {
  const { kind, keys, keyLengthBytes, zoneSize, sizeMebibytes, capacityKeys } = answer;
  const lines = [
    `${kind}: ${count(keys)} keys of ${keyLengthBytes} bytes need ${sizeMebibytes} MiB: ` +
      `write zone=NAME:${zoneSize}, which holds ${count(capacityKeys)}.`,
    '',
    ...table(
      [
        { title: 'ZONE', isNumber: true },
        { title: 'keys', isNumber: true },
      ],
      answer.capacities.map((row) => [sizeText(row.sizeBytes), count(row.capacityKeys)]),
    ),
  ];
  return `${lines.join('\n')}\n`;
}
