/**
 * The exact limiter: several limits on one request, decided as nginx does.
 *
 * Follows ngx_http_limit_req_handler(), ngx_http_limit_req_lookup(),
 * ngx_http_limit_req_account() and ngx_http_limit_req_unlock(). All limits are looked up in
 * order; only the last is charged at once, the earlier ones are pinned and charged afterwards,
 * from the last to the first, if nobody rejected the request. Dry run changes nothing here: it is
 * the same state, and only the caller names the status differently.
 *
 * Results stand in fields that the next call overwrites; nothing is allocated per call.
 *
 * Not here: keys, clocks, log lines; bounds instead of exact values (the replay's).
 */
import { delayMs, excessAfter, lastAfter } from './arithmetic.js';
import { MAX_REQ_KEY_BYTES } from './layout.js';
import type { ZoneMemory } from './zone-memory.js';

/** One limit_req line. */
export interface ModelLimit {
  /** Index into the model's zones. */
  readonly zone: number;
  readonly burstMilliReq: number;
  /** delay=, 0 by default, Infinity for nodelay. */
  readonly delayMilliReq: number;
}

/** What came of one limit of a request. `again` is nginx's word for: passed, to be charged later. */
export const OUTCOME = {
  notReached: 0,
  /** The key was empty. */
  skipped: 1,
  /** The key was longer than nginx limits: an [error] line, and otherwise skipped. */
  keyTooLong: 2,
  ok: 3,
  again: 4,
  busy: 5,
  /** No memory for a node. */
  error: 6,
} as const;

/** What came of the request. `none`: no limit applied, the status variable stays empty. */
export const STATUS = { none: 0, passed: 1, delayed: 2, rejected: 3 } as const;

export type Outcome = (typeof OUTCOME)[keyof typeof OUTCOME];
export type Status = (typeof STATUS)[keyof typeof STATUS];

const MOST_LIMITS_AT_FIRST = 8;
const NONE = -1;

export class LimitReqModel {
  readonly zones: readonly ZoneMemory[];

  /** By limit of the last request: one of OUTCOME. */
  outcomes = new Uint8Array(MOST_LIMITS_AT_FIRST);
  /** By limit: the excess that the lookup found; 0 where there was none. */
  excessMilliReq = new Float64Array(MOST_LIMITS_AT_FIRST);
  /** By limit: 1 where a node was made, or tried to be; the zone then says whom that cost. */
  created = new Uint8Array(MOST_LIMITS_AT_FIRST);
  status: Status = STATUS.none;
  /** The limit that rejected or delayed most, as an index into the list of limits; else -1. */
  decidedBy = NONE;
  /** The excess that nginx logs for it. */
  decidedExcessMilliReq = 0;
  delayMs = 0;

  #nodes = new Int32Array(MOST_LIMITS_AT_FIRST);

  constructor(zones: readonly ZoneMemory[]) {
    this.zones = zones;
  }

  /**
   * Decides one request and stores what nginx stores.
   *
   * @param keyIds by limit; -1 for an empty key
   * @param keyLengths by limit, in bytes
   */
  decide(
    limits: readonly ModelLimit[],
    keyIds: ArrayLike<number>,
    keyLengths: ArrayLike<number>,
    nowMs: number,
  ): Status {
    const count = limits.length;
    this.#reset(count);
    let last: Outcome = OUTCOME.notReached;
    let i = 0;
    for (; i < count; i++) {
      const outcome = this.#lookup(limits, i, keyIds[i]!, keyLengths[i]!, nowMs);
      this.outcomes[i] = outcome;
      if (outcome === OUTCOME.skipped || outcome === OUTCOME.keyTooLong) continue;
      last = outcome;
      if (outcome !== OUTCOME.again) break;
    }
    if (last === OUTCOME.notReached) return this.status;
    if (last === OUTCOME.busy || last === OUTCOME.error) {
      this.#unlock(limits, i);
      this.decidedBy = i;
      this.decidedExcessMilliReq = this.excessMilliReq[i]!;
      this.status = STATUS.rejected;
      return this.status;
    }
    // A list whose last key was empty ends on `again`, and starts its delay from nothing.
    if (last === OUTCOME.ok) this.#consider(limits, i, this.excessMilliReq[i]!);
    this.#account(limits, i, nowMs);
    this.status = this.delayMs > 0 ? STATUS.delayed : STATUS.passed;
    return this.status;
  }

