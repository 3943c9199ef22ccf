/**
 * Reads what there is to read of all logs, within a bound, into the queues of their sources.
 *
 * Logs are polled twice: the newest line seen in the first round tells up to which moment the second
 * one has surely seen all lines of every log. Nothing but that order of reading, and the times of
 * the lines, goes into the moment up to which lines may be handed on. While live lines are received,
 * it is the moment of the step before, whose lines have been stored with the state.
 *
 * Units: bytes, epoch milliseconds.
 */
import { FollowedLogs } from '../input/follow-set.js';
import type { FollowedLog } from '../input/follow.js';
import type { FollowNotice, KnownLog, LogProgress } from '../input/follow-progress.js';
import type { LiveLogs } from './live-logs.js';
import { LineTimes } from './line-times.js';
import type { LogTeller } from './log-teller.js';
import type { ZoneFinder } from './log-zone.js';
import { toldOf, type LogList, type TailLog, type ToldLog } from './tail-log.js';
import type { TailSources } from './tail-sources.js';
import type { TailRange } from './tail-state.js';

/** Per log and round. */
const DEFAULT_MOST_BYTES = 4 << 20;
/** Lines of a log that waits for slower ones. */
const MOST_WAITING_BYTES = 32 << 20;

export interface TailReaderOptions {
  readonly known: readonly KnownLog[];
  readonly patterns: readonly string[];
  readonly teller: LogTeller;
  readonly zone: ZoneFinder;
  readonly mostBytes?: number;
  /** How far behind the newest line what is handed on ends (buffered-logs.ts). */
  readonly holdMs: number;
  readonly onNotice: (notice: FollowNotice) => void;
  /** A log that came after the start. */
  readonly onLog: (log: TailLog) => void;
}

interface Reading {
  readonly log: TailLog;
  readonly followed: FollowedLog;
  readonly times: LineTimes;
  /** There may be more than was read. */
  isSpent: boolean;
  lastMs: number;
}

type BegunRange = Omit<TailRange, 'untilMs' | 'toByte'>;

/** What a round of reading found: ranges by source, and the moment to hand on to. */
export interface Gathered {
  readonly ranges: readonly Omit<TailRange, 'untilMs'>[];
  readonly untilMs: number;
  readonly isSpent: boolean;
  /** When nginx reloaded, where a line read says that it did; NaN when that line has no time. */
  readonly reloadMs: number | undefined;
}

export class TailReader {
  newestMs = -Infinity;
  readonly #sources: TailSources;
  readonly #logs: LogList;
  readonly #followed: FollowedLogs;
  readonly #options: TailReaderOptions;
  readonly #mostBytes: number;
  readonly #readings = new Map<string, Reading>();
  #live: readonly LiveLogs[] = [];
  readonly #liveTimes = new Map<string, LineTimes>();
  /** Where the ranges of the step begin. */
  #begun = new Map<string, BegunRange>();
  /** Told by their content; and those of them that no stored state tells yet. */
  readonly #told = new Map<string, ToldLog>();
  readonly #toldNew = new Set<string>();
  /** The moment that the last gather() found, and that of the last step that was stored. */
  #foundMs = 0;
  #storedMs = 0;
  #reloadMs: number | undefined;

