/**
 * What every ClickHouse client of limitlens is made with.
 */
import { ClickHouseLogLevel, type ClickHouseClientConfigOptions } from '@clickhouse/client';

/**
 * JSON for the engine. Half of a surrogate pair, as a text cut in the middle leaves behind, is
 * refused by ClickHouse with the whole insert: it becomes U+FFFD.
 */
export function stringify(value: unknown): string {
  const text = JSON.stringify(value);
  return text.includes('\\ud')
    ? JSON.stringify(value, (_, part: unknown) =>
        typeof part === 'string' ? part.replace(LONE_SURROGATE, '\ufffd') : part,
      )
    : text;
}

// With the u flag a whole pair is one character, so that only lone halves match.
const LONE_SURROGATE = /\p{Surrogate}/gu;

export const CLIENT_OPTIONS: ClickHouseClientConfigOptions = {
  application: 'limitlens',
  // Failures are thrown, and told once, in our words.
  log: { level: ClickHouseLogLevel.OFF },
  json: { parse: JSON.parse, stringify },
};
