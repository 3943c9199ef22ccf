/**
 * Who said 429 or 503: the limiter, limit_conn, the upstream, or nginx itself.
 *
 * Follows the order of nginx's phases (limit_req, its delay, limit_conn, then the content handler)
 * and what each leaves in $limit_req_status, $limit_conn_status and $upstream_status. A refused
 * request may end with any status: error_page can turn it into 200, limit_req_status into 444.
 */

/** The words of the output and of the `source` label, by code; 0 is "nothing to attribute". */
export const SOURCE_WORDS = [
  null,
  'limit_req',
  'limit_req_zone_exhausted',
  'limit_conn',
  'limit_conn_zone_exhausted',
  'upstream',
  'nginx',
  'unknown',
] as const;

export const SOURCE = {
  none: 0,
  limitReq: 1,
  limitReqZoneExhausted: 2,
  limitConn: 3,
  limitConnZoneExhausted: 4,
  upstream: 5,
  nginx: 6,
  unknown: 7,
} as const;

export interface Answer {
  readonly httpStatus: number;
  /** nginx refused the request by limit_req (not under dry run), as logged or as its line says. */
  readonly isLimitReqRejected: boolean;
  /** $limit_req_status is logged, or the error log would tell. */
  readonly isLimitReqKnown: boolean;
  readonly isZoneExhausted: boolean;
  readonly isLimitConnRejected: boolean;
  readonly isLimitConnKnown: boolean;
  readonly isConnZoneExhausted: boolean;
  /** Whether the location has limits of either kind at all. */
  readonly mayBeLimitReq: boolean;
  readonly mayBeLimitConn: boolean;
  /** Last $upstream_status; 0 when no upstream answered, -1 when it is not logged. */
  readonly upstreamStatus: number;
}

/** SOURCE code of an answer; 0 for one that is neither refused nor 429/503. */
export function attribute(answer: Answer): number {
  if (answer.isLimitReqRejected) {
    return answer.isZoneExhausted ? SOURCE.limitReqZoneExhausted : SOURCE.limitReq;
  }
  if (answer.isLimitConnRejected) {
    return answer.isConnZoneExhausted ? SOURCE.limitConnZoneExhausted : SOURCE.limitConn;
  }
  if (answer.httpStatus !== 429 && answer.httpStatus !== 503) return SOURCE.none;
  if (answer.upstreamStatus === answer.httpStatus) return SOURCE.upstream;
  const isReqOpen = answer.mayBeLimitReq && !answer.isLimitReqKnown;
  const isConnOpen = answer.mayBeLimitConn && !answer.isLimitConnKnown;
  if (answer.upstreamStatus < 0 || isReqOpen || isConnOpen) return SOURCE.unknown;
  return SOURCE.nginx;
}
