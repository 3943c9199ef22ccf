/**
 * The daemon's work: follows logs, replays them step by step, and stores each step exactly once.
 *
 * A step reads what is there, writes down which bytes that was and up to which log time they are
 * handed on, replays them, inserts the rows that became complete, and commits the whole state: all
 * that waits included. A crash anywhere repeats the step from the state before it, with the same
 * bytes, to the same blocks.
 *
 * Not here: when to step (../commands/tail.ts), what is stored (../aggregate), how (../store).
 */
import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import type { LogZone } from '../../parsers/time.js';
import { Aggregator } from '../aggregate/aggregator.js';
import type { RowTable } from '../aggregate/rows.js';
import { EXIT, InputError } from '../errors.js';
import { unreadLog, type KnownLog, type LogProgress } from '../input/follow-progress.js';
import type { LineSink } from '../pipeline/lanes.js';
import { AccessFields } from '../replay/access-fields.js';
import { discardUnheldKeys, restoreEngine, snapshotEngine } from '../replay/engine-state.js';
import type { GenerationInput } from '../replay/generations.js';
import { ReplaySession } from '../replay/session.js';
import type { SessionState } from '../replay/session-state.js';
import type { Store } from '../store/store.js';
import type { Checkpoint, Intent, SourceProgress } from '../store/write-ahead.js';
import type { JsonLog } from './json-log.js';
import { StepRows } from './step-rows.js';
import type { TailLogs } from './tail-logs.js';
import { TailReader } from './tail-reader.js';
import { TailSources } from './tail-sources.js';
import type { TailRange, TailState } from './tail-state.js';

/** How often bytes noted before a crash are looked for, and how long apart. */
const MOST_TRIES = 20;
const TRY_MS = 100;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;

export interface TailerOptions {
  readonly instance: string;
  readonly generations: readonly GenerationInput[];
  readonly logs: TailLogs;
  readonly latenessMs: number;
  readonly zone: LogZone;
  readonly mostBytes?: number;
  readonly log: JsonLog;
  /** Rows as they were stored. */
  readonly onStored: (table: RowTable, row: readonly unknown[]) => void;
  readonly onStoreError: () => void;
}

export class Tailer {
  readonly #store: Store;
  readonly #options: TailerOptions;
  readonly #rows = new StepRows();
  readonly #session: ReplaySession;
  readonly #aggregator: Aggregator;
  readonly #sources: TailSources;
  #reader: TailReader | undefined;
  #sequence = 0;
  #oldSources: readonly SourceProgress[] = [];
  #isDrained = true;

