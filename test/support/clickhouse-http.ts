/**
 * ClickHouse's HTTP interface in front of the embedded engine, with faults on demand.
 *
 * It exists because no server of a version that limitlens supports can be installed on a test
 * machine: with this, the client's own HTTP path runs, with its compression, logins, error bodies and
 * exceptions in the middle of a result. It follows HTTPHandler.cpp as far as the client relies on it:
 * query in the URL or the body, `param_…`, settings, Basic and X-ClickHouse-User/-Key logins, gzip
 * both ways, X-ClickHouse-Exception-Code, summaries. Each request has a connection of its own, so
 * that no setting outlives it.
 *
 * Not here: multipart bodies, sessions, progress headers, quotas, other compressions.
 */
import { createChdbConnection } from 'chdb/connection';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';

/** What goes wrong with one request; the rest of its `times` requests follow. */
export interface Fault {
  readonly kind:
    /** The connection breaks before anything is done. */
    | 'reset'
    /** An answer of a proxy: `status` with a page. */
    | 'page'
    /** ClickHouse refuses with `code` and `type`. */
    | 'exception'
    /** As 'exception', after the first bytes of a result of status 200. */
    | 'late-exception'
    /** No answer at all. */
    | 'silence'
    /** The answer comes `afterMs` later. */
    | 'slow'
    /** The statement is done, and the connection breaks before the answer. */
    | 'lost-answer'
    /** Half an answer, then the connection breaks. */
    | 'half-answer';
  /** Which statements it hits. */
  readonly sql: RegExp;
  readonly times?: number;
  readonly status?: number;
  readonly code?: number;
  readonly type?: string;
  readonly afterMs?: number;
}

