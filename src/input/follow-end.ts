/**
 * Where to begin in a log of which only the end is wanted.
 *
 * Units: bytes. Not here: following (follow.ts).
 */
import { realpath } from 'node:fs/promises';
import { codeOf, openContent, readPart, type LogContent } from './follow-content.js';
import { firstLine, makeSourceId, type KnownLog } from './follow-progress.js';
import { hashBytes, HEAD_BYTES } from './head.js';

const LINE_FEED = 0x0a;
/** A longer line is no line of nginx's. */
const LONGEST_LINE_BYTES = 1 << 20;

/**
 * A log as one that has been read up to its last `mostBytes`, from the next whole line on.
 *
 * @returns undefined for a log that is shorter, gzipped, or cannot be read: then all of it is wanted,
 * and whoever follows it says what is wrong with it
 */
export async function knownToItsEnd(
  path: string,
  mostBytes: number,
): Promise<KnownLog | undefined> {
  let content: LogContent;
  try {
    content = await openContent(await realpath(path), true);
  } catch (error) {
    codeOf(error);
    return undefined;
  }
  try {
    const { sizeBytes, modifiedMs } = await content.status();
    if (content.isGzip || sizeBytes <= mostBytes) return undefined;
    const line = firstLine(await readPart(content, 0, HEAD_BYTES));
    const offset = await nextLine(content, sizeBytes - mostBytes);
    if (line === undefined || offset === undefined) return undefined;
    const kept = Math.min(offset, HEAD_BYTES);
    return {
      sourceId: makeSourceId(path, line),
      headHash: hashBytes(await readPart(content, 0, kept)),
      headLength: kept,
      tailHash: hashBytes(await readPart(content, offset - kept, kept)),
      offset,
      name: path,
      lastMs: modifiedMs,
      device: content.device,
      inode: content.inode,
    };
  } finally {
    await content.close();
  }
}

/** Where the first line behind a place begins; undefined when none does for long. */
async function nextLine(content: LogContent, from: number): Promise<number | undefined> {
  const bytes = await readPart(content, from, LONGEST_LINE_BYTES);
  const feed = bytes.indexOf(LINE_FEED);
  return feed < 0 ? undefined : from + feed + 1;
}
