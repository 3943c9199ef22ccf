/**
 * What a request to ClickHouse's HTTP interface asks for, after HTTPHandler.cpp: the statement from
 * the URL, the body or both, `param_…`, settings, the format, and who asks.
 *
 * Not here: native compression of bodies, external tables, sessions (their names are ignored).
 */
import { HttpError, type HttpRequest } from '../http/route.js';
import { QueryRefused, type GuardedStatement } from '../store/guarded-queries.js';

export interface Login {
  readonly user: string;
  readonly password: string;
}

export interface ClickHouseRequest {
  /** '' when nothing is asked. */
  readonly sql: string;
  readonly statement: Omit<GuardedStatement, 'sql'>;
  readonly wantsGzip: boolean;
  /** The client reads blocks of the Native format as this revision of the native protocol. */
  readonly revision: number;
  readonly queryId: string | undefined;
}

const DEFAULT_FORMAT = 'TabSeparated';

/** Parameters of the interface itself, and settings that say nothing to an embedded engine. */
const IGNORED = new Set([
  'query',
  'database',
  'default_format',
  'query_id',
  'user',
  'password',
  'quota_key',
  'role',
  'session_id',
  'session_timeout',
  'session_check',
  'session_timezone',
  'client_protocol_version',
  'enable_http_compression',
  'wait_end_of_query',
  'buffer_size',
  'stacktrace',
  'log_comment',
  'log_queries',
  'readonly',
  'cancel_http_readonly_queries_on_client_close',
  'select_sequential_consistency',
  'send_progress_in_http_headers',
]);
const IGNORED_FORM = /^(?:http_\w+|add_http_cors_header)$/;

/** Who asks: a header of its own, Basic or Bearer, or the URL, in the order in which ClickHouse looks. */
export function loginOf({ headers, query }: HttpRequest): Login {
  const [, scheme = '', word = ''] = /^(\w+) +(\S+)/.exec(headers.authorization ?? '') ?? [];
  if (scheme.toLowerCase() === 'bearer') return { user: '', password: word };
  if (scheme.toLowerCase() === 'basic') {
    const [, user = '', password = ''] =
      /^([^:]*):(.*)$/s.exec(Buffer.from(word, 'base64').toString()) ?? [];
    return { user, password };
  }
  const header = (name: string): string | undefined => {
    const value = headers[name];
    // Node reads headers as latin1; clients write them as UTF-8.
    return typeof value === 'string' ? Buffer.from(value, 'latin1').toString() : undefined;
  };
  return {
    user: header('x-clickhouse-user') ?? query.get('user') ?? 'default',
    password: header('x-clickhouse-key') ?? query.get('password') ?? '',
  };
}

/**
 * @param database that of the store; `default` stands for it too
 * @throws QueryRefused for another database, HttpError for a body that can't be read
 */
export async function readRequest(
  request: HttpRequest,
  database: string,
): Promise<ClickHouseRequest> {
  const { headers, query, gone } = request;
  const form = await readForm(request);
  const all = [...query, ...form.fields];
  const asked = query.get('database') ?? String(headers['x-clickhouse-database'] ?? database);
  if (![database, 'default', ''].includes(asked)) {
    throw new QueryRefused('81', 'UNKNOWN_DATABASE', `limitlens: only ${database} is served`);
  }
  if (query.get('compress') === '1' || query.get('decompress') === '1') {
    throw new QueryRefused(
      '48',
      'NOT_IMPLEMENTED',
      'limitlens: expected gzip, or no compression; LZ4 blocks are not spoken',
    );
  }
  const params = new Map<string, string>();
  const settings = new Map<string, string>();
  for (const [name, value] of all) {
    if (name.startsWith('param_')) params.set(name.slice('param_'.length), value);
    else if (!IGNORED.has(name) && !IGNORED_FORM.test(name)) settings.set(name, value);
  }
  const inUrl = query.get('query') ?? '';
  const format = query.get('default_format') ?? String(headers['x-clickhouse-format'] ?? '');
  return {
    sql: inUrl === '' ? form.sql : form.sql === '' ? inUrl : `${inUrl}\n${form.sql}`,
    statement: { format: format === '' ? DEFAULT_FORMAT : format, params, settings, gone },
    wantsGzip:
      query.get('enable_http_compression') === '1' &&
      /\bgzip\b/.test(String(headers['accept-encoding'] ?? '')),
    revision: Number(query.get('client_protocol_version') ?? 0) || 0,
    queryId: /^[\w.-]{1,128}$/.exec(query.get('query_id') ?? '')?.[0],
  };
}

interface Form {
  readonly sql: string;
  readonly fields: readonly (readonly [string, string])[];
}

async function readForm(request: HttpRequest): Promise<Form> {
  if (request.method === 'GET') return { sql: '', fields: [] };
  const body = await request.body();
  const type = request.headers['content-type'] ?? '';
  if (!type.startsWith('multipart/form-data')) return { sql: body.toString(), fields: [] };
  let form: FormData;
  try {
    form = await new Response(body, { headers: { 'content-type': type } }).formData();
  } catch {
    throw new HttpError(400, 'expected a form that can be read');
  }
  const fields: [string, string][] = [];
  for (const [name, value] of form) {
    if (typeof value !== 'string')
      throw new QueryRefused('48', 'NOT_IMPLEMENTED', 'limitlens: tables in a form are not taken');
    fields.push([name, value]);
  }
  return { sql: fields.find(([name]) => name === 'query')?.[1] ?? '', fields };
}
