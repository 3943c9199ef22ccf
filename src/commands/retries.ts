/**
 * `limitlens retries`: how soon keys come back after a refusal, from logs.
 *
 * Not from the store: it keeps what a key did by the minute, and this is a matter of milliseconds.
 */
import { retryUnknowns } from '../analysis/log-traits.js';
import { RetryTracker, type RetriesOptions } from '../analysis/retries.js';
import { retriesText } from '../analysis/retries-text.js';
import { missingFieldNotes } from '../pipeline/missing-fields.js';
import type { Output } from './output.js';
import { replayLogs, traitsOf, type LogsChoice } from './replayed-logs.js';

export interface RetriesCommandOptions extends LogsChoice, RetriesOptions {
  readonly format: 'text' | 'json';
}

export async function retriesCommand(
  files: readonly string[],
  options: RetriesCommandOptions,
  output: Output,
): Promise<void> {
  const run: { tracker?: RetryTracker } = {};
  const { logs } = await replayLogs(files, options, output, (session) => {
    const tracker = new RetryTracker(session, options);
    run.tracker = tracker;
    return { onDecision: (event) => tracker.decide(event) };
  });
  for (const note of missingFieldNotes(logs.access)) output.note(note);
  const analysis = run.tracker!.finish(retryUnknowns(traitsOf(logs)));
  await output.write(
    options.format === 'json' ? `${JSON.stringify(analysis)}\n` : retriesText(analysis),
  );
}
