/**
 * An open-loop HTTP/1.1 client: requests leave when the schedule says, answered or not.
 *
 * A client that waits for answers slows down exactly when a limiter delays, and so never shows
 * it under pressure. Sockets are used directly, since an HTTP library would pool, reorder and
 * buffer what the test wants to see on the wire. Times are milliseconds from the start.
 */
import { connect, type Socket } from 'node:net';
import { ResponseReader } from './response-reader.js';

export interface ScheduledRequest {
  readonly atMs: number;
  /** The request target, query included. */
  readonly path: string;
  readonly method?: string;
  /** `host: test.example` is sent when no Host is given. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** A loopback address to come from, for example 127.0.0.2. */
  readonly localAddress?: string;
  /** The head is sent in two parts, this far apart. */
  readonly slowHeaderMs?: number;
  /** Requests with one name share a connection (pipelined when they overlap). None: one each. */
  readonly keepAlive?: string;
}

export interface TrafficResult {
  /** Null when the connection ended without an answer. */
  readonly status: number | null;
}

/** Sends a schedule to 127.0.0.1:port; resolves when every request is answered or lost. */
export async function sendTraffic(
  port: number,
  schedule: readonly ScheduledRequest[],
): Promise<readonly TrafficResult[]> {
  const shared = new Map<string, Connection>();
  const last = new Map(
    schedule.flatMap((r, i) => (r.keepAlive === undefined ? [] : [[r.keepAlive, i] as const])),
  );
  const startMs = performance.now();
  return Promise.all(
    schedule.map(async (request, index) => {
      await delayUntil(startMs + request.atMs);
      const name = request.keepAlive;
      if (name === undefined) return new Connection(port, request.localAddress).send(request, true);
      let connection = shared.get(name);
      if (connection === undefined || connection.isClosed) {
        connection = new Connection(port, request.localAddress);
        shared.set(name, connection);
      }
      return connection.send(request, last.get(name) === index);
    }),
  );
}

/** Timers may fire a little early or late; nothing here depends on which. */
function delayUntil(targetMs: number): Promise<void> {
  const waitMs = targetMs - performance.now();
  return waitMs <= 0
    ? Promise.resolve()
    : new Promise((resolve) => {
        setTimeout(resolve, waitMs);
      });
}

/** One socket, answers matched to requests in order, as HTTP/1.1 demands. */
class Connection {
  isClosed = false;
  readonly #socket: Socket;
  readonly #pending: ((result: TrafficResult) => void)[] = [];
  /** A head that is sent in two parts must not be cut into by the next request. */
  #written: Promise<void> = Promise.resolve();

  constructor(port: number, localAddress: string | undefined) {
    const reader = new ResponseReader((status) => this.#pending.shift()?.({ status }));
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      ...(localAddress === undefined ? {} : { localAddress }),
    });
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (bytes) => {
      reader.push(bytes);
    });
    // An error is followed by close, which answers whoever waits.
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => {
      this.isClosed = true;
      for (const lost of this.#pending.splice(0)) lost({ status: null });
    });
  }

  send(request: ScheduledRequest, isLast: boolean): Promise<TrafficResult> {
    if (this.isClosed) return Promise.resolve({ status: null });
    const answer = new Promise<TrafficResult>((resolve) => {
      this.#pending.push(resolve);
    });
    this.#written = this.#written.then(() => this.#write(request, isLast));
    return answer;
  }

  async #write(request: ScheduledRequest, isLast: boolean): Promise<void> {
    const text = requestText(request, isLast);
    if (this.isClosed) return;
    const slowMs = request.slowHeaderMs;
    if (slowMs === undefined) {
      this.#socket.write(text, 'latin1');
      return;
    }
    const cut = text.indexOf('\r\n') + 2;
    this.#socket.write(text.slice(0, cut), 'latin1');
    await delayUntil(performance.now() + slowMs);
    this.#socket.write(text.slice(cut), 'latin1');
  }
}

function requestText(request: ScheduledRequest, isLast: boolean): string {
  const headers: Record<string, string> = { host: 'test.example', ...request.headers };
  if (isLast) headers['connection'] = 'close';
  const body = request.body ?? '';
  if (body !== '') headers['content-length'] = String(Buffer.byteLength(body, 'latin1'));
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${request.method ?? 'GET'} ${request.path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}
