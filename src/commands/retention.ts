/**
 * `--retention NAME=TIME`: how long the store keeps its rows.
 */
import { EXIT, InputError, quote } from '../errors.js';
import { DEFAULT_RETENTION, type Retention } from '../store/ddl.js';

const NAMES = {
  aggregates: 'bucketDays',
  keys: 'keyDays',
  samples: 'sampleDays',
} as const satisfies Record<string, keyof Retention>;

/**
 * @param given `aggregates=400d`, `keys=forever`, …; what is not named is as by default
 * @returns undefined when nothing is given: then the store stays as it is
 * @throws InputError 64
 */
export function parseRetention(given: readonly string[]): Retention | undefined {
  if (given.length === 0) return undefined;
  const retention = { ...DEFAULT_RETENTION };
  for (const text of given) {
    const match = /^(aggregates|keys|samples)=(?:([1-9]\d{0,4})d?|(forever))$/.exec(text);
    if (match === null) {
      throw new InputError(
        `--retention: expected aggregates=, keys= or samples= with days like 90d, or forever, found ${quote(text)}`,
        EXIT.usage,
      );
    }
    retention[NAMES[match[1] as keyof typeof NAMES]] = match[3] ? null : Number(match[2]);
  }
  return retention;
}
