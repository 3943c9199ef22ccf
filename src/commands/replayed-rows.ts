/**
 * Logs into the rows of aggregates, without a store: for commands that answer from logs at once.
 */
import { Aggregator } from '../aggregate/aggregator.js';
import type { RowSink } from '../aggregate/rows.js';
import type { Output } from './output.js';
import { replayLogs, type LogsChoice, type ReplayedLogs } from './replayed-logs.js';

/**
 * Replays the files; their rows go to `sink`.
 *
 * @throws InputError as replayLogs() does
 */
export async function replayRows(
  files: readonly string[],
  options: LogsChoice,
  instance: string,
  sink: RowSink,
  output: Output,
): Promise<ReplayedLogs> {
  const run: { aggregator?: Aggregator } = {};
  const replayed = await replayLogs(files, options, output, (session) => {
    const aggregator = new Aggregator(session, { instance, sink });
    run.aggregator = aggregator;
    return {
      onDecision: (event) => aggregator.decide(event),
      onUnmatchedLine: (line) => aggregator.unmatchedLine(line),
      onMark: (mark, ms) => aggregator.mark(mark, ms, ''),
    };
  });
  run.aggregator!.flush();
  return replayed;
}
