/**
 * A parked request that was let pass by its only limit, judged as it is: nearly all there are.
 *
 * The same judgement as that of an event (request-judge.ts), for the case that leaves nothing open;
 * follows ngx_http_limit_req_lookup(). Units: epoch milliseconds, thousandths of a request.
 *
 * Not here: which requests come here (engine.ts), the sums (key-sweep.ts).
 */
import type { KeySweep } from './key-sweep.js';
import type { LimitRow } from './limit-table.js';
import type { Parked } from './parked.js';

/** A request that was let pass by its only limit, as its log says, and as the replay does. */
export interface PlainDecision {
  ms: number;
  rules: number;
  httpStatus: number;
  connLogged: number;
  keyId: number;
  keyLength: number;
  /** That of the lookup, as EventPool.excessMilliReq. */
  excessMilliReq: number;
  /** Its bounds, as those of the pool. */
  lowMilliReq: number;
  highMilliReq: number;
}

export class PlainPass {
  readonly #parked: Parked;
  readonly #sweep: KeySweep;
  readonly #onPlain: (plain: PlainDecision) => void;
  readonly #plain: PlainDecision = {
    ms: 0,
    rules: 0,
    httpStatus: 0,
    connLogged: 0,
    keyId: 0,
    keyLength: 0,
    excessMilliReq: 0,
    lowMilliReq: 0,
    highMilliReq: 0,
  };

  constructor(parked: Parked, sweep: KeySweep, onPlain: (plain: PlainDecision) => void) {
    this.#parked = parked;
    this.#sweep = sweep;
    this.#onPlain = onPlain;
  }

  /** @returns false, with nothing changed, when it takes more than that */
  pass(handle: number, ms: number, limit: LimitRow): boolean {
    const parked = this.#parked;
    const { zone } = limit;
    const { memory } = zone;
    if (zone.openSlots.size > 0 || zone.earlyCharges.size > 0 || ms < zone.warmUntilMs)
      return false;
    const key = parked.keyOf(handle);
    let node = memory.find(key);
    if (zone.hasShadow(key)) return false;
    if (node < 0) {
      // With pages to spare and none evicted so far there is nothing to know of a new node.
      if (zone.counts.evictions > 0 || memory.pagesFree === 0) return false;
      node = zone.locate(key, parked.keyLengthOf(handle), ms, true);
    } else if (zone.counts.evictions > 0 && zone.isNearEviction(node, ms)) return false;
    const plain = this.#plain;
    if (!this.#sweep.passAlone(zone, node, ms, limit, plain)) return false;
    memory.touch(node);
    plain.ms = ms;
    plain.rules = parked.rulesOf(handle);
    plain.httpStatus = parked.httpStatusOf(handle);
    plain.connLogged = parked.limitConnStatusOf(handle);
    plain.keyId = key;
    plain.keyLength = parked.keyLengthOf(handle);
    this.#onPlain(plain);
    return true;
  }
}
