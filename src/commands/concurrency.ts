/**
 * `limitlens concurrency`: how many requests are under way, in all and for each key, and what
 * limit_conn N would have done; from access logs.
 */
import {
  concurrencyUnknowns,
  ConcurrencyTracker,
  requireIntervals,
  type ConcurrencyOptions,
} from '../analysis/concurrency.js';
import { concurrencyText } from '../analysis/concurrency-text.js';
import { EXIT, InputError } from '../errors.js';
import { AccessFields } from '../replay/access-fields.js';
import { missingFieldNotes } from '../pipeline/missing-fields.js';
import type { Output } from './output.js';
import { replayLogs, traitsOf, type LogsChoice } from './replayed-logs.js';

export interface ConcurrencyCommandOptions extends LogsChoice, ConcurrencyOptions {
  readonly format: 'text' | 'json';
}

/** nginx's own bound (ngx_http_limit_conn). */
const MOST_CONNECTIONS = 65_535;

/**
 * @throws InputError 64 for a number that nginx does not take, 65 for logs without $request_time or
 *   the key, 66 without an access log
 */
export async function concurrencyCommand(
  files: readonly string[],
  options: ConcurrencyCommandOptions,
  output: Output,
): Promise<void> {
  const { limitConn } = options;
  if (limitConn !== undefined && (limitConn < 1 || limitConn > MOST_CONNECTIONS)) {
    throw new InputError(
      `--limit-conn ${limitConn}: nginx takes 1 to ${MOST_CONNECTIONS}`,
      EXIT.usage,
    );
  }
  const run: { tracker?: ConcurrencyTracker } = {};
  const { logs } = await replayLogs(files, options, output, (session, { access }) => {
    requireIntervals(
      access.map(({ head, scanner }) => ({
        path: head.path,
        format: scanner.format.name,
        fields: new AccessFields(scanner),
      })),
    );
    const tracker = new ConcurrencyTracker(session, options);
    run.tracker = tracker;
    return {
      onSubmit: (event, line, fields) => tracker.submit(event, line, fields),
      onDecision: (event) => tracker.decide(event),
    };
  });
  for (const note of missingFieldNotes(logs.access)) output.note(note);
  const analysis = run.tracker!.finish(concurrencyUnknowns(traitsOf(logs)));
  await output.write(
    options.format === 'json' ? `${JSON.stringify(analysis)}\n` : concurrencyText(analysis),
  );
}
