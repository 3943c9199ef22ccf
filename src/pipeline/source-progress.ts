/**
 * How far a log was read, and what it is known by when it comes again.
 *
 * Units: bytes of content, epoch milliseconds. Not here: how it is found again (known-sources.ts).
 */
import { hashBytes } from '../input/head.js';
import type { SourceProgress } from '../store/write-ahead.js';
import { contentBefore, headHash, type KnownRange } from './known-sources.js';
import type { Lane } from './lanes.js';
import type { AccessFile, ErrorFile } from './log-files.js';

/** Of a log that was read from the range's beginning up to where its lane stands. */
export async function progressOf(
  file: AccessFile | ErrorFile,
  range: KnownRange,
  lane: Lane,
  isAlone: boolean,
): Promise<SourceProgress> {
  const { head } = file;
  const offset = lane.doneOffset;
  const { known } = range;
  return {
    sourceId: range.sourceId,
    ...(await marksOf(file, offset)),
    offset,
    lines: (known?.lines ?? 0) + lane.lines,
    name: head.path,
    firstMs: known?.firstMs ?? finite(lane.firstMs),
    lastMs: Math.max(known?.lastMs ?? 0, finite(lane.lastMs)),
    complete: head.isGzip || head.path === '-',
    ...(file.kind === 'access' ? { kind: 'access', target: file.target } : { kind: 'error' }),
    ...(file.kind === 'error' && isAlone ? { isAlone: true } : {}),
  };
}

async function marksOf(
  { head }: AccessFile | ErrorFile,
  offset: number,
): Promise<Pick<SourceProgress, 'headHash' | 'headLength' | 'tailHash'>> {
  // What came through a pipe is known by its times alone.
  if (head.path === '-') return { headHash: '', headLength: 0, tailHash: '' };
  // A log that was shorter than the head is known better now that it has grown.
  const sample = head.sample.subarray(0, Math.min(offset, head.sample.length));
  const own = headHash({ ...head, sample });
  const tail = (await contentBefore(head, offset)) ?? new Uint8Array(0);
  return { headHash: own.hash, headLength: own.length, tailHash: hashBytes(tail) };
}

function finite(ms: number): number {
  return Number.isFinite(ms) ? Math.floor(ms) : 0;
}
