/**
 * Lines of standard input while they come: `kubectl logs -f … | limitlens tail -`.
 *
 * A process of its own (cat) reads it, since the embedded store takes this process's standard input
 * away (store/embedded.ts); it has to be started before the store.
 *
 * What is read and not taken is bounded: beyond it the pipe fills, and whoever writes to it waits.
 * A last line without newline is one when the pipe has ended. Units: bytes.
 *
 * Not here: standard input of an import (stream-lines.ts), which ends; what the lines are.
 */
import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';

/** Lines that come once and are gone then. */
export interface LiveInput {
  /** Calls back for each complete line received since the last call. */
  take(onLine: (bytes: Uint8Array, start: number, end: number) => void): boolean;
  /** Ends receiving; what has been received can still be taken. */
  close(): Promise<void>;
  /** Nothing more will come by itself. */
  readonly hasEnded: boolean;
}

const MOST_WAITING_BYTES = 16 << 20;
/** No line of nginx's comes near this; a longer one is given in pieces. */
const LONGEST_LINE_BYTES = 1 << 20;
const LINE_FEED = 0x0a;

export class LiveLines implements LiveInput {
  hasEnded = false;
  readonly #stream: Readable;
  readonly #onReceived: () => void;
  readonly #stop: () => void;
  #chunks: Buffer[] = [];
  #waitingBytes = 0;
  #unfinished: Buffer = Buffer.alloc(0);

  /**
   * @param onReceived called when there is something to take, and at the end
   * @param stop ends whoever writes to the stream
   */
  constructor(stream: Readable, onReceived: () => void, stop: () => void = () => undefined) {
    this.#stop = stop;
    this.#stream = stream;
    this.#onReceived = onReceived;
    stream.on('data', this.#receive);
    stream.once('end', this.#end);
    stream.once('error', this.#end);
  }

  take(onLine: (bytes: Uint8Array, start: number, end: number) => void): boolean {
    const taken = [this.#unfinished, ...this.#chunks];
    if (this.#chunks.length === 0 && !(this.hasEnded && this.#unfinished.length > 0)) return false;
    const bytes = Buffer.concat(taken);
    this.#chunks = [];
    this.#waitingBytes = 0;
    let at = 0;
    for (let feed; (feed = bytes.indexOf(LINE_FEED, at)) >= 0; at = feed + 1) {
      onLine(bytes, at, feed);
    }
    if (at < bytes.length && (this.hasEnded || bytes.length - at >= LONGEST_LINE_BYTES)) {
      onLine(bytes, at, bytes.length);
      at = bytes.length;
    }
    this.#unfinished = Buffer.from(bytes.subarray(at));
    if (!this.hasEnded) this.#stream.resume();
    return true;
  }

  close(): Promise<void> {
    this.#stream.off('data', this.#receive);
    this.#stream.pause();
    this.#stop();
    this.#end();
    return Promise.resolve();
  }

  readonly #receive = (chunk: Buffer): void => {
    this.#chunks.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= MOST_WAITING_BYTES) this.#stream.pause();
    this.#onReceived();
  };

  readonly #end = (): void => {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.#onReceived();
  };
}

/**
 * Receives this process's standard input.
 *
 * @param onReceived called when there is something to take, and at the end
 * @param onFailed called when it cannot be read to its end
 */
export function receiveStdin(
  onReceived: () => void,
  onFailed: (reason: string) => void,
): LiveLines {
  const child = spawn('cat', [], { stdio: ['inherit', 'pipe', 'inherit'] });
  let isStopped = false;
  child.once('error', (error) => {
    onFailed(error.message);
  });
  child.once('exit', (code, signal) => {
    if (code !== 0 && !isStopped) onFailed(`cat, which reads it, ended with ${signal ?? code}`);
  });
  return new LiveLines(child.stdout, onReceived, () => {
    isStopped = true;
    child.kill();
    child.stdout.destroy();
  });
}
