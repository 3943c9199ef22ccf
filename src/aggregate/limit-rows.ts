/**
 * The configuration in force, one row per zone and configuration: the rows of `limits`.
 *
 * Rates in thousandths of a request per second, bursts in requests, sizes in bytes. Capacity is that
 * for keys of up to 48 bytes, the smallest node that nginx makes.
 *
 * Not here: limit_conn zones, which have no rate.
 */
import type { ReplaySession } from '../replay/session.js';
import type { RowSink } from './rows.js';

const SHORT_KEY_BYTES = 16;

type Generation = ReplaySession['generations']['list'][number];

export class LimitRows {
  readonly #session: ReplaySession;
  /** Numbers of the configurations whose rows are out. */
  #emitted = new Set<number>();

  constructor(session: ReplaySession) {
    this.#session = session;
  }

  /**
   * Hands over the rows of each configuration that has come into force.
   *
   * @param ms now: the first configuration counts from here when nothing tells since when it is
   */
  emit(sink: RowSink, instance: string, ms: number): void {
    const { list } = this.#session.generations;
    if (this.#emitted.size === list.length) return;
    for (const generation of list) {
      if (this.#emitted.has(generation.index)) continue;
      const sinceMs = generation.sinceMs ?? (generation.index === 0 ? ms : null);
      if (sinceMs === null || sinceMs > ms) continue;
      this.#emitted.add(generation.index);
      this.#emitGeneration(sink, instance, generation, sinceMs);
    }
  }

  snapshot(): number[] {
    return [...this.#emitted];
  }

  restore(emitted: readonly number[]): void {
    this.#emitted = new Set(emitted);
  }

  #emitGeneration(sink: RowSink, instance: string, generation: Generation, sinceMs: number): void {
    const { conf } = generation;
    for (const zone of conf.reqZones.values()) {
      const replayed = this.#session.generations.zones.findLast(
        ({ name, sizeBytes }) => name === zone.name && sizeBytes === zone.sizeBytes,
      );
      const capacity = replayed?.memory.capacityNodes(SHORT_KEY_BYTES) ?? 0;
      const { name, keyExpression, sizeBytes, rateMilliRps } = zone;
      const rules = JSON.stringify(rulesOf(generation, name));
      const numbers = [sizeBytes, rateMilliRps, capacity];
      sink.row('limits', [instance, name, sinceMs, keyExpression, ...numbers, rules]);
    }
  }
}

/** Every limit with this zone, with where it stands. */
function rulesOf({ conf }: Generation, zone: string): object[] {
  return conf.ruleSets.flatMap((ruleSet) =>
    ruleSet.limits
      .filter((limit) => limit.zone === zone)
      .map((limit) => ({
        server: ruleSet.serverName,
        location: ruleSet.location,
        burst: limit.burstMilliReq / 1000,
        delay: limit.delayMilliReq === Infinity ? 'nodelay' : limit.delayMilliReq / 1000,
        status: ruleSet.limitReqStatus,
        dryRun: ruleSet.limitReqDryRun,
        where: `${limit.where.path}:${limit.where.line}`,
      })),
  );
}
