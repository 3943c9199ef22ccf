/**
 * The rows of one step, in an order that depends on the rows alone.
 *
 * A step that is done again after a crash must make the same blocks. Its rows are the same ones, but
 * some come out of tables whose order a new process does not share; so they are sorted.
 */
import type { RowSink, RowTable } from '../aggregate/rows.js';
import { RowBlocks } from '../pipeline/row-blocks.js';
import type { Store } from '../store/store.js';
import type { Intent } from '../store/write-ahead.js';

interface StepRow {
  readonly table: RowTable;
  readonly row: readonly unknown[];
  readonly text: string;
}

export class StepRows implements RowSink {
  #rows: StepRow[] = [];

  row(table: RowTable, row: readonly unknown[]): void {
    this.#rows.push({ table, row, text: JSON.stringify(row) });
  }

  get all(): readonly StepRow[] {
    return this.#rows;
  }

  /** Inserts the rows; can be called again after a failure. @throws InputError (io) */
  async insert(store: Store, intent: Intent): Promise<void> {
    this.#rows.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
    const blocks = new RowBlocks(store, intent);
    for (const { table, row } of this.#rows) blocks.row(table, row);
    await blocks.finish();
  }

  clear(): void {
    this.#rows = [];
  }
}
