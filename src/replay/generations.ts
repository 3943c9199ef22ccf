/**
 * The configurations of a log's time, one after another, and what a reload does to each zone.
 *
 * Follows ngx_init_cycle() and ngx_http_limit_req_init_zone(): a zone of the same name and size is
 * taken over with its state, whatever its rate; another size starts empty; another key under the
 * same size refuses the whole new configuration, and the old workers go on.
 *
 * Which configuration decided a request is told by its worker ($pid, and the "start worker process"
 * lines after a reload mark), else by time.
 */
import type { NginxConf, RuleSet } from '../../parsers/conf/model.js';
import { KeyTable } from '../keys/key-table.js';
import type { LimitRow, RuleRow } from './limit-table.js';
import { ZoneReplay } from './zone-replay.js';

export interface GenerationInput {
  readonly conf: NginxConf;
  /** From when it is in force; null when only reload marks tell. */
  readonly sinceMs: number | null;
  /**
   * Of a configuration that was read while nginx ran: reloads before this moment did not read it,
   * the first one from then on did, and `sinceMs` is the latest that it came into force.
   */
  readonly notBeforeMs?: number;
}

export interface Generation {
  readonly index: number;
  readonly conf: NginxConf;
  sinceMs: number | null;
  readonly notBeforeMs: number | undefined;
  /** Number of its first rule set in the common numbering. */
  readonly ruleBase: number;
}

export interface GenerationsSnapshot {
  readonly sinceMs: readonly (number | null)[];
  readonly byPid: readonly (readonly [number, number])[];
  readonly reloads: number;
}

export class Generations {
  readonly list: Generation[] = [];
  readonly zones: ZoneReplay[] = [];
  /** The key of each row of `zones`, as written. */
  readonly zoneKeys: string[] = [];
  readonly rules: RuleRow[] = [];
  /** The rule set and configuration behind each row of `rules`. */
  readonly ruleSets: RuleSet[] = [];
  /** What nginx would have refused, and what follows. */
  readonly notes: string[] = [];
  readonly #byPid = new Map<number, number>();
  readonly #current = new Map<string, { zone: ZoneReplay; key: string; index: number }>();
  #reloads = 0;

  /** @param inputs in order of time */
  constructor(inputs: readonly GenerationInput[]) {
    for (const input of inputs) this.#add(input);
  }

  /** The generation that decided a request of this worker (-1 when not logged) at this time. */
  of(pid: number, ms: number): Generation {
    if (pid >= 0) {
      const known = this.#byPid.get(pid);
      if (known !== undefined) return this.list[known]!;
    }
    for (let i = this.list.length - 1; i > 0; i--) {
      const { sinceMs } = this.list[i]!;
      if (sinceMs !== null && ms >= sinceMs) return this.list[i]!;
    }
    return this.list[0]!;
  }

  /** A reload mark: the next configuration is in force, for the workers started from here on. */
  noteReload(ms: number): void {
    let next = this.#reloads + 1;
    if (next >= this.list.length || ms < (this.list[next]!.notBeforeMs ?? -Infinity)) return;
    // Of several that were read before this mark, nginx reads the last.
    while (ms >= (this.list[next + 1]?.notBeforeMs ?? Infinity)) next++;
    this.#reloads = next;
    const generation = this.list[next]!;
    const isLatest = generation.notBeforeMs !== undefined;
    const knownMs = generation.sinceMs ?? ms;
    generation.sinceMs = isLatest ? Math.min(knownMs, ms) : knownMs;
  }

