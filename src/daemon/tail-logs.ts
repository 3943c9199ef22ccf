/**
 * What to follow: the logs given, else those that the configuration names.
 *
 * A log need not be there yet when the configuration tells its format, and of patterns and folders
 * none need be there. Not here: what a log is (log-teller.ts), following (tail-reader.ts).
 */
import { join } from 'node:path';
import type { LineScanner } from '../../parsers/access/line-scanner.js';
import { hasWildcard, matchesGlob } from '../../parsers/conf/glob.js';
import type { NginxConf } from '../../parsers/conf/model.js';
import { EXIT, InputError } from '../errors.js';
import { expandPattern } from '../input/follow-set.js';
import { statusOf } from '../input/path-status.js';
import { forcedFormat } from '../pipeline/open-logs.js';
import { withoutTwins } from '../pipeline/log-files.js';
import { planLive, type LivePlan } from './live-logs.js';
import { formatsInUse, LogTeller, type LeftOutLog } from './log-teller.js';
import type { AccessLog, ErrorLog, TailLog } from './tail-log.js';

export interface TailLogs {
  readonly access: readonly AccessLog[];
  readonly errors: readonly ErrorLog[];
  readonly leftOut: readonly LeftOutLog[];
  /** Paths to look for, and patterns, whose logs may come later. */
  readonly patterns: readonly string[];
  readonly live: readonly LivePlan[];
  /** Of the live ones, those whose requests another log holds. */
  readonly liveLeftOut: readonly AccessLog[];
  /** The formats of the access logs, as far as they are known or the configuration tells. */
  readonly formats: readonly LineScanner[];
  /** There is an error log, or will be. */
  readonly hasErrorLog: boolean;
  readonly teller: LogTeller;
  readonly confs: readonly NginxConf[];
}

export interface TailLogChoices {
  /** `udp://127.0.0.1:5514`, `unix:/run/limitlens/syslog.sock`. */
  readonly syslog?: readonly string[];
  readonly logFormat?: string | undefined;
  /** Follow access logs even where they hold the same requests. */
  readonly allLogs?: boolean;
}

/** @throws InputError 64 for nothing to follow, 66 for a log whose format nothing tells */
export async function findTailLogs(
  files: readonly string[],
  errorLogs: readonly string[],
  confs: readonly NginxConf[],
  choices: TailLogChoices = {},
): Promise<TailLogs> {
  const conf = confs[confs.length - 1]!;
  const { logFormat, allLogs = false, syslog = [] } = choices;
  const forced = logFormat === undefined ? undefined : forcedFormat(logFormat, confs);
  const asked = files.length + errorLogs.length > 0 ? given(files, errorLogs) : named(conf);
  const errorPatterns = asked.errors;
  const teller = new LogTeller({ confs, forced, allLogs, errorPatterns });
  const notTold: LeftOutLog[] = [];
  teller.onLeftOut = (log) => notTold.push(log);
  const found: TailLog[] = [];
  for (const path of [...asked.errors, ...asked.paths]) {
    for (const log of await tellAll(path, teller)) {
      if (!found.some((other) => other.path === log.path)) found.push(log);
    }
  }
  const live = [
    ...(files.includes('-') ? [planLive({ kind: 'stdin' }, conf, forced)] : []),
    ...syslog.map((text) => planLive({ kind: 'syslog', text }, conf, forced)),
  ];
  if (asked.errors.length + asked.paths.length + live.length === 0) throw nothingToFollow(conf);
  const choice = kept(found, live, confs, allLogs);
  for (const { path } of choice.leftOut) teller.exclude(path);
  const errors = found.filter((log) => log.kind === 'error');
  const patterns = [...new Set([...asked.errors, ...asked.paths])];
  const known = [...choice.access, ...live.flatMap(({ access }) => access)];
  const formats = (
    known.length > 0 ? known.map(({ file }) => file) : formatsInUse(conf, isAny)
  ).map(({ scanner }) => scanner);
  return {
    ...choice,
    leftOut: [...choice.leftOut, ...notTold],
    errors,
    patterns,
    live,
    formats,
    hasErrorLog:
      errors.length > 0 ||
      live.some((plan) => plan.hasErrorLog) ||
      conf.errorLogs.some(({ path }) => patterns.some((pattern) => matchesGlob(pattern, path))),
    teller,
    confs,
  };
}

function isAny(): boolean {
  return true;
}

interface Asked {
  readonly errors: readonly string[];
  readonly paths: readonly string[];
}

function given(files: readonly string[], errorLogs: readonly string[]): Asked {
  return {
    errors: [...new Set(errorLogs)],
    paths: [...new Set(files.filter((path) => path !== '-').map(patternOf))],
  };
}

/** A folder stands for the logs in it. */
function patternOf(path: string): string {
  const isFolder = path.endsWith('/') || statusOf(path)?.isDirectory();
  return isFolder === true ? join(path, '*') : path;
}

/** Variables of a path can stand for anything in a file's name. */
function named(conf: NginxConf): Asked {
  const patterns = (targets: readonly { readonly path: string }[]): string[] => [
    ...new Set(
      targets
        .map(({ path }) => path)
        .filter(isFile)
        .map((path) => path.replaceAll(/\$(?:\w+|\{\w+\})/g, '*')),
    ),
  ];
  return { errors: patterns(conf.errorLogs), paths: patterns(conf.accessLogs) };
}

function isFile(path: string): boolean {
  return !/^(?:syslog:|memory:|stderr$|off$|\/dev\/)/.test(path);
}

/** The logs that are there now, or that the configuration tells of. */
async function tellAll(path: string, teller: LogTeller): Promise<TailLog[]> {
  if (hasWildcard(path)) {
    const told: TailLog[] = [];
    for (const match of await expandPattern(path)) {
      const log = await teller.tell(match, []);
      if (log !== undefined) told.push(log);
    }
    return told;
  }
  const log = await teller.tell(path, []);
  if (log !== undefined) return [log];
  throw new InputError(
    `${path}: expected a log with lines, or an access_log of the configuration, found neither\n` +
      '  Name it in the configuration, or start when it has lines.',
    EXIT.noInput,
  );
}

/** Of access logs that hold the same requests, the one that tells most; of equal ones, the file. */
function kept(
  found: readonly TailLog[],
  live: readonly LivePlan[],
  confs: readonly NginxConf[],
  allLogs: boolean,
): Pick<TailLogs, 'access' | 'leftOut' | 'liveLeftOut'> {
  const files = found.filter((log) => log.kind === 'access');
  if (allLogs) return { access: files, leftOut: [], liveLeftOut: [] };
  const all = [...files, ...live.flatMap(({ access }) => access)];
  const twins = withoutTwins(
    all.map(({ file }) => file),
    confs,
  );
  const isKept = (log: AccessLog): boolean => twins.kept.includes(log.file);
  return {
    access: files.filter(isKept),
    leftOut: twins.leftOut
      .filter(({ file }) => files.some((log) => log.file === file))
      .map(({ file, because }) => ({
        path: file.head.path,
        reason: `holds the same requests as ${because.head.path}`,
      })),
    liveLeftOut: all.filter((log) => !files.includes(log) && !isKept(log)),
  };
}

function nothingToFollow(conf: NginxConf): InputError {
  return new InputError(
    `${conf.path}: expected an access_log or error_log that is a file, found none\n` +
      '  Name the logs: limitlens tail --conf FILE ACCESS_LOG --error-log ERROR_LOG, or - for standard\n' +
      '  input, or --syslog udp://ADDRESS:PORT for what nginx sends by syslog.',
    EXIT.usage,
  );
}