  #lookup(
    limits: readonly ModelLimit[],
    i: number,
    keyId: number,
    keyLengthBytes: number,
    nowMs: number,
  ): Outcome {
    if (keyId < 0) return OUTCOME.skipped;
    if (keyLengthBytes > MAX_REQ_KEY_BYTES) return OUTCOME.keyTooLong;
    const limit = limits[i]!;
    const zone = this.zones[limit.zone]!;
    const isLast = i === limits.length - 1;
    let node = zone.find(keyId);
    if (node === NONE) {
      this.created[i] = 1;
      node = zone.create(keyId, keyLengthBytes, nowMs);
      if (node === NONE) return OUTCOME.error;
      if (isLast) return OUTCOME.ok;
      zone.lastMs[node] = 0;
    } else {
      zone.touch(node);
      const excess = this.#excess(zone, node, nowMs);
      this.excessMilliReq[i] = excess;
      if (excess > limit.burstMilliReq) return OUTCOME.busy;
      if (isLast) {
        this.#store(zone, node, excess, nowMs);
        return OUTCOME.ok;
      }
    }
    zone.pin(node);
    this.#nodes[i] = node;
    return OUTCOME.again;
  }

  /** Charges the pinned nodes before limit `end`, from the last to the first, whatever their burst. */
  #account(limits: readonly ModelLimit[], end: number, nowMs: number): void {
    for (let i = end - 1; i >= 0; i--) {
      const node = this.#nodes[i]!;
      if (node === NONE) continue;
      const zone = this.zones[limits[i]!.zone]!;
      const excess = this.#excess(zone, node, nowMs);
      this.#store(zone, node, excess, nowMs);
      zone.unpin(node);
      this.#consider(limits, i, excess);
    }
  }

  #unlock(limits: readonly ModelLimit[], end: number): void {
    for (let i = end - 1; i >= 0; i--) {
      const node = this.#nodes[i]!;
      if (node !== NONE) this.zones[limits[i]!.zone]!.unpin(node);
    }
  }

  /** Keeps the longest delay; of equal ones, the first considered. */
  #consider(limits: readonly ModelLimit[], i: number, excessMilliReq: number): void {
    const limit = limits[i]!;
    const rate = this.zones[limit.zone]!.rateMilliRps;
    const delay = delayMs(excessMilliReq, limit.delayMilliReq, rate);
    if (delay <= this.delayMs) return;
    this.delayMs = delay;
    this.decidedBy = i;
    this.decidedExcessMilliReq = excessMilliReq;
  }

  #excess(zone: ZoneMemory, node: number, nowMs: number): number {
    return excessAfter(zone.excessMilliReq[node]!, zone.lastMs[node]!, zone.rateMilliRps, nowMs);
  }

  #store(zone: ZoneMemory, node: number, excessMilliReq: number, nowMs: number): void {
    zone.excessMilliReq[node] = excessMilliReq;
    zone.lastMs[node] = lastAfter(zone.lastMs[node]!, nowMs);
  }

  #reset(count: number): void {
    if (count > this.outcomes.length) {
      this.outcomes = new Uint8Array(count);
      this.excessMilliReq = new Float64Array(count);
      this.created = new Uint8Array(count);
      this.#nodes = new Int32Array(count);
    }
    for (let i = 0; i < count; i++) {
      this.outcomes[i] = OUTCOME.notReached;
      this.excessMilliReq[i] = 0;
      this.created[i] = 0;
      this.#nodes[i] = NONE;
    }
    this.status = STATUS.none;
    this.decidedBy = NONE;
    this.decidedExcessMilliReq = 0;
    this.delayMs = 0;
  }
}
