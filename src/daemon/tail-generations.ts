/**
 * The configurations that the daemon has followed nginx through, as its state keeps them.
 *
 * A restart has to go on with the one that was in force, whatever the files say by then; so each is
 * kept as it was read, without what is of no use to a replay. Which of them is in force when, is told
 * by reload marks, else by when it was read (../replay/generations.ts).
 *
 * Not here: when to read one (reload.ts).
 */
import { createHash } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { NginxConf } from '../../parsers/conf/model.js';
import { statusOf } from '../input/path-status.js';
import type { GenerationInput } from '../replay/generations.js';

/** A configuration in plain JSON. */
export interface StoredGeneration {
  /** Base64 of a packed NginxConf. */
  readonly conf: string;
  readonly sinceMs: number | null;
  readonly notBeforeMs?: number;
}

/** A configuration with what its state is kept as. */
export interface TailGeneration extends GenerationInput {
  readonly stored: StoredGeneration;
  /** The same for configurations that mean the same. */
  readonly identity: string;
}

export function tailGeneration(input: GenerationInput): TailGeneration {
  const { conf, sinceMs, notBeforeMs } = input;
  const times = notBeforeMs === undefined ? { sinceMs } : { sinceMs, notBeforeMs };
  const packed = gzipSync(serialize(conf)).toString('base64');
  return { ...input, stored: { conf: packed, ...times }, identity: identityOf(conf) };
}

export function restoredGeneration(stored: StoredGeneration): TailGeneration {
  const { conf: packed, sinceMs, notBeforeMs } = stored;
  const conf = deserialize(gunzipSync(Buffer.from(packed, 'base64'))) as NginxConf;
  const input = notBeforeMs === undefined ? { conf, sinceMs } : { conf, sinceMs, notBeforeMs };
  return { ...input, stored, identity: identityOf(conf) };
}

/**
 * Where a daemon begins, and what it has to take up after that.
 *
 * @param given as the files say now, in order of time
 * @param kept of the last state; none before the first
 */
export function firstGenerations(
  given: readonly TailGeneration[],
  kept: readonly TailGeneration[],
): { readonly first: readonly TailGeneration[]; readonly later: readonly TailGeneration[] } {
  const last = kept[kept.length - 1];
  if (last === undefined) return { first: given, later: [] };
  const at = given.findLastIndex(({ identity }) => identity === last.identity);
  // Of several, those before the last have been in force already, or never will be.
  return { first: kept, later: at < 0 ? given.slice(-1) : given.slice(at + 1) };
}

/**
 * Whether the configuration has nginx log its reloads where they are read: at `notice` and below, to
 * a log that is followed.
 */
export function logsReloads(conf: NginxConf, isFollowed: (path: string) => boolean): boolean {
  const [main] = conf.errorLogs;
  return main !== undefined && /^(?:debug|info|notice)$/.test(main.level) && isFollowed(main.path);
}

/** When the files of a configuration were changed last, in whole seconds; 0 for files elsewhere. */
export function changedMs(conf: NginxConf): number {
  let latestMs = 0;
  for (const path of filesOf(conf)) {
    const found = statusOf(path);
    if (found !== undefined) latestMs = Math.max(latestMs, found.mtimeMs);
  }
  return Math.floor(latestMs / 1000) * 1000;
}

/** Every file that something of the configuration stands in. */
function filesOf(conf: NginxConf): Set<string> {
  const files = new Set([conf.path]);
  walk(conf, (key, value) => {
    if (key === 'where' && value !== null) files.add((value as { path: string }).path);
  });
  return files;
}

function walk(value: unknown, see: (key: string, value: unknown) => void): void {
  if (typeof value !== 'object' || value === null) return;
  const entries = value instanceof Map ? [...value.entries()] : Object.entries(value);
  for (const [key, inside] of entries) {
    see(String(key), inside);
    walk(inside, see);
  }
}

/** Everything that a replay goes by; not where it stands in the files. */
function identityOf(conf: NginxConf): string {
  const text = JSON.stringify(conf, (key, value: unknown) => {
    if (key === 'where' || key === 'notes' || key === 'path') return key === 'path' ? value : 0;
    // That something is there counts, not where.
    if (/Where$/.test(key)) return value !== undefined;
    if (value instanceof Map) return [...(value as Map<unknown, unknown>)];
    return value === Infinity ? 'Infinity' : value;
  });
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