export interface FakeServer {
  /** Without user and password. */
  readonly url: string;
  /** Every statement that arrived, refused ones included. */
  readonly statements: string[];
  /** Content-Encoding and Accept-Encoding of the requests, as `gzip/gzip`. */
  readonly encodings: string[];
  /** The faults from now on. */
  setFaults(faults: readonly Fault[]): void;
  /** Breaks all connections and takes none until start(), on the same port, as a restart does. */
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

export interface FakeServerOptions {
  /** Data folder of the embedded engine. */
  readonly dataPath: string;
  readonly user?: string;
  readonly password?: string;
  /** What `SELECT version()` says, when not the engine's own. */
  readonly version?: string;
}

interface Connection {
  query(params: object): Promise<{ stream: AsyncIterable<Buffer> }>;
  close(): Promise<void>;
}

interface ChdbError {
  readonly code?: string;
  readonly type?: string;
  readonly message: string;
}

const NOT_SETTINGS = new Set(['query', 'database', 'query_id', 'user', 'password', 'session_id']);
const TAG = 'abcdefghijklmnop';

export async function startFakeServer(options: FakeServerOptions): Promise<FakeServer> {
  // Held open, or the engine would start and stop with each request.
  const base = createChdbConnection({ path: options.dataPath }) as Connection;
  const faults: { fault: Fault; left: number }[] = [];
  const statements: string[] = [];
  const encodings: string[] = [];

  const takeFault = (sql: string): Fault | undefined => {
    const found = faults.find(({ fault, left }) => left > 0 && fault.sql.test(sql));
    if (found !== undefined) found.left--;
    return found?.fault;
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    if (url.pathname === '/ping') {
      response.end('Ok.\n');
      return;
    }
    const body = await readBody(request);
    const inUrl = url.searchParams.get('query');
    const sql = inUrl === null ? body : `${inUrl}\n${body}`;
    statements.push(sql);
    const { 'content-encoding': sent = '-', 'accept-encoding': accepted = '-' } = request.headers;
    encodings.push(`${sent}/${accepted}`);
    if (!isLoggedIn(request, url.searchParams, options)) {
      const type = 'AUTHENTICATION_FAILED';
      sendException(response, 403, { code: '516', type, message: 'Authentication failed' });
      return;
    }
    await answer(request, response, url.searchParams, sql);
  };

  const answer = async (
    request: IncomingMessage,
    response: ServerResponse,
    params: URLSearchParams,
    sql: string,
  ): Promise<void> => {
    const fault = takeFault(sql);
    if (fault !== undefined && isBefore(fault, request, response)) return;
    if (fault?.kind === 'slow') await delay(fault.afterMs ?? 0);
    try {
      const result = await run(options, params, sql);
      finish(fault, request, response, params, result);
    } catch (error) {
      const { code = '1002', type = 'UNKNOWN_EXCEPTION', message } = error as ChdbError;
      sendException(response, 500, { code, type, message });
    }
  };

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : new Error(String(error)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const stop = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    statements,
    encodings,
    setFaults: (wanted) => {
      faults.splice(0, faults.length);
      for (const fault of wanted) faults.push({ fault, left: fault.times ?? 1 });
    },
    stop,
    start: async () => {
      if (server.listening) return;
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
    close: async () => {
      if (server.listening) await stop();
      await base.close();
    },
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  return (request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString();
}

function isLoggedIn(
  request: IncomingMessage,
  params: URLSearchParams,
  { user = 'default', password = '' }: FakeServerOptions,
): boolean {
  const { authorization = '' } = request.headers;
  if (authorization.startsWith('Basic ')) {
    const login = Buffer.from(authorization.slice('Basic '.length), 'base64').toString();
    return login === `${user}:${password}`;
  }
  const name = request.headers['x-clickhouse-user'] ?? params.get('user') ?? 'default';
  const word = request.headers['x-clickhouse-key'] ?? params.get('password') ?? '';
  return name === user && word === password;
}

/** Runs one statement with the request's database, parameters and settings. */
async function run(
  options: FakeServerOptions,
  params: URLSearchParams,
  sql: string,
): Promise<Buffer> {
  const connection = createChdbConnection({ path: options.dataPath }) as Connection;
  try {
    const database = params.get('database');
    if (database !== null) await connection.query({ query: `USE \`${database}\`` });
    const bindings: string[] = [];
    const settings: Record<string, string> = {};
    for (const [name, value] of params) {
      if (name.startsWith('param_')) bindings.push(`SET ${name} = ${literal(value)}; `);
      else if (!NOT_SETTINGS.has(name)) settings[name] = value;
    }
    // A parameter of the URL is text in ClickHouse's escaped form; SET takes that form as a literal.
    const query = `${bindings.join('')}${sql}`;
    const versioned =
      options.version === undefined ? query : query.replace('version()', `'${options.version}'`);
    const { stream } = await connection.query({ query: versioned, clickhouse_settings: settings });
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    return Buffer.concat(chunks);
  } finally {
    await connection.close();
  }
}

function literal(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}

/** Faults that come before the statement is run. True when the request is dealt with. */
function isBefore(fault: Fault, request: IncomingMessage, response: ServerResponse): boolean {
  switch (fault.kind) {
    case 'reset':
      request.socket.destroy();
      return true;
    case 'silence':
      return true;
    case 'page':
      response.writeHead(fault.status ?? 502, { 'Content-Type': 'text/html' });
      response.end('<html><body>Bad Gateway</body></html>');
      return true;
    case 'exception':
      sendException(response, fault.status ?? 500, {
        code: String(fault.code),
        type: fault.type ?? 'SOME_ERROR',
        message: 'as the test wanted',
      });
      return true;
    default:
      return false;
  }
}

/** Sends a result, or what a fault makes of it. */
function finish(
  fault: Fault | undefined,
  request: IncomingMessage,
  response: ServerResponse,
  params: URLSearchParams,
  result: Buffer,
): void {
  if (fault?.kind === 'lost-answer') {
    request.socket.destroy();
    return;
  }
  const wantsGzip =
    params.get('enable_http_compression') === '1' &&
    (request.headers['accept-encoding'] ?? '').includes('gzip');
  response.writeHead(200, {
    'Content-Type': 'application/x-ndjson; charset=UTF-8',
    'X-ClickHouse-Summary': '{"read_rows":"0","written_rows":"0"}',
    'X-ClickHouse-Exception-Tag': TAG,
    ...(wantsGzip ? { 'Content-Encoding': 'gzip' } : {}),
  });
  if (fault?.kind === 'half-answer') {
    response.write(result.subarray(0, result.length >> 1), () => request.socket.destroy());
    return;
  }
  const bytes =
    fault?.kind === 'late-exception' ? Buffer.concat([result, lateException(fault)]) : result;
  response.end(wantsGzip ? gzipSync(bytes) : bytes);
}

/** What a server writes into a result that it cannot finish, since 25.11. */
function lateException({ code = 395, type = 'SOME_ERROR' }: Fault): Buffer {
  const message = `Code: ${code}. DB::Exception: as the test wanted. (${type})\n`;
  return Buffer.from(
    `\r\n__exception__\r\n${TAG}\r\n${message}${message.length} ${TAG}\r\n__exception__\r\n`,
  );
}

function sendException(
  response: ServerResponse,
  status: number,
  error: { code: string; type: string; message: string },
): void {
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=UTF-8',
    'X-ClickHouse-Exception-Code': error.code,
  });
  response.end(
    `Code: ${error.code}. DB::Exception: ${error.message} (${error.type}) (version 26.7.2.1)\n`,
  );
}
