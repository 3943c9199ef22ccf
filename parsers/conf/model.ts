/**
 * What an nginx configuration says about limits and logs, after inheritance.
 *
 * This is the meeting point between the configuration parser, which fills it in, and everything
 * that replays, checks or explains. Units are nginx's own: one request is 1000 milliReq, and
 * rates are in thousandths of a request per second, truncated as ngx_http_limit_req_zone() does.
 */

/** A place in a configuration file. `line` counts from 1. */
export interface ConfWhere {
  readonly path: string;
  readonly line: number;
}

/** `limit_req_zone KEY zone=NAME:SIZE rate=RATE`. */
export interface LimitReqZone {
  readonly name: string;
  /** The key as written, for example `$binary_remote_addr$request_method`. */
  readonly keyExpression: string;
  readonly sizeBytes: number;
  /** Thousandths of a request per second; 1r/m is 16. */
  readonly rateMilliRps: number;
  readonly where: ConfWhere;
}

/** `limit_conn_zone KEY zone=NAME:SIZE`. */
export interface LimitConnZone {
  readonly name: string;
  readonly keyExpression: string;
  readonly sizeBytes: number;
  readonly where: ConfWhere;
}

/** One `limit_req` line. */
export interface Limit {
  readonly zone: string;
  readonly burstMilliReq: number;
  /** delay= in thousandths of a request; 0 by default, Infinity for nodelay. */
  readonly delayMilliReq: number;
  readonly where: ConfWhere;
}

/** One `limit_conn` line. */
export interface ConnLimit {
  readonly zone: string;
  readonly connections: number;
  readonly where: ConfWhere;
}

export type LogLevel = 'info' | 'notice' | 'warn' | 'error';

/** One `access_log` line in force somewhere. `access_log off` yields an empty list and `accessLogOffWhere`. */
export interface AccessLogTarget {
  /** As written; may hold variables, or begin with `syslog:`. */
  readonly path: string;
  /** Name of a log_format; `combined` when none is written. */
  readonly format: string;
  /** The `if=` condition as written, when there is one. */
  readonly condition?: string;
  readonly buffer?: LogBuffer;
  readonly where: ConfWhere;
}

/** `buffer=`, `flush=` and `gzip` of an access_log: each worker writes when its buffer is full. */
export interface LogBuffer {
  readonly bytes: number;
  /** Or when so long has passed; undefined for never. */
  readonly flushMs: number | undefined;
  readonly isGzip: boolean;
}

/** One `error_log` line. */
export interface ErrorLogTarget {
  readonly path: string;
  readonly level: string;
  readonly where: ConfWhere;
}

/** What applies to a request in one location (or in a server outside of every location). */
export interface RuleSet {
  /** Dense, from 0, in order of appearance; indexes NginxConf.ruleSets. */
  readonly id: number;
  /** The primary server name ($server_name), possibly empty. */
  readonly serverName: string;
  /** As written, `= /x`, `^~ /s/`, `~ \.php$`, `@named`, `/api/`; empty for the server itself. */
  readonly location: string;
  readonly limits: readonly Limit[];
  readonly limitReqStatus: number;
  readonly limitReqDryRun: boolean;
  readonly limitReqLogLevel: LogLevel;
  readonly connLimits: readonly ConnLimit[];
  readonly limitConnStatus: number;
  readonly limitConnDryRun: boolean;
  readonly limitConnLogLevel: LogLevel;
  /** Empty as well when no level sets one: then nginx uses the file it was built with. */
  readonly accessLogs: readonly AccessLogTarget[];
  /** Where `access_log off` is in force, when it is. */
  readonly accessLogOffWhere?: ConfWhere;
  readonly errorLogs: readonly ErrorLogTarget[];
  /** A `return` that answers before the limit is reached. */
  readonly returnWhere?: ConfWhere;
  /** `internal`: nginx answers 404 to a client's own request here before the limit is reached. */
  readonly internalWhere?: ConfWhere;
  /** A `rewrite` in force here that may lead to another location. */
  readonly rewriteWhere?: ConfWhere;
  /** `auth_request` is in force: another location is asked between the limits and the answer. */
  readonly asksAuth?: true;
  /** URIs, as written, to which `try_files` and `error_page` lead inside of nginx, if any. */
  readonly leadsTo?: readonly string[];
  readonly where: ConfWhere;
}

