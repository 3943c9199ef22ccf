/**
 * What one limit did with a request, as the `outcome` column says it, and how that follows from the
 * request's own outcome.
 *
 * The logged outcome beats the model. After ngx_http_limit_req_handler(): a rejected request was let
 * through by the limits before the one that rejected it and never came to those behind; one that was
 * delayed owes its wait to at least one of them.
 */
import { FLAG, NO_KEY } from '../replay/event-flags.js';
import type { EventPool } from '../replay/event-pool.js';
import type { LimitRow } from '../replay/limit-table.js';
import { isDelayed, isRejected, OUTCOME, STATUS } from '../replay/status.js';

export const OUTCOME_WORDS = [
  'passed',
  'delayed',
  'rejected',
  'delayed_dry_run',
  'rejected_dry_run',
  'exhausted',
  'exhausted_dry_run',
  'skipped',
  'not_reached',
] as const;

export type OutcomeWord = (typeof OUTCOME_WORDS)[number];

/** Position of each word in OUTCOME_WORDS. */
export const WORD: Readonly<Record<OutcomeWord, number>> = {
  passed: 0,
  delayed: 1,
  rejected: 2,
  delayed_dry_run: 3,
  rejected_dry_run: 4,
  exhausted: 5,
  exhausted_dry_run: 6,
  skipped: 7,
  not_reached: 8,
};

/** What happened to a request, by the log where it tells and by the model where it does not. */
export function effectiveStatus(pool: EventPool, event: number): number {
  const logged = pool.logged[event]!;
  return logged === STATUS.unknown ? pool.verdict[event]! : logged;
}

/**
 * The position of the limit that rejected or delayed a request with this outcome; -1 where none did.
 * What the log leaves open goes to the limit that the model finds furthest over its threshold.
 */
export function decidingLimit(
  pool: EventPool,
  event: number,
  status: number,
  limits: readonly LimitRow[],
): number {
  const isReject = isRejected(status);
  if (!isReject && !isDelayed(status)) return -1;
  const known = pool.anchorSlot[event]!;
  if (known >= 0 && known < limits.length) return known;
  if (limits.length === 1) return 0;
  let best = -1;
  let furthest = -Infinity;
  for (let i = 0; i < limits.length; i++) {
    const slot = event + i;
    const outcome = pool.outcome[slot]!;
    if (isReject && (outcome === OUTCOME.rejected || outcome === OUTCOME.exhausted)) return i;
    if (pool.keyId[slot] === NO_KEY || pool.slotState[slot] === 0) continue;
    const { burstMilliReq, delayMilliReq } = limits[i]!;
    const over = pool.priorMilliReq[slot]! - (isReject ? burstMilliReq : delayMilliReq);
    if (over > furthest) {
      furthest = over;
      best = i;
    }
  }
  return best >= 0 ? best : 0;
}

/** The WORD of the limit at `position`, given the request's outcome and the limit that caused it. */
export function outcomeOf(
  pool: EventPool,
  event: number,
  position: number,
  status: number,
  deciding: number,
): number {
  const slot = event + position;
  if (pool.keyId[slot] === NO_KEY && position !== deciding) {
    return isRejected(status) && position > deciding ? WORD.not_reached : WORD.skipped;
  }
  if (status === STATUS.passed) return WORD.passed;
  if (isDelayed(status)) {
    if (position !== deciding && pool.outcome[slot] !== OUTCOME.delayed) return WORD.passed;
    return status === STATUS.delayed ? WORD.delayed : WORD.delayed_dry_run;
  }
  if (position < deciding) return WORD.passed;
  if (position > deciding) return WORD.not_reached;
  const isExhausted =
    pool.outcome[slot] === OUTCOME.exhausted || (pool.flags[event]! & FLAG.exhausted) !== 0;
  if (status === STATUS.rejected) return isExhausted ? WORD.exhausted : WORD.rejected;
  return isExhausted ? WORD.exhausted_dry_run : WORD.rejected_dry_run;
}
