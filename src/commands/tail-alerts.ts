/**
 * The alerts of `limitlens tail`: what they are told, and when.
 *
 * Not here: what alerts are (../alerting), the options' meaning (../alerting/alert-options.ts).
 */
import { isDeepStrictEqual } from 'node:util';
import { AlertLoop, type AlertLoopOptions } from '../alerting/alert-loop.js';
import { parseAlertChoice, type AlertChoice } from '../alerting/alert-options.js';
import { alertStatePath } from '../alerting/alert-state-file.js';
import type { LogProgress } from '../alerting/log-end.js';
import type { AlertLog } from '../alerting/notified.js';
import { basicAuthorization } from '../alerting/post.js';
import { signingKey } from '../alerting/signature.js';
import { EXIT, InputError } from '../errors.js';
import type { TailMetrics } from '../metrics/tail-metrics.js';
import type { Store } from '../store/store.js';
import { readSecretFile } from './secret-file.js';

const BUCKET_MS = 10_000;
/** To send a record. */
const SEND_MS = 5000;

const SECRET_VARIABLE = 'LIMITLENS_ALERT_WEBHOOK_SECRET';

export interface TailAlertsOptions extends AlertChoice {
  readonly instance: string;
  readonly latenessMs: number;
  readonly commitIntervalMs: number;
}

export interface TailAlertsParts {
  readonly store: Pick<Store, 'query'>;
  readonly metrics: TailMetrics;
  readonly log: AlertLog;
  /** Folder of the daemon's state. */
  readonly stateFolder: string;
  /** Where the daemon listens. */
  readonly listens: string;
  /** How far the newest line that was seen is ahead of what is handed on. */
  readonly holdMs: () => number;
  /** Records that the store does not have. */
  readonly waiting: () => number;
}

/** Everything that can be wrong without opening anything. @throws InputError 64, 78 */
export function checkAlertChoice(choice: AlertChoice, env: NodeJS.ProcessEnv = process.env): void {
  parseAlertChoice(choice);
  readSecret(choice, env);
  readLogin(choice);
}

/** How the loop is to work, from options and the files that they name. */
type Plan = Omit<AlertLoopOptions, 'log' | 'metrics' | 'readMetric' | 'statePath'>;

export class TailAlerts {
  readonly #parts: TailAlertsParts;
  #plan: Plan;
  /** Undefined where alerts are not evaluated. */
  #loop: AlertLoop | undefined;
  /** The loop of before stops, and the next one begins. */
  #changing: Promise<void> = Promise.resolve();
  #committed: LogProgress = { reachedMs: -Infinity, caughtUpMs: -Infinity };
  #caughtUpMs = -Infinity;

  private constructor(parts: TailAlertsParts, plan: Plan) {
    this.#parts = parts;
    this.#plan = plan;
  }

  /** @throws InputError as checkAlertChoice(), and for a state of before that cannot be read */
  static async open(options: TailAlertsOptions, parts: TailAlertsParts): Promise<TailAlerts> {
    const alerts = new TailAlerts(parts, planOf(options, parts));
    await alerts.#begin();
    return alerts;
  }

  /**
   * Goes by other thresholds, receivers and secrets from now on; what fires, and what is still to be
   * said, stays. A round that runs ends first, in the background.
   *
   * @throws InputError as checkAlertChoice(), and all stays as it was
   */
  reload(options: TailAlertsOptions): void {
    const plan = planOf(options, this.#parts);
    if (isDeepStrictEqual(plan, this.#plan)) return;
    this.#plan = plan;
    this.#changing = this.#changing.then(async () => {
      const before = this.#loop;
      await before?.stop();
      this.#loop =
        before === undefined || plan.intervalMs === 0 ? undefined : before.goOn(this.#options);
      try {
        await this.#begin();
      } catch (error) {
        if (!(error instanceof InputError)) throw error;
        this.#parts.log.error('alerts are not evaluated', { error: error.message });
      }
    });
  }

  async #begin(): Promise<void> {
    if (this.#plan.intervalMs === 0) return;
    this.#loop ??= await AlertLoop.open(this.#parts.store, this.#options);
    this.#loop.start();
  }

  get #options(): AlertLoopOptions {
    const { stateFolder, metrics, log } = this.#parts;
    const statePath = alertStatePath(stateFolder, this.#plan.instance);
    return { ...this.#plan, statePath, log, metrics, readMetric: (id) => metrics.samples(id) };
  }

  /** A step was done that began at `beganMs`. @param isMore there may be more to read */
  stepped(isMore: boolean, beganMs: number): void {
    if (!isMore) this.#caughtUpMs = beganMs;
    // Of what waits for the store nothing can be asked.
    if (this.#parts.waiting() === 0) this.#loop?.stepped(this.#committed);
  }

  /** What was stepped through is on its way to the store. */
  committed(reachedMs: number): void {
    this.#committed = { reachedMs, caughtUpMs: this.#caughtUpMs };
  }

  async stop(): Promise<void> {
    await this.#changing;
    await this.#loop?.stop();
  }
}

/** @throws InputError as checkAlertChoice() */
function planOf(options: TailAlertsOptions, { listens, holdMs }: TailAlertsParts): Plan {
  const { instance, latenessMs, commitIntervalMs, alertIntervalMs } = options;
  const { webhook, alertmanagers, overrides, runbooksUrl, externalUrl } = parseAlertChoice(options);
  const secret = readSecret(options, process.env);
  const login = readLogin(options);
  const key = secret === undefined ? undefined : signingKey(secret);
  return {
    instance,
    intervalMs: alertIntervalMs,
    overrides,
    alertmanagers: alertmanagers.map((receiver) => ({ ...login, ...receiver })),
    ...(webhook === undefined ? {} : { webhook: { receiver: webhook, key } }),
    ...(runbooksUrl === undefined ? {} : { runbooksUrl }),
    externalUrl: externalUrl ?? listens,
    settleMs: latenessMs + holdMs() + BUCKET_MS + commitIntervalMs + SEND_MS,
  };
}

function readSecret(choice: AlertChoice, env: NodeJS.ProcessEnv): string | undefined {
  const { alertWebhook, alertWebhookSecretFile: path } = choice;
  if (path === undefined) return env[SECRET_VARIABLE] === '' ? undefined : env[SECRET_VARIABLE];
  if (alertWebhook !== undefined) return readSecretFile(path, '--alert-webhook-secret-file');
  throw new InputError('--alert-webhook-secret-file: expected --alert-webhook with it', EXIT.usage);
}

/** As a header. A login in a URL goes before it. @throws InputError 78 */
function readLogin(choice: AlertChoice): { readonly authorization?: string } {
  const { alertmanagerLoginFile: path } = choice;
  if (path === undefined) return {};
  const login = readSecretFile(path, '--alertmanager-login-file');
  if (/^[^:\r\n]+:[^\r\n]+$/.test(login)) return { authorization: basicAuthorization(login) };
  throw new InputError(
    `--alertmanager-login-file ${path}: expected one line of user:password, found something else`,
    EXIT.configuration,
  );
}
