/**
 * What is stored of addresses, keys and query strings.
 *
 * Addresses are kept, cut to a network, or replaced by a keyed hash (HMAC-SHA256), wherever they
 * stand in a text: a key of several variables, the path of an example, a line that could not be
 * read. The hash is of the address, not of its spelling, so ::ffff:192.0.2.1 is 192.0.2.1. Query
 * strings are left out of lines always.
 *
 * The replay itself needs whole keys: they stay in memory, and in the state between two steps, which
 * is sealed (../store/state-seal.ts). Not here: which columns hold such texts (private-rows.ts).
 */
import { createHmac } from 'node:crypto';
import { EXIT, InputError } from '../errors.js';
import { formatAddress, parseAddress } from '../keys/address.js';

export interface PrivacyOptions {
  readonly addresses: 'keep' | 'truncate' | 'hash';
  /** Bits that are kept when truncating. */
  readonly ipv4Bits: number;
  readonly ipv6Bits: number;
  /** `all` hashes every key as a whole, whatever it is made of. */
  readonly keys: 'addresses' | 'all';
  /** Of the hash; not empty where something is hashed. */
  readonly secret: string;
}

export const KEEP_ADDRESSES: PrivacyOptions = {
  addresses: 'keep',
  ipv4Bits: 24,
  ipv6Bits: 48,
  keys: 'addresses',
  secret: '',
};

/** ::ffff:0:0/96 */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255];
/** 64 bits tell some hundred million addresses apart. */
const HASH_DIGITS = 16;
/** IPv6 with or without IPv4 at its end, or IPv4. Times of day are found as well, and are none. */
const ADDRESS =
  /(?:[0-9a-f]{0,4}:){2,7}(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]{0,4})|\d{1,3}(?:\.\d{1,3}){3}/gi;
const IPV4 = /\d{1,3}(?:\.\d{1,3}){3}/g;
/** In place of what looks like an address with something else grown to it. */
const HIDDEN = '[address]';
/** Up to white space, or a quote that closes a field. */
const QUERY = /\?(?:[^\s"]|"(?![,}\s]|$))+/g;
/** Arguments that stand by themselves, as $args does; one alone can't be told from other fields. */
const PAIRS = /[\w.~%+[\]-]+=[^\s"&]*(?:&[\w.~%+[\]-]+(?:=[^\s"&]*)?)+/g;

export class Privacy {
  readonly #options: PrivacyOptions;

  /** @throws InputError 64 for numbers of bits that no address has */
  constructor(options: PrivacyOptions) {
    checkBits('--privacy-ipv4-prefix', options.ipv4Bits, 32);
    checkBits('--privacy-ipv6-prefix', options.ipv6Bits, 128);
    this.#options = options;
  }

  /** Whether keys come out as they are. */
  get keepsKeys(): boolean {
    return this.#options.addresses === 'keep' && this.#options.keys === 'addresses';
  }

  /** A key of a zone. */
  key(text: string): string {
    if (this.#options.keys === 'addresses' || text === '') return this.text(text);
    return `key-${this.#hash(`key ${text}`)}`;
  }

  /** A text that may hold addresses. */
  text(text: string): string {
    if (this.#options.addresses === 'keep') return text;
    return text.replace(ADDRESS, (found) =>
      found.includes(':') ? this.#withColons(found) : (this.#address(found) ?? HIDDEN),
    );
  }

  /** A line of a log. */
  line(text: string): string {
    return this.text(withoutArguments(text));
  }

  /** A colon before or behind an address may be somebody else's. */
  #withColons(found: string): string {
    const whole = this.#address(found);
    if (whole !== undefined) return whole;
    const before = /^:(?!:)/.test(found) ? ':' : '';
    const after = /[^:]:$/.test(found) ? ':' : '';
    const inside = this.#address(found.slice(before.length, found.length - after.length));
    if (inside !== undefined) return `${before}${inside}${after}`;
    if (found.includes('::') || found.split(':').length > 5) return HIDDEN;
    return found.replace(IPV4, (quad) => this.#address(quad) ?? HIDDEN);
  }

  /** @returns undefined when it is no address */
  #address(text: string): string | undefined {
    const bytes = Buffer.from(text, 'latin1');
    const out = new Uint8Array(16);
    const length = parseAddress(bytes, 0, bytes.length, out);
    if (length === 0) return undefined;
    const isMapped = length === 16 && MAPPED.every((byte, i) => out[i] === byte);
    const { addresses, ipv4Bits, ipv6Bits } = this.#options;
    if (addresses === 'hash') {
      const own = isMapped ? out.subarray(12, 16) : out.subarray(0, length);
      return `ip-${this.#hash(Buffer.from(own).toString('hex'))}`;
    }
    const bits = length === 4 ? ipv4Bits : isMapped ? 96 + ipv4Bits : ipv6Bits;
    return `${formatAddress(cut(out.subarray(0, length), bits))}/${bits}`;
  }

  #hash(text: string): string {
    return createHmac('sha256', this.#options.secret)
      .update(text)
      .digest('hex')
      .slice(0, HASH_DIGITS);
  }
}

/** A line without what stands behind question marks, and without runs of arguments. */
export function withoutArguments(text: string): string {
  return text.replace(QUERY, '?…').replace(PAIRS, '…');
}

function cut(bytes: Uint8Array, bits: number): Uint8Array {
  return bytes.map((byte, i) => {
    const kept = Math.min(8, Math.max(0, bits - 8 * i));
    return byte & (0xff00 >> kept);
  });
}

function checkBits(option: string, bits: number, most: number): void {
  if (bits <= most) return;
  throw new InputError(`${option} ${bits}: expected at most ${most} bits`, EXIT.usage);
}
