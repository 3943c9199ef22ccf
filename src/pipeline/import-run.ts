/**
 * One sequence of an import: reads the planned ranges of its logs, replays them, hands blocks of rows
 * to the store and commits the state with the places reached.
 *
 * Units: bytes of content, epoch milliseconds. Not here: which ranges (import-plan.ts), and what is
 * done again after a crash (import-logs.ts).
 */
import { Aggregator } from '../aggregate/aggregator.js';
import { EXIT, InputError } from '../errors.js';
import type { LogHead } from '../input/head.js';
import { AccessFields } from '../replay/access-fields.js';
import { isAlert, type WaitingLine } from '../replay/line-join.js';
import { ReplaySession } from '../replay/session.js';
import type { SessionState } from '../replay/session-state.js';
import type { Store } from '../store/store.js';
import type { Checkpoint, Intent } from '../store/write-ahead.js';
import { storedCoverage, type CoveredTime } from './access-coverage.js';
import { countingSink } from './counting-sink.js';
import type { ImportedFile, ImportOptions, ImportResult } from './import-logs.js';
import type { ImportPlan, Planned } from './import-plan.js';
import { runLanes, type Lane, type LineSink } from './lanes.js';
import { inOrder, LineHold } from './line-hold.js';
import type { AccessFile } from './log-files.js';
import {
  makeLanes,
  zoneOf,
  type ContentRange,
  type LaneOptions,
  type OpenedLogs,
} from './open-logs.js';
import { KEEP_ADDRESSES, Privacy } from './privacy.js';
import { PrivateRows } from './private-rows.js';
import { RowBlocks } from './row-blocks.js';
import { progressOf } from './source-progress.js';
import { StateSeal } from './state-seal.js';

/** What an import leaves to the next one. */
interface ImportState extends SessionState {
  /** Lines that wait for the access log of their time, in order. */
  readonly held?: readonly WaitingLine[];
}

