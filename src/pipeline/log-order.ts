/**
 * The order of logs whose lines are of the same time: it is that of the replay, and an import that is
 * done again must give the same rows, whatever the call names first.
 *
 * Files of one log come oldest first, as rotation named them: a moment may stand on both sides of a
 * cut. Between logs the content decides, since names change.
 */
import { basename, dirname, join } from 'node:path';
import { rotationAge } from '../input/follow-rotated.js';
import { headHash } from './known-sources.js';
import { rotationStem, type LogFile } from './log-files.js';

export function inReplayOrder(files: readonly LogFile[]): LogFile[] {
  const hashes = new Map(files.map((file) => [file, headHash(file.head).hash]));
  const leastHashes = new Map<string, string>();
  for (const [file, hash] of hashes) {
    const log = logOf(file);
    const least = leastHashes.get(log);
    if (least === undefined || hash < least) leastHashes.set(log, hash);
  }
  return [...files].sort((a, b) => {
    const [logA, logB] = [logOf(a), logOf(b)];
    if (logA !== logB) {
      return compare(leastHashes.get(logA)!, leastHashes.get(logB)!) || compare(logA, logB);
    }
    return (
      compareAges(ageOf(a), ageOf(b)) ||
      compare(hashes.get(a)!, hashes.get(b)!) ||
      compare(a.head.path, b.head.path)
    );
  });
}

/** The path of the log that the file is, or was before it was rotated. */
function logOf({ head }: LogFile): string {
  return join(dirname(head.path), rotationStem(head.path));
}

function ageOf({ head }: LogFile): readonly number[] {
  return rotationAge(rotationStem(head.path), basename(head.path));
}

function compareAges(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a[i] !== b[i]) return a[i]! - b[i]!;
  }
  return a.length - b.length;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
