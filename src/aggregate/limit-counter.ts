/**
 * Counts what the limits of each request did: per zone and place, per key, against the burst, and
 * against the log.
 *
 * Called once for each request: works on the event pool's numbers, makes no strings and no objects.
 * Excess in thousandths of a request.
 *
 * Not here: when buckets end (aggregator.ts).
 */
import type { PlainDecision } from '../replay/plain-pass.js';
import { FLAG, NO_KEY, UNKNOWN_KEY } from '../replay/event-flags.js';
import type { EventPool } from '../replay/event-pool.js';
import type { LimitRow } from '../replay/limit-table.js';
import type { WaitingLine } from '../replay/line-join.js';
import type { ReplaySession } from '../replay/session.js';
import { isRejected, OUTCOME, STATUS } from '../replay/status.js';
import { AGREEMENT, AGREEMENT_WORDS } from './agreement-classes.js';
import { agreementClass, isPossible } from './agreement.js';
import { BurstFindings, type ImpliedBurst } from './burst-findings.js';
import { KeyMinutes, type KeyMinute, type KeysTold } from './key-minutes.js';
import { decidingLimit, effectiveStatus, outcomeOf, WORD } from './outcome-words.js';
import { RejectShares, type ZoneShares } from './reject-shares.js';
import { type RowSink } from './rows.js';
import { subjectOf, type RulePlan, type RulePlans } from './rule-plans.js';
import { isNearBurst } from './unmatched-lines.js';
import { excessFraction, FRACTIONS, ZoneCounts, type ZoneCell } from './zone-counts.js';
import { ZoneOutcomes, type OutcomeCell } from './zone-outcomes.js';
import { ZoneStates, type ZoneStatePart } from './zone-states.js';

const NOT_MEASURED = -1;
const REJECTED_COLUMN = 2;
const REJECTED_DRY_RUN_COLUMN = 4;

export interface LimitCounterSnapshot {
  readonly outcomes: readonly OutcomeCell[];
  readonly states: readonly ZoneStatePart[];
  readonly histogram: readonly ZoneCell[];
  readonly agreement: readonly ZoneCell[];
  readonly keys: readonly {
    readonly zone: string;
    readonly minutes: readonly KeyMinute[];
    readonly counted?: KeysTold;
  }[];
  readonly bursts: readonly ImpliedBurst[];
  readonly shares: readonly ZoneShares[];
}

export class LimitCounter {
  readonly #pool: EventPool;
  readonly #session: ReplaySession;
  readonly #plans: RulePlans;
  readonly #outcomes: ZoneOutcomes;
  readonly #states: ZoneStates;
  readonly #histogram: ZoneCounts;
  readonly #agreement: ZoneCounts;
  /** By zone of the replay. */
  readonly #keys: readonly KeyMinutes[];
  readonly #bursts = new BurstFindings();
  readonly #shares = new RejectShares();

  constructor(
    session: ReplaySession,
    plans: RulePlans,
    keysPerMinute: number,
    mostKeysPerMinute: number,
  ) {
    this.#pool = session.engine.pool;
    this.#session = session;
    this.#plans = plans;
    const { zones } = session.generations;
    this.#outcomes = new ZoneOutcomes(plans.limits);
    this.#keys = zones.map((zone) => new KeyMinutes(zone, keysPerMinute, mostKeysPerMinute));
    this.#states = new ZoneStates(zones, this.#keys);
    this.#histogram = new ZoneCounts(plans.zones, FRACTIONS);
    this.#agreement = new ZoneCounts(plans.zones, AGREEMENT_WORDS.length);
  }

  get untrackedKeys(): number {
    return this.#keys.reduce((sum, keys) => sum + keys.untracked, 0);
  }

  /** Before the first request is counted. */
  begin(): void {
    this.#states.begin();
  }

  /**
   * Counts a request with each of its limits.
   *
   * @param told STATUS code as logged; unknown when it was inferred
   * @returns the position of the limit that rejected or delayed it, -1 when none did
   */
  count(event: number, plan: RulePlan, told: number): number {
    const pool = this.#pool;
    const { limits } = plan;
    if (limits.length === 1 && told === STATUS.passed && pool.verdict[event] === STATUS.passed) {
      // Nearly every request: nothing is left to find out.
      const slot = event;
      if (pool.keyId[slot]! >= 0) {
        this.#measure(event, plan, 0, WORD.passed);
        this.#agreement.count(plan.zoneNumbers[0]!, AGREEMENT.agree);
        return -1;
      }
    }
    const status = effectiveStatus(pool, event);
    if (status <= STATUS.none) {
      if (limits.length > 0) this.#countSkipped(event, plan);
      return -1;
    }
    if (limits.length === 0) {
      if (told > STATUS.none) this.countRuleUnknown();
      return -1;
    }
    const deciding = decidingLimit(pool, event, status, limits);
    const agreement = this.#agreementOf(event, plan, told);
    // Those that agree are explained as well, and added at the end of the minute.
    const isExplained =
      told !== STATUS.unknown && agreement !== AGREEMENT.agree && isPossible(pool, event);
    for (let i = 0; i < limits.length; i++) {
      const word = outcomeOf(pool, event, i, status, deciding);
      if (word >= WORD.skipped) {
        this.#outcomes.count(plan.limitNumbers[i]!, word);
        continue;
      }
      this.#measure(event, plan, i, word);
      this.#compare(event, plan, i, agreement, isExplained);
    }
    if (deciding >= 0 && isRejected(status)) this.#noteBurst(event, plan, deciding);
    return deciding;
  }

