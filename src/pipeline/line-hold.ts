/**
 * What becomes of error-log lines that no request has taken, in an instance with access logs.
 *
 * - Its request was counted by an earlier import, from the access log alone: the line tells nothing
 *   new, for nothing that is stored is rewritten. It is counted here, so that it can be said.
 * - An access log read now tells of its time, and lacks its request: the line counts by itself.
 * - No access log tells of its time yet: it waits in the state for one that does, so that requests
 *   count once, whichever of the two logs is imported first.
 *
 * Not here: an instance of error logs alone, whose lines are requests (../replay/error-events.ts).
 */
import { isAlert, type WaitingLine } from '../replay/line-join.js';
import { isCovered, type CoveredTime } from './access-coverage.js';

/** Lines that wait; of more than that the oldest count by themselves. Some 30 MB of state. */
const MOST_HELD = 100_000;

export interface LineHoldOptions {
  /** What earlier imports have counted. */
  readonly stored: readonly CoveredTime[];
  /** What this import has read so far. */
  readonly fresh: () => readonly CoveredTime[];
  /** Paths of the access logs that the line's request goes to; null when that is not known. */
  readonly targetsOf: (line: WaitingLine) => readonly string[] | null;
  /** A line that counts by itself. */
  readonly onCount: (line: WaitingLine) => void;
}

export class LineHold {
  readonly #options: LineHoldOptions;
  #held: WaitingLine[] = [];
  /** Lines of requests that were counted before. */
  knownLines = 0;

  constructor(options: LineHoldOptions) {
    this.#options = options;
  }

  get held(): readonly WaitingLine[] {
    return this.#held;
  }

  /** Lines that go on waiting, no log of their time being read now. */
  keep(lines: readonly WaitingLine[]): void {
    for (const line of lines) this.#held.push(line);
  }

  /** A line that no request has taken, and none will in this import. */
  take(line: WaitingLine): void {
    const fate = this.#fateOf(line);
    if (fate === 'known') this.knownLines++;
    else if (fate === 'counts') this.#options.onCount(line);
    else this.#held.push(line);
  }

  /**
   * At the end, of the lines whose requests the next import may bring: those that count by
   * themselves if it does not, while the others are held.
   */
  sortPending(lines: readonly WaitingLine[]): WaitingLine[] {
    const owed: WaitingLine[] = [];
    for (const line of lines) {
      // The request that met it would have been logged at once.
      if (isAlert(line)) this.take(line);
      else if (this.#fateOf(line) === 'counts') owed.push({ ...line, isOwed: true });
      else this.#held.push(line);
    }
    return owed;
  }

  #fateOf(line: WaitingLine): 'known' | 'counts' | 'waits' {
    const { stored, fresh, targetsOf } = this.#options;
    if (line.isOwed === true) return 'counts';
    const targets = targetsOf(line);
    if (isCovered(stored, line.secondMs, targets)) return 'known';
    // A location that writes no access log has none to wait for.
    if (targets?.length === 0 || isCovered(fresh(), line.secondMs, targets)) return 'counts';
    return 'waits';
  }

  /** Before the counts are handed over: no more lines wait than the state may hold. */
  trim(): void {
    const { fresh, targetsOf } = this.#options;
    const isRead = (line: WaitingLine): boolean =>
      isCovered(fresh(), line.secondMs, targetsOf(line));
    // Lines given up before the log of their time was read: its requests have been counted.
    const waiting = this.#held.filter((line) => !isRead(line));
    this.knownLines += this.#held.length - waiting.length;
    this.#held = inOrder(waiting);
    const surplus = this.#held.splice(0, Math.max(0, this.#held.length - MOST_HELD));
    for (const line of surplus) this.#options.onCount(line);
  }
}

/** Lines of several imports as if read in one: by their times, and ranked anew. */
export function inOrder(lines: readonly WaitingLine[]): WaitingLine[] {
  return [...lines]
    .sort((a, b) => a.secondMs - b.secondMs || a.rank - b.rank)
    .map((line, rank) => ({ ...line, rank, excessMilliReq: line.excessMilliReq ?? NaN }));
}
