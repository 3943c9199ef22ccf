/**
 * The store: the one interface between limitlens and ClickHouse, embedded or a server.
 *
 * What goes in are blocks of rows, each under a token that counts it once; what comes out are rows
 * of queries. begin(), commit() and checkpoint() make an import survive any crash (write-ahead.ts).
 *
 * Not here: what the rows mean (tables.ts), named queries (queries.ts).
 */
import { EXIT, InputError } from '../errors.js';
import { checkName, type DdlTarget, type Retention } from './ddl.js';
import { openDaemonStore } from './daemon-store.js';
import { daemonOf, openEmbedded, type EmbeddedParts } from './embedded.js';
import { Engine, type EngineParts } from './engine.js';
import { GuardedQueries, type GuardedLimits, type RawConnection } from './guarded-queries.js';
import { prepareSchema } from './migrations.js';
import { DEFAULT_RETRY, type RetryPolicy } from './retry.js';
import { openServer, parseServerUrl, type ServerAddress } from './server.js';
import type { TableName } from './tables.js';
import { WriteAhead, type Checkpoint, type Intent, type PackedCheckpoint } from './write-ahead.js';

export interface StoreOptions {
  /** Folder of an embedded store. Either this or `url`. */
  readonly path?: string;
  /** `http(s)://[user[:password]@]host[:port][/database]` of a server. */
  readonly url?: string;
  /** `limitlens` by default. */
  readonly database?: string;
  /** Name of a cluster of the server: tables become replicated and distributed. */
  readonly cluster?: string;
  readonly createIfMissing: boolean;
  /** Neither makes nor changes tables, and inserts nothing. */
  readonly readOnly?: boolean;
  /** Applied when given and different from what is in force; a new store gets DEFAULT_RETENTION. */
  readonly retention?: Retention;
  /** For the first requests to a server; 10 s by default. */
  readonly connectTimeoutMs?: number;
  readonly retryPolicy?: Partial<RetryPolicy>;
  /** How long one insert may take; 300 s by default. */
  readonly writeSeconds?: number;
  /** After which silence a server is taken to hang; undefined to wait as long as a request may take. */
  readonly silenceMs?: number | undefined;
  /** Does not wait for the tables of a new folder: what is done with the store does. */
  readonly tablesLater?: boolean;
  /** Where CLICKHOUSE_USER and CLICKHOUSE_PASSWORD are looked up; process.env by default. */
  readonly env?: NodeJS.ProcessEnv;
}

/** Rows for one table. The same token must always come with the same rows. */
export interface Block {
  readonly table: TableName;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

/** Rows per insert. The client turns each into text at once, on the thread that also reads logs. */
export const ROWS_PER_INSERT = 10_000;

const CONNECT_TIMEOUT_MS = 10_000;

export class Store {
  /** How messages name this store. */
  readonly where: string;
  /**
   * Tables with a block that a process was killed in so that the engine took it to be there; what is
   * sent again now comes in (lost-blocks.ts).
   */
  readonly lostBlocksOf: readonly string[];
  readonly #engine: Engine;
  readonly #writeAhead: WriteAhead;
  readonly #readOnly: boolean;
  readonly #connect: (() => RawConnection) | undefined;
  readonly #database: string;
  /** The tables of a new folder are being made: nothing can be in it, and all else waits for them. */
  #isMade: Promise<void> | undefined;

  /**
   * @param connect makes one more connection, where the engine runs in this process
   * @param isMade settles when the tables of a new store are there; undefined for an older one
   */
  constructor(
    engine: Engine,
    readOnly: boolean,
    database: string,
    connect: (() => RawConnection) | undefined,
    isMade?: Promise<void>,
    lostBlocksOf: readonly string[] = [],
  ) {
    this.lostBlocksOf = lostBlocksOf;
    this.#database = database;
    this.#connect = connect;
    this.#isMade = isMade;
    // Whoever uses the store first is told.
    isMade?.catch(() => undefined);
    this.where = engine.where;
    this.#engine = engine;
    this.#writeAhead = new WriteAhead(engine);
    this.#readOnly = readOnly;
  }

  /**
   * Inserts a block once, however often it is called with this token. More than ROWS_PER_INSERT
   * rows go in several inserts, cut at the same places each time.
   *
   * @param token see blockToken(); unique per block in the table
   * @throws InputError (io) when the store does not answer, after retries
   */
  async insertBlock(block: Block, token: string): Promise<void> {
    this.#refuseReadOnly();
    await this.#isMade;
    for (let from = 0, part = 0; from < block.rows.length; from += ROWS_PER_INSERT, part++) {
      const isWhole = block.rows.length <= ROWS_PER_INSERT;
      const rows = isWhole ? block.rows : block.rows.slice(from, from + ROWS_PER_INSERT);
      await this.#engine.insert(block.table, block.columns, rows, `${token}#${part}`);
    }
  }

  /**
   * Runs a query. Tables are named without a database; values go in as `{name:Type}` parameters.
   *
   * @returns rows; 64-bit integers are numbers, dates UTC text
   * @throws InputError (io) when it takes longer than maxSeconds (60 by default)
   */
  async query<T>(
    sql: string,
    params: Record<string, unknown> = {},
    options: { readonly maxSeconds?: number } = {},
  ): Promise<T[]> {
    await this.#isMade;
    return this.#engine.rows<T>(sql, params, options.maxSeconds);
  }

