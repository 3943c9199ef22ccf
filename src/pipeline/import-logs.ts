/**
 * Batch import: reads what of the given logs was not counted before, replays it, and stores the
 * aggregates exactly once.
 *
 * One import is one sequence of the store: the intent names the ranges of bytes, the blocks carry
 * tokens, the commit holds the model's state and the places reached. After a crash the same ranges
 * make the same blocks, so the import is simply run again.
 */
import { hostname } from 'node:os';
import { joinSummaries, type ImportSummary } from '../aggregate/import-summary.js';
import type { LineReader } from '../input/file-lines.js';
import type { GenerationInput } from '../replay/generations.js';
import type { Store } from '../store/store.js';
import type { Intent } from '../store/write-ahead.js';
import { refuseUnfinishedDaemon } from './daemon-step.js';
import type { DeadLetters } from './dead-letters.js';
import { intentRanges, planNew, planResumed, without } from './import-plan.js';
import { abandon, interrupted } from './interrupted-import.js';
import { ImportRun } from './import-run.js';
import { isErrorLogAlone, refuseCountedByLines } from './lone-error-log.js';
import type { OpenedLogs } from './open-logs.js';
import type { Privacy } from './privacy.js';
import type { ReadThread } from './read-thread.js';
import type { StateSeal } from './state-seal.js';

export interface ImportOptions {
  readonly instance: string;
  readonly generations: readonly GenerationInput[];
  readonly latenessMs: number;
  readonly timezone?: string;
  readonly chunkBytes?: number;
  /** Access logs of at least this size are read in threads of their own; none when undefined. */
  readonly readApartBytes?: number;
  /** Such threads, started early; those that are left are the caller's to close. */
  readonly readThreads?: ReadThread[];
  readonly deadLetters?: DeadLetters;
  /** Addresses are kept by default, query strings are not. */
  readonly privacy?: Privacy;
  readonly seal?: StateSeal;
  readonly stdin?: LineReader;
  /** An interrupted import whose logs are not given is ended as it stands. */
  readonly abandonsInterrupted?: boolean;
  /** Said once, for a person. */
  readonly onNote: (note: string) => void;
  /** Bytes of content read, over all logs. */
  readonly onProgress?: (doneBytes: number) => void;
}

export interface ImportResult {
  readonly summary: ImportSummary;
  readonly files: readonly ImportedFile[];
  readonly notes: readonly string[];
  /** The state of the limiter at the end was kept for the next import. */
  readonly isNewest: boolean;
  /** Error-log lines of requests that earlier imports had counted: they change nothing. */
  readonly knownLines: number;
  /** Error-log lines that wait for the access log of their time, those of earlier imports as well. */
  readonly waitingLines: number;
}

export interface ImportedFile {
  readonly path: string;
  readonly kind: 'access' | 'error' | 'empty';
  readonly format: string | null;
  /** Bytes of content counted before, and now. */
  readonly knownBytes: number;
  readonly newBytes: number;
  readonly lines: number;
  readonly unterminatedBytes: number;
  /** The read ended early: the gzip data is damaged. */
  readonly damage: string | null;
}

/**
 * Imports what is new in the logs. An import that was interrupted is done again first, to the byte;
 * what has come since follows as another.
 *
 * @throws InputError for what the store or an earlier, interrupted import refuses
 */
export async function importLogs(
  logs: OpenedLogs,
  store: Store,
  options: ImportOptions,
): Promise<ImportResult> {
  await refuseUnfinishedDaemon(store, options.instance);
  const pending = await store.pendingIntent(options.instance);
  if (pending === undefined) return importNew(logs, store, options);
  const checkpoint = await store.checkpoint(options.instance);
  const { logs: own, plan, missing } = await planResumed(logs, checkpoint, pending);
  if (missing.length > 0) {
    if (options.abandonsInterrupted !== true) throw interrupted(pending, missing);
    await abandon(store, pending, checkpoint);
    options.onNote(
      `the import begun by ${pending.startedBy} is given up: what it has stored stays, and the rest of its logs is not counted`,
    );
    return importNew(logs, store, options);
  }
  options.onNote(
    `an import begun by ${pending.startedBy} was interrupted: it is done again first, nothing counts twice`,
  );
  const resumed = await new ImportRun(own, store, pending, plan, checkpoint, options).finish();
  // If standard input was part of it, it has been read to its end.
  const rest = without(logs, ({ head }) => head.path === '-' && plan.has(head));
  return joined(resumed, await importNew(rest, store, options));
}

async function importNew(
  logs: OpenedLogs,
  store: Store,
  options: ImportOptions,
): Promise<ImportResult> {
  const { instance } = options;
  const checkpoint = await store.checkpoint(instance);
  const plan = await planNew(logs, checkpoint, options.onNote);
  const sources = checkpoint?.sources ?? [];
  await refuseCountedByLines(logs, plan, sources);
  const isAlone = isErrorLogAlone(logs, sources, options.generations);
  const intent: Intent = {
    instance,
    sequence: (checkpoint?.sequence ?? 0) + 1,
    ranges: intentRanges(plan, isAlone),
    startedBy: `${hostname()}, process ${process.pid}`,
  };
  // Lines are read meanwhile; no block goes in before it.
  const begun = store.begin(intent);
  return new ImportRun(logs, store, intent, plan, checkpoint, options, begun).finish();
}

/** What two imports of one call did, as one. */
function joined(first: ImportResult, second: ImportResult): ImportResult {
  const files = [...second.files];
  for (const file of first.files) {
    const at = files.findIndex((other) => other.path === file.path);
    const later = files[at];
    if (later === undefined) files.push(file);
    else if (file.kind !== 'empty') {
      files[at] = {
        ...later,
        knownBytes: file.knownBytes,
        newBytes: file.newBytes + later.newBytes,
        lines: file.lines + later.lines,
        damage: later.damage ?? file.damage,
      };
    }
  }
  return {
    summary: joinSummaries(first.summary, second.summary),
    files,
    notes: [...first.notes, ...second.notes],
    isNewest: second.isNewest,
    knownLines: first.knownLines + second.knownLines,
    waitingLines: second.waitingLines,
  };
}
