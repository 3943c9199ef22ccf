/**
 * One request against all the limits of its rule set, and against what its log says happened.
 *
 * Follows ngx_http_limit_req_handler(): limits in the order of the configuration, the first one
 * over its burst ends it, all are charged when none is.
 *
 * Units: epoch milliseconds, thousandths of a request.
 *
 * Not here: when a request's turn comes (engine.ts), a key's excess (key-sweep.ts), the states that
 * an excess allows (verdict.ts).
 */
import type { DecisionWindow } from './decision-window.js';
import { FLAG, NO_KEY, WIDE_MS } from './event-flags.js';
import type { EventPool } from './event-pool.js';
import type { KeySweep } from './key-sweep.js';
import type { LimitRow, RuleRow } from './limit-table.js';
import { isAccepted, isDelayed, isRejected, OUTCOME, STATUS } from './status.js';
import { Verdict } from './verdict.js';
import type { ZoneReplay } from './zone-replay.js';

/** The smallest zone holds more short keys than this. */
const LEAST_FLOOD = 128;

export class RequestJudge {
  readonly #pool: EventPool;
  readonly #sweep: KeySweep;
  readonly #window: DecisionWindow;
  readonly #verdict = new Verdict();
  readonly #limitOf: (slot: number) => LimitRow;

  /**
   * @param window the requests that come behind the one that is judged
   * @param limitOf the limit that a slot in use stands for
   */
  constructor(
    pool: EventPool,
    sweep: KeySweep,
    window: DecisionWindow,
    limitOf: (slot: number) => LimitRow,
  ) {
    this.#pool = pool;
    this.#sweep = sweep;
    this.#window = window;
    this.#limitOf = limitOf;
  }

