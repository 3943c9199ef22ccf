/**
 * Where the value of a variable stands: in the line itself, or in a small buffer once unescaped.
 *
 * Everything that is a part of something logged (a field, the method in a request line, an
 * argument in a query string) is a ByteRange; finding it allocates nothing.
 *
 * Units: byte offsets. Not here: the fields' places, which the line scanner finds.
 */
import { unescapeDefault, unescapeJson } from '../../parsers/access/escape.js';

/** Offsets of a line's values, still escaped, one per variable of its format. */
export interface FieldOffsets {
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

/** The line that was scanned last. */
export interface Line {
  bytes: Uint8Array;
  fields: FieldOffsets;
}

export type Escape = 'default' | 'json' | 'none';

/** After locate() gave true the value is source[start, end), unescaped. */
export abstract class ByteRange {
  source: Uint8Array = EMPTY;
  start = 0;
  end = 0;
  /** The field that this is, whole; -1 for what is found otherwise. */
  readonly field: number = -1;

  /** Finds the value in a line; false when this line does not tell it. Absent values are empty. */
  abstract locate(line: Line): boolean;

  protected set(source: Uint8Array, start: number, end: number): true {
    this.source = source;
    this.start = start;
    this.end = end;
    return true;
  }
}

export const EMPTY = new Uint8Array(0);

const BACKSLASH = 0x5c;
const HYPHEN = 0x2d;

/** The value of a logged variable. */
export class LoggedField extends ByteRange {
  override readonly field: number;
  private readonly escape: Escape;
  private unescaped = EMPTY;

  constructor(index: number, escape: Escape) {
    super();
    this.field = index;
    this.escape = escape;
  }

  locate(line: Line): boolean {
    const { bytes } = line;
    const start = line.fields.starts[this.field]!;
    const end = line.fields.ends[this.field]!;
    if (this.escape === 'none') return this.set(bytes, start, end);
    // A value that is really "-" is logged alike; absent is by far the more common of the two.
    if (this.escape === 'default' && end - start === 1 && bytes[start] === HYPHEN) {
      return this.set(EMPTY, 0, 0);
    }
    let at = start;
    while (at < end && bytes[at] !== BACKSLASH) at++;
    return at === end ? this.set(bytes, start, end) : this.unescape(bytes, start, end);
  }

  private unescape(bytes: Uint8Array, start: number, end: number): true {
    if (this.unescaped.length < end - start) this.unescaped = new Uint8Array((end - start) * 2);
    const out = this.unescaped;
    const undo = this.escape === 'json' ? unescapeJson : unescapeDefault;
    return this.set(out, 0, undo(bytes, start, end, out, 0));
  }
}

/** A value that the configuration tells. */
export class ConstantRange extends ByteRange {
  constructor(text: string) {
    super();
    const bytes = Buffer.from(text, 'latin1');
    this.set(bytes, 0, bytes.length);
  }

  locate(): boolean {
    return true;
  }
}

/** The first of several ways to find a value that works for a line. */
export class FirstOf extends ByteRange {
  private readonly candidates: readonly ByteRange[];

  constructor(candidates: readonly ByteRange[]) {
    super();
    this.candidates = candidates;
  }

  locate(line: Line): boolean {
    for (const each of this.candidates) {
      if (each.locate(line)) return this.set(each.source, each.start, each.end);
    }
    return false;
  }
}
