/**
 * Variables that are parts of the request line: $request_method, $request_uri, $args, $arg_NAME,
 * $is_args, $uri, $server_protocol.
 *
 * They come from $request or $request_uri, which stay what the client sent, whereas $uri, $args
 * and $request_method change when error_page, index or try_files redirect, which is after the
 * limiter has decided. Follows ngx_http_process_request_uri() and ngx_http_arg().
 *
 * Units: byte offsets. Not here: what a rewrite before the limiter made of them (variables.ts).
 */
import { findArg, RequestLine } from '../../parsers/access/request-line.js';
import { normalizeUri } from '../../parsers/conf/location.js';
import { ByteRange, EMPTY, type Line } from './byte-range.js';

const SPACE = 0x20;
const HASH = 0x23;
const PERCENT = 0x25;
const DOT = 0x2e;
const SLASH = 0x2f;
const COLON = 0x3a;
const QUESTION_MARK = 0x3f;

const SLASH_BYTES = Uint8Array.of(SLASH);
const QUESTION_MARK_BYTES = Uint8Array.of(QUESTION_MARK);

/** `authority` is the host and port of `http://host:port/path`, empty in the usual form. */
export type RequestPart = 'authority' | 'uri' | 'protocol';

/** $request_method of $request; not found in what does not begin like a request line. */
export class MethodOfRequest extends ByteRange {
  private readonly request: ByteRange;

  constructor(request: ByteRange) {
    super();
    this.request = request;
  }

  locate(line: Line): boolean {
    const { request } = this;
    if (!request.locate(line)) return false;
    const { source, start, end } = request;
    let at = start;
    while (at < end && isMethodByte(source[at]!)) at++;
    if (at === start || at === end || source[at] !== SPACE) return false;
    return this.set(source, start, at);
  }
}

function isMethodByte(byte: number): boolean {
  return (byte >= 0x41 && byte <= 0x5a) || byte === 0x5f || byte === 0x2d;
}

/** Another part of $request; not found in what is no request line. */
export class RequestLinePart extends ByteRange {
  private readonly request: ByteRange;
  private readonly part: RequestPart;
  private readonly split = new RequestLine();

  constructor(request: ByteRange, part: RequestPart) {
    super();
    this.request = request;
    this.part = part;
  }

  locate(line: Line): boolean {
    const { request, split } = this;
    if (!request.locate(line)) return false;
    if (!split.split(request.source, request.start, request.end)) return false;
    if (this.part === 'uri') return this.locateUri();
    if (this.part === 'authority') return this.locateAuthority();
    if (split.protocolStart === -1) return this.set(EMPTY, 0, 0);
    return this.set(request.source, split.protocolStart, split.protocolEnd);
  }

  private locateAuthority(): boolean {
    const { request, split } = this;
    let at = split.targetStart;
    while (at < split.pathStart && request.source[at] !== COLON) at++;
    return this.set(request.source, Math.min(at + 3, split.pathStart), split.pathStart);
  }

  /** As $request_uri has it: without `http://host`, with arguments and fragment. */
  private locateUri(): boolean {
    const { request, split } = this;
    if (split.pathStart === split.targetEnd) return this.set(SLASH_BYTES, 0, 1);
    return this.set(request.source, split.pathStart, split.targetEnd);
  }
}

/** $args of a $request_uri: from the first `?` to a fragment. */
export class ArgsOfUri extends ByteRange {
  private readonly uri: ByteRange;

  constructor(uri: ByteRange) {
    super();
    this.uri = uri;
  }

  locate(line: Line): boolean {
    const { uri } = this;
    if (!uri.locate(line)) return false;
    const { source, end } = uri;
    const at = endOfPath(source, uri.start, end);
    if (at === end || source[at] === HASH) return this.set(EMPTY, 0, 0);
    let to = at + 1;
    while (to < end && source[to] !== HASH) to++;
    return this.set(source, at + 1, to);
  }
}

/** $arg_NAME of $args. */
export class Argument extends ByteRange {
  private readonly args: ByteRange;
  private readonly name: Uint8Array;
  private readonly found = { start: 0, end: 0 };

  /** @param name in lower case, as nginx keeps names of variables */
  constructor(args: ByteRange, name: string) {
    super();
    this.args = args;
    this.name = Buffer.from(name, 'latin1');
  }

  locate(line: Line): boolean {
    const { args, name, found } = this;
    if (!args.locate(line)) return false;
    if (name.length === 0 || !findArg(args.source, args.start, args.end, name, found)) {
      return this.set(EMPTY, 0, 0);
    }
    return this.set(args.source, found.start, found.end);
  }
}

/** $is_args: a question mark when there are arguments. */
export class IsArgs extends ByteRange {
  private readonly args: ByteRange;

  constructor(args: ByteRange) {
    super();
    this.args = args;
  }

  locate(line: Line): boolean {
    if (!this.args.locate(line)) return false;
    const hasArgs = this.args.end > this.args.start;
    return this.set(QUESTION_MARK_BYTES, 0, hasArgs ? 1 : 0);
  }
}

/** $uri of a $request_uri: decoded, dot segments resolved, slashes merged. */
export class NormalizedUri extends ByteRange {
  private readonly uri: ByteRange;
  private readonly mergeSlashes: boolean;

  constructor(uri: ByteRange, mergeSlashes: boolean) {
    super();
    this.uri = uri;
    this.mergeSlashes = mergeSlashes;
  }

  /** Not found where nginx answers 400 and so never reaches the limiter. */
  locate(line: Line): boolean {
    const { uri } = this;
    if (!uri.locate(line)) return false;
    const { source, start } = uri;
    const end = endOfPath(source, start, uri.end);
    // After http://host?args, which nginx keeps as "?args" in $request_uri.
    if (start === end) return this.set(SLASH_BYTES, 0, 1);
    if (isNormal(source, start, end)) return this.set(source, start, end);
    const raw = Buffer.from(source.buffer, source.byteOffset + start, end - start);
    const text = normalizeUri(raw.toString('latin1'), this.mergeSlashes);
    if (text === undefined) return false;
    const bytes = Buffer.from(text, 'latin1');
    return this.set(bytes, 0, bytes.length);
  }
}

function endOfPath(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at] !== QUESTION_MARK && bytes[at] !== HASH) at++;
  return at;
}

/** Whether nothing in a path needs decoding, resolving or merging. */
function isNormal(bytes: Uint8Array, start: number, end: number): boolean {
  if (bytes[start] !== SLASH) return false;
  for (let i = start + 1; i < end; i++) {
    const byte = bytes[i]!;
    if (byte === PERCENT) return false;
    if (bytes[i - 1] === SLASH && (byte === SLASH || byte === DOT)) return false;
  }
  return true;
}
