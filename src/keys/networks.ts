/**
 * Which network, or range, an address belongs to, out of many.
 *
 * The networks are laid over each other once, the strongest on top, and cut into segments that do
 * not overlap; finding one is a binary search without allocation. Follows what
 * ngx_radix32tree_find(), ngx_radix128tree_find() and the ranges of ngx_http_geo_module answer.
 *
 * Addresses are numbers in host order: 32 bits for IPv4, four words of 32 bits for IPv6.
 */
import { parseAddress } from './address.js';

/** Addresses from `first` to `last` have `choice`, unless a network of a higher rank has them. */
export interface Network {
  readonly family: 4 | 6;
  readonly first: bigint;
  readonly last: bigint;
  readonly rank: number;
  readonly choice: number;
}

export const NO_CHOICE = -1;

/** Reads `192.0.2.0/24`, `2001:db8::/32` or an address alone; host bits are cut off, as in nginx. */
export function parseNetwork(
  text: string,
): { family: 4 | 6; first: bigint; last: bigint; prefix: number } | undefined {
  const slash = text.indexOf('/');
  const address = parseNumber(slash === -1 ? text : text.slice(0, slash));
  if (address === undefined) return undefined;
  const bits = address.family === 4 ? 32 : 128;
  const prefixText = slash === -1 ? `${bits}` : text.slice(slash + 1);
  const prefix = Number(prefixText);
  if (!/^\d+$/.test(prefixText) || prefix > bits) return undefined;
  const hostMask = (1n << BigInt(bits - prefix)) - 1n;
  const first = address.value & ~hostMask;
  return { family: address.family, first, last: first | hostMask, prefix };
}

/** Reads `192.0.2.10-192.0.2.20`. */
export function parseRange(text: string): { first: bigint; last: bigint } | undefined {
  const [from, to, ...rest] = text.split('-');
  const first = parseNumber(from ?? '');
  const last = parseNumber(to ?? '');
  if (rest.length > 0 || first?.family !== 4 || last?.family !== 4) return undefined;
  return first.value <= last.value ? { first: first.value, last: last.value } : undefined;
}

function parseNumber(text: string): { family: 4 | 6; value: bigint } | undefined {
  const raw = new Uint8Array(16);
  const bytes = Buffer.from(text, 'latin1');
  const length = parseAddress(bytes, 0, bytes.length, raw);
  // nginx reads it as an error value, and takes it for a network all the same.
  if (text === '255.255.255.255') return { family: 4, value: 0xffff_ffffn };
  if (length === 0) return undefined;
  let value = 0n;
  for (const byte of raw.subarray(0, length)) value = (value << 8n) | BigInt(byte);
  return { family: length === 4 ? 4 : 6, value };
}

/** Networks cut into segments: each goes from its start to the next one's. */
export class Networks {
  private readonly starts4: Uint32Array;
  private readonly choices4: Int32Array;
  /** Four words a segment. */
  private readonly starts6: Uint32Array;
  private readonly choices6: Int32Array;

  constructor(networks: readonly Network[]) {
    const segments4 = cut(
      networks.filter(({ family }) => family === 4),
      32n,
    );
    const segments6 = cut(
      networks.filter(({ family }) => family === 6),
      128n,
    );
    this.starts4 = Uint32Array.from(segments4, ({ start }) => Number(start));
    this.choices4 = Int32Array.from(segments4, ({ choice }) => choice);
    this.starts6 = Uint32Array.from(segments6.flatMap(({ start }) => wordsOf(start)));
    this.choices6 = Int32Array.from(segments6, ({ choice }) => choice);
  }

  /** The choice for an address of 4 or 16 bytes, or NO_CHOICE. Mapped IPv4 counts as IPv4. */
  find(raw: Uint8Array, length: number): number {
    if (length === 4) return this.find4(wordAt(raw, 0));
    if (isMappedIpv4(raw)) return this.find4(wordAt(raw, 12));
    const { starts6, choices6 } = this;
    let low = 0;
    let high = choices6.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare6(starts6, middle * 4, raw) <= 0) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? NO_CHOICE : choices6[low - 1]!;
  }

  /** The choice for an IPv4 address. */
  find4(address: number): number {
    const { starts4, choices4 } = this;
    let low = 0;
    let high = choices4.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (starts4[middle]! <= address) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? NO_CHOICE : choices4[low - 1]!;
  }
}

interface Segment {
  readonly start: bigint;
  readonly choice: number;
}

/** Lays networks over each other, the highest rank (and then the last) on top. */
function cut(networks: readonly Network[], bits: bigint): readonly Segment[] {
  const borders = new Set<bigint>();
  for (const { first, last } of networks) borders.add(first).add(last + 1n);
  const starts = [...borders].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const indexOf = new Map(starts.map((start, index) => [start, index]));
  const choices = new Int32Array(starts.length).fill(NO_CHOICE);
  // From the top down; `free` leads from a segment to the first one at or after it without choice.
  const free = Int32Array.from({ length: starts.length + 1 }, (_, i) => i);
  const nextFree = (from: number): number => {
    let at = from;
    while (free[at] !== at) at = free[at] = free[free[at]!]!;
    return at;
  };
  const topDown = networks.map((network, order) => ({ ...network, order }));
  topDown.sort((a, b) => b.rank - a.rank || b.order - a.order);
  for (const { first, last, choice } of topDown) {
    const end = indexOf.get(last + 1n)!;
    for (let at = nextFree(indexOf.get(first)!); at < end; at = nextFree(at)) {
      choices[at] = choice;
      free[at] = at + 1;
    }
  }
  const segments = starts.map((start, index) => ({ start, choice: choices[index]! }));
  return segments.filter(({ start }) => start < 1n << bits);
}

function wordsOf(value: bigint): readonly number[] {
  return [96n, 64n, 32n, 0n].map((shift) => Number((value >> shift) & 0xffff_ffffn));
}

function wordAt(raw: Uint8Array, at: number): number {
  return ((raw[at]! << 24) | (raw[at + 1]! << 16) | (raw[at + 2]! << 8) | raw[at + 3]!) >>> 0;
}

function compare6(starts: Uint32Array, at: number, raw: Uint8Array): number {
  for (let word = 0; word < 4; word++) {
    const difference = starts[at + word]! - wordAt(raw, word * 4);
    if (difference !== 0) return difference;
  }
  return 0;
}

function isMappedIpv4(raw: Uint8Array): boolean {
  for (let i = 0; i < 10; i++) if (raw[i] !== 0) return false;
  return raw[10] === 0xff && raw[11] === 0xff;
}
