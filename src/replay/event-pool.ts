/**
 * Requests between being read and being decided: records in one block of memory.
 *
 * A busy server has tens of thousands of requests inside the reorder window; one object each would
 * keep the garbage collector busy, and one array for each field would touch as many pages of memory
 * as there are fields, for every request. So all fields of an event lie side by side in one buffer,
 * and every field is a view of that buffer, shifted by the field's place: an event is the index of
 * its first number, `pool.estMs[event]` is its estimated time, and a slot (one limit of it) is
 * `event + position`, `pool.keyId[event + position]` that limit's key.
 *
 * Events are given out again in the order in which they came back, which is nearly that of time, so
 * that memory is walked through in order.
 *
 * Times are epoch milliseconds. An event's decision lies in [loMs, hiMs]; estMs is the best guess.
 */
const EVENT_FIELDS = [
  'loMs',
  'hiMs',
  'estMs',
  'endMs',
  'rules',
  'httpStatus',
  'logged',
  'auditLogged',
  'connLogged',
  'upstreamStatus',
  'connection',
  'connectionRequests',
  'pid',
  'order',
  'errorRank',
  'anchorMilliReq',
  'anchorSlot',
  'flags',
  'verdict',
  'possible',
  'source',
  'next',
] as const;

const SLOT_FIELDS = [
  'keyId',
  'keyLength',
  'nextInKey',
  'excessMilliReq',
  'lowMilliReq',
  'highMilliReq',
  'priorLowMilliReq',
  'priorHighMilliReq',
  'priorMilliReq',
  'slotState',
  'outcome',
  'openCharges',
] as const;

const BYTES = Float64Array.BYTES_PER_ELEMENT;

export class EventPool {
  /** Slots per event: the most limits that a rule set has. */
  readonly slots: number;
  /** Numbers per event. */
  readonly recordLength: number;
  /** Events that fit before the memory grows. */
  capacity = 0;
  /** Events given out and not given back. */
  live = 0;
  #memory = new Float64Array(0);
  #freeHead = -1;
  #freeTail = -1;
  #used = 0;

  loMs!: Float64Array;
  hiMs!: Float64Array;
  estMs!: Float64Array;
  /** $msec: when the request ended. */
  endMs!: Float64Array;
  /** Index of the rule set; -1 when none could be found. */
  rules!: Float64Array;
  httpStatus!: Float64Array;
  /** STATUS code of $limit_req_status as logged, or as its error-log line says. */
  logged!: Float64Array;
  /** The same in an audit, where `logged` stays unknown to the judgement. */
  auditLogged!: Float64Array;
  connLogged!: Float64Array;
  /** Last $upstream_status; 0 when no upstream answered, -1 when the log does not carry it. */
  upstreamStatus!: Float64Array;
  connection!: Float64Array;
  connectionRequests!: Float64Array;
  pid!: Float64Array;
  /** Order of the event in its source, for ties that nothing else settles. */
  order!: Float64Array;
  /** Rank of the joined error-log line, -1 when there is none. */
  errorRank!: Float64Array;
  /** Excess of the joined error-log line in milliReq, NaN when there is none. */
  anchorMilliReq!: Float64Array;
  /** Position in the rule set of the limit that decided, as far as the log tells; -1 when unknown. */
  anchorSlot!: Float64Array;
  /** FLAG bits. */
  flags!: Float64Array;
  verdict!: Float64Array;
  /** Bit set over STATUS codes. */
  possible!: Float64Array;
  source!: Float64Array;
  next!: Float64Array;

  /** By slot from here on. */
  keyId!: Float64Array;
  keyLength!: Float64Array;
  /** The next slot of the same key inside the window, -1 for none. */
  nextInKey!: Float64Array;
  excessMilliReq!: Float64Array;
  lowMilliReq!: Float64Array;
  highMilliReq!: Float64Array;
  /** Bounds and value before the request's own outcome was looked at. */
  priorLowMilliReq!: Float64Array;
  priorHighMilliReq!: Float64Array;
  priorMilliReq!: Float64Array;
  /** 0 until the slot has been judged, then 1. */
  slotState!: Float64Array;
  outcome!: Float64Array;
  /** Charges judged since the slot's interval opened, whose order towards it is not settled. */
  openCharges!: Float64Array;

  /** @param slots limits of an event at most */
  constructor(slots: number, capacity = 1024) {
    this.slots = Math.max(1, slots);
    this.recordLength = EVENT_FIELDS.length + SLOT_FIELDS.length * this.slots;
    this.#grow(capacity);
  }

  /** Where a number of a record of this length, with fewer slots, has its place in this pool's. */
  placeIn(recordLength: number, place: number): number {
    const slots = (recordLength - EVENT_FIELDS.length) / SLOT_FIELDS.length;
    const at = place - EVENT_FIELDS.length;
    if (at < 0) return place;
    return EVENT_FIELDS.length + Math.floor(at / slots) * this.slots + (at % slots);
  }

  /** The event that a slot belongs to. */
  eventOf(slot: number): number {
    return Math.floor(slot / this.recordLength) * this.recordLength;
  }

  /** A fresh event; every field holds its neutral value. */
  take(): number {
    let event = this.#freeHead;
    if (this.#used < this.capacity) {
      event = this.#used++ * this.recordLength;
    } else if (event >= 0) {
      this.#freeHead = this.next[event]!;
      if (this.#freeHead < 0) this.#freeTail = -1;
    } else {
      this.#grow(this.capacity * 2);
      event = this.#used++ * this.recordLength;
    }
    this.live++;
    this.#reset(event);
    return event;
  }

  release(event: number): void {
    this.next[event] = -1;
    if (this.#freeTail >= 0) this.next[this.#freeTail] = event;
    else this.#freeHead = event;
    this.#freeTail = event;
    this.live--;
  }

  #reset(event: number): void {
    this.rules[event] = -1;
    this.httpStatus[event] = 0;
    this.logged[event] = 0;
    this.auditLogged[event] = 0;
    this.connLogged[event] = 0;
    this.upstreamStatus[event] = -1;
    this.connection[event] = -1;
    this.connectionRequests[event] = -1;
    this.pid[event] = -1;
    this.errorRank[event] = -1;
    this.anchorMilliReq[event] = NaN;
    this.anchorSlot[event] = -1;
    this.flags[event] = 0;
    this.verdict[event] = 0;
    this.possible[event] = 0;
    this.source[event] = 0;
    this.next[event] = -1;
    for (let slot = event; slot < event + this.slots; slot++) {
      this.keyId[slot] = -1;
      this.keyLength[slot] = 0;
      this.nextInKey[slot] = -1;
      this.slotState[slot] = 0;
      this.outcome[slot] = 0;
      this.openCharges[slot] = 0;
    }
  }

  #grow(capacity: number): void {
    const memory = new Float64Array(capacity * this.recordLength);
    memory.set(this.#memory);
    this.#memory = memory;
    this.capacity = capacity;
    let place = 0;
    for (const field of EVENT_FIELDS)
      this[field] = new Float64Array(memory.buffer, BYTES * place++);
    for (const field of SLOT_FIELDS) {
      this[field] = new Float64Array(memory.buffer, BYTES * place);
      place += this.slots;
    }
  }
}
