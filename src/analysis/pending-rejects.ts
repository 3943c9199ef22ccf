/**
 * Refusals of one zone whose clients may still come back, by key.
 *
 * A request answers a refusal only if it came after that was out. What was sent in parallel was
 * not: a page's twenty images are no retries of each other. So refusals wait in a queue for each
 * key, and every later request of the key answers one of them, the oldest.
 *
 * Memory follows the refusals of the window that nobody has answered. Times are epoch milliseconds.
 */
import type { KeyTable } from '../keys/key-table.js';

export interface PendingReject<P> {
  /** When it was decided, and when the answer was out. */
  readonly atMs: number;
  readonly endMs: number;
  /** How long the key would have had to wait; NaN where the excess is not known. */
  readonly waitMs: number;
  /** Method and path, empty where the log tells neither. */
  readonly request: string;
  /** Where it was refused. */
  readonly place: P;
}

/** More refusals than this of one key at a time are not told apart any more. */
const MOST_PER_KEY = 256;

export class PendingRejects<P> {
  readonly #keys: KeyTable;
  readonly #windowMs: number;
  readonly #onGone: (reject: PendingReject<P>) => void;
  /** The key that was refused last is the last: what is first is gone first. */
  readonly #byKey = new Map<number, PendingReject<P>[]>();

  /** @param onGone told of a refusal after which the key did not come back within the window */
  constructor(keys: KeyTable, windowMs: number, onGone: (reject: PendingReject<P>) => void) {
    this.#keys = keys;
    this.#windowMs = windowMs;
    this.#onGone = onGone;
  }

  /** Keys that may come back. */
  get size(): number {
    return this.#byKey.size;
  }

  add(keyId: number, reject: PendingReject<P>): void {
    const queue = this.#byKey.get(keyId);
    if (queue === undefined) {
      this.#keys.retain(keyId);
      this.#byKey.set(keyId, [reject]);
      return;
    }
    if (queue.length >= MOST_PER_KEY) this.#onGone(queue.shift()!);
    queue.push(reject);
    this.#byKey.delete(keyId);
    this.#byKey.set(keyId, queue);
  }

  /** The refusal that a request of this key, decided at `atMs`, answers; undefined for none. */
  take(keyId: number, atMs: number): PendingReject<P> | undefined {
    const queue = this.#byKey.get(keyId);
    if (queue === undefined) return undefined;
    while (queue.length > 0 && queue[0]!.atMs < atMs - this.#windowMs) this.#onGone(queue.shift()!);
    const index = queue.findIndex((reject) => reject.endMs < atMs);
    const taken = index < 0 ? undefined : queue.splice(index, 1)[0];
    if (queue.length === 0) this.#forget(keyId);
    return taken;
  }

  /** Gives up waiting for keys whose last refusal is older than the window. */
  expire(nowMs: number): void {
    for (const [keyId, queue] of this.#byKey) {
      if (queue.at(-1)!.atMs >= nowMs - this.#windowMs) return;
      for (const reject of queue) this.#onGone(reject);
      this.#forget(keyId);
    }
  }

  /** What is still waited for. */
  *rest(): Generator<PendingReject<P>> {
    for (const queue of this.#byKey.values()) yield* queue;
  }

  #forget(keyId: number): void {
    this.#byKey.delete(keyId);
    this.#keys.release(keyId);
  }
}
