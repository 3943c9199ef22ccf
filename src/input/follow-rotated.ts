/**
 * Names that rotation gives a log, and their order in time.
 *
 * Known are logrotate's `.1`, `-20260302` (dateext), `extension` (access-20260302.log, access.1.log)
 * and `.gz`, and the kubelet's `.20260302-101500`. Not here: reading them.
 */
import { readdir, stat } from 'node:fs/promises';
import { join, parse } from 'node:path';

const SUFFIX = '((?:[.-]\\d+)+)';
/** Longer numbers are dates or epoch seconds, which grow; counters grow with age. */
const MOST_COUNTER_DIGITS = 4;

/** Whether a file name is one that rotation makes of some log. */
export function isRotatedName(name: string): boolean {
  return /(?:[.-]\d+)+(?:\.gz)?$/.test(name) || name.endsWith('.gz');
}

interface RotatedName {
  readonly name: string;
  readonly numbers: readonly string[];
  readonly isGzip: boolean;
}

function readName(base: string, name: string): RotatedName | undefined {
  const { name: stem, ext } = parse(base);
  const forms = [`${escaped(base)}${SUFFIX}`, `${escaped(stem)}${SUFFIX}${escaped(ext)}`];
  for (const form of forms) {
    const match = new RegExp(`^${form}(\\.gz)?$`).exec(name);
    if (match === null) continue;
    const numbers = match[1]!.slice(1).split(/[.-]/);
    return { name, numbers, isGzip: match[2] !== undefined };
  }
  return undefined;
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}

/**
 * How old a file of a log is, as its name tells: numbers that grow with its time, to be compared
 * place by place. The log itself, and names without a number, come last; dates before counters.
 */
export function rotationAge(base: string, name: string): readonly number[] {
  const rotated = readName(base, name);
  if (rotated === undefined) return [2];
  const numbers = rotated.numbers.map(Number);
  return isCounter(rotated) ? [1, -numbers[0]!] : [0, ...numbers];
}

export interface RotatedFile {
  readonly path: string;
  readonly device: number;
  readonly inode: number;
  readonly modifiedMs: number;
}

/**
 * The rotated files of a log, oldest first.
 *
 * A `.gz` beside the plain file of the same name is still being written, and is left out.
 *
 * @param path of the log itself
 */
export async function listRotated(path: string): Promise<RotatedFile[]> {
  const { dir, base } = parse(path);
  const names = await namesOf(dir);
  const present = new Set(names);
  const found: (RotatedName & RotatedFile)[] = [];
  for (const name of names) {
    const rotated = readName(base, name);
    if (rotated === undefined) continue;
    if (rotated.isGzip && present.has(name.slice(0, -'.gz'.length))) continue;
    const file = join(dir, name);
    const status = await stat(file).catch(() => undefined);
    if (status?.isFile() !== true) continue;
    const { dev, ino, mtimeMs } = status;
    found.push({ ...rotated, path: file, device: dev, inode: ino, modifiedMs: mtimeMs });
  }
  return found.sort(compareAge);
}

async function namesOf(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder === '' ? '.' : folder);
  } catch {
    // A folder that cannot be listed is reported by whoever opens the log in it.
    return [];
  }
}

/** Older first: higher counters, earlier dates; where names of two kinds meet, the times decide. */
function compareAge(a: RotatedName & RotatedFile, b: RotatedName & RotatedFile): number {
  const isCounted = isCounter(a);
  if (isCounted !== isCounter(b) || a.numbers.length !== b.numbers.length) {
    return a.modifiedMs - b.modifiedMs;
  }
  for (const [i, number] of a.numbers.entries()) {
    const difference = Number(number) - Number(b.numbers[i]!);
    if (difference !== 0) return isCounted ? -difference : difference;
  }
  return a.modifiedMs - b.modifiedMs;
}

function isCounter(name: RotatedName): boolean {
  return name.numbers.length === 1 && name.numbers[0]!.length <= MOST_COUNTER_DIGITS;
}
