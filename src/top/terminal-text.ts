/**
 * Text as wide as a terminal shows it: cut and padded by columns, with nothing in it that could move
 * the cursor or turn the line around.
 *
 * Widths follow Unicode's East Asian Width; of two possible widths the greater one is taken, so that
 * a line never grows beyond its place. Not here: layout (frame.ts).
 */
import { quote } from '../errors.js';

/** Two columns: East Asian Wide and Fullwidth, and what is drawn as a picture. */
const WIDE =
  /[\p{Emoji_Presentation}\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18cff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u;
const MARK = /^[\p{Mn}\p{Me}]$/u;
/**
 * Characters whose width or effect terminals disagree on: unseen ones, unassigned and private ones,
 * halves of pairs, and a mark on a mark, of which any number would fit on one column.
 */
const DOUBTFUL =
  /[\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\ufe00-\ufe0f]|(?<=[\p{Mn}\p{Me}])[\p{Mn}\p{Me}]|^[\p{Mn}\p{Me}]/gu;

/** Text of unknown origin: one line, what is doubtful shown as `\u202e`. @param isUtf8 else ASCII alone */
export function harmlessText(text: string, isUtf8: boolean): string {
  // Longer than any screen is wide; quote() doubles backslashes, as it is JSON.
  const known = quote(text.slice(0, 2000), Infinity).slice(1, -1).replaceAll('\\"', '"');
  return isUtf8 ? known.replace(DOUBTFUL, escape) : known.replace(/[^ -~]/gu, escape);
}

function escape(character: string): string {
  const code = character.codePointAt(0)!.toString(16);
  return code.length <= 4 ? `\\u${code.padStart(4, '0')}` : `\\u{${code}}`;
}

/** Columns of harmless text. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += widthOf(character);
  return columns;
}

function widthOf(character: string): number {
  // Nearly all characters are ASCII.
  if (character <= '~') return 1;
  return MARK.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
}

/** At most so many columns of harmless text, what is left out marked. */
export function cutText(text: string, columns: number, isUtf8: boolean): string {
  if (columnsOf(text) <= columns) return text;
  const ending = isUtf8 ? '…' : '~';
  let cut = '';
  let left = columns - 1;
  for (const character of text) {
    left -= widthOf(character);
    if (left < 0) break;
    cut += character;
  }
  return columns <= 0 ? '' : cut + ending;
}

/** Exactly so many columns: padded, or cut. */
export function fitText(
  text: string,
  columns: number,
  side: 'left' | 'right',
  isUtf8: boolean,
): string {
  const cut = cutText(text, columns, isUtf8);
  const blanks = ' '.repeat(columns - columnsOf(cut));
  return side === 'left' ? cut + blanks : blanks + cut;
}
