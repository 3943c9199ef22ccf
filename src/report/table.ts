/**
 * Tables of text for a terminal: columns as wide as their content, numbers to the right.
 *
 * Cells can hold what clients sent: control characters are shown, not sent to the terminal.
 */
import { quote } from '../errors.js';

export interface Column {
  readonly title: string;
  readonly isNumber?: boolean;
}

const LONGEST_CELL = 60;

/** A cell from text of unknown origin: one line, harmless, not too long. */
export function cell(text: string, longest = LONGEST_CELL): string {
  const shown = quote(text, 4 * longest)
    .slice(1, -1)
    .replaceAll('\\"', '"');
  return shown.length <= longest ? shown : `${shown.slice(0, longest - 1)}…`;
}

/** Text whose every control character but the line feed is shown instead of sent. */
export function harmless(text: string): string {
  return text.replace(
    /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** 1234567 as `1,234,567`. */
export function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** A share with two decimals; `-` of nothing. */
export function share(part: number, whole: number): string {
  return whole === 0 ? '-' : `${((100 * part) / whole).toFixed(2)} %`;
}

/** Lines of the table, the titles first; nothing for no rows. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  const titles = columns.map((column) => column.title);
  const widths = columns.map((_, i) =>
    Math.max(...[titles, ...rows].map((row) => (row[i] ?? '').length)),
  );
  return [titles, ...rows].map((row) =>
    columns
      .map((column, i) => {
        const text = row[i] ?? '';
        return column.isNumber === true ? text.padStart(widths[i]!) : text.padEnd(widths[i]!);
      })
      .join('  ')
      .trimEnd(),
  );
}
