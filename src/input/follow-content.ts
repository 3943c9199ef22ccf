/**
 * The content of one opened file, plain or gzipped, at any place.
 *
 * The file is held open, so that a rename or a removal does not matter. A gzipped one is unpacked
 * from its beginning; going back begins again, except within what was unpacked last.
 *
 * Units: bytes of content. Not here: lines, and what the content is.
 */
import { open, type FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { createGunzip, type Gunzip } from 'node:zlib';

const GZIP_CHUNK_BYTES = 1 << 16;

export interface FileStatus {
  /** On disk: for a gzipped file not the length of its content. */
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  /** Names that the file still has; 0 once it is removed. */
  readonly links: number;
}

export interface LogContent {
  readonly device: number;
  readonly inode: number;
  readonly isGzip: boolean;
  status(): Promise<FileStatus>;
  /**
   * Reads up to `length` bytes of content at `position` to into[at…].
   *
   * @returns how many; 0 at the end
   * @throws what the file system or zlib says
   */
  read(into: Uint8Array, at: number, length: number, position: number): Promise<number>;
  close(): Promise<void>;
}

/**
 * Opens a file.
 *
 * @param mayBeGzip whether to look for gzip's mark; a log that is being written to has none
 * @throws what the file system says
 */
export async function openContent(path: string, mayBeGzip: boolean): Promise<LogContent> {
  const handle = await open(path, 'r');
  try {
    const status = await handle.stat();
    if (!status.isFile()) {
      throw Object.assign(new Error('is not a regular file'), { code: 'EINVAL' });
    }
    const { dev, ino } = status;
    const isGzip = mayBeGzip && (await hasGzipMark(handle));
    return isGzip ? new GzipContent(handle, dev, ino) : new PlainContent(handle, dev, ino);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function hasGzipMark(handle: FileHandle): Promise<boolean> {
  const mark = new Uint8Array(2);
  await handle.read(mark, 0, 2, 0);
  return mark[0] === 0x1f && mark[1] === 0x8b;
}

async function statusOf(handle: FileHandle): Promise<FileStatus> {
  const { size, mtimeMs, nlink } = await handle.stat();
  return { sizeBytes: size, modifiedMs: mtimeMs, links: nlink };
}

class PlainContent implements LogContent {
  readonly isGzip = false;
  readonly device: number;
  readonly inode: number;
  readonly #handle: FileHandle;

  constructor(handle: FileHandle, device: number, inode: number) {
    this.#handle = handle;
    this.device = device;
    this.inode = inode;
  }

  status(): Promise<FileStatus> {
    return statusOf(this.#handle);
  }

  async read(into: Uint8Array, at: number, length: number, position: number): Promise<number> {
    let total = 0;
    while (total < length) {
      const { bytesRead } = await this.#handle.read(
        into,
        at + total,
        length - total,
        position + total,
      );
      if (bytesRead === 0) break;
      total += bytesRead;
    }
    return total;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

class GzipContent implements LogContent {
  readonly isGzip = true;
  readonly device: number;
  readonly inode: number;
  readonly #handle: FileHandle;
  #gunzip: Gunzip | undefined;
  #chunks: AsyncIterator<Buffer> | undefined;
  /** Unpacked and not yet passed by: content from #base on. */
  #held: Buffer[] = [];
  #base = 0;
  #heldBytes = 0;

  constructor(handle: FileHandle, device: number, inode: number) {
    this.#handle = handle;
    this.device = device;
    this.inode = inode;
  }

  status(): Promise<FileStatus> {
    return statusOf(this.#handle);
  }

  async read(into: Uint8Array, at: number, length: number, position: number): Promise<number> {
    if (this.#chunks === undefined || position < this.#base) this.#restart();
    for (;;) {
      this.#pass(position);
      if (this.#base + this.#heldBytes >= position + length) break;
      const result = await this.#chunks!.next();
      if (result.done === true) break;
      this.#held.push(result.value);
      this.#heldBytes += result.value.length;
    }
    return this.#copy(into, at, length, position - this.#base);
  }

  async close(): Promise<void> {
    this.#gunzip?.destroy();
    await this.#handle.close();
  }

  #restart(): void {
    this.#gunzip?.destroy();
    this.#gunzip = createGunzip({ chunkSize: GZIP_CHUNK_BYTES });
    const packed = this.#handle.createReadStream({ start: 0, autoClose: false });
    pipeline(packed, this.#gunzip, () => undefined);
    this.#chunks = (this.#gunzip as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    this.#held = [];
    this.#base = 0;
    this.#heldBytes = 0;
  }

  /** Lets go of what lies before a place. */
  #pass(position: number): void {
    for (let first = this.#held[0]; first !== undefined; first = this.#held[0]) {
      if (this.#base + first.length > position) return;
      this.#held.shift();
      this.#base += first.length;
      this.#heldBytes -= first.length;
    }
  }

  #copy(into: Uint8Array, at: number, length: number, skip: number): number {
    let total = 0;
    let before = skip;
    for (const chunk of this.#held) {
      if (total === length) break;
      const part = chunk.subarray(before, before + length - total);
      before = Math.max(0, before - chunk.length);
      into.set(part, at + total);
      total += part.length;
    }
    return total;
  }
}

/** Up to `length` bytes at a place, in memory of their own. */
export async function readPart(
  content: LogContent,
  position: number,
  length: number,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  return bytes.subarray(0, await content.read(bytes, 0, length, position));
}

/**
 * What the file system or zlib calls an error.
 *
 * @throws the error itself when it is none of the file system's or zlib's, but a mistake here
 */
export function codeOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string' || code.startsWith('ERR_')) throw error;
  return code;
}
