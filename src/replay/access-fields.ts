/**
 * Where the fields that a replay needs stand in one log_format, and their values as numbers.
 *
 * Reads straight from the line's bytes. Absent values are -1. Times are epoch milliseconds.
 */
import { unescapeDefault, unescapeJson } from '../../parsers/access/escape.js';
import type { LineScanner } from '../../parsers/access/line-scanner.js';
import { lastStatus, parseInteger, parseThousandths, sumSecondsMs } from '../../parsers/bytes.js';
import {
  offsetOfTimeLocalMinutes,
  parseIso8601Ms,
  parseMsec,
  parseTimeLocalMs,
} from '../../parsers/time.js';
import { SLACK } from './line-facts.js';
import { STATUS } from './status.js';

const DASH = 0x2d;
/** What a socket's buffer takes at once, in round numbers. */
const LONG_ANSWER_BYTES = 64_000;
/** Less than this is read together with the header (client_header_buffer_size). */
const SHORT_BODY_BYTES = 1024;

export class AccessFields {
  readonly scanner: LineScanner;
  readonly #msec: number;
  readonly #timeLocal: number;
  readonly #iso8601: number;
  readonly #requestTime: number;
  readonly #status: number;
  readonly #reqStatus: number;
  readonly #connStatus: number;
  readonly #upstreamStatus: number;
  readonly #upstreamTime: number;
  readonly #connection: number;
  readonly #connectionRequests: number;
  readonly #pid: number;
  readonly #requestId: number;
  readonly #client: number;
  readonly #request: number;
  readonly #requestUri: number;
  readonly #uri: number;
  readonly #args: number;
  readonly #method: number;
  readonly #requestLength: number;
  readonly #contentLength: number;
  readonly #sentBytes: number;

  constructor(scanner: LineScanner) {
    this.scanner = scanner;
    const at = (...names: readonly string[]): number => {
      const found = names.find((name) => scanner.indexOf(name) >= 0);
      return found === undefined ? -1 : scanner.indexOf(found);
    };
    this.#msec = at('msec');
    this.#timeLocal = at('time_local');
    this.#iso8601 = at('time_iso8601');
    this.#requestTime = at('request_time');
    this.#status = at('status');
    this.#reqStatus = at('limit_req_status');
    this.#connStatus = at('limit_conn_status');
    this.#upstreamStatus = at('upstream_status');
    this.#upstreamTime = at('upstream_response_time');
    this.#connection = at('connection');
    this.#connectionRequests = at('connection_requests');
    this.#pid = at('pid');
    this.#requestId = at('request_id', 'req_id');
    this.#client = at('remote_addr');
    this.#request = at('request');
    this.#requestUri = at('request_uri');
    this.#uri = at('uri', 'document_uri');
    this.#args = at('args', 'query_string');
    this.#method = at('request_method');
    this.#requestLength = at('request_length');
    this.#contentLength = at('content_length', 'http_content_length');
    this.#sentBytes = at('body_bytes_sent', 'bytes_sent');
  }

  get hasTime(): boolean {
    return this.#msec >= 0 || this.#timeLocal >= 0 || this.#iso8601 >= 0;
  }

  /** $msec is logged: times are good to the millisecond. */
  get hasMilliseconds(): boolean {
    return this.#msec >= 0;
  }

  get hasRequestTime(): boolean {
    return this.#requestTime >= 0;
  }

  get hasLimitReqStatus(): boolean {
    return this.#reqStatus >= 0;
  }

  /** The request is logged as the client sent it. */
  get hasRequestLine(): boolean {
    return this.#request >= 0 || this.#requestUri >= 0;
  }

  get hasConnection(): boolean {
    return this.#connection >= 0;
  }

  get hasUpstreamStatus(): boolean {
    return this.#upstreamStatus >= 0;
  }

