/**
 * What nginx's limiter really did, read from its debug log.
 *
 * Follows the debug lines of ngx_http_limit_req_handler(), ngx_http_limit_conn_handler(),
 * ngx_slab_alloc_locked() and ngx_process_events_and_timers(). Debug lines carry whole seconds
 * only; the limiter's clock (ngx_current_msec, monotonic) is rebuilt like this: it changes once
 * per turn of a worker's event loop, "epoll timer" comes just before that, "timer delta: D" at
 * the end of the turn says by how much it had moved, and every "event timer add: fd: D:ABS" says
 * ABS − D, the clock itself. One such line per worker would do; all of them must agree.
 *
 * Units: milliReq and monotonic milliseconds. Lines of several workers may be interleaved; their
 * order in the file is the order in which the zone was locked, up to a few microseconds.
 *
 * HTTP/2's streams share one connection number; a stream is looked up in the same turn in which its
 * header is complete, so lookups are those of the stream begun last.
 *
 * Not here: subrequests.
 */
import { TurnClock } from './turn-clock.js';

/** Return code of one zone's lookup: OK charged, AGAIN only looked up, BUSY rejected, ERROR no memory. */
export type LookupCode = 'OK' | 'AGAIN' | 'BUSY' | 'ERROR';

export interface TruthZone {
  /** Position of the limit_req line in the configuration. */
  readonly index: number;
  readonly rc: LookupCode;
  readonly excessMilliReq: number;
  /** Order over all lookups of the log, from 1. */
  readonly seq: number;
  /** The key was not known (any more), and got a node. */
  readonly isNewNode: boolean;
  /** Slab calls that found no memory: 1 when the eviction that followed helped, 2 with ERROR. */
  readonly failedAllocations: number;
  /** Nodes given back to the slab by this lookup, by age or by force. */
  readonly freedNodes: number;
}

/** One limit_conn rule that let the request in, with the count including it. */
export interface TruthConnection {
  readonly keyHash: string;
  readonly count: number;
  readonly monoMs: number;
}

export interface TruthRequest {
  readonly pid: number;
  /** nginx's `*N`, `$connection` in the access log. */
  readonly connection: number;
  /** `$connection_requests`: 1 for the first request of a connection. */
  readonly connectionRequests: number;
  readonly requestLine: string;
  /** Lookups in order; empty when only limit_conn looked at the request. */
  readonly zones: readonly TruthZone[];
  readonly decisionMonoMs: number;
  /** How long nginx held the request back; 0 when it did not. */
  readonly delayMs: number;
  readonly connections: readonly TruthConnection[];
  readonly connRejected: boolean;
  /** The clock when the access log line was written and limit_conn's slot given back. */
  readonly logMonoMs: number;
}

const CODES: Readonly<Record<string, LookupCode>> = {
  '0': 'OK',
  '-1': 'ERROR',
  '-2': 'AGAIN',
  '-3': 'BUSY',
};

const LINE = /^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d \[(\w+)\] (\d+)#\d+: (?:\*(\d+) )?(.*)$/;
const LOOKUP = /^limit_req\[(\d+)\]: (-?\d+) (\d+)\.(\d{3})$/;
const REQUEST_LINE = /^http request line: "(.*)"$/;
const STREAM_LINE = /^http2 http request line: "(.*)"$/;
/** On a new node or a known one alike; a rejection has an error log line only. */
const CONN_TAKEN = /^limit conn: ([0-9A-F]{8}) (\d+)$/;
/** The null pointer is a failed allocation. */
const SLAB_FULL = /^slab alloc: 0{16}$/;
const SLAB_ALLOCATED = /^slab alloc: (?!0+$)[0-9A-F]{16}$/;
const NEXT_PHASE = /^(?:generic|access|content) phase: \d+$|^http finalize request/;
const TIMER_ADD = /^event timer add: \d+: (\d+):(\d+)$/;

