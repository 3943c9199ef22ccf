/**
 * One way to speak with ClickHouse, whether it runs in this process or behind a URL.
 *
 * Behaviour of the embedded connection that this hides: settings stay on a connection once sent, so
 * that reads and writes have a connection each; an aborted query goes on, so that each has its
 * max_execution_time; results and inserts are buffered whole, so that inserts are kept small by the
 * caller.
 *
 * Not here: opening (embedded.ts, server.ts), schema and meaning of the rows.
 */
import type { Client, Settings } from './client.js';
import { isSilence, mayPass, retry, type RetryPolicy } from './retry.js';
import { storeError } from './store-errors.js';

/** What a server is given on top of max_execution_time to say that it gave up. */
const GRACE_MS = 15_000;
const DEFAULT_SECONDS = 60;
/** Of a write, unless told otherwise. */
const WRITE_SECONDS = 300;

/** Whoever asks is told of a server that hangs, rather than after several such waits. */
function isPassing(error: unknown): boolean {
  return mayPass(error) && !isSilence(error);
}

export interface EngineParts {
  /** How messages name this store: the folder, or the URL without its password. */
  readonly where: string;
  readonly writer: Client;
  /** The same as `writer` where one connection may do several things at once. */
  readonly reader: Client;
  readonly isEmbedded: boolean;
  /** Tables are Distributed over replicated ones. */
  readonly isCluster: boolean;
  readonly retryPolicy: RetryPolicy;
  /** How long one write may take, where not as long as usual. */
  readonly writeSeconds?: number;
  /** After which silence a server is taken to hang. */
  readonly silenceMs?: number | undefined;
}

/** So many times within the silence that would end a request, a server that works on it says so. */
const SIGNS_OF_LIFE = 4;

/** A busy server is not a silent one: it tells of its progress before its answer. */
function livingSettings(silenceMs: number | undefined): Settings {
  if (silenceMs === undefined) return {};
  return {
    send_progress_in_http_headers: 1,
    http_headers_progress_interval_ms: `${Math.ceil(silenceMs / SIGNS_OF_LIFE)}`,
  };
}

/** What every insert and every change of the schema is run with. */
function writeSettings(isCluster: boolean, seconds = WRITE_SECONDS): Settings {
  return {
    insert_deduplicate: 1,
    // Asynchronous inserts have a deduplication of their own, off by default.
    async_insert: 0,
    max_execution_time: seconds,
    // One log may span many months, and hostile lines may claim any.
    max_partitions_per_insert_block: '0',
    // A new TTL is for what comes; rewriting every old part at once would stop an import.
    materialize_ttl_after_modify: 0,
    ...(isCluster
      ? {
          distributed_foreground_insert: 1,
          distributed_ddl_task_timeout: `${seconds}`,
          insert_quorum: 'auto',
          insert_quorum_parallel: 0,
        }
      : {}),
  };
}

export class Engine {
  readonly where: string;
  readonly #parts: EngineParts;
  readonly #running = new Set<Promise<unknown>>();

  private constructor(parts: EngineParts) {
    this.where = parts.where;
    this.#parts = parts;
  }

  /** Takes over connections that are open and use the store's database. */
  static async over(parts: EngineParts): Promise<Engine> {
    const engine = new Engine(parts);
    if (parts.isEmbedded) {
      const settings = writeSettings(parts.isCluster, parts.writeSeconds);
      await parts.writer.command({ query: 'SELECT 1', clickhouse_settings: settings });
    }
    return engine;
  }

  /** Runs a statement without a result. */
  async command(query: string): Promise<void> {
    await this.#run(this.#parts.writeSeconds ?? WRITE_SECONDS, (signal) =>
      this.#parts.writer.command({ query, clickhouse_settings: this.#ownSettings(), ...signal }),
    );
  }

  /**
   * Runs a query. 64-bit integers come as numbers, dates as UTC text.
   *
   * @param maxSeconds after which the engine gives up, and an InputError says so
   * @throws InputError when the store does not answer, or not in time
   */
  async rows<T>(
    query: string,
    params: Record<string, unknown> = {},
    maxSeconds = DEFAULT_SECONDS,
  ): Promise<T[]> {
    return this.#run(maxSeconds, async (signal) => {
      const result = await this.#parts.reader.query({
        query,
        query_params: params,
        format: 'JSONEachRow',
        clickhouse_settings: {
          max_execution_time: maxSeconds,
          output_format_json_quote_64bit_integers: 0,
          ...livingSettings(this.#parts.silenceMs),
          ...(this.#parts.isCluster ? { select_sequential_consistency: '1' } : {}),
        },
        ...signal,
      });
      return result.json<T>();
    });
  }

  /**
   * Inserts rows as one block.
   *
   * @param token names the block: rows under a token that was seen before are dropped
   */
  async insert(
    table: string,
    columns: readonly string[],
    rows: readonly (readonly unknown[])[],
    token: string,
  ): Promise<void> {
    const [first, ...rest] = columns;
    if (first === undefined) throw new Error(`insert into ${table} without columns`);
    await this.#run(this.#parts.writeSeconds ?? WRITE_SECONDS, (signal) =>
      this.#parts.writer.insert({
        table,
        columns: [first, ...rest],
        values: rows,
        format: 'JSONCompactEachRow',
        clickhouse_settings: { ...this.#ownSettings(), insert_deduplication_token: token },
        ...signal,
      }),
    );
  }

  /**
   * The embedded connection keeps settings once sent, and each that goes with an insert costs a copy
   * of the insert's text (6 ms per 10,000 rows): there, they are sent once.
   */
  #ownSettings(): Settings {
    const { isEmbedded, isCluster, writeSeconds, silenceMs } = this.#parts;
    return isEmbedded
      ? {}
      : { ...writeSettings(isCluster, writeSeconds), ...livingSettings(silenceMs) };
  }

  async close(): Promise<void> {
    // A connection that is closed under a running statement takes the process with it when embedded.
    await Promise.allSettled(this.#running);
    await this.#parts.writer.close();
    if (this.#parts.reader !== this.#parts.writer) await this.#parts.reader.close();
  }

  async #run<T>(
    seconds: number,
    action: (signal: { abort_signal?: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    // Embedded, an abort would only look like one: the engine goes on, and blocks what comes next.
    const attempt = () =>
      action(
        this.#parts.isEmbedded
          ? {}
          : { abort_signal: AbortSignal.timeout(seconds * 1000 + GRACE_MS) },
      );
    const running = retry(attempt, this.#parts.retryPolicy, isPassing).catch((error: unknown) => {
      throw storeError(error, this.where);
    });
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }
}
