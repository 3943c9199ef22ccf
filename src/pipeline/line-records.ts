/**
 * Lines on their way from the thread that reads them to the one that replays: records of numbers
 * and bytes in a buffer that changes hands.
 *
 * A record begins on a multiple of eight: numbers first, then the bytes of its keys, of the line
 * itself where it is needed, and of what was expected where the line could not be read.
 */
import type { LineFacts } from '../replay/line-facts.js';

export const RECORD_KIND = { access: 0, unparsable: 1, error: 2 } as const;

const HEAD_NUMBERS = 18;
const NUMBERS_PER_KEY = 2;
const BYTES = Float64Array.BYTES_PER_ELEMENT;

/** Where a line lies in the content of its log. */
export interface LinePlace {
  readonly offset: number;
  readonly nextOffset: number;
}

const NO_BYTES = new Uint8Array(0);

/** Puts records into one buffer after the other. */
export class RecordWriter {
  #numbers = new Float64Array(0);
  #bytes = NO_BYTES;
  #at = 0;
  records = 0;

  /** Goes on in this buffer, from its start. */
  use(buffer: ArrayBuffer): void {
    this.#numbers = new Float64Array(buffer, 0, Math.floor(buffer.byteLength / BYTES));
    this.#bytes = new Uint8Array(buffer);
    this.#at = 0;
    this.records = 0;
  }

  /** Numbers written so far. */
  get used(): number {
    return this.#at;
  }

  /** Bytes that a record takes at most. */
  static size(facts: LineFacts, rawBytes: number, reasonBytes: number): number {
    let keyBytes = 0;
    for (let i = 0; i < facts.keyCount; i++) keyBytes += Math.max(0, facts.keyLengths[i]!);
    const numbers = HEAD_NUMBERS + NUMBERS_PER_KEY * facts.keyCount;
    return (numbers + 1) * BYTES + keyBytes + rawBytes + reasonBytes;
  }

  fits(sizeBytes: number): boolean {
    return this.#at * BYTES + sizeBytes <= this.#bytes.length;
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
    const numbers = this.#numbers;
    const start = this.#at;
    const keyCount = kind === RECORD_KIND.access ? facts.keyCount : 0;
    numbers[start + 1] = kind;
    numbers[start + 2] = place.offset;
    numbers[start + 3] = place.nextOffset;
    numbers[start + 4] = rawEnd - rawStart;
    numbers[start + 5] = reason.length;
    numbers[start + 6] = facts.endMs;
    numbers[start + 7] = facts.requestMs;
    numbers[start + 8] = facts.upstreamMs;
    numbers[start + 9] = facts.httpStatus;
    numbers[start + 10] = facts.limitReqStatus;
    numbers[start + 11] = facts.limitConnStatus;
    numbers[start + 12] = facts.upstreamStatus;
    numbers[start + 13] = facts.connection;
    numbers[start + 14] = facts.connectionRequests;
    numbers[start + 15] = facts.pid;
    numbers[start + 16] = facts.rules;
    numbers[start + 17] = keyCount;
    let at = start + HEAD_NUMBERS;
    for (let i = 0; i < keyCount; i++) {
      numbers[at++] = facts.keyLengths[i]!;
      numbers[at++] = facts.nodeKeyLengths[i]!;
    }
    let byte = this.#copyKeys(facts, keyCount, at * BYTES);
    byte = copy(this.#bytes, byte, raw, rawStart, rawEnd);
    byte = copy(this.#bytes, byte, reason, 0, reason.length);
    this.#at = Math.ceil(byte / BYTES);
    numbers[start] = this.#at - start;
    this.records++;
  }

  #copyKeys(facts: LineFacts, keyCount: number, from: number): number {
    let byte = from;
    for (let i = 0; i < keyCount; i++) {
      const length = facts.keyLengths[i]!;
      if (length <= 0) continue;
      const start = facts.keyStarts[i]!;
      byte = copy(this.#bytes, byte, facts.keyBytes, start, start + length);
    }
    return byte;
  }
}

/** Walks the records of a buffer. */
export class RecordReader {
  kind = 0;
  offset = 0;
  nextOffset = 0;
  bytes: Uint8Array = NO_BYTES;
  rawStart = 0;
  rawEnd = 0;
  reasonEnd = 0;
  #numbers = new Float64Array(0);
  #at = 0;
  #next = 0;
  #used = 0;

  use(buffer: ArrayBuffer, used: number): void {
    this.#numbers = new Float64Array(buffer, 0, Math.floor(buffer.byteLength / BYTES));
    this.bytes = new Uint8Array(buffer);
    this.#next = 0;
    this.#used = used;
  }

  /** Moves to the next record of the buffer. */
  next(): boolean {
    if (this.#next >= this.#used) return false;
    const numbers = this.#numbers;
    const at = this.#next;
    this.#at = at;
    this.#next = at + numbers[at]!;
    this.kind = numbers[at + 1]!;
    this.offset = numbers[at + 2]!;
    this.nextOffset = numbers[at + 3]!;
    let byte = (at + HEAD_NUMBERS + NUMBERS_PER_KEY * numbers[at + 17]!) * BYTES;
    for (let i = 0; i < numbers[at + 17]!; i++) {
      byte += Math.max(0, numbers[at + HEAD_NUMBERS + NUMBERS_PER_KEY * i]!);
    }
    this.rawStart = byte;
    this.rawEnd = byte + numbers[at + 4]!;
    this.reasonEnd = this.rawEnd + numbers[at + 5]!;
    return true;
  }

  /** Fills the facts from the record; its key bytes stay in the buffer. */
  read(facts: LineFacts): void {
    const numbers = this.#numbers;
    const at = this.#at;
    facts.endMs = numbers[at + 6]!;
    facts.requestMs = numbers[at + 7]!;
    facts.upstreamMs = numbers[at + 8]!;
    facts.httpStatus = numbers[at + 9]!;
    facts.limitReqStatus = numbers[at + 10]!;
    facts.limitConnStatus = numbers[at + 11]!;
    facts.upstreamStatus = numbers[at + 12]!;
    facts.connection = numbers[at + 13]!;
    facts.connectionRequests = numbers[at + 14]!;
    facts.pid = numbers[at + 15]!;
    facts.rules = numbers[at + 16]!;
    facts.keyCount = numbers[at + 17]!;
    facts.keyBytes = this.bytes;
    let byte = (at + HEAD_NUMBERS + NUMBERS_PER_KEY * facts.keyCount) * BYTES;
    for (let i = 0; i < facts.keyCount; i++) {
      const length = numbers[at + HEAD_NUMBERS + NUMBERS_PER_KEY * i]!;
      facts.keyLengths[i] = length;
      facts.nodeKeyLengths[i] = numbers[at + HEAD_NUMBERS + NUMBERS_PER_KEY * i + 1]!;
      facts.keyStarts[i] = byte;
      byte += Math.max(0, length);
    }
  }
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
