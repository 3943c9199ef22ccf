/**
 * Lines of a file, plain or gzipped, as byte ranges of one reused buffer.
 *
 * The hot path of an import: plain files are read synchronously into the same memory again and
 * again, and a line is two offsets into it. Offsets count the bytes of the content, after gunzip.
 *
 * A last line without a newline is still being written: it is not given, and `unterminatedBytes`
 * tells of it. In a gzipped file, which nobody writes to any more, it is a line.
 */
import { closeSync, createReadStream, openSync, readSync } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { pipeline, type Readable } from 'node:stream';
import { EXIT, InputError } from '../errors.js';

const DEFAULT_CHUNK_BYTES = 1 << 18;
/** No line of nginx comes near this; longer ones are given as they are cut, and will not parse. */
const MOST_LINE_BYTES = 1 << 20;
/** What zlib has unpacked of a chunk is lost when damage comes before the chunk is full. */
const GZIP_CHUNK_BYTES = 1 << 16;
const LEAST_GZIP_CHUNK_BYTES = 64;
const LINE_FEED = 0x0a;

/** What every reader of lines offers. */
export interface LineReader {
  /** Moves to the next line: true, or false at the end. A promise while bytes are awaited. */
  next(): boolean | Promise<boolean>;
  /** The current line is bytes[start, end). Valid until the next call. */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** Byte offset of the current line in the content, and of what follows it. */
  readonly offset: number;
  readonly nextOffset: number;
  readonly unterminatedBytes: number;
  close(): void;
}

export interface FileLinesOptions {
  readonly isGzip: boolean;
  /** Where to begin, in bytes of content. */
  readonly fromOffset: number;
  /** Where to end, in bytes of content; a plain file that grows meanwhile is left for next time. */
  readonly toOffset?: number;
  readonly chunkBytes?: number;
}

export class FileLines implements LineReader {
  bytes: Uint8Array;
  /** The same memory, for its native search. */
  #buffer: Buffer;
  start = 0;
  end = 0;
  unterminatedBytes = 0;
  readonly #path: string;
  readonly #isGzip: boolean;
  readonly #chunkBytes: number;
  #fd = -1;
  #position: number;
  #stream: Readable | undefined;
  #chunks: AsyncIterator<Buffer> | undefined;
  #skip = 0;
  readonly #toOffset: number;
  /** Filled part of the buffer, and where the next line begins in it. */
  #filled = 0;
  #at = 0;
  /** No line feed lies in [#at, #searched). */
  #searched = 0;
  /** Content offset of bytes[0]. */
  #base: number;
  #isAtEnd = false;
  /** The content goes on behind toOffset. */
  #isCut = false;

  /** @throws InputError 66 for a missing or unreadable file */
  constructor(path: string, options: FileLinesOptions) {
    this.#path = path;
    this.#isGzip = options.isGzip;
    this.#chunkBytes = options.chunkBytes ?? DEFAULT_CHUNK_BYTES;
    this.bytes = new Uint8Array(this.#chunkBytes * 2);
    this.#buffer = Buffer.from(this.bytes.buffer);
    this.#toOffset = options.toOffset ?? Infinity;
    this.#base = options.fromOffset;
    this.#position = options.fromOffset;
    if (options.isGzip) this.#openGzip(options.fromOffset);
    else this.#fd = openFile(path);
  }

  get offset(): number {
    return this.#base + this.start;
  }

  get nextOffset(): number {
    return this.#base + this.#at;
  }

  next(): boolean | Promise<boolean> {
    const filled = this.#filled;
    // The buffer holds older bytes behind `filled`: a line feed there is none of this content.
    const at = this.#buffer.indexOf(LINE_FEED, this.#searched);
    if (at >= 0 && at < filled) {
      this.start = this.#at;
      this.end = at;
      this.#at = at + 1;
      this.#searched = at + 1;
      return true;
    }
    this.#searched = filled;
    if (this.#isAtEnd) return this.#last();
    if (this.#isGzip) return this.#fillFromStream().then(() => this.next());
    this.#fillFromFile();
    return this.next();
  }

  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd);
    this.#fd = -1;
    this.#stream?.destroy();
  }

  #last(): boolean {
    const left = this.#filled - this.#at;
    if (left > 0 && this.#isGzip && !this.#isCut) {
      this.start = this.#at;
      this.end = this.#filled;
      this.#at = this.#filled;
      return true;
    }
    this.unterminatedBytes = left;
    this.start = this.#at;
    this.end = this.#at;
    return false;
  }

