/**
 * The daemon's work: follows logs, replays them step by step, and closes what became complete into
 * records of the spool.
 *
 * A step reads what is there, up to a log time hands it on to the replay, and touches no disk. A
 * record closes the steps since the last one: their rows, which bytes they were and up to which log
 * times they were handed on, and now and then the whole state of the replay, all that waits
 * included. The record is in force when the spool has it; from then on the steps are counted, and a
 * restart does them again from the newest state only to have the state, not the rows. What a crash
 * cuts off before that has left nothing behind.
 *
 * Nothing that is stored depends on how steps and records are cut, only on bytes and log times.
 *
 * Not here: when to step (../commands/tail.ts), what is stored (../aggregate), how it comes into the
 * store (spool-sender.ts), where to begin (tail-start.ts).
 */
import { hostname } from 'node:os';
import type { LineScanner } from '../../parsers/access/line-scanner.js';
import type { LogZone } from '../../parsers/time.js';
import { Aggregator } from '../aggregate/aggregator.js';
import { hasWildcard } from '../../parsers/conf/glob.js';
import { EXIT, InputError } from '../errors.js';
import { unreadLog, type KnownLog, type LogProgress } from '../input/follow-progress.js';
import type { LiveInput } from '../input/live-lines.js';
import { countingSink } from '../pipeline/counting-sink.js';
import type { Privacy } from '../pipeline/privacy.js';
import { PrivateRows } from '../pipeline/private-rows.js';
import type { StateSeal } from '../pipeline/state-seal.js';
import { AccessFields } from '../replay/access-fields.js';
import { FLAG } from '../replay/event-flags.js';
import { discardUnheldKeys, restoreEngine, snapshotEngine } from '../replay/engine-state.js';
import { ReplaySession } from '../replay/session.js';
import type { SessionState } from '../replay/session-state.js';
import { packState, type Checkpoint, type SourceProgress } from '../store/write-ahead.js';
import type { JsonLog } from './json-log.js';
import { LiveLogs, type LivePlan } from './live-logs.js';
import { showsZone, ZoneFinder } from './log-zone.js';
import { RecordRows } from './record-rows.js';
import type { Spool } from './spool.js';
import { codeOf } from './spool-files.js';
import { LogList, logOf, toldOf, type AccessLog, type TailLog, type ToldLog } from './tail-log.js';
import type { TailLogs } from './tail-logs.js';
import { TailReader } from './tail-reader.js';
import { rulesOf } from './tail-rules.js';
import { TailSources } from './tail-sources.js';
import type { TailGeneration } from './tail-generations.js';
import type { Start } from './tail-start.js';
import { tailOf, type TailRange, type TailState } from './tail-state.js';
import { rangesOf, type StepRange, type TailStep } from './tail-steps.js';

/** How often bytes noted before a crash are looked for, and how long apart. */
const MOST_TRIES = 20;
const TRY_MS = 100;
/** How long apart a record is tried to be written to a disk that is full. */
const DISK_RETRY_MS = 1000;
/**
 * A state is written when this many times its bytes have been read since the one before, so that
 * writing states costs little beside reading, and reading again after a crash is short.
 */
const READ_PER_STATE = 8;
/** And when this has passed: logs are not kept for ever. */
const LONGEST_WITHOUT_STATE_MS = 120_000;
/** And when each record would have to name more ranges than this. */
const MOST_RANGES = 500;
/** And this, where lines can't be read again: they are handed on from a state that holds them. */
const LONGEST_LIVE_MS = 10_000;

export interface TailerOptions {
  readonly instance: string;
  readonly generations: readonly TailGeneration[];
  readonly logs: TailLogs;
  readonly latenessMs: number;
  /** Of the error logs' times; undefined to find it out from the access logs. */
  readonly zone: LogZone | undefined;
  readonly mostBytes?: number;
  readonly privacy: Privacy;
  readonly seal: StateSeal;
  readonly log: JsonLog;
  readonly spool: Spool;
  /** A request was logged later after its decision than latenessMs. */
  readonly onLate?: () => void;
}

