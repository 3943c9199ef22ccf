/**
 * The order of a key's cluster, found by counting charges.
 *
 * Excess follows ngx_http_limit_req_lookup(). An error-log line states its request's excess to the
 * thousandth, and every charge is exactly one request; so a line tells how many charges came before
 * it, and requests that left no line are moved to the side of it where they must have been.
 *
 * Units: thousandths of a request, milliseconds; i and j are places in the cluster.
 *
 * Not here: what makes an order certain without a sum (key-cluster.ts), bounds (key-sweep.ts).
 */
import { excessAfter, lastAfter } from '../limit-req/arithmetic.js';
import type { EventPool } from './event-pool.js';
import { type KeyCluster, ROLE } from './key-cluster.js';
import type { LimitRow } from './limit-table.js';

const ONE_REQUEST = 1000;
/** How often a cluster's order is corrected. */
const MOVES_PER_EVENT = 4;

export class ChargeOrder {
  readonly #pool: EventPool;
  readonly #cluster: KeyCluster;

  // What the key's node holds before the cluster.
  #startExcess = 0;
  #startLast = 0;
  #isStartSure = false;

  // The key's state, without bounds, at the place reached.
  #excess = 0;
  #last = 0;
  /** The key's excess is known to less than a request, so that charges can be counted. */
  #isCountSure = false;

  constructor(pool: EventPool, cluster: KeyCluster) {
    this.#pool = pool;
    this.#cluster = cluster;
  }

  /**
   * Puts the cluster in the order that its lines and the charges they state leave, and counts what
   * stays open.
   *
   * @param excess the node's, in thousandths of a request
   * @param last the node's, in milliseconds
   * @param spread how far apart the bounds of the node's excess are, in thousandths of a request
   * @param limitOf the limit that a slot stands for
   */
  settle(excess: number, last: number, spread: number, limitOf: (slot: number) => LimitRow): void {
    this.#startExcess = excess;
    this.#startLast = last;
    this.#isStartSure = spread <= ONE_REQUEST / 2;
    this.#orderLines();
    this.#fitLines(limitOf);
    this.#markSolid(limitOf);
    this.#cluster.countOpen();
  }

