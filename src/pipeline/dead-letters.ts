/**
 * Lines that could not be used, whole, as NDJSON {file, offset, reason, raw}.
 *
 * `raw` is latin1 text: one character is one byte of the line. The file is bounded; what did not fit
 * is counted.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { EXIT, InputError } from '../errors.js';
import { whyUnreadable } from '../input/file-lines.js';
import { statusOf } from '../input/path-status.js';
import type { Privacy } from './privacy.js';

const MOST_BYTES = 1 << 30;

export class DeadLetters {
  readonly #path: string;
  readonly #fd: number;
  readonly #privacy: Privacy | undefined;
  #bytes = 0;
  left = 0;

  /**
   * @param inputs files that are read: none of them may be written over
   * @param privacy lines are whole but for what it takes away, when it takes anything away
   * @throws InputError 64 for one of the inputs, 74 when the file cannot be written
   */
  constructor(path: string, inputs: readonly string[], privacy?: Privacy) {
    refuseInput(path, inputs);
    this.#path = path;
    this.#privacy = privacy?.keepsKeys === false ? privacy : undefined;
    try {
      this.#fd = openSync(path, 'w');
    } catch (error) {
      throw unwritable(path, error);
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
    try {
      this.#bytes += writeSync(this.#fd, line, null, 'utf8');
    } catch (error) {
      throw unwritable(this.#path, error);
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** Under another name, through a link: a log that is read must not be cut. */
function refuseInput(path: string, inputs: readonly string[]): void {
  const own = statusOf(path);
  if (own?.isFile() !== true) return;
  const same = inputs.find((input) => {
    const other = statusOf(input);
    return other?.ino === own.ino && other.dev === own.dev;
  });
  if (same === undefined) return;
  throw new InputError(
    `--dead-letter ${path}: expected a file of its own, found ${same}, which is read here`,
    EXIT.usage,
  );
}

function unwritable(path: string, error: unknown): InputError {
  const why =
    (error as NodeJS.ErrnoException).code === 'ENOSPC'
      ? 'no space left on the device'
      : whyUnreadable(error);
  return new InputError(`--dead-letter ${path}: ${why}`, EXIT.io, { cause: error });
}
