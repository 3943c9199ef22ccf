/**
 * How many statements of the page run at a time, and how many wait for it.
 *
 * One page asks for a dozen panels at once, and several pages are open: the store gets a few at a
 * time, so that an import beside it keeps its turn. Whoever has gone away is not asked for.
 */
import { HttpError } from '../http/route.js';

export interface GateLimits {
  readonly running: number;
  readonly waiting: number;
}

export class QueryGate {
  readonly #limits: GateLimits;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(limits: GateLimits) {
    this.#limits = limits;
  }

  /**
   * Runs an action when it is its turn.
   *
   * @throws HttpError 503 when too many wait; 499 when the client went away before
   */
  async run<T>(gone: AbortSignal, action: () => Promise<T>): Promise<T> {
    if (this.#running < this.#limits.running) this.#running++;
    else if (this.#waiting.length < this.#limits.waiting) await this.#turn();
    else
      throw new HttpError(503, 'too many queries wait already: try again', { 'Retry-After': '2' });
    try {
      // nginx's own status for it; nobody reads it.
      if (gone.aborted) throw new HttpError(499, 'the client went away');
      return await action();
    } finally {
      const next = this.#waiting.shift();
      // The place is handed on, so that nobody who comes in between takes it as well.
      if (next === undefined) this.#running--;
      else next();
    }
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }
}
