/**
 * What the value of each log variable can look like in a line, and how far it goes.
 *
 * The shapes follow the functions that print them: ngx_http_log_status() (three digits),
 * ngx_http_log_msec() (seconds, a dot, three digits), ngx_http_log_time(), and
 * ngx_http_upstream_status_variable() with its siblings, which put `, ` between the servers tried
 * and ` : ` between the groups of an internal redirect. A variable not named here is text: whatever
 * the log module's escaping leaves standing.
 *
 * Units: byte offsets. A measuring function gives the offset after the value, or, when the bytes
 * do not fit, the offset of the first such byte as its bitwise complement.
 *
 * Not here: where the value of a text variable ends; that depends on the format (line-scanner.ts).
 */
import type { Escape } from './format-text.js';

export type ValueKind =
  | 'text'
  | 'word'
  | 'integer'
  | 'decimal'
  | 'milliseconds'
  | 'status'
  | 'time_local'
  | 'time_iso8601'
  | 'integer_list'
  | 'decimal_list'
  | 'word_list';

const KINDS: ReadonlyMap<string, ValueKind> = new Map<string, ValueKind>([
  ['status', 'status'],
  ['time_local', 'time_local'],
  ['time_iso8601', 'time_iso8601'],
  ['msec', 'milliseconds'],
  ['request_time', 'milliseconds'],
  ...list('integer', 'body_bytes_sent bytes_sent connection connection_requests pid'),
  ...list(
    'integer',
    'request_length remote_port server_port realip_remote_port proxy_protocol_port',
  ),
  ...list('decimal', 'gzip_ratio connection_time'),
  ...list('integer_list', 'upstream_status upstream_response_length upstream_bytes_received'),
  ...list('integer_list', 'upstream_bytes_sent'),
  ...list('decimal_list', 'upstream_response_time upstream_connect_time upstream_header_time'),
  ...list('decimal_list', 'upstream_queue_time'),
  ...list('word_list', 'upstream_addr'),
  // Words: set by nginx or its configuration, never by a client, and without spaces.
  ...list('word', 'remote_addr realip_remote_addr proxy_protocol_addr server_addr server_name'),
  ...list('word', 'request_method request_id limit_req_status limit_conn_status scheme pipe'),
  ...list('word', 'hostname upstream_cache_status server_protocol http2 http3 ssl_protocol'),
  ...list('word', 'ssl_cipher ssl_session_reused https request_completion'),
  ...list('word', 'proxy_upstream_name proxy_alternative_upstream_name'),
]);

function list(kind: ValueKind, names: string): [string, ValueKind][] {
  return names.split(' ').map((name) => [name, kind]);
}

export function kindOf(variable: string): ValueKind {
  return KINDS.get(variable) ?? 'text';
}

/** How a value is named in a message: `$msec like 1796022103.711`. */
export function describeVariable(variable: string): string {
  const example = EXAMPLES[kindOf(variable)];
  return example === undefined ? `$${variable}` : `$${variable} like ${example}`;
}

const EXAMPLES: Partial<Record<ValueKind, string>> = {
  integer: '612',
  decimal: '3.12',
  milliseconds: '1796022103.711',
  status: '200',
  time_local: '10/Oct/2026:13:55:36 +0000',
  time_iso8601: '2026-10-10T13:55:36+00:00',
  integer_list: '502, 200',
  decimal_list: '0.003, 0.021',
  word_list: '192.0.2.1:80, 192.0.2.2:80',
};

const DIGITS = '0123456789';
const HEX_QUOTE = 0x22;
const BYTES = Array.from({ length: 256 }, (_, byte) => byte);

/**
 * Bytes that nginx can write inside a value of this kind, 1 or 0 for each byte.
 *
 * Under escape=json a `"` counts as absent: inside a value it stands only behind a backslash.
 */
export function alphabetOf(kind: ValueKind, escape: Escape): Uint8Array {
  const table = new Uint8Array(256);
  for (const byte of BYTES) table[byte] = canStandIn(kind, escape, byte) ? 1 : 0;
  return table;
}

