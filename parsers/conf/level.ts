/**
 * What one level of the configuration sets itself, before anything is inherited.
 *
 * nginx keeps one such structure per module and level and merges them when `http` ends; here one
 * object per level holds what matters to limits and logs, and effective.ts does the merging.
 */
import { ConfError } from './conf-error.js';
import type { Directive } from './lexer.js';
import type {
  AccessLogTarget,
  ConfNote,
  ConfWhere,
  ConnLimit,
  ErrorLogTarget,
  GeoBlock,
  Limit,
  ListenAddress,
  LocationNode,
  LogFormatConf,
  LogLevel,
  MapBlock,
} from './model.js';
import type { SharedZones } from './shared-zones.js';

/** Where a directive may stand; `other` is inside of a block that limitlens does not read. */
export type Context =
  'main' | 'http' | 'server' | 'location' | 'server-if' | 'location-if' | 'limit_except' | 'other';

export class Level {
  readonly context: Context;
  readonly where: ConfWhere;
  /** The server or location whose requests this level is about; itself, unless it is an `if`. */
  readonly owner: Level;
  limits: Limit[] | undefined;
  limitReqStatus: number | undefined;
  limitReqDryRun: boolean | undefined;
  limitReqLogLevel: LogLevel | undefined;
  connLimits: ConnLimit[] | undefined;
  limitConnStatus: number | undefined;
  limitConnDryRun: boolean | undefined;
  limitConnLogLevel: LogLevel | undefined;
  accessLogs: AccessLogTarget[] | undefined;
  accessLogOffWhere: ConfWhere | undefined;
  errorLogs: ErrorLogTarget[] | undefined;
  returnWhere: ConfWhere | undefined;
  /** Behind a `break` on the same level no further rewrite directive runs. */
  isBreakSeen = false;
  rewriteWhere: ConfWhere | undefined;
  /** What `try_files` leads to when its files are not there, and the pages of `error_page`. */
  tryFiles: string[] | undefined;
  errorPages: string[] | undefined;
  internalWhere: ConfWhere | undefined;
  /** `auth_request` asks another location after the limits and before the answer. */
  asksAuth: boolean | undefined;
  realIpFrom: string[] | undefined;
  realIpHeader: string | undefined;
  realIpRecursive: boolean | undefined;
  mergeSlashes: boolean | undefined;

  constructor(context: Context, where: ConfWhere, owner?: Level) {
    this.context = context;
    this.where = where;
    this.owner = owner ?? this;
  }
}

export interface LocationDraft {
  readonly kind: LocationNode['kind'];
  readonly pattern: string;
  readonly level: Level;
  readonly children: LocationDraft[];
  /** For errors found when `http` ends: the line of the opening brace. */
  readonly end: ConfWhere;
}

export interface ServerDraft {
  readonly level: Level;
  readonly names: string[];
  readonly listens: ListenAddress[];
  readonly locations: LocationDraft[];
}

/** A variable that some directive gives a value by other means than map or geo. */
export interface Assignment {
  readonly variable: string;
  readonly directive: string;
  readonly where: ConfWhere;
}

/** The whole configuration while it is being read. */
export interface Draft {
  readonly main: Level;
  http: Level | undefined;
  hasEvents: boolean;
  readonly zones: SharedZones;
  readonly servers: ServerDraft[];
  readonly logFormats: Map<string, LogFormatConf>;
  readonly maps: Map<string, MapBlock>;
  readonly geos: Map<string, GeoBlock>;
  readonly accessLogs: AccessLogTarget[];
  readonly errorLogs: ErrorLogTarget[];
  /** buffer=, flush= and gzip= by path: one file cannot have two. */
  readonly logBuffers: Map<string, string>;
  /** Addresses that already have a default_server. */
  readonly defaultAddresses: Set<string>;
  readonly assignments: Assignment[];
  readonly notes: ConfNote[];
}

/** Refuses a directive in nginx's words. */
export function refuse(directive: Directive, reason: string): never {
  throw new ConfError(directive.end, reason);
}

export function addNote(draft: Draft, code: string, message: string, where: ConfWhere): void {
  draft.notes.push({ code, message, where });
}
