/**
 * Reads what there is to read of all logs, within a bound, into the queues of their sources.
 *
 * Logs are polled twice: the newest line seen in the first round tells up to which moment the second
 * one has surely seen all lines of every log. Nothing but that order of reading, and the times of
 * the lines, goes into the moment up to which lines may be handed on.
 *
 * Units: bytes, epoch milliseconds.
 */
import { AccessFields } from '../replay/access-fields.js';
import { LogClock, type LogZone } from '../../parsers/time.js';
import { PrefixStripper } from '../../parsers/prefix.js';
import { FollowedLog } from '../input/follow.js';
import type { FollowNotice, KnownLog, LogProgress } from '../input/follow-progress.js';
import { ReadBuffer } from '../input/follow-source.js';
import type { AccessLog, ErrorLog, TailLogs } from './tail-logs.js';
import type { TailSources } from './tail-sources.js';
import type { TailRange } from './tail-state.js';

/** Per log and round. */
const DEFAULT_MOST_BYTES = 4 << 20;
/** Lines of a log that waits for slower ones. */
const MOST_WAITING_BYTES = 32 << 20;
/** An error line is written up to a second after its time; workers' clocks differ by less. */
const HOLD_MS = 2000;

export interface TailReaderOptions {
  readonly known: readonly KnownLog[];
  readonly zone: LogZone;
  readonly mostBytes?: number;
  readonly onNotice: (notice: FollowNotice) => void;
}

interface Reading {
  readonly log: ErrorLog | AccessLog;
  readonly followed: FollowedLog;
  readonly timeOf: (line: Uint8Array) => number;
  /** There may be more than was read. */
  isSpent: boolean;
  lastMs: number;
}

/** What a round of reading found: ranges by source, and the moment to hand on to. */
export interface Gathered {
  readonly ranges: readonly Omit<TailRange, 'untilMs'>[];
  readonly untilMs: number;
  readonly isSpent: boolean;
}

export class TailReader {
  newestMs = -Infinity;
  readonly #sources: TailSources;
  readonly #readings: readonly Reading[];
  readonly #mostBytes: number;

  constructor(logs: TailLogs, sources: TailSources, options: TailReaderOptions) {
    this.#sources = sources;
    this.#mostBytes = options.mostBytes ?? DEFAULT_MOST_BYTES;
    const buffer = new ReadBuffer();
    // Requests end after their lines in the error log: those read later can't be missing.
    this.#readings = [...logs.access, ...logs.errors].map((log) => ({
      log,
      followed: new FollowedLog(log.path, {
        known: options.known.filter(({ name }) => isOf(name, log.path)),
        onNotice: options.onNotice,
        buffer,
      }),
      timeOf: timeReader(log, options.zone),
      isSpent: false,
      lastMs: NaN,
    }));
  }

  progress(): LogProgress[] {
    return this.#readings.flatMap(({ followed }) => followed.progress());
  }

  get lagBytes(): ReadonlyMap<string, number> {
    return new Map(this.#readings.map(({ log, followed }) => [log.path, followed.lagBytes]));
  }

  /** Reads a step's worth. */
  async gather(): Promise<Gathered> {
    const begun = new Map<string, Omit<TailRange, 'untilMs' | 'toByte'>>();
    const upTo = (id: string): number =>
      (this.#sources.get(id)?.queue.waitingBytes ?? 0) > MOST_WAITING_BYTES ? 0 : Infinity;
    await this.#readAll(begun, upTo);
    const seenMs = this.newestMs;
    await this.#readAll(begun, upTo);
    let untilMs = seenMs - HOLD_MS;
    let isSpent = false;
    for (const reading of this.#readings) {
      if (!reading.isSpent) continue;
      isSpent = true;
      if (!Number.isNaN(reading.lastMs)) untilMs = Math.min(untilMs, reading.lastMs - 1);
    }
    // JSON has no infinity, and null stands for a drain.
    return { ranges: this.#close(begun), untilMs: Math.max(0, untilMs), isSpent };
  }

  /** Reads as far as these ranges say. @returns whether all could be read to their ends */
  async gatherAgain(ranges: readonly TailRange[]): Promise<boolean> {
    const ends = new Map(ranges.map(({ sourceId, toByte }) => [sourceId, toByte]));
    await this.#readAll(new Map(), (id) => ends.get(id) ?? 0, Infinity);
    return ranges.every(
      ({ sourceId, fromByte, toByte }) =>
        (this.#sources.get(sourceId)?.queue.endOffset ?? fromByte) >= toByte,
    );
  }

  async close(): Promise<void> {
    for (const { followed } of this.#readings) await followed.close();
  }

  async #readAll(
    begun: Map<string, Omit<TailRange, 'untilMs' | 'toByte'>>,
    upTo: (sourceId: string) => number,
    mostBytes = this.#mostBytes,
  ): Promise<void> {
    for (const reading of this.#readings) {
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
        if (!begun.has(sourceId)) {
          begun.set(sourceId, { sourceId, fromByte: offset, name: log.path });
        }
        source.queue.append(bytes, start, end);
        touched.add(sourceId);
        givenBytes += nextOffset - offset;
      }, limits);
      reading.isSpent = isHeld || givenBytes >= mostBytes;
      for (const id of touched) this.#noteTime(reading, this.#sources.get(id)!.queue.lastLine);
    }
  }

  #noteTime(reading: Reading, line: Uint8Array): void {
    const ms = reading.timeOf(line);
    if (Number.isNaN(ms)) return;
    reading.lastMs = ms;
    this.newestMs = Math.max(this.newestMs, ms);
  }

  #close(
    begun: ReadonlyMap<string, Omit<TailRange, 'untilMs' | 'toByte'>>,
  ): Omit<TailRange, 'untilMs'>[] {
    return [...begun.values()].map((range) => ({
      ...range,
      toByte: this.#sources.get(range.sourceId)!.queue.endOffset,
    }));
  }
}

/** An import knows a rotated file under its rotated name. */
function isOf(name: string, path: string): boolean {
  return name === path || name.startsWith(`${path}.`) || name.startsWith(`${path}-`);
}

/** Reads the time of any line of a log; NaN where it shows none. */
function timeReader(log: ErrorLog | AccessLog, zone: LogZone): (line: Uint8Array) => number {
  const clock = new LogClock(zone);
  const fields = log.kind === 'access' ? new AccessFields(log.file.scanner) : undefined;
  return (line) => {
    let bytes = line;
    if (log.isPrefixed) {
      const bare = new PrefixStripper().push(Buffer.from(line).toString('latin1'));
      if (bare === undefined) return NaN;
      bytes = Buffer.from(bare, 'latin1');
    }
    if (fields !== undefined) {
      return fields.scanner.scan(bytes, 0, bytes.length) < 0 ? fields.endMs(bytes) : NaN;
    }
    return clock.toEpochMs(Buffer.from(bytes.subarray(0, 19)).toString('latin1'));
  };
}
