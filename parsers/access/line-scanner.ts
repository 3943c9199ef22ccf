/**
 * Finds the values of a log_format's variables in a line.
 *
 * The inverse of ngx_http_log_handler(): literals must stand where the format has them, and each
 * value must look like what nginx writes for its variable under the format's escaping. Where the
 * byte after a value can't stand inside it, one pass from the left is enough, and nothing that a
 * client sent can move a border. Elsewhere the scan tries the possible borders: when only one can
 * work, in the order found; when several may (`ambiguities`), the last one first, so that as much
 * as possible stays in the field that began first.
 *
 * Units: byte offsets in the caller's buffer. Nothing is allocated by a scan.
 *
 * Not here: undoing the escapes (escape.ts), and the meaning of the values.
 */
import {
  DECIMAL,
  DECIMAL_LIST,
  FIRST_FIT,
  INTEGER,
  INTEGER_LIST,
  LAST_FIT,
  MILLISECONDS,
  STATUS,
  TIME_ISO8601,
  TIME_LOCAL,
  TO_BYTE,
  TO_BYTE_JSON,
  TO_LINE_END,
  WORD,
  matchingAlphabet,
  opOf,
  planSlots,
} from './format-plan.js';
import { type LogFormat, splitFormat } from './format-text.js';
import {
  type ValueKind,
  describeVariable,
  isList,
  measureDecimal,
  measureInteger,
  measureList,
  measureMilliseconds,
  measureStatus,
  measureTimeIso8601,
  measureTimeLocal,
} from './value-grammar.js';

export { type Escape, type LogFormat, LogFormatError } from './format-text.js';

/** Borders tried per byte of line before a line of an ambiguous format counts as unfit. */
const TRIES_PER_BYTE = 64;

/**
 * Compiles a log_format.
 *
 * @throws LogFormatError for a format that nginx refuses. One that can be read in several ways
 * compiles; `ambiguities` of the scanner says where.
 */
export function compileLogFormat(format: LogFormat): LineScanner {
  const { literals, variables } = splitFormat(format);
  const last = literals.length - 1;
  const trimmed = [...literals];
  // Spaces at the end of a line are optional (they get lost in editors and shippers), unless they
  // are all that tells the last value from them.
  if (/\S/.test(trimmed[last]!)) trimmed[last] = trimmed[last]!.trimEnd();
  return new LineScanner(format, trimmed, variables);
}

export class LineScanner {
  readonly format: LogFormat;
  readonly variables: readonly string[];
  /** Sentences about the places where two readings of one line are possible. */
  readonly ambiguities: readonly string[];
  /** Byte offsets of the values after a scan that gave -1, still escaped, one per variable. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;

  readonly #literals: readonly string[];
  readonly #literalBytes: Uint8Array;
  /** Offsets in #literalBytes: literal i is [#literalAt[i], #literalAt[i + 1]). */
  readonly #literalAt: Int32Array;
  readonly #ops: Uint8Array;
  readonly #kinds: readonly ValueKind[];
  readonly #alphabets: readonly Uint8Array[];
  readonly #mayBeEmpty: boolean;
  readonly #isJson: boolean;

  /** Values whose border may still be moved, innermost last. */
  readonly #openVariables: Int32Array;
  #openCount = 0;
  #budget = 0;
  #failedAt = 0;
  /** Index of the literal (even: 2i) or variable (odd: 2i + 1) that did not fit. */
  #failedItem = 0;

