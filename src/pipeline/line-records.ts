/**
 * Lines on their way from the thread that reads them to the one that replays: records in a buffer
 * that changes hands.
 *
 * A record begins on a multiple of eight bytes, with its length in 32-bit words and its kind. Most
 * lines make a `plain` record of one cache line: 32-bit integers, but for the time. Others hold all
 * facts as doubles, and after them the bytes of the line where they are needed. Keys are told by
 * number (src/keys/key-numbers.ts); a `key` record before the line tells a new one.
 */
import type { NumberedKeys } from '../keys/key-numbers.js';
import { isPlainPass, type PassedLine } from '../replay/access-feed.js';
import type { LineFacts } from '../replay/line-facts.js';
import { joinStatuses, limitConnStatusIn, limitReqStatusIn } from '../replay/parked.js';

/** A passed record is a plain one whose request may be parked as it is. */
export const RECORD_KIND = {
  passed: 0,
  plain: 1,
  access: 2,
  unparsable: 3,
  error: 4,
  key: 5,
} as const;

const BYTES = Float64Array.BYTES_PER_ELEMENT;
const WORD_BYTES = Int32Array.BYTES_PER_ELEMENT;

/** Words of a plain record before its keys; its time is a double at PLAIN_TIME. */
const PLAIN_WORDS = 14;
const PLAIN_TIME = 4;
/** From here on a plain record is as Parked has it. */
const PLAIN_REQUEST = 7;
/** Above the kind of a plain record, how many keys it has. */
const KEYS_SHIFT = 8;
const KIND_MASK = 0xff;
/** Above the statuses, the line's SLACK; a passed one has none. */
const SLACK_SHIFT = 16;
/** Words of another record before its keys; its doubles begin at FACTS. */
const FULL_WORDS = 34;
const FACTS = 6;
const KEY_WORDS = 8;
/** A key's numbering, and its number and one; 0 for an empty key, -1 for one that is not told. */
const WORDS_PER_KEY = 2;

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
    this.#doubles = new Float64Array(buffer, 0, Math.floor(buffer.byteLength / BYTES));
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
    this.#at = 2 * Math.ceil(byte / BYTES);
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
        2 * Math.ceil(copy(this.#bytes, byte, facts.keyBytes, from, from + length) / BYTES);
      words[start] = this.#at - start;
    }
  }
}

/** Walks the records of a buffer. */
export class RecordReader implements PassedLine {
  kind = 0;
  offset = 0;
  nextOffset: number;
  bytes: Uint8Array = NO_BYTES;
  rawStart = 0;
  rawEnd = 0;
  reasonEnd = 0;
  words = new Int32Array(0);
  readonly #keys: NumberedKeys;
  #doubles = new Float64Array(0);
  #at = 0;
  #next = 0;
  #used = 0;

  /** @param keys takes up the keys that come */
  constructor(keys: NumberedKeys, fromOffset: number) {
    this.#keys = keys;
    this.nextOffset = fromOffset;
  }

