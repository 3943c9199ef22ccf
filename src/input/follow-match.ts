/**
 * Which of the files that a log was rotated to hold what is known, and which are new.
 *
 * A file holds a known source when its content agrees with it at the beginning and before the place
 * reached. Several can (copytruncate copies the log): that with the source's inode does, else the
 * newest. A file newer than the newest one that is known is new. When none is known any more,
 * the times of the files decide.
 *
 * Not here: reading lines, and the file under the log's own name that is already followed.
 */
import { openContent, readPart, type LogContent } from './follow-content.js';
import {
  firstLine,
  isNumberedFrom,
  isSameFile,
  makeSourceId,
  type FilePlace,
  type KnownLog,
} from './follow-progress.js';
import { listRotated, type RotatedFile } from './follow-rotated.js';
import { hashBytes, HEAD_BYTES } from './head.js';

/** Names can change while they are looked at; this often they will not. */
const MOST_LISTINGS = 8;

export interface FoundLog {
  readonly path: string;
  readonly content: LogContent;
  /** What to resume; undefined for a new source. */
  readonly known: KnownLog | undefined;
}

export interface FoundLogs {
  /** To be read, oldest first. Their contents are open, and the caller's to close. */
  readonly logs: readonly FoundLog[];
  /** Known, not complete, and in none of the files. */
  readonly missing: readonly KnownLog[];
  /** Known, and read to the end of the copy that is left of them. */
  readonly ended: readonly KnownLog[];
  /** All files that are there, oldest first; a packed one stands where it was followed from. */
  readonly order: readonly FilePlace[];
  /** Files that could not be read, with the reason. */
  readonly unreadable: readonly { readonly path: string; readonly error: Error }[];
}

export interface MatchQuestion {
  /** The log's path, symbolic links resolved. */
  readonly path: string;
  /** The name that sources are known under. */
  readonly name: string;
  /** The file under that path; followed or not. */
  readonly current: LogContent | undefined;
  /** Sources to recognise; those that are followed now are among them. */
  readonly known: readonly KnownLog[];
  /** Followed now, by their open files. */
  readonly open: readonly LogContent[];
  /** Those of them that lines have come from: what is older than these is none of ours. */
  readonly begun: readonly LogContent[];
  /** Whether a file last written to at that time is new; asked when no file is recognised. */
  readonly isNewer: (modifiedMs: number) => boolean;
}

interface Candidate {
  readonly path: string;
  readonly content: LogContent;
  readonly modifiedMs: number;
  readonly isCurrent: boolean;
  readonly isOpen: boolean;
  readonly isBegun: boolean;
  known: KnownLog | undefined;
}

/** Looks at the files beside a log. What cannot be read is told of and passed over. */
export async function matchFiles(question: MatchQuestion): Promise<FoundLogs> {
  const { candidates, unreadable } = await openCandidates(question);
  await recognise(question, candidates);
  const newest = candidates.findLastIndex(
    (file) => file.isBegun || (file.known !== undefined && file.known.offset > 0),
  );
  const logs: FoundLog[] = [];
  for (const [i, file] of candidates.entries()) {
    const isNew = file.isCurrent || (newest >= 0 ? i > newest : question.isNewer(file.modifiedMs));
    const { known } = file;
    const isToRead =
      known === undefined
        ? isNew && !(await isCopy(file.content, candidates[i + 1]?.content))
        : (file.isCurrent || known.complete !== true) && !isFollowed(question, known);
    if (!file.isOpen && isToRead) logs.push(file);
    else if (!file.isCurrent) await file.content.close();
  }
  const held = new Map(candidates.map((file) => [file.known?.sourceId, file.known]));
  const wanted = question.known.filter(
    (log) => log.complete !== true && !isFollowed(question, log),
  );
  const missing = wanted.filter((known) => !held.has(known.sourceId));
  const ended = wanted.flatMap(({ sourceId }) => {
    const copy = held.get(sourceId);
    return copy?.complete === true ? [copy] : [];
  });
  const order = candidates.map((file) => followedPlace(question, file.known) ?? file.content);
  return { logs, missing, ended, order, unreadable };
}

function isFollowed(question: MatchQuestion, known: KnownLog): boolean {
  return followedPlace(question, known) !== undefined;
}

function followedPlace(
  question: MatchQuestion,
  known: KnownLog | undefined,
): FilePlace | undefined {
  if (known === undefined) return undefined;
  return question.open.find((content) => isSameFile(known, content));
}

/** Opens the files while their names are what they were listed as. */
async function openCandidates(
  question: MatchQuestion,
): Promise<{ candidates: Candidate[]; unreadable: { path: string; error: Error }[] }> {
  for (let listing = 1; ; listing++) {
    const files = await listRotated(question.path);
    const candidates: Candidate[] = [];
    const unreadable: { path: string; error: Error }[] = [];
    let hasChanged = false;
    for (const file of files) {
      try {
        const content = await openContent(file.path, true);
        candidates.push(candidateOf(question, content, file, false));
        hasChanged ||= !isSameFile(content, file);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') hasChanged = true;
        else unreadable.push({ path: file.path, error: error as Error });
      }
    }
    hasChanged ||= namesKey(files) !== namesKey(await listRotated(question.path));
    if (hasChanged && listing < MOST_LISTINGS) {
      for (const { content } of candidates) await content.close();
      continue;
    }
    const { current } = question;
    if (current !== undefined) {
      // The file that lay under the path a moment ago may have been rotated since.
      for (const file of candidates.filter((other) => isSameFile(other.content, current))) {
        candidates.splice(candidates.indexOf(file), 1);
        await file.content.close();
      }
      const { modifiedMs } = await current.status();
      const file = { path: question.path, modifiedMs };
      candidates.push(candidateOf(question, current, file, true));
    }
    return { candidates, unreadable };
  }
}

