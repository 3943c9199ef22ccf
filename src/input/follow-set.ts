/**
 * Follows all logs that some paths and patterns stand for, now or later.
 *
 * A pattern is expanded again at every poll. Of what it matches, rotated files are passed over: they
 * belong to the log that they were. Two names of one file are one log.
 *
 * Not here: one log's life (follow.ts).
 */
import { readdir, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { hasWildcard, matchesGlob, segmentPattern } from '../../parsers/conf/glob.js';
import { FollowedLog } from './follow.js';
import type { FollowOptions, PollLimits } from './follow-options.js';
import {
  noCounts,
  type FollowCounters,
  type KnownLog,
  type LogProgress,
  type OnLine,
} from './follow-progress.js';
import { isRotatedName } from './follow-rotated.js';
import { ReadBuffer } from './follow-source.js';

export class FollowedLogs {
  readonly #patterns: readonly string[];
  readonly #options: FollowOptions;
  readonly #logs = new Map<string, FollowedLog>();
  /** Of logs that are not followed yet. */
  #known: readonly KnownLog[];

  /**
   * @param patterns paths, and patterns of them as glob(3) takes them
   * @param options known: of all logs; each is given what bears its path as its name
   */
  constructor(patterns: readonly string[], options: FollowOptions = {}) {
    this.#patterns = patterns;
    this.#known = options.known ?? [];
    this.#options = { ...options, buffer: options.buffer ?? new ReadBuffer() };
  }

  get logs(): readonly FollowedLog[] {
    return [...this.#logs.values()];
  }

  /** Folders whose changes are worth a poll. */
  get folders(): readonly string[] {
    const fixed = this.#patterns.map((pattern) => fixedFolder(pattern));
    return [...new Set([...fixed, ...this.logs.flatMap((log) => log.folders)])];
  }

  get lagBytes(): number {
    return this.logs.reduce((sum, log) => sum + log.lagBytes, 0);
  }

  /** Summed over all logs. */
  get counters(): FollowCounters {
    const sum = noCounts();
    for (const { counters } of this.logs) {
      for (const name of Object.keys(sum) as (keyof FollowCounters)[]) sum[name] += counters[name];
    }
    return sum;
  }

  progress(): LogProgress[] {
    return this.logs.flatMap((log) => log.progress());
  }

  /**
   * Polls every log once; mostBytes of the limits is for each.
   *
   * @returns whether any gave lines: then poll again, else wait to be woken
   */
  async poll(onLine: OnLine, limits?: PollLimits): Promise<boolean> {
    await this.find();
    let hasLines = false;
    for (const log of this.logs) {
      if (await log.poll(onLine, limits)) hasLines = true;
    }
    return hasLines;
  }

  async close(): Promise<void> {
    for (const log of this.logs) await log.close();
  }

  /** Looks for logs that have come, and lets go of matches that are gone for good. */
  async find(): Promise<void> {
    const found = new Set<string>();
    for (const pattern of this.#patterns) {
      const paths = hasWildcard(pattern) ? await this.#matchesOf(pattern) : [pattern];
      for (const path of paths) {
        found.add(path);
        await this.#follow(path);
      }
    }
    for (const [path, log] of this.#logs) {
      if (found.has(path) || !log.isGone) continue;
      this.#logs.delete(path);
      await log.close();
    }
  }

  /** What a pattern matches, and what it matched before: that may be without a name just now. */
  async #matchesOf(pattern: string): Promise<readonly string[]> {
    const known = this.#known.map(({ name }) => name);
    const before = known.filter((name) => matchesGlob(pattern, name) && !isRotated(name));
    return [...new Set([...before, ...(await expandPattern(pattern))])];
  }

  async #follow(path: string): Promise<void> {
    if (this.#logs.has(path)) return;
    const resolved = await realpath(path).catch(() => path);
    for (const other of this.#logs.keys()) {
      if ((await realpath(other).catch(() => other)) === resolved) return;
    }
    const known = this.#known.filter((log) => isOf(log, path));
    // Each is told once: a log of that name that comes later is another one.
    this.#known = this.#known.filter((log) => !known.includes(log));
    this.#logs.set(path, new FollowedLog(path, { ...this.#options, known }));
  }
}

/** An import knows a rotated file under its rotated name. */
function isOf(known: KnownLog, path: string): boolean {
  return (
    known.name === path || known.name.startsWith(`${path}.`) || known.name.startsWith(`${path}-`)
  );
}

/** The part of a pattern that stands before its first wildcard. */
function fixedFolder(pattern: string): string {
  if (!hasWildcard(pattern)) return dirname(pattern);
  const segments = pattern.split('/');
  const fixed = segments.slice(
    0,
    segments.findIndex((segment) => hasWildcard(segment)),
  );
  return fixed.join('/') || (pattern.startsWith('/') ? '/' : '.');
}

function isRotated(path: string): boolean {
  return isRotatedName(basename(path));
}

/** Logs that a pattern matches, rotated ones left out; folders that cannot be listed match nothing. */
export async function expandPattern(pattern: string): Promise<string[]> {
  let found = [pattern.startsWith('/') ? '/' : '.'];
  for (const segment of pattern.split('/').filter((part) => part !== '')) {
    const next: string[] = [];
    for (const folder of found) {
      const names = hasWildcard(segment) ? await matchingNames(folder, segment) : [segment];
      next.push(...names.map((name) => join(folder, name)));
    }
    found = next;
  }
  return found.filter((path) => !isRotated(path)).sort();
}

async function matchingNames(folder: string, segment: string): Promise<readonly string[]> {
  const wanted = segmentPattern(segment);
  try {
    return (await readdir(folder)).filter((name) => wanted.test(name));
  } catch {
    return [];
  }
}
