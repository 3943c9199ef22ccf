/**
 * Which part of a log was counted before.
 *
 * A log is known by the hash of its first bytes, and by the hash of the bytes before the place that
 * was reached: two logs can begin alike, and a log can be cut and begun anew. Names do not matter:
 * rotation renames, compression changes the bytes on disk, and the content stays. What begins alike
 * and ends before that place is an older copy: nothing in it is new.
 */
import { openSync, closeSync, readSync } from 'node:fs';
import { EXIT, InputError } from '../errors.js';
import { FileLines } from '../input/file-lines.js';
import { HEAD_BYTES, hashBytes, type LogHead } from '../input/head.js';
import type { SourceProgress } from '../store/write-ahead.js';

const LINE_FEED = 0x0a;
const NOTHING = new Uint8Array(0);

export interface KnownRange {
  readonly sourceId: string;
  readonly fromOffset: number;
  /** What was known of it; undefined for a log never seen. */
  readonly known: SourceProgress | undefined;
  /** It ends before the place that was reached. */
  readonly isOlderCopy: boolean;
}

/** Finds the log among those counted before. */
export async function findKnown(
  head: LogHead,
  sources: readonly SourceProgress[],
): Promise<KnownRange> {
  // What comes through a pipe is counted each time: only reading all of it would tell what it is.
  const alike = head.path === '-' ? [] : sources.filter((source) => isSameHead(head, source));
  alike.sort((a, b) => b.offset - a.offset);
  let longer: KnownRange | undefined;
  for (const known of alike) {
    const { sourceId, offset } = known;
    const tail = await contentBefore(head, offset);
    if (tail === undefined) {
      longer ??= { sourceId, fromOffset: offset, known, isOlderCopy: true };
    } else if (known.tailHash === '') {
      return { sourceId, fromOffset: lineStart(tail, offset), known, isOlderCopy: false };
    } else if (hashBytes(tail) === known.tailHash) {
      return { sourceId, fromOffset: offset, known, isOlderCopy: false };
    }
  }
  if (longer !== undefined) return longer;
  const own = headHash(head);
  const taken = new Set(sources.map((source) => source.sourceId));
  let sourceId = own.hash;
  for (let n = 2; taken.has(sourceId); n++) sourceId = `${own.hash}-${n}`;
  return { sourceId, fromOffset: 0, known: undefined, isOlderCopy: false };
}

/** Where the line that goes on across the place begins: it had no end yet, so it was not counted. */
function lineStart(tail: Uint8Array, offset: number): number {
  return offset - tail.length + tail.lastIndexOf(LINE_FEED) + 1;
}

export function headHash(head: LogHead): { hash: string; length: number } {
  const bytes = head.sample.subarray(0, HEAD_BYTES);
  return { hash: hashBytes(bytes), length: bytes.length };
}

/** Whether all of a small log is the beginning of another one. */
export function beginsWith(longer: LogHead, log: LogHead): boolean {
  const { length } = log.sample;
  if (length >= HEAD_BYTES || length >= longer.sample.length) return false;
  return Buffer.compare(longer.sample.subarray(0, length), log.sample) === 0;
}

function isSameHead(head: LogHead, source: SourceProgress): boolean {
  if (head.sample.length < source.headLength) return false;
  return hashBytes(head.sample.subarray(0, source.headLength)) === source.headHash;
}

/** The up to HEAD_BYTES of content before an offset; undefined when the content ends before it. */
export async function contentBefore(
  head: LogHead,
  offset: number,
): Promise<Uint8Array | undefined> {
  const length = Math.min(offset, HEAD_BYTES);
  if (head.sample.length >= offset) return head.sample.subarray(offset - length, offset);
  if (head.isGzip) return gunzipBefore(head.path, offset, length);
  const fd = openSync(head.path, 'r');
  try {
    const bytes = new Uint8Array(length);
    return readSync(fd, bytes, 0, length, offset - length) === length ? bytes : undefined;
  } finally {
    closeSync(fd);
  }
}

/** A gzipped log has to be read up to the place. */
async function gunzipBefore(
  path: string,
  offset: number,
  length: number,
): Promise<Uint8Array | undefined> {
  const lines = new FileLines(path, { isGzip: true, fromOffset: 0 });
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  try {
    while (lines.nextOffset < offset) {
      if (!(await lines.next())) return undefined;
      kept.push(Buffer.concat([lines.bytes.subarray(lines.start, lines.end), Buffer.from('\n')]));
      keptBytes += kept[kept.length - 1]!.length;
      while (keptBytes - kept[0]!.length >= length) keptBytes -= kept.shift()!.length;
    }
    // A line that goes on across the place: another content.
    if (lines.nextOffset !== offset) return NOTHING;
    const all = Buffer.concat(kept);
    return all.subarray(all.length - length);
  } catch (error) {
    // Damaged before the place. Where it is read, that is said.
    if (error instanceof InputError && error.exitCode === EXIT.badLines) return undefined;
    throw error;
  } finally {
    lines.close();
  }
}
