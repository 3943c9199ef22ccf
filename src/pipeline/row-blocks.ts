/**
 * Rows into blocks into the store, in an order and with tokens that the same input always gives.
 *
 * A block is cut at a fixed number of rows, never by time, so that bytes read again after a crash
 * make the same blocks, and the store knows those that it has. Inserts run while lines are read;
 * when they fall behind, reading waits.
 */
import { ROW_COLUMNS, type RowSink, type RowTable } from '../aggregate/rows.js';
import { ROWS_PER_INSERT, type Store } from '../store/store.js';
import { blockToken, type Intent } from '../store/write-ahead.js';

/** Blocks waiting for their insert before reading waits as well. */
const MOST_WAITING = 3;

export class RowBlocks implements RowSink {
  readonly #store: Store;
  readonly #intent: Intent;
  readonly #open = new Map<RowTable, unknown[][]>();
  readonly #numbers = new Map<RowTable, number>();
  #waiting = 0;
  #tail: Promise<void>;
  #error: unknown;
  rows = 0;

  /** @param begun the intent is being written down: rows can come, blocks wait for it */
  constructor(store: Store, intent: Intent, begun: Promise<void> = Promise.resolve()) {
    this.#store = store;
    this.#intent = intent;
    this.#tail = begun.catch((error: unknown) => {
      this.#error = error;
    });
  }

  row(table: RowTable, row: readonly unknown[]): void {
    let rows = this.#open.get(table);
    if (rows === undefined) this.#open.set(table, (rows = []));
    rows.push(row as unknown[]);
    this.rows++;
    if (rows.length >= ROWS_PER_INSERT) this.#cut(table, rows);
  }

  /** A promise to wait for when inserts have fallen behind. */
  get pressure(): Promise<void> | undefined {
    if (this.#error !== undefined) return this.#tail.then(() => this.#rethrow());
    return this.#waiting > MOST_WAITING ? this.#tail : undefined;
  }

  /** Inserts what is left, and waits for everything. */
  async finish(): Promise<void> {
    for (const table of Object.keys(ROW_COLUMNS) as RowTable[]) {
      const rows = this.#open.get(table);
      if (rows !== undefined && rows.length > 0) this.#cut(table, rows);
    }
    await this.#tail;
    this.#rethrow();
  }

  #cut(table: RowTable, rows: unknown[][]): void {
    this.#open.set(table, []);
    const number = this.#numbers.get(table) ?? 0;
    this.#numbers.set(table, number + 1);
    const token = blockToken(this.#intent, table, number);
    const block = { table, columns: ROW_COLUMNS[table], rows };
    this.#waiting++;
    this.#tail = this.#tail.then(async () => {
      if (this.#error === undefined) {
        try {
          await this.#store.insertBlock(block, token);
        } catch (error) {
          this.#error = error;
        }
      }
      this.#waiting--;
    });
  }

  #rethrow(): void {
    if (this.#error !== undefined) throw this.#error as Error;
  }
}
