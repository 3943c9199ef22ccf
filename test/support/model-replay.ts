/**
 * Drives the limiter model of src/limit-req with the order and the times that nginx really had.
 */
import { LimitReqModel, type ModelLimit, OUTCOME, STATUS } from '../../src/limit-req/limits.js';
import { ZoneMemory, type ZoneMemoryOptions } from '../../src/limit-req/zone-memory.js';
import type { LookupCode, TruthRequest, TruthZone } from './debug-truth.js';

const CODES: ReadonlyMap<number, LookupCode> = new Map([
  [OUTCOME.ok, 'OK'],
  [OUTCOME.again, 'AGAIN'],
  [OUTCOME.busy, 'BUSY'],
  [OUTCOME.error, 'ERROR'],
]);

/** What the truth says of a request, as far as the model can say it as well. */
export interface Decision {
  readonly zones: readonly Omit<TruthZone, 'seq'>[];
  readonly delayMs: number;
}

/** The limits of one location, over zones of their own. */
export class ModelReplay {
  readonly #limits: readonly ModelLimit[];
  readonly #model: LimitReqModel;
  readonly #keyIds = new Map<string, number>();

  /** @param limits one zone each, in the order of the configuration */
  constructor(limits: readonly (ZoneMemoryOptions & Omit<ModelLimit, 'zone'>)[]) {
    this.#limits = limits.map((limit, zone) => ({ ...limit, zone }));
    this.#model = new LimitReqModel(limits.map((limit) => new ZoneMemory(limit)));
  }

  /** @param keys by limit; empty where the limit does not apply */
  decide(keys: readonly string[], nowMs: number): Decision {
    const ids = keys.map((key) => (key === '' ? -1 : this.#keyId(key)));
    const lengths = keys.map((key) => key.length);
    const model = this.#model;
    const status = model.decide(this.#limits, ids, lengths, nowMs);
    const zones = this.#limits.flatMap((_limit, index) => {
      const rc = CODES.get(model.outcomes[index]!);
      if (rc === undefined) return []; // skipped or not reached: nginx's debug log is silent
      const zone = model.zones[index]!;
      const hasTried = model.created[index] === 1;
      return {
        index,
        rc,
        excessMilliReq: model.excessMilliReq[index]!,
        isNewNode: hasTried && rc !== 'ERROR',
        failedAllocations: hasTried ? zone.allocFailures : 0,
        freedNodes: hasTried ? zone.evictedCount : 0,
      };
    });
    return { zones, delayMs: status === STATUS.delayed ? model.delayMs : 0 };
  }

  #keyId(key: string): number {
    let id = this.#keyIds.get(key);
    if (id === undefined) {
      id = this.#keyIds.size;
      this.#keyIds.set(key, id);
    }
    return id;
  }
}

/** The same of what the debug log told. */
export function decisionOf(request: TruthRequest): Decision {
  const zones = request.zones.map(({ index, rc, ...zone }) => ({
    index,
    rc,
    excessMilliReq: zone.excessMilliReq,
    isNewNode: zone.isNewNode,
    failedAllocations: zone.failedAllocations,
    freedNodes: zone.freedNodes,
  }));
  return { zones, delayMs: request.delayMs };
}
