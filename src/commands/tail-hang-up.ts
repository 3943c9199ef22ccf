/**
 * What SIGHUP does: limitlens.yaml, logins, TLS files, secrets and nginx's configuration are read
 * again. What is no use is not taken, and what was before stays, each for itself.
 */
import { isDeepStrictEqual } from 'node:util';
import { parseAlertChoice } from '../alerting/alert-options.js';
import { CONFIG_KEYS } from '../config/config-keys.js';
import type { JsonLog } from '../daemon/json-log.js';
import { InputError } from '../errors.js';
import type { TailHttp } from './tail-http.js';
import type { TailSite } from './tail-site.js';
import type { TailCommandOptions, TailSettings } from './tail.js';

/** Options that can change while the daemon runs, by who has to be told. */
const RUNNING = {
  site: ['conf', 'errorLog', 'logFormat', 'allLogs'],
  http: [
    ...['httpTokenFile', 'httpBasicFile', 'tlsCert', 'tlsKey'],
    ...['clickhouseHttpUser', 'clickhouseHttpPasswordFile'],
  ],
  alerts: [
    ...['alertIntervalMs', 'alertThreshold', 'alertmanager', 'alertmanagerLoginFile'],
    ...['alertWebhook', 'alertWebhookSecretFile', 'runbooksUrl', 'externalUrl'],
  ],
  loop: ['commitIntervalMs', 'poll', 'spoolMaxBytes'],
} as const;

/** About the run, not of limitlens.yaml. */
const NO_SETTINGS: readonly string[] = ['reread', 'version', 'config'];

export interface HangUpParts {
  readonly site: TailSite;
  readonly http: Pick<TailHttp, 'reload'>;
  readonly alerts: { reload(options: TailCommandOptions): void };
  readonly log: JsonLog;
  /** What became of limitlens.yaml and the files that it names. */
  readonly onRead: (result: 'taken' | 'unchanged' | 'refused') => void;
}

/** @returns the settings in force from now on */
export async function hangUp(now: TailSettings, parts: HangUpParts): Promise<TailSettings> {
  const { site, http, alerts, log, onRead } = parts;
  const next = await settingsOf(now, log);
  let settings = next ?? now;
  const attempts = [
    attempt(log, 'logins and TLS files are not taken: those of before stay', () => {
      http.reload(settings.options);
    }),
    attempt(log, 'receivers and secrets of alerts are not taken: those of before stay', () => {
      alerts.reload(settings.options);
    }),
  ];
  if (attempts[0] === false) settings = withOptions(settings, RUNNING.http, now);
  if (attempts[1] === false) settings = withOptions(settings, RUNNING.alerts, now);
  const isRefused = next === undefined || attempts.includes(false);
  const changed = changedOf(now, settings);
  if (now.options.reread !== undefined || isRefused) {
    onRead(isRefused ? 'refused' : changed.length > 0 ? 'taken' : 'unchanged');
  }
  if (changed.length > 0) {
    log.info('goes by the new limitlens.yaml', { keys: keysOf(changed) });
  }
  const { files, options } = settings;
  const isOfSite = changed.some((name) => [...RUNNING.site, 'files'].includes(name));
  const cause = { kind: 'SIGHUP', nowMs: Date.now() } as const;
  await site.reload(cause, isOfSite ? { files, choice: options } : undefined);
  return settings;
}

/** @returns whether it could be done */
function attempt(log: JsonLog, refusal: string, action: () => void): boolean {
  try {
    action();
    return true;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    log.error(refusal, { error: error.message });
    return false;
  }
}

/** The settings with what can change taken from limitlens.yaml; undefined when that is no use. */
async function settingsOf(now: TailSettings, log: JsonLog): Promise<TailSettings | undefined> {
  const { reread } = now.options;
  if (reread === undefined) return now;
  let read: TailSettings;
  try {
    read = await reread();
    parseAlertChoice(read.options);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    log.error('limitlens.yaml is not taken: what it said before stays', { error: error.message });
    return undefined;
  }
  const isTls = ({ options }: TailSettings): boolean => options.tlsCert !== undefined;
  const names = Object.values(RUNNING)
    .flat()
    .filter((name) => !/^tls/.test(name) || isTls(now) === isTls(read));
  const next = { ...withOptions(now, names, read), files: read.files };
  const waiting = changedOf(next, read);
  if (waiting.length > 0) {
    log.warn('some of limitlens.yaml needs a restart to be taken', { keys: keysOf(waiting) });
  }
  return next;
}

/** Settings with these options as others have them, or do not have them. */
function withOptions(
  settings: TailSettings,
  names: readonly string[],
  { options: others }: TailSettings,
): TailSettings {
  const kept = Object.entries(settings.options).filter(([name]) => !names.includes(name));
  const taken = Object.entries(others).filter(([name]) => names.includes(name));
  const options = Object.fromEntries([...kept, ...taken]) as unknown as TailCommandOptions;
  return { ...settings, options };
}

/** Names of the options that differ. */
function changedOf(a: TailSettings, b: TailSettings): string[] {
  const flat = ({ files, options }: TailSettings): Record<string, unknown> => ({
    ...options,
    files,
  });
  const [before, after] = [flat(a), flat(b)];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => !NO_SETTINGS.includes(name))
    .filter((name) => !isDeepStrictEqual(before[name], after[name]));
}

function keysOf(names: readonly string[]): string[] {
  return names.map(keyOf).sort();
}

/** How limitlens.yaml names an option: `store.spool_max` for spoolMaxBytes. */
function keyOf(name: string): string {
  const bare = name.replace(/(?:Ms|Bytes)$/, '');
  const camel = (option: string): string =>
    option.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  return CONFIG_KEYS.find(({ option }) => camel(option) === bare)?.path ?? name;
}
