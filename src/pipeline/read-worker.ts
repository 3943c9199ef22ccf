/**
 * The thread that reads an access log: bytes to lines to facts, while the other one replays.
 *
 * Records come in the order of the lines; which thread reads changes nothing in what comes out.
 * Buffers are lent by the replaying thread and go back and forth, so that neither runs ahead.
 */
import { once } from 'node:events';
import { parentPort } from 'node:worker_threads';
import { compileLogFormat, type LogFormat } from '../../parsers/access/line-scanner.js';
import type { NginxConf } from '../../parsers/conf/model.js';
import { InputError } from '../errors.js';
import { FileLines, type FileLinesOptions } from '../input/file-lines.js';
import { isLineNeeded } from '../replay/line-kinds.js';
import { Generations } from '../replay/generations.js';
import { LineExtractor } from '../replay/line-extractor.js';
import { RECORD_KIND } from './line-records.js';
import { RecordWriter } from './record-writer.js';
import { isErrorLine } from './log-files.js';

export interface ReadTask {
  readonly path: string;
  readonly lines: FileLinesOptions;
  readonly format: LogFormat;
  readonly conf: NginxConf;
  readonly servers: readonly string[] | null;
  readonly details: 'all' | 'refused';
  readonly hasErrorLog: boolean;
}

/** The first message is the task, all later ones are buffers to fill. */
export type ToReader = ReadTask | ArrayBuffer;

export type FromReader =
  | { readonly kind: 'records'; readonly buffer: ArrayBuffer; readonly used: number }
  | { readonly kind: 'note'; readonly note: string }
  | { readonly kind: 'end'; readonly unterminatedBytes: number }
  | { readonly kind: 'error'; readonly message: string; readonly exitCode: number | null };

const NOTHING = new Uint8Array(0);

class ReadRun {
  readonly #task: ReadTask;
  readonly #lines: FileLines;
  readonly #extractor: LineExtractor;
  readonly #writer: RecordWriter;
  readonly #lent: ArrayBuffer[];
  #buffer: ArrayBuffer | undefined;

  /** @param lent buffers to fill; more come in time */
  constructor(task: ReadTask, lent: ArrayBuffer[]) {
    this.#task = task;
    this.#lent = lent;
    this.#lines = new FileLines(task.path, task.lines);
    this.#writer = new RecordWriter(task.lines.fromOffset);
    const generations = new Generations([{ conf: task.conf, sinceMs: null }]);
    this.#extractor = new LineExtractor(
      compileLogFormat(task.format),
      generations,
      task.servers,
      (note) => send({ kind: 'note', note }),
      new Map(generations.zones.map((zone, i) => [zone.name, i])),
    );
  }

  async run(): Promise<void> {
    await this.#nextBuffer();
    for (;;) {
      const more = this.#lines.next();
      if (!(typeof more === 'boolean' ? more : await more)) break;
      const wait = this.#record();
      if (wait !== undefined) await wait;
    }
    this.#flush();
    send({ kind: 'end', unterminatedBytes: this.#lines.unterminatedBytes });
    parentPort!.close();
  }

  /** What was read before an error counts. */
  flush(): void {
    this.#flush();
  }

  #record(): Promise<void> | undefined {
    const { bytes, start, end } = this.#lines;
    if (start === end) return undefined;
    const { fields, facts } = this.#extractor;
    facts.keyCount = 0;
    if (fields.scanner.scan(bytes, start, end) >= 0) {
      if (isErrorLine(bytes, start)) return this.#put(RECORD_KIND.error, true, NOTHING);
      return this.#put(
        RECORD_KIND.unparsable,
        true,
        latin1(`expected ${fields.scanner.expected()}`),
      );
    }
    const endMs = fields.endMs(bytes);
    if (Number.isNaN(endMs)) {
      return this.#put(RECORD_KIND.unparsable, true, latin1('expected a time'));
    }
    this.#extractor.extract(bytes, endMs);
    const isNeeded = isLineNeeded(facts, this.#task);
    return this.#put(isNeeded ? RECORD_KIND.access : RECORD_KIND.plain, isNeeded, NOTHING);
  }

  #put(kind: number, withLine: boolean, reason: Uint8Array): Promise<void> | undefined {
    const lines = this.#lines;
    const size = RecordWriter.size(
      this.#extractor.facts,
      withLine ? lines.end - lines.start : 0,
      reason.length,
    );
    if (this.#writer.fits(size)) {
      this.#write(kind, withLine, reason);
      return undefined;
    }
    this.#flush();
    return this.#nextBuffer(size).then(() => this.#write(kind, withLine, reason));
  }

  #write(kind: number, withLine: boolean, reason: Uint8Array): void {
    const lines = this.#lines;
    if (kind === RECORD_KIND.plain) {
      this.#writer.writePlain(lines, this.#extractor.facts);
      return;
    }
    const { bytes, start } = lines;
    const end = withLine ? lines.end : start;
    this.#writer.write(kind, lines, this.#extractor.facts, bytes, start, end, reason);
  }

  #flush(): void {
    if (this.#buffer === undefined) return;
    const buffer = this.#buffer;
    this.#buffer = undefined;
    parentPort!.postMessage({ kind: 'records', buffer, used: this.#writer.used }, [buffer]);
  }

  async #nextBuffer(leastBytes = 0): Promise<void> {
    while (this.#lent.length === 0) await once(parentPort!, 'message');
    let buffer = this.#lent.shift()!;
    // A line longer than the buffer: this one record gets a larger one.
    if (buffer.byteLength < leastBytes) buffer = new ArrayBuffer(leastBytes + 64);
    this.#buffer = buffer;
    this.#writer.use(buffer);
  }
}

function latin1(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}

function send(message: FromReader): void {
  parentPort!.postMessage(message);
}

async function read(task: ReadTask, lent: ArrayBuffer[]): Promise<void> {
  const run = new ReadRun(task, lent);
  try {
    await run.run();
  } catch (error) {
    run.flush();
    const exitCode = error instanceof InputError ? error.exitCode : null;
    const text = error instanceof Error && exitCode === null ? (error.stack ?? '') : '';
    send({
      kind: 'error',
      message: text === '' ? (error as Error).message : text,
      exitCode,
    });
    parentPort!.close();
  }
}

const buffers: ArrayBuffer[] = [];
parentPort!.on('message', (message: ToReader) => {
  if (message instanceof ArrayBuffer) buffers.push(message);
  else void read(message, buffers);
});
