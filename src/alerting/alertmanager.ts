/**
 * Alertmanagers: each gets all that fires, again and again, as Prometheus does it.
 *
 * Alertmanager forgets an alert that nobody repeats, so what fires is sent every minute, with an end
 * four minutes away; what is resolved is sent for a quarter of an hour. It tells alerts apart by
 * their labels alone: a repeated one is no news to it, nor is one from a process that was restarted.
 * So nothing has to be queued: what was not taken is sent again at the next evaluation.
 *
 * Every Alertmanager of a cluster is told by itself, as they ask their clients to do. Units: epoch
 * milliseconds.
 */
import type { Alert } from './alert-book.js';
import { alertId } from './alert-book.js';
import { postableAlert, type MessageOptions } from './messages.js';
import type { Notified } from './notified.js';
import { postJson, type Receiver } from './post.js';

const RESEND_MS = 60_000;
/** Evaluations or sendings that may fail before an alert ends by itself. */
const VALID_RESENDS = 4;

/** Where an Alertmanager takes alerts. @param receiver its address, with its path prefix */
export function alertsEndpoint(receiver: Receiver): Receiver {
  return { ...receiver, url: `${receiver.url.replace(/\/+$/, '')}/api/v2/alerts` };
}

export class AlertmanagerSender {
  readonly #receiver: Receiver;
  readonly #intervalMs: number;
  readonly #options: MessageOptions;
  readonly #notified: Notified;
  /** What was taken, by alert: in which state, and when. */
  readonly #taken = new Map<string, { readonly state: string; readonly ms: number }>();
  #isSending = false;

  constructor(receiver: Receiver, intervalMs: number, options: MessageOptions, notified: Notified) {
    this.#receiver = alertsEndpoint(receiver);
    this.#intervalMs = intervalMs;
    this.#options = options;
    this.#notified = notified;
    notified.begin(receiver.name);
  }

  /** Sends what is due. Never throws; what is still being sent is not sent twice. */
  async send(alerts: readonly Alert[], nowMs: number, signal: AbortSignal): Promise<void> {
    const { name } = this.#receiver;
    const known = new Set(alerts.map((alert) => alertId(alert.name, alert.labels)));
    for (const id of this.#taken.keys()) if (!known.has(id)) this.#taken.delete(id);
    const due = alerts.filter((alert) => this.#isDue(alert, nowMs));
    if (due.length === 0 || this.#isSending) return;
    this.#isSending = true;
    const validMs = nowMs + VALID_RESENDS * Math.max(RESEND_MS, this.#intervalMs);
    const body = JSON.stringify(due.map((alert) => postableAlert(alert, validMs, this.#options)));
    const result = await postJson(this.#receiver, body, {}, signal);
    this.#isSending = false;
    if (result.isTaken) {
      for (const alert of due) {
        this.#taken.set(alertId(alert.name, alert.labels), { state: alert.state, ms: nowMs });
      }
      this.#notified.taken(name, nowMs);
    } else if (!signal.aborted) {
      this.#notified.failed(name, result.error, { alerts: due.length });
    }
  }

  #isDue(alert: Alert, nowMs: number): boolean {
    if (alert.state === 'pending') return false;
    const taken = this.#taken.get(alertId(alert.name, alert.labels));
    return taken?.state !== alert.state || nowMs - taken.ms >= RESEND_MS;
  }
}
