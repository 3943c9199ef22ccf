/**
 * Reads records (line-records.ts) back into lines' facts, in the thread that replays them.
 */
import type { NumberedKeys } from '../keys/key-numbers.js';
import type { PassedLine } from '../replay/access-feed.js';
import type { LineFacts } from '../replay/line-facts.js';
import { limitConnStatusIn, limitReqStatusIn } from '../replay/parked.js';
import {
  RECORD_KIND,
  DOUBLE_BYTES,
  WORD_BYTES,
  PLAIN_WORDS,
  PLAIN_TIME,
  PLAIN_REQUEST,
  KEYS_SHIFT,
  KIND_MASK,
  SLACK_SHIFT,
  FULL_WORDS,
  FACTS,
  KEY_WORDS,
  WORDS_PER_KEY,
} from './line-records.js';

const NO_BYTES = new Uint8Array(0);

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
    this.#doubles = new Float64Array(buffer, 0, Math.floor(buffer.byteLength / DOUBLE_BYTES));
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
