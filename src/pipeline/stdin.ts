/**
 * Standard input as a log: its beginning is looked at like a file's, and then read on from there.
 */
import { Buffer } from 'node:buffer';
import type { LineReader } from '../input/file-lines.js';
import { SAMPLE_BYTES, type LogHead } from '../input/head.js';
import { StreamLines } from '../input/stream-lines.js';

/** Lines looked at before anything is decided; a pipe may never give as many bytes as a file. */
const SAMPLE_LINES = 1000;

class StdinReader implements LineReader {
  readonly unterminatedBytes = 0;
  #lines: StreamLines | undefined;
  readonly #ahead: Uint8Array[] = [];
  #aheadAt = 0;
  bytes: Uint8Array = new Uint8Array(0);
  start = 0;
  end = 0;
  offset = 0;
  nextOffset = 0;

  async head(): Promise<LogHead> {
    process.stdin.setEncoding('latin1');
    const lines = new StreamLines(process.stdin, '-', 0, false);
    this.#lines = lines;
    let bytes = 0;
    while (this.#ahead.length < SAMPLE_LINES && bytes < SAMPLE_BYTES && (await lines.next())) {
      this.#ahead.push(lines.bytes);
      bytes += lines.end + 1;
    }
    const sample = Buffer.concat(this.#ahead.flatMap((line) => [line, Buffer.from('\n')]));
    return { path: '-', isGzip: false, sample, sizeBytes: 0 };
  }

  next(): boolean | Promise<boolean> {
    const line = this.#ahead[this.#aheadAt];
    if (line !== undefined) {
      this.#aheadAt++;
      this.#show(line);
      return true;
    }
    this.#ahead.length = 0;
    this.#aheadAt = 0;
    return this.#pull();
  }

  close(): void {
    this.#lines?.close();
  }

  async #pull(): Promise<boolean> {
    if (!(await this.#lines!.next())) return false;
    this.#show(this.#lines!.bytes);
    return true;
  }

  #show(line: Uint8Array): void {
    this.bytes = line;
    this.end = line.length;
    this.offset = this.nextOffset;
    this.nextOffset += line.length + 1;
  }
}

export interface Stdin {
  head(): Promise<LogHead>;
  readonly reader: LineReader;
}

export function openStdin(): Stdin {
  const reader = new StdinReader();
  return { head: () => reader.head(), reader };
}