function canStandIn(kind: ValueKind, escape: Escape, byte: number): boolean {
  if (byte === 0x0a) return false;
  const char = String.fromCharCode(byte);
  switch (kind) {
    case 'text':
      if (escape === 'none') return true;
      if (byte < 0x20 || byte === HEX_QUOTE) return false;
      return escape === 'json' || byte < 0x7f;
    case 'word':
      return byte > 0x20 && byte < 0x7f && byte !== HEX_QUOTE;
    case 'word_list':
      return byte >= 0x20 && byte < 0x7f && byte !== HEX_QUOTE;
    case 'status':
      return DIGITS.includes(char);
    case 'integer':
      return `-${DIGITS}`.includes(char);
    case 'milliseconds':
    case 'decimal':
      return `-.${DIGITS}`.includes(char);
    case 'integer_list':
      return `-, :${DIGITS}`.includes(char);
    case 'decimal_list':
      return `-., :${DIGITS}`.includes(char);
    case 'time_local':
    case 'time_iso8601':
      return /[0-9A-Za-z/: +-]/.test(char);
  }
}

/** Every value of the kind has this many bytes; 0 when they differ. */
export function fixedLengthOf(kind: ValueKind): number {
  if (kind === 'status') return 3;
  if (kind === 'time_local') return TIME_LOCAL.length;
  return kind === 'time_iso8601' ? TIME_ISO8601.length : 0;
}

/** One bit for each class of bytes in a date: a byte fits where it shares a bit with the form. */
const DATE_CLASSES = ['[0-9]', '[A-Za-z]', '[+-]', '-', '/', ':', 'T', ' '].map(
  (source) => new RegExp(source),
);
const CLASS_OF = Uint8Array.from({ length: 256 }, (_, byte) =>
  DATE_CLASSES.reduce(
    (bits, form, i) => (form.test(String.fromCharCode(byte)) ? bits | (1 << i) : bits),
    0,
  ),
);
const TIME_LOCAL = dateForm('0 0 / a a a / 0 0 0 0 : 0 0 : 0 0 : 0 0 _ + 0 0 0 0');
const TIME_ISO8601 = dateForm('0 0 0 0 - 0 0 - 0 0 T 0 0 : 0 0 : 0 0 + 0 0 : 0 0');

/** `0` stands for a digit, `a` for a letter, `+` for a sign, `_` for a space. */
function dateForm(text: string): Uint8Array {
  const order = ['0', 'a', '+', '-', '/', ':', 'T', '_'];
  return Uint8Array.from(text.split(' '), (char) => 1 << order.indexOf(char));
}

export function measureTimeLocal(bytes: Uint8Array, from: number, end: number): number {
  return measureDate(TIME_LOCAL, bytes, from, end);
}

export function measureTimeIso8601(bytes: Uint8Array, from: number, end: number): number {
  return measureDate(TIME_ISO8601, bytes, from, end);
}

function measureDate(form: Uint8Array, bytes: Uint8Array, from: number, end: number): number {
  const to = from + form.length;
  const last = to < end ? to : end;
  let at = from;
  while (at < last && (CLASS_OF[bytes[at]!]! & form[at - from]!) !== 0) at++;
  return at === to ? to : ~at;
}

/** Three digits: nginx pads even the 009 of a request that never had headers. */
export function measureStatus(bytes: Uint8Array, from: number, end: number): number {
  const to = afterDigits(bytes, from, Math.min(end, from + 3));
  return to === from + 3 ? to : ~to;
}

/** `1796022103.711`: the fraction is always there, and always three digits. */
export function measureMilliseconds(bytes: Uint8Array, from: number, end: number): number {
  const dot = afterDigits(bytes, from, end);
  if (dot === from || dot >= end || bytes[dot] !== 0x2e) return ~dot;
  const to = afterDigits(bytes, dot + 1, Math.min(end, dot + 4));
  return to === dot + 4 ? to : ~to;
}

/** Digits, or a single `-` for an absent value, or (`mayBeEmpty`) nothing. */
export function measureInteger(
  bytes: Uint8Array,
  from: number,
  end: number,
  mayBeEmpty: boolean,
): number {
  if (from < end && bytes[from] === 0x2d) return from + 1;
  const to = afterDigits(bytes, from, end);
  return to > from || mayBeEmpty ? to : ~from;
}

