/**
 * Standard input as a log: its beginning is looked at like a file's, and then read on from there.
 *
 * It is read through a process of its own (cat), which keeps it while the embedded store takes this
 * process's standard input away from the engine (store/embedded.ts). Whatever it is (a pipe, a
 * socket, a file at some place in it), the other process inherits it as it stands.
 */
import { Buffer } from 'node:buffer';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { EXIT, InputError } from '../errors.js';
import type { LineReader } from '../input/file-lines.js';
import { SAMPLE_BYTES, type LogHead } from '../input/head.js';
import { StreamLines } from '../input/stream-lines.js';

/** Lines looked at before anything is decided; a pipe may never give as many bytes as a file. */
const SAMPLE_LINES = 1000;

class StdinReader implements LineReader {
  readonly unterminatedBytes = 0;
  #child: ChildProcess | undefined;
  #lines: StreamLines | undefined;
  readonly #ahead: Uint8Array[] = [];
  #aheadAt = 0;
  bytes: Uint8Array = new Uint8Array(0);
  start = 0;
  end = 0;
  offset = 0;
  nextOffset = 0;

  async head(): Promise<LogHead> {
    const child = spawn('cat', [], { stdio: ['inherit', 'pipe', 'inherit'] });
    this.#child = child;
    const text = Readable.from(contentOf(child), { objectMode: false, encoding: 'latin1' });
    const lines = new StreamLines(text, '-', 0, false);
    this.#lines = lines;
    let bytes = 0;
    while (this.#ahead.length < SAMPLE_LINES && bytes < SAMPLE_BYTES && (await lines.next())) {
      this.#ahead.push(lines.bytes);
      bytes += lines.end + 1;
    }
    const sample = Buffer.concat(this.#ahead.flatMap((line) => [line, Buffer.from('\n')]));
    if (sample[0] === 0x1f && sample[1] === 0x8b) {
      throw new InputError(
        '-: expected the lines of a log on standard input, found gzip data\n' +
          '  Give the file itself, or unpack it on the way: zcat FILE | limitlens …',
        EXIT.badLines,
      );
    }
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
    this.#child?.kill();
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

/** @throws InputError 74 when the other process cannot read on, so that no end is taken for the end */
async function* contentOf(child: ChildProcess): AsyncGenerator<Buffer> {
  const closed = once(child, 'close').then(
    ([code, signal]: (number | string | null)[]) => signal ?? code,
    (error: Error) => error.message,
  );
  for await (const chunk of child.stdout! as AsyncIterable<Buffer>) yield chunk;
  const end = await closed;
  if (end === 0) return;
  throw new InputError(
    `-: expected to read standard input to its end, but cat, which reads it, ended with ${end}`,
    EXIT.io,
  );
}

export interface Stdin {
  head(): Promise<LogHead>;
  readonly reader: LineReader;
}

export function openStdin(): Stdin {
  const reader = new StdinReader();
  return { head: () => reader.head(), reader };
}