  /** When the request ended; the start of its second where that is all there is. NaN if unreadable. */
  endMs(bytes: Uint8Array): number {
    const { starts, ends } = this.scanner;
    if (this.#msec >= 0) return parseMsec(bytes, starts[this.#msec]!, ends[this.#msec]!);
    if (this.#iso8601 >= 0) {
      return parseIso8601Ms(bytes, starts[this.#iso8601]!, ends[this.#iso8601]!);
    }
    return parseTimeLocalMs(bytes, starts[this.#timeLocal]!, ends[this.#timeLocal]!);
  }

  /** The zone that the log writes its local times in, in minutes east of UTC; NaN when it shows none. */
  offsetMinutes(bytes: Uint8Array): number {
    const { starts, ends } = this.scanner;
    if (this.#timeLocal >= 0) {
      return offsetOfTimeLocalMinutes(bytes, starts[this.#timeLocal]!, ends[this.#timeLocal]!);
    }
    if (this.#iso8601 < 0) return NaN;
    const end = ends[this.#iso8601]!;
    const sign = bytes[end - 6] === DASH ? -1 : 1;
    const hours = parseInteger(bytes, end - 5, end - 3);
    return sign * (hours * 60 + parseInteger(bytes, end - 2, end));
  }

  requestMs(bytes: Uint8Array): number {
    if (this.#requestTime < 0) return -1;
    const { starts, ends } = this.scanner;
    return parseThousandths(bytes, starts[this.#requestTime]!, ends[this.#requestTime]!);
  }

  httpStatus(bytes: Uint8Array): number {
    return this.#integer(bytes, this.#status);
  }

  /** STATUS code of $limit_req_status. */
  limitReqStatus(): number {
    return this.#limitStatus(this.#reqStatus);
  }

  limitConnStatus(): number {
    return this.#limitStatus(this.#connStatus);
  }

  /** The last upstream's status, 0 when no upstream was asked or answered, -1 when not logged. */
  upstreamStatus(bytes: Uint8Array): number {
    if (this.#upstreamStatus < 0) return -1;
    const { starts, ends } = this.scanner;
    const status = lastStatus(bytes, starts[this.#upstreamStatus]!, ends[this.#upstreamStatus]!);
    return status < 0 ? 0 : status;
  }

  /** Time spent with upstreams; -1 when none was asked, or it is not logged. */
  upstreamMs(bytes: Uint8Array): number {
    if (this.#upstreamTime < 0) return -1;
    const { starts, ends } = this.scanner;
    return sumSecondsMs(bytes, starts[this.#upstreamTime]!, ends[this.#upstreamTime]!);
  }

  /**
   * What took a request so long that was not its upstream: SLACK.after for one with a body, which
   * is read when the limits have been asked, and for an answer too long for a socket's buffer;
   * SLACK.header where nginx itself answered with less.
   */
  slack(bytes: Uint8Array, wasProxied: boolean): number {
    if (this.#mayHaveBody(bytes)) return SLACK.after;
    const sentBytes = this.#integer(bytes, this.#sentBytes);
    if (sentBytes > LONG_ANSWER_BYTES) return SLACK.after;
    return sentBytes >= 0 && !wasProxied ? SLACK.header : SLACK.unknown;
  }

  /** One that came with the header took no time of its own. */
  #mayHaveBody(bytes: Uint8Array): boolean {
    if (!/^(?:POST|PUT|PATCH)$/.test(this.method(bytes))) return false;
    if (this.#contentLength >= 0) {
      return this.#integer(bytes, this.#contentLength) > SHORT_BODY_BYTES;
    }
    return this.#requestLength < 0 || this.#integer(bytes, this.#requestLength) > SHORT_BODY_BYTES;
  }

  connection(bytes: Uint8Array): number {
    return this.#integer(bytes, this.#connection);
  }

  connectionRequests(bytes: Uint8Array): number {
    return this.#integer(bytes, this.#connectionRequests);
  }

  pid(bytes: Uint8Array): number {
    return this.#integer(bytes, this.#pid);
  }

  /** null when it is not logged. */
  requestId(bytes: Uint8Array): string | null {
    return this.#requestId < 0 ? null : this.#text(bytes, this.#requestId);
  }

  client(bytes: Uint8Array): string {
    return this.#client < 0 ? '' : this.#text(bytes, this.#client);
  }

  /** The request line as sent, latin1; empty when the format has no $request. */
  requestLine(bytes: Uint8Array): string {
    return this.#request < 0 ? '' : this.#text(bytes, this.#request);
  }

  method(bytes: Uint8Array): string {
    if (this.#method >= 0) return this.#text(bytes, this.#method);
    const line = this.requestLine(bytes);
    const space = line.indexOf(' ');
    return space > 0 ? line.slice(0, space) : '';
  }

  /** Path without arguments, for people to read; arguments can hold secrets. */
  path(bytes: Uint8Array): string {
    if (this.#request >= 0) {
      const target = this.requestLine(bytes).split(' ')[1] ?? '';
      return target.split('?', 1)[0]!;
    }
    if (this.#requestUri >= 0) return this.#text(bytes, this.#requestUri).split('?', 1)[0]!;
    return this.#uri < 0 ? '' : this.#text(bytes, this.#uri);
  }

  /**
   * A test for a request line of the error log: is it this request's? true and false are sure,
   * undefined means that the format does not carry enough to tell.
   */
  requestTest(bytes: Uint8Array): (request: string) => boolean | undefined {
    if (this.#request >= 0) {
      const own = this.requestLine(bytes);
      return (request) => request === own;
    }
    const method = this.#method < 0 ? '' : `${this.#text(bytes, this.#method)} `;
    if (this.#requestUri >= 0) {
      const target = `${method}${this.#text(bytes, this.#requestUri)}`;
      if (method === '') return (request) => request.includes(` ${target} `) || undefined;
      return (request) => request === target || request.startsWith(`${target} `);
    }
    const args = this.#args < 0 ? '' : this.#text(bytes, this.#args);
    if (this.#uri < 0) return args === '' ? () => undefined : (request) => hasArgs(request, args);
    const target = `${method}${this.#text(bytes, this.#uri)}${args === '' ? '' : `?${args}`}`;
    // $uri is normalised, and that of an error page where there is one: sameness is sure, while of
    // a difference only that of the arguments is.
    return (request) =>
      request.includes(target) || (args === '' ? undefined : hasArgs(request, args));
  }

  #integer(bytes: Uint8Array, index: number): number {
    if (index < 0) return -1;
    return parseInteger(bytes, this.scanner.starts[index]!, this.scanner.ends[index]!);
  }

  #limitStatus(index: number): number {
    if (index < 0) return STATUS.unknown;
    const start = this.scanner.starts[index]!;
    const length = this.scanner.ends[index]! - start;
    if (length <= 1) return STATUS.none;
    switch (length) {
      case 6:
        return STATUS.passed;
      case 7:
        return STATUS.delayed;
      case 8:
        return STATUS.rejected;
      case 15:
        return STATUS.delayedDryRun;
      case 16:
        return STATUS.rejectedDryRun;
      default:
        return STATUS.unknown;
    }
  }

  /** latin1, one character for each byte that the client sent; empty for an absent value. */
  #text(bytes: Uint8Array, index: number): string {
    const start = this.scanner.starts[index]!;
    const end = this.scanner.ends[index]!;
    const { escape } = this.scanner.format;
    if (escape === 'default' && end - start === 1 && bytes[start] === DASH) return '';
    return latin1Text(bytes, start, end, escape);
  }
}

/** The bytes that stood in the variable before nginx escaped them, one character each. */
export function latin1Text(
  bytes: Uint8Array,
  start: number,
  end: number,
  escape: 'default' | 'json' | 'none',
): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1');
  if (escape === 'none' || !text.includes('\\')) return text;
  const out = new Uint8Array(end - start);
  const unescape = escape === 'json' ? unescapeJson : unescapeDefault;
  return Buffer.from(out.buffer, 0, unescape(bytes, start, end, out, 0)).toString('latin1');
}

/** false where the request line has other arguments; the rest of it may differ or not. */
function hasArgs(request: string, args: string): undefined | false {
  return request.includes(`?${args}`) ? undefined : false;
}
