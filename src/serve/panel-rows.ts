/**
 * Runs statements of the catalogue, and gives their rows as the API does: arrays in the order of the
 * columns, times as epoch milliseconds, never more than so many.
 *
 * Not here: HTTP (api.ts), SQL (../../dashboards/catalogue).
 */
import type { TimeRange } from '../../dashboards/expand.js';
import type { Cell, Column } from '../../dashboards/page/wire.js';
import type { Store } from '../store/store.js';
import { bind, type Choice, type Statement } from './panel-statement.js';
import { QueryGate } from './query-gate.js';

export interface QueryLimits {
  readonly seconds: number;
  readonly rows: number;
  /** Statements at a time. */
  readonly running: number;
  readonly waiting: number;
}

export const QUERY_LIMITS: QueryLimits = { seconds: 20, rows: 100_000, running: 2, waiting: 64 };

export interface Table {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
  readonly isCut: boolean;
}

/** By SQL of the catalogue: columns depend on nothing that a request chooses. */
const COLUMNS = new Map<string, readonly Column[]>();

export class PanelRows {
  readonly #store: Store;
  readonly #limits: QueryLimits;
  readonly #gate: QueryGate;

  constructor(store: Store, limits: QueryLimits) {
    this.#store = store;
    this.#limits = limits;
    this.#gate = new QueryGate(limits);
  }

  /**
   * Rows of a statement with macros and variables.
   *
   * @param gone the client's; a statement that waits for its turn is dropped when it aborts
   * @throws InputError when the store does not answer, or not in time; HttpError 503 of QueryGate
   */
  async table(sql: string, range: TimeRange, choice: Choice, gone: AbortSignal): Promise<Table> {
    const most = this.#limits.rows;
    const bound = bind(withLimit(sql, most + 1), range, choice);
    return this.#gate.run(gone, async () => {
      const columns = COLUMNS.get(sql) ?? (await this.#describe(sql, bound));
      const found = await this.#rows<Record<string, unknown>>(bound);
      const rows = found.slice(0, most).map((row) => columns.map((column) => cellOf(row, column)));
      return { columns, rows, isCut: found.length > most };
    });
  }

  /** Rows of a statement of ours as they are. @throws as table() */
  async objects<T>(statement: Statement, gone: AbortSignal): Promise<T[]> {
    return this.#gate.run(gone, () => this.#rows<T>(statement));
  }

  async #describe(sql: string, bound: Statement): Promise<readonly Column[]> {
    const described = { ...bound, sql: `DESCRIBE TABLE (${bound.sql})` };
    const rows = await this.#rows<{ name: string; type: string }>(described);
    const columns = rows.map(({ name, type }) => ({ name, type: typeOf(type) }));
    COLUMNS.set(sql, columns);
    return columns;
  }

  async #rows<T>({ sql, params }: Statement): Promise<T[]> {
    return this.#store.query<T>(sql, params, { maxSeconds: this.#limits.seconds });
  }
}

/** Panels end in ORDER BY or in a LIMIT of their own, which is the lower one. */
function withLimit(sql: string, rows: number): string {
  return /\bLIMIT \d+\s*$/.test(sql) ? sql : `${sql}\nLIMIT ${rows}`;
}

/** @param type of ClickHouse, such as `Nullable(Float64)` or `SimpleAggregateFunction(max, UInt64)` */
function typeOf(type: string): Column['type'] {
  const inner = /(\w+)(?:\([\d, ']*(?:UTC)?'?\))?\)*$/.exec(type)?.[1] ?? type;
  if (inner.startsWith('DateTime')) return 'time';
  return /^(?:U?Int|Float|Decimal)/.test(inner) ? 'number' : 'text';
}

function cellOf(row: Record<string, unknown>, { name, type }: Column): Cell {
  const value = row[name] as string | number | null | undefined;
  if (value === null || value === undefined) return null;
  // The store gives times as UTC text.
  if (type === 'time') return Date.parse(`${String(value).replace(' ', 'T')}Z`);
  return type === 'number' ? Number(value) : String(value);
}
