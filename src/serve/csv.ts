/**
 * Tables as CSV by RFC 4180, for a spreadsheet.
 *
 * A key is whatever a client sends. Spreadsheets take a cell that begins with `=`, `+`, `-` or `@` for
 * a formula and would run it, so text that does gets an apostrophe in front (OWASP's advice). JSON has
 * every value as it is.
 */
import type { Cell, Column } from '../../dashboards/page/wire.js';

/** @param hidden columns that are there for links only */
export function csv(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  hidden: readonly string[] = [],
): string {
  const shown = [...columns.entries()].filter(([, { name }]) => !hidden.includes(name));
  const head = shown.map(([, { name }]) => quoteCell(name));
  const lines = rows.map((row) => shown.map(([at, column]) => cellText(row[at] ?? null, column)));
  return [head, ...lines].map((cells) => `${cells.join(',')}\r\n`).join('');
}

function cellText(value: Cell, { type }: Column): string {
  if (value === null) return '';
  if (type === 'time') return new Date(Number(value)).toISOString();
  if (type === 'number') return String(value);
  const text = String(value);
  return quoteCell(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
}

function quoteCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