  constructor(format: LogFormat, literals: readonly string[], variables: readonly string[]) {
    const slots = planSlots(format.escape, literals, variables);
    this.format = format;
    this.variables = variables;
    this.ambiguities = slots
      .filter((slot) => slot.mode === 'last_fit')
      .map((slot) => `the end of $${slot.variable} can be read in several ways`);
    this.starts = new Int32Array(variables.length);
    this.ends = new Int32Array(variables.length);
    this.#literals = literals;
    this.#literalBytes = Buffer.from(literals.join(''), 'latin1');
    this.#literalAt = Int32Array.from(
      [0, ...literals].map((_, i) => literals.slice(0, i).join('').length),
    );
    this.#ops = Uint8Array.from(slots, (slot) => opOf(slot, format.escape));
    this.#kinds = slots.map((slot) => slot.kind);
    this.#alphabets = slots.map(matchingAlphabet);
    this.#mayBeEmpty = format.escape !== 'default';
    this.#isJson = format.escape === 'json';
    this.#openVariables = new Int32Array(variables.length);
  }

  /** Place of a variable (without `$`) in `starts` and `ends`; -1 when the format lacks it. */
  indexOf(variable: string): number {
    return this.variables.indexOf(variable);
  }

  /**
   * Fits bytes[start, end), a line without its newline; a carriage return and spaces at its end
   * are allowed.
   *
   * @returns -1 when the line fits, with `starts` and `ends` set; else the offset, relative to
   * start, of the first byte that no reading could use
   */
  scan(bytes: Uint8Array, start: number, end: number): number {
    const lineEnd = end > start && bytes[end - 1] === 0x0d ? end - 1 : end;
    this.#budget = TRIES_PER_BYTE * (end - start + 64);
    this.#failedAt = start - 1;
    this.#failedItem = 0;
    this.#openCount = 0;
    let index = 0;
    let at = this.#matchLiteral(bytes, 0, start, lineEnd);
    for (;;) {
      at = this.#takeValues(bytes, index, at, lineEnd);
      if (at >= 0 && this.#fitsLineEnd(bytes, at, lineEnd)) return -1;
      if (this.#openCount === 0 || this.#budget <= 0) return this.#failedAt - start;
      const open = this.#openVariables[--this.#openCount]!;
      at = this.#moveBorder(bytes, open, lineEnd);
      index = open + 1;
    }
  }

  /** What the last scan that failed expected at the place it gave back. */
  expected(): string {
    const index = this.#failedItem >> 1;
    if (this.#failedItem % 2 === 1) return describeVariable(this.variables[index]!);
    const literal = this.#literals[index] ?? '';
    if (literal === '') return 'the end of the line';
    const after = index === 0 ? '' : ` after $${this.variables[index - 1]}`;
    return `${JSON.stringify(literal)}${after}`;
  }

  /**
   * Takes the values from `index` on, the first of them at `at`, each with the literal after it.
   *
   * @returns the offset after the last, or -1
   */
  #takeValues(bytes: Uint8Array, index: number, at: number, end: number): number {
    const ops = this.#ops;
    const { starts, ends } = this;
    const literals = this.#literalBytes;
    const literalAt = this.#literalAt;
    let here = at;
    for (let i = index; here >= 0 && i < ops.length; i++) {
      const op = ops[i]!;
      let from = literalAt[i + 1]!;
      starts[i] = here;
      if (op === TO_BYTE) {
        here = afterText(bytes, literals[from]!, here, end);
      } else if (op === TO_BYTE_JSON) {
        here = afterJsonText(bytes, literals[from]!, here, end);
      } else if (op <= LAST_FIT) {
        here = this.#openValue(bytes, i, here, end);
        continue;
      } else {
        const to = this.#measure(op, i, bytes, here, end);
        if (to < 0) return this.#fail(~to, 2 * i + 1);
        here = to;
      }
      ends[i] = here;
      const to = literalAt[i + 2]!;
      while (from < to && here < end && bytes[here] === literals[from]) {
        from++;
        here++;
      }
      if (from !== to) return this.#fail(here, 2 * (i + 1));
    }
    return here;
  }

  /** Takes a value that its own bytes do not end, and the literal after it. */
  #openValue(bytes: Uint8Array, index: number, at: number, end: number): number {
    const op = this.#ops[index]!;
    if (op === TO_LINE_END) {
      this.ends[index] = end;
      return end;
    }
    this.ends[index] = op === FIRST_FIT ? at - 1 : this.#reach(bytes, index, at, end) + 1;
    return this.#moveBorder(bytes, index, end);
  }

  #measure(op: number, index: number, bytes: Uint8Array, at: number, end: number): number {
    switch (op) {
      case WORD: {
        const alphabet = this.#alphabets[index]!;
        let to = at;
        while (to < end && alphabet[bytes[to]!] === 1) to++;
        return to > at || this.#mayBeEmpty ? to : ~at;
      }
      case STATUS:
        return measureStatus(bytes, at, end);
      case TIME_LOCAL:
        return measureTimeLocal(bytes, at, end);
      case TIME_ISO8601:
        return measureTimeIso8601(bytes, at, end);
      case MILLISECONDS:
        return measureMilliseconds(bytes, at, end);
      case INTEGER:
        return measureInteger(bytes, at, end, this.#mayBeEmpty);
      case DECIMAL:
        return measureDecimal(bytes, at, end, this.#mayBeEmpty);
      case INTEGER_LIST:
        return measureList('integer_list', bytes, at, end, this.#mayBeEmpty);
      case DECIMAL_LIST:
        return measureList('decimal_list', bytes, at, end, this.#mayBeEmpty);
      default:
        return measureList('word_list', bytes, at, end, this.#mayBeEmpty);
    }
  }

  /** Offset after literal `index` when it stands at `at`, else -1. */
  #matchLiteral(bytes: Uint8Array, index: number, at: number, end: number): number {
    const literals = this.#literalBytes;
    const to = this.#literalAt[index + 1]!;
    let from = this.#literalAt[index]!;
    let here = at;
    while (from < to && here < end && bytes[here] === literals[from]) {
      from++;
      here++;
    }
    return from === to ? here : this.#fail(here, 2 * index);
  }

  /** Puts the border of an open value at the next place where its literal stands. */
  #moveBorder(bytes: Uint8Array, index: number, end: number): number {
    return this.#ops[index] === FIRST_FIT
      ? this.#moveBorderRight(bytes, index, end)
      : this.#moveBorderLeft(bytes, index, end);
  }

  #moveBorderRight(bytes: Uint8Array, index: number, end: number): number {
    let at = this.ends[index]!;
    // Below the start: no place was tried yet.
    at = at < this.starts[index]! ? at + 1 : this.#afterByte(bytes, index, at, end);
    while (at >= 0) {
      this.#budget--;
      const after = this.#matchLiteral(bytes, index + 1, at, end);
      if (after >= 0) return this.#keepOpen(index, at, after);
      at = this.#afterByte(bytes, index, at, end);
    }
    return -1;
  }

  #moveBorderLeft(bytes: Uint8Array, index: number, end: number): number {
    const lowest = this.starts[index]!;
    for (let at = this.ends[index]! - 1; at >= lowest; at--) {
      this.#budget--;
      if (this.#listEnd(bytes, index, at) !== at) continue;
      const after = this.#matchLiteral(bytes, index + 1, at, end);
      if (after >= 0) return this.#keepOpen(index, at, after);
    }
    return -1;
  }

  #keepOpen(index: number, at: number, after: number): number {
    this.ends[index] = at;
    this.#openVariables[this.#openCount++] = index;
    return after;
  }

  /** Offset after the byte (or JSON escape) at `at` of an open value; -1 when it can't be in one. */
  #afterByte(bytes: Uint8Array, index: number, at: number, end: number): number {
    if (at >= end || this.#alphabets[index]![bytes[at]!] !== 1) return -1;
    const to = this.#isJson && bytes[at] === 0x5c ? at + 2 : at + 1;
    return to <= end ? to : -1;
  }

  /** Where a list that may go on to `end` ends; `end` for a value that is no list. */
  #listEnd(bytes: Uint8Array, index: number, end: number): number {
    const kind = this.#kinds[index]!;
    if (!isList(kind)) return end;
    return measureList(kind, bytes, this.starts[index]!, end, this.#mayBeEmpty);
  }

  /** The rightmost offset at which an open value may end. */
  #reach(bytes: Uint8Array, index: number, at: number, end: number): number {
    if (isList(this.#kinds[index]!)) return Math.max(at - 1, this.#listEnd(bytes, index, end));
    let to = at;
    for (let next = at; next >= 0; next = this.#afterByte(bytes, index, next, end)) to = next;
    this.#budget -= to - at;
    return to;
  }

  #fitsLineEnd(bytes: Uint8Array, at: number, end: number): boolean {
    let to = at;
    while (to < end && bytes[to] === 0x20) to++;
    if (to === end) return true;
    this.#fail(to, 2 * this.#literals.length);
    return false;
  }

  /** Remembers the first failure of those furthest to the right: all before it did fit. */
  #fail(at: number, item: number): -1 {
    if (at > this.#failedAt) {
      this.#failedAt = at;
      this.#failedItem = item;
    }
    return -1;
  }
}

/** Offset of the first `stop`, or `end`. Most bytes of a log are passed over here. */
function afterText(bytes: Uint8Array, stop: number, at: number, end: number): number {
  let to = at;
  for (const near = end - 3; to < near; to += 4) {
    if (bytes[to] === stop) return to;
    if (bytes[to + 1] === stop) return to + 1;
    if (bytes[to + 2] === stop) return to + 2;
    if (bytes[to + 3] === stop) return to + 3;
  }
  while (to < end && bytes[to] !== stop) to++;
  return to;
}

/** Offset of the first `stop` that no backslash protects, or `end`. */
function afterJsonText(bytes: Uint8Array, stop: number, at: number, end: number): number {
  let to = at;
  while (to < end) {
    const byte = bytes[to];
    if (byte === stop) return to;
    to += byte === 0x5c ? 2 : 1;
  }
  return end;
}
