/**
 * The tail of an error line: `, client: …, server: …, request: "…", host: "…", referrer: "…"`.
 *
 * Written by ngx_http_log_error() and ngx_http_log_error_handler(), which escape nothing: request,
 * host and referrer hold what the client sent, quotes and commas included. Client and server come
 * before all of that and are read from the left. For the rest one knows what a request that came
 * as far as a limit can look like: a request line of two or three words, a host without spaces.
 * Every separator holds a space, so with these rules there is one reading, and it is taken from
 * the left. nginx before 1.21.1 let spaces through in the request line; a line that only makes
 * sense, or makes sense as well, with such a request is marked ambiguous.
 *
 * Not here: lines that are not about limits, whose request can be any garbage.
 */
import { RequestLine } from '../access/request-line.js';

/** A request line; latin1, one character is one byte. */
export interface RequestText {
  readonly raw: string;
  /** null when the raw line is not a request. */
  readonly method: string | null;
  /** As sent, absolute form included; the raw line when there is no method. */
  readonly target: string;
  readonly path: string;
  /** Behind the `?`; null without one. */
  readonly args: string | null;
  readonly protocol: string | null;
}

export interface RequestContext {
  /** An address, or `unix:`; null when the line ends before it. */
  readonly client: string | null;
  /** The server's name, possibly empty; the stream module has its listening address here. */
  readonly server: string | null;
  readonly request: RequestText | null;
  readonly subrequest: string | null;
  readonly upstream: string | null;
  readonly host: string | null;
  readonly referrer: string | null;
  /** The end of the request can be read in more ways than one, or only in an unlikely one. */
  readonly ambiguous: boolean;
}

export interface ParsedContext extends RequestContext {
  /** The line ends inside a value or a label. */
  readonly isCut: boolean;
}

