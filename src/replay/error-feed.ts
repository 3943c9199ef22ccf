/**
 * Error-log lines into what the replay needs of them: lines that wait for their request, allocation
 * failures, and marks of reloads and restarts. Everything else is counted by level.
 *
 * The same line may reach several error_logs; it counts once: the n-th copy of a line in one file
 * is taken for the n-th copy in another, within the lines of one second.
 *
 * Times are epoch milliseconds; error-log times carry no zone, the clock given here knows it.
 */
import { parseErrorLine, type ErrorLine, type LimitLine } from '../../parsers/error/error-line.js';
import type { LogClock } from '../../parsers/time.js';
import type { WaitingLine } from './line-join.js';

export interface ErrorSink {
  /** A limiting or delaying line. */
  onLimit(line: WaitingLine, parsed: LimitLine): void;
  /** No page for a node of this zone; `module` as the line names it, null for another pool. */
  onNoMemory(zone: string, module: 'limit_req' | 'limit_conn', secondMs: number): void;
  /** nginx read its configuration anew, started, or started a worker. */
  onMark(
    mark: 'reload' | 'start' | 'worker' | 'reopen' | 'exit',
    pid: number,
    secondMs: number,
  ): void;
}

/** What a line was, for counting. */
export type ErrorLineKind = 'limit' | 'memory' | 'mark' | 'other' | 'duplicate' | 'malformed';

export interface ReadErrorLine {
  readonly kind: ErrorLineKind;
  /** Level for `other`, else the kind of event; for `malformed`, what was expected. */
  readonly reason: string;
}

export interface ErrorFeedSnapshot {
  readonly rank: number;
  readonly secondMs: number | null;
  readonly copies: readonly (readonly [string, readonly (readonly [number, number])[]])[];
}

export class ErrorFeed {
  readonly #sink: ErrorSink;
  readonly #limitReqZones: ReadonlySet<string>;
  #rank = 0;
  #secondMs = NaN;
  /** Copies of each line of the current second, by line, per file. */
  #copies = new Map<string, Map<number, number>>();
  readonly #fileCount: number;

  /**
   * @param limitReqZones zones that the configuration knows as limit_req's: lines of other versions
   *   name them by other words
   * @param fileCount how many error logs are read side by side
   */
  constructor(sink: ErrorSink, limitReqZones: ReadonlySet<string>, fileCount: number) {
    this.#sink = sink;
    this.#limitReqZones = limitReqZones;
    this.#fileCount = fileCount;
  }

  /** Lines to come rank behind this one. */
  startAfter(rank: number): void {
    this.#rank = Math.max(this.#rank, rank + 1);
  }

  /** Ranks and copies so far, as plain JSON. */
  snapshot(): ErrorFeedSnapshot {
    return {
      rank: this.#rank,
      secondMs: Number.isNaN(this.#secondMs) ? null : this.#secondMs,
      copies: [...this.#copies].map(([line, byFile]) => [line, [...byFile]]),
    };
  }

  restore(snapshot: ErrorFeedSnapshot): void {
    this.#rank = snapshot.rank;
    this.#secondMs = snapshot.secondMs ?? NaN;
    this.#copies = new Map(snapshot.copies.map(([line, byFile]) => [line, new Map(byFile)]));
  }

  /** Parses a line; its time with `clock`. The time is NaN where the line has none. */
  parse(line: string, clock: LogClock): { parsed: ErrorLine; secondMs: number } {
    const parsed = parseErrorLine(line);
    const hasTime = parsed.kind !== 'malformed' && parsed.timeText !== '';
    return { parsed, secondMs: hasTime ? clock.toEpochMs(parsed.timeText) : NaN };
  }

  /** Hands a parsed line on. @param file tells the error logs apart, for copies of one line */
  take(line: string, parsed: ErrorLine, secondMs: number, file: number): ReadErrorLine {
    if (parsed.kind === 'malformed') return { kind: 'malformed', reason: parsed.expected };
    if (this.#fileCount > 1 && this.#isCopy(line, secondMs, file)) {
      return { kind: 'duplicate', reason: parsed.kind };
    }
    switch (parsed.kind) {
      case 'limiting_requests':
      case 'delaying_request':
      case 'limiting_connections':
        this.#sink.onLimit(this.#waiting(parsed, secondMs), parsed);
        return { kind: 'limit', reason: parsed.kind };
      case 'node_allocation_failed':
        if (parsed.zone !== null) this.#sink.onNoMemory(parsed.zone, 'limit_req', secondMs);
        return { kind: 'memory', reason: parsed.kind };
      case 'slab_no_memory':
        this.#noMemory(parsed.pool, secondMs);
        return { kind: 'memory', reason: parsed.pool.what ?? parsed.kind };
      case 'process_mark':
        this.#mark(parsed, secondMs);
        return { kind: 'mark', reason: parsed.mark };
      case 'other':
        return { kind: 'other', reason: parsed.level };
      default:
        return { kind: 'other', reason: parsed.kind };
    }
  }

  #noMemory(pool: { what: string | null; zone: string | null }, secondMs: number): void {
    if (pool.zone === null) return;
    if (pool.what === 'limit_conn_zone' || pool.what === 'limit_conn zone') {
      this.#sink.onNoMemory(pool.zone, 'limit_conn', secondMs);
    } else if (this.#limitReqZones.has(pool.zone)) {
      this.#sink.onNoMemory(pool.zone, 'limit_req', secondMs);
    }
  }

  #mark(
    parsed: { mark: string; role: string | null; childPid: number | null; pid: number },
    secondMs: number,
  ): void {
    const { pid } = parsed;
    if (parsed.mark === 'reconfiguring') this.#sink.onMark('reload', pid, secondMs);
    else if (parsed.mark === 'start_worker_processes') this.#sink.onMark('start', pid, secondMs);
    else if (parsed.mark === 'reopening_logs') this.#sink.onMark('reopen', pid, secondMs);
    else if (parsed.mark === 'exit') this.#sink.onMark('exit', pid, secondMs);
    else if (parsed.mark === 'start_process' && parsed.role === 'worker process') {
      this.#sink.onMark('worker', parsed.childPid ?? -1, secondMs);
    }
  }

  #waiting(parsed: LimitLine, secondMs: number): WaitingLine {
    const kind =
      parsed.kind === 'limiting_requests'
        ? 'rejected'
        : parsed.kind === 'delaying_request'
          ? 'delayed'
          : 'connections';
    return {
      kind,
      isDryRun: parsed.dryRun,
      rank: this.#rank++,
      secondMs,
      pid: parsed.pid,
      connection: parsed.connection ?? -1,
      zone: parsed.zone,
      excessMilliReq: parsed.excessMilliReq ?? NaN,
      client: parsed.client ?? '',
      server: parsed.server ?? '',
      request: parsed.truncated ? '' : (parsed.request?.raw ?? ''),
      host: parsed.host ?? '',
      isUsed: false,
    };
  }

  /** Whether another file gave this copy of the line already. */
  #isCopy(line: string, secondMs: number, file: number): boolean {
    if (secondMs !== this.#secondMs) {
      this.#secondMs = secondMs;
      this.#copies.clear();
    }
    let byFile = this.#copies.get(line);
    if (byFile === undefined) this.#copies.set(line, (byFile = new Map<number, number>()));
    const own = (byFile.get(file) ?? 0) + 1;
    byFile.set(file, own);
    for (const [other, count] of byFile) if (other !== file && count >= own) return true;
    return false;
  }
}
