/**
 * log_format, access_log and error_log.
 *
 * After ngx_http_log_set_format(), ngx_http_log_set_log() and ngx_log_set_log(). What is written
 * with a format is the business of parsers/access.
 */
import { addNote, refuse, type Draft, type Level } from './level.js';
import type { Directive } from './lexer.js';
import type { AccessLogTarget, LogFormatConf } from './model.js';
import { parseInteger, parseSizeBytes, parseTimeMs } from './numbers.js';
import { checkVariables } from './variables.js';

/** The format that nginx brings along, in the words of its documentation. */
export const COMBINED: LogFormatConf = {
  name: 'combined',
  escape: 'default',
  text:
    '$remote_addr - $remote_user [$time_local] "$request" ' +
    '$status $body_bytes_sent "$http_referer" "$http_user_agent"',
  where: null,
};

const ERROR_LEVELS: ReadonlySet<string> = new Set([
  ...['emerg', 'alert', 'crit', 'error', 'warn', 'notice', 'info', 'debug'],
  ...['debug_core', 'debug_alloc', 'debug_mutex', 'debug_event', 'debug_http', 'debug_mail'],
  'debug_stream',
]);

/** `log_format NAME [escape=default|json|none] STRING…`; the strings are joined without a gap. */
export function readLogFormat(draft: Draft, _level: Level, directive: Directive): void {
  const name = directive.words[1]!;
  if (draft.logFormats.has(name)) refuse(directive, `duplicate "log_format" name "${name}"`);
  let strings = directive.words.slice(2);
  let escape: LogFormatConf['escape'] = 'default';
  if (strings[0]?.startsWith('escape=') === true) {
    const value = strings[0].slice('escape='.length);
    if (value !== 'default' && value !== 'json' && value !== 'none') {
      refuse(directive, `unknown log format escaping "${value}"`);
    }
    escape = value;
    strings = strings.slice(1);
  }
  for (const text of strings) checkFormatText(directive, text);
  draft.logFormats.set(name, { name, escape, text: strings.join(''), where: directive.where });
}

/** Formats have their own words for a bad variable: what follows the dollar, to the end. */
function checkFormatText(directive: Directive, text: string): void {
  for (const match of text.matchAll(/\$(?:\{(\w*)(\}?)|(\w*))/g)) {
    const name = match[1] ?? match[3]!;
    const isUnclosed = match[2] === '' && text.length > match.index + 2;
    if (isUnclosed) refuse(directive, `the closing bracket in "${name}" variable is missing`);
    if (name === '') refuse(directive, `invalid parameter "${text.slice(match.index)}"`);
  }
}

/** `access_log off` or `access_log PATH [FORMAT [buffer=] [gzip[=]] [flush=] [if=]]`. */
export function readAccessLog(draft: Draft, level: Level, directive: Directive): void {
  const [, path = '', format = 'combined', ...options] = directive.words;
  if (path === 'off') {
    if (directive.words.length > 2) refuse(directive, `invalid parameter "${directive.words[2]}"`);
    level.accessLogOffWhere ??= directive.where;
    noteConditional(draft, level, directive);
    return;
  }
  checkSyslog(directive, path);
  const found = findFormat(draft, format);
  if (found === undefined) refuse(directive, `unknown log format "${format}"`);
  const target: AccessLogTarget = {
    path,
    format: found,
    ...readOptions(draft, directive, path, options),
    where: directive.where,
  };
  (level.accessLogs ??= []).push(target);
  draft.accessLogs.push(target);
  noteConditional(draft, level, directive);
}

function noteConditional(draft: Draft, level: Level, directive: Directive): void {
  if (level.owner === level) return;
  const message = 'an access_log inside of a condition: which requests it gets is not followed';
  addNote(draft, 'conditional-access-log', message, directive.where);
}

