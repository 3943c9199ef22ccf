/**
 * What clients got and who answered, in buckets of 10 s: the rows of `responses`.
 */
import { SOURCE_WORDS } from '../attribution/source.js';
import { STATUS_WORDS } from '../replay/status.js';
import type { Names } from './names.js';
import type { RowSink } from './rows.js';
import { TouchedSums } from './touched-sums.js';

const STATUSES = 1000;
/** Sources and limit statuses are below 8 each; a group is all their pairs. */
const PAIRS = 64;

/** Cells by their names, so that a later configuration finds them again. */
export interface ResponseCell {
  readonly place: readonly string[];
  readonly status: number;
  readonly source: number;
  readonly logged: number;
  readonly requests: number;
}

export class Responses {
  readonly #places: Names;
  readonly #counts = new TouchedSums(1, PAIRS);
  /** By place and status, number of a group and one; 0 while there is none. */
  readonly #groupOf: (Int32Array | undefined)[] = [];
  readonly #placeOfGroup: number[] = [];
  readonly #statusOfGroup: number[] = [];

  /** @param places names of places: server, location */
  constructor(places: Names) {
    this.#places = places;
  }

  /** Counts a response. @param logged STATUS code; unknown for what the log does not tell */
  count(place: number, status: number, source: number, logged: number, requests = 1): void {
    const groups = this.#groupOf[place];
    const known = status >= 0 && status < STATUSES ? status : 0;
    let group = groups === undefined ? 0 : groups[known]!;
    if (group === 0) group = this.#addGroup(place, known);
    this.#counts.count((group - 1) * PAIRS + source * 8 + logged, requests);
  }

  /** Hands the bucket's rows over, and begins an empty one. */
  emit(sink: RowSink, instance: string, bucketS: number): void {
    for (const { place, status, source, logged, requests } of this.cells()) {
      const [server, location] = place;
      const sourceWord = SOURCE_WORDS[source] ?? '';
      const loggedWord = STATUS_WORDS[logged] ?? '';
      const names = [server, location, bucketS, status, sourceWord, loggedWord];
      sink.row('responses', [instance, ...names, requests]);
    }
    this.#counts.clear();
  }

  /** By place, status, source and limit status, whichever came first. */
  cells(): ResponseCell[] {
    const { list } = this.#places;
    const cells = Array.from(this.#counts.cells(), (cell) => {
      const group = Math.floor(cell / PAIRS);
      const pair = cell % PAIRS;
      const place = this.#placeOfGroup[group]!;
      const status = this.#statusOfGroup[group]!;
      return { place, status, pair, requests: this.#counts.values[cell]! };
    });
    cells.sort((a, b) => a.place - b.place || a.status - b.status || a.pair - b.pair);
    return cells.map(({ place, status, pair, requests }) => ({
      place: list[place]!,
      status,
      source: pair >> 3,
      logged: pair & 7,
      requests,
    }));
  }

  restore(cells: readonly ResponseCell[]): void {
    this.#counts.clear();
    for (const { place, status, source, logged, requests } of cells) {
      this.count(this.#places.of(...place), status, source, logged, requests);
    }
  }

  #addGroup(place: number, status: number): number {
    const groups = (this.#groupOf[place] ??= new Int32Array(STATUSES));
    this.#placeOfGroup.push(place);
    this.#statusOfGroup.push(status);
    groups[status] = this.#placeOfGroup.length;
    return this.#placeOfGroup.length;
  }
}
