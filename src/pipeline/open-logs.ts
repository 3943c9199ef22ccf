/**
 * From paths to lanes: opens the logs of one call, tells what each is, and makes the session that
 * replays them.
 */
import {
  compileLogFormat,
  LogFormatError,
  type LineScanner,
} from '../../parsers/access/line-scanner.js';
import { predefinedFormat } from '../../parsers/access/predefined.js';
import type { NginxConf } from '../../parsers/conf/model.js';
import { LogClock, type LogZone } from '../../parsers/time.js';
import { EXIT, InputError } from '../errors.js';
import { FileLines, type LineReader } from '../input/file-lines.js';
import { readHead, sampleLines, type LogHead } from '../input/head.js';
import { noLines, openStreamLines } from '../input/stream-lines.js';
import { AccessFields } from '../replay/access-fields.js';
import type { ReplaySession } from '../replay/session.js';
import { AccessLane, ErrorLane, type Lane, type LineSink } from './lanes.js';
import { inReplayOrder } from './log-order.js';
import { NumberedKeys } from '../keys/key-numbers.js';
import { ReadThread } from './read-thread.js';
import type { ReadTask } from './read-worker.js';
import { RecordLane, RecordSource } from './record-lane.js';
import {
  candidateFormats,
  identify,
  withoutTwins,
  type AccessFile,
  type ErrorFile,
  type LeftOut,
  type LogFile,
} from './log-files.js';

export interface LogPaths {
  /** Access and error logs, told apart by content. */
  readonly files: readonly string[];
  readonly errorLogs: readonly string[];
}

export interface LogChoices {
  /** A format's name, or the text of one. */
  readonly logFormat?: string;
  /** Read all access logs even where they hold the same requests. */
  readonly allLogs?: boolean;
}

export interface OpenedLogs {
  readonly access: readonly AccessFile[];
  readonly errors: readonly ErrorFile[];
  readonly empty: readonly LogHead[];
  readonly leftOut: readonly LeftOut[];
}

/**
 * Looks at every file.
 *
 * @throws InputError 66 for a missing file, 65 for one that is no nginx log, 64 for a bad format
 */
export async function openLogs(
  paths: LogPaths,
  confs: readonly NginxConf[],
  choices: LogChoices,
  readStdin: () => Promise<LogHead>,
): Promise<OpenedLogs> {
  const candidates = candidateFormats(confs);
  const forced =
    choices.logFormat === undefined ? undefined : forcedFormat(choices.logFormat, confs);
  const found: LogFile[] = [];
  const seen = new Set<string>();
  for (const [list, as] of [
    [paths.files, undefined],
    [paths.errorLogs, 'error'],
  ] as const) {
    for (const path of list) {
      if (seen.has(path)) continue;
      seen.add(path);
      const head = path === '-' ? await readStdin() : await readHead(path);
      found.push(identify(head, confs, candidates, forced, as));
    }
  }
  const ordered = inReplayOrder(found);
  const access = ordered.filter((file) => file.kind === 'access');
  const twins =
    choices.allLogs === true ? { kept: access, leftOut: [] } : withoutTwins(access, confs);
  for (const file of twins.kept) requireTime(file);
  return {
    access: twins.kept,
    errors: ordered.filter((file) => file.kind === 'error'),
    empty: ordered.filter((file) => file.kind === 'empty').map((file) => file.head),
    leftOut: twins.leftOut,
  };
}

export function forcedFormat(given: string, confs: readonly NginxConf[]): LineScanner {
  const named =
    confs.map((conf) => conf.logFormats.get(given)).find((format) => format !== undefined) ??
    predefinedFormat(given);
  if (named === undefined && !given.includes('$')) {
    const names = confs.flatMap((conf) => [...conf.logFormats.keys()]);
    throw new InputError(
      `--log-format ${given}: no such log_format; known are ${[...new Set(names)].join(', ')}, ` +
        'or give the format itself, with its $variables',
      EXIT.usage,
    );
  }
  const format = named ?? {
    name: 'given',
    escape: given.trimStart().startsWith('{') ? 'json' : 'default',
    text: given,
  };
  try {
    return compileLogFormat(format);
  } catch (error) {
    if (!(error instanceof LogFormatError)) throw error;
    throw new InputError(`--log-format: ${error.message}`, EXIT.usage, { cause: error });
  }
}

function requireTime(file: AccessFile): void {
  if (new AccessFields(file.scanner).hasTime) return;
  throw new InputError(
    `${file.head.path}: log_format "${file.scanner.format.name}" has no time: log $msec`,
    EXIT.badLines,
  );
}

/** The zone of the error logs' times: as told, else as the access logs show, else the system's. */
export function zoneOf(access: readonly AccessFile[], timezone: string | undefined): LogZone {
  if (timezone !== undefined) return { iana: timezone };
  for (const file of access) {
    const fields = new AccessFields(file.scanner);
    for (const line of sampleLines(file.head.sample)) {
      if (file.scanner.scan(line, 0, line.length) >= 0) continue;
      const offsetMinutes = fields.offsetMinutes(line);
      if (!Number.isNaN(offsetMinutes)) return { offsetMinutes };
    }
  }
  return 'system';
}

