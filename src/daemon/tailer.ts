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
 * store (spool-sender.ts), where to begin (tail-start.ts), the replay itself (tail-replay.ts).
 */
import { EXIT, InputError } from '../errors.js';
import { unreadLog, type KnownLog } from '../input/follow-progress.js';
import type { LiveInput } from '../input/live-lines.js';
import type { StateSeal } from '../pipeline/state-seal.js';
import { packState, type Checkpoint, type SourceProgress } from '../store/write-ahead.js';
import { holdMsOf } from './buffered-logs.js';
import { LiveLogs, type LivePlan } from './live-logs.js';
import { OpenRecord } from './open-record.js';
import type { Spool } from './spool.js';
import { codeOf } from './spool-files.js';
import { checkpointOf, takeUpReplay } from './tail-checkpoint.js';
import { logOf } from './tail-log.js';
import { TailReader } from './tail-reader.js';
import { TailReplay, type TailReplayOptions } from './tail-replay.js';
import type { Start } from './tail-start.js';
import { tailOf } from './tail-state.js';
import type { StepRange, TailStep } from './tail-steps.js';

/** How often bytes noted before a crash are looked for, and how long apart. */
const MOST_TRIES = 20;
const TRY_MS = 100;
/** How long apart a record is tried to be written to a disk that is full, and how often at the end. */
const DISK_RETRY_MS = 1000;
const MOST_TRIES_AT_END = 3;

export interface TailerOptions extends TailReplayOptions {
  readonly mostBytes?: number;
  readonly seal: StateSeal;
  readonly spool: Spool;
  /** Aborted when the daemon is asked to end: a disk that is full is not waited for any more. */
  readonly ending?: AbortSignal;
}

export class Tailer {
  readonly #options: TailerOptions;
  readonly #replay: TailReplay;
  readonly #record = new OpenRecord();
  #reader: TailReader | undefined;
  #live: readonly LiveLogs[] = [];
  #oldSources: readonly SourceProgress[] = [];
  #reloadMs: number | undefined;

  constructor(options: TailerOptions) {
    this.#options = options;
    this.#replay = new TailReplay(options);
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
    return this.#replay.session.latestMs - this.#options.latenessMs;
  }

  /** Rows that became complete and are in no record yet. */
  get openRows(): number {
    return this.#replay.rows.count;
  }

