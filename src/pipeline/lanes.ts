/**
 * A lane is one log being read: it knows the time of its next line, and hands lines to the replay.
 *
 * Lanes run in turn, each as far as the others' next times allow, so that the replay sees all logs
 * in the order of their times, whichever was opened first. A log's time never goes back here: lines
 * of a buffered log that do are taken with the time reached before.
 */
import type { ErrorLine } from '../../parsers/error/error-line.js';
import { PrefixStripper } from '../../parsers/prefix.js';
import type { LogClock } from '../../parsers/time.js';
import { InputError } from '../errors.js';
import type { LineReader } from '../input/file-lines.js';
import type { LineFeed } from '../replay/line-feed.js';
import type { ReplaySession } from '../replay/session.js';
import { isErrorLine } from './log-files.js';

/** What a lane tells of its lines. */
export interface LineSink {
  /** `count` lines that were used, of about the same time. */
  onLines(lane: Lane, atMs: number, kind: LineKind, reason: string, count: number): void;
  /** A line that could not be used; `raw` is valid during the call. */
  onUnparsable(lane: Lane, reason: string, raw: Uint8Array): void;
}

export type LineKind = 'access' | 'limit_line' | 'error' | 'other' | 'duplicate';

export interface Lane {
  readonly name: string;
  readonly reader: LineReader;
  /** Time of the pending line; Infinity once the log has ended. */
  readonly timeMs: number;
  /** Lines read so far, the pending one included. */
  readonly lines: number;
  readonly firstMs: number;
  /** Time of the latest line seen. */
  readonly lastMs: number;
  /** Byte offset behind the last line that was handed on. */
  readonly doneOffset: number;
  /** Looks at the first line, so that timeMs is that of something real. */
  begin(): Promise<void>;
  /** Hands on every line up to `limitMs`; then a line is pending, or the log has ended. */
  run(limitMs: number): void | Promise<void>;
  /** Nothing more is read. */
  end(): void;
}

/** How many lines a lane hands on before others get a turn at the event loop. */
const LINES_PER_TURN = 20_000;
/** Lines are counted by buckets of the store. */
const COUNT_MS = 10_000;

abstract class LineLane implements Lane {
  readonly name: string;
  readonly reader: LineReader;
  timeMs = -Infinity;
  lines = 0;
  firstMs = NaN;
  lastMs = -Infinity;
  doneOffset: number;
  protected readonly session: ReplaySession;
  protected readonly sink: LineSink;
  protected readonly stripper: PrefixStripper | null;
  protected isPending = false;
  /**
   * Hands on lines up to `limitMs` as run() does, `most` of them and while nothing about them takes
   * more than that; gives back how many.
   */
  protected runFast: ((limitMs: number, most: number) => number) | null = null;

  constructor(
    name: string,
    reader: LineReader,
    session: ReplaySession,
    sink: LineSink,
    isPrefixed: boolean,
  ) {
    this.name = name;
    this.reader = reader;
    this.session = session;
    this.sink = sink;
    this.stripper = isPrefixed ? new PrefixStripper() : null;
    this.doneOffset = reader.nextOffset;
  }

