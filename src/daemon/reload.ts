/**
 * Reads nginx's configuration again when nginx has, or when the daemon is told to.
 *
 * A configuration that cannot be read, or that nginx refuses, leaves the one before in force, as it
 * does in nginx. By a reload mark in the error log the new one is in force from that mark on; by
 * SIGHUP, from then on at the latest; found at a start, from the next mark on where nginx logs these,
 * else from when its files were changed.
 *
 * Not here: going over to it (../commands/tail-site.ts).
 */
import { InputError } from '../errors.js';
import { readConfs } from '../pipeline/confs.js';
import { reloadRefusal, type GenerationInput } from '../replay/generations.js';
import type { JsonLog } from './json-log.js';
import { changedMs, logsReloads, tailGeneration, type TailGeneration } from './tail-generations.js';

export type ReloadCause =
  | { readonly kind: 'SIGHUP'; readonly nowMs: number }
  /** `ms` is NaN for a mark whose time is not known. */
  | { readonly kind: 'mark'; readonly ms: number };

/** What a reload came to: something new, nothing new, or something that is no use. */
export type ReloadResult = 'taken' | 'unchanged' | 'refused';

/** The last of these configurations as it is on disk now. @throws InputError 66 or 78 */
export function readLast(paths: readonly string[]): GenerationInput {
  return readConfs(paths.slice(-1).map((path) => path.replace(/@[^/]*$/, '')))[0]!;
}

/**
 * What is on disk now as the next configuration.
 *
 * @returns the reason when there is none
 */
export function readNext(
  paths: readonly string[],
  current: TailGeneration,
  cause: ReloadCause,
  log: JsonLog,
): TailGeneration | Exclude<ReloadResult, 'taken'> {
  const said = cause.kind === 'SIGHUP' ? 'SIGHUP' : 'nginx reloaded';
  let input: GenerationInput;
  try {
    input = readLast(paths);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return refuse(log, said, error.message);
  }
  const next = tailGeneration({ ...input, ...timesOf(input, cause) });
  if (next.identity === current.identity) {
    log.info('the nginx configuration has not changed', { cause: said });
    return 'unchanged';
  }
  const refusal = reloadRefusal(current.conf, next.conf);
  if (refusal !== undefined) return refuse(log, said, refusal);
  if (cause.kind === 'mark' && changedMs(next.conf) > cause.ms) {
    log.warn('the nginx configuration was changed after this reload of nginx: waits for the next', {
      reload: new Date(cause.ms).toISOString(),
    });
    return 'unchanged';
  }
  return next;
}

/** What a start has found changed since the state was written. */
export function foundAtStart(
  later: readonly TailGeneration[],
  isFollowed: (path: string) => boolean,
): TailGeneration[] {
  return later.map((generation) => {
    const { conf, sinceMs } = generation;
    if (sinceMs !== null) return generation;
    const ms = changedMs(conf);
    const isMarked = logsReloads(conf, isFollowed) || ms === 0;
    return tailGeneration({ conf, sinceMs: isMarked ? null : ms, notBeforeMs: ms });
  });
}

function timesOf(
  { conf }: GenerationInput,
  cause: ReloadCause,
): Pick<GenerationInput, 'sinceMs'> & { readonly notBeforeMs: number } {
  if (cause.kind === 'SIGHUP') return { sinceMs: cause.nowMs, notBeforeMs: changedMs(conf) };
  return { sinceMs: null, notBeforeMs: Number.isNaN(cause.ms) ? 0 : cause.ms };
}

function refuse(log: JsonLog, cause: string, error: string): 'refused' {
  log.error('the nginx configuration is not taken: the one before stays in force', {
    cause,
    error,
  });
  return 'refused';
}
