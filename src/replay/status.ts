/**
 * The values of $limit_req_status and $limit_conn_status as small integers, for typed arrays.
 *
 * nginx sets them in ngx_http_limit_req_handler() and ngx_http_limit_conn_handler(). `NONE` is the
 * empty variable (logged as `-`): no limit took a decision on the request. `UNKNOWN` is ours: the
 * log does not carry the variable.
 */
export const STATUS = {
  unknown: 0,
  none: 1,
  passed: 2,
  delayed: 3,
  rejected: 4,
  delayedDryRun: 5,
  rejectedDryRun: 6,
} as const;

/** nginx's words by code; `null` for a request without a decision, or one that was not logged. */
export const STATUS_WORDS: readonly (string | null)[] = [
  null,
  null,
  'PASSED',
  'DELAYED',
  'REJECTED',
  'DELAYED_DRY_RUN',
  'REJECTED_DRY_RUN',
];

/** Outcome of one limit of a request, by code; the words of the JSON output. */
export const OUTCOME = {
  notReached: 0,
  skipped: 1,
  passed: 2,
  delayed: 3,
  rejected: 4,
  exhausted: 5,
  /** The key cannot be derived from what is logged. */
  unknown: 6,
} as const;

export const OUTCOME_WORDS: readonly string[] = [
  'not_reached',
  'skipped',
  'passed',
  'delayed',
  'rejected',
  'exhausted',
  'unknown',
];

/** A request was charged to its zones: nginx accepted it, at once or after a delay. */
export function isAccepted(status: number): boolean {
  return status === STATUS.passed || status === STATUS.delayed || status === STATUS.delayedDryRun;
}

export function isRejected(status: number): boolean {
  return status === STATUS.rejected || status === STATUS.rejectedDryRun;
}

export function isDelayed(status: number): boolean {
  return status === STATUS.delayed || status === STATUS.delayedDryRun;
}

/** The same status under dry run (or back); PASSED is the same word in both. */
export function withDryRun(status: number, dryRun: boolean): number {
  if (isDelayed(status)) return dryRun ? STATUS.delayedDryRun : STATUS.delayed;
  if (isRejected(status)) return dryRun ? STATUS.rejectedDryRun : STATUS.rejected;
  return status;
}