/** A request under way; moments are turns of its worker's clock. */
interface OpenRequest {
  readonly pid: number;
  readonly clock: TurnClock;
  readonly connection: number;
  readonly connectionRequests: number;
  readonly requestLine: string;
  readonly zones: TruthZone[];
  readonly connections: {
    readonly keyHash: string;
    readonly count: number;
    readonly turn: number;
  }[];
  connRejected: boolean;
  decisionTurn: number;
  delayMs: number;
  /** Between the lookups and the next phase, where a timer can only be the limiter's delay. */
  isDelayPossible: boolean;
  /** Order of the limiter's first look at this request; 0 before that. */
  order: number;
}

interface Worker {
  readonly pid: number;
  readonly clock: TurnClock;
  /** Slab calls since a zone's mutex was taken. */
  allocatedNodes: number;
  failedAllocations: number;
  freedNodes: number;
}

/**
 * Reads a debug log and returns the requests that a limiter looked at, in order of their first
 * lookup. Requests still running at the end of the log are left out.
 *
 * @throws Error when the clock contradicts itself: then the log is not what this reader assumes
 */
export function readDebugTruth(debugLog: string): readonly TruthRequest[] {
  const reader = new DebugLogReader();
  for (const line of debugLog.split('\n')) reader.line(line);
  return reader.requests();
}

class DebugLogReader {
  readonly #workers = new Map<number, Worker>();
  /** By connection number: an HTTP/1.1 connection has one request at a time. */
  readonly #open = new Map<number, OpenRequest>();
  readonly #closedCounts = new Map<number, number>();
  readonly #streamCounts = new Map<number, number>();
  readonly #closed: { readonly request: OpenRequest; readonly logTurn: number }[] = [];
  #lookups = 0;
  #orders = 0;

  line(text: string): void {
    const match = LINE.exec(text);
    if (match === null) return; // a dump of response headers goes on over several lines
    const [, level, pid = '', connection, message = ''] = match;
    const worker = this.#worker(Number(pid));
    if (connection !== undefined) this.#connectionLine(worker, Number(connection), message);
    else if (level === 'debug') workerLine(worker, message);
  }

  requests(): readonly TruthRequest[] {
    for (const connection of this.#streamCounts.keys()) {
      const last = this.#open.get(connection);
      if (last !== undefined) this.#end(this.#worker(last.pid), connection);
    }
    return this.#closed
      .filter(({ request }) => request.order > 0)
      .sort((a, b) => a.request.order - b.request.order)
      .flatMap(({ request, logTurn }) => finish(request, logTurn));
  }