  /** nginx started anew, and so read what there was; tells of nothing for those given with times. */
  noteRestart(ms: number): void {
    if (this.list[this.#reloads + 1]?.notBeforeMs !== undefined) this.noteReload(ms);
  }

  /** A worker started: it works under the configuration read last. */
  noteWorker(pid: number, ms: number): void {
    const byTime = this.of(-1, ms).index;
    this.#byPid.set(pid, Math.max(this.#reloads, byTime));
  }

  /** What the error log has told of reloads and workers so far. */
  snapshot(): GenerationsSnapshot {
    return {
      sinceMs: this.list.map((generation) => generation.sinceMs),
      byPid: [...this.#byPid],
      reloads: this.#reloads,
    };
  }

  /** Takes over what was told; of the same configurations. */
  restore(snapshot: GenerationsSnapshot): void {
    for (const [i, ms] of snapshot.sinceMs.entries()) this.list[i]!.sinceMs = ms;
    for (const [pid, index] of snapshot.byPid) this.#byPid.set(pid, index);
    this.#reloads = snapshot.reloads;
  }

  /** The zones in force at the end. */
  currentZones(): { readonly zone: ZoneReplay; readonly key: string }[] {
    return [...this.#current.values()];
  }

  /** The zones of the first configuration, as it reads them. */
  firstZones(): {
    readonly zone: ZoneReplay;
    readonly key: string;
    readonly rateMilliRps: number;
  }[] {
    const { conf } = this.list[0]!;
    return [...conf.reqZones.values()].map((zone) => ({
      zone: this.zones.find((replay) => replay.name === zone.name)!,
      key: zone.keyExpression,
      rateMilliRps: zone.rateMilliRps,
    }));
  }

  #add(input: GenerationInput): void {
    const { conf } = input;
    const before = this.list[this.list.length - 1]?.conf;
    const refusal = before === undefined ? undefined : reloadRefusal(before, conf);
    if (refusal !== undefined) {
      this.notes.push(refusal);
      return;
    }
    for (const zone of conf.reqZones.values()) {
      const old = this.#current.get(zone.name);
      if (old !== undefined && old.zone.sizeBytes === zone.sizeBytes) continue;
      const replay = new ZoneReplay(zone, new KeyTable());
      this.#current.set(zone.name, {
        zone: replay,
        key: zone.keyExpression,
        index: this.zones.length,
      });
      this.zones.push(replay);
      this.zoneKeys.push(zone.keyExpression);
    }
    // A zone that is left out is freed; under the same name later it begins anew.
    for (const name of [...this.#current.keys()]) {
      if (!conf.reqZones.has(name)) this.#current.delete(name);
    }
    this.list.push({
      index: this.list.length,
      conf,
      sinceMs: input.sinceMs,
      notBeforeMs: input.notBeforeMs,
      ruleBase: this.rules.length,
    });
    for (const ruleSet of conf.ruleSets) {
      this.rules.push(this.#rowOf(conf, ruleSet));
      this.ruleSets.push(ruleSet);
    }
  }

  #rowOf(conf: NginxConf, ruleSet: RuleSet): RuleRow {
    const limits: LimitRow[] = ruleSet.limits.map((limit) => {
      const { zone, index } = this.#current.get(limit.zone)!;
      return {
        zone,
        zoneIndex: index,
        rateMilliRps: conf.reqZones.get(limit.zone)!.rateMilliRps,
        burstMilliReq: limit.burstMilliReq,
        delayMilliReq: limit.delayMilliReq,
      };
    });
    return {
      limits,
      isDryRun: ruleSet.limitReqDryRun,
      limitReqStatus: ruleSet.limitReqStatus,
      limitConnStatus: ruleSet.limitConnStatus,
      connZones: ruleSet.connLimits.map((limit) => limit.zone),
      returnsEarly: ruleSet.returnWhere !== undefined,
      asksAuth: ruleSet.asksAuth === true,
      longestDelayMs: longestDelayMs(limits),
    };
  }
}

/** Why nginx refuses to go over from one configuration to another; undefined when it does not. */
export function reloadRefusal(before: NginxConf, conf: NginxConf): string | undefined {
  for (const zone of conf.reqZones.values()) {
    const old = before.reqZones.get(zone.name);
    if (old === undefined || old.sizeBytes !== zone.sizeBytes) continue;
    if (old.keyExpression === zone.keyExpression) continue;
    return (
      `${conf.path}: nginx refuses this reload: limit_req "${zone.name}" uses the ` +
      `"${zone.keyExpression}" key while previously it used the "${old.keyExpression}" key; ` +
      'the previous configuration stays in force'
    );
  }
  return undefined;
}

/** The longest that a request accepted under these limits can be made to wait. */
function longestDelayMs(limits: readonly LimitRow[]): number {
  let longest = 0;
  for (const { burstMilliReq, delayMilliReq, rateMilliRps } of limits) {
    const over = burstMilliReq - delayMilliReq;
    if (over > 0) longest = Math.max(longest, Math.trunc((over * 1000) / rateMilliRps));
  }
  return longest;
}
