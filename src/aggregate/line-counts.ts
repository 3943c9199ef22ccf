/**
 * How many lines of what kind each source had, in buckets of 10 s: the rows of `line_counts`, and a
 * few of the lines that could not be read.
 *
 * Times are those of the lines, in epoch milliseconds; a line without one counts where the last one
 * of its source stood.
 */
import { BUCKET_MS, spanStartMs, type RowSink } from './rows.js';

export const LINE_KINDS = [
  'access',
  'error',
  'limit_line',
  'other',
  'unparsable',
  'duplicate',
] as const;

export type LineKind = (typeof LINE_KINDS)[number];

const MOST_SAMPLES = 20;
/** Longest part of a line that a sample shows, in characters. */
const MOST_RAW = 2048;

export interface LineCell {
  readonly source: string;
  readonly bucketMs: number;
  readonly kind: LineKind;
  readonly reason: string;
  lines: number;
}

export interface LineCountsSnapshot {
  readonly cells: readonly LineCell[];
  readonly newestMs: number;
  readonly samples: readonly (readonly [string, number])[];
}

export class LineCounts {
  readonly #sink: RowSink;
  readonly #instance: string;
  readonly #cells = new Map<string, LineCell>();
  #samples = new Map<string, number>();
  #last: LineCell | null = null;
  #newestMs = 0;

  constructor(sink: RowSink, instance: string) {
    this.#sink = sink;
    this.#instance = instance;
  }

  /** Counts `n` lines. @param atMs NaN when the lines have no time */
  count(source: string, atMs: number, kind: LineKind, reason: string, n: number): void {
    const bucketMs = Number.isNaN(atMs) ? this.#newestMs : spanStartMs(atMs, BUCKET_MS);
    const last = this.#last;
    if (
      last !== null &&
      last.bucketMs === bucketMs &&
      last.source === source &&
      last.kind === kind &&
      last.reason === reason
    ) {
      last.lines += n;
      return;
    }
    if (bucketMs > this.#newestMs) this.#advance(bucketMs);
    const key = JSON.stringify([bucketMs, source, kind, reason]);
    let cell = this.#cells.get(key);
    if (cell === undefined)
      this.#cells.set(key, (cell = { source, bucketMs, kind, reason, lines: 0 }));
    cell.lines += n;
    this.#last = cell;
  }

  /** Keeps the line when it is one of the first of its source and reason. */
  sample(source: string, offset: number, reason: string, raw: string): void {
    const key = JSON.stringify([source, reason]);
    const known = this.#samples.get(key) ?? 0;
    if (known >= MOST_SAMPLES) return;
    this.#samples.set(key, known + 1);
    const row = [this.#instance, source, offset, reason, raw.slice(0, MOST_RAW)];
    this.#sink.row('unparsable_samples', row);
  }

  /** Hands all counts over. */
  flush(): void {
    this.#advance(Infinity);
  }

  snapshot(): LineCountsSnapshot {
    const cells = Array.from(this.#cells.values(), (cell) => ({ ...cell }));
    return { cells, newestMs: this.#newestMs, samples: [...this.#samples] };
  }

  restore(snapshot: LineCountsSnapshot): void {
    this.#cells.clear();
    this.#last = null;
    for (const cell of snapshot.cells) {
      const key = JSON.stringify([cell.bucketMs, cell.source, cell.kind, cell.reason]);
      this.#cells.set(key, { ...cell });
    }
    this.#newestMs = snapshot.newestMs;
    this.#samples = new Map(snapshot.samples);
  }

  /** Buckets before this one are complete, but for lines that come out of order. */
  #advance(bucketMs: number): void {
    const done = [...this.#cells].filter(([, cell]) => cell.bucketMs < bucketMs);
    done.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    for (const [key, { source, bucketMs: ownMs, kind, reason, lines }] of done) {
      // Lines without a time that came before all others count with the first that has one.
      const ms = ownMs === 0 && bucketMs !== Infinity ? bucketMs : ownMs;
      this.#sink.row('line_counts', [this.#instance, source, ms / 1000, kind, reason, lines]);
      this.#cells.delete(key);
    }
    this.#last = null;
    if (bucketMs !== Infinity) this.#newestMs = bucketMs;
  }
}
