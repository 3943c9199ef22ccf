/**
 * Batch import: reads what of the given logs was not counted before, replays it, and stores the
 * aggregates exactly once.
 *
 * One import is one sequence of the store: the intent names the ranges of bytes, the blocks carry
 * tokens, the commit holds the model's state and the places reached. After a crash the same ranges
 * make the same blocks, so the import is simply run again.
 */
import { hostname } from 'node:os';
import { Aggregator } from '../aggregate/aggregator.js';
import { joinSummaries, type ImportSummary } from '../aggregate/import-summary.js';
import { EXIT, InputError } from '../errors.js';
import type { LineReader } from '../input/file-lines.js';
import { hashBytes, type LogHead } from '../input/head.js';
import { AccessFields } from '../replay/access-fields.js';
import type { GenerationInput } from '../replay/generations.js';
import { ReplaySession } from '../replay/session.js';
import type { SessionState } from '../replay/session-state.js';
import type { Store } from '../store/store.js';
import type { Checkpoint, Intent, SourceProgress } from '../store/write-ahead.js';
import { refuseUnfinishedDaemon } from './daemon-step.js';
import { countingSink } from './counting-sink.js';
import type { DeadLetters } from './dead-letters.js';
import { intentRanges, planNew, planResumed, without, type ImportPlan } from './import-plan.js';
import { contentBefore, headHash, type KnownRange } from './known-sources.js';
import { runLanes, type Lane, type LineSink } from './lanes.js';
import {
  makeLanes,
  zoneOf,
  type ContentRange,
  type LaneOptions,
  type OpenedLogs,
} from './open-logs.js';
import { KEEP_ADDRESSES, Privacy } from './privacy.js';
import { PrivateRows } from './private-rows.js';
import type { ReadThread } from './record-lane.js';
import { RowBlocks } from './row-blocks.js';
import { StateSeal } from './state-seal.js';

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
  options.onNote(
    `an import begun by ${pending.startedBy} was interrupted: it is done again first, nothing counts twice`,
  );
  const checkpoint = await store.checkpoint(options.instance);
  const { logs: own, plan } = await planResumed(logs, checkpoint, pending);
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
  const intent: Intent = {
    instance,
    sequence: (checkpoint?.sequence ?? 0) + 1,
    ranges: intentRanges(plan),
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
  };
}

class ImportRun {
  readonly #logs: OpenedLogs;
  readonly #store: Store;
  readonly #intent: Intent;
  readonly #planned: ImportPlan;
  readonly #checkpoint: Checkpoint | undefined;
  readonly #options: ImportOptions;
  readonly #blocks: RowBlocks;
  readonly #seal: StateSeal;
  readonly #session: ReplaySession;
  readonly #aggregator: Aggregator;
  readonly #notes: string[] = [];
  readonly #damages = new Map<string, string>();
  /** No line with a time: the limiter stands where the import before left it. */
  #hasNothingNew = false;