  constructor(store: Store, options: TailerOptions) {
    this.#store = store;
    this.#options = options;
    const { logs } = options;
    const notes: string[] = [];
    this.#session = new ReplaySession({
      generations: options.generations,
      isAudit: false,
      latenessMs: options.latenessMs,
      usesConnection: logs.access.every(({ file }) => new AccessFields(file.scanner).hasConnection),
      hasErrorLog: logs.errors.length > 0,
      isErrorLogAlone: logs.access.length === 0,
      errorLogCount: logs.errors.length + logs.access.filter((log) => log.isPrefixed).length,
      details: 'refused',
      onDecision: (event) => this.#aggregator.decide(event),
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
      sink: this.#rows,
    });
    for (const note of notes) this.#aggregator.note(note);
    this.#sources = new TailSources(this.#session, this.#lineSink(), logs, options.zone);
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

  /**
   * Takes up the last state, and finishes the step that a crash interrupted.
   *
   * @throws InputError for a state that this configuration cannot go on from
   */
  async begin(): Promise<void> {
    const { instance, log } = this.#options;
    const checkpoint = await this.#store.checkpoint(instance);
    const pending = await this.#store.pendingIntent(instance);
    const ranges = (pending?.ranges ?? []) as readonly TailRange[];
    if (ranges.some((range) => range.untilMs === undefined)) {
      throw new InputError(
        `an import into instance "${instance}" was interrupted (begun by ${pending!.startedBy})\n` +
          '  Run that import again first: it goes on without counting anything twice.',
        EXIT.io,
      );
    }
    const known = this.#takeUp(checkpoint);
    const isKnown = new Set(known.map(({ sourceId }) => sourceId));
    const fresh = ranges.filter((range) => !isKnown.has(range.sourceId));
    const { zone, mostBytes } = this.#options;
    this.#reader = new TailReader(this.#options.logs, this.#sources, {
      known: [...known, ...fresh.map(({ name, sourceId }) => unreadLog(name, sourceId))],
      zone,
      ...(mostBytes === undefined ? {} : { mostBytes }),
      onNotice: ({ kind, path, message }) => {
        if (kind === 'lost') log.error(message, { kind, path });
        else log.info(message, { kind, path });
      },
    });
    const state = checkpoint === undefined ? undefined : tailOf(checkpoint);
    this.#reader.newestMs = state?.tail.newestMs ?? -Infinity;
    if (pending !== undefined) await this.#finish(pending, ranges);
  }

  /** Reads, replays and stores what is there. @returns whether there may be more at once */
  async step(): Promise<boolean> {
    const { ranges, untilMs, isSpent } = await this.#started.gather();
    if (ranges.length === 0) return false;
    const whole = ranges.map((range): TailRange => ({ ...range, untilMs }));
    await this.#perform(await this.#begin(whole), untilMs);
    return isSpent;
  }

  /** Reads and hands on all that is there, decides all that waits, and stores it. */
  async drain(): Promise<void> {
    while (await this.step());
    const { ranges } = await this.#started.gather();
    if (this.#isDrained && ranges.length === 0) return;
    const whole = ranges.map((range): TailRange => ({ ...range, untilMs: null }));
    await this.#perform(await this.#begin(whole), Infinity);
  }

  async close(): Promise<void> {
    await this.#reader?.close();
  }

  /** @returns what is known of the logs */
  #takeUp(checkpoint: Checkpoint | undefined): readonly KnownLog[] {
    if (checkpoint === undefined) return [];
    this.#sequence = checkpoint.sequence;
    this.#oldSources = checkpoint.sources;
    const state = tailOf(checkpoint);
    if (state === undefined) {
      this.#session.restore(JSON.parse(checkpoint.state) as SessionState);
      return checkpoint.sources;
    }
    const { tail } = state;
    this.#isDrained = tail.isDrained;
    if (tail.rules === rulesOf(this.#session)) {
      restoreEngine(this.#session, tail.engine);
      this.#aggregator.restore(tail.aggregates);
      discardUnheldKeys(this.#session, tail.engine);
    } else if (tail.isDrained) {
      this.#session.restore(state);
    } else {
      throw new InputError(
        `the configuration has changed since instance "${this.#options.instance}" was stopped, ` +
          'and requests of before still wait for their decision\n' +
          '  Start with the configuration of before, end it with SIGTERM, then start with the new one.',
        EXIT.configuration,
      );
    }
    this.#sources.restore(tail.sources);
    return tail.logs;
  }

  /** The step of before a crash, with its own bytes. */
  async #finish(intent: Intent, ranges: readonly TailRange[]): Promise<void> {
    const { log } = this.#options;
    log.info('finishes the step that was interrupted', { sequence: intent.sequence });
    for (const { name, sourceId, fromByte } of ranges) {
      if (this.#sources.get(sourceId) === undefined) this.#sources.add(name, sourceId, fromByte);
    }
    let isWhole = await this.#started.gatherAgain(ranges);
    for (let n = 1; n < MOST_TRIES && !isWhole; n++) {
      await pause(TRY_MS);
      isWhole = await this.#started.gatherAgain(ranges);
    }
    if (!isWhole) log.error('bytes of the interrupted step are gone', { ranges });
    const untilMs = ranges[0]?.untilMs ?? Infinity;
    await this.#perform(intent, untilMs);
  }

  async #begin(ranges: readonly TailRange[]): Promise<Intent> {
    const intent: Intent = {
      instance: this.#options.instance,
      sequence: this.#sequence + 1,
      ranges,
      startedBy: `${hostname()}, process ${process.pid}`,
    };
    await this.#insist(() => this.#store.begin(intent));
    return intent;
  }

  async #perform(intent: Intent, untilMs: number): Promise<void> {
    const isDrain = untilMs === Infinity;
    await this.#sources.handOn(untilMs);
    if (isDrain) {
      this.#session.finish(true);
      this.#aggregator.flush();
    }
    this.#isDrained = isDrain;
    await this.#insist(() => this.#rows.insert(this.#store, intent));
    const checkpoint = this.#checkpoint(intent, isDrain);
    await this.#insist(() => this.#store.commit(intent, checkpoint));
    this.#sequence = intent.sequence;
    for (const { table, row } of this.#rows.all) this.#options.onStored(table, row);
    this.#rows.clear();
  }

  #checkpoint(intent: Intent, isDrained: boolean): Checkpoint {
    const logs = this.#started.progress();
    const isOver = new Set(logs.filter((log) => log.complete).map((log) => log.sourceId));
    this.#sources.drop((id) => isOver.has(id));
    const { latestMs } = this.#session;
    const { newestMs } = this.#started;
    const empty = { version: 1, cursorMs: this.#session.engine.cursorMs, masterPid: -1 } as const;
    const state: TailState = {
      // An import behind a daemon that has not drained finds no zones: what waits would be missing.
      ...(isDrained ? this.#session.snapshot() : { ...empty, zones: [], lines: [] }),
      tail: {
        rules: rulesOf(this.#session),
        engine: snapshotEngine(this.#session),
        aggregates: this.#aggregator.snapshot(),
        logs,
        sources: this.#sources.snapshot(),
        newestMs: newestMs === -Infinity ? null : newestMs,
        isDrained,
      },
    };
    const old = this.#oldSources.filter(
      (source) => !logs.some(({ sourceId }) => sourceId === source.sourceId),
    );
    const sources = logs.map(sourceProgress);
    const { instance, sequence } = intent;
    return {
      instance,
      sequence,
      sources: [...old, ...sources],
      state: JSON.stringify(state),
      logTimeMs: Number.isFinite(latestMs) ? latestMs : 0,
    };
  }

  #lineSink(): LineSink {
    return {
      onLines: (lane, atMs, kind, reason, count) =>
        this.#aggregator.lines(lane.name, atMs, kind, reason, count),
      onUnparsable: (lane, reason, raw) => {
        const atMs = Number.isFinite(lane.timeMs) ? lane.timeMs : NaN;
        this.#aggregator.line(lane.name, atMs, 'unparsable', reason);
        const text = Buffer.from(raw).toString('utf8');
        this.#aggregator.unparsable(lane.name, lane.reader.offset, reason, text);
      },
    };
  }

  /** Until the store takes it; nothing is read meanwhile. */
  async #insist(action: () => Promise<void>): Promise<void> {
    for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_RETRY_MS)) {
      try {
        await action();
        return;
      } catch (error) {
        if (!(error instanceof InputError) || error.exitCode !== EXIT.io) throw error;
        this.#options.log.error('the store does not take a step; tries again', {
          error: error.message,
          waitMs,
        });
        this.#options.onStoreError();
        await pause(waitMs);
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

function tailOf(checkpoint: Checkpoint): TailState | undefined {
  if (checkpoint.state === '') return undefined;
  const state = JSON.parse(checkpoint.state) as Partial<TailState>;
  return state.tail === undefined ? undefined : (state as TailState);
}

/** Tells configurations apart by all that waiting requests refer to. */
function rulesOf(session: ReplaySession): string {
  const { rules, ruleSets, zones } = session.generations;
  const text = JSON.stringify([
    rules.map((rule, i) => [
      ruleSets[i]!.serverName,
      ruleSets[i]!.location,
      rule.isDryRun,
      rule.connZones,
      rule.limits.map((limit) => [
        ...[limit.zoneIndex, limit.rateMilliRps, limit.burstMilliReq, limit.delayMilliReq],
      ]),
    ]),
    zones.map((zone) => [zone.name, zone.sizeBytes]),
    session.generations.currentZones().map(({ zone, key }) => [zone.name, key]),
  ]);
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
