/**
 * Numbers in the bytes of a log line.
 *
 * Units: in the names. `-` and nothing, both nginx's ways to say that a value is absent, give -1;
 * what is no number gives -1 as well, for the scanner has checked the shape before.
 */

/** A non-negative decimal integer filling bytes[start, end), or -1. */
export function parseInteger(bytes: Uint8Array, start: number, end: number): number {
  if (start >= end) return -1;
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

/**
 * `1796022103.711` or `0.020` in whole milliseconds; further digits are dropped, missing ones are
 * zeros. -1 when bytes[start, end) is absent or of another shape.
 */
export function parseThousandths(bytes: Uint8Array, start: number, end: number): number {
  let value = 0;
  let at = start;
  for (; at < end; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
  }
  if (at === start) return -1;
  if (at === end) return value * 1000;
  if (bytes[at] !== 0x2e || at + 1 === end) return -1;
  at++;
  for (let weight = 0; weight < 3; weight++) {
    const digit = at < end ? bytes[at]! - 0x30 : 0;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
    at++;
  }
  for (; at < end; at++) if (bytes[at]! < 0x30 || bytes[at]! > 0x39) return -1;
  return value;
}

const COMMA = 0x2c;
const COLON = 0x3a;
const SPACE = 0x20;

/**
 * The last status of $upstream_status (`502, 200 : 200`): that of the server which answered.
 * -1 when no upstream was asked, or the last one gave none (`502, -`).
 */
export function lastStatus(bytes: Uint8Array, start: number, end: number): number {
  let at = end;
  while (at > start && bytes[at - 1] !== SPACE) at--;
  return parseInteger(bytes, at, end);
}

/**
 * The sum of $upstream_response_time (`0.003, 0.021 : 0.002`) in milliseconds: the time spent
 * with upstream servers, one after the other. `-` elements count nothing; -1 when all are absent.
 */
export function sumSecondsMs(bytes: Uint8Array, start: number, end: number): number {
  let sumMs = -1;
  let from = start;
  while (from < end) {
    let to = from;
    while (to < end && bytes[to] !== COMMA && bytes[to] !== COLON && bytes[to] !== SPACE) to++;
    const valueMs = parseThousandths(bytes, from, to);
    if (valueMs >= 0) sumMs = (sumMs < 0 ? 0 : sumMs) + valueMs;
    from = to + 1;
  }
  return sumMs;
}
