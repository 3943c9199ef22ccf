/**
 * The sources of one log that are known and not open: those to be found again, and those that are
 * finished and kept so that nothing of them is read twice.
 */
import type { KnownLog, LogProgress } from './follow-progress.js';

/** A rotation or two more than can lie between a finished source and the file it is met in. */
const FINISHED_KEPT = 8;

export class KnownLogs {
  #wanted: readonly KnownLog[];
  #finished: readonly KnownLog[];

  constructor(known: readonly KnownLog[]) {
    this.#wanted = known.filter((log) => log.complete !== true);
    this.#finished = known.filter((log) => log.complete === true);
  }

  /** To be found again. */
  get wanted(): readonly KnownLog[] {
    return this.#wanted;
  }

  get all(): readonly KnownLog[] {
    return [...this.#finished, ...this.#wanted];
  }

  has(sourceId: string): boolean {
    return this.all.some((log) => log.sourceId === sourceId);
  }

  want(log: KnownLog): void {
    this.#wanted = [...this.#wanted, log];
  }

  /** It is open now, and its reader knows more. */
  open(sourceId: string): void {
    this.#wanted = this.#wanted.filter((log) => log.sourceId !== sourceId);
  }

  finish(log: KnownLog): void {
    this.open(log.sourceId);
    const others = this.#finished.filter((other) => other.sourceId !== log.sourceId);
    this.#finished = [...others, { ...log, complete: true }].slice(-FINISHED_KEPT);
  }

  progress(): LogProgress[] {
    return this.all.map((log) => ({
      sourceId: log.sourceId,
      headHash: log.headHash,
      headLength: log.headLength,
      tailHash: log.tailHash,
      offset: log.offset,
      name: log.name,
      lastMs: log.lastMs ?? 0,
      complete: log.complete ?? false,
      device: log.device ?? 0,
      inode: log.inode ?? 0,
    }));
  }
}

/** The newest time that any that lines came from was written to; undefined when none is known. */
export function newestMs(known: readonly KnownLog[]): number | undefined {
  const times = known.map((log) => (log.offset > 0 ? (log.lastMs ?? 0) : 0)).filter((ms) => ms > 0);
  return times.length === 0 ? undefined : Math.max(...times);
}
