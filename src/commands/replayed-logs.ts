/**
 * Logs through a replay, without a store: for commands that answer from logs at once.
 *
 * Not here: what is made of the decisions (the taker's matter), and rows (replayed-rows.ts).
 */
import type { LogTraits } from '../analysis/log-traits.js';
import type { WaitingLine } from '../replay/line-join.js';
import { checkTimezone, readConfs } from '../pipeline/confs.js';
import { runLanes, type LineSink } from '../pipeline/lanes.js';
import { makeLanes, openLogs, zoneOf, type OpenedLogs } from '../pipeline/open-logs.js';
import { openStdin } from '../pipeline/stdin.js';
import { AccessFields } from '../replay/access-fields.js';
import type { GenerationInput } from '../replay/generations.js';
import { ReplaySession, type SessionOptions } from '../replay/session.js';
import type { Output } from './output.js';

export interface LogsChoice {
  readonly conf: readonly string[];
  readonly errorLog: readonly string[];
  readonly latenessMs: number;
  readonly timezone?: string;
  readonly logFormat?: string;
  readonly allLogs: boolean;
  readonly chunkBytes?: number;
}

export interface ReplayedLogs {
  readonly generations: readonly GenerationInput[];
  readonly logs: OpenedLogs;
}

/** Who takes what a replay finds out. */
export interface DecisionTaker {
  readonly onDecision: (event: number) => void;
  readonly onSubmit?: SessionOptions['onSubmit'];
  readonly onUnmatchedLine?: (line: WaitingLine) => void;
  readonly onMark?: (mark: string, ms: number) => void;
}

const SHOWN_LINES = 5;

/**
 * Replays the files to their end.
 *
 * @param makeTaker called once, before the first line; may throw where the logs do not do
 * @throws InputError as openLogs(), readConfs() and `makeTaker` do
 */
export async function replayLogs(
  files: readonly string[],
  options: LogsChoice,
  output: Output,
  makeTaker: (session: ReplaySession, logs: OpenedLogs) => DecisionTaker,
): Promise<ReplayedLogs> {
  checkTimezone(options.timezone);
  const generations = readConfs(options.conf);
  const confs = generations.map((input) => input.conf);
  const stdin = openStdin();
  try {
    const logs = await openLogs({ files, errorLogs: options.errorLog }, confs, options, () =>
      stdin.head(),
    );
    const run: { taker?: DecisionTaker } = {};
    const session = new ReplaySession({
      ...sessionOptions(generations, logs, options),
      onDecision: (event) => run.taker!.onDecision(event),
      onSubmit: (event, line, fields) => run.taker!.onSubmit?.(event, line, fields),
      onUnmatchedLine: (line) => run.taker!.onUnmatchedLine?.(line),
      onMark: (mark, ms) => run.taker!.onMark?.(mark, ms),
      onNote: (note) => output.note(note),
    });
    run.taker = makeTaker(session, logs);
    let unparsable = 0;
    const sink: LineSink = {
      onLines: () => undefined,
      onUnparsable: (lane, reason, raw) => {
        unparsable++;
        if (unparsable <= SHOWN_LINES) output.unparsable(lane.name, lane.lines, reason, raw);
      },
    };
    const lanes = await makeLanes(logs, session, sink, {
      zone: zoneOf(logs.access, options.timezone),
      ...(options.chunkBytes === undefined ? {} : { chunkBytes: options.chunkBytes }),
      stdin: stdin.reader,
    });
    await runLanes(lanes, () => undefined);
    session.finish();
    for (const lane of lanes) lane.reader.close();
    if (unparsable > SHOWN_LINES) output.note(`${unparsable} lines could not be read`);
    return { generations, logs };
  } finally {
    stdin.reader.close();
  }
}

function sessionOptions(
  generations: readonly GenerationInput[],
  logs: OpenedLogs,
  options: LogsChoice,
): Omit<SessionOptions, `on${string}`> {
  // A stream or a prefixed file may carry lines of the error log among the others.
  const mixed = logs.access.filter((file) => file.isPrefixed || file.head.path === '-').length;
  return {
    generations,
    isAudit: false,
    latenessMs: options.latenessMs,
    usesConnection: logs.access.every((file) => new AccessFields(file.scanner).hasConnection),
    hasErrorLog: logs.errors.length > 0,
    isErrorLogAlone: logs.access.length === 0,
    errorLogCount: logs.errors.length + mixed,
    details: 'refused',
  };
}

/** What the logs carry. */
export function traitsOf(logs: OpenedLogs): LogTraits {
  const fields = logs.access.map(({ scanner }) => new AccessFields(scanner));
  return {
    hasAccessLog: logs.access.length > 0,
    hasErrorLog: logs.errors.length > 0,
    hasMilliseconds: fields.every(({ hasMilliseconds }) => hasMilliseconds),
    hasRequestTime: fields.every(({ hasRequestTime }) => hasRequestTime),
    hasLimitReqStatus: fields.every(({ hasLimitReqStatus }) => hasLimitReqStatus),
    hasPath: logs.access.every(({ scanner }) =>
      ['request', 'request_uri', 'uri'].some((name) => scanner.indexOf(name) >= 0),
    ),
  };
}
