/**
 * Minutes in which keys that come back after a refusal make up most of the refusals.
 *
 * Then the limit feeds itself: a refusal brings a request that is refused, and so on. Minutes of a
 * zone that follow each other are one storm.
 */
import { KeyTallies } from './key-tallies.js';

export interface RetryStorm {
  readonly fromMs: number;
  /** Its last minute ends here. */
  readonly toMs: number;
  readonly rejects: number;
  /** Of these, those of keys that had been refused just before. */
  readonly retries: number;
  /** Refusals for each that was no retry; null where all were. */
  readonly rejectsPerFirst: number | null;
  readonly worstKeys: readonly { readonly key: string; readonly retries: number }[];
}

const MINUTE_MS = 60_000;
const WORST_KEYS = 5;

interface OpenStorm {
  readonly fromMs: number;
  toMs: number;
  rejects: number;
  retries: number;
  readonly keys: KeyTallies<{ retries: number }>;
}

/** The minutes of one zone, in order of time. */
export class RetryStorms {
  readonly storms: RetryStorm[] = [];
  readonly #minRejects: number;
  #minuteMs = -Infinity;
  #rejects = 0;
  #retries = 0;
  #keys = freshKeys();
  #open: OpenStorm | null = null;

  /** @param minRejects fewer in a minute are no storm */
  constructor(minRejects: number) {
    this.#minRejects = minRejects;
  }

  /** Counts a refusal; `key` is that of a retry, null for a first one. */
  reject(atMs: number, key: string | null): void {
    const minuteMs = Math.floor(atMs / MINUTE_MS) * MINUTE_MS;
    if (minuteMs > this.#minuteMs) {
      this.#closeMinute();
      this.#minuteMs = minuteMs;
    }
    this.#rejects++;
    if (key === null) return;
    this.#retries++;
    this.#keys.of(key).retries++;
  }

  finish(): readonly RetryStorm[] {
    this.#closeMinute();
    this.#closeStorm();
    return this.storms;
  }

  #closeMinute(): void {
    if (this.#rejects >= this.#minRejects && this.#retries * 2 > this.#rejects) this.#addMinute();
    this.#rejects = 0;
    this.#retries = 0;
    this.#keys = freshKeys();
  }

  #addMinute(): void {
    if (this.#open !== null && this.#open.toMs !== this.#minuteMs) this.#closeStorm();
    this.#open ??= {
      fromMs: this.#minuteMs,
      toMs: this.#minuteMs,
      rejects: 0,
      retries: 0,
      keys: freshKeys(),
    };
    const storm = this.#open;
    storm.toMs = this.#minuteMs + MINUTE_MS;
    storm.rejects += this.#rejects;
    storm.retries += this.#retries;
    for (const [key, { retries }] of this.#keys.heaviest(Infinity)) {
      storm.keys.of(key).retries += retries;
    }
  }

  #closeStorm(): void {
    if (this.#open === null) return;
    const { fromMs, toMs, rejects, retries, keys } = this.#open;
    this.#open = null;
    this.storms.push({
      fromMs,
      toMs,
      rejects,
      retries,
      rejectsPerFirst: rejects === retries ? null : rejects / (rejects - retries),
      worstKeys: keys.heaviest(WORST_KEYS).map(([key, tally]) => ({ key, ...tally })),
    });
  }
}

function freshKeys(): KeyTallies<{ retries: number }> {
  return new KeyTallies(
    () => ({ retries: 0 }),
    ({ retries }) => retries,
    10_000,
  );
}