/** As measureInteger(), with a fraction where one follows. */
export function measureDecimal(
  bytes: Uint8Array,
  from: number,
  end: number,
  mayBeEmpty: boolean,
): number {
  const dot = measureInteger(bytes, from, end, mayBeEmpty);
  if (dot <= from || dot >= end || bytes[dot] !== 0x2e || bytes[dot - 1] === 0x2d) return dot;
  const to = afterDigits(bytes, dot + 1, end);
  return to > dot + 1 ? to : dot;
}

function afterDigits(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at]! >= 0x30 && bytes[at]! <= 0x39) at++;
  return at;
}

function afterWord(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at]! > 0x20 && bytes[at] !== 0x2c && bytes[at] !== HEX_QUOTE) at++;
  return at;
}

const COMMA = 1;
const COLON = 2;

/** Which separator of a list stands here. */
function separatorAt(bytes: Uint8Array, at: number, end: number): 0 | 1 | 2 {
  if (at + 1 < end && bytes[at] === 0x2c && bytes[at + 1] === 0x20) return COMMA;
  return at + 2 < end && bytes[at] === 0x20 && bytes[at + 1] === 0x3a && bytes[at + 2] === 0x20
    ? COLON
    : 0;
}

/**
 * `502, 200 : 200` and its kind.
 *
 * A ` : ` may come last: the group after an internal redirect is empty when its server was never
 * found. A `,` is followed by an element always.
 */
export function measureList(
  kind: ValueKind,
  bytes: Uint8Array,
  from: number,
  end: number,
  mayBeEmpty: boolean,
): number {
  let at = from;
  let mayStop = mayBeEmpty;
  for (;;) {
    const to =
      kind === 'word_list'
        ? afterWord(bytes, at, end)
        : kind === 'integer_list'
          ? measureInteger(bytes, at, end, true)
          : measureDecimal(bytes, at, end, true);
    if (to === at) return mayStop ? at : ~at;
    const separator = separatorAt(bytes, to, end);
    if (separator === 0) return to;
    at = to + (separator === COMMA ? 2 : 3);
    mayStop = separator === COLON;
  }
}

/** The value after a literal, as far as it matters for the one before. */
export interface NextValue {
  readonly kind: ValueKind;
  readonly alphabet: Uint8Array;
}

export function isList(kind: ValueKind): boolean {
  return kind.endsWith('_list');
}

/**
 * Whether measuring alone finds the end of a value of this kind when `literal` and then the value
 * `next` follow: what follows can't be mistaken for more of this value.
 */
export function endsBefore(
  kind: ValueKind,
  alphabet: Uint8Array,
  literal: string,
  next: NextValue | undefined,
): boolean {
  if (fixedLengthOf(kind) > 0 || kind === 'milliseconds') return true;
  if (literal === '') return next === undefined;
  const first = literal.charCodeAt(0);
  if (kind === 'word') return alphabet[first] === 0;
  if (kind === 'integer' || kind === 'decimal') return !`.${DIGITS}`.includes(literal[0]!);
  const isInElement =
    kind === 'word_list'
      ? first > 0x20 && first !== 0x2c && first !== HEX_QUOTE
      : `.${DIGITS}`.includes(literal[0]!);
  return !isInElement && !SEPARATORS.some((separator) => mayRead(separator, literal, next));
}

const SEPARATORS = [', ', ' : '];

/** Whether `literal`, continued by a value with this alphabet, can read as the separator. */
function mayRead(separator: string, literal: string, next: NextValue | undefined): boolean {
  if (literal.length >= separator.length) return literal.startsWith(separator);
  if (!separator.startsWith(literal) || next === undefined) return false;
  // An element of a list is never empty, so a list does not begin with a separator itself.
  if (isList(next.kind)) return false;
  const rest = Array.from(separator.slice(literal.length));
  return rest.every((char) => next.alphabet[char.charCodeAt(0)] === 1);
}
