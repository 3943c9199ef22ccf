/**
 * One number per zone and class of a few: the rows of `excess_histogram` and of `agreement`.
 *
 * Not here: what the classes are (agreement-classes.ts, excessFraction()).
 */
import type { Names } from './names.js';
import type { RowSink } from './rows.js';
import { TouchedSums } from './touched-sums.js';

/** Classes of the histogram: 0 to 20 in steps of 5 % of the burst, 21 for what is above it. */
export const FRACTIONS = 22;
const ABOVE = 21;

/** Which class of the histogram an excess is in. */
export function excessFraction(excessMilliReq: number, burstMilliReq: number): number {
  if (excessMilliReq > burstMilliReq) return ABOVE;
  return burstMilliReq === 0 ? 0 : Math.floor((excessMilliReq * 20) / burstMilliReq);
}

/** A cell by its zone's name. */
export interface ZoneCell {
  readonly zone: string;
  readonly class: number;
  readonly requests: number;
}

export class ZoneCounts {
  readonly #zones: Names;
  readonly #classes: number;
  readonly #counts: TouchedSums;

  constructor(zones: Names, classes: number) {
    this.#zones = zones;
    this.#classes = classes;
    this.#counts = new TouchedSums(1, zones.list.length * classes);
  }

  count(zone: number, inClass: number, requests = 1): void {
    this.#counts.count(zone * this.#classes + inClass, requests);
  }

  /** Hands the rows over, and begins anew. @param words what stands for each class; itself if absent */
  emit(
    sink: RowSink,
    table: 'excess_histogram' | 'agreement',
    instance: string,
    bucketS: number,
    words?: readonly string[],
  ): void {
    for (const { zone, class: inClass, requests } of this.cells()) {
      sink.row(table, [instance, zone, bucketS, words?.[inClass] ?? inClass, requests]);
    }
    this.#counts.clear();
  }

  /** By zone, then by class. */
  cells(): ZoneCell[] {
    return Array.from(this.#counts.cells(), (cell) => ({
      zone: this.#zones.list[Math.floor(cell / this.#classes)]![0]!,
      class: cell % this.#classes,
      requests: this.#counts.values[cell]!,
    }));
  }

  restore(cells: readonly ZoneCell[]): void {
    this.#counts.clear();
    for (const { zone, class: inClass, requests } of cells) {
      this.count(this.#zones.of(zone), inClass, requests);
    }
  }
}
