/**
 * Which part of a log was counted before.
 *
 * A log is known by the hash of its first bytes, and by the hash of the bytes before the place that
 * was reached: two logs can begin alike, and a log can be cut and begun anew. Names do not matter:
 * rotation renames, compression changes the bytes on disk, and the content stays.
 */
import { openSync, closeSync, readSync } from 'node:fs';
import { FileLines } from '../input/file-lines.js';
import { HEAD_BYTES, hashBytes, type LogHead } from '../input/head.js';
import type { SourceProgress } from '../store/write-ahead.js';

export interface KnownRange {
  readonly sourceId: string;
  readonly fromOffset: number;
  /** What was known of it; undefined for a log never seen. */
  readonly known: SourceProgress | undefined;
}

/** Finds the log among those counted before. */
export async function findKnown(
  head: LogHead,
  sources: readonly SourceProgress[],
): Promise<KnownRange> {
  const alike = sources
    .filter((source) => isSameHead(head, source))
    .sort((a, b) => b.offset - a.offset);
  for (const known of alike) {
    if (await hasTail(head, known)) {
      return { sourceId: known.sourceId, fromOffset: known.offset, known };
    }
  }
  const own = headHash(head);
  const taken = new Set(sources.map((source) => source.sourceId));
  let sourceId = own.hash;
  for (let n = 2; taken.has(sourceId); n++) sourceId = `${own.hash}-${n}`;
  return { sourceId, fromOffset: 0, known: undefined };
}

export function headHash(head: LogHead): { hash: string; length: number } {
  const bytes = head.sample.subarray(0, HEAD_BYTES);
  return { hash: hashBytes(bytes), length: bytes.length };
}

function isSameHead(head: LogHead, source: SourceProgress): boolean {
  if (head.sample.length < source.headLength) return false;
  return hashBytes(head.sample.subarray(0, source.headLength)) === source.headHash;
}

async function hasTail(head: LogHead, source: SourceProgress): Promise<boolean> {
  const tail = await contentBefore(head, source.offset);
  return tail !== undefined && hashBytes(tail) === source.tailHash;
}

/** The up to HEAD_BYTES of content before an offset; undefined when the content is shorter. */
export async function contentBefore(
  head: LogHead,
  offset: number,
): Promise<Uint8Array | undefined> {
  const length = Math.min(offset, HEAD_BYTES);
  if (head.sample.length >= offset) return head.sample.subarray(offset - length, offset);
  if (head.isGzip) return gunzipBefore(head.path, offset, length);
  if (head.path === '-') return undefined;
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
    while (lines.nextOffset < offset && (await lines.next())) {
      kept.push(Buffer.concat([lines.bytes.subarray(lines.start, lines.end), Buffer.from('\n')]));
      keptBytes += kept[kept.length - 1]!.length;
      while (keptBytes - kept[0]!.length >= length) keptBytes -= kept.shift()!.length;
    }
    if (lines.nextOffset !== offset) return undefined;
    const all = Buffer.concat(kept);
    return all.subarray(all.length - length);
  } finally {
    lines.close();
  }
}
