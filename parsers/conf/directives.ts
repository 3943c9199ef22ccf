/**
 * The directives that limitlens reads: where they may stand, and how many values they take.
 *
 * The checks are those of ngx_conf_handler(), in its order. Directives that are not listed are
 * accepted anywhere, with or without a block, for modules are many.
 */
import { refuse, type Context, type Draft, type Level } from './level.js';
import type { Directive } from './lexer.js';
import { readLimitConn, readLimitConnZone, readLimitReq, readLimitReqZone } from './limits.js';
import { readAccessLog, readErrorLog, readLogFormat } from './logs.js';
import {
  readAuthRequest,
  readBreak,
  readErrorPage,
  readInternal,
  readReturn,
  readRewrite,
  readSet,
  readTryFiles,
} from './request-phases.js';
import { readErrorStatus, readFlag, readLogLevel, readText } from './settings.js';

type Read = (draft: Draft, level: Level, directive: Directive) => void;

export interface DirectiveSpec {
  readonly contexts: readonly Context[];
  /** Fewest and most values, the name not counted. */
  readonly values: readonly [number, number];
  /** undefined for the blocks, and for what needs the server: read-conf.ts has them. */
  readonly read?: Read;
  readonly isBlock?: true;
}

const MAIN: readonly Context[] = ['main'];
const HTTP: readonly Context[] = ['http'];
const LEVELS: readonly Context[] = ['http', 'server', 'location'];
const REWRITE: readonly Context[] = ['server', 'server-if', 'location', 'location-if'];
const ANY_NUMBER = Number.POSITIVE_INFINITY;

function setting(read: (level: Level, directive: Directive) => void): DirectiveSpec {
  return { contexts: LEVELS, values: [1, 1], read: (_draft, level, line) => read(level, line) };
}

const SPECS: Readonly<Record<string, DirectiveSpec>> = {
  events: { contexts: MAIN, values: [0, 0], isBlock: true },
  http: { contexts: MAIN, values: [0, 0], isBlock: true },
  server: { contexts: HTTP, values: [0, 0], isBlock: true },
  location: { contexts: ['server', 'location'], values: [1, 2], isBlock: true },
  if: { contexts: ['server', 'location'], values: [1, ANY_NUMBER], isBlock: true },
  limit_except: { contexts: ['location'], values: [1, ANY_NUMBER], isBlock: true },
  map: { contexts: HTTP, values: [2, 2], isBlock: true },
  geo: { contexts: HTTP, values: [1, 2], isBlock: true },
  server_name: { contexts: ['server'], values: [1, ANY_NUMBER] },
  listen: { contexts: ['server'], values: [1, ANY_NUMBER] },

  limit_req_zone: { contexts: HTTP, values: [3, 3], read: readLimitReqZone },
  limit_conn_zone: { contexts: HTTP, values: [2, 2], read: readLimitConnZone },
  limit_req: { contexts: LEVELS, values: [1, 3], read: readLimitReq },
  limit_conn: { contexts: LEVELS, values: [2, 2], read: readLimitConn },
  limit_req_status: setting((level, line) => {
    level.limitReqStatus = readErrorStatus(line, level.limitReqStatus);
  }),
  limit_req_dry_run: setting((level, line) => {
    level.limitReqDryRun = readFlag(line, level.limitReqDryRun);
  }),
  limit_req_log_level: setting((level, line) => {
    level.limitReqLogLevel = readLogLevel(line, level.limitReqLogLevel);
  }),
  limit_conn_status: setting((level, line) => {
    level.limitConnStatus = readErrorStatus(line, level.limitConnStatus);
  }),
  limit_conn_dry_run: setting((level, line) => {
    level.limitConnDryRun = readFlag(line, level.limitConnDryRun);
  }),
  limit_conn_log_level: setting((level, line) => {
    level.limitConnLogLevel = readLogLevel(line, level.limitConnLogLevel);
  }),

  log_format: { contexts: HTTP, values: [2, ANY_NUMBER], read: readLogFormat },
  access_log: {
    contexts: [...LEVELS, 'location-if', 'limit_except'],
    values: [1, ANY_NUMBER],
    read: readAccessLog,
  },
  error_log: { contexts: ['main', ...LEVELS], values: [1, ANY_NUMBER], read: readErrorLog },

  set_real_ip_from: setting((level, line) => {
    (level.realIpFrom ??= []).push(line.words[1]!);
  }),
  real_ip_header: setting((level, line) => {
    level.realIpHeader = readText(line, level.realIpHeader);
  }),
  real_ip_recursive: setting((level, line) => {
    level.realIpRecursive = readFlag(line, level.realIpRecursive);
  }),
  merge_slashes: {
    contexts: ['http', 'server'],
    values: [1, 1],
    read: (_draft, level, line) => {
      level.mergeSlashes = readFlag(line, level.mergeSlashes);
    },
  },

  return: { contexts: REWRITE, values: [1, 2], read: readReturn },
  rewrite: { contexts: REWRITE, values: [2, 3], read: readRewrite },
  set: { contexts: REWRITE, values: [2, 2], read: readSet },
  break: { contexts: REWRITE, values: [0, 0], read: readBreak },
  try_files: { contexts: ['server', 'location'], values: [2, ANY_NUMBER], read: readTryFiles },
  error_page: {
    contexts: [...LEVELS, 'location-if'],
    values: [2, ANY_NUMBER],
    read: readErrorPage,
  },
  auth_request: { contexts: LEVELS, values: [1, 1], read: readAuthRequest },
  internal: { contexts: ['location'], values: [0, 0], read: readInternal },
};

/**
 * Looks a directive up and checks its place, its ending and its number of values.
 *
 * @returns undefined for a directive of a module that limitlens does not read
 * @throws ConfError in nginx's words
 */
export function specOf(context: Context, directive: Directive): DirectiveSpec | undefined {
  const name = directive.words[0]!;
  const spec = Object.hasOwn(SPECS, name) ? SPECS[name] : undefined;
  if (spec === undefined) {
    // No module names a directive otherwise: a lost semicolon or a byte order mark.
    if (!/^[A-Za-z0-9_]+$/.test(name)) refuse(directive, `unknown directive "${name}"`);
    return undefined;
  }
  if (!spec.contexts.includes(context)) {
    refuse(directive, `"${name}" directive is not allowed here`);
  }
  if (spec.isBlock !== true && directive.kind === 'block') {
    refuse(directive, `directive "${name}" is not terminated by ";"`);
  }
  if (spec.isBlock === true && directive.kind !== 'block') {
    refuse(directive, `directive "${name}" has no opening "{"`);
  }
  const count = directive.words.length - 1;
  if (count < spec.values[0] || count > spec.values[1]) {
    refuse(directive, `invalid number of arguments in "${name}" directive`);
  }
  return spec;
}
