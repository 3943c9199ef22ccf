/**
 * nginx's accounting once more, as plainly as it can be said, to check the debug-log reader with.
 *
 * Written after ngx_http_limit_req_lookup() and ngx_http_limit_req_account(), independently of
 * src/limit-req, in BigInt, whose division truncates as C's does. The caller gives true decision
 * times in true order.
 *
 * Not here: memory (keys are never forgotten) and the clock set back by more than a minute.
 */
import type { LookupCode } from './debug-truth.js';

export interface ReferenceLimit {
  readonly rateMilliRps: number;
  readonly burstMilliReq: number;
  /** 0 delays from the first excess on. */
  readonly delayMilliReq: number;
}

export interface ReferenceOutcome {
  readonly zones: readonly {
    readonly index: number;
    readonly rc: LookupCode;
    readonly excessMilliReq: number;
  }[];
  readonly delayMs: number;
}

interface Node {
  excess: bigint;
  last: bigint;
}

/** The zones of one location, each a limit_req line, with the states of all keys. */
export class ReferenceLimiter {
  readonly #limits: readonly ReferenceLimit[];
  readonly #nodes: readonly Map<string, Node>[];

  constructor(limits: readonly ReferenceLimit[]) {
    this.#limits = limits;
    this.#nodes = limits.map(() => new Map<string, Node>());
  }

  /** Decides one request; `keys` in order of the limits, empty where a limit does not apply. */
  decide(keys: readonly string[], nowMs: number): ReferenceOutcome {
    const now = BigInt(nowMs);
    const zones: { index: number; rc: LookupCode; excessMilliReq: number }[] = [];
    const charges: { limit: ReferenceLimit; node: Node; excess: bigint }[] = [];
    for (const [index, limit] of this.#limits.entries()) {
      const key = keys[index] ?? '';
      if (key === '') continue;
      const isLast = index === this.#limits.length - 1;
      const node = this.#nodes[index]!.get(key);
      const excess = node === undefined ? 0n : excessAt(node, limit, now);
      const isBusy = excess > BigInt(limit.burstMilliReq);
      const rc = isBusy ? 'BUSY' : isLast ? 'OK' : 'AGAIN';
      zones.push({ index, rc, excessMilliReq: Number(excess) });
      if (isBusy) return { zones, delayMs: 0 };
      charges.push({ limit, node: node ?? this.#create(index, key, isLast ? now : 0n), excess });
    }
    return { zones, delayMs: Math.max(0, ...charges.map((charge) => account(charge, now))) };
  }

  #create(index: number, key: string, last: bigint): Node {
    const node = { excess: 0n, last };
    this.#nodes[index]!.set(key, node);
    return node;
  }
}

function excessAt(node: Node, limit: ReferenceLimit, now: bigint): bigint {
  const elapsed = now > node.last ? now - node.last : 0n;
  const excess = node.excess - (BigInt(limit.rateMilliRps) * elapsed) / 1000n + 1000n;
  return excess > 0n ? excess : 0n;
}

/** Stores a charge and returns the delay that this limit alone asks for. */
function account(
  { limit, node, excess }: { limit: ReferenceLimit; node: Node; excess: bigint },
  now: bigint,
): number {
  node.excess = excess;
  if (now > node.last) node.last = now;
  const over = excess - BigInt(limit.delayMilliReq);
  return over > 0n ? Number((over * 1000n) / BigInt(limit.rateMilliRps)) : 0;
}
