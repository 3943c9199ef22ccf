/**
 * Logs into the rows of aggregates, without a store: for commands that answer from logs at once.
 */
import { Aggregator } from '../aggregate/aggregator.js';
import type { RowSink } from '../aggregate/rows.js';
import type { OpenedLogs } from '../pipeline/open-logs.js';
import type { ReplaySession } from '../replay/session.js';
import type { Output } from './output.js';
import {
  replayLogs,
  type DecisionTaker,
  type LogsChoice,
  type ReplayedLogs,
} from './replayed-logs.js';

/** Who else takes decisions, after they have been counted; null where nobody does. */
export type MakeBeside = (
  session: ReplaySession,
  logs: OpenedLogs,
) => Pick<DecisionTaker, 'onDecision' | 'onSubmit'> | null;

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
  makeBeside: MakeBeside = () => null,
): Promise<ReplayedLogs> {
  const run: { aggregator?: Aggregator } = {};
  const replayed = await replayLogs(files, options, output, (session, logs) => {
    const beside = makeBeside(session, logs);
    const aggregator = new Aggregator(session, { instance, sink });
    run.aggregator = aggregator;
    return {
      onDecision: (event) => {
        aggregator.decide(event);
        beside?.onDecision(event);
      },
      ...(beside?.onSubmit === undefined ? {} : { onSubmit: beside.onSubmit }),
      onUnmatchedLine: (line) => aggregator.unmatchedLine(line),
      onMark: (mark, ms) => aggregator.mark(mark, ms, ''),
    };
  });
  run.aggregator!.flush();
  return replayed;
}
