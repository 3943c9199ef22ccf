/**
 * A webhook hears of each alert when it begins to fire and when it is resolved: once, in order.
 *
 * Messages wait in a queue that the daemon keeps on disk. The first is sent until the webhook takes
 * it, with growing waits or those it asks for; then the next. One that it calls faulty (400, 413,
 * 422) would never be taken: it is given up, loudly. When too many wait, the two oldest become one,
 * in which each alert has its later state: what is still true is never lost, and memory is bounded.
 *
 * A crash between the webhook's answer and our note of it sends a message again, under the same
 * `webhook-id`. Units: epoch milliseconds.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { WebhookAlert } from './messages.js';
import { webhookBody } from './messages.js';
import type { Notified } from './notified.js';
import { postJson, type PostResult, type Receiver } from './post.js';
import { signatureHeaders } from './signature.js';

export interface QueuedMessage {
  readonly id: string;
  readonly alerts: readonly WebhookAlert[];
}

export interface WebhookOptions {
  readonly receiver: Receiver;
  readonly key: Buffer | undefined;
  readonly instance: string;
  readonly externalUrl: string;
  /** The queue has changed: write it down. */
  readonly onChange: () => Promise<void>;
  readonly mostWaiting?: number;
  readonly firstWaitMs?: number;
  readonly random?: () => number;
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly now?: () => number;
}

const MOST_WAITING = 100;
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 300_000;
const FAULTY = new Set([400, 413, 422]);

export class WebhookSender {
  readonly #options: Required<Omit<WebhookOptions, 'key'>> & Pick<WebhookOptions, 'key'>;
  readonly #notified: Notified;
  readonly #stop = new AbortController();
  #queue: QueuedMessage[];
  #running: Promise<void> | undefined;

  constructor(options: WebhookOptions, notified: Notified, queue: readonly QueuedMessage[]) {
    this.#options = {
      mostWaiting: MOST_WAITING,
      firstWaitMs: FIRST_WAIT_MS,
      random: Math.random,
      wait: (ms, signal) => delay(ms, undefined, { signal }),
      now: Date.now,
      ...options,
    };
    this.#notified = notified;
    this.#queue = [...queue];
    notified.begin(options.receiver.name);
    notified.waiting(options.receiver.name, queue.length);
  }

  get queue(): readonly QueuedMessage[] {
    return this.#queue;
  }

  /** Puts a message behind those that wait. The caller writes the queue down, then calls run(). */
  add(message: QueuedMessage): void {
    const { receiver, mostWaiting } = this.#options;
    this.#queue.push(message);
    while (this.#queue.length > mostWaiting) {
      // The first may be on its way.
      const at = this.#running === undefined ? 0 : 1;
      const [older, newer] = this.#queue.splice(at, 2);
      if (older === undefined || newer === undefined) throw new Error('bound of a queue below 2');
      this.#queue.splice(at, 0, merge(older, newer));
      this.#notified.merged(receiver.name);
    }
    this.#notified.waiting(receiver.name, this.#queue.length);
  }

  /** Sends what waits, unless that is being done. */
  run(): void {
    if (this.#running !== undefined || this.#queue.length === 0) return;
    this.#running = this.#sendAll().finally(() => {
      this.#running = undefined;
    });
  }

  /** Ends what is under way; what waits stays in the queue. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #sendAll(): Promise<void> {
    const { receiver, onChange, now } = this.#options;
    let failures = 0;
    for (let first; (first = this.#queue[0]) !== undefined && !this.#stop.signal.aborted;) {
      const result = await this.#post(first);
      if (this.#stop.signal.aborted && !result.isTaken) return;
      if (result.isTaken) this.#notified.taken(receiver.name, now());
      const isGivenUp = !result.isTaken && FAULTY.has(result.status ?? 0);
      if (!result.isTaken) {
        failures++;
        const fields = { id: first.id, alerts: first.alerts.length, isGivenUp, failures };
        this.#notified.failed(receiver.name, result.error, fields);
      }
      if (result.isTaken || isGivenUp) {
        failures = 0;
        this.#queue.shift();
        this.#notified.waiting(receiver.name, this.#queue.length);
        await onChange();
      } else await this.#wait(result, failures);
    }
  }

  async #post({ id, alerts }: QueuedMessage): Promise<PostResult> {
    const { receiver, key, instance, externalUrl, now } = this.#options;
    const body = webhookBody(alerts, instance, externalUrl);
    const headers = signatureHeaders(id, now(), body, key);
    return postJson(receiver, body, headers, this.#stop.signal, now);
  }

  async #wait(result: PostResult & { isTaken: false }, failures: number): Promise<void> {
    const { firstWaitMs, random, wait } = this.#options;
    const longest = Math.min(LONGEST_WAIT_MS, firstWaitMs * 2 ** Math.min(failures - 1, 30));
    // Shortened at random, so that several daemons do not come back in step.
    const ms = Math.max(result.retryAfterMs ?? 0, longest * (1 - random() / 2));
    await wait(ms, this.#stop.signal).catch(() => undefined);
  }
}

/** Both in one, each alert in its later state, in order of their first mention. */
function merge(older: QueuedMessage, newer: QueuedMessage): QueuedMessage {
  const alerts = new Map<string, WebhookAlert>();
  for (const alert of [...older.alerts, ...newer.alerts]) alerts.set(alert.fingerprint, alert);
  return { id: newer.id, alerts: [...alerts.values()] };
}
