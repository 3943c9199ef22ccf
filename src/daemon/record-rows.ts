/**
 * The rows of one record of the spool, in an order that depends on the rows alone.
 *
 * Steps that are done again after a crash must make the same blocks. Their rows are the same ones,
 * but some come out of tables whose order a new process does not share; so they are sorted.
 */
import { ROW_COLUMNS, type RowSink, type RowTable } from '../aggregate/rows.js';
import type { TableRows } from './spool.js';

export class RecordRows implements RowSink {
  readonly #byTable = new Map<RowTable, (readonly unknown[])[]>();
  #count = 0;

  row(table: RowTable, row: readonly unknown[]): void {
    let rows = this.#byTable.get(table);
    if (rows === undefined) this.#byTable.set(table, (rows = []));
    rows.push(row);
    this.#count++;
  }

  get count(): number {
    return this.#count;
  }

  tables(): TableRows[] {
    return (Object.keys(ROW_COLUMNS) as RowTable[]).flatMap((table) => {
      const rows = this.#byTable.get(table) ?? [];
      return rows.length === 0 ? [] : [{ table, columns: ROW_COLUMNS[table], rows: sorted(rows) }];
    });
  }

  clear(): void {
    this.#byTable.clear();
    this.#count = 0;
  }
}

function sorted(rows: readonly (readonly unknown[])[]): (readonly unknown[])[] {
  return rows
    .map((row) => ({ row, text: JSON.stringify(row) }))
    .sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0))
    .map(({ row }) => row);
}
