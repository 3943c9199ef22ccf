/**
 * Error-log lines whose request is in no access log: what they say counts all the same.
 *
 * They come when the replay has given up looking for their requests, long after their time; so they
 * have buckets of their own, which add to those already handed over. What they do not tell (the
 * location, the limit) is left empty; a limit that must have been meant, being the only one of the
 * zone in the server, gives the delay and how near the burst was.
 */
import type { LimitRow } from '../replay/limit-table.js';
import type { WaitingLine } from '../replay/line-join.js';
import { WORD } from './outcome-words.js';
import { BUCKET_MS, spanStartMs, type RowSink } from './rows.js';
import type { Names } from './names.js';
import { ZoneOutcomes, type OutcomeCell } from './zone-outcomes.js';

/** The WORD that a line stands for. */
export function wordOfLine(line: WaitingLine): number {
  if (line.kind === 'exhausted' || line.kind === 'connections_exhausted') return WORD.exhausted;
  if (line.kind === 'delayed') return line.isDryRun ? WORD.delayed_dry_run : WORD.delayed;
  return line.isDryRun ? WORD.rejected_dry_run : WORD.rejected;
}

/** One open bucket. */
export interface UnmatchedBucket {
  readonly bucketMs: number;
  readonly cells: readonly OutcomeCell[];
}

export class UnmatchedLines {
  readonly #limits: Names;
  #buckets = new Map<number, ZoneOutcomes>();
  #newestMs = -Infinity;

  /** @param limits names of limits: kind, zone, server, location */
  constructor(limits: Names) {
    this.#limits = limits;
  }

  /** @param limit the limit that the line must be of; null when that is not known */
  count(sink: RowSink, instance: string, line: WaitingLine, limit: LimitRow | null): void {
    const bucketMs = spanStartMs(line.secondMs, BUCKET_MS);
    if (bucketMs > this.#newestMs) {
      this.#emitBefore(sink, instance, bucketMs);
      this.#newestMs = bucketMs;
    }
    let outcomes = this.#buckets.get(bucketMs);
    if (outcomes === undefined) {
      outcomes = new ZoneOutcomes(this.#limits);
      this.#buckets.set(bucketMs, outcomes);
    }
    const kind = line.kind.startsWith('connections') ? 'limit_conn' : 'limit_req';
    const number = this.#limits.of(kind, line.zone, line.server, '');
    const word = wordOfLine(line);
    const excess = line.excessMilliReq;
    if (Number.isNaN(excess)) outcomes.count(number, word);
    else outcomes.measure(number, word, excess, ...measuresOf(line, limit));
  }

  /** Hands all counts over. */
  flush(sink: RowSink, instance: string): void {
    this.#emitBefore(sink, instance, Infinity);
  }

  snapshot(): UnmatchedBucket[] {
    return Array.from(this.#buckets, ([bucketMs, outcomes]) => {
      return { bucketMs, cells: outcomes.cells() };
    });
  }

  restore(buckets: readonly UnmatchedBucket[]): void {
    this.#buckets = new Map();
    this.#newestMs = -Infinity;
    for (const { bucketMs, cells } of buckets) {
      const outcomes = new ZoneOutcomes(this.#limits);
      outcomes.restore(cells);
      this.#buckets.set(bucketMs, outcomes);
      this.#newestMs = Math.max(this.#newestMs, bucketMs);
    }
  }

  #emitBefore(sink: RowSink, instance: string, endMs: number): void {
    const done = [...this.#buckets.keys()].filter((ms) => ms < endMs).sort((a, b) => a - b);
    for (const bucketMs of done) {
      this.#buckets.get(bucketMs)!.emit(sink, instance, bucketMs / 1000);
      this.#buckets.delete(bucketMs);
    }
  }
}

/** Whether the request came near its burst, and how long it waited. */
function measuresOf(line: WaitingLine, limit: LimitRow | null): [boolean, number] {
  if (limit === null || line.kind !== 'delayed') return [false, 0];
  const { delayMilliReq, rateMilliRps } = limit;
  const over = line.excessMilliReq - delayMilliReq;
  const waitMs = over > 0 ? Math.trunc((over * 1000) / rateMilliRps) : 0;
  return [isNearBurst(line.excessMilliReq, limit.burstMilliReq), waitMs];
}

/** At four fifths of the burst the next few requests are rejected. */
export function isNearBurst(excessMilliReq: number, burstMilliReq: number): boolean {
  return burstMilliReq > 0 && excessMilliReq * 5 >= burstMilliReq * 4;
}
