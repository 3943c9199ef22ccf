/**
 * The options of alerts, from the words of the command line or a configuration file.
 *
 * Not here: commander (../cli), files with secrets (../commands).
 */
import type { Condition, ConditionName, Settings, Unit } from '../../alerts/condition.js';
import { CONDITIONS, type Overrides } from '../../alerts/conditions.js';
import { EXIT, InputError, quote } from '../errors.js';
import { parseReceiver, type Receiver } from './post.js';

export interface AlertChoice {
  /** 0 for no evaluation at all. */
  readonly alertIntervalMs: number;
  /** URLs of Alertmanagers. */
  readonly alertmanager: readonly string[];
  /** File of `user:password` for those whose URL has none. */
  readonly alertmanagerLoginFile?: string;
  readonly alertWebhook?: string;
  /** File of the secret that signs what the webhook gets. */
  readonly alertWebhookSecretFile?: string;
  /** `NAME=VALUE`, `NAME.for=10m`, `NAME=off`; see parseThresholds(). */
  readonly alertThreshold: readonly string[];
  /** Where the pages of alerts/runbooks can be read. */
  readonly runbooksUrl?: string;
  /** Where people reach this daemon. */
  readonly externalUrl?: string;
}

export interface AlertSetup {
  readonly overrides: Overrides;
  readonly alertmanagers: readonly Receiver[];
  readonly webhook: Receiver | undefined;
  readonly runbooksUrl: string | undefined;
  readonly externalUrl: string | undefined;
}

/** Everything that can be wrong without opening anything. @throws InputError 64 */
export function parseAlertChoice(choice: AlertChoice): AlertSetup {
  const { alertWebhook, runbooksUrl, externalUrl } = choice;
  return {
    overrides: parseThresholds('--alert-threshold', choice.alertThreshold),
    alertmanagers: choice.alertmanager.map((url) => parseReceiver('--alertmanager', url)),
    webhook:
      alertWebhook === undefined ? undefined : parseReceiver('--alert-webhook', alertWebhook),
    runbooksUrl: parseBase('--runbooks-url', runbooksUrl),
    externalUrl: parseBase('--external-url', externalUrl),
  };
}

const SETTING: Readonly<Record<string, keyof Settings>> = {
  threshold: 'threshold',
  least: 'least',
  window: 'windowSeconds',
  for: 'forSeconds',
};

/**
 * `NAME=VALUE` sets the threshold of a condition: a number, a share like 5%, or a time like 10m, as
 * the condition has it; `off` takes the condition out. `NAME.least=N`, `NAME.window=TIME` and
 * `NAME.for=TIME` set its other numbers.
 *
 * @param option how messages name it
 * @throws InputError 64, with the list of names where the name is unknown
 */
export function parseThresholds(option: string, texts: readonly string[]): Overrides {
  const overrides: Partial<Record<ConditionName, Partial<Settings>>> = {};
  for (const text of texts) {
    const [, name = '', what = 'threshold', value = ''] =
      /^([^.=]*)(?:\.([^=]*))?=(.*)$/s.exec(text) ?? [];
    const condition = CONDITIONS.find((one) => one.name === name);
    if (condition === undefined) {
      throw new InputError(
        `${option}: expected NAME=VALUE with the name of an alert, found ${quote(text)}\n` +
          `  The names: ${CONDITIONS.map((one) => one.name).join(', ')}.`,
        EXIT.usage,
      );
    }
    const setting = Object.hasOwn(SETTING, what) ? SETTING[what] : undefined;
    if (setting === undefined) {
      throw new InputError(
        `${option}: expected ${name} with .least, .window, .for or nothing, found ${quote(text)}`,
        EXIT.usage,
      );
    }
    const unit =
      setting === 'threshold' ? condition.unit : setting === 'least' ? 'count' : 'seconds';
    const number = setting === 'threshold' && value === 'off' ? Infinity : numberOf(value, unit);
    if (number === undefined) {
      throw new InputError(
        `${option} ${name}: expected ${WORDS[unit]}, found ${quote(value)}`,
        EXIT.usage,
      );
    }
    if (setting === 'windowSeconds') checkWindow(option, condition, number);
    overrides[condition.name] = { ...overrides[condition.name], [setting]: number };
  }
  return overrides;
}

const WORDS: Readonly<Record<Unit, string>> = {
  count: 'a number of at least 0',
  share: 'a share like 5% or 0.05',
  seconds: 'a time like 90s, 10m or 2h',
};
const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

function numberOf(text: string, unit: Unit): number | undefined {
  const [, digits, suffix] = /^(\d{1,12}(?:\.\d{1,9})?)([%smh]?)$/.exec(text) ?? [];
  if (digits === undefined || suffix === undefined) return undefined;
  const number = Number(digits);
  if (unit === 'count') return suffix === '' ? number : undefined;
  if (unit === 'seconds') {
    const seconds = number * (UNIT_SECONDS[suffix === '' ? 's' : suffix] ?? NaN);
    return Number.isInteger(seconds) ? seconds : undefined;
  }
  const share = suffix === '%' ? number / 100 : suffix === '' ? number : NaN;
  return share <= 1 ? share : undefined;
}

/** Buckets have 10 s; a condition of now has no window. */
function checkWindow(option: string, { name, defaults }: Condition, seconds: number): void {
  if (defaults.windowSeconds > 0 && seconds >= 60 && seconds % 10 === 0) return;
  const expected =
    defaults.windowSeconds === 0
      ? 'no .window, since it is about now alone'
      : 'a .window of a minute or more, in steps of 10 s';
  throw new InputError(`${option} ${name}: expected ${expected}`, EXIT.usage);
}

/** Without the slash at its end. @throws InputError 64 */
export function parseBase(option: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (URL.canParse(text) && /^https?:/.test(text)) return text.replace(/\/+$/, '');
  throw new InputError(
    `${option}: expected a URL like https://wiki.example/limitlens, found ${quote(text)}`,
    EXIT.usage,
  );
}
