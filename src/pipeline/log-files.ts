/**
 * What each given file is: an access log of which format and servers, an error log, or nothing.
 *
 * Told by content. The format is the one, of the configuration's and the predefined ones, that fits
 * the file's first lines; the name (without `.1`, `.gz`, `-20260302`) decides between formats that
 * fit alike, and tells which servers write to the file. Where the configuration writes one request
 * to several access logs, the one with the most fields that a replay needs counts.
 */
import { detectFormat, looksLikeErrorLog } from '../../parsers/access/detect.js';
import { compileLogFormat, type LineScanner } from '../../parsers/access/line-scanner.js';
import { PREDEFINED_FORMATS } from '../../parsers/access/predefined.js';
import type { LogFormat } from '../../parsers/access/format-text.js';
import type { NginxConf } from '../../parsers/conf/model.js';
import { PrefixStripper } from '../../parsers/prefix.js';
import { EXIT, InputError, quote } from '../errors.js';
import { sampleLines, type LogHead } from '../input/head.js';

const SLASH = 0x2f;

export interface AccessFile {
  /** Error lines among the access lines, as in a container's one stream, are read as such. */
  readonly kind: 'access';
  readonly head: LogHead;
  readonly scanner: LineScanner;
  /** Primary names of the servers that write to it; null when the configuration does not tell. */
  readonly servers: readonly string[] | null;
  /** The access_log path it belongs to; null when unknown. */
  readonly target: string | null;
  /** Lines carry a prefix of syslog, journald or a container runtime. */
  readonly isPrefixed: boolean;
}

export interface ErrorFile {
  readonly kind: 'error';
  readonly head: LogHead;
  readonly isPrefixed: boolean;
}

export interface EmptyFile {
  readonly kind: 'empty';
  readonly head: LogHead;
}

export type LogFile = AccessFile | ErrorFile | EmptyFile;

/** Fields without which a replay knows less, the most telling first. */
const REPLAY_FIELDS = [
  'msec',
  'request_time',
  'limit_req_status',
  'status',
  'upstream_status',
  'upstream_response_time',
  'connection',
  'connection_requests',
  'pid',
  'limit_conn_status',
  'request_id',
  'server_name',
  'request',
  'request_uri',
  'remote_addr',
  'time_iso8601',
  'time_local',
];

/** The formats to try on a file: the configurations', then the predefined ones. */
export function candidateFormats(confs: readonly NginxConf[]): LineScanner[] {
  const formats: LogFormat[] = [];
  for (const conf of confs) formats.push(...conf.logFormats.values());
  formats.push(...PREDEFINED_FORMATS);
  return formats.map(compileLogFormat);
}

/**
 * Tells what a file is.
 *
 * @param forced the format given by --log-format, when one is
 * @param as 'error' where the user said that it is an error log
 * @throws InputError 65 when no format fits, or several fit alike
 */
export function identify(
  head: LogHead,
  confs: readonly NginxConf[],
  candidates: readonly LineScanner[],
  forced?: LineScanner,
  as?: 'error',
): LogFile {
  const raw = sampleLines(head.sample).filter((line) => line.length > 0);
  if (raw.length === 0 && as !== 'error') return { kind: 'empty', head };
  const { lines, isPrefixed } = stripped(raw);
  if (as === 'error') return { kind: 'error', head, isPrefixed };
  const others = lines.filter((line) => !isErrorLine(line));
  if (others.length < lines.length && !hasAccessLines(others, candidates, forced)) {
    return { kind: 'error', head, isPrefixed };
  }
  const scanner = forced ?? chooseFormat(head, others, confs, candidates);
  const found = targetOf(head.path, scanner, confs);
  return { kind: 'access', head, scanner, isPrefixed, ...found };
}

/** `2026/03/02 10:…`: what a container writes of both logs comes in one stream. */
export function isErrorLine(line: Uint8Array, start = 0): boolean {
  return (
    line[start + 4] === SLASH &&
    line[start + 7] === SLASH &&
    looksLikeErrorLog([line.subarray(start)])
  );
}

function hasAccessLines(
  lines: readonly Uint8Array[],
  candidates: readonly LineScanner[],
  forced: LineScanner | undefined,
): boolean {
  const formats = forced === undefined ? candidates : [forced];
  return lines.some((line) => formats.some((scanner) => scanner.scan(line, 0, line.length) < 0));
}

