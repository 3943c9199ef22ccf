/**
 * Logs into the rows of aggregates, without a store: for commands that answer from logs at once.
 */
import { Aggregator } from '../aggregate/aggregator.js';
import type { RowSink } from '../aggregate/rows.js';
import { checkTimezone, readConfs } from '../pipeline/confs.js';
import { runLanes, type LineSink } from '../pipeline/lanes.js';
import { makeLanes, openLogs, zoneOf, type OpenedLogs } from '../pipeline/open-logs.js';
import { openStdin } from '../pipeline/stdin.js';
import { AccessFields } from '../replay/access-fields.js';
import type { GenerationInput } from '../replay/generations.js';
import { ReplaySession } from '../replay/session.js';
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

/**
 * Replays the files; their rows go to `sink`.
 *
 * @throws InputError as openLogs() and readConfs() do
 */
export async function replayRows(
  files: readonly string[],
  options: LogsChoice,
  instance: string,
  sink: RowSink,
  output: Output,
): Promise<ReplayedLogs> {
  checkTimezone(options.timezone);
  const generations = readConfs(options.conf);
  const confs = generations.map((input) => input.conf);
  const stdin = openStdin();
  const logs = await openLogs({ files, errorLogs: options.errorLog }, confs, options, () =>
    stdin.head(),
  );
  const mixed = logs.access.filter((file) => file.isPrefixed || file.head.path === '-').length;
  const run: { aggregator?: Aggregator } = {};
  const session = new ReplaySession({
    generations,
    isAudit: false,
    latenessMs: options.latenessMs,
    usesConnection: logs.access.every((file) => new AccessFields(file.scanner).hasConnection),
    hasErrorLog: logs.errors.length > 0,
    isErrorLogAlone: logs.access.length === 0,
    errorLogCount: logs.errors.length + mixed,
    details: 'refused',
    onDecision: (event) => run.aggregator!.decide(event),
    onUnmatchedLine: (line) => run.aggregator!.unmatchedLine(line),
    onMark: (mark, ms) => run.aggregator!.mark(mark, ms, ''),
    onNote: (note) => output.note(note),
  });
  const aggregator = new Aggregator(session, { instance, sink });
  run.aggregator = aggregator;
  let unparsable = 0;
  const lineSink: LineSink = {
    onLines: () => undefined,
    onUnparsable: (lane, reason, raw) => {
      unparsable++;
      if (unparsable <= 5) output.unparsable(lane.name, lane.lines, reason, raw);
    },
  };
  const lanes = await makeLanes(logs, session, lineSink, {
    zone: zoneOf(logs.access, options.timezone),
    ...(options.chunkBytes === undefined ? {} : { chunkBytes: options.chunkBytes }),
    stdin: stdin.reader,
  });
  await runLanes(lanes, () => undefined);
  session.finish(true);
  aggregator.flush();
  for (const lane of lanes) lane.reader.close();
  if (unparsable > 5) output.note(`${unparsable} lines could not be read`);
  return { generations, logs };
}