  /** Goes on in this buffer. @param used words of it that hold records */
  use(buffer: ArrayBuffer, used: number): void {
    this.#doubles = new Float64Array(buffer, 0, Math.floor(buffer.byteLength / BYTES));
    this.words = new Int32Array(buffer, 0, 2 * this.#doubles.length);
    this.bytes = new Uint8Array(buffer);
    this.#next = 0;
    this.#used = used;
  }

  /** Moves to the next line of the buffer if it is a plain one that was written by `limitMs`. */
  nextPlain(limitMs: number): boolean {
    const { words } = this;
    for (;;) {
      const at = this.#next;
      if (at >= this.#used) return false;
      const kind = words[at + 1]! & KIND_MASK;
      if (kind === RECORD_KIND.key) {
        this.#next = at + words[at]!;
        this.#takeKey(at);
        continue;
      }
      if (kind > RECORD_KIND.plain) return false;
      if (this.#doubles[(at + PLAIN_TIME) >> 1]! > limitMs) return false;
      this.#at = at;
      this.#next = at + words[at]!;
      this.kind = kind;
      this.offset = this.nextOffset;
      this.nextOffset += words[at + 2]!;
      this.rawStart = 0;
      this.rawEnd = 0;
      return true;
    }
  }

  /** Moves to the next line of the buffer. */
  next(): boolean {
    const { words } = this;
    for (;;) {
      const at = this.#next;
      if (at >= this.#used) return false;
      this.#at = at;
      this.#next = at + words[at]!;
      this.kind = words[at + 1]! & KIND_MASK;
      if (this.kind <= RECORD_KIND.plain) {
        this.offset = this.nextOffset;
        this.nextOffset += words[at + 2]!;
        this.rawStart = 0;
        this.rawEnd = 0;
        return true;
      }
      if (this.kind !== RECORD_KIND.key) break;
      this.#takeKey(at);
    }
    this.#readPlace();
    return true;
  }

  /** Of a plain record: $msec. */
  get endMs(): number {
    return this.#doubles[(this.#at + PLAIN_TIME) >> 1]!;
  }

  /** Of a plain record: $request_time. */
  get requestMs(): number {
    return this.words[this.#at + 3]!;
  }

  get requestAt(): number {
    return this.#at + PLAIN_REQUEST;
  }

  /** Of a plain record: see PassedLine. */
  readKeys(keys: Int32Array): number {
    const { words } = this;
    const count = words[this.#at + 1]! >> KEYS_SHIFT;
    let at = this.#at + PLAIN_WORDS;
    for (let i = 0; i < 2 * count; i += 2) {
      const numbering = words[at++]!;
      const number = words[at++]! - 1;
      keys[i] = number < 0 ? number : this.#keys.idOf(numbering, number);
      keys[i + 1] = number < 0 ? 0 : this.#keys.nodeLengthOf(numbering, number);
    }
    return count;
  }

  /** Fills the facts from an access line's record. */
  read(facts: LineFacts): void {
    const { words } = this;
    const at = this.#at;
    if (this.kind === RECORD_KIND.access) {
      this.#readFull(facts);
      return;
    }
    facts.requestMs = words[at + 3]!;
    facts.endMs = this.endMs;
    facts.upstreamMs = words[at + 6]!;
    facts.rules = words[at + PLAIN_REQUEST]!;
    facts.httpStatus = words[at + 8]!;
    facts.limitReqStatus = limitReqStatusIn(words[at + 9]!);
    facts.limitConnStatus = limitConnStatusIn(words[at + 9]!);
    facts.slack = words[at + 9]! >> SLACK_SHIFT;
    facts.upstreamStatus = words[at + 10]!;
    facts.connection = words[at + 11]!;
    facts.connectionRequests = words[at + 12]!;
    facts.pid = words[at + 13]!;
    this.#readKeys(facts, words[at + 1]! >> KEYS_SHIFT, at + PLAIN_WORDS);
  }

  #readFull(facts: LineFacts): void {
    const at = this.#at;
    const doubles = this.#doubles;
    let double = ((at + FACTS) >> 1) + 2;
    facts.endMs = doubles[double++]!;
    facts.requestMs = doubles[double++]!;
    facts.upstreamMs = doubles[double++]!;
    facts.httpStatus = doubles[double++]!;
    facts.limitReqStatus = doubles[double++]!;
    facts.limitConnStatus = doubles[double++]!;
    facts.upstreamStatus = doubles[double++]!;
    facts.connection = doubles[double++]!;
    facts.connectionRequests = doubles[double++]!;
    facts.pid = doubles[double++]!;
    facts.rules = doubles[double++]!;
    facts.slack = doubles[double++]!;
    this.#readKeys(facts, this.words[at + 2]!, at + FULL_WORDS);
  }

  #readKeys(facts: LineFacts, count: number, at: number): void {
    const { words } = this;
    facts.keyCount = count;
    facts.hasKeyIds = true;
    for (let i = 0; i < count; i++) {
      const number = words[at + WORDS_PER_KEY * i + 1]! - 1;
      facts.keyLengths[i] = number + 1;
      if (number < 0) continue;
      const numbering = words[at + WORDS_PER_KEY * i]!;
      facts.keyIds[i] = this.#keys.idOf(numbering, number);
      facts.nodeKeyLengths[i] = this.#keys.nodeLengthOf(numbering, number);
    }
  }

  #takeKey(at: number): void {
    const { words } = this;
    const numbering = words[at + 2]!;
    const start = (at + KEY_WORDS) * WORD_BYTES;
    // Numbers begin anew where the reading thread has begun anew.
    if (words[at + 6] === 0) this.#keys.clear(numbering);
    this.#keys.add(numbering, words[at + 3]!, this.bytes, start, words[at + 5]!, words[at + 4]!);
  }

  #readPlace(): void {
    const at = this.#at;
    const { words } = this;
    this.offset = this.#doubles[(at + FACTS) >> 1]!;
    this.nextOffset = this.#doubles[((at + FACTS) >> 1) + 1]!;
    this.rawStart = (at + FULL_WORDS + WORDS_PER_KEY * words[at + 2]!) * WORD_BYTES;
    this.rawEnd = this.rawStart + words[at + 3]!;
    this.reasonEnd = this.rawEnd + words[at + 4]!;
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
