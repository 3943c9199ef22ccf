/**
 * Clients that do what well-behaved ones do not: leave before the answer, read it slowly, send the
 * body late, come over IPv6 or a unix socket. Ordinary requests go through traffic.ts.
 *
 * Times are milliseconds from the start. Not here: answers; what nginx logged of them is compared.
 */
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { sendTraffic, type ScheduledRequest } from './traffic.js';

export interface LiveRequest extends ScheduledRequest {
  /** Another port of the scenario than the first. */
  readonly port?: number;
  /** `::1`, or a socket's path; 127.0.0.1 by default. */
  readonly host?: string;
  /** The connection is closed this long after the request went out, answered or not. */
  readonly abortAfterMs?: number;
  /** The answer is read in pieces, with pauses of this length. */
  readonly pauseMs?: number;
  /** The body follows its head this much later, in two parts. */
  readonly slowBodyMs?: number;
  /** What is sent, where it is no well-formed request. */
  readonly raw?: string;
  /** Requests with one name are streams of one HTTP/2 session, to the second port. */
  readonly http2?: string;
}

/** Sends a schedule; resolves when every connection has ended. */
export async function sendLive(
  port: number,
  schedule: readonly LiveRequest[],
  http2Port = port,
): Promise<void> {
  const byPort = new Map<number, LiveRequest[]>();
  const odd: LiveRequest[] = [];
  const streams: LiveRequest[] = [];
  for (const request of schedule) {
    if (request.http2 !== undefined) streams.push(request);
    else if (isOdd(request)) odd.push(request);
    else {
      const to = request.port ?? port;
      byPort.set(to, [...(byPort.get(to) ?? []), request]);
    }
  }
  await Promise.all([
    ...[...byPort].map(([to, requests]) => sendTraffic(to, requests)),
    ...odd.map((request) => sendOdd(port, request)),
    sendStreams(http2Port, streams),
  ]);
}

/** Sends requests as streams of the sessions that they name, and closes those. */
async function sendStreams(port: number, schedule: readonly LiveRequest[]): Promise<void> {
  const sessions = new Map<string, ClientHttp2Session>();
  await Promise.all(
    schedule.map(async (request) => {
      await wait(request.atMs);
      const name = request.http2!;
      let session = sessions.get(name);
      if (session === undefined || session.closed || session.destroyed) {
        session = connectHttp2(`http://127.0.0.1:${port}`);
        // An error is followed by close.
        session.on('error', () => undefined);
        sessions.set(name, session);
      }
      await sendStream(session, request);
    }),
  );
  for (const session of sessions.values()) session.close();
}

function sendStream(session: ClientHttp2Session, request: LiveRequest): Promise<void> {
  const { host, ...headers } = request.headers ?? {};
  return new Promise((resolve) => {
    const stream = session.request({
      ':method': request.method ?? 'GET',
      ':path': request.path,
      ':authority': host ?? 'test.example',
      ...headers,
    });
    stream.on('error', () => undefined);
    stream.on('close', () => {
      resolve();
    });
    stream.resume();
    stream.end(request.body);
  });
}

function isOdd(request: LiveRequest): boolean {
  return (
    request.host !== undefined ||
    request.abortAfterMs !== undefined ||
    request.pauseMs !== undefined ||
    request.slowBodyMs !== undefined ||
    request.raw !== undefined
  );
}

async function sendOdd(port: number, request: LiveRequest): Promise<void> {
  await wait(request.atMs);
  const { host } = request;
  const socket = host?.startsWith('/')
    ? connect({ path: host })
    : connect({
        port: request.port ?? port,
        host: host ?? '127.0.0.1',
        ...(request.localAddress === undefined ? {} : { localAddress: request.localAddress }),
      });
  const ended = new Promise<void>((resolve) => {
    // An error is followed by close.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      resolve();
    });
  });
  readAt(socket, request.pauseMs ?? 0);
  const [head, body] = request.raw === undefined ? textOf(request) : [request.raw, ''];
  socket.write(head, 'latin1');
  if (body !== '') await sendBody(socket, body, request.slowBodyMs ?? 0);
  if (request.abortAfterMs !== undefined) {
    await wait(request.abortAfterMs);
    socket.destroy();
  }
  await ended;
}

async function sendBody(socket: Socket, body: string, slowMs: number): Promise<void> {
  const half = body.length >> 1;
  if (slowMs > 0) await wait(slowMs / 2);
  socket.write(body.slice(0, half), 'latin1');
  if (slowMs > 0) await wait(slowMs / 2);
  socket.write(body.slice(half), 'latin1');
}

function readAt(socket: Socket, pauseMs: number): void {
  socket.on('data', () => {
    if (pauseMs === 0) return;
    socket.pause();
    void wait(pauseMs).then(() => socket.resume());
  });
}

function textOf(request: LiveRequest): [head: string, body: string] {
  const headers: Record<string, string> = { host: 'test.example', ...request.headers };
  const body = request.body ?? '';
  if (body !== '') headers['content-length'] = String(body.length);
  headers['connection'] = 'close';
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return [`${request.method ?? 'GET'} ${request.path} HTTP/1.1\r\n${lines.join('')}\r\n`, body];
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
