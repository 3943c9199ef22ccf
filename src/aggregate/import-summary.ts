/**
 * What an import counted, all in all: the few numbers it prints at its end.
 *
 * Counts are those since this process began, not those of the imports before it.
 */
import { SOURCE_WORDS } from '../attribution/source.js';
import { STATUS_WORDS } from '../replay/status.js';
import { AGREEMENT, AGREEMENT_WORDS, type AgreementWord } from './agreement-classes.js';
import type { LineKind } from './line-counts.js';
import type { Names } from './names.js';
import { OUTCOME_WORDS, type OutcomeWord } from './outcome-words.js';

const WORDS = OUTCOME_WORDS.length;

export interface ZoneSummary {
  readonly kind: string;
  readonly zone: string;
  readonly outcomes: Readonly<Record<OutcomeWord, number>>;
}

export interface ImportSummary {
  readonly requests: number;
  /** Decision times of the first and the last request; null when there was none. */
  readonly firstMs: number | null;
  readonly lastMs: number | null;
  /** Requests by $limit_req_status; '' where it is empty, not logged or inferred. */
  readonly byLimitReqStatus: Readonly<Record<string, number>>;
  /** 429, 503 and refusals with another status, by who gave them. */
  readonly bySource: Readonly<Record<string, number>>;
  readonly zones: readonly ZoneSummary[];
  readonly agreement: Readonly<Record<AgreementWord, number>>;
  /** Limits of requests whose outcome was logged: what `agree` and `explained` are shares of. */
  readonly compared: number;
  readonly unmatchedLines: number;
  readonly lines: Readonly<Record<LineKind, number>>;
  /** Requests of keys that were not kept per minute, there being too many. */
  readonly untrackedKeys: number;
}

export class Totals {
  requests = 0;
  unmatchedLines = 0;
  firstMs = NaN;
  lastMs = NaN;
  readonly byLogged = new Float64Array(STATUS_WORDS.length);
  readonly bySource = new Float64Array(SOURCE_WORDS.length);
  readonly byClass = new Float64Array(AGREEMENT_WORDS.length);
  readonly lines: Record<LineKind, number> = {
    access: 0,
    error: 0,
    limit_line: 0,
    other: 0,
    unparsable: 0,
    duplicate: 0,
  };
  /** By number of the limit's names, then by outcome. */
  #outcomes = new Float64Array(64 * WORDS);

  countOutcome(limit: number, word: number): void {
    const cell = limit * WORDS + word;
    if (cell >= this.#outcomes.length) {
      const longer = new Float64Array(Math.max(cell + 1, this.#outcomes.length * 2));
      longer.set(this.#outcomes);
      this.#outcomes = longer;
    }
    this.#outcomes[cell]!++;
  }

  /** @param limits names of limits: kind, zone, server, location */
  summary(limits: Names, untrackedKeys: number): ImportSummary {
    const agreement = byWord(AGREEMENT_WORDS, this.byClass);
    const sum = this.byClass.reduce((total, count) => total + count, 0);
    return {
      requests: this.requests,
      firstMs: Number.isNaN(this.firstMs) ? null : this.firstMs,
      lastMs: Number.isNaN(this.lastMs) ? null : this.lastMs,
      byLimitReqStatus: byWord(
        STATUS_WORDS.map((word) => word ?? ''),
        this.byLogged,
      ),
      bySource: byWord(SOURCE_WORDS.slice(1) as string[], this.bySource.subarray(1)),
      zones: this.#zones(limits),
      agreement,
      compared: sum - this.byClass[AGREEMENT.explained]! - this.byClass[AGREEMENT.not_logged]!,
      unmatchedLines: this.unmatchedLines,
      lines: { ...this.lines },
      untrackedKeys,
    };
  }

  #zones(limits: Names): ZoneSummary[] {
    const zones = new Map<string, { kind: string; zone: string; sums: Float64Array }>();
    for (const [number, [kind = '', zone = '']] of limits.list.entries()) {
      const key = JSON.stringify([kind, zone]);
      const known = zones.get(key) ?? { kind, zone, sums: new Float64Array(WORDS) };
      zones.set(key, known);
      for (let word = 0; word < WORDS; word++) {
        known.sums[word]! += this.#outcomes[number * WORDS + word] ?? 0;
      }
    }
    return Array.from(zones.values(), ({ kind, zone, sums }) => {
      return { kind, zone, outcomes: byWord(OUTCOME_WORDS, sums) };
    });
  }
}

function byWord<W extends string>(words: readonly W[], counts: Float64Array): Record<W, number> {
  const sums = {} as Record<W, number>;
  for (const [i, word] of words.entries()) sums[word] = (sums[word] ?? 0) + counts[i]!;
  return sums;
}
