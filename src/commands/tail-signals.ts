/**
 * The signals that `limitlens tail` takes: SIGTERM and SIGINT ask it to end, a second one ends it at
 * once; SIGHUP asks it to read its configuration again.
 */
import type { JsonLog } from '../daemon/json-log.js';

export class TailSignals {
  /** Called when there is something to do. */
  onAsked: () => void = () => undefined;
  readonly #log: JsonLog;
  readonly #ending = new AbortController();
  #isHungUp = false;

  constructor(log: JsonLog) {
    this.#log = log;
    process.on('SIGTERM', this.#end);
    process.on('SIGINT', this.#end);
    process.on('SIGHUP', this.#hangUp);
  }

  /** Aborted when SIGTERM or SIGINT has come. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** SIGTERM or SIGINT has come. */
  get isAsked(): boolean {
    return this.#ending.signal.aborted;
  }

  /** Whether SIGHUP has come since this was asked last. */
  takeHangUp(): boolean {
    const isHungUp = this.#isHungUp;
    this.#isHungUp = false;
    return isHungUp;
  }

  close(): void {
    process.off('SIGTERM', this.#end);
    process.off('SIGINT', this.#end);
    process.off('SIGHUP', this.#hangUp);
  }

  readonly #end = (signal: NodeJS.Signals): void => {
    if (this.isAsked) {
      this.#log.warn('ends at once; the next start goes on from the last step stored', { signal });
      process.exit(signal === 'SIGINT' ? 130 : 143);
    }
    this.#ending.abort();
    this.#log.info('drains', { signal });
    this.onAsked();
  };

  readonly #hangUp = (): void => {
    this.#isHungUp = true;
    this.onAsked();
  };
}
