/**
 * What an import counted, all in all: the few numbers it prints at its end.
 *
 * They are the sums of the rows handed over, so they are what the store has gained: complete after
 * flush(), and without what an earlier process had handed over before this one went on.
 */
import { AGREEMENT_WORDS, EXPLAINED, type AgreementWord } from './agreement-classes.js';
import { LINE_KINDS, type LineKind } from './line-counts.js';
import { OUTCOME_WORDS, type OutcomeWord } from './outcome-words.js';
import type { RowSink, RowTable } from './rows.js';

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

/** Reads the sums off the rows on their way to the store. */
export class SummedSink implements RowSink {
  readonly #sink: RowSink;
  readonly #byLogged = new Map<string, number>();
  readonly #bySource = new Map<string, number>();
  readonly #byClass = new Map<string, number>();
  readonly #byKind = new Map<string, number>();
  readonly #zones = new Map<string, Map<string, number>>();

  constructor(sink: RowSink) {
    this.#sink = sink;
  }

  row(table: RowTable, row: readonly unknown[]): void {
    if (table === 'responses') this.#seeResponse(row as ResponseRow);
    else if (table === 'zone_outcomes') this.#seeOutcome(row as OutcomeRow);
    else if (table === 'agreement') add(this.#byClass, row[3] as string, row[4] as number);
    else if (table === 'line_counts') add(this.#byKind, row[3] as string, row[5] as number);
    this.#sink.row(table, row);
  }

  /** Sums of all rows so far; what the aggregator alone knows is given. */
  summary(rest: RestOfSummary): ImportSummary {
    const agreement = inOrder(AGREEMENT_WORDS, this.#byClass);
    const known = AGREEMENT_WORDS.filter((word) => word !== EXPLAINED && word !== 'not_logged');
    const byLimitReqStatus = Object.fromEntries(this.#byLogged);
    const requests = [...this.#byLogged.values()].reduce((sum, n) => sum + n, 0);
    return {
      requests,
      ...rest,
      byLimitReqStatus,
      bySource: Object.fromEntries(this.#bySource),
      zones: Array.from(this.#zones, ([names, sums]): ZoneSummary => {
        const [kind, zone] = JSON.parse(names) as [string, string];
        return { kind, zone, outcomes: inOrder(OUTCOME_WORDS, sums) };
      }),
      agreement,
      compared: known.reduce((sum, word) => sum + agreement[word], 0),
      lines: inOrder(LINE_KINDS, this.#byKind),
    };
  }

  #seeResponse([, , , , , source, limitReqStatus, requests]: ResponseRow): void {
    add(this.#byLogged, limitReqStatus, requests);
    if (source !== '') add(this.#bySource, source, requests);
  }

  #seeOutcome([, zone, kind, , , , outcome, requests]: OutcomeRow): void {
    const names = JSON.stringify([kind, zone]);
    const sums = this.#zones.get(names) ?? new Map<string, number>();
    this.#zones.set(names, sums);
    add(sums, outcome, requests);
  }
}

/** The sums of two imports. */
export function joinSummaries(first: ImportSummary, second: ImportSummary): ImportSummary {
  const zones = new Map(first.zones.map((zone) => [`${zone.kind} ${zone.zone}`, zone]));
  for (const zone of second.zones) {
    const name = `${zone.kind} ${zone.zone}`;
    const before = zones.get(name);
    zones.set(
      name,
      before === undefined ? zone : { ...zone, outcomes: addAll(before.outcomes, zone.outcomes) },
    );
  }
  return {
    requests: first.requests + second.requests,
    firstMs: first.firstMs ?? second.firstMs,
    lastMs: second.lastMs ?? first.lastMs,
    byLimitReqStatus: addAll(first.byLimitReqStatus, second.byLimitReqStatus),
    bySource: addAll(first.bySource, second.bySource),
    zones: [...zones.values()],
    agreement: addAll(first.agreement, second.agreement),
    compared: first.compared + second.compared,
    unmatchedLines: first.unmatchedLines + second.unmatchedLines,
    lines: addAll(first.lines, second.lines),
    untrackedKeys: first.untrackedKeys + second.untrackedKeys,
  };
}

function addAll<T extends Readonly<Record<string, number>>>(first: T, second: T): T {
  const sums = new Map(Object.entries(first));
  for (const [word, n] of Object.entries(second)) add(sums, word, n);
  return Object.fromEntries(sums) as T;
}

type ResponseRow = [string, string, string, number, number, string, string, number];
type OutcomeRow = [string, string, string, string, string, number, string, number];
type RestOfSummary = Pick<ImportSummary, 'firstMs' | 'lastMs' | 'unmatchedLines' | 'untrackedKeys'>;

function add(sums: Map<string, number>, word: string, count: number): void {
  sums.set(word, (sums.get(word) ?? 0) + count);
}

function inOrder<W extends string>(
  words: readonly W[],
  sums: ReadonlyMap<string, number>,
): Record<W, number> {
  return Object.fromEntries(words.map((word) => [word, sums.get(word) ?? 0])) as Record<W, number>;
}
