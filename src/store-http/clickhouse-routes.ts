/**
 * The embedded store, read only, as a ClickHouse server over HTTP: for Grafana, @clickhouse/client
 * and whatever else speaks it, and for limitlens' own commands beside a running daemon.
 *
 * Follows HTTPHandler.cpp in what such clients rely on: where statement, parameters and format come
 * from, X-ClickHouse-… headers, statuses and the text of errors. What may be run, and how much of it
 * at a time, is guarded-queries.ts.
 *
 * Not here: writing, sessions, progress, LZ4.
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { HttpRequest, Reply, Route } from '../http/route.js';
import { QueryRefused, type GuardedQueries } from '../store/guarded-queries.js';
import { loginOf, readRequest, type ClickHouseRequest, type Login } from './clickhouse-request.js';
import { BYTE_PER_COLUMN_REVISION, helloBlock, isHello } from './native-hello.js';

const MOST_STATEMENT_BYTES = 1 << 20;
const pack = promisify(gzip);

/** By code, after exceptionCodeToHTTPStatus(); 500 for all others. */
const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  36: 400,
  46: 404,
  47: 404,
  48: 501,
  60: 404,
  62: 400,
  73: 400,
  81: 404,
  159: 408,
  164: 403,
  202: 429,
  497: 403,
  516: 403,
};

const TYPES: Readonly<Record<string, string>> = {
  JSON: 'application/json; charset=UTF-8',
  JSONCompact: 'application/json; charset=UTF-8',
  JSONStrings: 'application/json; charset=UTF-8',
  JSONEachRow: 'application/x-ndjson; charset=UTF-8',
  JSONCompactEachRow: 'application/x-ndjson; charset=UTF-8',
  CSV: 'text/csv; charset=UTF-8; header=absent',
  CSVWithNames: 'text/csv; charset=UTF-8; header=present',
  TabSeparated: 'text/tab-separated-values; charset=UTF-8',
  TabSeparatedWithNames: 'text/tab-separated-values; charset=UTF-8',
  XML: 'application/xml; charset=UTF-8',
  Native: 'application/octet-stream',
};

export interface ClickHouseEndpoint {
  readonly queries: GuardedQueries;
  readonly database: string;
  readonly allows: (login: Login) => boolean;
}

/** `/` and `/ping`. */
export function clickHouseRoutes(endpoint: ClickHouseEndpoint): Route[] {
  return [
    { path: '/ping', isOpen: true, handle: () => ({ body: 'Ok.\n' }) },
    {
      path: '/',
      methods: ['GET', 'POST'],
      checksLogin: true,
      bodyBytes: MOST_STATEMENT_BYTES,
      handle: (request) => answer(request, endpoint),
    },
  ];
}

async function answer(request: HttpRequest, endpoint: ClickHouseEndpoint): Promise<Reply> {
  try {
    if (!endpoint.allows(loginOf(request))) {
      throw new QueryRefused(
        '516',
        'AUTHENTICATION_FAILED',
        'Authentication failed: password is incorrect, or there is no user with such name',
      );
    }
    const asked = await readRequest(request, endpoint.database);
    if (asked.sql.trim() === '') return { body: 'Ok.\n' };
    return await result(asked, endpoint);
  } catch (error) {
    const { code, type } = error as { code?: unknown; type?: unknown };
    if (typeof code !== 'string' || typeof type !== 'string') throw error;
    return exception(code, type, (error as Error).message);
  }
}

async function result(asked: ClickHouseRequest, endpoint: ClickHouseEndpoint): Promise<Reply> {
  const { statement, sql } = asked;
  const isNative = statement.format === 'Native';
  if (isNative && asked.revision >= BYTE_PER_COLUMN_REVISION && isHello(sql)) {
    return packed(asked, 'Native', await hello(endpoint.queries));
  }
  const { bytes, format } = await endpoint.queries.run({ ...statement, sql });
  return packed(asked, format, bytes);
}

async function hello(queries: GuardedQueries): Promise<Buffer> {
  const { bytes } = await queries.run({
    sql: 'SELECT displayName(), version(), timezone()',
    format: 'JSONCompactEachRow',
    params: new Map(),
    settings: new Map(),
  });
  const [displayName, version, timezone] = JSON.parse(bytes.toString()) as [string, string, string];
  return helloBlock({ displayName, version, timezone });
}

async function packed(asked: ClickHouseRequest, format: string, bytes: Buffer): Promise<Reply> {
  const headers: Record<string, string> = {
    'X-ClickHouse-Format': format,
    'X-ClickHouse-Summary': '{"read_rows":"0","read_bytes":"0","written_rows":"0"}',
    ...(asked.queryId === undefined ? {} : { 'X-ClickHouse-Query-Id': asked.queryId }),
  };
  const type = TYPES[format] ?? 'text/plain; charset=UTF-8';
  // Clients tell an empty result by its length.
  if (!asked.wantsGzip || bytes.length === 0) return { type, body: bytes, headers };
  return { type, body: await pack(bytes), headers: { ...headers, 'Content-Encoding': 'gzip' } };
}

function exception(code: string, type: string, message: string): Reply {
  // The formatter's own words repeat the statement.
  const text = message.replace(/:? In scope SELECT formatQuery\([\s\S]*$/, '').trim();
  return {
    status: STATUS_BY_CODE[code] ?? 500,
    body: `Code: ${code}. DB::Exception: ${text} (${type})\n`,
    headers: { 'X-ClickHouse-Exception-Code': code },
  };
}
