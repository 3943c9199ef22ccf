/**
 * The pieces a key is written from: literals, logged values, addresses, captures, and sequences
 * of them. Maps and geos are such pieces too (map-value.ts, geo-value.ts).
 *
 * Follows ngx_http_complex_value(). Writing allocates nothing.
 */
import { formatAddress } from './address.js';
import type { ByteRange, Line } from './byte-range.js';
import type { KeyWriter } from './key-writer.js';

export interface ValueNode {
  /** Appends the value for a line; false when this line does not tell it. */
  write(line: Line, out: KeyWriter): boolean;
  /** The one field that the value follows from, whatever else the line holds; -1 for none. */
  readonly field?: number;
}

export class Literal implements ValueNode {
  private readonly bytes: Uint8Array;

  constructor(text: string) {
    this.bytes = Buffer.from(text, 'latin1');
  }

  write(_line: Line, out: KeyWriter): boolean {
    out.append(this.bytes, 0, this.bytes.length);
    return true;
  }
}

export class RangeValue implements ValueNode {
  readonly field: number;
  private readonly range: ByteRange;

  constructor(range: ByteRange) {
    this.range = range;
    this.field = range.field;
  }

  write(line: Line, out: KeyWriter): boolean {
    const { range } = this;
    if (!range.locate(line)) return false;
    out.append(range.source, range.start, range.end);
    return true;
  }
}

/** $binary_remote_addr, of a logged $remote_addr. */
export class AddressValue implements ValueNode {
  readonly field: number;
  private readonly text: ByteRange;

  constructor(text: ByteRange) {
    this.text = text;
    this.field = text.field;
  }

  write(line: Line, out: KeyWriter): boolean {
    const { text } = this;
    return text.locate(line) && out.appendAddress(text.source, text.start, text.end);
  }
}

/** $binary_remote_addr, logged itself (as `\xC0\x00\x02\x01`). */
export class RawAddressValue implements ValueNode {
  private readonly raw: ByteRange;

  constructor(raw: ByteRange) {
    this.raw = raw;
  }

  write(line: Line, out: KeyWriter): boolean {
    const { raw } = this;
    if (!raw.locate(line)) return false;
    const bytes = raw.source.subarray(raw.start, raw.end);
    const isAddress = bytes.length === 4 || bytes.length === 16;
    const text = isAddress ? Buffer.from(formatAddress(bytes), 'latin1') : bytes;
    return out.appendAddress(text, 0, text.length);
  }
}

/** `$1` or `$name` in the value beside a regular expression of a map. */
export class CaptureValue implements ValueNode {
  private readonly captures: Captures;
  private readonly group: number | string;

  constructor(captures: Captures, group: number | string) {
    this.captures = captures;
    this.group = group;
  }

  write(_line: Line, out: KeyWriter): boolean {
    const bytes = this.captures.get(this.group);
    if (bytes !== undefined) out.append(bytes, 0, bytes.length);
    return true;
  }
}

/** What the groups of a map's regular expression matched last, by number and by name. */
export class Captures {
  current: ReadonlyMap<number | string, Uint8Array> = new Map();

  get(group: number | string): Uint8Array | undefined {
    return this.current.get(group);
  }
}

export class Sequence implements ValueNode {
  private readonly parts: readonly ValueNode[];

  constructor(parts: readonly ValueNode[]) {
    this.parts = parts;
  }

  write(line: Line, out: KeyWriter): boolean {
    for (const part of this.parts) if (!part.write(line, out)) return false;
    return true;
  }
}

/** Another way to a value, for the lines where the first one fails. */
export class Fallback implements ValueNode {
  private readonly first: ValueNode;
  private readonly second: ValueNode;

  constructor(first: ValueNode, second: ValueNode) {
    this.first = first;
    this.second = second;
  }

  write(line: Line, out: KeyWriter): boolean {
    const { length, nginxLength, addressEnd } = out;
    if (this.first.write(line, out)) return true;
    out.rewind(length, nginxLength, addressEnd);
    return this.second.write(line, out);
  }
}