  /** Moves the unfinished line to the front, and makes room behind it. */
  #makeRoom(wanted: number): void {
    const left = this.#filled - this.#at;
    if (left >= MOST_LINE_BYTES) this.#cutLine();
    if (left + wanted > this.bytes.length) {
      const larger = new Uint8Array(Math.max(this.bytes.length * 2, left + wanted));
      larger.set(this.bytes.subarray(this.#at, this.#filled));
      this.bytes = larger;
      this.#buffer = Buffer.from(larger.buffer);
    } else if (this.#at > 0) {
      this.bytes.copyWithin(0, this.#at, this.#filled);
    }
    this.#base += this.#at;
    this.#filled -= this.#at;
    this.#searched -= this.#at;
    this.#at = 0;
  }

  /** An endless line is given in pieces: each is counted as a line that does not parse. */
  #cutLine(): void {
    this.bytes[this.#filled - 1] = LINE_FEED;
    this.#searched = this.#filled - 1;
  }

  #fillFromFile(): void {
    this.#makeRoom(this.#chunkBytes);
    const wanted = Math.min(this.#chunkBytes, this.#toOffset - this.#position);
    const read = wanted <= 0 ? 0 : this.#read(wanted);
    if (read === 0) this.#isAtEnd = true;
    this.#position += read;
    this.#filled += read;
  }

  /** @throws InputError 74 for a disk or a mount that fails */
  #read(wanted: number): number {
    try {
      return readSync(this.#fd, this.bytes, this.#filled, wanted, this.#position);
    } catch (error) {
      throw gzipError(this.#path, this.#position, error);
    }
  }

  #openGzip(fromOffset: number): void {
    const chunkSize = Math.min(
      Math.max(this.#chunkBytes, LEAST_GZIP_CHUNK_BYTES),
      GZIP_CHUNK_BYTES,
    );
    const gunzip = createGunzip({ chunkSize });
    const file = createReadStream(this.#path, { highWaterMark: this.#chunkBytes });
    this.#stream = pipeline(file, gunzip, () => undefined);
    this.#chunks = gunzip[Symbol.asyncIterator]();
    this.#skip = fromOffset;
  }

  async #fillFromStream(): Promise<void> {
    const chunk = await this.#nextChunk();
    if (chunk === undefined) {
      this.#isAtEnd = true;
      return;
    }
    const skipped = Math.min(this.#skip, chunk.length);
    this.#skip -= skipped;
    const left = this.#toOffset - this.#position;
    const wanted = Math.min(chunk.length - skipped, left);
    this.#isCut = wanted < chunk.length - skipped;
    this.#isAtEnd = this.#isCut;
    this.#position += wanted;
    this.#makeRoom(wanted);
    this.bytes.set(chunk.subarray(skipped, skipped + wanted), this.#filled);
    this.#filled += wanted;
  }

  async #nextChunk(): Promise<Buffer | undefined> {
    try {
      const result = await this.#chunks!.next();
      return result.done === true ? undefined : result.value;
    } catch (error) {
      throw gzipError(this.#path, this.#base + this.#filled, error);
    }
  }
}

/** @throws InputError 66 */
export function openFile(path: string): number {
  try {
    return openSync(path, 'r');
  } catch (error) {
    throw new InputError(`${path}: ${whyUnreadable(error)}`, EXIT.noInput, { cause: error });
  }
}

export function whyUnreadable(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return 'no such file';
  if (code === 'EACCES') return 'no permission to read it (add the user to group adm?)';
  if (code === 'EISDIR') return 'is a directory, expected a log file';
  return (error as Error).message;
}

/** What to say of a read that failed after `offset` bytes of content: exit 65 for its data, else 74. */
export function gzipError(path: string, offset: number, error: unknown): InputError {
  if (error instanceof InputError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (!code.startsWith('Z_')) {
    return new InputError(`${path}: after ${offset} bytes ${whyUnreadable(error)}`, EXIT.io, {
      cause: error,
    });
  }
  const what =
    code === 'Z_BUF_ERROR'
      ? 'the gzip data ends too early: the file is truncated'
      : `the gzip data is damaged (${(error as Error).message})`;
  const hint =
    offset === 0
      ? 'Nothing of it can be read: give the log itself, or an undamaged copy.'
      : 'What came before counts; import the whole file to go on from there.';
  return new InputError(
    `${path}: after ${offset} bytes of content ${what}\n  ${hint}`,
    EXIT.badLines,
    { cause: error },
  );
}
