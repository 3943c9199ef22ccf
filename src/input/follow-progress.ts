/**
 * How far a followed log has been read, and how to know it again.
 *
 * A path is a name that many logs bear in turn; what is followed is the content, called a source
 * here. It is known by the hash of its first bytes, the hash of the bytes before the place reached,
 * and, while it stays on one disk, by device and inode. Hashes cover the same bytes as those of an
 * import (../pipeline/known-sources.ts), so that each knows what the other has counted.
 *
 * Units: bytes of content, epoch milliseconds. Not here: files.
 */
import { hashBytes, HEAD_BYTES } from './head.js';

/** What has to be remembered of a source to go on with it; a checkpoint keeps it. */
export interface KnownLog {
  readonly sourceId: string;
  /** Hash of the first `headLength` bytes; a length of 0 when only the sourceId is known. */
  readonly headHash: string;
  readonly headLength: number;
  /** Hash of the up to HEAD_BYTES bytes before `offset`. */
  readonly tailHash: string;
  readonly offset: number;
  /** The path that it was followed under. */
  readonly name: string;
  /** When it was last written to, as far as known. */
  readonly lastMs?: number;
  /** Nothing will be written to it any more: it is kept to be recognised. */
  readonly complete?: boolean;
  /** Where it lay; decides between files that begin alike. */
  readonly device?: number;
  readonly inode?: number;
  /** The bytes behind headHash, while the process that read them lasts. */
  readonly head?: Uint8Array;
}

/** What a checkpoint keeps. */
export type LogProgress = Required<Omit<KnownLog, 'head'>>;

/**
 * Called for each complete line, with bytes[start, end) valid during the call only.
 *
 * @param offset of the line in its source, and `nextOffset` of what follows it
 */
export type OnLine = (
  bytes: Uint8Array,
  start: number,
  end: number,
  offset: number,
  nextOffset: number,
  sourceId: string,
) => void;

/** What an operator should hear of. `lost` alone is worth waking somebody. */
export interface FollowNotice {
  readonly kind:
    'appeared' | 'missing' | 'rotated' | 'truncated' | 'resumed' | 'lost' | 'unreadable';
  readonly path: string;
  readonly message: string;
}

export interface FollowCounters {
  /** Times that the path came to name another file. */
  rotations: number;
  /** Times that a file was made shorter, or begun anew in place. */
  truncations: number;
  /** Bytes that were seen to be there and are gone unread. */
  lostBytes: number;
  /** Sources that are gone with an unknown number of bytes. */
  lostLogs: number;
  readErrors: number;
}

export function noCounts(): FollowCounters {
  return { rotations: 0, truncations: 0, lostBytes: 0, lostLogs: 0, readErrors: 0 };
}

/** Where a file lies, as long as it exists. */
export interface FilePlace {
  readonly device: number;
  readonly inode: number;
}

/** Two names of one file. */
export function isSameFile(a: Partial<FilePlace>, b: FilePlace): boolean {
  return a.inode === b.inode && a.device === b.device;
}

/**
 * The id of a source, from its name and its first line: the same whenever it is computed, however
 * far the file has grown, so that a range noted before a crash is found again after it.
 */
export function makeSourceId(name: string, firstLine: Uint8Array): string {
  return hashBytes(Buffer.concat([Buffer.from(`${name}\0`), firstLine.subarray(0, HEAD_BYTES)]));
}

/** The first line of a head, or as much of it as makes its id; undefined while it is not whole. */
export function firstLine(head: Uint8Array): Uint8Array | undefined {
  const feed = head.indexOf(0x0a);
  if (feed >= 0) return head.subarray(0, feed);
  return head.length < HEAD_BYTES ? undefined : head;
}

/** A second source with the same first line gets a number. */
export function withNumber(sourceId: string, isTaken: (id: string) => boolean): string {
  let id = sourceId;
  for (let n = 2; isTaken(id); n++) id = `${sourceId}-${n}`;
  return id;
}

export function isNumberedFrom(id: string, sourceId: string): boolean {
  return (
    id === sourceId || (id.startsWith(`${sourceId}-`) && /^-\d+$/.test(id.slice(sourceId.length)))
  );
}

/** A source that is only known from a range noted before a crash: to be read from its beginning. */
export function unreadLog(name: string, sourceId: string): KnownLog {
  return { sourceId, name, headHash: '', headLength: 0, tailHash: '', offset: 0 };
}
