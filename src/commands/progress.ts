/**
 * A progress bar on standard error, on a terminal only.
 */
import type { Output } from './output.js';

const WIDTH = 30;
const INTERVAL_MS = 100;

export class Progress {
  readonly #output: Output;
  readonly #totalBytes: number;
  readonly #isTerminal = process.stderr.isTTY === true;
  readonly #startMs = performance.now();
  #shownMs = -Infinity;

  constructor(output: Output, totalBytes: number) {
    this.#output = output;
    this.#totalBytes = totalBytes;
  }

  show(doneBytes: number): void {
    if (!this.#isTerminal || this.#totalBytes === 0) return;
    const nowMs = performance.now();
    if (nowMs - this.#shownMs < INTERVAL_MS) return;
    this.#shownMs = nowMs;
    const done = Math.min(1, doneBytes / this.#totalBytes);
    const filled = Math.round(done * WIDTH);
    const perSecond = doneBytes / 1e6 / Math.max(0.001, (nowMs - this.#startMs) / 1000);
    process.stderr.write(
      `\r[${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}] ${(done * 100).toFixed(0).padStart(3)} %  ` +
        `${(doneBytes / 1e6).toFixed(0)} MB, ${perSecond.toFixed(0)} MB/s `,
    );
  }

  /** One line above the bar. */
  note(text: string): void {
    this.#clear();
    this.#output.note(text);
  }

  end(): void {
    this.#clear();
  }

  #clear(): void {
    if (this.#isTerminal && this.#shownMs > 0) process.stderr.write('\r\x1b[K');
  }
}