  /** Counts a request that is no event, with its only limit. */
  countPlain(plain: PlainDecision, plan: RulePlan): void {
    const { keyId, connLogged } = plain;
    const { burstMilliReq, zoneIndex } = plan.limits[0]!;
    const excess = Math.floor(plain.excessMilliReq);
    const zone = plan.zoneNumbers[0]!;
    const isNear = isNearBurst(excess, burstMilliReq);
    this.#outcomes.measure(plan.limitNumbers[0]!, WORD.passed, excess, isNear, 0);
    this.#histogram.count(zone, excessFraction(excess, burstMilliReq));
    this.#states.note(zoneIndex, plain.keyLength);
    const { lowMilliReq, highMilliReq } = plain;
    this.#keys[zoneIndex]!.count(keyId, WORD.passed, excess, lowMilliReq, highMilliReq);
    this.#agreement.count(zone, AGREEMENT.agree);
    if (connLogged !== STATUS.passed) return;
    for (const number of plan.connNumbers) this.#outcomes.count(number, WORD.passed);
  }

  /** Counts a request that nginx limited somewhere, though its rule set is not known or has no limit. */
  countRuleUnknown(): void {
    this.#agreement.count(this.#plans.noZone, AGREEMENT.rule_unknown);
  }

  /** Counts a request with its limit_conn zones, as far as its $limit_conn_status tells. */
  countConnections(event: number, plan: RulePlan): void {
    const status = this.#pool.connLogged[event]!;
    if (status === STATUS.passed) {
      for (const number of plan.connNumbers) this.#outcomes.count(number, WORD.passed);
      return;
    }
    if (!isRejected(status)) return;
    const isDryRun = status === STATUS.rejectedDryRun;
    const isExhausted = (this.#pool.flags[event]! & FLAG.connExhausted) !== 0;
    // Which of several zones it was only the error log would tell: the first is asked first.
    const word = isDryRun
      ? isExhausted
        ? WORD.exhausted_dry_run
        : WORD.rejected_dry_run
      : isExhausted
        ? WORD.exhausted
        : WORD.rejected;
    this.#outcomes.count(plan.connNumbers[0]!, word);
  }

  /** A rejection whose request is in no access log shows a burst all the same. */
  noteUnmatched(line: WaitingLine, limit: LimitRow | null): void {
    if (limit === null || line.kind !== 'rejected' || Number.isNaN(line.excessMilliReq)) return;
    const largest = this.#plans.largestBurstMilliReq(line.zone);
    const subject = subjectOf(line.zone, line.server, '');
    this.#bursts.note(subject, limit, largest, line.excessMilliReq, line.secondMs);
  }

  emitOutcomes(sink: RowSink, instance: string, bucketS: number): void {
    this.#outcomes.emit(sink, instance, bucketS);
  }

  emitStates(sink: RowSink, instance: string, bucketS: number): void {
    this.#states.emit(sink, instance, bucketS);
  }

  emitMinute(sink: RowSink, instance: string, minuteS: number): void {
    this.#histogram.emit(sink, 'excess_histogram', instance, minuteS);
    this.#addExplained();
    this.#agreement.emit(sink, 'agreement', instance, minuteS, AGREEMENT_WORDS);
    for (const [i, keys] of this.#keys.entries()) {
      const zone = this.#session.generations.zones[i]!.name;
      keys.emit((text, columns) => {
        sink.row('key_minutes', [instance, zone, text, minuteS, ...columns]);
        const rejects = columns[REJECTED_COLUMN]! + columns[REJECTED_DRY_RUN_COLUMN]!;
        this.#shares.note(zone, text, rejects, minuteS * 1000);
      });
    }
  }

  emitFindings(sink: RowSink, instance: string): void {
    this.#bursts.emit(sink, instance);
    this.#shares.emit(sink, instance);
  }

  snapshot(): LimitCounterSnapshot {
    const { zones } = this.#session.generations;
    return {
      outcomes: this.#outcomes.cells(),
      states: this.#states.snapshot(),
      histogram: this.#histogram.cells(),
      agreement: this.#agreement.cells(),
      keys: this.#keys.map((keys, i) => ({
        zone: zones[i]!.name,
        minutes: keys.snapshot(),
        counted: keys.told(),
      })),
      bursts: this.#bursts.snapshot(),
      shares: this.#shares.snapshot(),
    };
  }

  restore(snapshot: LimitCounterSnapshot): void {
    this.#outcomes.restore(snapshot.outcomes);
    this.#states.restore(snapshot.states);
    this.#histogram.restore(snapshot.histogram);
    this.#agreement.restore(snapshot.agreement);
    for (const [i, { zone, minutes, counted }] of snapshot.keys.entries()) {
      if (this.#session.generations.zones[i]?.name !== zone) continue;
      this.#keys[i]!.restore(minutes, counted);
    }
    this.#bursts.restore(snapshot.bursts);
    this.#shares.restore(snapshot.shares);
  }

  #addExplained(): void {
    for (const { zone, class: inClass, requests } of this.#agreement.cells()) {
      if (inClass !== AGREEMENT.agree) continue;
      this.#agreement.count(this.#plans.zones.of(zone), AGREEMENT.explained, requests);
    }
  }

  /** No limit decided: that counts where it was for want of keys alone. */
  #countSkipped(event: number, plan: RulePlan): void {
    const pool = this.#pool;
    const base = event;
    for (let i = 0; i < plan.limits.length; i++) {
      if (pool.outcome[base + i] !== OUTCOME.skipped) return;
    }
    for (const number of plan.limitNumbers) this.#outcomes.count(number, WORD.skipped);
  }

  #measure(event: number, plan: RulePlan, position: number, word: number): void {
    const pool = this.#pool;
    const slot = event + position;
    const limit = plan.limits[position]!;
    const number = plan.limitNumbers[position]!;
    const isExhausted = word === WORD.exhausted || word === WORD.exhausted_dry_run;
    const excess = isExhausted ? NOT_MEASURED : excessOf(pool, event, slot, position);
    if (excess < 0) {
      this.#outcomes.count(number, word);
    } else {
      const { burstMilliReq, delayMilliReq, rateMilliRps } = limit;
      const isAccepted = word !== WORD.rejected && word !== WORD.rejected_dry_run;
      const isNear = isAccepted && isNearBurst(excess, burstMilliReq);
      const isWaiting = word === WORD.delayed || word === WORD.delayed_dry_run;
      const over = isWaiting ? excess - delayMilliReq : 0;
      const delayMs = over > 0 ? Math.trunc((over * 1000) / rateMilliRps) : 0;
      this.#outcomes.measure(number, word, excess, isNear, delayMs);
      const fraction = excessFraction(excess, burstMilliReq);
      this.#histogram.count(plan.zoneNumbers[position]!, fraction);
    }
    const key = pool.keyId[slot]!;
    if (key < 0) return;
    this.#states.note(limit.zoneIndex, pool.keyLength[slot]!);
    const keys = this.#keys[limit.zoneIndex]!;
    if (excess < 0) keys.count(key, word, 0, 0, 0);
    else if (pool.slotState[slot] !== 1) keys.count(key, word, excess, excess, excess);
    else keys.count(key, word, excess, pool.lowMilliReq[slot]!, pool.highMilliReq[slot]!);
  }

  #agreementOf(event: number, plan: RulePlan, told: number): number {
    const pool = this.#pool;
    if (told === STATUS.unknown) return AGREEMENT.not_logged;
    if (pool.verdict[event] === told) return AGREEMENT.agree;
    let lacksKey = false;
    let isOtherBurst = false;
    for (let i = 0; i < plan.limits.length; i++) {
      if (pool.keyId[event + i] === UNKNOWN_KEY) lacksKey = true;
      if (this.#bursts.differs(plan.subjects[i]!, plan.limits[i]!)) isOtherBurst = true;
    }
    return agreementClass(pool, event, lacksKey, isOtherBurst);
  }

  #compare(
    event: number,
    plan: RulePlan,
    position: number,
    agreement: number,
    isExplained: boolean,
  ): void {
    const zone = plan.zoneNumbers[position]!;
    const key = this.#pool.keyId[event + position]!;
    if (key === NO_KEY) return;
    if (key === UNKNOWN_KEY && agreement !== AGREEMENT.not_logged) {
      this.#agreement.count(zone, AGREEMENT.key_not_derivable);
      return;
    }
    this.#agreement.count(zone, agreement);
    if (isExplained) this.#agreement.count(zone, AGREEMENT.explained);
  }

  #noteBurst(event: number, plan: RulePlan, position: number): void {
    const pool = this.#pool;
    const excess = pool.anchorMilliReq[event]!;
    if (Number.isNaN(excess) || pool.anchorSlot[event] !== position) return;
    const limit = plan.limits[position]!;
    const largest = this.#plans.largestBurstMilliReq(limit.zone.name);
    this.#bursts.note(plan.subjects[position]!, limit, largest, excess, pool.estMs[event]!);
  }
}

/** What the limiter found in the key's node, or NOT_MEASURED. */
export function excessOf(pool: EventPool, event: number, slot: number, position: number): number {
  if (pool.slotState[slot] === 1) return Math.floor(pool.excessMilliReq[slot]!);
  if (pool.anchorSlot[event] !== position) return NOT_MEASURED;
  const anchor = pool.anchorMilliReq[event]!;
  return Number.isNaN(anchor) ? NOT_MEASURED : anchor;
}
