/**
 * The values of one access-log line, by the name of their variable.
 *
 * Text is latin1, one character a byte, with the log's escapes undone.
 */
import { isAbsent, unescapeDefault, unescapeJson } from '../../parsers/access/escape.js';
import type { LineScanner } from '../../parsers/access/line-scanner.js';

/** Reads them where a scanner has found them. */
export class AccessValues {
  readonly #scanner: LineScanner;
  readonly #bytes: Uint8Array;

  /** @param scanner has just fitted all of `bytes` */
  constructor(scanner: LineScanner, bytes: Uint8Array) {
    this.#scanner = scanner;
    this.#bytes = bytes;
  }

  has(name: string): boolean {
    return this.#scanner.indexOf(name) >= 0;
  }

  /** null when the format lacks the variable, or the value is absent. */
  get(...names: readonly string[]): string | null {
    for (const name of names) {
      const value = this.#value(name);
      if (value !== null) return value;
    }
    return null;
  }

  #value(name: string): string | null {
    const { starts, ends, format } = this.#scanner;
    const index = this.#scanner.indexOf(name);
    if (index < 0) return null;
    const start = starts[index]!;
    const end = ends[index]!;
    if (isAbsent(this.#bytes, start, end, format.escape)) return null;
    const out = Buffer.from(this.#bytes.subarray(start, end));
    if (format.escape === 'none') return out.toString('latin1');
    const unescape = format.escape === 'json' ? unescapeJson : unescapeDefault;
    return out.subarray(0, unescape(out, 0, out.length, out, 0)).toString('latin1');
  }
}
