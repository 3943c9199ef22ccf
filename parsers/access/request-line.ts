/**
 * Splits a request line, the value of $request, and finds arguments in its query string.
 *
 * Follows ngx_http_parse_request_line() where that matters to a reader of logs: the path ends at
 * the first `?` or `#`, arguments end at `#`, and `http://authority` before the path is not part
 * of it. Works on the bytes of the line with or without the log's escapes, since neither spaces
 * nor `?`, `#`, `&`, `=` are ever escaped there.
 *
 * Units: byte offsets. Nothing is allocated.
 *
 * Not here: decoding %XX and merging slashes, which decide the location, not the log field.
 */

const SPACE = 0x20;

/** One request line's parts; reuse one object for all lines. A start of -1 means absent. */
export class RequestLine {
  methodStart = -1;
  methodEnd = -1;
  /** The target as sent: path, absolute form, `*`. */
  targetStart = -1;
  targetEnd = -1;
  /** Without query and authority; empty for `http://host`, where nginx takes `/`. */
  pathStart = -1;
  pathEnd = -1;
  /** Behind the `?`; may be empty. */
  argsStart = -1;
  argsEnd = -1;
  /** `HTTP/1.1`; absent in HTTP/0.9. */
  protocolStart = -1;
  protocolEnd = -1;

  /**
   * Splits bytes[start, end).
   *
   * @returns false, with every part absent, when the bytes do not begin with a method and a space:
   * what nginx answers with 400 and a scanner sends
   */
  split(bytes: Uint8Array, start: number, end: number): boolean {
    this.#clear();
    let at = start;
    while (at < end && isMethodByte(bytes[at]!)) at++;
    if (at === start || at >= end || bytes[at] !== SPACE) return false;
    const methodEnd = at;
    while (at < end && bytes[at] === SPACE) at++;
    let to = end;
    while (to > at && bytes[to - 1] === SPACE) to--;
    if (at === to) return false;
    this.methodStart = start;
    this.methodEnd = methodEnd;
    this.targetStart = at;
    this.targetEnd = this.#splitProtocol(bytes, at, to);
    this.#splitTarget(bytes);
    return true;
  }

  #clear(): void {
    this.methodStart = this.methodEnd = this.targetStart = this.targetEnd = -1;
    this.pathStart = this.pathEnd = this.argsStart = this.argsEnd = -1;
    this.protocolStart = this.protocolEnd = -1;
  }

  /** Takes ` HTTP/…` off the end; gives the end of the target. */
  #splitProtocol(bytes: Uint8Array, from: number, to: number): number {
    let at = to;
    while (at > from && bytes[at - 1] !== SPACE) at--;
    if (at === from || !isHttpSlash(bytes, at, to)) return to;
    this.protocolStart = at;
    this.protocolEnd = to;
    while (at > from && bytes[at - 1] === SPACE) at--;
    return at;
  }

  #splitTarget(bytes: Uint8Array): void {
    const end = this.targetEnd;
    let at = afterAuthority(bytes, this.targetStart, end);
    this.pathStart = at;
    while (at < end && bytes[at] !== 0x3f && bytes[at] !== 0x23) at++;
    this.pathEnd = at;
    if (at >= end || bytes[at] !== 0x3f) return;
    this.argsStart = ++at;
    while (at < end && bytes[at] !== 0x23) at++;
    this.argsEnd = at;
  }
}

function isMethodByte(byte: number): boolean {
  return (byte >= 0x41 && byte <= 0x5a) || byte === 0x5f || byte === 0x2d;
}

function isHttpSlash(bytes: Uint8Array, at: number, to: number): boolean {
  return (
    to - at > 5 &&
    bytes[at] === 0x48 &&
    bytes[at + 1] === 0x54 &&
    bytes[at + 2] === 0x54 &&
    bytes[at + 3] === 0x50 &&
    bytes[at + 4] === 0x2f
  );
}

/** Offset of the path of `scheme://authority/path`; `at` itself when the target has no authority. */
function afterAuthority(bytes: Uint8Array, at: number, end: number): number {
  if (bytes[at] === 0x2f) return at;
  let to = at;
  while (to < end && isLetter(bytes[to]!)) to++;
  if (to === at || to + 2 >= end) return at;
  if (bytes[to] !== 0x3a || bytes[to + 1] !== 0x2f || bytes[to + 2] !== 0x2f) return at;
  to += 3;
  while (to < end && bytes[to] !== 0x2f && bytes[to] !== 0x3f && bytes[to] !== 0x23) to++;
  return to;
}

function isLetter(byte: number): boolean {
  return (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a;
}

/** Where findArg() found a value: bytes[start, end). */
export interface ArgRange {
  start: number;
  end: number;
}

/**
 * Finds $arg_NAME in a query string, as ngx_http_arg() does: names compare without case, the first
 * one counts, and the value stays encoded.
 *
 * @param name the name, in lower case
 * @param found set when the argument is there
 * @returns whether it is there; an empty value is
 */
export function findArg(
  bytes: Uint8Array,
  argsStart: number,
  argsEnd: number,
  name: Uint8Array,
  found: ArgRange,
): boolean {
  if (argsStart < 0) return false;
  let at = argsStart;
  while (at + name.length < argsEnd) {
    if (bytes[at + name.length] === 0x3d && hasName(bytes, at, name)) {
      found.start = at + name.length + 1;
      found.end = afterArg(bytes, found.start, argsEnd);
      return true;
    }
    at = afterArg(bytes, at, argsEnd) + 1;
  }
  return false;
}

function afterArg(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at] !== 0x26) at++;
  return at;
}

function hasName(bytes: Uint8Array, at: number, name: Uint8Array): boolean {
  for (let i = 0; i < name.length; i++) {
    const byte = bytes[at + i]!;
    const lower = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
    if (lower !== name[i]) return false;
  }
  return true;
}
