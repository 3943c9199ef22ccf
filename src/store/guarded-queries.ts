/**
 * Statements of others on the embedded store: read only, bounded in time, rows and memory, and a few
 * at a time.
 *
 * Each runs on a connection of its own, since the embedded engine keeps settings on a connection,
 * and that one gets readonly=1 behind the limits: nothing that follows can lift them. Before that the
 * engine's own formatter reads the statement, and sql-guard.ts judges what it wrote.
 *
 * A statement whose client has gone is killed; its connection is closed when it has ended, for
 * closing under a running statement ends the process.
 */
import { randomUUID } from 'node:crypto';
import {
  COMBINATORS_SQL,
  FunctionRights,
  FUNCTIONS_SQL,
  type EngineFunction,
} from './sql-functions.js';
import { refusalOf, type GuardedPlace } from './sql-guard.js';

/** What this needs of chDB's connection. */
export interface RawConnection {
  query(params: object): Promise<{ readonly stream: AsyncIterable<Buffer> }>;
  close(): Promise<void>;
}

export interface GuardedLimits {
  readonly maxSeconds: number;
  readonly maxResultRows: number;
  readonly maxResultBytes: number;
  readonly maxMemoryBytes: number;
  readonly concurrent: number;
  /** How many wait for their turn; more are refused. */
  readonly waiting: number;
}

export const DEFAULT_GUARDED_LIMITS: GuardedLimits = {
  maxSeconds: 60,
  maxResultRows: 1_000_000,
  maxResultBytes: 64 << 20,
  maxMemoryBytes: 1 << 30,
  concurrent: 2,
  waiting: 64,
};

export interface GuardedStatement {
  readonly sql: string;
  /** Output format where the statement names none. */
  readonly format: string;
  /** Values of `{name:Type}`, as ClickHouse's HTTP interface takes them: escaped text. */
  readonly params: ReadonlyMap<string, string>;
  readonly settings: ReadonlyMap<string, string>;
  /** Aborts when nobody wants the answer any more. */
  readonly gone?: AbortSignal;
}

export interface GuardedResult {
  readonly bytes: Buffer;
  readonly format: string;
}

/** A refusal in ClickHouse's terms. */
export class QueryRefused extends Error {
  override readonly name = 'QueryRefused';
  readonly code: string;
  readonly type: string;

  constructor(code: string, type: string, message: string) {
    super(message);
    this.code = code;
    this.type = type;
  }
}

/** Settings that a statement may come with, beside those of output formats. */
const FREE_SETTINGS = new Set([
  'extremes',
  'join_use_nulls',
  'limit',
  'offset',
  'max_block_size',
  'date_time_output_format',
  'low_cardinality_allow_in_native_format',
]);
const FORMAT_SETTING = /^output_format_(?:json|csv|tsv|pretty|native|decimal)_\w+$/;

/** What clients read. The engine knows more, some of which need a session that is not there. */
const FORMATS =
  /^(?:(?:TabSeparated|TSV)(?:Raw)?(?:WithNames(?:AndTypes)?)?|CSV(?:WithNames(?:AndTypes)?)?|JSON\w*|NDJSON|Pretty\w*|Vertical|Values|XML|Markdown|Native|RowBinary(?:WithNames(?:AndTypes)?)?|Parquet|Arrow(?:Stream)?|Null)$/;

export class GuardedQueries {
  readonly #connect: () => RawConnection;
  readonly #database: string;
  readonly #limits: GuardedLimits;
  readonly #keeper: RawConnection;
  #place: Promise<GuardedPlace> | undefined;
  #keeping: Promise<unknown> = Promise.resolve();
  #running = 0;
  readonly #queue: (() => void)[] = [];
  readonly #open = new Set<Promise<unknown>>();

  /** @param connect a new connection to the engine's data, each call */
  constructor(
    connect: () => RawConnection,
    database: string,
    limits: GuardedLimits = DEFAULT_GUARDED_LIMITS,
  ) {
    this.#connect = connect;
    this.#database = database;
    this.#limits = limits;
    this.#keeper = connect();
  }

  /**
   * @returns the result's bytes, and the format that they are in
   * @throws QueryRefused, or an error with ClickHouse's `code` and `type`
   */
  async run(statement: GuardedStatement): Promise<GuardedResult> {
    const settings = this.#settingsOf(statement);
    const sql = await this.#judge(statement.sql);
    await this.#takeTurn(statement.gone);
    const running = this.#perform(statement, sql, settings);
    this.#open.add(running);
    try {
      return { bytes: await running, format: formatOf(sql) ?? statement.format };
    } finally {
      this.#open.delete(running);
      this.#endTurn();
    }
  }

