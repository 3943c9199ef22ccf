/**
 * The order of requests that were decided in one millisecond.
 *
 * nginx takes the zone's lock for one request after another, and writes error-log lines in that
 * order; requests let through leave no line. What is left to order those is the order in which
 * ngx_event_accept() numbered their connections.
 *
 * Members are events and parked requests, as in the calendar.
 *
 * Not here: whether such an order is certain (key-cluster.ts), lines of one key that the excess
 * shows to stand elsewhere (charge-order.ts).
 */
import type { EventPool } from './event-pool.js';
import type { Parked } from './parked.js';
import { isDelayed, isRejected } from './status.js';

/** Up to this many are sorted by insertion: ties are few and mostly in order already. */
const FEW_TIES = 16;

export class TieOrder {
  readonly #pool: EventPool;
  readonly #parked: Parked;
  readonly #lines: number[] = [];

  constructor(pool: EventPool, parked: Parked) {
    this.#pool = pool;
    this.#parked = parked;
  }

  /** Sorts by connection, then by request on it, in place. */
  sort(tied: number[]): void {
    if (tied.length > FEW_TIES) {
      tied.sort(this.#compare);
      return;
    }
    for (let i = 1; i < tied.length; i++) {
      const event = tied[i]!;
      let j = i - 1;
      for (; j >= 0 && this.#compare(tied[j]!, event) > 0; j--) tied[j + 1] = tied[j]!;
      tied[j + 1] = event;
    }
  }

  /** Accept order: what is left to order requests of one millisecond when nothing else does. */
  readonly #compare = (a: number, b: number): number => {
    const byConnection = this.#connectionOf(a) - this.#connectionOf(b);
    if (byConnection !== 0) return byConnection;
    const byRequest = this.#connectionRequestsOf(a) - this.#connectionRequestsOf(b);
    if (byRequest !== 0) return byRequest;
    // A parked request has but the low 32 bits of its number, and no two are that far apart.
    return (this.#orderOf(a) - this.#orderOf(b)) | 0;
  };

  #connectionOf(member: number): number {
    return member >= 0 ? this.#pool.connection[member]! : this.#parked.connectionOf(member);
  }

  #connectionRequestsOf(member: number): number {
    if (member < 0) return this.#parked.connectionRequestsOf(member);
    return this.#pool.connectionRequests[member]!;
  }

  #orderOf(member: number): number {
    return member >= 0 ? this.#pool.order[member]! : this.#parked.orderOf(member);
  }

  #loggedOf(member: number): number {
    return member >= 0 ? this.#pool.logged[member]! : this.#parked.limitReqStatusOf(member);
  }

  /** Whether nginx wrote an error-log line when it judged the request. */
  isLimitedLine(member: number): boolean {
    const logged = this.#loggedOf(member);
    return isRejected(logged) || isDelayed(logged);
  }

  /**
   * Orders the lines among ties as the error log does, and puts requests without a line before
   * them: within a millisecond a key's excess only grows, so the ones let through came first. On
   * one connection the order of the requests stands.
   */
  weaveLines(tied: number[]): void {
    const lines = this.#lines;
    // Setting the length of an array is a call into the runtime, popping is not.
    while (lines.length > 0) lines.pop();
    let others = 0;
    for (let i = 0; i < tied.length; i++) {
      const member = tied[i]!;
      if (this.isLimitedLine(member)) lines.push(member);
      else tied[others++] = member;
    }
    if (lines.length > 1) lines.sort(this.#compareLines);
    for (let i = 0; i < lines.length; i++) tied[others + i] = lines[i]!;
    // On one connection a request may have come after a line all the same.
    for (let i = others - 1; i >= 0; i--) {
      const gap = this.#lastLineBefore(tied[i]!, lines);
      if (gap > 0) moveBehind(tied, i, tied.indexOf(lines[gap - 1]!));
    }
  }

  readonly #compareLines = (a: number, b: number): number => {
    const rankA = this.#lineRank(a);
    const rankB = this.#lineRank(b);
    // Within a millisecond delayed requests come before rejected ones, where no line says otherwise.
    if (rankA === rankB) return this.#rejectedRank(a) - this.#rejectedRank(b);
    return rankA < rankB ? -1 : 1;
  };

  /** Its line's rank; a rejected request whose line was not found came when there was no more room. */
  #lineRank(member: number): number {
    const rank = member >= 0 ? this.#pool.errorRank[member]! : -1;
    return rank < 0 && isRejected(this.#loggedOf(member)) ? Infinity : rank;
  }

  #rejectedRank(member: number): number {
    return isRejected(this.#loggedOf(member)) ? 1 : 0;
  }

  /** How many lines there are up to the last one of an earlier request on the event's connection. */
  #lastLineBefore(member: number, lines: readonly number[]): number {
    const connection = this.#connectionOf(member);
    if (connection < 0) return 0;
    const requests = this.#connectionRequestsOf(member);
    for (let i = lines.length - 1; i >= 0; i--) {
      const line = lines[i]!;
      const isEarlier = this.#connectionRequestsOf(line) < requests;
      if (isEarlier && this.#connectionOf(line) === connection) return i + 1;
    }
    return 0;
  }
}

/** Takes an element out and puts it behind another one further on. */
function moveBehind(list: number[], from: number, behind: number): void {
  const moved = list[from]!;
  for (let i = from; i < behind; i++) list[i] = list[i + 1]!;
  list[behind] = moved;
}