function chooseFormat(
  head: LogHead,
  lines: readonly Uint8Array[],
  confs: readonly NginxConf[],
  candidates: readonly LineScanner[],
): LineScanner {
  const detected = detectFormat(lines, candidates);
  if ('format' in detected) return detected.format;
  if ('tie' in detected) {
    const named = detected.tie.filter((scanner) => isNamedTarget(head.path, scanner, confs));
    if (named.length === 1) return named[0]!;
    const names = detected.tie.map((scanner) => `"${scanner.format.name}"`).join(', ');
    throw new InputError(
      `${head.path}: the log formats ${names} fit its lines equally well\n  Say which with --log-format NAME.`,
      EXIT.badLines,
    );
  }
  if (head.sample.includes(0)) {
    throw new InputError(
      `${head.path}: expected the lines of an nginx log, found binary data (a zero byte at ${head.sample.indexOf(0)})\n` +
        '  Logs are read plain or gzipped; unpack other archives first.',
      EXIT.badLines,
    );
  }
  const { best } = detected;
  const line = best === undefined ? 1 : best.line;
  const text = Buffer.from(lines[line - 1] ?? new Uint8Array(0)).toString('latin1');
  const expected =
    best === undefined
      ? 'a line of an nginx log'
      : `${best.expected} (log_format "${best.scanner.format.name}")`;
  const rest = text.slice((best?.column ?? 1) - 1);
  const found = rest === '' ? 'the end of the line' : quote(rest);
  throw new InputError(
    `${head.path}:${line}:${best?.column ?? 1}: expected ${expected}, found ${found}\n` +
      '  None of the known log formats fits this file: pass its configuration with --conf, or its format with --log-format.',
    EXIT.badLines,
  );
}

/** Takes off what syslog, journald, docker or Kubernetes put in front of each line. */
function stripped(raw: readonly Uint8Array[]): { lines: Uint8Array[]; isPrefixed: boolean } {
  const stripper = new PrefixStripper();
  let changed = 0;
  const lines: Uint8Array[] = [];
  for (const bytes of raw.slice(0, 1000)) {
    const text = Buffer.from(bytes).toString('latin1');
    const bare = stripper.push(text);
    if (bare === undefined) {
      changed++;
      continue;
    }
    if (bare !== text) changed++;
    lines.push(Buffer.from(bare, 'latin1'));
  }
  const isPrefixed = changed * 2 > Math.min(raw.length, 1000);
  return isPrefixed ? { lines, isPrefixed } : { lines: [...raw], isPrefixed };
}

/** `access.log` of `/x/access.log.2.gz`, `access.log-20260302`. */
export function rotationStem(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return name.replace(/(?:\.(?:gz|\d+)|-\d{8,}(?:\.\d+)?)+$/, '');
}

function isNamedTarget(path: string, scanner: LineScanner, confs: readonly NginxConf[]): boolean {
  const stem = rotationStem(path);
  return confs.some((conf) =>
    conf.accessLogs.some(
      (target) => rotationStem(target.path) === stem && target.format === scanner.format.name,
    ),
  );
}

/** Which access_log a file is, and who writes to it. */
function targetOf(
  path: string,
  scanner: LineScanner,
  confs: readonly NginxConf[],
): { target: string | null; servers: readonly string[] | null } {
  const stem = rotationStem(path);
  const conf = confs[confs.length - 1];
  if (conf === undefined) return { target: null, servers: null };
  const fits = (target: { path: string; format: string }): boolean =>
    conf.logFormats.get(target.format)?.text === scanner.format.text;
  const byName = conf.accessLogs.filter((t) => rotationStem(t.path) === stem && fits(t));
  const candidates = byName.length > 0 ? byName : conf.accessLogs.filter(fits);
  const paths = new Set(candidates.map((target) => target.path));
  if (paths.size !== 1) return { target: null, servers: null };
  const [target] = [...paths] as [string];
  const servers = new Set<string>();
  for (const rules of conf.ruleSets) {
    if (rules.accessLogs.some((log) => log.path === target)) servers.add(rules.serverName);
  }
  return { target, servers: [...servers] };
}

export interface LeftOut {
  readonly file: AccessFile;
  readonly because: AccessFile;
}

/**
 * Of access logs that hold the same requests, keeps the one that tells most.
 *
 * Two files hold the same requests when some location writes to both of their access_logs.
 */
export function withoutTwins(
  files: readonly AccessFile[],
  confs: readonly NginxConf[],
): { kept: AccessFile[]; leftOut: LeftOut[] } {
  const leftOut: LeftOut[] = [];
  const kept: AccessFile[] = [];
  const ranked = [...files].sort((a, b) => replayFields(b) - replayFields(a));
  for (const file of ranked) {
    const twin = kept.find((other) => areTwins(file, other, confs));
    if (twin === undefined) kept.push(file);
    else leftOut.push({ file, because: twin });
  }
  kept.sort((a, b) => files.indexOf(a) - files.indexOf(b));
  return { kept, leftOut };
}

function areTwins(a: AccessFile, b: AccessFile, confs: readonly NginxConf[]): boolean {
  if (a.target === null || b.target === null || a.target === b.target) return false;
  return confs.some((conf) =>
    conf.ruleSets.some((rules) => {
      const paths = rules.accessLogs.map((log) => log.path);
      return paths.includes(a.target!) && paths.includes(b.target!);
    }),
  );
}

function replayFields(file: AccessFile): number {
  return REPLAY_FIELDS.filter((field) => file.scanner.indexOf(field) >= 0).length;
}