  run(limitMs: number): void | Promise<void> {
    const { reader } = this;
    for (let turn = 0; turn < LINES_PER_TURN; turn++) {
      if (this.runFast !== null) turn += this.runFast(limitMs, LINES_PER_TURN - turn);
      if (!this.isPending) {
        const more = reader.next();
        if (more !== true && more !== false) return this.#continue(more, limitMs);
        if (!this.#see(more)) return undefined;
        if (!this.isPending) continue;
      }
      if (this.timeMs > limitMs) return undefined;
      this.session.advance(this.timeMs);
      this.handOn();
      this.isPending = false;
      this.doneOffset = reader.nextOffset;
    }
    return undefined;
  }

  end(): void {
    this.onEnd();
    this.timeMs = Infinity;
  }

  async begin(): Promise<void> {
    while (!this.isPending && this.#see(await this.reader.next()));
  }

  async #continue(more: Promise<boolean>, limitMs: number): Promise<void> {
    if (this.#see(await more)) await this.run(limitMs);
  }

  /** Looks at the line that next() found. @returns false at the end of the log */
  #see(isThere: boolean): boolean {
    if (!isThere) {
      this.end();
      return false;
    }
    this.lines++;
    const ms = this.examine();
    this.isPending = !Number.isNaN(ms);
    if (this.isPending) {
      if (Number.isNaN(this.firstMs)) this.firstMs = ms;
      if (ms > this.timeMs) this.timeMs = ms;
      this.lastMs = this.timeMs;
    } else {
      this.doneOffset = this.reader.nextOffset;
    }
    return true;
  }

  /** Parses the current line. @returns its time, or NaN when there is nothing to hand on */
  protected abstract examine(): number;

  /** The log has ended; timeMs is still that of its last line. */
  protected onEnd(): void {
    return;
  }

  /** Hands the line examined last to the replay. */
  protected abstract handOn(): void;
}

/** Parses and hands on the lines of an error log, or those among the lines of an access log. */
class ErrorLines {
  readonly #session: ReplaySession;
  readonly #clock: LogClock;
  readonly #index: number;
  #line = '';
  #parsed: ErrorLine | undefined;
  #secondMs = NaN;
  /** What the last line should have been, when it was malformed. */
  expected = '';

  /** @param index tells this log's lines from the same ones in another error log */
  constructor(session: ReplaySession, clock: LogClock, index: number) {
    this.#session = session;
    this.#clock = clock;
    this.#index = index;
  }

  /** @returns its time, `nowMs` for a line without one, NaN for a malformed one */
  examine(line: string, nowMs: number): number {
    const { parsed, secondMs } = this.#session.errorFeed.parse(line, this.#clock);
    if (parsed.kind === 'malformed') {
      this.expected = parsed.expected;
      return NaN;
    }
    this.#line = line;
    this.#parsed = parsed;
    this.#secondMs = Number.isNaN(secondMs) ? Math.max(nowMs, 0) : secondMs;
    return this.#secondMs;
  }

  handOn(): { kind: LineKind; reason: string } {
    const { errorFeed } = this.#session;
    const { kind, reason } = errorFeed.take(this.#line, this.#parsed!, this.#secondMs, this.#index);
    if (kind === 'limit') return { kind: 'limit_line', reason };
    return { kind: kind === 'duplicate' || kind === 'other' ? kind : 'error', reason };
  }
}

export class AccessLane extends LineLane {
  readonly #feed: Pick<LineFeed, 'fields' | 'submit'>;
  readonly #errors: ErrorLines;
  protected isError = false;
  #bytes: Uint8Array = new Uint8Array(0);
  #endMs = NaN;
  #count = 0;
  #countedUntilMs = -Infinity;

  constructor(
    name: string,
    reader: LineReader,
    session: ReplaySession,
    sink: LineSink,
    isPrefixed: boolean,
    feed: Pick<LineFeed, 'fields' | 'submit'>,
    clock: LogClock,
    index: number,
  ) {
    super(name, reader, session, sink, isPrefixed);
    this.#feed = feed;
    this.#errors = new ErrorLines(session, clock, index);
  }