  /** Lines stand in lock order, which the clocks of two workers need not follow. */
  #orderLines(): void {
    const ranks = this.#pool.errorRank;
    for (let i = 1; i < this.#cluster.count; i++) {
      const rank = ranks[this.#cluster.events[i]!]!;
      if (rank < 0) continue;
      let to = i;
      for (let j = i - 1; j >= 0; j--) {
        const other = ranks[this.#cluster.events[j]!]!;
        if (other >= 0 && other < rank) break;
        if (other > rank) to = j;
      }
      if (to < i) this.#cluster.move(i, to);
    }
  }

  /** Moves requests without a line across the lines. */
  #fitLines(limitOf: (slot: number) => LimitRow): void {
    let previousAnchor = -1;
    this.#restart(limitOf, 0);
    // Times known to the second let lines be moved to and fro without end.
    let movesLeft = MOVES_PER_EVENT * this.#cluster.count;
    for (let i = 0; i < this.#cluster.count; i++) {
      const limit = limitOf(this.#cluster.slots[i]!);
      const anchor = this.#cluster.anchors[i]!;
      if (!Number.isNaN(anchor) && movesLeft > 0) {
        const shift = this.#chargesMissing(i, anchor, limit);
        const moved =
          shift > 0 ? this.#pull(i, shift) : shift < 0 ? this.#push(i, previousAnchor, -shift) : 0;
        if (moved > 0) {
          movesLeft--;
          // The sweep so far saw another order: begin again at the moved ones' new place.
          this.#restart(limitOf, i + (shift > 0 ? moved : -moved));
          i += shift > 0 ? moved : -moved;
        }
        previousAnchor = i;
      } else if (Number.isNaN(anchor) && movesLeft > 0) {
        const moved = this.#makeRoom(i, previousAnchor, limit, limitOf);
        if (moved > 0) {
          movesLeft--;
          this.#restart(limitOf, i - moved);
          i -= moved;
        }
      }
      this.#advance(i, limit);
    }
  }

  /** How many charges more (or fewer) before event i would explain the excess that its line states. */
  #chargesMissing(i: number, anchor: number, limit: LimitRow): number {
    if (!this.#isCountSure) return 0;
    const now = this.#pool.estMs[this.#cluster.events[i]!]!;
    const excess = excessAfter(this.#excess, this.#last, limit.rateMilliRps, now);
    const shift = Math.round((anchor - excess) / ONE_REQUEST);
    if (shift === 0) return 0;
    const tolerance = Math.min(
      ONE_REQUEST / 2 - 1,
      this.#clockSpread(this.#cluster.events[i]!, limit),
    );
    return Math.abs(anchor - excess - shift * ONE_REQUEST) <= tolerance ? shift : 0;
  }

  /** Moves up to `wanted` later charges without a line in front of event i. */
  #pull(i: number, wanted: number): number {
    let moved = 0;
    for (let j = i + 1; j < this.#cluster.count && moved < wanted; j++) {
      const canMove = this.#cluster.isMovable(j)
        ? !this.#cluster.isSettled(i + moved, j)
        : this.#isMisplacedLine(i + moved, j);
      if (!canMove) continue;
      this.#cluster.move(j, i + moved);
      moved++;
    }
    return moved;
  }

  /** Moves up to `wanted` earlier charges without a line behind event i, latest first. */
  #push(i: number, previousAnchor: number, wanted: number): number {
    let moved = 0;
    for (let j = i - 1; j > previousAnchor && moved < wanted; j--) {
      if (!this.#cluster.isMovable(j) || this.#cluster.isSettled(j, i - moved)) continue;
      this.#cluster.move(j, i);
      moved++;
    }
    return moved > 0 ? moved : this.#moveBack(i, wanted);
  }

  /**
   * A request that passed where it would have been delayed, had all before it come before it: lets
   * those go first that could bear more, latest first.
   */
  #makeRoom(
    i: number,
    previousAnchor: number,
    limit: LimitRow,
    limitOf: (slot: number) => LimitRow,
  ): number {
    if (!this.#isCountSure || this.#cluster.roles[i] !== ROLE.charged) return 0;
    const event = this.#cluster.events[i]!;
    const most = this.#cluster.ceiling(i, limit);
    const now = this.#pool.estMs[event]!;
    const excess = excessAfter(this.#excess, this.#last, limit.rateMilliRps, now);
    const wanted = Math.ceil((excess - most - this.#clockSpread(event, limit)) / ONE_REQUEST);
    let moved = 0;
    for (let j = i - 1; j > previousAnchor && moved < wanted; j--) {
      if (!this.#cluster.isMovable(j) || this.#cluster.isSettled(j, i - moved)) continue;
      if (this.#cluster.ceiling(j, limitOf(this.#cluster.slots[j]!)) <= most) continue;
      this.#cluster.move(j, i);
      moved++;
    }
    return moved;
  }

  /**
   * Two workers write their lines after they let go of the zone's lock, so once in a while two lines
   * stand the wrong way round. A line with far too low an excess belongs before others' charges.
   */
  #moveBack(i: number, wanted: number): number {
    let passed = 0;
    for (let j = i - 1; j >= 0 && this.#cluster.areOfTwoWorkers(j, i); j--) {
      if (this.#cluster.roles[j] === ROLE.charged) passed++;
      if (passed < wanted) continue;
      this.#cluster.move(i, j);
      return i - j;
    }
    return 0;
  }

  /** A later line of another worker whose lower excess shows that it was charged first. */
  #isMisplacedLine(i: number, j: number): boolean {
    const isCharge = this.#cluster.roles[j] === ROLE.charged;
    return (
      isCharge &&
      this.#cluster.areOfTwoWorkers(i, j) &&
      this.#cluster.anchors[j]! < this.#cluster.anchors[i]!
    );
  }

  #restart(limitOf: (slot: number) => LimitRow, end: number): void {
    this.#excess = this.#startExcess;
    this.#last = this.#startLast;
    this.#isCountSure = this.#isStartSure;
    for (let k = 0; k < end; k++) this.#advance(k, limitOf(this.#cluster.slots[k]!));
  }

  /** How much of a request the uncertainty of event's time and of the last charge's amounts to. */
  #clockSpread(event: number, limit: LimitRow): number {
    const spreadMs = this.#pool.hiMs[event]! - this.#pool.loMs[event]! + 2;
    return (limit.rateMilliRps * spreadMs) / 1000 + 2;
  }

  /** The point state after event i, without bounds: enough to count charges. */
  #advance(i: number, limit: LimitRow): void {
    const event = this.#cluster.events[i]!;
    const now = this.#pool.estMs[event]!;
    const anchor = this.#cluster.anchors[i]!;
    const isCharged = this.#cluster.roles[i] === ROLE.charged;
    // A line states what no count of earlier requests need find out again.
    if (anchor > 0 && this.#clockSpread(event, limit) < ONE_REQUEST / 4) {
      this.#excess = isCharged ? anchor : anchor - ONE_REQUEST;
      this.#last = lastAfter(this.#last, now);
      this.#isCountSure = true;
      return;
    }
    if (!isCharged) return;
    this.#excess = excessAfter(this.#excess, this.#last, limit.rateMilliRps, now);
    this.#last = lastAfter(this.#last, now);
  }

  /**
   * A line is solid when no request could change sides: no charge without a line, of uncertain
   * order towards it, on one of its sides. An exchange of two across it would not show. And its
   * excess must be what the charges before it amount to, more closely than the clock could blur.
   */
  #markSolid(limitOf: (slot: number) => LimitRow): void {
    this.#restart(limitOf, 0);
    for (let i = 0; i < this.#cluster.count; i++) {
      const limit = limitOf(this.#cluster.slots[i]!);
      const isExplained = this.#isExplained(i, limit);
      this.#advance(i, limit);
      this.#cluster.solid[i] = 0;
      if (!isExplained) continue;
      let left = 0;
      let right = 0;
      for (let j = 0; j < this.#cluster.count; j++) {
        if (j === i || !this.#cluster.isMovable(j)) continue;
        if (j < i ? this.#cluster.isSettled(j, i) : this.#cluster.isSettled(i, j)) continue;
        if (j < i) left++;
        else right++;
      }
      if (left === 0 || right === 0) this.#cluster.solid[i] = 1;
    }
  }

  /** Event i has a line, and its excess is that of the charges before it. */
  #isExplained(i: number, limit: LimitRow): boolean {
    const anchor = this.#cluster.anchors[i]!;
    const event = this.#cluster.events[i]!;
    const spread = this.#clockSpread(event, limit);
    if (Number.isNaN(anchor) || !this.#isCountSure || spread >= ONE_REQUEST / 2) return false;
    const now = this.#pool.estMs[event]!;
    const excess = excessAfter(this.#excess, this.#last, limit.rateMilliRps, now);
    return Math.abs(anchor - excess) <= spread;
  }
}
