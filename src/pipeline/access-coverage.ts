/**
 * Which times the access logs of an instance tell of: whether the request of an error-log line was,
 * or may still be, counted from its access log.
 *
 * A log tells of its own requests alone: those of the locations that write to its access_log.
 *
 * Units: epoch milliseconds. Not here: what becomes of the line (line-hold.ts).
 */
import type { SourceProgress } from '../store/write-ahead.js';

/** What one access log tells of, from its first line to its last. */
export interface CoveredTime {
  readonly fromMs: number;
  readonly toMs: number;
  /** The access_log path that it is; null when that is not known, then it may tell of all. */
  readonly target: string | null;
}

const SECOND_MS = 1000;

/**
 * @param secondMs start of the second that the line was written in
 * @param targets paths of the access logs that its request goes to; null when that is not known
 */
export function isCovered(
  times: readonly CoveredTime[],
  secondMs: number,
  targets: readonly string[] | null,
): boolean {
  return times.some(
    ({ fromMs, toMs, target }) =>
      secondMs + SECOND_MS > fromMs &&
      secondMs <= toMs &&
      (target === null || targets === null || targets.includes(target)),
  );
}

/** What the logs counted before tell of; a source of unknown kind is taken for an access log. */
export function storedCoverage(sources: readonly SourceProgress[]): CoveredTime[] {
  return sources
    .filter((source) => source.kind !== 'error')
    .map(({ firstMs, lastMs, target }) => {
      return { fromMs: firstMs, toMs: lastMs, target: target ?? null };
    });
}
