/**
 * Lines that could not be used, whole, as NDJSON {file, offset, reason, raw}.
 *
 * `raw` is latin1 text: one character is one byte of the line. The file is bounded; what did not fit
 * is counted.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { EXIT, InputError } from '../errors.js';
import { whyUnreadable } from '../input/file-lines.js';
import type { Privacy } from './privacy.js';

const MOST_BYTES = 1 << 30;

export class DeadLetters {
  readonly #fd: number;
  readonly #privacy: Privacy | undefined;
  #bytes = 0;
  left = 0;

  /**
   * @param privacy lines are whole but for what it takes away, when it takes anything away
   * @throws InputError 74 when the file cannot be written
   */
  constructor(path: string, privacy?: Privacy) {
    this.#privacy = privacy?.keepsKeys === false ? privacy : undefined;
    try {
      this.#fd = openSync(path, 'w');
    } catch (error) {
      throw new InputError(`--dead-letter ${path}: ${whyUnreadable(error)}`, EXIT.io, {
        cause: error,
      });
    }
  }

  write(file: string, offset: number, reason: string, raw: Uint8Array): void {
    const text = Buffer.from(raw).toString('latin1');
    const shown = this.#privacy?.line(text) ?? text;
    const line = `${JSON.stringify({ file, offset, reason, raw: shown })}\n`;
    if (this.#bytes + line.length > MOST_BYTES) {
      this.left++;
      return;
    }
    this.#bytes += writeSync(this.#fd, line, null, 'utf8');
  }

  close(): void {
    closeSync(this.#fd);
  }
}
