/**
 * Requests that wait for the watermark and have nothing uncertain about them: nearly all there are.
 *
 * A request waits for the whole lateness, so on a busy server tens of thousands do, and a record of
 * the event pool is several cache lines long. What a plain request is known by fits into one: its
 * decision is that of the calendar's millisecond, its interval the millisecond behind it, and it has
 * no line, no details and no flags. It moves into the pool when its millisecond is entered.
 *
 * A parked request is named by a negative handle, NO_EVENT - 1 - record, so that it can stand in one
 * list with events, which are not negative.
 *
 * Units: milliseconds. Not here: which requests are plain (access-feed.ts).
 */
import type { EventPool } from './event-pool.js';

export const NO_EVENT = -1;

const NEXT = 0;
const RULES = 1;
const HTTP_STATUS = 2;
/** $limit_req_status, and above it $limit_conn_status. */
const STATUSES = 3;
const UPSTREAM_STATUS = 4;
const CONNECTION = 5;
const CONNECTION_REQUESTS = 6;
const PID = 7;
const ORDER = 8;
/** From the decision to the end. */
const TAKEN_MS = 9;
const KEYS = 10;
/** From RULES to the keys. */
const FIELDS = KEYS - RULES;
/** As engine.ts has it; that imports this. */
const NO_KEY = -1;
const CONN_SHIFT = 8;
const STATUS_MASK = 0xff;

/** STATUS codes of $limit_req_status and $limit_conn_status in one number of 16 bits. */
export function joinStatuses(limitReqStatus: number, limitConnStatus: number): number {
  return limitReqStatus | (limitConnStatus << CONN_SHIFT);
}

export function limitReqStatusIn(statuses: number): number {
  return statuses & STATUS_MASK;
}

export function limitConnStatusIn(statuses: number): number {
  return (statuses >> CONN_SHIFT) & STATUS_MASK;
}

/** What is known of a plain request, as whole numbers of 32 bits. */
export interface PlainRequest {
  readonly rules: number;
  readonly httpStatus: number;
  readonly limitReqStatus: number;
  readonly limitConnStatus: number;
  readonly upstreamStatus: number;
  readonly connection: number;
  readonly connectionRequests: number;
  readonly pid: number;
}

export class Parked {
  readonly #pool: EventPool;
  /** Numbers of a record; whole cache lines. */
  readonly #length: number;
  #memory: Int32Array;
  #used = 0;
  #freeHead = -1;
  #freeTail = -1;

  constructor(pool: EventPool, capacity = 1024) {
    this.#pool = pool;
    this.#length = Math.ceil((KEYS + 2 * pool.slots) / 16) * 16;
    this.#memory = new Int32Array(capacity * this.#length);
  }

  /** @returns the request's record, to set its keys with, and to name it by handleOf() */
  add(request: PlainRequest, order: number, takenMs: number): number {
    const at = this.#take();
    const memory = this.#memory;
    memory[at + NEXT] = NO_EVENT;
    memory[at + RULES] = request.rules;
    memory[at + HTTP_STATUS] = request.httpStatus;
    memory[at + STATUSES] = joinStatuses(request.limitReqStatus, request.limitConnStatus);
    memory[at + UPSTREAM_STATUS] = request.upstreamStatus;
    memory[at + CONNECTION] = request.connection;
    memory[at + CONNECTION_REQUESTS] = request.connectionRequests;
    memory[at + PID] = request.pid;
    memory[at + ORDER] = order;
    memory[at + TAKEN_MS] = takenMs;
    return at;
  }

  /**
   * The same for a request whose numbers lie side by side already, in the order of the fields.
   *
   * @param from where its rule set stands; its worker's pid comes last
   */
  addNumbers(numbers: Int32Array, from: number, order: number, takenMs: number): number {
    const at = this.#take();
    const memory = this.#memory;
    memory[at + NEXT] = NO_EVENT;
    for (let field = 0; field < ORDER - RULES; field++) {
      memory[at + RULES + field] = numbers[from + field]!;
    }
    memory[at + ORDER] = order;
    memory[at + TAKEN_MS] = takenMs;
    return at;
  }

  /** Of each of the pool's slots: NO_KEY's -1 for what the rule set has no limit for. */
  setKey(record: number, position: number, keyId: number, keyLengthBytes: number): void {
    this.#memory[record + KEYS + 2 * position] = keyId;
    this.#memory[record + KEYS + 2 * position + 1] = keyLengthBytes;
  }

  handleOf(record: number): number {
    return NO_EVENT - 1 - record;
  }

  rulesOf(handle: number): number {
    return this.#memory[NO_EVENT - 1 - handle + RULES]!;
  }

  httpStatusOf(handle: number): number {
    return this.#memory[NO_EVENT - 1 - handle + HTTP_STATUS]!;
  }