  /** Writes down what is about to be counted; see WriteAhead.begin(). */
  async begin(intent: Intent): Promise<void> {
    this.#refuseReadOnly();
    await this.#isMade;
    // From here on the store is as any other.
    this.#isMade = undefined;
    await this.#writeAhead.begin(intent);
  }

  /** Ends an intent with the state it led to; see WriteAhead.commit(). */
  async commit(intent: Intent, state: Checkpoint): Promise<void> {
    this.#refuseReadOnly();
    await this.#writeAhead.commit(intent, state);
  }

  /** As commit(), of a state that is packed already; see packState(). */
  async commitPacked(intent: Intent, state: PackedCheckpoint): Promise<void> {
    this.#refuseReadOnly();
    await this.#writeAhead.commitPacked(intent, state);
  }

  /** Whether this very intent has been committed; see WriteAhead.isCommitted(). */
  async isCommitted(intent: Intent): Promise<boolean> {
    await this.#isMade;
    return this.#writeAhead.isCommitted(intent);
  }

  /** Of the instance's newest intent or checkpoint; 0 when there is none. */
  async newestSequence(instance: string): Promise<number> {
    await this.#isMade;
    return this.#writeAhead.newestSequence(instance);
  }

  /** The intent that a crash left open, if any: import its ranges again before anything else. */
  async pendingIntent(instance: string): Promise<Intent | undefined> {
    if (this.#isMade !== undefined) return undefined;
    return this.#writeAhead.pendingIntent(instance);
  }

  /** Where an instance's last import ended, if there was one. */
  async checkpoint(instance: string): Promise<Checkpoint | undefined> {
    if (this.#isMade !== undefined) return undefined;
    return this.#writeAhead.checkpoint(instance);
  }

  /**
   * A way for others to read the store while it is open here; to be closed before the store.
   *
   * @returns undefined for a store on a server, which they can ask themselves
   */
  guardedQueries(limits?: GuardedLimits): GuardedQueries | undefined {
    if (this.#connect === undefined) return undefined;
    return new GuardedQueries(this.#connect, this.#database, limits);
  }

  /** Waits for what is running, then lets go of the store. */
  async close(): Promise<void> {
    await this.#isMade?.catch(() => undefined);
    await this.#engine.close();
  }

  #refuseReadOnly(): void {
    if (this.#readOnly) throw new Error(`write to ${this.where}, which was opened to read`);
  }
}

/**
 * Opens a store, makes it where that is wanted, and brings its schema up to date.
 *
 * @throws InputError io (74): in use by another process, no permission, no answer;
 * configuration (78): newer schema, wrong login, chdb not installed; noInput (66): missing, or not
 * a store; usage (64): no place given, or a name or URL that cannot be one
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const address =
    options.url === undefined ? undefined : parseServerUrl(options.url, options.env ?? process.env);
  const target: DdlTarget = {
    database: checkName('database', options.database ?? address?.database ?? 'limitlens'),
    ...(options.cluster === undefined ? {} : { cluster: checkName('cluster', options.cluster) }),
  };
  const readOnly = options.readOnly ?? false;
  const create = options.createIfMissing && !readOnly;
  const timeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
  const { connect, isNew, lostBlocksOf, ...parts } = await openParts(
    options,
    address,
    target,
    timeoutMs,
  );
  const engine = await Engine.over({
    ...parts,
    isEmbedded: connect !== undefined,
    isCluster: target.cluster !== undefined,
    retryPolicy: { ...DEFAULT_RETRY, ...options.retryPolicy },
    ...(options.writeSeconds === undefined ? {} : { writeSeconds: options.writeSeconds }),
    ...(address === undefined ? {} : { silenceMs: options.silenceMs }),
  });
  const wishes = { create, readOnly, retention: options.retention };
  try {
    if (isNew === true && options.tablesLater === true) {
      const isMade = prepareSchema(engine, target, wishes);
      return new Store(engine, readOnly, target.database, connect, isMade);
    }
    await prepareSchema(engine, target, wishes);
  } catch (error) {
    await engine.close();
    throw error;
  }
  return new Store(engine, readOnly, target.database, connect, undefined, lostBlocksOf);
}

/** A server; a folder; or, only to read, the daemon that has the folder open. */
async function openParts(
  options: StoreOptions,
  address: ServerAddress | undefined,
  target: DdlTarget,
  timeoutMs: number,
): Promise<Pick<EngineParts, 'where' | 'writer' | 'reader'> & Partial<EmbeddedParts>> {
  const readOnly = options.readOnly ?? false;
  const create = options.createIfMissing && !readOnly;
  if (address !== undefined) {
    return openServer(address, target, create, timeoutMs, options.silenceMs);
  }
  const path = embeddedPath(options);
  const daemon = readOnly ? daemonOf(path) : undefined;
  if (daemon === undefined) return openEmbedded(path, target.database, create);
  return openDaemonStore(path, daemon, target.database, options.env ?? process.env, timeoutMs);
}

function embeddedPath(options: StoreOptions): string {
  if (options.path === undefined || options.path === '') {
    throw new InputError('expected --store PATH or --clickhouse URL, found neither', EXIT.usage);
  }
  if (options.cluster !== undefined) {
    throw new InputError(
      '--cluster: expected --clickhouse URL with it, found an embedded store',
      EXIT.usage,
    );
  }
  return options.path;
}
