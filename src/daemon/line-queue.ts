/**
 * Lines of one source that were read and not handed on yet, side by side in one growing buffer.
 *
 * Lines that can't be read again after a crash are held: they are given once they have been stored
 * with the state of a step, so that every step can be done again from what is stored.
 *
 * What a lane reads from. next() gives false when there is nothing more for now. Offsets are those
 * of the source's content, in bytes. Not here: where the lines come from (tail-logs.ts).
 */
import type { LineReader } from '../input/file-lines.js';

const LINE_FEED = 0x0a;
const FIRST_BYTES = 1 << 14;

export class LineQueue implements LineReader {
  bytes: Uint8Array = new Uint8Array(FIRST_BYTES);
  start = 0;
  end = 0;
  readonly unterminatedBytes = 0;
  /** Where the next line begins, and the last one ends, in `bytes`. */
  #at = 0;
  #filled = 0;
  /** Offset in the source of bytes[0]. */
  #baseOffset: number;
  /** Begin of the last line appended. */
  #lastStart = 0;
  readonly #isHeld: boolean;
  /** Offset behind what may be given, where lines are held. */
  #shownOffset: number;

  /** @param isHeld whether lines are given only after show() */
  constructor(offset: number, isHeld = false) {
    this.#baseOffset = offset;
    this.#isHeld = isHeld;
    this.#shownOffset = offset;
  }

  get offset(): number {
    return this.#baseOffset + this.start;
  }

  get nextOffset(): number {
    return this.#baseOffset + this.#at;
  }

  /** Offset behind all lines appended. */
  get endOffset(): number {
    return this.#baseOffset + this.#filled;
  }

  get waitingBytes(): number {
    return this.#filled - this.#at;
  }

  /** A copy of the line appended last, for its time. */
  get lastLine(): Uint8Array {
    return this.bytes.slice(this.#lastStart, Math.max(this.#lastStart, this.#filled - 1));
  }

  append(bytes: Uint8Array, start: number, end: number): void {
    const length = end - start + 1;
    if (this.#filled + length > this.bytes.length) this.#makeRoom(length);
    this.bytes.set(bytes.subarray(start, end), this.#filled);
    this.#lastStart = this.#filled;
    this.#filled += length;
    this.bytes[this.#filled - 1] = LINE_FEED;
  }

  /** What has been appended by now may be given. */
  show(): void {
    this.#shownOffset = this.endOffset;
  }

  next(): boolean {
    if (this.#at >= this.#filled) return false;
    if (this.#isHeld && this.nextOffset >= this.#shownOffset) return false;
    this.start = this.#at;
    this.end = this.bytes.indexOf(LINE_FEED, this.#at);
    this.#at = this.end + 1;
    return true;
  }

  /** What is left, as text without loss. @param isPending whether the current line is part of it */
  left(isPending: boolean): { readonly offset: number; readonly lines: string } {
    const from = isPending ? this.start : this.#at;
    const lines = Buffer.from(this.bytes.subarray(from, this.#filled)).toString('base64');
    return { offset: this.#baseOffset + from, lines };
  }

  /** Appends what left() told. */
  refill(lines: string): void {
    const bytes = Buffer.from(lines, 'base64');
    for (let at = 0, feed; (feed = bytes.indexOf(LINE_FEED, at)) >= 0; at = feed + 1) {
      this.append(bytes, at, feed);
    }
  }

  close(): void {
    return;
  }

  /** Room for more behind; the current line may be pending in a lane, which holds the old buffer. */
  #makeRoom(length: number): void {
    const from = this.start;
    const kept = this.#filled - from;
    let size = FIRST_BYTES;
    while (size < (kept + length) * 2) size *= 2;
    const bytes = new Uint8Array(size);
    bytes.set(this.bytes.subarray(from, this.#filled));
    this.bytes = bytes;
    this.#baseOffset += from;
    this.start = 0;
    this.end -= from;
    this.#at -= from;
    this.#filled -= from;
    this.#lastStart -= from;
  }
}