/** nginx compares names of formats without regard to case, though it declares them with it. */
function findFormat(draft: Draft, name: string): string | undefined {
  if (draft.logFormats.has(name)) return name;
  const wanted = name.toLowerCase();
  return [...draft.logFormats.keys()].find((known) => known.toLowerCase() === wanted);
}

function readOptions(
  draft: Draft,
  directive: Directive,
  path: string,
  options: readonly string[],
): Pick<AccessLogTarget, 'condition' | 'buffer'> {
  let bufferBytes = 0n;
  let flushMs = 0;
  let gzip = 0n;
  let condition: string | undefined;
  for (const option of options) {
    const value = option.slice(option.indexOf('=') + 1);
    if (option.startsWith('buffer=')) {
      bufferBytes = parseSizeBytes(value) ?? 0n;
      if (bufferBytes === 0n) refuse(directive, `invalid buffer size "${value}"`);
    } else if (option.startsWith('flush=')) {
      flushMs = parseTimeMs(value) ?? 0;
      if (flushMs === 0) refuse(directive, `invalid flush time "${value}"`);
    } else if (option === 'gzip' || option.startsWith('gzip=')) {
      if (bufferBytes === 0n) bufferBytes = 65536n;
      gzip = option === 'gzip' ? 1n : (parseInteger(value) ?? 0n);
      if (gzip < 1n || gzip > 9n) refuse(directive, `invalid compression level "${value}"`);
    } else if (option.startsWith('if=')) {
      checkVariables(directive, value);
      condition = value;
    } else refuse(directive, `invalid parameter "${option}"`);
  }
  if (flushMs > 0 && bufferBytes === 0n) {
    refuse(directive, `no buffer is defined for access_log "${path}"`);
  }
  if (bufferBytes > 0n) checkBuffer(draft, directive, path, `${bufferBytes} ${flushMs} ${gzip}`);
  const buffer = {
    bytes: Number(bufferBytes),
    flushMs: flushMs === 0 ? undefined : flushMs,
    isGzip: gzip > 0n,
  };
  return {
    ...(condition === undefined ? {} : { condition }),
    ...(bufferBytes === 0n ? {} : { buffer }),
  };
}

function checkBuffer(draft: Draft, directive: Directive, path: string, settings: string): void {
  if (path.startsWith('syslog:')) refuse(directive, 'logs to syslog cannot be buffered');
  if (path.includes('$')) refuse(directive, 'buffered logs cannot have variables in name');
  const known = draft.logBuffers.get(path);
  if (known !== undefined && known !== settings) {
    refuse(directive, `access_log "${path}" already defined with conflicting parameters`);
  }
  draft.logBuffers.set(path, settings);
}

function checkSyslog(directive: Directive, path: string): void {
  if (!path.startsWith('syslog:')) return;
  const parameters = path.slice('syslog:'.length).split(',');
  for (const parameter of parameters) {
    if (!/^(?:server=|facility=|severity=|tag=|nohostname$)/.test(parameter)) {
      refuse(directive, `unknown syslog parameter "${parameter}"`);
    }
  }
}

/** `error_log PATH [LEVEL]`. */
export function readErrorLog(draft: Draft, level: Level, directive: Directive): void {
  const [, path = '', ...levels] = directive.words;
  checkSyslog(directive, path);
  for (const [i, name] of levels.entries()) {
    if (!ERROR_LEVELS.has(name)) refuse(directive, `invalid log level "${name}"`);
    if (i > 0 && !name.startsWith('debug_')) refuse(directive, `duplicate log level "${name}"`);
  }
  const target = { path, level: levels[0] ?? 'error', where: directive.where };
  (level.errorLogs ??= []).push(target);
  if (level.context === 'main') {
    const behindMain = draft.errorLogs.findIndex((log) => !draft.main.errorLogs!.includes(log));
    draft.errorLogs.splice(behindMain === -1 ? draft.errorLogs.length : behindMain, 0, target);
  } else draft.errorLogs.push(target);
}
