/**
 * The daemon's evaluation of the alerts: every so often asks each condition, moves the alerts on, and
 * tells receivers.
 *
 * A round runs beside the replay and never stops it: what fails in a round is counted, logged, and
 * tried again in the next one. Alerts and what is to be said of them are on disk before anything is
 * sent. Units: epoch milliseconds.
 */
import { randomUUID } from 'node:crypto';
import type { Condition, Settings } from '../../alerts/condition.js';
import { CONDITIONS, settingsOf } from '../../alerts/conditions.js';
import type { Store } from '../store/store.js';
import { AlertBook, type Alert, type Found } from './alert-book.js';
import { readAlertState, writeAlertState, type AlertState } from './alert-state-file.js';
import { AlertmanagerSender } from './alertmanager.js';
import { logEnd, type LogEnd, type LogProgress } from './log-end.js';
import { describeAlert, webhookAlert, type MessageOptions } from './messages.js';
import { Notified, type AlertLog, type AlertMetrics } from './notified.js';
import type { Receiver } from './post.js';
import { askStore, ProcessReadings, type ReadMetric } from './readings.js';
import { WebhookSender } from './webhook.js';

export interface AlertLoopOptions extends MessageOptions {
  readonly instance: string;
  readonly intervalMs: number;
  readonly alertmanagers: readonly Receiver[];
  readonly webhook?: { readonly receiver: Receiver; readonly key: Buffer | undefined };
  /** How long after it happened a request is surely stored. */
  readonly settleMs: number;
  readonly statePath: string;
  readonly log: AlertLog;
  readonly metrics: AlertMetrics;
  readonly readMetric: ReadMetric;
  /** Milliseconds since the epoch; another clock in tests. */
  readonly now?: () => number;
}

export class AlertLoop {
  readonly #store: Pick<Store, 'query'>;
  readonly #options: AlertLoopOptions;
  readonly #now: () => number;
  readonly #readings: ProcessReadings;
  readonly #notified: Notified;
  readonly #alertmanagers: readonly AlertmanagerSender[];
  readonly #stop = new AbortController();
  readonly #book: AlertBook;
  readonly #webhook: WebhookSender | undefined;
  #progress: LogProgress = { reachedMs: -Infinity, caughtUpMs: -Infinity };
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #saving: Promise<void> = Promise.resolve();
  /** In this round. */
  #isStoreAway = false;
  /** As the log has it. */
  #isStoreFailing = false;

  private constructor(
    store: Pick<Store, 'query'>,
    options: AlertLoopOptions,
    state: AlertState | undefined,
    readings: ProcessReadings,
  ) {
    this.#store = store;
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#readings = readings;
    this.#book = new AlertBook(state);
    const { webhook, alertmanagers, intervalMs, instance, externalUrl, metrics, log } = options;
    const notified = new Notified(metrics, log);
    this.#notified = notified;
    this.#alertmanagers = alertmanagers.map(
      (receiver) => new AlertmanagerSender(receiver, intervalMs, options, notified),
    );
    this.#webhook =
      webhook === undefined
        ? undefined
        : new WebhookSender(
            { ...webhook, instance, externalUrl, onChange: () => this.#save(), now: this.#now },
            notified,
            state?.queue ?? [],
          );
    for (const result of ['ok', 'failed', 'waiting'])
      metrics.add('alertEvaluations', { result }, 0);
    this.#count();
  }

  /** Takes up the state of before. @throws InputError as readAlertState() */
  static async open(store: Pick<Store, 'query'>, options: AlertLoopOptions): Promise<AlertLoop> {
    const readings = new ProcessReadings(options.readMetric);
    return new AlertLoop(store, options, await readAlertState(options.statePath), readings);
  }

  /** Another one with other options, that goes on where this one has stopped. */
  goOn(options: AlertLoopOptions): AlertLoop {
    for (const name of this.#receivers) this.#notified.end(name);
    const next = new AlertLoop(this.#store, options, this.#state, this.#readings);
    next.#progress = this.#progress;
    return next;
  }

  get #receivers(): string[] {
    const { alertmanagers, webhook } = this.#options;
    const all = webhook === undefined ? alertmanagers : [...alertmanagers, webhook.receiver];
    return all.map(({ name }) => name);
  }

  get #state(): AlertState {
    return { ...this.#book.snapshot(), queue: this.#webhook?.queue ?? [] };
  }

  get alerts(): readonly Alert[] {
    return this.#book.alerts;
  }

  /** The replay has stored a step. */
  stepped(progress: LogProgress): void {
    this.#progress = progress;
  }

  /** Evaluates now and then at each interval. */
  start(): void {
    this.#webhook?.run();
    const next = (): void => {
      this.#round = this.evaluate().finally(() => {
        if (this.#stop.signal.aborted) return;
        this.#timer = setTimeout(next, this.#options.intervalMs);
      });
    };
    this.#timer = setTimeout(next, this.#options.intervalMs);
  }

