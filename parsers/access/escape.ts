/**
 * Undoes what the log module does to values: ngx_http_log_escape() (`\x22`) and ngx_escape_json()
 * (`\"`, `\n`, `\u001F`).
 *
 * Both write ASCII escapes for single bytes, so the way back is from bytes to bytes; decoding as
 * UTF-8 comes last, for people. What is no escape of nginx's stays as it is: an upstream log
 * shipper may have put it there.
 *
 * Not here: where a value begins and ends (line-scanner.ts).
 */
import type { Escape } from './format-text.js';

const BACKSLASH = 0x5c;

/**
 * Unescapes bytes[start, end) of a log with escape=default into `out` from `outStart` on.
 *
 * @param out has room for end - start bytes; may be `bytes` itself with outStart ≤ start
 * @returns the number of bytes written
 */
export function unescapeDefault(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  outStart: number,
): number {
  let to = outStart;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === BACKSLASH && at + 3 < end && bytes[at + 1] === 0x78) {
      const value = hexPair(bytes, at + 2);
      if (value >= 0) {
        out[to++] = value;
        at += 3;
        continue;
      }
    }
    out[to++] = byte;
  }
  return to - outStart;
}

/** As unescapeDefault(), for escape=json. */
export function unescapeJson(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  outStart: number,
): number {
  let to = outStart;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte !== BACKSLASH || at + 1 >= end) {
      out[to++] = byte;
      continue;
    }
    const letter = bytes[at + 1]!;
    const single = SINGLES[letter]!;
    if (single > 0) {
      out[to++] = single;
      at += 1;
    } else if (letter === 0x75 && at + 5 < end && hexPair(bytes, at + 2) === 0) {
      const value = hexPair(bytes, at + 4);
      if (value < 0) {
        out[to++] = byte;
        continue;
      }
      out[to++] = value;
      at += 5;
    } else {
      out[to++] = byte;
    }
  }
  return to - outStart;
}

/** By the letter after the backslash, the byte it stands for; 0 when it is none of these. */
const SINGLES = new Uint8Array(256);
for (const [letter, byte] of Object.entries({
  '"': 0x22,
  '\\': BACKSLASH,
  '/': 0x2f,
  n: 0x0a,
  r: 0x0d,
  t: 0x09,
  b: 0x08,
  f: 0x0c,
})) {
  SINGLES[letter.charCodeAt(0)] = byte;
}

/** Two hexadecimal digits at `at`; -1 when they are not. */
function hexPair(bytes: Uint8Array, at: number): number {
  const high = HEX[bytes[at]!]!;
  const low = HEX[bytes[at + 1]!]!;
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

const HEX = Int8Array.from({ length: 256 }, (_, byte) => {
  const char = String.fromCharCode(byte);
  return /[0-9A-Fa-f]/.test(char) ? Number.parseInt(char, 16) : -1;
});

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** A value as text for people: unescaped, then UTF-8, with U+FFFD where it is not UTF-8. */
export function decodeText(bytes: Uint8Array, start: number, end: number, escape: Escape): string {
  if (escape === 'none' || !hasBackslash(bytes, start, end)) {
    return utf8.decode(bytes.subarray(start, end));
  }
  const out = new Uint8Array(end - start);
  const unescape = escape === 'json' ? unescapeJson : unescapeDefault;
  return utf8.decode(out.subarray(0, unescape(bytes, start, end, out, 0)));
}

function hasBackslash(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === BACKSLASH) return true;
  return false;
}

/**
 * Whether a value was absent: `-` under escape=default, nothing otherwise. nginx writes a value
 * that is there but empty as nothing under every escaping, so under default that counts, too.
 */
export function isAbsent(bytes: Uint8Array, start: number, end: number, escape: Escape): boolean {
  if (start === end) return true;
  return escape === 'default' && end - start === 1 && bytes[start] === 0x2d;
}
