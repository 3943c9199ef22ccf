/**
 * Tables that fit the terminal: columns that matter least are left out where it is narrow, and the
 * last one takes what is left.
 */
import { columnsOf, cutText, fitText } from './terminal-text.js';

export type Style = 'bad' | 'warn' | 'soft' | 'title';

export interface Cell {
  readonly text: string;
  readonly style?: Style;
}

export interface FittedColumn {
  readonly title: string;
  readonly isNumber?: boolean;
  /** The higher, the sooner it is left out; 0 stays. */
  readonly rank: number;
}

export interface Look {
  readonly columns: number;
  readonly isUtf8: boolean;
  readonly hasColour: boolean;
}

const SGR: Readonly<Record<Style, string>> = {
  bad: '31',
  warn: '33',
  soft: '2',
  title: '1',
};
const GAP = 2;
/** A name may take so many columns before numbers are left out for it. */
const LONGEST_NAME = 24;

/** Text in a style, if the terminal has colours. */
export function styled(text: string, style: Style | undefined, { hasColour }: Look): string {
  return hasColour && style !== undefined && text !== ''
    ? `\u001b[${SGR[style]}m${text}\u001b[0m`
    : text;
}

/**
 * Lines of the table, the titles first, none wider than the look.
 *
 * @param rows harmless texts, a cell for each column
 */
export function fittedTable(
  columns: readonly FittedColumn[],
  rows: readonly (readonly Cell[])[],
  look: Look,
): string[] {
  const widths = columns.map(({ title, isNumber }, i) => {
    const widest = Math.max(columnsOf(title), ...rows.map((row) => columnsOf(row[i]!.text)));
    return isNumber === true ? widest : Math.min(widest, LONGEST_NAME);
  });
  const kept = columnsThatFit(columns, widths, look.columns);
  const last = kept.at(-1)!;
  const others = kept.slice(0, -1).reduce((sum, i) => sum + widths[i]! + GAP, 0);
  if (columns[last]!.isNumber !== true) widths[last] = Math.max(0, look.columns - others);
  const titles = columns.map(({ title }): Cell => ({ text: title, style: 'title' }));
  return [titles, ...rows].map((row) => lineOf(row, columns, kept, widths, look));
}

function columnsThatFit(
  columns: readonly FittedColumn[],
  widths: readonly number[],
  width: number,
): number[] {
  let kept = columns.map((_, i) => i);
  const total = (): number => kept.reduce((sum, i) => sum + widths[i]! + GAP, -GAP);
  while (total() > width) {
    const rank = Math.max(...kept.map((i) => columns[i]!.rank));
    if (rank === 0) break;
    const gone = kept.findLast((i) => columns[i]!.rank === rank);
    kept = kept.filter((i) => i !== gone);
  }
  return kept;
}

function lineOf(
  row: readonly Cell[],
  columns: readonly FittedColumn[],
  kept: readonly number[],
  widths: readonly number[],
  look: Look,
): string {
  let left = look.columns;
  const parts: string[] = [];
  for (const [n, i] of kept.entries()) {
    const isLast = n === kept.length - 1;
    const width = Math.min(widths[i]!, left);
    const side = columns[i]!.isNumber === true ? 'right' : 'left';
    const { text, style } = row[i]!;
    const shown =
      isLast && side === 'left'
        ? cutText(text, width, look.isUtf8)
        : fitText(text, width, side, look.isUtf8);
    left -= width;
    const gap = isLast ? 0 : Math.min(GAP, left);
    left -= gap;
    parts.push(styled(shown, style, look) + ' '.repeat(gap));
  }
  return parts.join('');
}