  /** Fills verdict, possible states and each limit's outcome and excess; charges the zones. */
  judge(event: number, rule: RuleRow): void {
    const pool = this.#pool;
    if (rule.limits.length === 0) return;
    const isAnsweredEarly = pool.logged[event]! <= STATUS.none && rule.returnsEarly;
    if (pool.flags[event]! & FLAG.early || isAnsweredEarly) return;
    if (rule.limits.length === 1 && this.#passAlone(event, rule.limits[0]!)) return;
    this.#verdict.reset();
    const base = event;
    for (let i = 0; i < rule.limits.length; i++) {
      if (!this.#askLimit(event, base + i, i, rule.limits[i]!)) continue;
      if (pool.outcome[base + i] === OUTCOME.exhausted) {
        this.#verdict.leaveOpen(rule.limits.slice(i + 1));
      }
      break;
    }
    if (!this.#verdict.wasAsked) return;
    if (pool.logged[event] === STATUS.unknown) this.#chargeOpen(event, rule);
    pool.verdict[event] = this.#verdict.status(rule.isDryRun);
    pool.possible[event] = this.#verdict.possible(rule.isDryRun) | (1 << pool.verdict[event]);
  }

  /**
   * The short way for a request that passed its only limit with nothing uncertain about it.
   *
   * @returns false when the long way has to be gone; a lookup made here is not made again there
   */
  #passAlone(event: number, limit: LimitRow): boolean {
    const pool = this.#pool;
    if (pool.logged[event] !== STATUS.passed || pool.nextInKey[event]! >= 0) return false;
    const key = pool.keyId[event]!;
    if (key < 0 || pool.slotState[event] !== 0 || pool.openCharges[event] !== 0) return false;
    const { zone } = limit;
    const now = pool.estMs[event]!;
    if (zone.openSlots.size > 0 || zone.earlyCharges.size > 0) return false;
    if (now < zone.warmUntilMs || pool.hiMs[event]! - now > WIDE_MS) return false;
    const node = zone.memory.find(key);
    if (node < 0 || zone.hasShadow(key)) return false;
    if (zone.counts.evictions > 0 && zone.isNearEviction(node, now)) return false;
    if (!this.#sweep.judgeAlone(zone, node, event, limit)) return false;
    zone.memory.touch(node);
    pool.outcome[event] = OUTCOME.passed;
    pool.verdict[event] = STATUS.passed;
    pool.possible[event] = 1 << STATUS.passed;
    return true;
  }

  /** @returns true when this limit ended the request */
  #askLimit(event: number, slot: number, position: number, limit: LimitRow): boolean {
    const pool = this.#pool;
    const key = pool.keyId[slot]!;
    const logged = pool.logged[event]!;
    if (key < 0) {
      pool.outcome[slot] = key === NO_KEY ? OUTCOME.skipped : OUTCOME.unknown;
      return false;
    }
    if (logged === STATUS.none) return false;
    const { zone } = limit;
    const now = pool.estMs[event]!;
    const verdict = this.#verdict;
    verdict.wasAsked = true;
    if (pool.flags[event]! & FLAG.exhausted && pool.anchorSlot[event] === position) {
      if (zone.failToLocate(key, pool.keyLength[slot]!, now))
        verdict.exhaust(position, zone.isPageUnsure);
      else if (zone.isPageUnsure) verdict.mayExhaust();
      pool.outcome[slot] = OUTCOME.exhausted;
      return true;
    }
    // A reject whose line was not found may have been one for want of memory: then the model tells.
    const isPlain = !isRejected(logged) || pool.errorRank[event]! >= 0;
    const hasNode = logged !== STATUS.unknown && isPlain;
    const node = zone.locate(key, pool.keyLength[slot]!, now, hasNode);
    if (zone.hadNoPage) verdict.exhaust(position, zone.isPageUnsure);
    else if (zone.isPageUnsure) verdict.mayExhaust();
    if (node < 0) {
      pool.outcome[slot] = OUTCOME.exhausted;
      return true;
    }
    if (this.#wasExhausted(event, slot, limit)) {
      verdict.add(position, 0, 0, 0, limit);
      zone.unlocate(node, key);
      pool.outcome[slot] = OUTCOME.exhausted;
      return true;
    }
    // What was judged with a node that has gone since is judged anew.
    const wasJudged = pool.slotState[slot] !== 0;
    if (!wasJudged || zone.isFresh) {
      this.#sweep.isAlone = wasJudged || this.#mayPushOut(zone, pool.keyLength[slot]!);
      this.#sweep.sweep(zone, node, slot, this.#limitOf);
    }
    if (zone.maybeEvicted || zone.ghost !== null) pool.flags[event]! |= FLAG.nearEviction;
    if (now < zone.warmUntilMs) pool.flags[event]! |= FLAG.warm;
    const waits = verdict.add(
      position,
      pool.priorMilliReq[slot]!,
      pool.priorLowMilliReq[slot]!,
      pool.priorHighMilliReq[slot]!,
      limit,
    );
    if (this.#isRejectedBy(event, position)) {
      pool.outcome[slot] = OUTCOME.rejected;
      return true;
    }
    const isDelayedHere = isDelayed(logged) ? pool.anchorSlot[event] === position || waits : waits;
    pool.outcome[slot] =
      isDelayedHere && logged !== STATUS.passed ? OUTCOME.delayed : OUTCOME.passed;
    const { rateMilliRps, burstMilliReq } = limit;
    if (zone.chargeShadow(key, rateMilliRps, burstMilliReq, now, isAccepted(logged))) {
      pool.flags[event]! |= FLAG.admittedByEviction;
    }
    return false;
  }

  /**
   * A request refused by this limit, whose key has only now got a node, with nobody of its key near:
   * it cannot have been over a burst, so nginx had no page for it.
   */
  #wasExhausted(event: number, slot: number, limit: LimitRow): boolean {
    const pool = this.#pool;
    const { zone } = limit;
    if (!zone.isFresh || !zone.isCrowded || zone.ghost !== null) return false;
    if (!isRejected(pool.logged[event]!) || pool.errorRank[event]! >= 0) return false;
    if (event + pool.anchorSlot[event]! !== slot || pool.nextInKey[slot]! >= 0) return false;
    if (pool.slotState[slot] !== 0 || pool.openCharges[slot] !== 0) return false;
    if (zone.openSlots.size > 0 || zone.earlyCharges.size > 0) return false;
    const now = pool.estMs[event]!;
    return now >= zone.warmUntilMs && pool.hiMs[event]! - now <= WIDE_MS;
  }

  /** A flood can push a key out between two of its requests, if the window holds enough others. */
  #mayPushOut(zone: ZoneReplay, keyLengthBytes: number): boolean {
    if (this.#window.size < LEAST_FLOOD) return false;
    const { memory, counts } = zone;
    const most = counts.evictions > 0 ? memory.nodes : memory.capacityNodes(keyLengthBytes);
    return this.#window.size >= most;
  }

  /** What happened where the log tells, else what the model says. */
  #isRejectedBy(event: number, position: number): boolean {
    const pool = this.#pool;
    const logged = pool.logged[event]!;
    if (logged === STATUS.unknown) return this.#verdict.rejectedAt === position;
    if (!isRejected(logged)) return false;
    const known = pool.anchorSlot[event]!;
    return known >= 0 ? known === position : this.#verdict.rejectedAt === position;
  }

  /** Charges every limit of a request that the log says nothing about, if all let it pass. */
  #chargeOpen(event: number, rule: RuleRow): void {
    const pool = this.#pool;
    if (this.#verdict.rejectedAt >= 0) return;
    const base = event;
    for (let i = 0; i < rule.limits.length; i++) {
      const limit = rule.limits[i]!;
      const key = pool.keyId[base + i]!;
      if (key < 0 || pool.slotState[base + i] === 0) continue;
      const node = limit.zone.memory.find(key);
      if (node >= 0) this.#sweep.chargeLater(limit.zone, node, event, limit);
      const { rateMilliRps, burstMilliReq, zone } = limit;
      zone.chargeShadow(key, rateMilliRps, burstMilliReq, pool.estMs[event]!, true);
    }
  }
}
