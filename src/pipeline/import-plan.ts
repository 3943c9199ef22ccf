/**
 * Which bytes of which log an import reads.
 *
 * Units: bytes of content. Not here: how a log is known again (known-sources.ts).
 */
import { SAMPLE_BYTES, type LogHead } from '../input/head.js';
import type { Checkpoint, Intent, SourceRange } from '../store/write-ahead.js';
import { beginsWith, findKnown, headHash, type KnownRange } from './known-sources.js';
import { endOf, type OpenedLogs } from './open-logs.js';

export interface Planned {
  readonly range: KnownRange;
  /** Equal to the range's beginning when there is nothing to read. */
  readonly toOffset: number;
}

export type ImportPlan = ReadonlyMap<LogHead, Planned>;

/** What of each file was not counted before. The same log given twice in one call is read once. */
export async function planNew(
  logs: OpenedLogs,
  checkpoint: Checkpoint | undefined,
  onNote: (note: string) => void,
): Promise<ImportPlan> {
  const plan = new Map<LogHead, Planned>();
  const heads = [...logs.errors, ...logs.access].map((file) => file.head);
  // Shorter copies first, so that of several the last is the one that is read.
  heads.sort((a, b) => contentBytes(a) - contentBytes(b));
  const ranges = new Map<LogHead, KnownRange>();
  for (const head of heads) ranges.set(head, await findKnown(head, checkpoint?.sources ?? []));
  for (const head of heads) {
    const range = ranges.get(head)!;
    const longer = heads.filter((other) => isCopyOf(head, other, ranges)).at(-1);
    if (longer !== undefined) {
      onNote(`${head.path} holds the same log as ${longer.path}: read once`);
    }
    if (range.isOlderCopy) {
      onNote(
        `${head.path} is an older copy of what was imported as ${range.known!.name}: nothing in it is new`,
      );
    }
    const isRead = longer === undefined && !range.isOlderCopy;
    plan.set(head, { range, toOffset: isRead ? endOf(head) : range.fromOffset });
  }
  return plan;
}

/** Whether another file, later in the list, holds all that this one holds. */
function isCopyOf(
  head: LogHead,
  other: LogHead,
  ranges: ReadonlyMap<LogHead, KnownRange>,
): boolean {
  const heads = [...ranges.keys()];
  if (heads.indexOf(other) <= heads.indexOf(head)) return false;
  const [own, others] = [ranges.get(head)!, ranges.get(other)!];
  if (own.sourceId === others.sourceId) return true;
  const isNew = own.known === undefined && others.known === undefined;
  return isNew && head.path !== '-' && beginsWith(other, head);
}

/** Length of the content, to tell the shorter of two; what cannot be told is taken to be long. */
function contentBytes(head: LogHead): number {
  if (head.path !== '-' && head.sample.length < SAMPLE_BYTES) return head.sample.length;
  return head.isGzip || head.path === '-' ? Number.MAX_SAFE_INTEGER : head.sizeBytes;
}
/**
 * The ranges of an intent, in an order that does not depend on the call's.
 *
 * @param isAlone lines of error logs stand for requests
 */
export function intentRanges(plan: ImportPlan, isAlone = false): SourceRange[] {
  const ranges = new Map<string, SourceRange>();
  for (const [head, { range, toOffset }] of plan) {
    const { sourceId, fromOffset } = range;
    const known = ranges.get(sourceId);
    if (known !== undefined && known.toByte >= toOffset) continue;
    ranges.set(sourceId, {
      sourceId,
      fromByte: fromOffset,
      toByte: toOffset,
      name: head.path,
      headLength: head.path === '-' ? 0 : headHash(head).length,
      ...(isAlone ? { isAlone } : {}),
    });
  }
  return [...ranges.values()].sort((a, b) => (a.sourceId < b.sourceId ? -1 : 1));
}

/**
 * The logs of an interrupted import, and the ranges that it had fixed. Other logs wait.
 *
 * @returns also its ranges whose logs are not among those given now
 */
export async function planResumed(
  logs: OpenedLogs,
  checkpoint: Checkpoint | undefined,
  pending: Intent,
): Promise<{ logs: OpenedLogs; plan: ImportPlan; missing: readonly SourceRange[] }> {
  const fixed = new Map(pending.ranges.map((range) => [range.sourceId, range]));
  const plan = new Map<LogHead, Planned>();
  for (const { head } of [...logs.errors, ...logs.access]) {
    const range = await findKnown(head, checkpoint?.sources ?? []);
    const before = fixed.get(range.sourceId);
    if (before === undefined || range.isOlderCopy) continue;
    fixed.delete(range.sourceId);
    plan.set(head, { range, toOffset: before.toByte });
  }
  const missing = [...fixed.values()];
  return { logs: without(logs, (file) => !plan.has(file.head)), plan, missing };
}

/** The logs but for some. */
export function without(
  logs: OpenedLogs,
  isOut: (file: { readonly head: LogHead }) => boolean,
): OpenedLogs {
  return {
    ...logs,
    access: logs.access.filter((file) => !isOut(file)),
    errors: logs.errors.filter((file) => !isOut(file)),
  };
}
