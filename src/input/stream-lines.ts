/**
 * Lines of a stream: standard input, an error log.
 *
 * split2 finds the lines. The stream is read as latin1, where one character is one byte, so that
 * offsets stay true and hostile bytes stay what they are; text is decoded by whoever needs text.
 *
 * The last line of a stream is given even without a newline when nothing can follow it (a pipe);
 * of a file that may still grow it is not, and `unterminatedBytes` tells of it.
 */
import { Buffer } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { pipeline, Readable, type Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import split2 from 'split2';
import { gzipError, type LineReader } from './file-lines.js';

const CHUNK_BYTES = 1 << 16;

export class StreamLines implements LineReader {
  bytes: Uint8Array = new Uint8Array(0);
  start = 0;
  end = 0;
  offset: number;
  nextOffset: number;
  unterminatedBytes = 0;
  readonly #lines: Transform;
  readonly #iterator: AsyncIterator<string>;
  readonly #mayGrow: boolean;
  readonly #what: string;
  /** One line is read ahead: only the end of the stream tells that the last one has no newline. */
  #ahead: string | undefined;
  #endsInLine = false;
  #isDone = false;
  #text = '';

  /**
   * @param source a latin1 stream that begins at `fromOffset`
   * @param what named in errors: the file, or `-`
   * @param mayGrow whether an unterminated last line may still be completed
   */
  constructor(source: Readable, what: string, fromOffset: number, mayGrow: boolean) {
    this.offset = fromOffset;
    this.nextOffset = fromOffset;
    this.#mayGrow = mayGrow;
    this.#what = what;
    this.#lines = split2('\n', { decodeStrings: false });
    source.on('data', (chunk: string) => {
      if (chunk.length > 0) this.#endsInLine = !chunk.endsWith('\n');
    });
    // An error destroys the lines with it, and so reaches the iterator.
    pipeline(source, this.#lines, () => undefined);
    this.#iterator = (this.#lines as AsyncIterable<string>)[Symbol.asyncIterator]();
  }

  /** The current line as latin1 text. */
  get text(): string {
    return this.#text;
  }

  async next(): Promise<boolean> {
    if (this.#ahead === undefined && !this.#isDone) this.#ahead = await this.#pull();
    const line = this.#ahead;
    if (line === undefined) return false;
    this.#ahead = await this.#pull();
    const isLast = this.#ahead === undefined;
    if (isLast && this.#endsInLine && this.#mayGrow) {
      this.unterminatedBytes = line.length;
      return false;
    }
    this.offset = this.nextOffset;
    this.nextOffset += line.length + (isLast && this.#endsInLine ? 0 : 1);
    this.#text = line;
    this.bytes = Buffer.from(line, 'latin1');
    this.end = this.bytes.length;
    return true;
  }

  close(): void {
    this.#lines.destroy();
  }

  async #pull(): Promise<string | undefined> {
    if (this.#isDone) return undefined;
    try {
      const result = await this.#iterator.next();
      if (result.done !== true) return result.value;
    } catch (error) {
      throw gzipError(this.#what, this.nextOffset, error);
    }
    this.#isDone = true;
    return undefined;
  }
}

/** A file, plain or gzipped; of a gzipped one what lies before `fromOffset` is read and passed over. */
export async function openStreamLines(
  path: string,
  isGzip: boolean,
  fromOffset: number,
  toOffset = Infinity,
): Promise<StreamLines> {
  if (!isGzip) {
    const file = createReadStream(path, {
      encoding: 'latin1',
      start: fromOffset,
      end: toOffset - 1,
      highWaterMark: CHUNK_BYTES,
    });
    return new StreamLines(file, path, fromOffset, true);
  }
  const gunzip = createGunzip();
  gunzip.setEncoding('latin1');
  pipeline(createReadStream(path), gunzip, () => undefined);
  const isCut = toOffset < Number.MAX_SAFE_INTEGER;
  const content = isCut ? Readable.from(upTo(gunzip, toOffset), { encoding: 'latin1' }) : gunzip;
  const lines = new StreamLines(content, path, 0, isCut);
  while (lines.nextOffset < fromOffset && (await lines.next()));
  return lines;
}

/** The first `bytes` of a latin1 stream, where one character is one byte. */
async function* upTo(source: Readable, bytes: number): AsyncGenerator<string> {
  let left = bytes;
  for await (const chunk of source as AsyncIterable<string>) {
    yield chunk.slice(0, left);
    left -= chunk.length;
    if (left <= 0) return;
  }
}

/** A log of which nothing is to be read. */
export function noLines(path: string, atOffset: number): StreamLines {
  return new StreamLines(Readable.from([]), path, atOffset, true);
}
