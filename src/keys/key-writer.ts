/**
 * The buffer a key is put together in.
 *
 * nginx's key holds an address from `$binary_remote_addr` as 4 or 16 raw bytes; here it is held
 * as text, which people can read, and its length in nginx is counted beside it. Raw bytes have a
 * fixed length and text has not, so a space goes between an address and a neighbour that could be
 * read as part of it: `1.2.3.4` + `5` and `1.2.3.45` + `` stay two keys. As the source of a map
 * the address must be what nginx's map sees, and is written raw.
 *
 * Lengths are bytes.
 */
import { parseAddress } from './address.js';

const SPACE = 0x20;
const COLON = 0x3a;
const FIRST_SIZE_BYTES = 256;

export class KeyWriter {
  bytes = new Uint8Array(FIRST_SIZE_BYTES);
  length = 0;
  /** What the bytes written so far come to in nginx. */
  nginxLength = 0;

  private readonly isRaw: boolean;
  private readonly address = new Uint8Array(16);
  /** Where an address in text ended, so that the next byte can be told from it; -1 for nowhere. */
  addressEnd = -1;

  /** @param form `raw` for the source of a map or geo, `text` for a key */
  constructor(form: 'text' | 'raw') {
    this.isRaw = form === 'raw';
  }

  reset(): void {
    this.rewind(0, 0, -1);
  }

  /** Goes back to an earlier length, nginxLength and addressEnd. */
  rewind(length: number, nginxLength: number, addressEnd: number): void {
    this.length = length;
    this.nginxLength = nginxLength;
    this.addressEnd = addressEnd;
  }

  append(source: Uint8Array, start: number, end: number): void {
    if (start === end) return;
    const needed = this.length + (end - start) + 1;
    if (needed > this.bytes.length) this.grow(needed);
    if (this.addressEnd === this.length && couldBeAddress(source[start]!)) {
      this.bytes[this.length++] = SPACE;
    }
    const { bytes } = this;
    let to = this.length;
    for (let from = start; from < end; from++) bytes[to++] = source[from]!;
    this.length = to;
    this.nginxLength += end - start;
  }

  /**
   * Appends the value of $binary_remote_addr, given the text of the address.
   *
   * @returns false when the text is no address
   */
  appendAddress(text: Uint8Array, start: number, end: number): boolean {
    // ngx_http_variable_binary_remote_addr() gives "unix:" itself for such a socket.
    if (text[start] === 0x75) {
      this.append(text, start, end);
      this.addressEnd = this.length;
      return true;
    }
    if (this.isRaw) {
      const rawLength = parseAddress(text, start, end, this.address);
      this.append(this.address, 0, rawLength);
      return rawLength !== 0;
    }
    const rawLength = addressLength(text, start, end);
    if (rawLength === 0) return false;
    if (this.length > 0 && couldBeAddress(this.bytes[this.length - 1]!)) this.appendSpace();
    const before = this.nginxLength;
    this.append(text, start, end);
    this.nginxLength = before + rawLength;
    this.addressEnd = this.length;
    return true;
  }

  private appendSpace(): void {
    if (this.length === this.bytes.length) this.grow(this.length + 1);
    this.bytes[this.length++] = SPACE;
  }

  private grow(needed: number): void {
    let size = this.bytes.length * 2;
    while (size < needed) size *= 2;
    const bytes = new Uint8Array(size);
    bytes.set(this.bytes);
    this.bytes = bytes;
  }
}

/** 4, 16 or 0, by the characters alone: nginx wrote the address, so its shape is right. */
function addressLength(text: Uint8Array, start: number, end: number): number {
  let hasColon = false;
  for (let i = start; i < end; i++) {
    const byte = text[i]!;
    if (byte === COLON) hasColon = true;
    else if (!couldBeAddress(byte) || byte === SPACE) return 0;
  }
  if (start === end) return 0;
  return hasColon ? 16 : 4;
}

/** A space counts, as otherwise one that was there could be taken for one that was put there. */
function couldBeAddress(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x3a) ||
    byte === 0x2e ||
    (byte >= 0x61 && byte <= 0x66) ||
    byte === SPACE
  );
}
