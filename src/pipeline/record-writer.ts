/**
 * Writes lines as records (line-records.ts) into buffers, in the thread that reads them.
 */
import type { LineFacts } from '../replay/line-facts.js';
import { isPlainPass } from '../replay/line-kinds.js';
import { joinStatuses } from '../replay/parked.js';
import {
  RECORD_KIND,
  DOUBLE_BYTES,
  WORD_BYTES,
  PLAIN_WORDS,
  PLAIN_TIME,
  PLAIN_REQUEST,
  KEYS_SHIFT,
  SLACK_SHIFT,
  FULL_WORDS,
  FACTS,
  KEY_WORDS,
  WORDS_PER_KEY,
} from './line-records.js';

/** Where a line lies in the content of its log. */
export interface LinePlace {
  readonly offset: number;
  readonly nextOffset: number;
}

const NO_BYTES = new Uint8Array(0);

/** Puts records into one buffer after the other. */
export class RecordWriter {
  #words = new Int32Array(0);
  #doubles = new Float64Array(0);
  #bytes = NO_BYTES;
  /** In words. */
  #at = 0;
  #lastOffset: number;

  /** @param fromOffset where the content begins that lines are read of */
  constructor(fromOffset: number) {
    this.#lastOffset = fromOffset;
  }

  /** Goes on in this buffer, from its start. */
  use(buffer: ArrayBuffer): void {
    this.#doubles = new Float64Array(buffer, 0, Math.floor(buffer.byteLength / DOUBLE_BYTES));
    this.#words = new Int32Array(buffer, 0, 2 * this.#doubles.length);
    this.#bytes = new Uint8Array(buffer);
    this.#at = 0;
  }

  /** Words written so far. */
  get used(): number {
    return this.#at;
  }

  /** Bytes that a line's records take at most. */
  static size(facts: LineFacts, rawBytes: number, reasonBytes: number): number {
    let bytes = (FULL_WORDS + 4 + WORDS_PER_KEY * facts.keyCount) * WORD_BYTES;
    for (let i = 0; i < facts.keyCount; i++) {
      if (facts.isNewKey[i] === 1) bytes += (KEY_WORDS + 2) * WORD_BYTES + facts.keyLengths[i]!;
    }
    return bytes + rawBytes + reasonBytes;
  }

  fits(sizeBytes: number): boolean {
    return this.#at * WORD_BYTES + sizeBytes <= this.#bytes.length;
  }

  /** A line whose bytes are not needed. */
  writePlain(place: LinePlace, facts: LineFacts): void {
    if (!isPlain(facts)) {
      this.write(RECORD_KIND.access, place, facts, NO_BYTES, 0, 0);
      return;
    }
    this.#writeNewKeys(facts);
    const start = this.#at;
    const words = this.#words;
    const kind = isPlainPass(facts) ? RECORD_KIND.passed : RECORD_KIND.plain;
    words[start + 1] = kind | (facts.keyCount << KEYS_SHIFT);
    words[start + 2] = place.nextOffset - this.#lastOffset;
    words[start + 3] = facts.requestMs;
    this.#doubles[(start + PLAIN_TIME) >> 1] = facts.endMs;
    words[start + 6] = facts.upstreamMs;
    words[start + PLAIN_REQUEST] = facts.rules;
    words[start + 8] = facts.httpStatus;
    words[start + 9] =
      joinStatuses(facts.limitReqStatus, facts.limitConnStatus) | (facts.slack << SLACK_SHIFT);
    words[start + 10] = facts.upstreamStatus;
    words[start + 11] = facts.connection;
    words[start + 12] = facts.connectionRequests;
    words[start + 13] = facts.pid;
    this.#lastOffset = place.nextOffset;
    this.#at = this.#writeKeys(facts, start + PLAIN_WORDS);
    words[start] = this.#at - start;
  }