const CLIENT =
  /(?: while [^,]*)?, (?:udp )?client: ([^,]*)(?:, server: (.*?))?(?=, (?:request|subrequest|upstream|host|referrer): "|, bytes |$)/sy;

/** Nearly every line: no space where a client could have put a label, so one reading. */
const PLAIN =
  /, client: ([^,]*), server: ([^, ]*), request: "([A-Z]+ [^ ]+ HTTP\/[\d.]+)"(?:, host: "([^ /]*)")?(?:, referrer: "([^ ]*)")?$/y;

function contextOfPlain(match: RegExpExecArray): ParsedContext {
  return {
    client: match[1]!,
    server: match[2]!,
    request: splitRequest(match[3]!),
    subrequest: null,
    upstream: null,
    host: match[4] ?? null,
    referrer: match[5] ?? null,
    ambiguous: false,
    isCut: false,
  };
}

/**
 * Reads the context that begins at `from`.
 *
 * @param line latin1, without newline
 */
export function parseRequestContext(line: string, from: number): ParsedContext {
  PLAIN.lastIndex = from;
  const plain = PLAIN.exec(line);
  if (plain !== null) return contextOfPlain(plain);
  CLIENT.lastIndex = from;
  const match = CLIENT.exec(line);
  const at = match === null ? from : CLIENT.lastIndex;
  const { values, isCut, ambiguous } = chooseReading(line, at);
  return {
    client: match?.[1] ?? null,
    server: match?.[2] ?? null,
    request: values.request === undefined ? null : splitRequest(values.request),
    subrequest: values.subrequest ?? null,
    upstream: values.upstream ?? null,
    host: values.host ?? null,
    referrer: values.referrer ?? null,
    ambiguous,
    isCut,
  };
}

const LABELS = ['request', 'subrequest', 'upstream', 'host', 'referrer'] as const;
type Values = Partial<Record<(typeof LABELS)[number], string>>;

interface Reading {
  readonly values: Values;
  readonly isCut: boolean;
}

/** What each value must look like, and from which side its end is sought. */
interface Rules {
  readonly request: RegExp;
  readonly host: RegExp;
  readonly isLastRequestFirst: boolean;
}

const ANYTHING = /^/;
const HOST = /^[^\s/]*$/;
/** The request of nginx since 1.21.1. It may lack a version, or be cut off in it. */
const WORDS = /^[A-Z_-]* *[^ ]*(?: +[HTP]*(?:\/[\d.]*)?)? *$/;
/** The request of older nginx, which let spaces into the target. */
const SPACED = /^[A-Z_-]+ .* HTTP\/\d+(?:\.\d+)? *$/s;

const STRICT: Rules = { request: WORDS, host: HOST, isLastRequestFirst: false };
const FALLBACKS: readonly Rules[] = [
  { request: SPACED, host: HOST, isLastRequestFirst: true },
  { request: SPACED, host: ANYTHING, isLastRequestFirst: true },
  { request: ANYTHING, host: ANYTHING, isLastRequestFirst: false },
];

function chooseReading(line: string, at: number): Reading & { readonly ambiguous: boolean } {
  if (at >= line.length) return { values: {}, isCut: false, ambiguous: false };
  const strict = readFrom(line, at, 0, STRICT);
  const raw = strict?.values.request;
  if (strict !== undefined) {
    const afterRequest = at + ', request: "'.length + (raw ?? '').length;
    // Another reading needs another place where a request can end.
    const ambiguous = line.includes(' HTTP/', afterRequest) && hasOtherRequest(line, at, raw);
    return { ...strict, ambiguous };
  }
  for (const rules of FALLBACKS) {
    const reading = readFrom(line, at, 0, rules);
    if (reading === undefined) continue;
    const ambiguous = rules !== FALLBACKS[0] || hasOtherRequest(line, at, reading.values.request);
    return { ...reading, ambiguous };
  }
  return { values: {}, isCut: true, ambiguous: true };
}

function hasOtherRequest(line: string, at: number, raw: string | undefined): boolean {
  const label = ', request: "';
  if (!line.startsWith(label, at)) return false;
  return endsOf(line, at + label.length, 0).some((end) => {
    const other = line.slice(at + label.length, end);
    if (other === raw || !SPACED.test(other)) return false;
    return readFrom(line, end + 1, 1, { ...STRICT, request: ANYTHING }) !== undefined;
  });
}

/** Reads the labels from `labelIndex` on; undefined when the rest of the line can't be those. */
function readFrom(line: string, at: number, labelIndex: number, rules: Rules): Reading | undefined {
  if (at === line.length) return { values: {}, isCut: false };
  for (let i = labelIndex; i < LABELS.length; i++) {
    const label = LABELS[i]!;
    const opening = `, ${label}: "`;
    if (!line.startsWith(opening, at)) continue;
    return readValue(line, at + opening.length, i, rules);
  }
  const rest = line.slice(at);
  const isCutLabel = LABELS.some((label, i) => i >= labelIndex && `, ${label}: "`.startsWith(rest));
  return isCutLabel ? { values: {}, isCut: true } : undefined;
}

function readValue(line: string, from: number, i: number, rules: Rules): Reading | undefined {
  const label = LABELS[i]!;
  const form = label === 'request' || label === 'host' ? rules[label] : ANYTHING;
  const ends = endsOf(line, from, i);
  if (label === 'request' && rules.isLastRequestFirst) ends.reverse();
  for (const end of ends) {
    const value = line.slice(from, end);
    if (!form.test(value)) continue;
    const rest = readFrom(line, end + 1, i + 1, rules);
    if (rest !== undefined)
      return { values: { [label]: value, ...rest.values }, isCut: rest.isCut };
  }
  // A whole line ends with a quote; only a cut one may end inside a value.
  if (line.endsWith('"') && line.length !== LONGEST_LINE) return undefined;
  const value = line.slice(from);
  return form.test(value) ? { values: { [label]: value }, isCut: true } : undefined;
}

/** NGX_MAX_ERROR_STR less the newline. */
export const LONGEST_LINE = 2047;

/** Offsets of the quotes that may close the value of a label, from left to right. */
function endsOf(line: string, from: number, labelIndex: number): number[] {
  const ends: number[] = [];
  for (let at = line.indexOf('"', from); at >= 0; at = line.indexOf('"', at + 1)) {
    if (at + 1 === line.length || mayFollow(line, at + 1, labelIndex)) ends.push(at);
  }
  return ends;
}

function mayFollow(line: string, at: number, labelIndex: number): boolean {
  if (!line.startsWith(',', at)) return false;
  for (let i = labelIndex + 1; i < LABELS.length; i++) {
    const opening = `, ${LABELS[i]}: "`;
    if (line.startsWith(opening, at) || opening.startsWith(line.slice(at, at + opening.length))) {
      return true;
    }
  }
  return false;
}

const requestLine = new RequestLine();
/** No request in an error line is longer than the line. */
const scratch = Buffer.alloc(LONGEST_LINE);

/** Splits a raw request line; see RequestText. */
export function splitRequest(raw: string): RequestText {
  const bytes = raw.length <= scratch.length ? scratch : Buffer.alloc(raw.length);
  bytes.write(raw, 'latin1');
  if (!requestLine.split(bytes, 0, raw.length)) {
    return { raw, method: null, target: raw, path: raw, args: null, protocol: null };
  }
  const { argsStart, protocolStart } = requestLine;
  return {
    raw,
    method: raw.slice(requestLine.methodStart, requestLine.methodEnd),
    target: raw.slice(requestLine.targetStart, requestLine.targetEnd),
    path: raw.slice(requestLine.pathStart, requestLine.pathEnd) || '/',
    args: argsStart < 0 ? null : raw.slice(argsStart, requestLine.argsEnd),
    protocol: protocolStart < 0 ? null : raw.slice(protocolStart, requestLine.protocolEnd),
  };
}
