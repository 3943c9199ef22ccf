/**
 * Addresses between text and bytes, as ngx_parse_addr() reads and ngx_sock_ntop() writes them.
 *
 * Bytes are in network order: 4 for IPv4, 16 for IPv6. No names, no ports, no zones.
 */

const COLON = 0x3a;
const DOT = 0x2e;

/**
 * Reads an address.
 *
 * @param out takes the bytes; at least 16 long
 * @returns 4 or 16, or 0 when the text is no address (255.255.255.255 is none for nginx either)
 */
export function parseAddress(
  text: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
): 0 | 4 | 16 {
  for (let i = start; i < end && i < start + 5; i++) {
    if (text[i] === COLON) return parseIpv6(text, start, end, out) ? 16 : 0;
  }
  return parseIpv4(text, start, end, out, 0) ? 4 : 0;
}

/** Like ngx_inet_addr(): four decimal numbers; leading zeros stay decimal. */
function parseIpv4(
  text: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  at: number,
): boolean {
  let part = 0;
  let octet = 0;
  for (let i = start; i < end; i++) {
    const byte = text[i]!;
    if (byte >= 0x30 && byte <= 0x39) {
      octet = octet * 10 + (byte - 0x30);
      if (octet > 255) return false;
    } else if (byte === DOT && part < 3) {
      out[at + part++] = octet;
      octet = 0;
    } else {
      return false;
    }
  }
  out[at + 3] = octet;
  const isNone = (out[at]! & out[at + 1]! & out[at + 2]! & octet) === 255;
  return part === 3 && !isNone;
}

function parseIpv6(text: Uint8Array, start: number, end: number, out: Uint8Array): boolean {
  let filled = 0;
  let gapAt = -1;
  let i = start;
  if (text[i] === COLON && text[i + 1] !== COLON) return false;
  while (i < end) {
    if (text[i] === COLON) {
      // Two colons: the gap. One was consumed behind the group before, if there was any.
      if (gapAt !== -1) return false;
      gapAt = filled;
      i += filled === 0 ? 2 : 1;
      continue;
    }
    if (filled === 16) return false;
    const groupStart = i;
    let word = 0;
    for (; i < end && hexValue(text[i]!) >= 0; i++) word = word * 16 + hexValue(text[i]!);
    if (i < end && text[i] === DOT) {
      if (filled > 12 || !parseIpv4(text, groupStart, end, out, filled)) return false;
      filled += 4;
      i = end;
      break;
    }
    if (i === groupStart || i - groupStart > 4) return false;
    out[filled++] = word >> 8;
    out[filled++] = word & 0xff;
    if (i === end) break;
    if (text[i] !== COLON || i + 1 === end) return false;
    i++;
  }
  return closeGap(out, filled, gapAt);
}

/** Spreads what was read to 16 bytes, zeros where `::` stood. */
function closeGap(out: Uint8Array, filled: number, gapAt: number): boolean {
  if (gapAt === -1) return filled === 16;
  if (filled > 14) return false;
  const tail = filled - gapAt;
  out.copyWithin(16 - tail, gapAt, filled);
  out.fill(0, gapAt, 16 - tail);
  return true;
}

function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1;
}

/** The text that nginx logs for 4 or 16 bytes, as ngx_inet_ntop() and ngx_inet6_ntop() write it. */
export function formatAddress(raw: Uint8Array): string {
  if (raw.length === 4) return raw.join('.');
  const words = Array.from({ length: 8 }, (_, i) => (raw[2 * i]! << 8) | raw[2 * i + 1]!);
  const { from, length } = longestZeroRun(words);
  const endsInIpv4 =
    from === 0 &&
    ((length === 5 && words[5] === 0xffff) ||
      length === 6 ||
      (length === 7 && raw[14] !== 0 && raw[15] !== 1));
  const wordCount = endsInIpv4 ? 6 : 8;
  const hex = (begin: number, stop: number) => words.slice(begin, stop).map((w) => w.toString(16));
  const tail = endsInIpv4 ? [raw.subarray(12).join('.')] : [];
  if (length < 2) return [...hex(0, wordCount), ...tail].join(':');
  const head = hex(0, from).join(':');
  return `${head}::${[...hex(from + length, wordCount), ...tail].join(':')}`;
}

/** The first of the longest runs of zero words; one alone is no run. */
function longestZeroRun(words: readonly number[]): { from: number; length: number } {
  let best = { from: -1, length: 1 };
  for (let i = 0; i < words.length; i++) {
    let end = i;
    while (words[end] === 0) end++;
    if (end - i > best.length) best = { from: i, length: end - i };
    if (end > i) i = end;
  }
  return best;
}
