/**
 * One line of an error log, by what it says about limits.
 *
 * The head follows ngx_log_error_core(): time, level, pid#tid, and `*N` where a connection is
 * known. The sentences are those of ngx_http_limit_req_module.c, ngx_http_limit_conn_module.c,
 * ngx_slab.c, ngx_cycle.c and ngx_process_cycle.c; both limit sentences are read with either
 * punctuation, as nginx may unify them.
 *
 * Units: excess in thousandths of a request. Text is latin1, one character a byte, unescaped.
 *
 * Not here: time as a number (the line has no zone; see ../time.ts), and prefixes that containers
 * and syslog put before the line (../prefix.ts). A line never throws; what can't be read is
 * `malformed`.
 */
import { type ProcessMark, parseProcessMark } from './process-mark.js';
import { type RequestContext, LONGEST_LINE, parseRequestContext } from './request-context.js';
import {
  type KeyTooLong,
  type NodeAllocationFailed,
  type SlabNoMemory,
  parseZoneMemory,
} from './zone-memory.js';
import { type ConfigurationRefused, parseRefusal } from './refusal.js';

export type { RequestContext, RequestText } from './request-context.js';

/** What stands at the beginning of every line. */
export interface ErrorHead {
  /** `2026/03/02 10:00:00` as in the line; empty for what nginx prints before it has a log. */
  readonly timeText: string;
  /** emerg, alert, crit, error, warn, notice, info or debug. */
  readonly level: string;
  readonly pid: number;
  readonly tid: number;
  /** N of `*N`. */
  readonly connection: number | null;
  /** Cut off: at nginx's 2047 bytes, or inside a quoted value. */
  readonly truncated: boolean;
}

/** A request was delayed or rejected, or would have been. */
export interface LimitEvent extends RequestContext {
  readonly kind: 'limiting_requests' | 'delaying_request' | 'limiting_connections';
  /** In the words of $limit_req_status and $limit_conn_status. */
  readonly status: 'REJECTED' | 'REJECTED_DRY_RUN' | 'DELAYED' | 'DELAYED_DRY_RUN';
  readonly dryRun: boolean;
  /** null for connections. */
  readonly excessMilliReq: number | null;
  readonly zone: string;
}

export interface OtherEvent {
  readonly kind: 'other';
  readonly message: string;
}

/** Not a line of nginx's error log. */
export interface MalformedLine {
  readonly kind: 'malformed';
  /** From 1, where the line stops being one. */
  readonly column: number;
  readonly expected: string;
}

export type LimitLine = ErrorHead & LimitEvent;

type ErrorEvent =
  | LimitEvent
  | NodeAllocationFailed
  | SlabNoMemory
  | KeyTooLong
  | ConfigurationRefused
  | ProcessMark
  | OtherEvent;

export type ErrorLine = (ErrorHead & ErrorEvent) | MalformedLine;

const LEVEL = 'emerg|alert|crit|error|warn|notice|info|debug';
const HEAD = new RegExp(
  `(\\d{4}/\\d\\d/\\d\\d \\d\\d:\\d\\d:\\d\\d) \\[(${LEVEL})\\] (\\d+)#(\\d+): (?:\\*(\\d+) )?`,
  'y',
);
/** What goes to stderr before the log is open, and ends up in the file all the same. */
const HEAD_WITHOUT_LOG = new RegExp(`nginx: \\[(${LEVEL})\\] `, 'y');

const LIMIT =
  /(limiting|delaying) (request|connection)s?(, dry run)?,?(?: excess: (\d+)\.(\d{3}))?,? by zone "([^"]*)"/y;

/**
 * Reads one line.
 *
 * @param line latin1, without its newline; a carriage return at the end is ignored
 */
export function parseErrorLine(line: string): ErrorLine {
  const text = line.endsWith('\r') ? line.slice(0, -1) : line;
  HEAD.lastIndex = 0;
  const head = HEAD.exec(text);
  if (head === null) return parseHeadless(text);
  const at = HEAD.lastIndex;
  const limit = matchLimit(text, at);
  if (limit !== null) return limitLine(text, head, limit);
  const level = head[2]!;
  return {
    timeText: head[1]!,
    level,
    pid: Number(head[3]),
    tid: Number(head[4]),
    connection: connectionOf(head),
    truncated: text.length === LONGEST_LINE,
    ...parseMessage(text.slice(at), level),
  };
}

