/**
 * One source being read: the lines of an open file, from a place on, while it grows.
 *
 * Every read begins with the bytes before the place reached and compares them with what they were,
 * and the file's first bytes likewise: a file that was cut and written anew in between, even to
 * the same length, is noticed. Lines are given from one reused buffer; what has no newline yet is
 * read again the next time.
 *
 * Units: bytes. Not here: which file that is, and what follows when it was cut (follow.ts).
 */
import { readPart, type LogContent } from './follow-content.js';
import {
  firstLine,
  makeSourceId,
  type KnownLog,
  type LogProgress,
  type OnLine,
} from './follow-progress.js';
import { hashBytes, HEAD_BYTES } from './head.js';

const BLOCK_BYTES = 1 << 18;
/** No line of nginx comes near this; a longer one is given in pieces of this length. */
const LONGEST_LINE_BYTES = 1 << 20;
/** More than any file system's clock is behind ours. */
const RECENT_MS = 2000;
const LINE_FEED = 0x0a;

/** The file could not be read; `cause` is what the file system or zlib said. */
export class ReadError extends Error {
  override readonly name = 'ReadError';
}

/** The memory that lines are given from; one does for any number of sources. */
export class ReadBuffer {
  bytes: Uint8Array;

  constructor(blockBytes = BLOCK_BYTES) {
    this.bytes = new Uint8Array(blockBytes + HEAD_BYTES);
  }

  /** Doubles the room, up to what the longest line needs. */
  grow(): boolean {
    const longest = LONGEST_LINE_BYTES + HEAD_BYTES;
    if (this.bytes.length >= longest) return false;
    this.bytes = new Uint8Array(Math.min(longest, this.bytes.length * 2));
    return true;
  }
}

export interface ReadAllowance {
  /** Bytes that may still be given; counted down. */
  bytes: number;
  /** Where to stop in a source, so that a range noted before a crash is read again exactly. */
  readonly upTo: (sourceId: string) => number;
}

/**
 * end: everything that look() saw has been given; limit: the allowance's place is reached;
 * spent: its bytes are; truncated: the content is another one now.
 */
export type ReadEnd = 'end' | 'limit' | 'spent' | 'truncated';

export class FollowedSource {
  readonly content: LogContent;
  readonly name: string;
  /** undefined until the first line. */
  sourceId: string | undefined;
  offset = 0;
  /** As look() saw them. */
  sizeBytes = 0;
  modifiedMs = 0;
  /** Length of the content when it was last known to be the one that was read; and its time. */
  seenBytes = 0;
  #seenMs = 0;
  links = 1;
  /** When the last line came, or the source was opened, by the follower's clock. */
  activeMs: number;
  isAtEnd = false;
  #comparedMs = NaN;
  #unread: Uint8Array = new Uint8Array(0);
  /** Until a line has come from it, the first line can still become another one. */
  #isNamed = false;
  readonly #nameSource: (id: string) => string;
  readonly #head = new Uint8Array(HEAD_BYTES);
  readonly #tail = new Uint8Array(HEAD_BYTES);

  /** @param nameSource makes the id of a new source unique among those of its log */
  constructor(
    content: LogContent,
    name: string,
    nowMs: number,
    nameSource: (id: string) => string,
  ) {
    this.content = content;
    this.name = name;
    this.activeMs = nowMs;
    this.#nameSource = nameSource;
  }

  /** Goes on where a source was left. Its content has been compared (follow-match.ts). */
  async resume(known: KnownLog): Promise<void> {
    const kept = Math.min(known.offset, HEAD_BYTES);
    this.#head.set(await readPart(this.content, 0, kept));
    this.#tail.set(await readPart(this.content, known.offset - kept, kept));
    this.sourceId = known.sourceId;
    this.#isNamed = true;
    this.#seenMs = known.lastMs ?? 0;
    this.offset = known.offset;
  }

  /** What the file is like now; read() goes no further than this. */
  async look(): Promise<void> {
    const status = await this.content.status();
    this.sizeBytes = status.sizeBytes;
    this.modifiedMs = status.modifiedMs;
    this.links = status.links;
  }

  /**
   * Whether the file was written to since this was last asked. The times of files move in steps of
   * some milliseconds: what was written to just now counts as changed.
   */
  hasChanged(): boolean {
    const isChanged = this.modifiedMs !== this.#comparedMs;
    this.#comparedMs = this.modifiedMs;
    return isChanged || Date.now() - this.modifiedMs < RECENT_MS;
  }

  /** Bytes on disk that have not been given; a gzipped file counts whole until it is done. */
  get lagBytes(): number {
    if (this.content.isGzip) return this.isAtEnd ? 0 : this.sizeBytes;
    return Math.max(0, this.sizeBytes - this.offset);
  }