  protected examine(): number {
    const { reader } = this;
    let { bytes, start, end } = reader;
    if (this.stripper !== null) {
      const text = Buffer.from(bytes.subarray(start, end)).toString('latin1');
      const bare = this.stripper.push(text);
      if (bare === undefined) return NaN;
      bytes = Buffer.from(bare, 'latin1');
      start = 0;
      end = bytes.length;
    }
    if (start === end) return NaN;
    this.#bytes = bytes;
    const { scanner } = this.#feed.fields;
    this.isError = false;
    if (scanner.scan(bytes, start, end) >= 0) {
      if (isErrorLine(bytes, start)) return this.examineErrorLine(bytes, start, end);
      this.sink.onUnparsable(this, `expected ${scanner.expected()}`, bytes.subarray(start, end));
      return NaN;
    }
    this.#endMs = this.#feed.fields.endMs(bytes);
    if (Number.isNaN(this.#endMs)) {
      this.sink.onUnparsable(this, 'expected a time', bytes.subarray(start, end));
    }
    return this.#endMs;
  }

  /** An error line among the access lines. @returns its time, NaN when it is malformed */
  protected examineErrorLine(bytes: Uint8Array, start: number, end: number): number {
    this.isError = true;
    const raw = bytes.subarray(start, end);
    const ms = this.#errors.examine(Buffer.from(raw).toString('latin1'), this.timeMs);
    if (Number.isNaN(ms)) this.sink.onUnparsable(this, `expected ${this.#errors.expected}`, raw);
    return ms;
  }

  /** Hands the access line examined last to the replay. */
  protected submit(): void {
    this.#feed.submit(this.#bytes, this.#endMs);
  }

  protected override onEnd(): void {
    this.#tellCount();
  }

  /** Lines are told in sums, so that counting costs nothing per line. */
  #tellCount(): void {
    if (this.#count > 0) {
      this.sink.onLines(this, this.#countedUntilMs - COUNT_MS, 'access', '', this.#count);
    }
    this.#count = 0;
    this.#countedUntilMs = (Math.floor(this.timeMs / COUNT_MS) + 1) * COUNT_MS;
  }

  /** An access line is handed on. */
  protected countLine(): void {
    if (this.timeMs >= this.#countedUntilMs) this.#tellCount();
    this.#count++;
  }

  protected handOn(): void {
    if (this.isError) {
      const { kind, reason } = this.#errors.handOn();
      this.sink.onLines(this, this.timeMs, kind, reason, 1);
      return;
    }
    this.countLine();
    this.submit();
  }
}

export class ErrorLane extends LineLane {
  readonly #errors: ErrorLines;

  constructor(
    name: string,
    reader: LineReader,
    session: ReplaySession,
    sink: LineSink,
    isPrefixed: boolean,
    clock: LogClock,
    index: number,
  ) {
    super(name, reader, session, sink, isPrefixed);
    this.#errors = new ErrorLines(session, clock, index);
  }

  protected examine(): number {
    const { reader } = this;
    const raw = reader.bytes.subarray(reader.start, reader.end);
    let line = Buffer.from(raw.buffer, raw.byteOffset, raw.length).toString('latin1');
    if (this.stripper !== null) {
      const bare = this.stripper.push(line);
      if (bare === undefined) return NaN;
      line = bare;
    }
    if (line === '') return NaN;
    const ms = this.#errors.examine(line, this.timeMs);
    // Continued messages and other programs' lines are part of what people have in these files.
    if (Number.isNaN(ms)) this.sink.onUnparsable(this, `expected ${this.#errors.expected}`, raw);
    return ms;
  }

  protected handOn(): void {
    const { kind, reason } = this.#errors.handOn();
    this.sink.onLines(this, this.timeMs, kind, reason, 1);
  }
}

/**
 * Runs lanes until all have ended, always the one whose next line is oldest. Error logs come first
 * in the list: at the same time they are read first, for a line is written before its request ends.
 *
 * @param onDamage told of a log that cannot be read on; what came before it counts
 * @param between called between turns, where the event loop may run: progress, pending inserts
 * @param untilMs lines after this moment stay pending
 */
export async function runLanes(
  lanes: readonly Lane[],
  between: () => Promise<void> | undefined,
  onDamage: (lane: Lane, error: InputError) => void = (_lane, error) => {
    throw error;
  },
  untilMs = Infinity,
): Promise<void> {
  for (;;) {
    let first: Lane | undefined;
    let limitMs = untilMs;
    for (const lane of lanes) {
      if (first === undefined || lane.timeMs < first.timeMs) {
        // A lane earlier in the list goes first at the same time; times are whole milliseconds.
        if (first !== undefined) limitMs = Math.min(limitMs, first.timeMs - 1);
        first = lane;
      } else {
        limitMs = Math.min(limitMs, lane.timeMs);
      }
    }
    if (first === undefined || first.timeMs === Infinity || first.timeMs > untilMs) return;
    try {
      const awaited = first.run(limitMs);
      if (awaited !== undefined) await awaited;
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      first.end();
      onDamage(first, error);
    }
    const wait = between();
    if (wait !== undefined) await wait;
  }
}
