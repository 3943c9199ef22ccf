/**
 * Variables that are parts of request headers: $cookie_NAME of $http_cookie, $host of $http_host.
 *
 * Follows ngx_http_parse_multi_header_lines() and ngx_http_validate_host(). Units: byte offsets.
 */
import { ByteRange, EMPTY, type Line } from './byte-range.js';

const SPACE = 0x20;
const COMMA = 0x2c;
const DOT = 0x2e;
const COLON = 0x3a;
const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const LEFT_BRACKET = 0x5b;
const RIGHT_BRACKET = 0x5d;

/** $cookie_NAME: the first cookie of that name, in any case. */
export class Cookie extends ByteRange {
  private readonly header: ByteRange;
  private readonly name: Uint8Array;

  /** @param name in lower case */
  constructor(header: ByteRange, name: string) {
    super();
    this.header = header;
    this.name = Buffer.from(name, 'latin1');
  }

  locate(line: Line): boolean {
    const { header } = this;
    if (!header.locate(line)) return false;
    const { source, end } = header;
    let at = header.start;
    while (at < end) {
      const valueAt = this.afterName(at);
      if (valueAt !== -1) {
        let to = valueAt;
        while (to < end && source[to] !== SEMICOLON) to++;
        return this.set(source, valueAt, to);
      }
      while (at < end && source[at] !== SEMICOLON && source[at] !== COMMA) at++;
      at = skipSpaces(source, at + 1, end);
    }
    return this.set(EMPTY, 0, 0);
  }

  /** Where the value begins when the name stands at `at`; else -1. */
  private afterName(at: number): number {
    const { source, end } = this.header;
    const { name } = this;
    if (end - at < name.length) return -1;
    for (let i = 0; i < name.length; i++) {
      if (lowerCase(source[at + i]!) !== name[i]) return -1;
    }
    const equalsAt = skipSpaces(source, at + name.length, end);
    if (equalsAt >= end || source[equalsAt] !== EQUALS) return -1;
    return skipSpaces(source, equalsAt + 1, end);
  }
}

/**
 * $host: what names the host, in lower case, without port and last dot: `http://host` in the
 * request line, else the Host header, else $server_name.
 */
export class HostName extends ByteRange {
  private readonly authority: ByteRange | undefined;
  private readonly header: ByteRange;
  private readonly serverName: ByteRange | undefined;
  private readonly lowered = new Uint8Array(256);

  constructor(
    authority: ByteRange | undefined,
    header: ByteRange,
    serverName: ByteRange | undefined,
  ) {
    super();
    this.authority = authority;
    this.header = header;
    this.serverName = serverName;
  }

  locate(line: Line): boolean {
    const { authority, header, serverName } = this;
    if (authority?.locate(line) === true && authority.start < authority.end) {
      return this.setHost(authority);
    }
    if (!header.locate(line)) return false;
    if (header.start < header.end) return this.setHost(header);
    if (serverName === undefined || !serverName.locate(line)) return false;
    return this.set(serverName.source, serverName.start, serverName.end);
  }

  private setHost({ source, start, end }: ByteRange): boolean {
    const { lowered } = this;
    const length = hostLength(source, start, end);
    if (length > lowered.length) return false;
    for (let i = 0; i < length; i++) lowered[i] = lowerCase(source[start + i]!);
    return this.set(lowered, 0, length);
  }
}

function hostLength(source: Uint8Array, start: number, end: number): number {
  let at = start;
  if (source[at] === LEFT_BRACKET) while (at < end && source[at] !== RIGHT_BRACKET) at++;
  while (at < end && source[at] !== COLON) at++;
  if (at > start && source[at - 1] === DOT) at--;
  return at - start;
}

function skipSpaces(source: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && source[at] === SPACE) at++;
  return at;
}

function lowerCase(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
}
