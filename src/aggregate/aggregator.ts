/**
 * From the decisions of a replay to the rows of the store's tables.
 *
 * Pure: no clock, no I/O. A bucket's rows are handed over when the first decision of a later bucket
 * comes; so which rows come, and in which order, follows from the decisions alone. Decisions come in
 * decision order, their times never go back.
 *
 * Units: epoch milliseconds in, buckets in epoch seconds out; excess in thousandths of a request.
 *
 * Not here: what is counted of each limit (limit-counter.ts), the tables' columns (rows.ts).
 */
import { SOURCE, SOURCE_WORDS } from '../attribution/source.js';
import type { PlainDecision } from '../replay/plain-pass.js';
import { FLAG } from '../replay/event-flags.js';
import type { EventPool } from '../replay/event-pool.js';
import type { WaitingLine } from '../replay/line-join.js';
import type { ReplaySession } from '../replay/session.js';
import { STATUS } from '../replay/status.js';
import { Examples } from './examples.js';
import { SummedSink, type ImportSummary } from './import-summary.js';
import { excessOf, LimitCounter, type LimitCounterSnapshot } from './limit-counter.js';
import { LimitRows } from './limit-rows.js';
import { LineCounts, type LineCountsSnapshot, type LineKind } from './line-counts.js';
import { Notes, type Note } from './notes.js';
import { Responses, type ResponseCell } from './responses.js';
import { BUCKET_MS, MINUTE_MS, spanStartMs, type RowSink } from './rows.js';
import { RulePlans, type RulePlan } from './rule-plans.js';
import { UnmatchedLines, type UnmatchedBucket } from './unmatched-lines.js';

const DEFAULT_KEYS_PER_MINUTE = 50;
const DEFAULT_MOST_KEYS = 200_000;

export interface AggregatorOptions {
  /** Stands in every row: which nginx this is. */
  readonly instance: string;
  readonly sink: RowSink;
  /** Keys per zone and minute that come out beside those that were limited; 50 by default. */
  readonly keysPerMinute?: number;
  /** Keys per zone and minute that are counted at all, limited ones apart; 200,000 by default. */
  readonly mostKeysPerMinute?: number;
}

/** Everything open, as plain JSON. */
export interface AggregatorSnapshot {
  readonly bucketMs: number | null;
  /** Latest decision or unmatched line: what came into force by then has its row. */
  readonly latestMs: number | null;
  readonly responses: readonly ResponseCell[];
  readonly limits: LimitCounterSnapshot;
  readonly unmatched: readonly UnmatchedBucket[];
  readonly lines: LineCountsSnapshot;
  readonly examples: readonly (readonly [number, number])[];
  readonly notes: readonly Note[];
  readonly emittedConfigurations: readonly number[];
}

export class Aggregator {
  readonly #session: ReplaySession;
  readonly #pool: EventPool;
  readonly #sink: SummedSink;
  readonly #instance: string;
  readonly #plans: RulePlans;
  readonly #responses: Responses;
  readonly #limits: LimitCounter;
  readonly #unmatched: UnmatchedLines;
  readonly #lines: LineCounts;
  readonly #examples = new Examples();
  readonly #notes = new Notes();
  readonly #limitRows: LimitRows;
  /** Begin of the open bucket; NaN before the first decision. */
  #bucketMs = NaN;
  #bucketEndMs = -Infinity;
  #firstMs = -Infinity;
  #lastMs = -Infinity;
  #unmatchedMs = -Infinity;
  /** Latest moment that an earlier aggregator had counted. */
  #earlierMs = -Infinity;
  #unmatchedCount = 0;

