/**
 * Requests between being read and being decided, as a structure of arrays.
 *
 * A busy server has tens of thousands of requests inside the reorder window; one object each would
 * keep the garbage collector busy. Here an event is a small integer, its fields are typed arrays,
 * and freed events are reused. `stride` zones per event are laid out side by side.
 *
 * Times are epoch milliseconds. An event's decision lies in [loMs, hiMs]; estMs is the best guess.
 */
export class EventPool {
  readonly stride: number;
  capacity: number;
  live = 0;
  #free = -1;
  #used = 0;

  loMs!: Float64Array;
  hiMs!: Float64Array;
  estMs!: Float64Array;
  /** $msec: when the request ended. */
  endMs!: Float64Array;
  /** Index of the rule set; -1 when none could be found. */
  rules!: Int32Array;
  httpStatus!: Int16Array;
  /** STATUS code of $limit_req_status as logged, or as its error-log line says. */
  logged!: Uint8Array;
  /** The same in an audit, where `logged` stays unknown to the judgement. */
  auditLogged!: Uint8Array;
  connLogged!: Uint8Array;
  /** Last $upstream_status; 0 when no upstream answered, -1 when the log does not carry it. */
  upstreamStatus!: Int16Array;
  connection!: Float64Array;
  connectionRequests!: Int32Array;
  pid!: Int32Array;
  /** Order of the event in its source, for ties that nothing else settles. */
  order!: Float64Array;
  /** Rank of the joined error-log line, -1 when there is none. */
  errorRank!: Float64Array;
  /** Excess of the joined error-log line in milliReq, NaN when there is none. */
  anchorMilliReq!: Float64Array;
  /** Slot (position in the rule set) that the joined line names, -1 when unknown. */
  anchorSlot!: Int8Array;
  flags!: Uint16Array;
  verdict!: Uint8Array;
  /** Bit set over STATUS codes. */
  possible!: Uint8Array;
  source!: Uint8Array;
  next!: Int32Array;

  keyId!: Int32Array;
  keyLength!: Int32Array;
  nextInKey!: Int32Array;
  excessMilliReq!: Float64Array;
  lowMilliReq!: Float64Array;
  highMilliReq!: Float64Array;
  /** Bounds before the request's own outcome was looked at. */
  priorLowMilliReq!: Float64Array;
  priorHighMilliReq!: Float64Array;
  priorMilliReq!: Float64Array;
  slotState!: Uint8Array;
  outcome!: Uint8Array;
  /** Charges judged since the slot's interval opened, whose order towards it is not settled. */
  openCharges!: Uint16Array;
  /** 1 where the bounds cover an uncertain order. */
  isOrderOpen!: Uint8Array;

  constructor(stride: number, capacity = 1024) {
    this.stride = Math.max(1, stride);
    this.capacity = 0;
    this.#grow(capacity);
  }

  /** A fresh event; every field holds its neutral value. */
  take(): number {
    let event = this.#free;
    if (event >= 0) {
      this.#free = this.next[event]!;
    } else {
      if (this.#used === this.capacity) this.#grow(this.capacity * 2);
      event = this.#used++;
    }
    this.live++;
    this.#reset(event);
    return event;
  }

  release(event: number): void {
    this.next[event] = this.#free;
    this.#free = event;
    this.live--;
  }

  #reset(event: number): void {
    this.rules[event] = -1;
    this.httpStatus[event] = 0;
    this.logged[event] = 0;
    this.connLogged[event] = 0;
    this.auditLogged[event] = 0;
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
    const base = event * this.stride;
    for (let i = base; i < base + this.stride; i++) {
      this.keyId[i] = -1;
      this.keyLength[i] = 0;
      this.nextInKey[i] = -1;
      this.slotState[i] = 0;
      this.outcome[i] = 0;
      this.openCharges[i] = 0;
      this.isOrderOpen[i] = 0;
    }
  }

  #grow(capacity: number): void {
    const slots = capacity * this.stride;
    this.loMs = grown(this.loMs, new Float64Array(capacity));
    this.hiMs = grown(this.hiMs, new Float64Array(capacity));
    this.estMs = grown(this.estMs, new Float64Array(capacity));
    this.endMs = grown(this.endMs, new Float64Array(capacity));
    this.rules = grown(this.rules, new Int32Array(capacity));
    this.httpStatus = grown(this.httpStatus, new Int16Array(capacity));
    this.logged = grown(this.logged, new Uint8Array(capacity));
    this.auditLogged = grown(this.auditLogged, new Uint8Array(capacity));
    this.connLogged = grown(this.connLogged, new Uint8Array(capacity));
    this.upstreamStatus = grown(this.upstreamStatus, new Int16Array(capacity));
    this.connection = grown(this.connection, new Float64Array(capacity));
    this.connectionRequests = grown(this.connectionRequests, new Int32Array(capacity));
    this.pid = grown(this.pid, new Int32Array(capacity));
    this.order = grown(this.order, new Float64Array(capacity));
    this.errorRank = grown(this.errorRank, new Float64Array(capacity));
    this.anchorMilliReq = grown(this.anchorMilliReq, new Float64Array(capacity));
    this.anchorSlot = grown(this.anchorSlot, new Int8Array(capacity));
    this.flags = grown(this.flags, new Uint16Array(capacity));
    this.verdict = grown(this.verdict, new Uint8Array(capacity));
    this.possible = grown(this.possible, new Uint8Array(capacity));
    this.source = grown(this.source, new Uint8Array(capacity));
    this.next = grown(this.next, new Int32Array(capacity));
    this.keyId = grown(this.keyId, new Int32Array(slots));
    this.keyLength = grown(this.keyLength, new Int32Array(slots));
    this.nextInKey = grown(this.nextInKey, new Int32Array(slots));
    this.excessMilliReq = grown(this.excessMilliReq, new Float64Array(slots));
    this.lowMilliReq = grown(this.lowMilliReq, new Float64Array(slots));
    this.highMilliReq = grown(this.highMilliReq, new Float64Array(slots));
    this.priorLowMilliReq = grown(this.priorLowMilliReq, new Float64Array(slots));
    this.priorHighMilliReq = grown(this.priorHighMilliReq, new Float64Array(slots));
    this.priorMilliReq = grown(this.priorMilliReq, new Float64Array(slots));
    this.slotState = grown(this.slotState, new Uint8Array(slots));
    this.outcome = grown(this.outcome, new Uint8Array(slots));
    this.openCharges = grown(this.openCharges, new Uint16Array(slots));
    this.isOrderOpen = grown(this.isOrderOpen, new Uint8Array(slots));
    this.capacity = capacity;
  }
}

type Numbers = Float64Array | Int32Array | Int16Array | Int8Array | Uint8Array | Uint16Array;

function grown<T extends Numbers>(old: T | undefined, fresh: T): T {
  if (old !== undefined) fresh.set(old);
  return fresh;
}
