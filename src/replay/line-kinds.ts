/**
 * What a line's facts say of the way its request has to go: parked or as an event, with its line or
 * without, before the limits or behind them.
 *
 * Units: milliseconds. Not here: that way itself (access-feed.ts).
 */
import { WIDE_MS } from './event-flags.js';
import type { RuleRow } from './limit-table.js';
import { SLACK, type LineFacts } from './line-facts.js';
import { isDelayed, isRejected, STATUS } from './status.js';

/** nginx answers these on its own, before any location's limit is asked. */
const EARLY_STATUSES = new Set([400, 408, 413, 414, 421, 431, 494, 495, 496, 497, 501, 505]);

/** Whether something took time behind the limits: the body, a long answer, or an auth_request. */
export function isAfterLimits(facts: LineFacts, rule: RuleRow | undefined): boolean {
  return facts.slack === SLACK.after || rule?.asksAuth === true;
}

/** Let pass, with nothing left open: such a request may be parked. */
export function isPlainPass(facts: LineFacts): boolean {
  return facts.limitReqStatus === STATUS.passed && isPlain(facts, 0);
}

/** Whether a request's decision is known to the millisecond, and nobody will ask for its details. */
export function isPlain(facts: LineFacts, spareMs: number): boolean {
  const { requestMs } = facts;
  if (facts.rules < 0 || requestMs < 0 || isRefusal(facts)) return false;
  return requestMs - Math.max(0, facts.upstreamMs) <= spareMs + WIDE_MS;
}

/** Whether all that a parked request is known by fits into 32 bits. */
export function isSmall(facts: LineFacts): boolean {
  return (
    (facts.connection | 0) === facts.connection &&
    (facts.connectionRequests | 0) === facts.connectionRequests &&
    (facts.pid | 0) === facts.pid &&
    (facts.requestMs | 0) === facts.requestMs &&
    (facts.httpStatus | 0) === facts.httpStatus &&
    (facts.upstreamStatus | 0) === facts.upstreamStatus
  );
}

/** nginx's own answer before its limits: no decision is logged, and no upstream was asked. */
export function isAnsweredEarly(facts: LineFacts, logged: number): boolean {
  if (facts.httpStatus < 400 || facts.upstreamStatus > 0) return false;
  if (!EARLY_STATUSES.has(facts.httpStatus)) return false;
  return logged === STATUS.none || logged === STATUS.unknown;
}

/** Whether a feed needs the line itself: to find its error-log line, or to show the request. */
export function isLineNeeded(
  facts: LineFacts,
  options: { readonly details: 'all' | 'refused'; readonly hasErrorLog: boolean },
): boolean {
  if (options.details === 'all' || isRefusal(facts)) return true;
  if (!options.hasErrorLog) return false;
  return facts.limitReqStatus === STATUS.unknown || isDelayed(facts.limitReqStatus);
}

/** Refused, or answered as a refusal is: worth showing as an example. */
export function isRefusal(facts: LineFacts): boolean {
  const { httpStatus } = facts;
  return (
    httpStatus === 429 ||
    httpStatus === 503 ||
    isRejected(facts.limitReqStatus) ||
    isRejected(facts.limitConnStatus)
  );
}
