/**
 * Lines on their way from the thread that reads them to the one that replays: records in a buffer
 * that changes hands.
 *
 * A record begins on a multiple of eight bytes, with its length in 32-bit words and its kind. Most
 * lines make a `plain` record of one cache line: 32-bit integers, but for the time. Others hold all
 * facts as doubles, and after them the bytes of the line where they are needed. Keys are told by
 * number (src/keys/key-numbers.ts); a `key` record before the line tells a new one.
 *
 * Not here: who writes them (record-writer.ts), who reads them (record-reader.ts).
 */

/** A passed record is a plain one whose request may be parked as it is. */
export const RECORD_KIND = {
  passed: 0,
  plain: 1,
  access: 2,
  unparsable: 3,
  error: 4,
  key: 5,
} as const;

export const DOUBLE_BYTES = Float64Array.BYTES_PER_ELEMENT;
export const WORD_BYTES = Int32Array.BYTES_PER_ELEMENT;

/** Words of a plain record before its keys; its time is a double at PLAIN_TIME. */
export const PLAIN_WORDS = 14;
export const PLAIN_TIME = 4;
/** From here on a plain record is as Parked has it. */
export const PLAIN_REQUEST = 7;
/** Above the kind of a plain record, how many keys it has. */
export const KEYS_SHIFT = 8;
export const KIND_MASK = 0xff;
/** Above the statuses, the line's SLACK; a passed one has none. */
export const SLACK_SHIFT = 16;
/** Words of another record before its keys; its doubles begin at FACTS. */
export const FULL_WORDS = 34;
export const FACTS = 6;
export const KEY_WORDS = 8;
/** A key's numbering, and its number and one; 0 for an empty key, -1 for one that is not told. */
export const WORDS_PER_KEY = 2;