export class ImportRun {
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
  readonly #hold: LineHold;
  readonly #isAlone: boolean;
  readonly #notes: string[] = [];
  readonly #damages = new Map<string, string>();
  /** What the import before left; undefined when there was none, or there is nothing to read. */
  #before: ImportState | undefined;
  #lanes: readonly Lane[] = [];
  /** No request: the limiter stands where the import before left it. */
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
    this.#isAlone = intent.ranges.some((range) => range.isAlone === true);
    const mixed = logs.access.filter((file) => file.isPrefixed || file.head.path === '-').length;
    this.#session = new ReplaySession({
      generations: options.generations,
      isAudit: false,
      latenessMs: options.latenessMs,
      usesConnection: logs.access.every((file) => new AccessFields(file.scanner).hasConnection),
      hasErrorLog: logs.errors.length > 0,
      isErrorLogAlone: this.#isAlone,
      errorLogCount: logs.errors.length + mixed,
      details: 'refused',
      onDecision: (event) => this.#aggregator.decide(event),
      onPlain: (plain) => this.#aggregator.decidePlain(plain),
      onUnmatchedLine: (line) => {
        if (this.#isAlone) this.#aggregator.unmatchedLine(line);
        else this.#hold.take(line);
      },
      onMark: (mark, ms) => this.#aggregator.mark(mark, ms, ''),
      onNote: (note) => this.#note(note),
    });
    this.#aggregator = new Aggregator(this.#session, {
      instance: options.instance,
      sink: new PrivateRows(this.#blocks, privacy),
    });
    this.#hold = new LineHold({
      stored: storedCoverage(checkpoint?.sources ?? []),
      fresh: () => this.#freshCoverage(),
      targetsOf: (line) => (isAlert(line) ? null : this.#session.accessLogsOf(line)),
      onCount: (line) => this.#aggregator.unmatchedLine(line),
    });
    for (const note of this.#notes) this.#aggregator.note(note);
  }

  async finish(): Promise<ImportResult> {
    this.#before = this.#stateBefore();
    const lanes = await makeLanes(this.#logs, this.#session, this.#lineSink(), {
      zone: zoneOf(this.#logs.access, this.#options.timezone),
      rangeOf: (head) => this.#rangeOf(head),
      ...(this.#options.chunkBytes === undefined ? {} : { chunkBytes: this.#options.chunkBytes }),
      ...(this.#options.stdin === undefined ? {} : { stdin: this.#options.stdin }),
      ...this.#reading(),
    });
    this.#lanes = lanes;
    const isNewest = await this.#takeUpState(lanes);
    await runLanes(
      lanes,
      () => this.#between(lanes),
      (lane, error) => this.#damaged(lane, error),
    );
    // Only where the limiter goes on may the requests of the last lines be read next time.
    const mayGoOn = isNewest && !this.#hasNothingNew && !this.#isAlone;
    this.#session.finish(mayGoOn);
    const owed = this.#hold.sortPending(mayGoOn ? this.#session.join.pending() : []);
    this.#hold.trim();
    this.#aggregator.flush();
    await this.#blocks.finish();
    const files = await this.#commit(lanes, isNewest, owed);
    for (const lane of lanes) lane.reader.close();
    return {
      summary: this.#aggregator.summary(),
      files,
      notes: this.#notes,
      isNewest,
      knownLines: this.#hold.knownLines,
      waitingLines: this.#hold.held.length,
    };
  }

  /** Opened only where it is needed: that of a large site takes a while. */
  #stateBefore(): ImportState | undefined {
    const text = this.#checkpoint?.state ?? '';
    const isRead = [...this.#planned.values()].some(
      ({ range, toOffset }) => toOffset > range.fromOffset,
    );
    if (text === '' || !isRead) return undefined;
    return JSON.parse(this.#seal.open(text)) as ImportState;
  }

  /** The access logs that there is something to read of, with their lanes. */
  #accessLanes(): { file: AccessFile; lane: Lane; planned: Planned }[] {
    const { errors, access } = this.#logs;
    return access
      .map((file, i) => {
        const planned = this.#planned.get(file.head)!;
        return { file, lane: this.#lanes[errors.length + i]!, planned };
      })
      .filter(({ planned }) => planned.toOffset > planned.range.fromOffset);
  }

  #freshCoverage(): CoveredTime[] {
    return this.#accessLanes().map(({ file, lane, planned }) => {
      // Between what was read before and now nothing is missing.
      const fromMs = planned.range.known?.lastMs ?? 0;
      const { firstMs, lastMs } = lane;
      return { fromMs: fromMs > 0 ? fromMs : firstMs, toMs: lastMs, target: file.target };
    });
  }

  /** Time of the latest access line; -Infinity without any. */
  #accessEndMs(): number {
    return Math.max(-Infinity, ...this.#accessLanes().map(({ lane }) => lane.lastMs));
  }

  #reading(): Pick<LaneOptions, 'reading'> {
    const { generations, readApartBytes, readThreads = [] } = this.#options;
    const [first] = generations;
    if (generations.length !== 1 || readApartBytes === undefined) return {};
    const waiting = (this.#before?.lines.length ?? 0) + (this.#before?.held?.length ?? 0);
    const hasErrorLog = this.#logs.errors.length > 0 || waiting > 0;
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
    const counted = this.#isAlone ? lanes : this.#accessLanes().map(({ lane }) => lane);
    const firstMs = Math.min(...counted.map((lane) => lane.timeMs), Infinity);
    const before = this.#before;
    this.#hasNothingNew = firstMs === Infinity;
    const held = before?.held ?? [];
    // A request may have been decided long before its line was written.
    const fromMs = firstMs - this.#options.latenessMs;
    const sought = this.#hasNothingNew ? [] : held.filter((line) => line.secondMs >= fromMs);
    this.#hold.keep(held.filter((line) => line.secondMs < fromMs));
    if (before === undefined || this.#hasNothingNew) return true;
    if (before.cursorMs === 0) {
      // Nothing but lines came in so far.
      this.#session.addLines(inOrder([...before.lines, ...sought]));
      return true;
    }
    const newestMs = this.#checkpoint!.logTimeMs;
    if (!this.#isContinued() && firstMs < newestMs) {
      this.#note(
        `these logs begin at ${new Date(firstMs).toISOString()}, before what is in the store already ` +
          `(until ${new Date(newestMs).toISOString()}): the limiter's state of that time is not ` +
          'known, the replay starts without it',
      );
      this.#session.addLines(inOrder(sought));
      return false;
    }
    this.#session.restore({ ...before, lines: inOrder([...before.lines, ...sought]) });
    return true;
  }

  /** Whether a log goes on from a place that an earlier import reached. */
  #isContinued(): boolean {
    return [...this.#planned].some(
      ([head, { range, toOffset }]) =>
        range.fromOffset > 0 &&
        toOffset > range.fromOffset &&
        (this.#isAlone || this.#logs.access.some((file) => file.head === head)),
    );
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

  async #commit(
    lanes: readonly Lane[],
    isNewest: boolean,
    owed: readonly WaitingLine[],
  ): Promise<ImportedFile[]> {
    const sources = new Map(this.#checkpoint?.sources.map((source) => [source.sourceId, source]));
    const files: ImportedFile[] = this.#logs.empty.map((head) => emptyFile(head.path));
    const read = [...this.#logs.errors, ...this.#logs.access];
    for (const [i, file] of read.entries()) {
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
      if (lane.doneOffset === range.fromOffset) continue;
      sources.set(range.sourceId, await progressOf(file, range, lane, this.#isAlone));
    }
    const isMoved = isNewest && !this.#hasNothingNew;
    await this.#store.commit(this.#intent, {
      instance: this.#intent.instance,
      sequence: this.#intent.sequence,
      sources: [...sources.values()],
      state: this.#stateAfter(isMoved, owed),
      logTimeMs: Math.max(isMoved ? this.#endMs() : 0, this.#checkpoint?.logTimeMs ?? 0),
    });
    return files.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** The latest request's time; an error log that reaches further moves nothing. */
  #endMs(): number {
    const { latestMs } = this.#session;
    return this.#isAlone ? latestMs : Math.min(latestMs, this.#accessEndMs());
  }

  #stateAfter(isMoved: boolean, owed: readonly WaitingLine[]): string {
    const before = this.#before;
    const text = this.#checkpoint?.state ?? '';
    const { held } = this.#hold;
    if (!isMoved && text !== '') {
      // Nothing was read, or what was read moves the limiter nowhere.
      return before === undefined ? text : this.#seal.seal(JSON.stringify({ ...before, held }));
    }
    const snapshot = this.#session.snapshot();
    const cursorMs = isMoved ? Math.min(snapshot.cursorMs, this.#endMs()) : 0;
    const state: ImportState = { ...snapshot, cursorMs, lines: owed, held };
    return this.#seal.seal(JSON.stringify(state));
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