  #worker(pid: number): Worker {
    let worker = this.#workers.get(pid);
    if (worker === undefined) {
      worker = {
        pid,
        clock: new TurnClock(),
        allocatedNodes: 0,
        failedAllocations: 0,
        freedNodes: 0,
      };
      this.#workers.set(pid, worker);
    }
    return worker;
  }

  #connectionLine(worker: Worker, connection: number, message: string): void {
    const timer = TIMER_ADD.exec(message);
    if (timer !== null) worker.clock.anchor(Number(timer[2]) - Number(timer[1]));

    const requestLine = REQUEST_LINE.exec(message)?.[1];
    if (requestLine !== undefined) {
      this.#begin(worker, connection, (this.#closedCounts.get(connection) ?? 0) + 1, requestLine);
    }
    const streamLine = STREAM_LINE.exec(message)?.[1];
    if (streamLine !== undefined) this.#beginStream(worker, connection, streamLine);
    const open = this.#open.get(connection);
    if (open !== undefined) {
      if (timer !== null && open.isDelayPossible) open.delayMs = Number(timer[1]);
      this.#limiterLine(worker, open, message);
    }
    if (message === 'http close request') this.#close(worker, connection);
  }

  /** Which stream a closed request was does not show: each counts as closed when the next begins. */
  #beginStream(worker: Worker, connection: number, requestLine: string): void {
    this.#end(worker, connection);
    const count = (this.#streamCounts.get(connection) ?? 0) + 1;
    this.#streamCounts.set(connection, count);
    this.#begin(worker, connection, count, requestLine);
  }

  #begin(
    worker: Worker,
    connection: number,
    connectionRequests: number,
    requestLine: string,
  ): void {
    this.#open.set(connection, {
      pid: worker.pid,
      clock: worker.clock,
      connection,
      connectionRequests,
      requestLine,
      zones: [],
      connections: [],
      connRejected: false,
      decisionTurn: 0,
      delayMs: 0,
      isDelayPossible: false,
      order: 0,
    });
  }

  #limiterLine(worker: Worker, open: OpenRequest, message: string): void {
    const lookup = LOOKUP.exec(message);
    if (lookup !== null) {
      this.#decide(worker, open);
      this.#lookups += 1;
      open.zones.push(truthZone(lookup, this.#lookups, worker));
      open.isDelayPossible = true;
      return;
    }
    const taken = CONN_TAKEN.exec(message);
    if (taken !== null) {
      this.#decide(worker, open);
      const [, keyHash = '', count] = taken;
      open.connections.push({ keyHash, count: Number(count), turn: worker.clock.turn });
    } else if (message.startsWith('limiting connections')) {
      this.#decide(worker, open);
      open.connRejected = true;
    } else if (NEXT_PHASE.test(message)) {
      open.isDelayPossible = false;
    }
  }

  /** Notes when a limiter first looked at the request. */
  #decide(worker: Worker, open: OpenRequest): void {
    if (open.order > 0) return;
    this.#orders += 1;
    open.order = this.#orders;
    open.decisionTurn = worker.clock.turn;
  }

  #close(worker: Worker, connection: number): void {
    this.#closedCounts.set(connection, (this.#closedCounts.get(connection) ?? 0) + 1);
    // Of a session's streams another than the one that closed may be under way.
    if (!this.#streamCounts.has(connection)) this.#end(worker, connection);
  }

  #end(worker: Worker, connection: number): void {
    const request = this.#open.get(connection);
    if (request === undefined) return; // its request line was not even readable
    this.#open.delete(connection);
    this.#closed.push({ request, logTurn: worker.clock.turn });
  }
}

/** Lines without a connection: the event loop, and the zones' memory. */
function workerLine(worker: Worker, message: string): void {
  if (message.startsWith('epoll timer: ')) {
    worker.clock.beginTurn();
  } else if (message.startsWith('timer delta: ')) {
    worker.clock.endTurn(Number(message.slice('timer delta: '.length)));
  } else if (message === 'shmtx lock') {
    worker.allocatedNodes = 0;
    worker.failedAllocations = 0;
    worker.freedNodes = 0;
  } else if (SLAB_ALLOCATED.test(message)) {
    worker.allocatedNodes += 1;
  } else if (SLAB_FULL.test(message)) {
    worker.failedAllocations += 1;
  } else if (message.startsWith('slab free: ')) {
    worker.freedNodes += 1;
  }
}

function truthZone(lookup: RegExpExecArray, seq: number, worker: Worker): TruthZone {
  const [, index, code = '', whole, thousandths] = lookup;
  const rc = CODES[code];
  if (rc === undefined) throw new Error(`unknown return code of a limit_req lookup: ${code}`);
  return {
    index: Number(index),
    rc,
    excessMilliReq: Number(whole) * 1000 + Number(thousandths),
    seq,
    isNewNode: worker.allocatedNodes > 0,
    failedAllocations: worker.failedAllocations,
    freedNodes: worker.freedNodes,
  };
}

/** Turns into milliseconds; nothing when the log ended before the request's last turn did. */
function finish(request: OpenRequest, logTurn: number): readonly TruthRequest[] {
  const { pid, clock, connection, connectionRequests, requestLine } = request;
  const { zones, connRejected, delayMs } = request;
  const logMonoMs = clock.monoMs(logTurn);
  const decisionMonoMs = clock.monoMs(request.decisionTurn);
  if (logMonoMs === undefined || decisionMonoMs === undefined) return [];
  const connections = request.connections.map(({ keyHash, count, turn }) => ({
    keyHash,
    count,
    monoMs: clock.monoMs(turn) ?? logMonoMs,
  }));
  const limiter = { zones, decisionMonoMs, delayMs, connections, connRejected, logMonoMs };
  return [{ pid, connection, connectionRequests, requestLine, ...limiter }];
}
