/**
 * A few requests of each source of 429 and 503, per minute: the rows of `examples`.
 *
 * Paths come without their arguments, which can hold secrets. Times are epoch milliseconds, excess
 * thousandths of a request.
 */
import type { RequestDetails } from '../replay/line-details.js';
import type { RowSink } from './rows.js';

/** Of one place, status and source in a minute. */
const PER_MINUTE = 5;
/** Longest path and key that are shown, in characters. */
const MOST_TEXT = 512;

export interface Example {
  readonly server: string;
  readonly location: string;
  readonly status: number;
  /** Word of the source. */
  readonly source: string;
  readonly ms: number;
  /** Zone, key and excess of the limit that decided; empty and 0 where none did. */
  readonly zone: string;
  readonly key: string;
  readonly excessMilliReq: number;
}

export class Examples {
  /** By place, status and source: how many this minute has. */
  #counts = new Map<number, number>();

  /** Whether one more is wanted; counts it if so. */
  isWanted(place: number, status: number, source: number): boolean {
    const code = (place * 1024 + (status & 1023)) * 8 + source;
    const known = this.#counts.get(code) ?? 0;
    if (known >= PER_MINUTE) return false;
    this.#counts.set(code, known + 1);
    return true;
  }

  emit(sink: RowSink, instance: string, example: Example, details: RequestDetails): void {
    const { server, location, status, source, ms, zone, key, excessMilliReq } = example;
    // The log's bytes stand as one character each; what people read is UTF-8.
    const path = Buffer.from(details.path, 'latin1').toString('utf8').slice(0, MOST_TEXT);
    const method = details.method.slice(0, MOST_TEXT);
    const names = [instance, server, location, status, source, ms, method, path, zone];
    sink.row('examples', [...names, key.slice(0, MOST_TEXT), excessMilliReq]);
  }

  /** Another minute begins. */
  clear(): void {
    this.#counts.clear();
  }

  snapshot(): [number, number][] {
    return [...this.#counts];
  }

  restore(counts: readonly (readonly [number, number])[]): void {
    this.#counts = new Map(counts);
  }
}
