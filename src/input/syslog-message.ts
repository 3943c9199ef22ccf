/**
 * nginx's syslog messages, as bytes: `<190>Nov 30 07:00:00 host nginx: the log line`.
 *
 * The header is what ngx_syslog_add_header writes: priority, time, the host's name unless
 * `nohostname`, the tag. Nothing is behind the line, not even a newline. Not here: prefixes that
 * other daemons put in front (../../parsers/prefix.ts).
 */
const LESS_THAN = 0x3c;
const GREATER_THAN = 0x3e;
const SPACE = 0x20;
const COLON = 0x3a;
/** `Nov 30 07:00:00 `. */
const TIME_LENGTH = 16;
const MOST_PRIORITY_DIGITS = 3;

/**
 * Where the log line begins in bytes[start, end).
 *
 * @returns -1 when the bytes do not begin as nginx's messages do
 */
export function syslogLineStart(bytes: Uint8Array, start: number, end: number): number {
  if (bytes[start] !== LESS_THAN) return -1;
  let at = start + 1;
  while (at < end && at <= start + MOST_PRIORITY_DIGITS && isDigit(bytes[at]!)) at++;
  if (bytes[at] !== GREATER_THAN) return -1;
  at += 1 + TIME_LENGTH;
  if (at >= end || bytes[at - 1] !== SPACE || bytes[at - 4] !== COLON) return -1;
  // The host's name, then the tag with its colon; or the tag alone.
  for (let word = 0; word < 2; word++) {
    while (at < end && bytes[at] !== SPACE) at++;
    if (at >= end) return -1;
    at++;
    if (bytes[at - 2] === COLON) return at;
  }
  return -1;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}