  /** @param raw the line, or nothing of it (rawEnd = rawStart) */
  write(
    kind: number,
    place: LinePlace,
    facts: LineFacts,
    raw: Uint8Array,
    rawStart: number,
    rawEnd: number,
    reason: Uint8Array = NO_BYTES,
  ): void {
    const isAccess = kind === RECORD_KIND.access;
    if (isAccess) this.#writeNewKeys(facts);
    const start = this.#at;
    const words = this.#words;
    words[start + 1] = kind;
    words[start + 2] = isAccess ? facts.keyCount : 0;
    words[start + 3] = rawEnd - rawStart;
    words[start + 4] = reason.length;
    const doubles = this.#doubles;
    let double = (start + FACTS) >> 1;
    doubles[double++] = place.offset;
    doubles[double++] = place.nextOffset;
    doubles[double++] = facts.endMs;
    doubles[double++] = facts.requestMs;
    doubles[double++] = facts.upstreamMs;
    doubles[double++] = facts.httpStatus;
    doubles[double++] = facts.limitReqStatus;
    doubles[double++] = facts.limitConnStatus;
    doubles[double++] = facts.upstreamStatus;
    doubles[double++] = facts.connection;
    doubles[double++] = facts.connectionRequests;
    doubles[double++] = facts.pid;
    doubles[double++] = facts.rules;
    doubles[double++] = facts.slack;
    this.#lastOffset = place.nextOffset;
    const keysEnd = isAccess ? this.#writeKeys(facts, start + FULL_WORDS) : start + FULL_WORDS;
    let byte = copy(this.#bytes, keysEnd * WORD_BYTES, raw, rawStart, rawEnd);
    byte = copy(this.#bytes, byte, reason, 0, reason.length);
    this.#at = 2 * Math.ceil(byte / DOUBLE_BYTES);
    words[start] = this.#at - start;
  }

  /** @returns where the next record may begin */
  #writeKeys(facts: LineFacts, at: number): number {
    const words = this.#words;
    let word = at;
    for (let i = 0; i < facts.keyCount; i++) {
      const length = facts.keyLengths[i]!;
      words[word++] = facts.keyNumberings[i]!;
      words[word++] = length > 0 ? facts.keyIds[i]! + 1 : length;
    }
    return word;
  }

  #writeNewKeys(facts: LineFacts): void {
    for (let i = 0; i < facts.keyCount; i++) {
      if (facts.isNewKey[i] === 0) continue;
      const words = this.#words;
      const start = this.#at;
      const length = facts.keyLengths[i]!;
      const from = facts.keyStarts[i]!;
      words[start + 1] = RECORD_KIND.key;
      words[start + 2] = facts.keyNumberings[i]!;
      words[start + 3] = facts.keyZones[i]!;
      words[start + 4] = facts.nodeKeyLengths[i]!;
      words[start + 5] = length;
      words[start + 6] = facts.keyIds[i]!;
      const byte = (start + KEY_WORDS) * WORD_BYTES;
      this.#at =
        2 * Math.ceil(copy(this.#bytes, byte, facts.keyBytes, from, from + length) / DOUBLE_BYTES);
      words[start] = this.#at - start;
    }
  }
}

/** Whether all facts but the time fit into a plain record. */
function isPlain(facts: LineFacts): boolean {
  return (
    (facts.httpStatus | 0) === facts.httpStatus &&
    (facts.requestMs | 0) === facts.requestMs &&
    (facts.upstreamMs | 0) === facts.upstreamMs &&
    (facts.upstreamStatus | 0) === facts.upstreamStatus &&
    (facts.connection | 0) === facts.connection &&
    (facts.connectionRequests | 0) === facts.connectionRequests &&
    (facts.pid | 0) === facts.pid
  );
}

function copy(
  target: Uint8Array,
  at: number,
  source: Uint8Array,
  start: number,
  end: number,
): number {
  // Lines are copied natively, keys by hand: they are too short for the call to pay.
  if (end - start > 64) {
    target.set(source.subarray(start, end), at);
    return at + end - start;
  }
  for (let i = start; i < end; i++) target[at++] = source[i]!;
  return at;
}
