/**
 * Up to which moment of log time the store can be judged.
 *
 * Requests are judged by when they happened, not by when their lines were read: else a second that
 * is not read yet would look like a lull, and last night's, read just now, like an emergency. So
 * windows end where the store is complete. In an idle log no line says how late it is; there, having
 * found nothing left to read says that all was read that happened well before.
 *
 * While a backlog is being read the end lies in the past. Firing then would page for what is over,
 * resolving would call off what may go on; so nothing is judged until the end is near again. That the
 * log lags, or that nothing comes at all, is judged by the wall clock, and is all that is said
 * meanwhile.
 *
 * Units: epoch milliseconds.
 */
export interface LogProgress {
  /** Log time up to which all that happened is stored; -Infinity before the first line. */
  readonly reachedMs: number;
  /** Wall clock when nothing was left to read, and all that was read was stored, last. */
  readonly caughtUpMs: number;
}

export interface LogEnd {
  /** A multiple of a bucket; NaN where nothing can be judged. */
  readonly toMs: number;
  readonly isBehind: boolean;
}

const BUCKET_MS = 10_000;
/** As SourceLagging has it: lateness and buffered logs are neither. */
const MOST_BEHIND_MS = 300_000;
/** Clocks of machines differ; a line from further ahead is wrong. */
const MOST_AHEAD_MS = 300_000;

/** @param settleMs how long after it happened a request is surely stored, on an idle machine */
export function logEnd(progress: LogProgress, settleMs: number, nowMs: number): LogEnd {
  const { reachedMs, caughtUpMs } = progress;
  const isSensible = reachedMs <= nowMs + MOST_AHEAD_MS;
  const endMs = Math.max(isSensible ? reachedMs : -Infinity, caughtUpMs - settleMs);
  if (!Number.isFinite(endMs)) return { toMs: NaN, isBehind: true };
  return {
    toMs: Math.floor(endMs / BUCKET_MS) * BUCKET_MS,
    isBehind: endMs < nowMs - settleMs - MOST_BEHIND_MS,
  };
}