/** A location, in the order and nesting of the configuration. */
export interface LocationNode {
  readonly kind: 'exact' | 'prefix' | 'prefix-no-regex' | 'regex' | 'regex-nocase' | 'named';
  readonly pattern: string;
  readonly rules: RuleSet;
  readonly children: readonly LocationNode[];
  readonly where: ConfWhere;
}

export interface ListenAddress {
  /** As written, without parameters: `80`, `127.0.0.1:8080`, `[::]:443`, `unix:/x`. */
  readonly text: string;
  readonly port: number | null;
  /** As marked. Without a mark on an address its first server is the default one. */
  readonly isDefaultServer: boolean;
}

/** Trusted addresses and header of the realip module, in force in a server. */
export interface RealIp {
  readonly from: readonly string[];
  readonly header: string;
  readonly recursive: boolean;
}

export interface ServerConf {
  /** Dense, from 0. */
  readonly id: number;
  /** Names as written: exact, `*.x`, `.x`, `x.*`, `~regex`; the first is $server_name. */
  readonly names: readonly string[];
  readonly listens: readonly ListenAddress[];
  readonly mergeSlashes: boolean;
  readonly realIp: RealIp | null;
  readonly rules: RuleSet;
  readonly locations: readonly LocationNode[];
  readonly where: ConfWhere;
}

export interface LogFormatConf {
  readonly name: string;
  readonly escape: 'default' | 'json' | 'none';
  /** The strings of the directive, concatenated as nginx does. */
  readonly text: string;
  readonly where: ConfWhere | null;
}

/** `map SOURCE $variable { … }`. */
export interface MapBlock {
  readonly source: string;
  /** Without the dollar sign. */
  readonly variable: string;
  readonly hostnames: boolean;
  readonly isVolatile: boolean;
  /** In order. `pattern` is unescaped (a leading `\` taken off); regular expressions keep `~` or `~*`. */
  readonly entries: readonly {
    readonly pattern: string;
    /** Set when a backslash was taken off: then a leading `~` begins no regular expression. */
    readonly isLiteral?: boolean;
    readonly value: string;
    readonly where: ConfWhere;
  }[];
  /** Value of `default`; empty string when there is none, as in nginx. */
  readonly defaultValue: string;
  readonly where: ConfWhere;
}

/** `geo [$address] $variable { … }`. */
export interface GeoBlock {
  /** Without the dollar sign; `remote_addr` when none is written. */
  readonly source: string;
  readonly variable: string;
  readonly ranges: boolean;
  /**
   * CIDR and value in order, one for each network; under `ranges` `first-last`, sorted and without
   * overlaps. `delete` entries are already taken off.
   */
  readonly entries: readonly {
    readonly network: string;
    readonly value: string;
    readonly where: ConfWhere;
  }[];
  readonly defaultValue: string;
  readonly proxies: readonly string[];
  /** `proxy_recursive`, when written. */
  readonly proxyRecursive?: boolean;
  readonly isVolatile?: boolean;
  readonly where: ConfWhere;
}

/** Something limitlens noticed but could not evaluate; never silent. */
export interface ConfNote {
  readonly code: string;
  readonly message: string;
  readonly where: ConfWhere;
}

export interface NginxConf {
  /** The file (or dump) this was read from. */
  readonly path: string;
  readonly reqZones: ReadonlyMap<string, LimitReqZone>;
  readonly connZones: ReadonlyMap<string, LimitConnZone>;
  readonly servers: readonly ServerConf[];
  readonly ruleSets: readonly RuleSet[];
  /** Includes the predefined `combined`. */
  readonly logFormats: ReadonlyMap<string, LogFormatConf>;
  readonly maps: ReadonlyMap<string, MapBlock>;
  readonly geos: ReadonlyMap<string, GeoBlock>;
  /** Every access_log destination anywhere, in order of appearance. */
  readonly accessLogs: readonly AccessLogTarget[];
  /** Every error_log destination anywhere, main first. */
  readonly errorLogs: readonly ErrorLogTarget[];
  readonly notes: readonly ConfNote[];
}