  /**
   * Takes up the last state, and does the steps after it again.
   *
   * @throws InputError for a state that this configuration cannot go on from
   */
  async begin({ checkpoint, steps, closed }: Start): Promise<void> {
    const { log, seal } = this.#options;
    const known = this.#takeUp(checkpoint, steps.length > 0);
    const again = steps.flatMap(({ ranges }) => ranges);
    const reader = this.#open([...known, ...unknownOf(again, known)]);
    this.#reader = reader;
    const state = checkpoint === undefined ? undefined : tailOf(checkpoint, seal);
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
      else this.#closedAgain(step.sequence);
    }
  }

  /** Reads and replays what is there. @returns whether there may be more at once */
  async step(): Promise<boolean> {
    const { ranges, untilMs, isSpent, reloadMs } = await this.#started.gather();
    if (ranges.length === 0) return false;
    if (reloadMs !== undefined) {
      // What comes behind it is decided by a configuration that has to be read first.
      this.#reloadMs = reloadMs;
      this.#replay.isDrained = false;
      this.#record.note(ranges, 0);
      return true;
    }
    this.#record.note(ranges, untilMs);
    await this.#replay.handOn(untilMs);
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
      this.#record.note(ranges, null);
      await this.#replay.handOn(Infinity);
    }
    const checkpoint = await this.keep();
    await this.close();
    return { checkpoint, steps: [], closed: this.#record.closedSequence };
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
    this.#record.note(ranges, ms);
    await this.#replay.handOn(ms);
  }

  /** Stores the state as it is, and what there is to read, without handing anything on. */
  async keep(): Promise<Checkpoint> {
    // Where the logs stand is known when they have been read from.
    const { ranges, reloadMs } = await this.#started.gather();
    this.#reloadMs ??= reloadMs;
    if (ranges.length > 0) this.#replay.isDrained = false;
    this.#record.note(ranges, 0);
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
          if (teller.twinOf(log, this.#replay.logs.all) !== undefined) return false;
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
    if (!this.#replay.isDrained || ranges.length > 0) {
      this.#record.note(ranges, null);
      await this.#replay.handOn(Infinity);
    }
    await this.commit({ isWhole: true });
  }

  /**
   * Closes a record; when it returns true, the steps so far are counted, whatever happens.
   *
   * @param isWhole with the state, whether it is due or not
   * @returns false where that would be too dear now: lines that were received need a state
   */
  async commit({ isWhole }: { readonly isWhole: boolean }): Promise<boolean> {
    const record = this.#record;
    if (record.canWait && !isWhole) return false;
    if (record.isEmpty) {
      if (!isWhole || record.isStateNew) return true;
      // Each record has a step, so that sequences have no gaps.
      record.note([], 0);
    }
    // Lines that were received can't be read again.
    await this.#close(isWhole || record.isStateDue(this.#live.length > 0) || record.hasLive);
    return true;
  }

  async #close(hasState: boolean): Promise<Checkpoint | undefined> {
    const record = this.#record;
    const { sequence } = record;
    const beganMs = performance.now();
    const checkpoint = hasState ? this.#checkpoint(sequence) : undefined;
    const state =
      checkpoint === undefined ? undefined : await packState(checkpoint.sources, checkpoint.state);
    const place = record.place(checkpoint);
    const tables = this.#replay.rows.tables();
    await this.#insist(() => this.#options.spool.append(place, tables, state));
    this.#closed(sequence);
    if (checkpoint === undefined) return undefined;
    record.stateWritten(checkpoint, performance.now() - beganMs);
    this.#replay.sources.showLive();
    this.#started.stored();
    return checkpoint;
  }

  async close(): Promise<void> {
    await this.#reader?.close();
  }

  /** @returns what is known of the logs */
  #takeUp(checkpoint: Checkpoint | undefined, hasSteps: boolean): readonly KnownLog[] {
    if (checkpoint === undefined) return [];
    this.#record.takeUp(checkpoint);
    this.#oldSources = checkpoint.sources;
    const { seal, logs } = this.#options;
    return takeUpReplay(this.#replay, checkpoint, hasSteps, { seal, teller: logs.teller });
  }

  #open(known: readonly KnownLog[]): TailReader {
    const { log, mostBytes, latenessMs } = this.#options;
    const { patterns, teller } = this.#options.logs;
    const { logs, sources, zone } = this.#replay;
    return new TailReader(logs, sources, {
      ...{ known, patterns, teller, zone },
      holdMs: holdMsOf(this.#options.logs, latenessMs),
      onLog: (found) => {
        this.#replay.tellLog(found);
      },
      ...(mostBytes === undefined ? {} : { mostBytes }),
      onNotice: ({ kind, path, message }) => {
        if (kind === 'lost') log.error(message, { kind, path });
        else log.info(message, { kind, path });
      },
    });
  }

  /** A step of before a crash, with its own bytes. */
  async #stepAgain({ ranges, untilMs }: TailStep): Promise<void> {
    const files = ranges.filter((range) => range.isLive !== true);
    const { sources } = this.#replay;
    for (const { name, sourceId, fromByte } of files) {
      if (sources.get(sourceId) === undefined) sources.add(name, sourceId, fromByte);
    }
    let isWhole = await this.#started.gatherAgain(files);
    for (let n = 1; n < MOST_TRIES && !isWhole; n++) {
      await pause(TRY_MS);
      isWhole = await this.#started.gatherAgain(files);
    }
    if (!isWhole) this.#options.log.error('bytes read before are gone', { ranges });
    this.#record.note(ranges, untilMs);
    await this.#replay.handOn(untilMs ?? Infinity);
  }

  /** Steps of a record that is in the spool: its rows are there. */
  #closedAgain(sequence: number): void {
    const { spool, log } = this.#options;
    if (!spool.isAsBefore(sequence, this.#replay.rows.tables())) {
      log.error(
        'steps done again made other rows than before: some may be missing or count twice',
        {
          sequence,
          hint: 'an option that decides what is counted when was changed, or this is a bug: please report it',
        },
      );
    }
    this.#closed(sequence);
  }

  /** What the record took is no longer open. */
  #closed(sequence: number): void {
    this.#record.closed(sequence);
    this.#replay.rows.clear();
  }

  #checkpoint(sequence: number): Checkpoint {
    const { instance, generations, seal } = this.#options;
    return checkpointOf(this.#replay, {
      ...{ instance, sequence, generations, seal },
      reader: this.#started,
      oldSources: this.#oldSources,
    });
  }

  /**
   * Until the disk takes it; nothing is read meanwhile.
   *
   * @throws InputError (io) when it does not, and the daemon is asked to end
   */
  async #insist(action: () => Promise<void>): Promise<void> {
    const { spool, log, ending } = this.#options;
    for (let n = 1, atEnd = 0; ; n++) {
      try {
        await action();
        if (n > 1) log.info('the spool takes records again');
        return;
      } catch (error) {
        if (!/^(ENOSPC|EDQUOT|EIO|EROFS)$/.test(codeOf(error))) throw error;
        if (n === 1) {
          const found = { error: (error as Error).message, spool: spool.path };
          log.error('the spool cannot be written: stops reading until it can', found);
        }
        if (ending?.aborted === true && ++atEnd === MOST_TRIES_AT_END) {
          throw noRoom(spool.path, error as Error);
        }
        await pause(DISK_RETRY_MS);
      }
    }
  }
}

function noRoom(path: string, cause: Error): InputError {
  return new InputError(
    `${path}: expected room for what was read, found ${cause.message}\n` +
      '  Make room and start again: it goes on from the last step stored, and reads the rest once more.',
    EXIT.io,
    { cause },
  );
}

/** Logs that steps after the checkpoint read from for the first time. */
function unknownOf(again: readonly StepRange[], known: readonly KnownLog[]): KnownLog[] {
  const isKnown = new Set(known.map(({ sourceId }) => sourceId));
  const fresh = new Map<string, string>();
  for (const { sourceId, name, isLive } of again) {
    if (!isKnown.has(sourceId) && isLive !== true) fresh.set(sourceId, name);
  }
  return [...fresh].map(([id, name]) => unreadLog(name, id));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
