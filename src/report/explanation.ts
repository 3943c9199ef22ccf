/**
 * What `limitlens explain` says of one line: the shape of its JSON output.
 *
 * Names are those of the other JSON outputs and of nginx. Units: excess, burst and delay= in
 * requests, times in the names. Everything is plain JSON: no undefined, no Infinity.
 */
import type { SOURCE_WORDS } from '../attribution/source.js';

export type ExplanationKind =
  | 'limiting_requests'
  | 'delaying_request'
  | 'limiting_connections'
  | 'node_allocation_failed'
  | 'slab_no_memory'
  | 'key_too_long'
  | 'zone_size_conflict'
  | 'zone_key_conflict'
  | 'zone_use_conflict'
  | 'refused'
  | 'process_mark'
  | 'access'
  | 'other'
  | 'malformed';

/** nginx's words for what its limits decided. */
export type StatusWord = 'PASSED' | 'DELAYED' | 'REJECTED' | 'DELAYED_DRY_RUN' | 'REJECTED_DRY_RUN';

export type LimitModule = 'limit_req' | 'limit_conn';

/** A request line. Arguments may hold secrets: they are only here when they were asked for. */
export interface ExplainedRequest {
  /** null for what is no request: a TLS handshake, a scanner's bytes. */
  readonly method: string | null;
  /** As sent, absolute form included, without arguments and without `user:password@`. */
  readonly target: string;
  /** null where there is no method. */
  readonly path: string | null;
  readonly protocol: string | null;
  readonly hasArgs: boolean;
  /** Present with showArgs only. */
  readonly args?: string | null;
}

/** Something worth a second look, with a code for programs. */
export interface Finding {
  readonly code: string;
  readonly message: string;
  /** `file:line` of the configuration, where it is about one. */
  readonly where: string | null;
}

export interface ExplainedZone {
  readonly module: LimitModule;
  readonly name: string;
  /** As the configuration writes it. */
  readonly key: string;
  readonly sizeBytes: number;
  /** Keys that fit when they are as short as $binary_remote_addr; of long ones fewer do. */
  readonly capacityKeys: number;
  /** `10r/s` or `1r/m`; null for limit_conn. */
  readonly rate: string | null;
  readonly rateMilliRps: number | null;
  readonly where: string;
}

/** A `limit_req` or `limit_conn` line with the settings in force beside it. */
export interface ExplainedRule {
  readonly module: LimitModule;
  readonly zone: string;
  readonly where: string;
  /** The first server and location in which it is in force. */
  readonly server: string;
  readonly location: string;
  /** In how many servers and locations it is in force with these settings. */
  readonly places: number;
  /** The request of the line was under this rule; null when that can't be told. */
  readonly isOfThisRequest: boolean | null;
  readonly burst: number | null;
  readonly delay: number | 'nodelay' | null;
  /** N of `limit_conn ZONE N`. */
  readonly connections: number | null;
  /** limit_req_status or limit_conn_status. */
  readonly httpStatus: number;
  readonly dryRun: boolean;
  readonly logLevel: string;
  /** How long the line's excess waits under this rule; null for rejects and connections. */
  readonly delayMs: number | null;
}

/** Whether the burst of the configuration is one that the line allows. */
export interface BurstCheck {
  /** null when the rules that come into question have several. */
  readonly configured: number | null;
  readonly implied: ImpliedBurst;
  readonly agrees: boolean;
}

/** A whole excess gives a range, both ends included. */
export type ImpliedBurst = number | { readonly low: number; readonly high: number };

export interface ExplainedConfiguration {
  readonly path: string;
  readonly zones: readonly ExplainedZone[];
  readonly rules: readonly ExplainedRule[];
  readonly burst: BurstCheck | null;
}

export interface Explanation {
  readonly kind: ExplanationKind;
  /** What happened, in a sentence or two. */
  readonly summary: string;
  /** As in the line; an error log's has no zone. */
  readonly time: string | null;
  readonly level: string | null;
  readonly pid: number | null;
  readonly connection: number | null;
  readonly zone: string | null;
  readonly client: string | null;
  readonly server: string | null;
  readonly host: string | null;
  readonly request: ExplainedRequest | null;
  readonly subrequest: string | null;
  readonly upstream: string | null;
  readonly referrer: string | null;
  /** What limit_req (or, in its own lines, limit_conn) decided; null when the line does not say. */
  readonly status: StatusWord | null;
  /** $limit_conn_status of an access line, or of a limit_conn line. */
  readonly limitConnStatus: StatusWord | null;
  /** $upstream_status as logged. */
  readonly upstreamStatus: string | null;
  /** Of an access line, or what the configuration says that a rejected client got. */
  readonly httpStatus: number | null;
  /** Who refused the request, or said 429 or 503. */
  readonly source: (typeof SOURCE_WORDS)[number];
  readonly excess: number | null;
  readonly truncated: boolean;
  readonly impliedBurst: ImpliedBurst | null;
  readonly delayMs: number | null;
  /** The delay in milliseconds, as a formula of what the line does not say. */
  readonly delayFormula: string | null;
  readonly retryAfterSeconds: number | null;
  /** The honest Retry-After in seconds, likewise. */
  readonly retryAfterFormula: string | null;
  /** The limit's zone that was full, when the line says that one was. */
  readonly exhausted: { readonly module: LimitModule; readonly zone: string | null } | null;
  /** What a slab allocator's line says was full, of a limit or not. */
  readonly pool: { readonly what: string | null; readonly zone: string | null } | null;
  /** Of a process mark: `reconfiguring`, `start_process`, … */
  readonly mark: string | null;
  /** Name of the log_format of an access line. */
  readonly format: string | null;
  /** The message of a line that is not about a request's limits. */
  readonly message: string | null;
  readonly arithmetic: readonly string[];
  readonly findings: readonly Finding[];
  /** null without a configuration, or when the line is not about what it says. */
  readonly configuration: ExplainedConfiguration | null;
}

/** An explanation that knows nothing yet but what kind of line it is about. */
export function blank(kind: ExplanationKind, summary: string): Explanation {
  return {
    kind,
    summary,
    time: null,
    level: null,
    pid: null,
    connection: null,
    zone: null,
    client: null,
    server: null,
    host: null,
    request: null,
    subrequest: null,
    upstream: null,
    referrer: null,
    status: null,
    limitConnStatus: null,
    upstreamStatus: null,
    httpStatus: null,
    source: null,
    excess: null,
    truncated: false,
    impliedBurst: null,
    delayMs: null,
    delayFormula: null,
    retryAfterSeconds: null,
    retryAfterFormula: null,
    exhausted: null,
    pool: null,
    mark: null,
    format: null,
    message: null,
    arithmetic: [],
    findings: [],
    configuration: null,
  };
}

/** A finding that is not about one place of the configuration, unless `where` says so. */
export function finding(code: string, message: string, where: string | null = null): Finding {
  return { code, message, where };
}