  /** @param session the replay whose decisions come; its rules and zones must be complete */
  constructor(session: ReplaySession, options: AggregatorOptions) {
    const { instance } = options;
    const sink = new SummedSink(options.sink);
    this.#session = session;
    this.#pool = session.engine.pool;
    this.#sink = sink;
    this.#instance = instance;
    this.#plans = new RulePlans(session);
    this.#responses = new Responses(this.#plans.places);
    this.#limits = new LimitCounter(
      session,
      this.#plans,
      options.keysPerMinute ?? DEFAULT_KEYS_PER_MINUTE,
      options.mostKeysPerMinute ?? DEFAULT_MOST_KEYS,
    );
    this.#unmatched = new UnmatchedLines(this.#plans.limits);
    this.#lines = new LineCounts(sink, instance);
    this.#limitRows = new LimitRows(session);
  }

  /** Counts a decision, while its event and its details are still there. */
  decide(event: number): void {
    const pool = this.#pool;
    const ms = pool.estMs[event]!;
    if (this.#lastMs === -Infinity) this.#begin(ms);
    if (ms >= this.#bucketEndMs) this.#roll(ms);
    const isInferred = (pool.flags[event]! & FLAG.inferred) !== 0;
    const told = isInferred ? STATUS.unknown : pool.logged[event]!;
    const source = pool.source[event]!;
    const rules = pool.rules[event]!;
    this.#lastMs = ms;
    if (rules < 0) {
      this.#responses.count(this.#plans.nowhere, pool.httpStatus[event]!, source, told);
      if (told > STATUS.none) this.#limits.countRuleUnknown();
      if (source !== SOURCE.none) this.#showExample(event, null, -1);
      return;
    }
    const plan = this.#plans.list[rules]!;
    this.#responses.count(plan.place, pool.httpStatus[event]!, source, told);
    const deciding = this.#limits.count(event, plan, told);
    if (plan.connNumbers.length > 0) this.#limits.countConnections(event, plan);
    if (source !== SOURCE.none) this.#showExample(event, plan, deciding);
  }

  /** The same for a request that is no event. */
  decidePlain(plain: PlainDecision): void {
    const { ms } = plain;
    if (this.#lastMs === -Infinity) this.#begin(ms);
    if (ms >= this.#bucketEndMs) this.#roll(ms);
    this.#lastMs = ms;
    const plan = this.#plans.list[plain.rules]!;
    this.#responses.count(plan.place, plain.httpStatus, SOURCE.none, STATUS.passed);
    this.#limits.countPlain(plain, plan);
  }

  /** Counts an error-log line whose request is in no access log. */
  unmatchedLine(line: WaitingLine): void {
    const limit = this.#plans.onlyLimit(line.zone, line.server);
    this.#unmatched.count(this.#sink, this.#instance, line, limit);
    this.#limits.noteUnmatched(line, limit);
    this.#unmatchedCount++;
    this.#unmatchedMs = Math.max(this.#unmatchedMs, line.secondMs);
  }

  /** Counts one line as read. @param atMs its time; NaN when it has none */
  line(source: string, atMs: number, kind: LineKind, reason: string): void {
    this.lines(source, atMs, kind, reason, 1);
  }

  /** Counts `n` lines of one bucket at once. */
  lines(source: string, atMs: number, kind: LineKind, reason: string, n: number): void {
    this.#lines.count(source, atMs, kind, reason, n);
  }

  /** Keeps a line that could not be read as a sample; the first 20 of each source and reason. */
  unparsable(source: string, offset: number, reason: string, raw: string): void {
    this.#lines.sample(source, offset, reason, raw);
  }

  /** A reload, a restart, an import: something to see on a time line. */
  mark(mark: string, ms: number, details: string): void {
    this.#sink.row('marks', [this.#instance, ms, mark, details]);
  }

  /** Something that cannot be evaluated, as a finding. */
  note(text: string): void {
    this.#notes.add(text);
  }

  /** At the end of the input: hands over all that is open. */
  flush(): void {
    if (!Number.isNaN(this.#bucketMs)) {
      this.#emitBucket();
      this.#emitMinute();
    }
    this.#unmatched.flush(this.#sink, this.#instance);
    this.#lines.flush();
    const endMs = Math.floor(this.#latestMs());
    if (endMs > -Infinity) {
      this.#limits.emitFindings(this.#sink, this.#instance);
      this.#limitRows.emit(this.#sink, this.#instance, endMs);
      this.#notes.emitAll(this.#sink, this.#instance, endMs);
    }
    this.#bucketMs = NaN;
    this.#bucketEndMs = -Infinity;
  }

  snapshot(): AggregatorSnapshot {
    const latestMs = this.#latestMs();
    return {
      bucketMs: Number.isNaN(this.#bucketMs) ? null : this.#bucketMs,
      latestMs: latestMs === -Infinity ? null : latestMs,
      responses: this.#responses.cells(),
      limits: this.#limits.snapshot(),
      unmatched: this.#unmatched.snapshot(),
      lines: this.#lines.snapshot(),
      examples: this.#examples.snapshot(),
      notes: this.#notes.snapshot(),
      emittedConfigurations: this.#limitRows.snapshot(),
    };
  }

  /**
   * Goes on where snapshot() was taken, on a fresh aggregator. Names decide what belongs together;
   * numbers of another configuration do no harm.
   *
   * Comes after the session's own restore(), whose key tables must come without the references that
   * the aggregator held: keys are interned and retained here once more.
   */
  restore(snapshot: AggregatorSnapshot): void {
    this.#bucketMs = snapshot.bucketMs ?? NaN;
    this.#bucketEndMs = snapshot.bucketMs === null ? -Infinity : snapshot.bucketMs + BUCKET_MS;
    this.#earlierMs = snapshot.latestMs ?? -Infinity;
    this.#responses.restore(snapshot.responses);
    this.#limits.restore(snapshot.limits);
    this.#unmatched.restore(snapshot.unmatched);
    this.#lines.restore(snapshot.lines);
    this.#examples.restore(snapshot.examples);
    this.#notes.restore(snapshot.notes);
    this.#limitRows.restore(snapshot.emittedConfigurations);
  }

  /** What was handed over since this aggregator was made. */
  summary(): ImportSummary {
    return this.#sink.summary({
      firstMs: this.#firstMs === -Infinity ? null : this.#firstMs,
      lastMs: this.#lastMs === -Infinity ? null : this.#lastMs,
      unmatchedLines: this.#unmatchedCount,
      untrackedKeys: this.#limits.untrackedKeys,
    });
  }

  #latestMs(): number {
    return Math.max(this.#lastMs, this.#unmatchedMs, this.#earlierMs);
  }

  #begin(ms: number): void {
    this.#firstMs = ms;
    this.#limits.begin();
  }

  /** The first decision of a later bucket: what was open before it is complete. */
  #roll(ms: number): void {
    const bucketMs = spanStartMs(ms, BUCKET_MS);
    if (!Number.isNaN(this.#bucketMs)) {
      this.#emitBucket();
      if (spanStartMs(ms, MINUTE_MS) !== spanStartMs(this.#bucketMs, MINUTE_MS)) {
        this.#emitMinute();
      }
    }
    this.#limitRows.emit(this.#sink, this.#instance, ms);
    this.#notes.emitNew(this.#sink, this.#instance, Math.floor(ms));
    this.#bucketMs = bucketMs;
    this.#bucketEndMs = bucketMs + BUCKET_MS;
  }

  #emitBucket(): void {
    const bucketS = this.#bucketMs / 1000;
    this.#limits.emitOutcomes(this.#sink, this.#instance, bucketS);
    this.#responses.emit(this.#sink, this.#instance, bucketS);
    this.#limits.emitStates(this.#sink, this.#instance, bucketS);
  }

  #emitMinute(): void {
    const minuteS = spanStartMs(this.#bucketMs, MINUTE_MS) / 1000;
    this.#limits.emitMinute(this.#sink, this.#instance, minuteS);
    this.#limits.emitFindings(this.#sink, this.#instance);
    this.#examples.clear();
  }

  #showExample(event: number, plan: RulePlan | null, deciding: number): void {
    const details = this.#session.detailsOf.get(event);
    if (details === undefined) return;
    const pool = this.#pool;
    const status = Math.max(0, pool.httpStatus[event]!);
    const source = pool.source[event]!;
    const place = plan?.place ?? this.#plans.nowhere;
    if (!this.#examples.isWanted(place, status, source)) return;
    const isOurs = source === SOURCE.limitReq || source === SOURCE.limitReqZoneExhausted;
    const limit = isOurs && deciding >= 0 ? plan?.limits[deciding] : undefined;
    const slot = event + deciding;
    const key = limit === undefined ? -1 : pool.keyId[slot]!;
    const example = {
      server: plan?.server ?? '',
      location: plan?.location ?? '',
      status,
      source: SOURCE_WORDS[source] ?? '',
      ms: Math.floor(pool.estMs[event]!),
      zone: limit?.zone.name ?? '',
      key: key < 0 ? '' : limit!.zone.keys.text(key),
      excessMilliReq: limit === undefined ? 0 : Math.max(0, excessOf(pool, event, slot, deciding)),
    };
    this.#examples.emit(this.#sink, this.#instance, example, details);
  }
}
