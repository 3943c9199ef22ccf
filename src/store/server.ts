/**
 * A ClickHouse server behind a URL.
 *
 * Address, user and password come from the URL, what it lacks from the environment; the path of the
 * URL may name the database. Messages never show the password.
 *
 * Not here: schema, retries, and anything that the embedded engine does as well.
 */
import { EXIT, InputError, quote } from '../errors.js';
import { makeServerClient, type Client } from './client.js';
import { checkName, createDatabase, type DdlTarget } from './ddl.js';
import type { EngineParts } from './engine.js';
import { clickHouseCode } from './retry.js';
import { storeError } from './store-errors.js';

/** Older servers lack settings that exactly-once counting needs. */
const OLDEST_VERSION = [24, 3] as const;

export interface ServerAddress {
  /** Without user, password, path and query. */
  readonly url: string;
  readonly username: string;
  readonly password: string;
  /** From the URL's path. */
  readonly database: string | undefined;
}

/**
 * Takes a `--clickhouse` URL apart. Without a port it means ClickHouse's own, 8123 or 8443, not the
 * web's.
 *
 * @param env CLICKHOUSE_USER and CLICKHOUSE_PASSWORD are used where the URL has none
 * @throws InputError (usage) when it is no http or https URL, or has a query
 */
export function parseServerUrl(text: string, env: NodeJS.ProcessEnv): ServerAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== '') throw noUrl(text);
  // URL drops a port that is the protocol's default, though it was written.
  const authority = /^\w+:\/\/([^/?#]*)/.exec(text.trim())?.[1] ?? '';
  const writtenPort = /:(\d+)$/.exec(authority)?.[1];
  const port = writtenPort ?? (url.protocol === 'https:' ? '8443' : '8123');
  const database = decode(url.pathname.replace(/^\/|\/$/g, ''), text);
  return {
    url: `${url.protocol}//${url.hostname}:${port}`,
    username: decode(url.username, text) || env['CLICKHOUSE_USER'] || 'default',
    password: decode(url.password, text) || env['CLICKHOUSE_PASSWORD'] || '',
    database: database === '' ? undefined : checkName('database', database),
  };
}

function decode(part: string, text: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw noUrl(text);
  }
}

function noUrl(text: string): InputError {
  return new InputError(
    `--clickhouse: expected a URL like http://user@host:8123/database, found ${quote(withoutPassword(text))}`,
    EXIT.usage,
  );
}

function withoutPassword(text: string): string {
  return text.replace(/\/\/[^@/]*@/, '//…@');
}

/**
 * Connects, checks login and version, and makes the database where that is wanted.
 *
 * @param connectTimeoutMs for each of the first requests
 * @param silenceMs after which silence any request is given up; undefined for none
 * @throws InputError io: no answer; configuration: wrong login, too old a server;
 * noInput: no such database, and it is not to be made
 */
export async function openServer(
  address: ServerAddress,
  target: DdlTarget,
  createIfMissing: boolean,
  connectTimeoutMs: number,
  silenceMs?: number,
): Promise<Pick<EngineParts, 'where' | 'writer' | 'reader'>> {
  const where = `${address.url}/${target.database}`;
  const first = connect(address, 'default');
  try {
    await checkVersion(first, where, connectTimeoutMs);
    await ensureDatabase(first, where, target, createIfMissing, connectTimeoutMs);
  } finally {
    await first.close();
  }
  const client = connect(address, target.database, silenceMs);
  return { where, writer: client, reader: client };
}

function connect(address: ServerAddress, database: string, silenceMs?: number): Client {
  const { url, username, password } = address;
  // gzip costs more than it saves where nothing is sent over a wire.
  const isLocal = /^https?:\/\/(localhost|127\.|\[::1\])/.test(url);
  return makeServerClient({ url, username, password, database, compress: !isLocal, silenceMs });
}

async function ask<T>(
  client: Client,
  where: string,
  timeoutMs: number,
  query: string,
  params: Record<string, unknown> = {},
): Promise<T | undefined> {
  try {
    const result = await client.query({
      query,
      query_params: params,
      format: 'JSONEachRow',
      abort_signal: AbortSignal.timeout(timeoutMs),
    });
    const [row] = await result.json<T>();
    return row;
  } catch (error) {
    const meant = storeError(error, where);
    if (meant instanceof InputError || clickHouseCode(error) !== undefined) throw meant;
    throw notClickHouse(where, meant.message, error);
  }
}

/** A page in place of a row, or a protocol that is not HTTP. */
function notClickHouse(where: string, found: string, cause?: unknown): InputError {
  return new InputError(
    `${where}: expected ClickHouse’s HTTP interface, found something else (${quote(found)})\n` +
      '  Check the address: the HTTP port is 8123 (8443 with https), not the native 9000.',
    EXIT.io,
    { cause },
  );
}

async function checkVersion(client: Client, where: string, timeoutMs: number): Promise<void> {
  const query = 'SELECT version() AS version';
  const row = await ask<{ version: string }>(client, where, timeoutMs, query);
  if (row === undefined) throw notClickHouse(where, '');
  const [major = 0, minor = 0] = row.version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_VERSION;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return;
  throw new InputError(
    `${where}: expected ClickHouse ${OLDEST_VERSION.join('.')} or newer, found ${quote(row.version)}\n` +
      '  Use a newer server, or the embedded store with --store.',
    EXIT.configuration,
  );
}

async function ensureDatabase(
  client: Client,
  where: string,
  target: DdlTarget,
  createIfMissing: boolean,
  timeoutMs: number,
): Promise<void> {
  const query = 'SELECT count() AS found FROM system.databases WHERE name = {name:String}';
  const params = { name: target.database };
  const row = await ask<{ found: number | string }>(client, where, timeoutMs, query, params);
  if (Number(row?.found) > 0) return;
  if (!createIfMissing) {
    throw new InputError(
      `${where}: expected a limitlens store, found no database ${target.database}\n` +
        '  Make one with `limitlens import`, or name the right one with --database.',
      EXIT.noInput,
    );
  }
  try {
    await client.command({ query: createDatabase(target) });
  } catch (error) {
    throw storeError(error, where);
  }
}