  /** Waits for the round that runs, and lets what was not sent wait for the next start. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#stop.abort();
    await this.#round;
    await this.#webhook?.stop();
    await this.#saving;
  }

  /** One round. Never throws. */
  async evaluate(): Promise<void> {
    const nowMs = this.#now();
    const end = logEnd(this.#progress, this.#options.settleMs, nowMs);
    const changes: Alert[] = [];
    this.#isStoreAway = false;
    // A store that does not answer must not keep its own alert waiting.
    for (const isOfStore of [false, true]) {
      for (const condition of CONDITIONS) {
        if ('sql' in condition.evaluate !== isOfStore) continue;
        if (this.#stop.signal.aborted) return;
        changes.push(...(await this.#ask(condition, end, nowMs)));
      }
    }
    this.#tell(changes);
    if (changes.length > 0 || this.alerts.length > 0) await this.#save();
    this.#count();
    this.#webhook?.run();
    const { signal } = this.#stop;
    await Promise.all(this.#alertmanagers.map((one) => one.send(this.alerts, nowMs, signal)));
  }

  async #ask(condition: Condition, end: LogEnd, nowMs: number): Promise<readonly Alert[]> {
    const { metrics, overrides } = this.#options;
    const settings = settingsOf(condition, overrides);
    const form = condition.evaluate;
    const isOff = settings.threshold === Infinity;
    if (form.clock === 'log' && end.isBehind && !isOff) {
      metrics.add('alertEvaluations', { result: 'waiting' }, 1);
      return [];
    }
    const clockMs = form.clock === 'log' && !isOff ? end.toMs : nowMs;
    const found = isOff ? [] : await this.#holds(condition, settings, clockMs);
    if (found === undefined) {
      metrics.add('alertEvaluations', { result: 'failed' }, 1);
      return [];
    }
    metrics.add('alertEvaluations', { result: 'ok' }, 1);
    return this.#book.advance(condition, settings, found, clockMs, nowMs);
  }

  /** @returns undefined when that cannot be told now */
  async #holds(
    condition: Condition,
    settings: Settings,
    clockMs: number,
  ): Promise<readonly Found[] | undefined> {
    const form = condition.evaluate;
    if ('metric' in form) return this.#readings.ask(condition, form, settings, clockMs);
    if (this.#isStoreAway) return undefined;
    const { instance, log } = this.#options;
    try {
      const toS = Math.floor(clockMs / 1000);
      const found = await askStore(this.#store, condition, form, settings, toS, instance);
      this.#isStoreFailing = false;
      return found;
    } catch (error) {
      // Once for each time that the store goes away: StoreFailing says how it goes on.
      if (!this.#isStoreFailing) {
        log.error('alerts could not be evaluated', { alert: condition.name, error: String(error) });
      }
      this.#isStoreFailing = true;
      this.#isStoreAway = true;
      return undefined;
    }
  }

  #tell(changes: readonly Alert[]): void {
    const { log } = this.#options;
    for (const alert of changes) {
      const { labels, annotations } = describeAlert(alert, this.#options);
      const fields = { ...labels, value: alert.value, summary: annotations['summary'] };
      if (alert.state === 'resolved') log.info('an alert is resolved', fields);
      else log.warn('an alert fires', fields);
    }
    if (changes.length === 0) return;
    const alerts = changes.map((alert) => webhookAlert(alert, this.#options));
    this.#webhook?.add({ id: `msg_${randomUUID()}`, alerts });
  }

  /** One after the other, each with what is true by then. */
  #save(): Promise<void> {
    this.#saving = this.#saving.then(async () => {
      try {
        await writeAlertState(this.#options.statePath, this.#state);
      } catch (error) {
        this.#options.log.error('the state of alerts could not be written', {
          path: this.#options.statePath,
          error: String(error),
        });
      }
    });
    return this.#saving;
  }

  #count(): void {
    const { metrics } = this.#options;
    for (const { name: alertname } of CONDITIONS) {
      for (const state of ['pending', 'firing'] as const) {
        const of = this.alerts.filter((one) => one.name === alertname && one.state === state);
        metrics.set('alerts', { alertname, state }, of.length);
      }
    }
  }
}