function candidateOf(
  question: MatchQuestion,
  content: LogContent,
  file: { readonly path: string; readonly modifiedMs: number },
  isCurrent: boolean,
): Candidate {
  const isAmong = (others: readonly LogContent[]): boolean =>
    others.some((other) => isSameFile(other, content));
  return {
    path: file.path,
    content,
    modifiedMs: file.modifiedMs,
    isCurrent,
    isOpen: isAmong(question.open),
    isBegun: isAmong(question.begun),
    known: undefined,
  };
}

function namesKey(files: readonly RotatedFile[]): string {
  return files.map((file) => `${file.path} ${file.inode}`).join('\n');
}

/** Gives each known source the file that holds it. */
async function recognise(question: MatchQuestion, candidates: Candidate[]): Promise<void> {
  const found = new Set<KnownLog>();
  for (const wanted of ['whole', 'shorter'] as const) {
    for (const known of question.known) {
      if (found.has(known)) continue;
      const holders: Candidate[] = [];
      for (const file of candidates) {
        if (file.known !== undefined || file.isOpen) continue;
        if (wanted === 'shorter' && file.isCurrent) continue;
        if ((await agreement(file.content, known, question.name)) === wanted) holders.push(file);
      }
      const holder = holders.find((file) => isSameFile(known, file.content)) ?? holders.at(-1);
      if (holder === undefined) continue;
      found.add(known);
      holder.known = wanted === 'whole' ? known : await asRead(holder.content, known);
    }
  }
}

/** A copy that ends before the place reached has been read to its end. */
async function asRead(content: LogContent, known: KnownLog): Promise<KnownLog> {
  const length = await contentLength(content, known.offset);
  const kept = Math.min(length, HEAD_BYTES);
  const head = await readPart(content, 0, kept);
  const tail = await readPart(content, length - kept, kept);
  return {
    ...known,
    headHash: hashBytes(head),
    headLength: kept,
    tailHash: hashBytes(tail),
    offset: length,
    complete: true,
    device: content.device,
    inode: content.inode,
    head,
  };
}

async function contentLength(content: LogContent, most: number): Promise<number> {
  if (!content.isGzip) return (await content.status()).sizeBytes;
  const block = new Uint8Array(HEAD_BYTES);
  for (let length = 0; length < most;) {
    const read = await content.read(block, 0, block.length, length);
    if (read === 0) return length;
    length += read;
  }
  return most;
}

/**
 * How a file agrees with a known source.
 *
 * @returns whole: it holds all that was read of it; shorter: it is its beginning
 */
async function agreement(
  content: LogContent,
  known: KnownLog,
  name: string,
): Promise<'whole' | 'shorter' | undefined> {
  try {
    const head = await readPart(content, 0, HEAD_BYTES);
    if (known.headLength === 0) return beginsLike(head, known, name) ? 'whole' : undefined;
    if (head.length < known.headLength) {
      return isBeginning(head, known, name) ? 'shorter' : undefined;
    }
    if (hashBytes(head.subarray(0, known.headLength)) !== known.headHash) return undefined;
    const kept = Math.min(known.offset, HEAD_BYTES);
    const tail = await readPart(content, known.offset - kept, kept);
    if (tail.length < kept) return 'shorter';
    // Of an import that was given up the head alone is known.
    return known.tailHash === '' || hashBytes(tail) === known.tailHash ? 'whole' : undefined;
  } catch {
    // Whoever reads the file meets the same error and tells of it.
    return undefined;
  }
}

/** Whether a file of less than the known head is its beginning; its first line has to do at worst. */
function isBeginning(head: Uint8Array, known: KnownLog, name: string): boolean {
  if (known.head === undefined) return known.complete !== true && hasFirstLine(head, known, name);
  return head.length > 0 && Buffer.compare(head, known.head.subarray(0, head.length)) === 0;
}

/** Whether a file begins like a source that no line has come from. */
function beginsLike(head: Uint8Array, known: KnownLog, name: string): boolean {
  if (known.head === undefined) return hasFirstLine(head, known, name);
  return Buffer.compare(head.subarray(0, known.head.length), known.head) === 0;
}

function hasFirstLine(head: Uint8Array, known: KnownLog, name: string): boolean {
  const line = firstLine(head);
  return line !== undefined && isNumberedFrom(known.sourceId, makeSourceId(name, line));
}

/** Whether a file holds what the next newer one begins with: copytruncate has not cut that yet. */
async function isCopy(content: LogContent, newer: LogContent | undefined): Promise<boolean> {
  if (newer === undefined || content.isGzip || newer.isGzip) return false;
  const { sizeBytes } = await content.status();
  if (sizeBytes === 0) return false;
  const kept = Math.min(sizeBytes, HEAD_BYTES);
  for (const position of [0, sizeBytes - kept]) {
    const own = await readPart(content, position, kept);
    const other = await readPart(newer, position, kept);
    if (Buffer.compare(own, other) !== 0) return false;
  }
  return true;
}
