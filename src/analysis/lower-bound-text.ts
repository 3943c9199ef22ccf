/**
 * Why a zone's numbers are a lower bound, for a terminal.
 */
import { cell } from '../report/table.js';
import type { LowerBound } from './lower-bound.js';

/** One line for each directive; a log that was not given may hold the requests of many locations. */
export function lowerBoundLines(name: string, reasons: readonly LowerBound[]): string[] {
  const byPlace = new Map<string, LowerBound[]>();
  for (const reason of reasons) {
    const place = `${reason.file}:${reason.line}`;
    byPlace.set(place, [...(byPlace.get(place) ?? []), reason]);
  }
  return Array.from(byPlace, ([place, [first, ...others]]) => {
    const more = others.length === 0 ? '' : ` (and ${others.length} more places)`;
    return `${name}: a lower bound, since ${place}: ${cell(first!.why, 200)}${more}`;
  });
}
