/**
 * Lines of one log that are read where they are replayed.
 *
 * Not here: logs that another thread reads (src/pipeline/record-lane.ts).
 */
import type { AccessFeed } from './access-feed.js';
import type { AccessFields } from './access-fields.js';
import type { LineExtractor } from './line-extractor.js';

/** Lines of one file in this thread: reads their facts and submits them at once. */
export class LineFeed {
  readonly fields: AccessFields;
  readonly #extractor: LineExtractor;
  readonly #feed: AccessFeed;

  constructor(extractor: LineExtractor, feed: AccessFeed) {
    this.#extractor = extractor;
    this.#feed = feed;
    this.fields = extractor.fields;
  }

  /** See AccessFeed.order. */
  get order(): number {
    return this.#feed.order;
  }

  set order(order: number) {
    this.#feed.order = order;
  }

  /** Hands the line just scanned to the engine. @param endMs fields.endMs() of the line */
  submit(bytes: Uint8Array, endMs: number): void {
    this.#extractor.extract(bytes, endMs);
    this.#feed.submit(this.#extractor.facts, bytes);
  }
}
