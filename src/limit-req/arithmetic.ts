/**
 * The sums of nginx's limit_req, on one key's numbers.
 *
 * They follow ngx_http_limit_req_lookup(), ngx_http_limit_req_account() and
 * ngx_http_limit_req_expire(). Units are nginx's: one request is 1000 milliReq, rates are
 * thousandths of a request per second, times are milliseconds of one clock. Every division
 * truncates, as in C; rounding would drift from the excess that the error log prints.
 *
 * Doubles stand for C's 64-bit integers. They are exact below 2^53, and a product beyond that
 * means a key idle for so long that its excess is zero in either arithmetic. Bit operations are
 * avoided on purpose: they would cut at 2^31, which 1000r/s reaches in 36 minutes.
 *
 * Not here: what is stored, and when (zone-memory.ts, limits.ts).
 */
export const ONE_REQUEST_MILLI_REQ = 1000;

/** A step back by more than this is taken for a clock that was set, not for two workers' clocks. */
const CLOCK_SET_MS = 60_000;

/** A node younger than this is never freed but by force. */
export const IDLE_MS = 60_000;

/** Milliseconds between a node's last charge and now, as lookup and account count them. */
export function elapsedMs(lastMs: number, nowMs: number): number {
  const ms = nowMs - lastMs;
  if (ms < -CLOCK_SET_MS) return 1;
  return ms < 0 ? 0 : ms;
}

/**
 * What is left of a stored excess now, before any charge. Negative where the key has been idle
 * for longer than its debt lasted.
 */
export function decayedExcess(
  storedMilliReq: number,
  lastMs: number,
  rateMilliRps: number,
  nowMs: number,
): number {
  return storedMilliReq - Math.trunc((rateMilliRps * elapsedMs(lastMs, nowMs)) / 1000);
}

/** The excess of a request now: what is left, and one request more; never below zero. */
export function excessAfter(
  storedMilliReq: number,
  lastMs: number,
  rateMilliRps: number,
  nowMs: number,
): number {
  const excess = decayedExcess(storedMilliReq, lastMs, rateMilliRps, nowMs) + ONE_REQUEST_MILLI_REQ;
  return excess < 0 ? 0 : excess;
}

/** The time to store with a charge: a clock that stands still or steps back a little moves nothing. */
export function lastAfter(lastMs: number, nowMs: number): number {
  return elapsedMs(lastMs, nowMs) === 0 ? lastMs : nowMs;
}

/**
 * How long a request with this excess waits.
 *
 * @param delayMilliReq the threshold delay=, Infinity for nodelay
 */
export function delayMs(
  excessMilliReq: number,
  delayMilliReq: number,
  rateMilliRps: number,
): number {
  if (excessMilliReq <= delayMilliReq) return 0;
  return Math.trunc(((excessMilliReq - delayMilliReq) * 1000) / rateMilliRps);
}

/**
 * Whether the oldest node may be freed without force: idle for a minute, and its debt gone.
 * Here, unlike in a lookup, a clock that runs backwards counts by its distance.
 */
export function isIdle(
  storedMilliReq: number,
  lastMs: number,
  rateMilliRps: number,
  nowMs: number,
): boolean {
  const ms = Math.abs(nowMs - lastMs);
  return ms >= IDLE_MS && storedMilliReq - Math.trunc((rateMilliRps * ms) / 1000) <= 0;
}
