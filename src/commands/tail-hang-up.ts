/**
 * What SIGHUP does: limitlens.yaml, logins, TLS files and nginx's configuration are read again. What
 * is no use is not taken, and what was before stays, each for itself.
 */
import type { JsonLog } from '../daemon/json-log.js';
import { InputError } from '../errors.js';
import type { TailHttp } from './tail-http.js';
import type { TailSite } from './tail-site.js';
import type { TailSettings } from './tail.js';

/** Options that can change while the daemon runs; the others wait for its next start. */
const RUNNING = ['conf', 'errorLog', 'logFormat', 'allLogs', 'commitIntervalMs'] as const;

export interface HangUpParts {
  readonly site: TailSite;
  readonly http: TailHttp;
  readonly log: JsonLog;
  readonly onRefused: () => void;
}

/** @returns the settings in force from now on */
export async function hangUp(now: TailSettings, parts: HangUpParts): Promise<TailSettings> {
  const { site, http, log, onRefused } = parts;
  try {
    http.reload();
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    log.error('logins and TLS files are not taken: those of before stay', { error: error.message });
  }
  const next = await settingsOf(now, log);
  if (next === undefined) onRefused();
  const settings = next ?? now;
  const { files, options } = settings;
  const isChanged =
    next !== undefined && changedOf(now, next).some((name) => name !== 'commitIntervalMs');
  const cause = { kind: 'SIGHUP', nowMs: Date.now() } as const;
  await site.reload(cause, isChanged ? { files, choice: options } : undefined);
  return settings;
}

/** The settings with what can change taken from limitlens.yaml; undefined when that is no use. */
async function settingsOf(now: TailSettings, log: JsonLog): Promise<TailSettings | undefined> {
  const { reread } = now.options;
  if (reread === undefined) return now;
  let read: TailSettings;
  try {
    read = await reread();
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    log.error('limitlens.yaml is not taken: what it said before stays', { error: error.message });
    return undefined;
  }
  const taken = Object.fromEntries(
    RUNNING.filter((name) => read.options[name] !== undefined).map((name) => [
      name,
      read.options[name],
    ]),
  );
  const next = { files: read.files, options: { ...now.options, ...taken } };
  const waiting = changedOf(next, read);
  if (waiting.length > 0) {
    log.warn('some of limitlens.yaml is taken at the next start only', { options: waiting });
  }
  return next;
}

/** Names of the options that differ. */
function changedOf(a: TailSettings, b: TailSettings): string[] {
  const flat = ({ files, options }: TailSettings): Record<string, unknown> => ({
    files,
    ...options,
  });
  const [before, after] = [flat(a), flat(b)];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => name !== 'reread' && name !== 'version' && name !== 'config')
    .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
    .sort();
}
