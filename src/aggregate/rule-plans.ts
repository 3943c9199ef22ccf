/**
 * What the aggregates need of each rule set, put into numbers once.
 *
 * Not here: which rule set a request is under (src/replay/rule-finder.ts).
 */
import type { LimitRow } from '../replay/limit-table.js';
import type { ReplaySession } from '../replay/session.js';
import { Names } from './names.js';

export interface RulePlan {
  readonly server: string;
  readonly location: string;
  readonly place: number;
  readonly limits: readonly LimitRow[];
  /** By position: the number of the limit's names, and that of its zone's name. */
  readonly limitNumbers: Int32Array;
  readonly zoneNumbers: Int32Array;
  /** By position: what findings call the limit. */
  readonly subjects: readonly string[];
  /** By position among the limit_conn zones. */
  readonly connNumbers: Int32Array;
}

export class RulePlans {
  /** kind, zone, server, location. */
  readonly limits = new Names();
  /** server, location. */
  readonly places = new Names();
  /** Names of limit_req zones; the empty one stands for requests whose zone is not known. */
  readonly zones = new Names();
  readonly list: readonly RulePlan[];
  /** The place of requests whose rule set is not known. */
  readonly nowhere: number;
  readonly noZone: number;
  readonly #byZoneAndServer = new Map<string, LimitRow | null>();
  /** The largest burst of any limit with a zone, by zone name. */
  readonly #largestBurst = new Map<string, number>();

  constructor(session: ReplaySession) {
    this.list = session.engine.rules.map((rule, index): RulePlan => {
      const { serverName: server, location } = session.generations.ruleSets[index]!;
      const number = (kind: string, zone: string): number =>
        this.limits.of(kind, zone, server, location);
      for (const limit of rule.limits) this.#note(limit, server);
      return {
        server,
        location,
        place: this.places.of(server, location),
        limits: rule.limits,
        limitNumbers: Int32Array.from(rule.limits, ({ zone }) => number('limit_req', zone.name)),
        zoneNumbers: Int32Array.from(rule.limits, ({ zone }) => this.zones.of(zone.name)),
        subjects: rule.limits.map(({ zone }) => subjectOf(zone.name, server, location)),
        connNumbers: Int32Array.from(rule.connZones, (zone) => number('limit_conn', zone)),
      };
    });
    this.nowhere = this.places.of('', '');
    this.noZone = this.zones.of('');
  }

  /** What all limits with this zone in this server have in common; null where they differ. */
  onlyLimit(zone: string, server: string): LimitRow | null {
    return this.#byZoneAndServer.get(JSON.stringify([zone, server])) ?? null;
  }

  /** A key's excess in a zone can come from any of the zone's limits. */
  largestBurstMilliReq(zone: string): number {
    return this.#largestBurst.get(zone) ?? 0;
  }

  #note(limit: LimitRow, server: string): void {
    const { name } = limit.zone;
    const key = JSON.stringify([name, server]);
    const known = this.#byZoneAndServer.get(key);
    if (known === undefined) this.#byZoneAndServer.set(key, limit);
    else if (known !== null && !isSame(known, limit)) this.#byZoneAndServer.set(key, null);
    const largest = Math.max(this.largestBurstMilliReq(name), limit.burstMilliReq);
    this.#largestBurst.set(name, largest);
  }
}

/** A limit in the words of a finding. */
export function subjectOf(zone: string, server: string, location: string): string {
  return `${zone} ${server} ${location}`.trimEnd();
}

function isSame(a: LimitRow, b: LimitRow): boolean {
  return (
    a.burstMilliReq === b.burstMilliReq &&
    a.delayMilliReq === b.delayMilliReq &&
    a.rateMilliRps === b.rateMilliRps
  );
}