export class Tailer {
  readonly #options: TailerOptions;
  readonly #rows = new RecordRows();
  readonly #session: ReplaySession;
  readonly #aggregator: Aggregator;
  readonly #sources: TailSources;
  readonly #logs: LogList;
  readonly #zone: ZoneFinder;
  #reader: TailReader | undefined;
  #live: readonly LiveLogs[] = [];
  /** Of the last record. */
  #sequence = 0;
  /** Of the last state, and the steps since then, those of no record yet included. */
  #base = 0;
  #ranges: StepRange[] = [];
  #openSteps = 0;
  #bytesSinceState = 0;
  /** A record begins with a state: what there was before it need not be read again. */
  #stateBytes = 0;
  #stateAtMs = -Infinity;
  #oldSources: readonly SourceProgress[] = [];
  #isDrained = true;
  #reloadMs: number | undefined;

  constructor(options: TailerOptions) {
    this.#options = options;
    const { logs } = options;
    const access = [...logs.access, ...logs.live.flatMap((plan) => plan.access)];
    const errors = [...logs.errors, ...logs.live.map((plan) => plan.errors)];
    // Those of patterns and folders are not known yet.
    const mayGrow = logs.patterns.some(hasWildcard);
    const mixed = access.filter((log) => log.isPrefixed).length;
    const notes: string[] = [];
    this.#session = new ReplaySession({
      generations: options.generations,
      isAudit: false,
      latenessMs: options.latenessMs,
      usesConnection: logs.formats.every((scanner) => new AccessFields(scanner).hasConnection),
      hasErrorLog: logs.hasErrorLog,
      isErrorLogAlone: access.length === 0 && !mayGrow,
      errorLogCount: mayGrow ? Infinity : errors.length + mixed,
      details: 'refused',
      onDecision: (event) => {
        if ((this.#session.engine.pool.flags[event]! & FLAG.late) !== 0) options.onLate?.();
        this.#aggregator.decide(event);
      },
      onPlain: (plain) => this.#aggregator.decidePlain(plain),
      onUnmatchedLine: (line) => this.#aggregator.unmatchedLine(line),
      onMark: (mark, ms) => this.#aggregator.mark(mark, ms, ''),
      onNote: (note) => {
        options.log.warn('cannot be evaluated', { note });
        // The session's first notes come while it is being made.
        notes.push(note);
        (this.#aggregator as Aggregator | undefined)?.note(note);
      },
    });
    this.#aggregator = new Aggregator(this.#session, {
      instance: options.instance,
      sink: new PrivateRows(this.#rows, options.privacy),
    });
    for (const note of notes) this.#aggregator.note(note);
    // With the live ones: a state can hold lines of theirs.
    const isLeftOut = (log: AccessLog): boolean => logs.liveLeftOut.includes(log);
    this.#logs = new LogList([...errors, ...access.filter((log) => !isLeftOut(log))]);
    const mayShow = access.some(({ file }) => showsZone(file.scanner));
    this.#zone = new ZoneFinder(
      options.zone ?? (mayShow || mayGrow ? undefined : 'system'),
      (offsetMinutes) => {
        options.log.warn(
          "the access logs show another offset from UTC than the error logs' times are read with; " +
            'give --timezone with the name of the zone',
          { offsetMinutes },
        );
      },
    );
    this.#sources = new TailSources(
      this.#session,
      countingSink(this.#aggregator),
      this.#logs,
      this.#zone,
    );
  }

  get lagBytes(): ReadonlyMap<string, number> {
    return this.#started.lagBytes;
  }

  get #started(): TailReader {
    if (this.#reader === undefined) throw new Error('begin() comes first');
    return this.#reader;
  }

  get newestMs(): number {
    return this.#started.newestMs;
  }

  /** Log time up to which every request is decided; -Infinity before the first line. */
  get reachedMs(): number {
    return this.#session.latestMs - this.#options.latenessMs;
  }

  /** Rows that became complete and are in no record yet. */
  get openRows(): number {
    return this.#rows.count;
  }

  /**
   * Takes up the last state, and does the steps after it again.
   *
   * @throws InputError for a state that this configuration cannot go on from
   */
  async begin({ checkpoint, steps, closed }: Start): Promise<void> {
    const { log } = this.#options;
    const known = this.#takeUp(checkpoint, steps.length > 0);
    const isKnown = new Set(known.map(({ sourceId }) => sourceId));
    const fresh = new Map<string, string>();
    const again = steps.flatMap(({ ranges }) => ranges);
    for (const { sourceId, name, isLive } of again) {
      if (!isKnown.has(sourceId) && isLive !== true) fresh.set(sourceId, name);
    }
    const { logs, mostBytes } = this.#options;
    const reader = new TailReader(this.#logs, this.#sources, {
      known: [...known, ...[...fresh].map(([id, name]) => unreadLog(name, id))],
      patterns: logs.patterns,
      teller: logs.teller,
      zone: this.#zone,
      onLog: (found) => {
        this.#tellLog(found);
      },
      ...(mostBytes === undefined ? {} : { mostBytes }),
      onNotice: ({ kind, path, message }) => {
        if (kind === 'lost') log.error(message, { kind, path });
        else log.info(message, { kind, path });
      },
    });
    this.#reader = reader;
    const state = checkpoint === undefined ? undefined : tailOf(checkpoint, this.#options.seal);
    reader.newestMs = state?.tail.newestMs ?? -Infinity;
    for (const told of state?.tail.told ?? []) reader.addLog(logOf(told));
    for (const { log: told } of again) if (told !== undefined) reader.addLog(logOf(told));
    if (again.some(({ isLive }) => isLive === true)) {
      log.error('lines that were received after the last state are gone', {
        sources: [...new Set(again.filter((range) => range.isLive).map(({ name }) => name))],
      });
    }
    if (steps.length > 0) {
      log.info('reads again what was read after the last state', { steps: steps.length });
    }
    for (const [i, step] of steps.entries()) {
      await this.#stepAgain(step);
      if (steps[i + 1]?.sequence === step.sequence) continue;
      if (step.sequence > closed) await this.commit({ isWhole: false });
      else this.#forget(step.sequence);
    }
  }

  /** Reads and replays what is there. @returns whether there may be more at once */
  async step(): Promise<boolean> {
    const { ranges, untilMs, isSpent, reloadMs } = await this.#started.gather();
    if (ranges.length === 0) return false;
    if (reloadMs !== undefined) {
      // What comes behind it is decided by a configuration that has to be read first.
      this.#reloadMs = reloadMs;
      this.#isDrained = false;
      this.#note(ranges, 0);
      return true;
    }
    this.#note(ranges, untilMs);
    await this.#handOn(untilMs);
    return isSpent;
  }

  /** When nginx has reloaded, by its own log, if that was read since this was asked last. */
  takeReload(): number | undefined {
    const ms = this.#reloadMs;
    this.#reloadMs = undefined;
    return ms;
  }

  /**
   * Ends here, for another tailer to go on from in the same process, with later configurations.
   *
   * @param isSettled decides all that waits, so that the other need not know of earlier ones
   */
  async handOver({ isSettled }: { readonly isSettled: boolean }): Promise<Start> {
    if (isSettled) {
      const { ranges } = await this.#started.gather();
      this.#note(ranges, null);
      await this.#handOn(Infinity);
    }
    const checkpoint = await this.keep();
    await this.close();
    return { checkpoint, steps: [], closed: this.#sequence };
  }

  /**
   * Hands on what there is to read, though a log may still bring something older.
   *
   * @param untilMs up to then; undefined for all of it
   */
  async handOnNow(untilMs: number | undefined): Promise<void> {
    const { ranges, reloadMs } = await this.#started.gather();
    this.#reloadMs ??= reloadMs;
    const ms = Math.max(0, untilMs ?? this.newestMs);
    this.#note(ranges, ms);
    await this.#handOn(ms);
  }

  /** Stores the state as it is, and what there is to read, without handing anything on. */
  async keep(): Promise<Checkpoint> {
    // Where the logs stand is known when they have been read from.
    const { ranges, reloadMs } = await this.#started.gather();
    this.#reloadMs ??= reloadMs;
    if (ranges.length > 0) this.#isDrained = false;
    this.#note(ranges, 0);
    return (await this.#close(true))!;
  }

  /** Folders whose changes are worth a step. */
  get folders(): readonly string[] {
    return this.#started.folders;
  }

  /** Takes what comes through these from now on. */
  receive(inputs: readonly { readonly plan: LivePlan; readonly input: LiveInput }[]): void {
    const { confs, liveLeftOut, teller } = this.#options.logs;
    this.#live = inputs.map(({ plan, input }) => {
      return new LiveLogs(plan, input, confs, liveLeftOut, {
        onLog: (log) => {
          if (teller.twinOf(log, this.#logs.all) !== undefined) return false;
          this.#started.addLog(log);
          return true;
        },
        onLine: (...line) => {
          this.#started.live(...line);
        },
      });
    });
    this.#started.receive(this.#live);
  }

  /** All that was to come has come: there are but live inputs, and those have ended. */
  get hasEnded(): boolean {
    const { live, patterns } = this.#options.logs;
    return live.length > 0 && patterns.length === 0 && this.#live.every((l) => l.input.hasEnded);
  }

  /** Reads and hands on all that is there, and decides all that waits. */
  async drain(): Promise<void> {
    for (const { input } of this.#live) await input.close();
    while (await this.step());
    if (this.#live.length > 0) {
      // Lines received are handed on from a state that holds them.
      await this.commit({ isWhole: true });
      this.#started.receive([]);
    }
    const { ranges } = await this.#started.gather();
    if (!this.#isDrained || ranges.length > 0) {
      this.#note(ranges, null);
      await this.#handOn(Infinity);
    }
    await this.commit({ isWhole: true });
  }

  /**
   * Closes a record; when it returns, the steps so far are counted, whatever happens.
   *
   * @param isWhole with the state, whether it is due or not
   */
  async commit({ isWhole }: { readonly isWhole: boolean }): Promise<void> {
    if (this.#openSteps === 0) {
      if (!isWhole || this.#ranges.length === 0) return;
      // Each record has a step, so that sequences have no gaps.
      this.#note([], 0);
    }
    // Lines that were received can't be read again.
    await this.#close(isWhole || this.#isStateDue || this.#ranges.some(({ isLive }) => isLive));
  }

  async #close(hasState: boolean): Promise<Checkpoint | undefined> {
    const sequence = this.#sequence + 1;
    const checkpoint = hasState ? this.#checkpoint(sequence) : undefined;
    const state =
      checkpoint === undefined ? undefined : await packState(checkpoint.sources, checkpoint.state);
    const place = {
      version: 1,
      sequence,
      base: state === undefined ? this.#base : sequence,
      ranges: [...this.#ranges],
      startedBy: `${hostname()}, process ${process.pid}`,
      sources: checkpoint?.sources ?? [],
      logTimeMs: checkpoint?.logTimeMs ?? 0,
    } as const;
    const tables = this.#rows.tables();
    await this.#insist(() => this.#options.spool.append(place, tables, state));
    this.#forget(sequence);
    if (state === undefined) return undefined;
    this.#base = sequence;
    this.#ranges = [];
    this.#bytesSinceState = 0;
    this.#stateBytes = checkpoint!.state.length;
    this.#stateAtMs = performance.now();
    this.#sources.showLive();
    this.#started.stored();
    return checkpoint;
  }

  async close(): Promise<void> {
    await this.#reader?.close();
  }

  /** @returns what is known of the logs */
  #takeUp(checkpoint: Checkpoint | undefined, hasSteps: boolean): readonly KnownLog[] {
    if (checkpoint === undefined) return [];
    this.#sequence = checkpoint.sequence;
    this.#base = checkpoint.sequence;
    this.#stateBytes = checkpoint.state.length;
    this.#stateAtMs = performance.now();
    this.#oldSources = checkpoint.sources;
    const state = tailOf(checkpoint, this.#options.seal);
    if (state === undefined) {
      this.#session.restore(JSON.parse(this.#options.seal.open(checkpoint.state)) as SessionState);
      return checkpoint.sources;
    }
    const { tail } = state;
    this.#isDrained = tail.isDrained;
    if (!tail.isDrained) this.#zone.resume(tail.zone ?? undefined);
    for (const told of tail.told ?? []) this.#takeUpLog(logOf(told), tail.logs);
    for (const told of tail.waiting ?? []) this.#logs.add(logOf(told));
    const { ruleCount = this.#session.engine.rules.length } = tail;
    if (tail.rules === rulesOf(this.#session, ruleCount, tail.engine.zones.length)) {
      restoreEngine(this.#session, tail.engine);
      this.#aggregator.restore(tail.aggregates);
      discardUnheldKeys(this.#session, tail.engine);
    } else if (tail.isDrained && !hasSteps) {
      this.#session.restore(state);
    } else {
      throw new InputError(
        `another version of limitlens left requests of instance "${this.#options.instance}" waiting ` +
          'for their decision, and reads their configuration otherwise\n' +
          '  Start that version, end it with SIGTERM, then start this one.',
        EXIT.configuration,
      );
    }
    this.#sources.restore(tail.sources);
    return tail.logs;
  }

  #tellLog(log: TailLog): void {
    const { path, kind } = log;
    this.#options.log.info('follows another log', { path, kind });
    const { formats, hasErrorLog } = this.#options.logs;
    const hasConnection = (scanner: LineScanner): boolean =>
      new AccessFields(scanner).hasConnection;
    const isUnexpected =
      kind === 'error'
        ? !hasErrorLog
        : formats.every(hasConnection) && !hasConnection(log.file.scanner);
    if (!isUnexpected) return;
    const hint = 'start again, so that error-log lines and requests are joined in view of it';
    this.#options.log.warn('a log of a kind that was not there at the start', { path, hint });
  }

  /** A log that was followed before; one with the same requests that was not stays left out. */
  #takeUpLog(log: TailLog, known: readonly KnownLog[]): void {
    const { teller } = this.#options.logs;
    const others = this.#logs.all.filter(({ path }) => !known.some(({ name }) => name === path));
    const twin = log.kind === 'access' ? teller.twinOf(log, others) : undefined;
    if (twin !== undefined) {
      this.#logs.remove(twin.path);
      teller.exclude(twin.path);
    }
    this.#logs.add(log);
  }

  /** A step of before a crash, with its own bytes. */
  async #stepAgain({ ranges, untilMs }: TailStep): Promise<void> {
    const files = ranges.filter((range) => range.isLive !== true);
    for (const { name, sourceId, fromByte } of files) {
      if (this.#sources.get(sourceId) === undefined) this.#sources.add(name, sourceId, fromByte);
    }
    let isWhole = await this.#started.gatherAgain(files);
    for (let n = 1; n < MOST_TRIES && !isWhole; n++) {
      await pause(TRY_MS);
      isWhole = await this.#started.gatherAgain(files);
    }
    if (!isWhole) this.#options.log.error('bytes read before are gone', { ranges });
    this.#note(ranges, untilMs);
    await this.#handOn(untilMs ?? Infinity);
  }

  /** Notes a step of the record to come. */
  #note(read: readonly Omit<TailRange, 'untilMs'>[], untilMs: number | null): void {
    const place = { untilMs, sequence: this.#sequence + 1, step: this.#openSteps };
    this.#ranges.push(...rangesOf(read, place));
    this.#openSteps++;
    for (const { fromByte, toByte } of read) this.#bytesSinceState += toByte - fromByte;
  }

  async #handOn(untilMs: number): Promise<void> {
    this.#isDrained = untilMs === Infinity;
    if (this.#isDrained) this.#zone.settle();
    await this.#sources.handOn(untilMs);
    if (!this.#isDrained) return;
    this.#session.finish(true);
    this.#aggregator.flush();
  }

  /** What the record took is no longer open. */
  #forget(sequence: number): void {
    this.#sequence = sequence;
    this.#openSteps = 0;
    this.#rows.clear();
  }

  get #isStateDue(): boolean {
    return (
      this.#ranges.length >= MOST_RANGES ||
      this.#bytesSinceState >= READ_PER_STATE * this.#stateBytes ||
      performance.now() - this.#stateAtMs >=
        (this.#live.length > 0 ? LONGEST_LIVE_MS : LONGEST_WITHOUT_STATE_MS)
    );
  }

  #checkpoint(sequence: number): Checkpoint {
    const isDrained = this.#isDrained;
    const logs = this.#started.progress();
    const isOpen = new Set(logs.filter((log) => !log.complete).map((log) => log.sourceId));
    this.#sources.drop((id) => !isOpen.has(id));
    const { latestMs } = this.#session;
    const { newestMs } = this.#started;
    const empty = { version: 1, cursorMs: this.#session.engine.cursorMs, masterPid: -1 } as const;
    const state: TailState = {
      // An import behind a daemon that has not drained finds no zones: what waits would be missing.
      ...(isDrained ? this.#session.snapshot() : { ...empty, zones: [], lines: [] }),
      tail: {
        generations: this.#options.generations.map(({ stored }) => stored),
        ...this.#rules(),
        engine: snapshotEngine(this.#session),
        aggregates: this.#aggregator.snapshot(),
        logs,
        sources: this.#sources.snapshot(),
        told: this.#started.told,
        waiting: this.#waitingLogs(),
        zone: this.#zone.zone ?? null,
        newestMs: newestMs === -Infinity ? null : newestMs,
        isDrained,
      },
    };
    const old = this.#oldSources.filter(
      (source) => !logs.some(({ sourceId }) => sourceId === source.sourceId),
    );
    const sources = logs.map(sourceProgress);
    return {
      instance: this.#options.instance,
      sequence,
      sources: [...old, ...sources],
      state: this.#options.seal.seal(JSON.stringify(state)),
      logTimeMs: Number.isFinite(latestMs) ? latestMs : 0,
    };
  }

  #rules(): { rules: string; ruleCount: number } {
    const { rules, zones } = this.#session.generations;
    return {
      rules: rulesOf(this.#session, rules.length, zones.length),
      ruleCount: rules.length,
    };
  }

  /** Logs that lines wait of, whatever a later configuration says of them. */
  #waitingLogs(): ToldLog[] {
    return this.#logs.all.filter(({ path }) => this.#sources.of(path).length > 0).map(toldOf);
  }

  /** Until the disk takes it; nothing is read meanwhile. */
  async #insist(action: () => Promise<void>): Promise<void> {
    for (let n = 1; ; n++) {
      try {
        await action();
        if (n > 1) this.#options.log.info('the spool takes records again');
        return;
      } catch (error) {
        const { spool, log } = this.#options;
        if (!/^(ENOSPC|EDQUOT|EIO|EROFS)$/.test(codeOf(error))) throw error;
        if (n === 1) {
          const found = { error: (error as Error).message, spool: spool.path };
          log.error('the spool cannot be written: stops reading until it can', found);
        }
        await pause(DISK_RETRY_MS);
      }
    }
  }
}

/** What an import knows a log by; lines and first time are not counted by source here. */
function sourceProgress(log: LogProgress): SourceProgress {
  const { sourceId, headHash, headLength, tailHash, offset, name, complete } = log;
  const lastMs = Math.floor(log.lastMs);
  const place = { sourceId, headHash, headLength, tailHash, offset, name, complete };
  return { ...place, lines: 0, firstMs: 0, lastMs };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
