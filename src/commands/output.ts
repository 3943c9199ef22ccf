/**
 * Where a command writes: data to standard output, everything for people to standard error.
 *
 * A reader that goes away (`| head`) is no error: the rest is not written, and the command ends
 * quietly. Log content is hostile, so it is escaped before it reaches a terminal.
 */
import { once } from 'node:events';
import { quote } from '../errors.js';
import { harmless } from '../report/table.js';

export class Output {
  #isGone = false;
  readonly #stdout: NodeJS.WritableStream;
  readonly #stderr: NodeJS.WritableStream;

  constructor(stdout: NodeJS.WritableStream, stderr: NodeJS.WritableStream) {
    this.#stdout = stdout;
    this.#stderr = stderr;
    stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      this.#isGone = true;
    });
  }

  /** The reader of standard output has gone away. */
  get isGone(): boolean {
    return this.#isGone;
  }

  async write(text: string): Promise<void> {
    if (text === '' || this.#isGone) return;
    if (this.#stdout.write(text)) return;
    // The error itself is seen by the listener above; here it only ends the wait.
    const drained = once(this.#stdout, 'drain').catch(() => undefined);
    const closed = once(this.#stdout, 'close').catch(() => undefined);
    await Promise.race([drained, closed]);
  }

  /** A line for a person, or a few. */
  note(text: string): void {
    this.#stderr.write(`${harmless(text)}\n`);
  }

  unparsable(name: string, line: number, reason: string, raw: Uint8Array): void {
    this.note(`${name}:${line}: ${reason}, found ${quote(Buffer.from(raw).toString('latin1'))}`);
  }
}