  /** Waits for what is running. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#open, this.#keeping]);
    await this.#keeper.close();
  }

  /** One statement, as the engine reads it, when it may be run. */
  async #judge(sql: string): Promise<string> {
    this.#place ??= this.#look().catch((error: unknown) => {
      this.#place = undefined;
      throw error;
    });
    const place = await this.#place;
    const formatted = await this.#keep('SELECT formatQuery({sql:String}) FORMAT RawBLOB', { sql });
    const refusal = refusalOf(formatted, place);
    if (refusal !== undefined) {
      throw new QueryRefused('497', 'ACCESS_DENIED', `limitlens: ${refusal}`);
    }
    const format = formatOf(formatted);
    if (format !== undefined) checkFormat(format);
    return formatted;
  }

  async #look(): Promise<GuardedPlace> {
    const rows = async <T>(query: string): Promise<T[]> =>
      (await this.#keep(`${query} FORMAT JSONEachRow`))
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as T);
    const functions = await rows<EngineFunction>(FUNCTIONS_SQL);
    const combinators = await rows<{ name: string }>(COMBINATORS_SQL);
    const databases = await rows<{ name: string }>('SELECT name FROM system.databases');
    return {
      database: this.#database,
      databases: databases.map(({ name }) => name),
      functions: new FunctionRights(
        functions,
        combinators.map(({ name }) => name),
      ),
    };
  }

  /** A statement of ours; a connection does one thing at a time. */
  async #keep(query: string, params: Record<string, string> = {}): Promise<string> {
    const before = this.#keeping;
    const asked = (async () => {
      await before.catch(() => undefined);
      return (await resultOf(this.#keeper, { query, query_params: params })).toString();
    })();
    this.#keeping = asked.catch(() => undefined);
    return asked;
  }

  async #perform(
    statement: GuardedStatement,
    sql: string,
    settings: ReadonlyMap<string, string>,
  ): Promise<Buffer> {
    const connection = this.#connect();
    const tag = `limitlens-${randomUUID()}`;
    const kill = (): void => {
      const query = `KILL QUERY WHERE position(query, '/* ${tag} */') = 1 ASYNC FORMAT Null`;
      this.#keep(query).catch(() => undefined);
    };
    try {
      await resultOf(connection, { query: `USE ${this.#database}` });
      await resultOf(connection, { query: 'SELECT 1', clickhouse_settings: fromMap(settings) });
      for (const [name, value] of statement.params) {
        await resultOf(connection, { query: `SET param_${name} = ${literal(value)}` });
      }
      await resultOf(connection, { query: 'SET readonly = 1' });
      statement.gone?.addEventListener('abort', kill, { once: true });
      return await resultOf(connection, {
        query: `/* ${tag} */ ${sql}`,
        clickhouse_settings: { default_format: statement.format },
      });
    } finally {
      statement.gone?.removeEventListener('abort', kill);
      await connection.close();
    }
  }

  /** @throws QueryRefused for a setting that is not the client's to choose */
  #settingsOf({ settings, params, format }: GuardedStatement): Map<string, string> {
    checkFormat(format);
    for (const name of params.keys()) {
      if (/^\w{1,64}$/.test(name)) continue;
      throw new QueryRefused('36', 'BAD_ARGUMENTS', 'limitlens: no name of a parameter');
    }
    const { maxSeconds, maxResultRows, maxResultBytes, maxMemoryBytes } = this.#limits;
    const bounds = new Map<string, number>([
      ['max_execution_time', maxSeconds],
      ['max_result_rows', maxResultRows],
      ['max_result_bytes', maxResultBytes],
      ['max_memory_usage', maxMemoryBytes],
      ['max_threads', 2],
    ]);
    const taken = new Map<string, string>();
    for (const [name, value] of settings) {
      const bound = bounds.get(name);
      if (bound !== undefined) {
        const wish = Number(value);
        if (wish > 0 && wish < bound) bounds.set(name, wish);
      } else if (FREE_SETTINGS.has(name) || FORMAT_SETTING.test(name)) {
        if (!/^[\w.:-]{0,64}$/.test(value)) {
          throw new QueryRefused('36', 'BAD_ARGUMENTS', `limitlens: no value of ${name}`);
        }
        taken.set(name, value);
      } else {
        const text = /^\w{1,64}$/.test(name) ? name : 'of such a name';
        throw new QueryRefused(
          '164',
          'READONLY',
          `Cannot modify '${text}' setting in readonly mode`,
        );
      }
    }
    for (const [name, value] of bounds) taken.set(name, String(value));
    return taken
      .set('result_overflow_mode', 'throw')
      .set('timeout_overflow_mode', 'throw')
      .set('allow_introspection_functions', '0')
      .set('allow_ddl', '0');
  }

  /** Waits for a place among those that run. @throws QueryRefused when too many wait */
  async #takeTurn(gone: AbortSignal | undefined): Promise<void> {
    if (this.#running < this.#limits.concurrent) {
      this.#running++;
      return;
    }
    if (this.#queue.length >= this.#limits.waiting) {
      throw new QueryRefused(
        '202',
        'TOO_MANY_SIMULTANEOUS_QUERIES',
        'limitlens: too many queries wait for their turn',
      );
    }
    const isMine = await new Promise<boolean>((resolve) => {
      const take = (): void => resolve(true);
      const leave = (): void => {
        const at = this.#queue.indexOf(take);
        if (at < 0) return;
        this.#queue.splice(at, 1);
        resolve(false);
      };
      this.#queue.push(take);
      gone?.addEventListener('abort', leave, { once: true });
      if (gone?.aborted === true) leave();
    });
    if (isMine) return;
    throw new QueryRefused('394', 'QUERY_WAS_CANCELLED', 'limitlens: the client has gone');
  }

  /** Hands the place on. */
  #endTurn(): void {
    const next = this.#queue.shift();
    if (next === undefined) this.#running--;
    else next();
  }
}

async function resultOf(connection: RawConnection, params: object): Promise<Buffer> {
  const { stream } = await connection.query(params);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The format that a formatted statement names: at its end, for SETTINGS are refused. */
function formatOf(sql: string): string | undefined {
  return /\bFORMAT (\w+)$/.exec(sql)?.[1];
}

function checkFormat(format: string): void {
  if (FORMATS.test(format)) return;
  throw new QueryRefused('73', 'UNKNOWN_FORMAT', 'limitlens: no format that is served');
}

function fromMap(settings: ReadonlyMap<string, string>): Record<string, string> {
  return Object.fromEntries(settings);
}

function literal(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}