  limitReqStatusOf(handle: number): number {
    return limitReqStatusIn(this.#memory[NO_EVENT - 1 - handle + STATUSES]!);
  }

  limitConnStatusOf(handle: number): number {
    return limitConnStatusIn(this.#memory[NO_EVENT - 1 - handle + STATUSES]!);
  }

  /** The key of its first limit, or of another. */
  keyOf(handle: number, position = 0): number {
    return this.#memory[NO_EVENT - 1 - handle + KEYS + 2 * position]!;
  }

  keyLengthOf(handle: number): number {
    return this.#memory[NO_EVENT - 1 - handle + KEYS + 1]!;
  }

  connectionOf(handle: number): number {
    return this.#memory[NO_EVENT - 1 - handle + CONNECTION]!;
  }

  connectionRequestsOf(handle: number): number {
    return this.#memory[NO_EVENT - 1 - handle + CONNECTION_REQUESTS]!;
  }

  orderOf(handle: number): number {
    return this.#memory[NO_EVENT - 1 - handle + ORDER]!;
  }

  /** The member behind it in its list; whatever setNext() was given last. */
  next(handle: number): number {
    return this.#memory[NO_EVENT - 1 - handle + NEXT]!;
  }

  setNext(handle: number, next: number): void {
    this.#memory[NO_EVENT - 1 - handle + NEXT] = next;
  }

  /** All of these requests but their places in lists, by field, as restore() takes it. */
  columns(handles: Int32Array): Int32Array[] {
    const memory = this.#memory;
    const columns = Array.from(
      { length: FIELDS + 2 * this.#pool.slots },
      () => new Int32Array(handles.length),
    );
    // By record: each is a cache line that is fetched once.
    for (let i = 0; i < handles.length; i++) {
      const first = NO_EVENT - 1 - handles[i]! + RULES;
      for (let field = 0; field < columns.length; field++) {
        columns[field]![i] = memory[first + field]!;
      }
    }
    return columns;
  }

  /**
   * Parks requests again.
   *
   * @param columns those of as many limits as there are now, or of fewer
   * @returns their handles
   */
  restore(columns: readonly Int32Array[], count: number): Int32Array {
    const handles = new Int32Array(count);
    for (let i = 0; i < count; i++) {
      const at = this.#take();
      handles[i] = this.handleOf(at);
      this.#memory[at + NEXT] = NO_EVENT;
      for (let slot = 0; slot < this.#pool.slots; slot++) this.setKey(at, slot, NO_KEY, 0);
      for (let field = 0; field < columns.length; field++) {
        this.#memory[at + RULES + field] = columns[field]![i]!;
      }
    }
    return handles;
  }

  /** Moves the request into the pool. @param ms when it was decided @returns its event */
  unpark(handle: number, ms: number): number {
    const pool = this.#pool;
    const at = NO_EVENT - 1 - handle;
    const event = pool.take();
    const memory = this.#memory;
    pool.loMs[event] = ms;
    pool.hiMs[event] = ms + 1;
    pool.estMs[event] = ms;
    pool.endMs[event] = ms + memory[at + TAKEN_MS]!;
    pool.rules[event] = memory[at + RULES]!;
    pool.httpStatus[event] = memory[at + HTTP_STATUS]!;
    pool.logged[event] = limitReqStatusIn(memory[at + STATUSES]!);
    pool.connLogged[event] = limitConnStatusIn(memory[at + STATUSES]!);
    pool.upstreamStatus[event] = memory[at + UPSTREAM_STATUS]!;
    pool.connection[event] = memory[at + CONNECTION]!;
    pool.connectionRequests[event] = memory[at + CONNECTION_REQUESTS]!;
    pool.pid[event] = memory[at + PID]!;
    pool.order[event] = memory[at + ORDER]!;
    for (let i = 0; i < pool.slots; i++) {
      pool.keyId[event + i] = memory[at + KEYS + 2 * i]!;
      pool.keyLength[event + i] = memory[at + KEYS + 2 * i + 1]!;
    }
    this.release(handle);
    return event;
  }

  /** Records come back nearly in the order of time, and go out again in that order. */
  #take(): number {
    if ((this.#used + 1) * this.#length <= this.#memory.length) {
      return this.#used++ * this.#length;
    }
    const at = this.#freeHead;
    if (at >= 0) {
      this.#freeHead = this.#memory[at + NEXT]!;
      if (this.#freeHead < 0) this.#freeTail = -1;
      return at;
    }
    const longer = new Int32Array(this.#memory.length * 2);
    longer.set(this.#memory);
    this.#memory = longer;
    return this.#used++ * this.#length;
  }

  /** The request has been decided. */
  release(handle: number): void {
    const at = NO_EVENT - 1 - handle;
    const memory = this.#memory;
    memory[at + NEXT] = -1;
    if (this.#freeTail >= 0) memory[this.#freeTail + NEXT] = at;
    else this.#freeHead = at;
    this.#freeTail = at;
  }
}
