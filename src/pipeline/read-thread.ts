/**
 * A thread that reads an access log (read-worker.ts), and the buffers that go back and forth.
 *
 * It takes a while to start, and its first lines are slow, so it may begin before anything else is
 * ready: it runs ahead by as much as the buffers hold.
 */
import { isDeepStrictEqual } from 'node:util';
import { Worker } from 'node:worker_threads';
import type { FromReader, ReadTask } from './read-worker.js';

/** Together the buffers bound how far reading runs ahead. */
const BUFFERS = 6;
const BUFFER_BYTES = 1 << 18;

export class ReadThread {
  readonly #worker = new Worker(new URL('./read-worker.js', import.meta.url));
  #task: ReadTask | undefined;
  /** What came before anybody listened. */
  readonly #early: (FromReader | Error)[] = [];
  #onMessage = (message: FromReader): void => void this.#early.push(message);
  #onError = (error: Error): void => void this.#early.push(error);

  constructor() {
    this.#worker.on('message', (message: FromReader) => this.#onMessage(message));
    this.#worker.on('error', (error) => this.#onError(error));
  }

  /** What it has begun to read, or is to read. */
  get path(): string | undefined {
    return this.#task?.path;
  }

  /** Begins to read. @returns false when it has begun something else */
  begin(task: ReadTask): boolean {
    if (this.#task !== undefined) return isSame(this.#task, task);
    this.#task = task;
    this.#worker.postMessage(task);
    for (let i = 0; i < BUFFERS; i++) this.lend(new ArrayBuffer(BUFFER_BYTES));
    return true;
  }

  /** From now on tells of what it has read, and first of what it has read already. */
  listen(onMessage: (message: FromReader) => void, onError: (error: Error) => void): void {
    this.#onMessage = onMessage;
    this.#onError = onError;
    for (const item of this.#early) {
      if (item instanceof Error) onError(item);
      else onMessage(item);
    }
  }

  /** Gives a buffer back, to be filled again. */
  lend(buffer: ArrayBuffer): void {
    this.#worker.postMessage(buffer, [buffer]);
  }

  close(): void {
    void this.#worker.terminate();
  }
}

function isSame(a: ReadTask, b: ReadTask): boolean {
  const { conf, ...rest } = a;
  const { conf: otherConf, ...otherRest } = b;
  return conf === otherConf && isDeepStrictEqual(rest, otherRest);
}