  constructor(logs: LogList, sources: TailSources, options: TailReaderOptions) {
    this.#logs = logs;
    this.#sources = sources;
    this.#options = options;
    this.#mostBytes = options.mostBytes ?? DEFAULT_MOST_BYTES;
    for (const log of logs.all) this.#remember(log);
    this.#followed = new FollowedLogs(options.patterns, {
      known: options.known,
      onNotice: options.onNotice,
    });
  }

  /** Logs that the configuration does not tell of, as they were told by their content. */
  get told(): readonly ToldLog[] {
    return [...this.#told.values()];
  }

  /** Receives these from now on. */
  receive(live: readonly LiveLogs[]): void {
    this.#live = live;
  }

  progress(): LogProgress[] {
    return this.#inOrder().flatMap(({ followed }) => followed.progress());
  }

  get lagBytes(): ReadonlyMap<string, number> {
    return new Map(this.#inOrder().map(({ log, followed }) => [log.path, followed.lagBytes]));
  }

  /** Folders whose changes are worth a look. */
  get folders(): readonly string[] {
    return this.#followed.folders;
  }

  /** Reads what is there, for a step. */
  async gather(): Promise<Gathered> {
    const { untilMs, isSpent } = await this.#gather();
    const ranges = [...this.#begun.values()].map((range) => ({
      ...range,
      toByte: this.#sources.get(range.sourceId)!.queue.endOffset,
    }));
    this.#begun = new Map();
    const reloadMs = this.#reloadMs;
    this.#reloadMs = undefined;
    this.#foundMs = untilMs;
    // Live lines of this step are not in the state yet; what is older than the last step's moment is.
    const liveMs = this.#live.length === 0 ? untilMs : Math.min(untilMs, this.#storedMs);
    return { ranges, untilMs: liveMs, isSpent, reloadMs };
  }

  /** The state has been stored, with the lines that wait. */
  stored(): void {
    this.#storedMs = this.#foundMs;
  }

  async #gather(): Promise<{ untilMs: number; isSpent: boolean }> {
    await this.#find();
    const upTo = (id: string): number => (this.#isFull(id) ? 0 : Infinity);
    await this.#readAll(upTo);
    const seenMs = this.newestMs;
    await this.#readAll(upTo);
    let untilMs = seenMs - this.#options.holdMs;
    let isSpent = false;
    for (const reading of this.#readings.values()) {
      if (!reading.isSpent) continue;
      isSpent = true;
      if (!Number.isNaN(reading.lastMs)) untilMs = Math.min(untilMs, reading.lastMs - 1);
    }
    if (this.#options.zone.zone === undefined) untilMs = 0;
    // JSON has no infinity, and null stands for a drain.
    return { untilMs: Math.max(0, untilMs), isSpent };
  }

  /** Reads as far as these ranges say. @returns whether all could be read to their ends */
  async gatherAgain(ranges: readonly TailRange[]): Promise<boolean> {
    const ends = new Map(ranges.map(({ sourceId, toByte }) => [sourceId, toByte]));
    await this.#find();
    await this.#readFiles((id) => ends.get(id) ?? 0, Infinity);
    this.#begun = new Map();
    this.#reloadMs = undefined;
    return ranges.every(
      ({ sourceId, fromByte, toByte }) =>
        (this.#sources.get(sourceId)?.queue.endOffset ?? fromByte) >= toByte,
    );
  }

  async close(): Promise<void> {
    await this.#followed.close();
  }

  #isFull(sourceId: string): boolean {
    return (this.#sources.get(sourceId)?.queue.waitingBytes ?? 0) > MOST_WAITING_BYTES;
  }

  /** Logs that have come, and can be told. */
  async #find(): Promise<void> {
    await this.#followed.find();
    const present = new Set<string>();
    for (const followed of this.#followed.logs) {
      const { path } = followed;
      present.add(path);
      if (this.#readings.has(path)) continue;
      let log = this.#logs.get(path);
      if (log === undefined) {
        log = await this.#options.teller.tell(path, this.#logs.all);
        if (log === undefined) continue;
        this.addLog(log);
        this.#options.onLog(log);
      }
      const times = new LineTimes(log, this.#options.zone);
      this.#readings.set(path, { log, followed, times, isSpent: false, lastMs: NaN });
    }
    for (const path of this.#readings.keys()) {
      if (present.has(path)) continue;
      this.#readings.delete(path);
      this.#told.delete(path);
    }
  }

  /** A log that was told after the start, or by a stored state. */
  addLog(log: TailLog): void {
    this.#logs.add(log);
    this.#remember(log);
  }

  #remember(log: TailLog): void {
    if (this.#options.teller.byConfiguration(log.path) !== undefined) return;
    this.#told.set(log.path, toldOf(log));
    this.#toldNew.add(log.path);
  }

  /** Requests end after their lines in the error log: those read later can't be missing. */
  #inOrder(): Reading[] {
    const all = [...this.#readings.values()];
    const isAccess = ({ log }: Reading): boolean => log.kind === 'access';
    return [...all.filter(isAccess), ...all.filter((reading) => !isAccess(reading))];
  }

  async #readAll(upTo: (sourceId: string) => number): Promise<void> {
    for (const live of this.#live) this.#takeLive(live);
    await this.#readFiles(upTo, this.#mostBytes);
  }

  async #readFiles(upTo: (sourceId: string) => number, mostBytes: number): Promise<void> {
    for (const reading of this.#inOrder()) {
      const { log, followed } = reading;
      const touched = new Set<string>();
      let givenBytes = 0;
      let isHeld = false;
      const limits = {
        mostBytes,
        upTo: (id: string): number => {
          const offset = upTo(id);
          isHeld ||= offset === 0;
          return offset;
        },
      };
      await followed.poll((bytes, start, end, offset, nextOffset, sourceId) => {
        const source = this.#sources.get(sourceId) ?? this.#sources.add(log.path, sourceId, offset);
        this.#begin(sourceId, log, offset, false);
        source.queue.append(bytes, start, end);
        reading.times.see(bytes, start, end);
        this.#seeReload(reading, bytes, start, end);
        touched.add(sourceId);
        givenBytes += nextOffset - offset;
      }, limits);
      reading.isSpent = isHeld || givenBytes >= mostBytes;
      for (const id of touched) this.#noteTime(reading, id);
    }
  }

  #seeReload(
    from: Pick<Reading, 'log' | 'times'>,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): void {
    if (from.log.kind === 'access' && !from.log.isPrefixed) return;
    if (!isReloadMark(bytes, start, end)) return;
    this.#reloadMs = from.times.of(bytes.subarray(start, end));
  }

  /** @param id of the source whose last line tells the time */
  #noteTime(reading: Reading, id: string): void {
    const ms = reading.times.of(this.#sources.get(id)!.queue.lastLine);
    if (Number.isNaN(ms)) return;
    reading.lastMs = ms;
    this.newestMs = Math.max(this.newestMs, ms);
  }

  #begin(sourceId: string, log: TailLog, offset: number, isLive: boolean): void {
    if (this.#begun.has(sourceId)) return;
    const told = this.#toldNew.delete(log.path) ? this.#told.get(log.path) : undefined;
    this.#begun.set(sourceId, {
      ...{ sourceId, fromByte: offset, name: log.path },
      ...(isLive ? { isLive } : {}),
      ...(told === undefined ? {} : { log: told }),
    });
  }

  #takeLive(live: LiveLogs): void {
    const { plan } = live;
    const names = [plan.errors, ...plan.access].map(({ path }) => path);
    // The pipe fills then, and the socket's queue: what is beyond it is dropped and counted.
    if (names.some((name) => this.#isFull(name))) return;
    live.take();
  }

  /** A line that came through a live input. */
  live(log: TailLog, bytes: Uint8Array, start: number, end: number): void {
    const { path } = log;
    const source = this.#sources.get(path) ?? this.#sources.add(path, path, 0, true);
    this.#begin(path, log, source.queue.endOffset, true);
    source.queue.append(bytes, start, end);
    let times = this.#liveTimes.get(path);
    if (times === undefined) {
      times = new LineTimes(log, this.#options.zone);
      this.#liveTimes.set(path, times);
    }
    times.see(bytes, start, end);
    this.#seeReload({ log, times }, bytes, start, end);
    const ms = times.of(bytes.subarray(start, end));
    if (!Number.isNaN(ms)) this.newestMs = Math.max(this.newestMs, ms);
  }
}

const RELOAD = Buffer.from(': reconfiguring');
/** nginx's own line, from its beginning: what a client sends stands far behind. */
const RELOAD_LINE =
  /^[^[]{0,120}\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d \[notice\] \d+#\d+: reconfiguring(?:$|\\n")/;

function isReloadMark(bytes: Uint8Array, start: number, end: number): boolean {
  const line = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
  return line.includes(RELOAD) && RELOAD_LINE.test(line.toString('latin1'));
}
