/**
 * Rows on their way to the store, without what is not to be stored.
 *
 * Keys, paths and methods of examples, and lines that could not be read are what clients wrote or
 * are; the other columns come from the configuration, or count.
 */
import { ROW_COLUMNS, type RowSink, type RowTable } from '../aggregate/rows.js';
import type { Privacy } from './privacy.js';

type Rule = 'key' | 'text' | 'line';

const RULES = {
  key_minutes: { key: 'key' },
  examples: { request_method: 'text', path: 'text', key: 'key' },
  unparsable_samples: { raw: 'line' },
  findings: { subject: 'text', message: 'text', details: 'text' },
} as const satisfies { [T in RowTable]?: Partial<Record<(typeof ROW_COLUMNS)[T][number], Rule>> };

export class PrivateRows implements RowSink {
  readonly #sink: RowSink;
  readonly #privacy: Privacy;
  readonly #rules: ReadonlyMap<RowTable, readonly (readonly [place: number, rule: Rule])[]>;

  constructor(sink: RowSink, privacy: Privacy) {
    this.#sink = sink;
    this.#privacy = privacy;
    const rules = Object.entries(RULES).map(([name, columns]) => {
      const table = name as keyof typeof RULES;
      const places = Object.entries(columns)
        // Lines lose their query strings whatever else is kept.
        .filter(([, rule]) => rule === 'line' || !privacy.keepsKeys)
        .map(([column, rule]): [number, Rule] => [
          (ROW_COLUMNS[table] as readonly string[]).indexOf(column),
          rule,
        ]);
      return [table, places] as const;
    });
    this.#rules = new Map(rules.filter(([, places]) => places.length > 0));
  }

  row(table: RowTable, row: readonly unknown[]): void {
    const rules = this.#rules.get(table);
    if (rules === undefined) {
      this.#sink.row(table, row);
      return;
    }
    const changed = [...row];
    for (const [place, rule] of rules) changed[place] = this.#privacy[rule](String(row[place]));
    this.#sink.row(table, changed);
  }
}