  constructor(
    logs: OpenedLogs,
    store: Store,
    intent: Intent,
    planned: ImportPlan,
    checkpoint: Checkpoint | undefined,
    options: ImportOptions,
    begun?: Promise<void>,
  ) {
    this.#logs = logs;
    this.#store = store;
    this.#intent = intent;
    this.#planned = planned;
    this.#checkpoint = checkpoint;
    this.#options = options;
    this.#blocks = new RowBlocks(store, intent, begun);
    this.#seal = options.seal ?? new StateSeal();
    const privacy = options.privacy ?? new Privacy(KEEP_ADDRESSES);
    const mixed = logs.access.filter((file) => file.isPrefixed || file.head.path === '-').length;
    this.#session = new ReplaySession({
      generations: options.generations,
      isAudit: false,
      latenessMs: options.latenessMs,
      usesConnection: logs.access.every((file) => new AccessFields(file.scanner).hasConnection),
      hasErrorLog: logs.errors.length > 0,
      isErrorLogAlone: logs.access.length === 0,
      errorLogCount: logs.errors.length + mixed,
      details: 'refused',
      onDecision: (event) => this.#aggregator.decide(event),
      onPlain: (plain) => this.#aggregator.decidePlain(plain),
      onUnmatchedLine: (line) => this.#aggregator.unmatchedLine(line),
      onMark: (mark, ms) => this.#aggregator.mark(mark, ms, ''),
      onNote: (note) => this.#note(note),
    });
    this.#aggregator = new Aggregator(this.#session, {
      instance: options.instance,
      sink: new PrivateRows(this.#blocks, privacy),
    });
    for (const note of this.#notes) this.#aggregator.note(note);
  }

  async finish(): Promise<ImportResult> {
    const lanes = await makeLanes(this.#logs, this.#session, this.#lineSink(), {
      zone: zoneOf(this.#logs.access, this.#options.timezone),
      rangeOf: (head) => this.#rangeOf(head),
      ...(this.#options.chunkBytes === undefined ? {} : { chunkBytes: this.#options.chunkBytes }),
      ...(this.#options.stdin === undefined ? {} : { stdin: this.#options.stdin }),
      ...this.#reading(),
    });
    const isNewest = await this.#takeUpState(lanes);
    await runLanes(
      lanes,
      () => this.#between(lanes),
      (lane, error) => this.#damaged(lane, error),
    );
    this.#session.finish(true);
    this.#aggregator.flush();
    await this.#blocks.finish();
    const files = await this.#commit(lanes, isNewest);
    for (const lane of lanes) lane.reader.close();
    return { summary: this.#aggregator.summary(), files, notes: this.#notes, isNewest };
  }

  #reading(): Pick<LaneOptions, 'reading'> {
    const { generations, readApartBytes, readThreads = [] } = this.#options;
    const [first] = generations;
    if (generations.length !== 1 || readApartBytes === undefined) return {};
    const hasErrorLog = this.#logs.errors.length > 0;
    const { conf } = first!;
    const shared = { conf, details: 'refused', hasErrorLog, threads: readThreads } as const;
    return { reading: { leastBytes: readApartBytes, ...shared } };
  }

  #rangeOf(head: LogHead): ContentRange {
    const { range, toOffset } = this.#planned.get(head)!;
    return { fromOffset: range.fromOffset, toOffset };
  }

  /** The limiter goes on where the last import ended, unless these logs are from before. */
  async #takeUpState(lanes: readonly Lane[]): Promise<boolean> {
    for (const lane of lanes) await this.#begin(lane);
    const firstMs = Math.min(...lanes.map((lane) => lane.timeMs), Infinity);
    const before = this.#checkpoint;
    if (before === undefined || before.state === '') return true;
    this.#hasNothingNew = firstMs === Infinity;
    if (this.#hasNothingNew) return true;
    const isContinued = [...this.#planned.values()].some(
      ({ range, toOffset }) => range.fromOffset > 0 && toOffset > range.fromOffset,
    );
    if (!isContinued && firstMs < before.logTimeMs) {
      this.#note(
        `these logs begin at ${new Date(firstMs).toISOString()}, before what is in the store already ` +
          `(until ${new Date(before.logTimeMs).toISOString()}): the limiter's state of that time is not ` +
          'known, the replay starts without it',
      );
      return false;
    }
    this.#session.restore(JSON.parse(this.#seal.open(before.state)) as SessionState);
    return true;
  }

  async #begin(lane: Lane): Promise<void> {
    try {
      await lane.begin();
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      lane.end();
      this.#damaged(lane, error);
    }
  }

  #lineSink(): LineSink {
    const { deadLetters } = this.#options;
    return countingSink(this.#aggregator, (lane, reason, raw) =>
      deadLetters?.write(lane.name, lane.reader.offset, reason, raw),
    );
  }

  #between(lanes: readonly Lane[]): Promise<void> | undefined {
    const { onProgress } = this.#options;
    if (onProgress !== undefined) {
      onProgress(lanes.reduce((sum, lane) => sum + lane.doneOffset, 0));
    }
    return this.#blocks.pressure;
  }

  /** Damaged data ends its log, and counts up to there; a disk that fails ends the import. */
  #damaged(lane: Lane, error: InputError): void {
    if (error.exitCode !== EXIT.badLines) throw error;
    this.#damages.set(lane.name, error.message);
    this.#note(error.message);
  }

  #note(note: string): void {
    this.#notes.push(note);
    // The session's first notes come while it is being made.
    (this.#aggregator as Aggregator | undefined)?.note(note);
    this.#options.onNote(note);
  }

  async #commit(lanes: readonly Lane[], isNewest: boolean): Promise<ImportedFile[]> {
    const sources = new Map(this.#checkpoint?.sources.map((source) => [source.sourceId, source]));
    const files: ImportedFile[] = this.#logs.empty.map((head) => emptyFile(head.path));
    const heads = [...this.#logs.errors, ...this.#logs.access];
    for (const [i, file] of heads.entries()) {
      const lane = lanes[i]!;
      const { range } = this.#planned.get(file.head)!;
      files.push({
        path: file.head.path,
        kind: file.kind,
        format: file.kind === 'access' ? file.scanner.format.name : null,
        knownBytes: range.fromOffset,
        newBytes: lane.doneOffset - range.fromOffset,
        lines: lane.lines,
        unterminatedBytes: lane.reader.unterminatedBytes,
        damage: this.#damages.get(lane.name) ?? null,
      });
      if (file.head.path === '-' || lane.doneOffset === range.fromOffset) continue;
      sources.set(range.sourceId, await progressOf(file.head, range, lane));
    }
    const before = this.#checkpoint;
    const state =
      isNewest && !this.#hasNothingNew
        ? this.#seal.seal(JSON.stringify(this.#session.snapshot()))
        : before!.state;
    await this.#store.commit(this.#intent, {
      instance: this.#intent.instance,
      sequence: this.#intent.sequence,
      sources: [...sources.values()],
      state,
      logTimeMs: isNewest
        ? Math.max(this.#session.latestMs, before?.logTimeMs ?? 0)
        : before!.logTimeMs,
    });
    return files.sort((a, b) => (a.path < b.path ? -1 : 1));
  }
}

function emptyFile(path: string): ImportedFile {
  return {
    path,
    kind: 'empty',
    format: null,
    knownBytes: 0,
    newBytes: 0,
    lines: 0,
    unterminatedBytes: 0,
    damage: null,
  };
}

async function progressOf(head: LogHead, range: KnownRange, lane: Lane): Promise<SourceProgress> {
  const offset = lane.doneOffset;
  const { known } = range;
  // A log that was shorter than the head is known better now that it has grown.
  const sample = head.sample.subarray(0, Math.min(offset, head.sample.length));
  const own = headHash({ ...head, sample });
  const tail = (await contentBefore(head, offset)) ?? new Uint8Array(0);
  return {
    sourceId: range.sourceId,
    headHash: own.hash,
    headLength: own.length,
    tailHash: hashBytes(tail),
    offset,
    lines: (known?.lines ?? 0) + lane.lines,
    name: head.path,
    firstMs: known?.firstMs ?? finite(lane.firstMs),
    lastMs: Math.max(known?.lastMs ?? 0, finite(lane.lastMs)),
    complete: head.isGzip,
  };
}

function finite(ms: number): number {
  return Number.isFinite(ms) ? Math.floor(ms) : 0;
}