function connectionOf(head: RegExpExecArray): number | null {
  return head[5] === undefined ? null : Number(head[5]);
}

/** The limit sentences; null, after a look at one word, for nearly all else. */
function matchLimit(text: string, at: number): RegExpExecArray | null {
  const isLimiting = text.startsWith('limiting ', at);
  if (!isLimiting && !text.startsWith('delaying ', at)) return null;
  LIMIT.lastIndex = at;
  const match = LIMIT.exec(text);
  if (match === null) return null;
  // Requests always have an excess; connections never have, and are never delayed.
  const hasExcess = match[4] !== undefined;
  if (match[2] === 'request') return hasExcess ? match : null;
  return isLimiting && !hasExcess ? match : null;
}

/** Written out, for copying objects by spread would cost more than all the parsing. */
function limitLine(text: string, head: RegExpExecArray, limit: RegExpExecArray): LimitLine {
  const isRequest = limit[2] === 'request';
  const isRejected = limit[1] === 'limiting';
  const dryRun = limit[3] !== undefined;
  const outcome = isRejected ? 'REJECTED' : 'DELAYED';
  const context = parseRequestContext(text, LIMIT.lastIndex);
  return {
    kind: !isRequest
      ? 'limiting_connections'
      : isRejected
        ? 'limiting_requests'
        : 'delaying_request',
    timeText: head[1]!,
    level: head[2]!,
    pid: Number(head[3]),
    tid: Number(head[4]),
    connection: connectionOf(head),
    truncated: context.isCut || text.length === LONGEST_LINE,
    status: dryRun ? `${outcome}_DRY_RUN` : outcome,
    dryRun,
    excessMilliReq: isRequest ? Number(limit[4]) * 1000 + Number(limit[5]) : null,
    zone: limit[6]!,
    client: context.client,
    server: context.server,
    request: context.request,
    subrequest: context.subrequest,
    upstream: context.upstream,
    host: context.host,
    referrer: context.referrer,
    ambiguous: context.ambiguous,
  };
}

function parseMessage(message: string, level: string): Exclude<ErrorEvent, LimitEvent> {
  return (
    (level === 'notice' ? parseProcessMark(message) : undefined) ??
    (level === 'emerg' ? parseRefusal(message) : undefined) ??
    parseZoneMemory(message) ?? { kind: 'other', message }
  );
}

const KLOG = /^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+\] /;
const NO_HEAD = { timeText: '', pid: 0, tid: 0, connection: null, truncated: false } as const;

/** Lines of others that live in error logs, and then what is no line at all. */
function parseHeadless(text: string): ErrorLine {
  HEAD_WITHOUT_LOG.lastIndex = 0;
  const match = HEAD_WITHOUT_LOG.exec(text);
  if (match !== null) {
    const level = match[1]!;
    return { ...NO_HEAD, level, ...parseMessage(text.slice(HEAD_WITHOUT_LOG.lastIndex), level) };
  }
  // The controller that runs nginx in a cluster writes into the same stream, in klog's format.
  if (KLOG.test(text)) return { ...NO_HEAD, level: '', kind: 'other', message: text };
  return { kind: 'malformed', ...whereHeadEnds(text) };
}

const HEAD_PARTS: readonly (readonly [RegExp, string])[] = [
  [/\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /y, 'a time like 2026/03/02 10:00:00'],
  [new RegExp(`\\[(?:${LEVEL})\\] `, 'y'), 'a level like [error]'],
  [/\d+#\d+: /y, 'a process and thread like 17#17:'],
];

function whereHeadEnds(text: string): { column: number; expected: string } {
  let at = 0;
  for (const [part, expected] of HEAD_PARTS) {
    part.lastIndex = at;
    if (!part.test(text)) return { column: at + 1, expected };
    at = part.lastIndex;
  }
  return { column: at + 1, expected: 'a message' };
}
