/**
 * Plans, once per log_format, how the end of each value will be found.
 *
 * A value ends where the bytes say so (a quote that escaping keeps out of it), where its grammar
 * says so (three digits of a status), or at one of several places where the next literal stands.
 *
 * Not here: the scan itself (line-scanner.ts), and the grammars (value-grammar.ts).
 */
import type { Escape } from './format-text.js';
import {
  type NextValue,
  type ValueKind,
  alphabetOf,
  endsBefore,
  fixedLengthOf,
  kindOf,
} from './value-grammar.js';

/** How the end of a value is found. */
type Mode = 'to_byte' | 'to_line_end' | 'measured' | 'first_fit' | 'last_fit';

export interface Slot extends NextValue {
  readonly variable: string;
  readonly mode: Mode;
}

/** The modes and kinds as small numbers: comparing strings would cost per value and line. */
export const TO_BYTE = 0;
export const TO_BYTE_JSON = 1;
export const TO_LINE_END = 2;
export const FIRST_FIT = 3;
export const LAST_FIT = 4;
export const WORD = 5;
export const STATUS = 6;
export const TIME_LOCAL = 7;
export const TIME_ISO8601 = 8;
export const MILLISECONDS = 9;
export const INTEGER = 10;
export const DECIMAL = 11;
export const INTEGER_LIST = 12;
export const DECIMAL_LIST = 13;
export const WORD_LIST = 14;

const MEASURED: Record<Exclude<ValueKind, 'text'>, number> = {
  word: WORD,
  status: STATUS,
  time_local: TIME_LOCAL,
  time_iso8601: TIME_ISO8601,
  milliseconds: MILLISECONDS,
  integer: INTEGER,
  decimal: DECIMAL,
  integer_list: INTEGER_LIST,
  decimal_list: DECIMAL_LIST,
  word_list: WORD_LIST,
};

/** Decides for every value how its end will be found. */
export function planSlots(
  escape: Escape,
  literals: readonly string[],
  variables: readonly string[],
): Slot[] {
  const values = variables.map((variable) => {
    const kind = kindOf(variable);
    return { variable, kind, alphabet: alphabetOf(kind, escape) };
  });
  return values.map((value, i) => {
    const literal = literals[i + 1]!;
    const isLast = i === values.length - 1;
    if (value.kind === 'text') {
      if (isLast && literal === '') return { ...value, mode: 'to_line_end' };
      const stop = literal.charCodeAt(0);
      // NaN, for no literal, is in no alphabet and must not count as a border.
      if (literal !== '' && value.alphabet[stop] === 0) return { ...value, mode: 'to_byte' };
    } else if (endsBefore(value.kind, value.alphabet, literal, values[i + 1])) {
      return { ...value, mode: 'measured' };
    }
    const isUnique = hasOneBorder(i, literals, values);
    return { ...value, mode: isUnique ? 'first_fit' : 'last_fit' };
  });
}

/**
 * Whether at most one border of value `index` can fit.
 *
 * So it is when some byte further on can stand neither in the value nor in anything between: it
 * is then the first such byte of the line, and from it back to the border every value must be
 * bounded on its left by a byte that it can't hold, or have a fixed length. The end of the line
 * serves as such a byte.
 */
function hasOneBorder(
  index: number,
  literals: readonly string[],
  values: readonly NextValue[],
): boolean {
  const crossed: Uint8Array[] = [values[index]!.alphabet];
  for (let i = index + 1; ; i++) {
    for (const char of literals[i]!) {
      if (crossed.every((alphabet) => alphabet[char.charCodeAt(0)] === 0)) return true;
    }
    if (i === values.length) return true;
    const value = values[i]!;
    const left = literals[i]!.at(-1);
    const isBounded = left !== undefined && value.alphabet[left.charCodeAt(0)] === 0;
    if (!isBounded && fixedLengthOf(value.kind) === 0) return false;
    crossed.push(value.alphabet);
  }
}

export function opOf(slot: Slot, escape: Escape): number {
  switch (slot.mode) {
    case 'to_byte':
      return escape === 'json' ? TO_BYTE_JSON : TO_BYTE;
    case 'to_line_end':
      return TO_LINE_END;
    case 'first_fit':
      return FIRST_FIT;
    case 'last_fit':
      return LAST_FIT;
    case 'measured':
      return MEASURED[slot.kind as Exclude<ValueKind, 'text'>];
  }
}

/** Bytes above 0x7e are let through in text: a line that went through a transcoder is still one. */
export function matchingAlphabet(slot: Slot): Uint8Array {
  if (slot.kind !== 'text') return slot.alphabet;
  return slot.alphabet.map((allowed, byte) => (byte > 0x7e ? 1 : allowed));
}
