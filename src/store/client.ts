/**
 * The door to @clickhouse/client: how every client of limitlens is made.
 *
 * Not here: what is asked of it (engine.ts).
 */
import {
  ClickHouseLogLevel,
  createClient,
  type ClickHouseClient,
  type ClickHouseClientConfigOptions,
  type ClickHouseSettings,
} from '@clickhouse/client';

export type Client = ClickHouseClient;
export type Settings = ClickHouseSettings;

/** Above every max_execution_time and its grace; each request has its own, shorter limit. */
const REQUEST_TIMEOUT_MS = 3_600_000;
const MOST_HEADER_BYTES = 1 << 20;

// With the u flag a whole pair is one character, so that only lone halves match.
const LONE_SURROGATE = /\p{Surrogate}/gu;

/**
 * JSON for the engine. Half of a surrogate pair, as a text cut in the middle leaves behind, is
 * refused by ClickHouse with the whole insert: it becomes U+FFFD.
 */
export function stringify(value: unknown): string {
  const text = JSON.stringify(value);
  return text.includes('\\ud')
    ? JSON.stringify(value, (_, part: unknown) =>
        typeof part === 'string' ? part.replace(LONE_SURROGATE, '\ufffd') : part,
      )
    : text;
}

const OPTIONS: ClickHouseClientConfigOptions = {
  application: 'limitlens',
  // Failures are thrown, and told once, in our words.
  log: { level: ClickHouseLogLevel.OFF },
  json: { parse: JSON.parse, stringify },
};

export interface ServerClientOptions {
  readonly url: string;
  readonly username: string;
  readonly password: string;
  readonly database: string;
  /** gzip both ways. */
  readonly compress: boolean;
  /** After which silence a request is given up; undefined for none but its own limit. */
  readonly silenceMs?: number | undefined;
}

export function makeServerClient(options: ServerClientOptions): Client {
  const { url, username, password, database, compress, silenceMs } = options;
  return createClient({
    ...OPTIONS,
    ...{ url, username, password, database },
    // A silent socket's, whether it connects, sends or waits.
    request_timeout: silenceMs ?? REQUEST_TIMEOUT_MS,
    // Progress comes as headers, one each time.
    max_response_headers_size: MOST_HEADER_BYTES,
    compression: { request: compress, response: compress },
  });
}

/** @param connection as chdb makes it */
export function makeEmbeddedClient(connection: object): Client {
  type Connection = NonNullable<ClickHouseClientConfigOptions['connection']>;
  return createClient({ ...OPTIONS, connection: connection as Connection });
}