  /**
   * Gives the complete lines from the place reached to the end that look() saw.
   *
   * @throws ReadError, and what onLine throws
   */
  async read(buffer: ReadBuffer, allowance: ReadAllowance, onLine: OnLine): Promise<ReadEnd> {
    this.isAtEnd = false;
    const { isGzip } = this.content;
    if (!isGzip && this.sizeBytes < this.offset) return 'truncated';
    if (!isGzip && !(await this.#hasHead())) return 'truncated';
    for (;;) {
      if (allowance.bytes <= 0) return 'spent';
      const kept = Math.min(this.offset, HEAD_BYTES);
      const position = this.offset - kept;
      const room = buffer.bytes.length;
      const wanted = isGzip ? room : Math.min(room, this.sizeBytes - position);
      const filled = await this.content.read(buffer.bytes, 0, wanted, position).catch(readFailed);
      if (!isSame(buffer.bytes, filled, this.#tail, kept)) return 'truncated';
      this.seenBytes = this.sizeBytes;
      this.#seenMs = this.modifiedMs;
      const before = this.offset;
      const isStopped = this.#giveLines(buffer.bytes, position, filled, allowance, onLine);
      this.#remember(buffer.bytes, position);
      allowance.bytes -= this.offset - before;
      if (isStopped) return 'limit';
      if (filled < room) break;
      if (this.offset === before && !buffer.grow()) {
        throw new Error(`a block of ${room} bytes gave no line`);
      }
    }
    this.isAtEnd = true;
    return 'end';
  }

  /** The first bytes of what has been read; of what is there to be read, before that. */
  get head(): Uint8Array {
    if (this.offset === 0) return this.#unread;
    return this.#head.slice(0, Math.min(this.offset, HEAD_BYTES));
  }

  /** undefined before the first line: there is nothing to go on with. */
  progress(): LogProgress | undefined {
    if (this.sourceId === undefined) return undefined;
    const kept = Math.min(this.offset, HEAD_BYTES);
    return {
      sourceId: this.sourceId,
      headHash: hashBytes(this.#head.subarray(0, kept)),
      headLength: kept,
      tailHash: hashBytes(this.#tail.subarray(0, kept)),
      offset: this.offset,
      name: this.name,
      lastMs: this.#seenMs,
      complete: false,
      device: this.content.device,
      inode: this.content.inode,
    };
  }

  /** Gives the source its id if its first line is there, so that other files can be compared. */
  async identify(): Promise<void> {
    if (this.#isNamed) return;
    const head = await readPart(this.content, 0, HEAD_BYTES).catch(readFailed);
    this.#unread = head;
    const line = firstLine(head);
    this.sourceId = line === undefined ? undefined : this.#idFrom(line);
  }

  #idFrom(line: Uint8Array): string {
    // It may keep its own id.
    this.sourceId = undefined;
    return this.#nameSource(makeSourceId(this.name, line));
  }

  async #hasHead(): Promise<boolean> {
    // Up to there the bytes before the place reached are the head.
    if (this.offset <= HEAD_BYTES) return true;
    const head = await readPart(this.content, 0, HEAD_BYTES).catch(readFailed);
    return isSame(head, head.length, this.#head, HEAD_BYTES);
  }

  /** @returns whether it stopped at the allowance's place */
  #giveLines(
    bytes: Uint8Array,
    position: number,
    filled: number,
    allowance: ReadAllowance,
    onLine: OnLine,
  ): boolean {
    const block = bytes.subarray(0, filled);
    let at = this.offset - position;
    let upTo = this.#isNamed ? allowance.upTo(this.sourceId!) : -1;
    for (;;) {
      const feed = block.indexOf(LINE_FEED, at);
      const isCut = (feed < 0 ? filled : feed) - at >= LONGEST_LINE_BYTES;
      if (feed < 0 && !isCut) return false;
      const end = isCut ? at + LONGEST_LINE_BYTES : feed;
      const next = isCut ? end : end + 1;
      if (!this.#isNamed) {
        this.sourceId = this.#idFrom(block.subarray(at, end));
        upTo = allowance.upTo(this.sourceId);
      }
      if (position + next > upTo) return true;
      this.#isNamed = true;
      onLine(bytes, at, end, position + at, position + next, this.sourceId!);
      this.offset = position + next;
      at = next;
    }
  }

  /** Keeps the first bytes, and those before the place reached. */
  #remember(bytes: Uint8Array, position: number): void {
    const at = this.offset - position;
    if (position === 0) this.#head.set(bytes.subarray(0, Math.min(at, HEAD_BYTES)));
    this.#tail.set(bytes.subarray(Math.max(0, at - HEAD_BYTES), at));
  }
}

function isSame(found: Uint8Array, filled: number, expected: Uint8Array, length: number): boolean {
  if (filled < length) return false;
  return Buffer.compare(found.subarray(0, length), expected.subarray(0, length)) === 0;
}

function readFailed(cause: unknown): never {
  throw new ReadError('a log could not be read', { cause });
}