/** Which part of a file to read, in bytes of content. */
export interface ContentRange {
  readonly fromOffset: number;
  readonly toOffset: number;
}

export interface LaneOptions {
  readonly zone: LogZone;
  /** All of a file unless it was read before. */
  readonly rangeOf?: (head: LogHead) => ContentRange;
  readonly chunkBytes?: number;
  readonly stdin?: LineReader;
  /** Read large access logs in threads of their own; with one configuration only. */
  readonly reading?: ReadingApart & {
    /** Threads that were started early, taken from here. */
    readonly threads: ReadThread[];
  };
}

/** Large access logs are read in threads of their own. */
export interface ReadingApart {
  readonly leastBytes: number;
  readonly conf: NginxConf;
  readonly details: 'all' | 'refused';
  readonly hasErrorLog: boolean;
}

const MOST_EARLY_THREADS = 2;

/** A thread costs some tens of milliseconds to start; small logs are read here. */
function mayReadApart(file: AccessFile, range: ContentRange, leastBytes: number): boolean {
  const { path, sizeBytes, isGzip } = file.head;
  if (path === '-' || file.isPrefixed) return false;
  return sizeBytes - (isGzip ? 0 : range.fromOffset) >= leastBytes;
}

/**
 * Starts threads for the logs that may be read in one, each from its first line to its last one now;
 * close those that nobody took.
 */
export function startReadThreads(
  logs: OpenedLogs,
  reading: ReadingApart,
  chunkBytes: number | undefined,
): ReadThread[] {
  const apart = logs.access.filter((file) =>
    mayReadApart(file, wholeOf(file.head), reading.leastBytes),
  );
  return apart.slice(0, MOST_EARLY_THREADS).map((file) => {
    const thread = new ReadThread();
    thread.begin(taskOf(file, wholeOf(file.head), reading, chunkBytes));
    return thread;
  });
}

/** A plain file that grows meanwhile is left for next time; of others the length is not known. */
export function endOf(head: LogHead): number {
  return head.isGzip || head.path === '-' ? Number.MAX_SAFE_INTEGER : head.sizeBytes;
}

function wholeOf(head: LogHead): ContentRange {
  return { fromOffset: 0, toOffset: endOf(head) };
}

function taskOf(
  file: AccessFile,
  range: ContentRange,
  { conf, details, hasErrorLog }: ReadingApart,
  chunkBytes: number | undefined,
): ReadTask {
  const { path, isGzip } = file.head;
  return {
    path,
    lines: { isGzip, ...range, ...(chunkBytes === undefined ? {} : { chunkBytes }) },
    format: file.scanner.format,
    servers: file.servers,
    conf,
    details,
    hasErrorLog,
  };
}

/** The thread that reads this log already. */
function takeThread(threads: ReadThread[], path: string): ReadThread | undefined {
  const at = threads.findIndex((thread) => thread.path === path);
  return at < 0 ? undefined : threads.splice(at, 1)[0];
}

/** One lane for each log, error logs first. */
export async function makeLanes(
  logs: OpenedLogs,
  session: ReplaySession,
  sink: LineSink,
  options: LaneOptions,
): Promise<Lane[]> {
  const lanes: Lane[] = [];
  const rangeOf = options.rangeOf ?? (() => ({ fromOffset: 0, toOffset: Infinity }));
  for (const [index, file] of logs.errors.entries()) {
    const { path, isGzip } = file.head;
    const { fromOffset, toOffset } = rangeOf(file.head);
    const reader =
      toOffset <= fromOffset
        ? noLines(path, fromOffset)
        : path === '-'
          ? options.stdin!
          : await openStreamLines(path, isGzip, fromOffset, toOffset);
    const clock = new LogClock(options.zone);
    lanes.push(new ErrorLane(path, reader, session, sink, file.isPrefixed, clock, index));
  }
  for (const [index, file] of logs.access.entries()) {
    const { path, isGzip } = file.head;
    const { chunkBytes } = options;
    const range = rangeOf(file.head);
    const clock = new LogClock(options.zone);
    const errorIndex = logs.errors.length + index;
    const { reading } = options;
    const isKnown = range.toOffset <= range.fromOffset;
    if (!isKnown && reading !== undefined && mayReadApart(file, range, reading.leastBytes)) {
      const keys = new NumberedKeys(session.generations.zones);
      const source = new RecordSource(
        taskOf(file, range, reading, chunkBytes),
        keys,
        (note) => session.note(note),
        takeThread(reading.threads, path),
      );
      lanes.push(
        new RecordLane(path, source, session, sink, file.scanner, clock, errorIndex, keys),
      );
      continue;
    }
    const reader = isKnown
      ? noLines(path, range.fromOffset)
      : path === '-'
        ? options.stdin!
        : new FileLines(path, {
            isGzip,
            ...range,
            ...(chunkBytes === undefined ? {} : { chunkBytes }),
          });
    const feed = session.accessFeed(file.scanner, file.servers);
    lanes.push(
      new AccessLane(path, reader, session, sink, file.isPrefixed, feed, clock, errorIndex),
    );
  }
  return lanes;
}
