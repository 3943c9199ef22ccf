/**
 * limit_conn zones for a terminal.
 */
import { sizeText } from '../check/zone-size.js';
import { cell, count, share, table } from '../report/table.js';
import type { ConnZoneAnalysis } from './conn-zones.js';
import { lowerBoundLines } from './lower-bound-text.js';

const MOST_LEGEND =
  'most: keys with requests under way at one time; each has one node. Such a zone evicts none.';

/** A table, and what there is to say of it; empty without zones, else ends in a newline. */
export function connZonesText(zones: readonly ConnZoneAnalysis[]): string {
  if (zones.length === 0) return '';
  const unknowns = new Set(zones.flatMap((zone) => zone.unknowns));
  const blocks = [
    connections(zones),
    [
      ...zones.flatMap((zone) => lowerBoundLines(nameOf(zone), zone.lowerBound ?? [])),
      ...(zones.some(({ occupancy }) => occupancy !== null) ? [MOST_LEGEND] : []),
      ...unknowns,
    ],
  ];
  return `${blocks.map((block) => block.join('\n')).join('\n\n')}\n`;
}

function nameOf({ instance, zone }: ConnZoneAnalysis): string {
  return instance === 'default' ? cell(zone) : cell(`${instance}: ${zone}`);
}

function connections(zones: readonly ConnZoneAnalysis[]): string[] {
  const titles = ['size', 'most', 'capacity', 'full', 'passed', 'rejected', 'no memory'];
  return table(
    [{ title: 'LIMIT_CONN' }, ...titles.map((title) => ({ title, isNumber: true }))],
    zones.map((zone) => {
      const { occupancy, capacityByKeyLength } = zone;
      const capacity = occupancy?.capacityNodes ?? capacityByKeyLength[0]?.capacityNodes;
      const isLowerBound = zone.lowerBound !== null && zone.lowerBound.length > 0;
      return [
        nameOf(zone),
        zone.sizeBytes === null ? '-' : sizeText(zone.sizeBytes),
        occupancy === null ? '-' : `${isLowerBound ? '≥ ' : ''}${count(occupancy.nodesMax)}`,
        capacity === undefined ? '-' : count(capacity),
        occupancy === null ? '-' : share(occupancy.nodesMax, occupancy.capacityNodes),
        count(zone.passed),
        withDryRun(zone.rejected, zone.rejectedDryRun),
        withDryRun(zone.exhausted, zone.exhaustedDryRun),
      ];
    }),
  );
}

function withDryRun(enforced: number, dryRun: number): string {
  return dryRun === 0 ? count(enforced) : `${count(enforced)} (dry run ${count(dryRun)})`;
}
