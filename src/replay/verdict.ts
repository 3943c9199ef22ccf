/**
 * The model's judgement of one request, put together limit by limit: what it would have been told,
 * and everything it might have been told within the bounds.
 *
 * Follows ngx_http_limit_req_handler() and ngx_http_limit_req_account(): the first limit over its
 * burst rejects, else the longest delay of all holds. Units: thousandths of a request.
 */
import { delayMs } from '../limit-req/arithmetic.js';
import type { LimitRow } from './limit-table.js';
import { STATUS, withDryRun } from './status.js';

export class Verdict {
  wasAsked = false;
  /** Position of the limit that rejects, -1 while none does. */
  rejectedAt = -1;
  #delayMs = 0;
  #canContinue = true;
  #canReject = false;
  #canPass = true;
  #canDelay = false;

  reset(): void {
    this.wasAsked = false;
    this.rejectedAt = -1;
    this.#delayMs = 0;
    this.#canContinue = true;
    this.#canReject = false;
    this.#canPass = true;
    this.#canDelay = false;
  }

  /** Adds one limit's excess with its bounds. @returns whether that excess alone means a delay */
  add(position: number, excess: number, low: number, high: number, limit: LimitRow): boolean {
    const { burstMilliReq: burst, delayMilliReq: delay, rateMilliRps: rate } = limit;
    const waitMs = delayMs(excess, delay, rate);
    if (excess > burst && this.rejectedAt < 0) this.rejectedAt = position;
    if (waitMs > this.#delayMs) this.#delayMs = waitMs;
    if (this.#canContinue) this.#addBounds(Math.ceil(low), Math.floor(high), limit);
    return waitMs > 0;
  }

  /**
   * The zone had no page for the node.
   *
   * @param isUnsure it may have had one
   */
  exhaust(position: number, isUnsure: boolean): void {
    if (this.rejectedAt < 0) this.rejectedAt = position;
    this.#canReject = true;
    if (!isUnsure) this.#canContinue = false;
  }

  /** The zone may have had no page for the node. */
  mayExhaust(): void {
    if (this.#canContinue) this.#canReject = true;
  }

  /** These limits would have come next, had the last one not ended the request: they may delay. */
  leaveOpen(limits: readonly LimitRow[]): void {
    const isDelaying = ({ delayMilliReq, burstMilliReq }: LimitRow): boolean =>
      delayMilliReq < burstMilliReq;
    if (this.#canContinue && limits.some(isDelaying)) this.#canDelay = true;
  }

  status(isDryRun: boolean): number {
    if (this.rejectedAt >= 0) return withDryRun(STATUS.rejected, isDryRun);
    return this.#delayMs > 0 ? withDryRun(STATUS.delayed, isDryRun) : STATUS.passed;
  }

  /** Bit set over STATUS codes. */
  possible(isDryRun: boolean): number {
    let mask = this.#canReject ? 1 << withDryRun(STATUS.rejected, isDryRun) : 0;
    if (!this.#canContinue) return mask;
    if (this.#canPass) mask |= 1 << STATUS.passed;
    if (this.#canDelay) mask |= 1 << withDryRun(STATUS.delayed, isDryRun);
    return mask;
  }

  #addBounds(low: number, high: number, limit: LimitRow): void {
    const { burstMilliReq: burst, delayMilliReq: delay, rateMilliRps: rate } = limit;
    if (high > burst) this.#canReject = true;
    if (low > burst) {
      this.#canContinue = false;
      return;
    }
    if (delayMs(Math.min(high, burst), delay, rate) > 0) this.#canDelay = true;
    if (delayMs(low, delay, rate) > 0) this.#canPass = false;
  }
}
