/**
 * Which logs to follow: those given, else those that the configuration names; and each one's format.
 *
 * A log need not be there yet when the configuration tells its format. Not here: following.
 */
import { existsSync } from 'node:fs';
import { compileLogFormat, type LineScanner } from '../../parsers/access/line-scanner.js';
import type { NginxConf } from '../../parsers/conf/model.js';
import { EXIT, InputError } from '../errors.js';
import { readHead, type LogHead } from '../input/head.js';
import {
  candidateFormats,
  identify,
  rotationStem,
  withoutTwins,
  type AccessFile,
  type LogFile,
} from '../pipeline/log-files.js';

export interface ErrorLog {
  readonly kind: 'error';
  readonly path: string;
  readonly isPrefixed: boolean;
}

export interface AccessLog {
  readonly kind: 'access';
  readonly path: string;
  readonly isPrefixed: boolean;
  readonly file: AccessFile;
}

export interface TailLogs {
  readonly access: readonly AccessLog[];
  readonly errors: readonly ErrorLog[];
  readonly leftOut: readonly { readonly path: string; readonly because: string }[];
}

/** @throws InputError 64 for nothing to follow, 66 for a log whose format nothing tells */
export async function findTailLogs(
  files: readonly string[],
  errorLogs: readonly string[],
  confs: readonly NginxConf[],
): Promise<TailLogs> {
  const isGiven = files.length + errorLogs.length > 0;
  const conf = confs[confs.length - 1]!;
  const paths = isGiven ? files : conf.accessLogs.map(({ path }) => path).filter(isFile);
  const errorPaths = isGiven ? errorLogs : conf.errorLogs.map(({ path }) => path).filter(isFile);
  const access: AccessFile[] = [];
  const errors: ErrorLog[] = [];
  for (const path of new Set(errorPaths)) errors.push(await errorLog(path, confs));
  for (const path of new Set(paths)) {
    const found = targetFile(path, conf) ?? (await lookAt(path, confs));
    if (found.kind === 'access') access.push(found);
    else if (!errors.some((log) => log.path === path)) {
      errors.push({ kind: 'error', path, isPrefixed: found.kind === 'error' && found.isPrefixed });
    }
  }
  if (access.length + errors.length === 0) {
    throw new InputError(
      `${conf.path}: expected an access_log or error_log that is a file, found none\n` +
        '  Name the logs: limitlens tail --conf FILE ACCESS_LOG --error-log ERROR_LOG',
      EXIT.usage,
    );
  }
  const { kept, leftOut } = withoutTwins(access, confs);
  return {
    access: kept.map((file) => {
      const { path } = file.head;
      return { kind: 'access', path, isPrefixed: file.isPrefixed, file };
    }),
    errors,
    leftOut: leftOut.map(({ file, because }) => ({
      path: file.head.path,
      because: because.head.path,
    })),
  };
}

function isFile(path: string): boolean {
  const isOther = /^(?:syslog:|memory:|stderr$|off$|\/dev\/)/.test(path);
  return !isOther && !path.includes('$');
}

async function errorLog(path: string, confs: readonly NginxConf[]): Promise<ErrorLog> {
  if (!existsSync(path)) return { kind: 'error', path, isPrefixed: false };
  const found = identify(await readHead(path), confs, [], undefined, 'error');
  return { kind: 'error', path, isPrefixed: found.kind === 'error' && found.isPrefixed };
}

/** The log as the configuration describes it; undefined when it does not name the path. */
function targetFile(path: string, conf: NginxConf): AccessFile | undefined {
  const exact = conf.accessLogs.filter((target) => target.path === path);
  const alike = conf.accessLogs.filter(
    (target) => rotationStem(target.path) === rotationStem(path),
  );
  const targets = exact.length > 0 ? exact : alike;
  const [target] = targets;
  const format = target === undefined ? undefined : conf.logFormats.get(target.format);
  if (format === undefined) return undefined;
  if (targets.some((other) => other.path !== target!.path || other.format !== target!.format)) {
    return undefined;
  }
  const servers = new Set<string>();
  for (const rules of conf.ruleSets) {
    if (rules.accessLogs.some((log) => log.path === target!.path)) servers.add(rules.serverName);
  }
  const scanner: LineScanner = compileLogFormat(format);
  const head: LogHead = { path, isGzip: false, sizeBytes: 0, sample: new Uint8Array(0) };
  const known = { target: target!.path, servers: [...servers] };
  return { kind: 'access', head, scanner, isPrefixed: false, ...known };
}

async function lookAt(path: string, confs: readonly NginxConf[]): Promise<LogFile> {
  const found = existsSync(path)
    ? identify(await readHead(path), confs, candidateFormats(confs))
    : undefined;
  if (found !== undefined && found.kind !== 'empty') return found;
  throw new InputError(
    `${path}: expected a log with lines, or an access_log of the configuration, found neither\n` +
      '  Name it in the configuration, or start when it has lines.',
    EXIT.noInput,
  );
}
