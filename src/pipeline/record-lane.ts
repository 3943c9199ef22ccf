/**
 * A lane whose lines are read in another thread (read-worker.ts).
 */
import type { LineScanner } from '../../parsers/access/line-scanner.js';
import type { LogClock } from '../../parsers/time.js';
import { InputError, type ExitCode } from '../errors.js';
import type { LineReader } from '../input/file-lines.js';
import type { NumberedKeys } from '../keys/key-numbers.js';
import { AccessFields } from '../replay/access-fields.js';
import type { AccessFeed } from '../replay/access-feed.js';
import { LineFacts } from '../replay/line-facts.js';
import type { ReplaySession } from '../replay/session.js';
import { AccessLane, type LineSink } from './lanes.js';
import { RECORD_KIND } from './line-records.js';
import { ReadThread } from './read-thread.js';
import { RecordReader } from './record-reader.js';
import type { FromReader, ReadTask } from './read-worker.js';

/** Records of the reading thread, one after the other. */
export class RecordSource implements LineReader {
  readonly records: RecordReader;
  unterminatedBytes = 0;
  readonly #thread: ReadThread;
  readonly #onNote: (note: string) => void;
  readonly #arrived: { buffer: ArrayBuffer; used: number }[] = [];
  #current: ArrayBuffer | undefined;
  #isAtEnd = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  #nextOffset: number;

  /**
   * @param keys takes up the keys that the thread tells
   * @param early a thread that may have begun the task; it is closed if it has begun another
   */
  constructor(
    task: ReadTask,
    keys: NumberedKeys,
    onNote: (note: string) => void,
    early = new ReadThread(),
  ) {
    this.records = new RecordReader(keys, task.lines.fromOffset);
    this.#onNote = onNote;
    this.#nextOffset = task.lines.fromOffset;
    this.#thread = early;
    if (!early.begin(task)) {
      early.close();
      this.#thread = new ReadThread();
      this.#thread.begin(task);
    }
    this.#thread.listen(
      (message) => this.#receive(message),
      (error) => this.#fail(error),
    );
  }

  get bytes(): Uint8Array {
    return this.records.bytes;
  }

  get start(): number {
    return this.records.rawStart;
  }

  get end(): number {
    return this.records.rawEnd;
  }

  get offset(): number {
    return this.records.offset;
  }

  get nextOffset(): number {
    return this.#nextOffset;
  }

  /** Lines were taken from `records` directly. */
  takeOffset(): void {
    this.#nextOffset = this.records.nextOffset;
  }

  next(): boolean | Promise<boolean> {
    if (this.records.next()) {
      this.takeOffset();
      return true;
    }
    if (this.#current !== undefined) this.#thread.lend(this.#current);
    this.#current = undefined;
    const arrived = this.#arrived.shift();
    if (arrived !== undefined) {
      this.#current = arrived.buffer;
      this.records.use(arrived.buffer, arrived.used);
      return this.next();
    }
    if (this.#error !== undefined) throw this.#error;
    if (this.#isAtEnd) return false;
    return new Promise<void>((resolve) => (this.#wake = resolve)).then(() => this.next());
  }

  close(): void {
    this.#thread.close();
  }

  #receive(message: FromReader): void {
    switch (message.kind) {
      case 'records':
        this.#arrived.push(message);
        break;
      case 'note':
        this.#onNote(message.note);
        return;
      case 'end':
        this.#isAtEnd = true;
        this.unterminatedBytes = message.unterminatedBytes;
        break;
      case 'error':
        this.#fail(
          message.exitCode === null
            ? new Error(message.message)
            : new InputError(message.message, message.exitCode as ExitCode),
        );
        return;
    }
    this.#stir();
  }

  #fail(error: Error): void {
    this.#error ??= error;
    this.#stir();
  }

  #stir(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}

export class RecordLane extends AccessLane {
  readonly #records: RecordReader;
  readonly #source: RecordSource;
  readonly #keys: NumberedKeys;
  readonly #factsFeed: AccessFeed;
  readonly #facts = new LineFacts();
  readonly #scanner: LineScanner;

  constructor(
    name: string,
    source: RecordSource,
    session: ReplaySession,
    sink: LineSink,
    scanner: LineScanner,
    clock: LogClock,
    index: number,
    keys: NumberedKeys,
  ) {
    const fields = new AccessFields(scanner);
    super(name, source, session, sink, false, { fields, submit: () => undefined }, clock, index);
    this.#records = source.records;
    this.#source = source;
    this.#keys = keys;
    this.#scanner = scanner;
    this.#factsFeed = session.factsFeed(fields);
    this.runFast = (limitMs, most) => this.#runPlain(limitMs, most);
  }

  #runPlain(limitMs: number, most: number): number {
    if (this.isPending || Number.isNaN(this.firstMs)) return 0;
    const records = this.#records;
    const facts = this.#facts;
    const feed = this.#factsFeed;
    const { session } = this;
    let lines = 0;
    while (lines < most && records.nextPlain(limitMs)) {
      const { endMs } = records;
      if (endMs > this.timeMs) this.timeMs = endMs;
      lines++;
      session.advance(this.timeMs);
      this.countLine();
      if (records.kind === RECORD_KIND.passed && feed.parkPassed(records)) continue;
      records.read(facts);
      feed.submit(facts, NOTHING);
    }
    if (lines === 0) return 0;
    this.lines += lines;
    this.lastMs = this.timeMs;
    this.#source.takeOffset();
    this.doneOffset = this.#source.nextOffset;
    return lines;
  }

  protected override examine(): number {
    const records = this.#records;
    if (records.kind <= RECORD_KIND.access) {
      records.read(this.#facts);
      this.isError = false;
      return this.#facts.endMs;
    }
    const { kind, bytes, rawStart, rawEnd, reasonEnd } = records;
    if (kind === RECORD_KIND.error) return this.examineErrorLine(bytes, rawStart, rawEnd);
    const reason = Buffer.from(bytes.subarray(rawEnd, reasonEnd)).toString('latin1');
    this.sink.onUnparsable(this, reason, bytes.subarray(rawStart, rawEnd));
    return NaN;
  }

  protected override submit(): void {
    const { bytes, rawStart, rawEnd } = this.#records;
    const feed = this.#factsFeed;
    if (rawStart === rawEnd) {
      feed.submit(this.#facts, NOTHING);
    } else if (feed.readsLine(this.#facts)) {
      this.#scanner.scan(bytes, rawStart, rawEnd);
      feed.submit(this.#facts, bytes);
    } else {
      feed.submitRaw(this.#facts, bytes, rawStart, rawEnd);
    }
  }

  protected override onEnd(): void {
    super.onEnd();
    this.#keys.clearAll();
  }
}

const NOTHING = new Uint8Array(0);
