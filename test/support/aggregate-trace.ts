/**
 * A capture of real nginx, replayed into an aggregator, line by line.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileLogFormat } from '../../parsers/access/line-scanner.js';
import type { ErrorLine } from '../../parsers/error/error-line.js';
import { LogClock } from '../../parsers/time.js';
import { Aggregator, type AggregatorOptions } from '../../src/aggregate/aggregator.js';
import { ROW_COLUMNS, type RowTable } from '../../src/aggregate/rows.js';
import { loadConf } from '../../src/input/conf-files.js';
import type { SessionState } from '../../src/replay/session-state.js';
import { ReplaySession } from '../../src/replay/session.js';
import { formatOf, linesOf } from './captures.js';

export interface Row {
  readonly table: RowTable;
  readonly row: readonly unknown[];
}

export interface TraceOptions extends Partial<Omit<AggregatorOptions, 'sink'>> {
  /** Another configuration than the capture's. */
  readonly conf?: string;
  /** Which access log; access.log by default, null for the error log alone. */
  readonly log?: string | null;
  readonly hasErrorLog?: boolean;
  /** The lines of the error log stand for their requests. */
  readonly isErrorLogAlone?: boolean;
  /** The lines to replay, as shares of all; all by default. */
  readonly part?: readonly [from: number, to: number];
  /** What an earlier session left. */
  readonly state?: SessionState;
  /** Called before each decision, which is to be counted by the aggregator it gives back. */
  readonly beforeDecision?: (aggregator: Aggregator, fresh: () => Aggregator) => Aggregator;
}

interface Step {
  readonly ms: number;
  readonly rank: number;
  readonly run: () => void;
}

/** Replays a capture. @returns all rows, in the order in which they came, and the aggregator */
export function aggregateTrace(
  directory: string,
  options: TraceOptions = {},
): { rows: Row[]; aggregator: Aggregator; session: ReplaySession } {
  const rows: Row[] = [];
  const sink = {
    row: (table: RowTable, row: readonly unknown[]) => void rows.push({ table, row }),
  };
  const hasErrorLog = options.hasErrorLog ?? true;
  const logName = options.log === undefined ? 'access.log' : options.log;
  const notes: string[] = [];
  let aggregator: Aggregator | null = null;
  const fresh = (): Aggregator => new Aggregator(session, { instance: 'test', ...options, sink });
  const session = new ReplaySession({
    generations: confsOf(directory, options.conf),
    isAudit: false,
    latenessMs: 60_000,
    usesConnection: logName === 'access.log',
    hasErrorLog,
    isErrorLogAlone: options.isErrorLogAlone ?? false,
    errorLogCount: 1,
    details: 'refused',
    onDecision: (event) => {
      if (options.beforeDecision !== undefined) {
        aggregator = options.beforeDecision(aggregator!, fresh);
      }
      aggregator!.decide(event);
    },
    onUnmatchedLine: (line) => aggregator!.unmatchedLine(line),
    onMark: (mark, ms) => aggregator!.mark(mark, ms, ''),
    onNote: (note) => void (aggregator?.note(note) ?? notes.push(note)),
  });
  aggregator = fresh();
  for (const note of notes) aggregator.note(note);
  const steps = [
    ...(logName === null ? [] : accessSteps(directory, logName, session)),
    ...(hasErrorLog ? errorSteps(directory, session) : []),
  ];
  steps.sort((a, b) => a.ms - b.ms || a.rank - b.rank);
  if (options.state !== undefined) session.restore(options.state);
  const [from, to] = options.part ?? [0, 1];
  for (const { ms, run } of steps.slice(from * steps.length, to * steps.length)) {
    session.advance(ms);
    run();
  }
  session.finish(to < 1);
  aggregator.flush();
  return { rows, aggregator, session };
}

/** The rows of one table as objects. */
export function rowsOf(rows: readonly Row[], table: RowTable): Record<string, unknown>[] {
  return rows
    .filter((row) => row.table === table)
    .map(({ row }) => Object.fromEntries(ROW_COLUMNS[table].map((column, i) => [column, row[i]])));
}

/** Sums a column by the words of others, joined with a space. */
export function sumBy(
  rows: readonly Record<string, unknown>[],
  column: string,
  ...by: readonly string[]
): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const row of rows) {
    const key = by.map((name) => String(row[name])).join(' ');
    sums[key] = (sums[key] ?? 0) + Number(row[column]);
  }
  return sums;
}

function confsOf(directory: string, conf: string | undefined) {
  const names =
    conf !== undefined
      ? [conf]
      : readdirSync(directory)
          .filter((name) => /^nginx\.conf\.\d$/.test(name))
          .sort()
          .map((name) => join(directory, name));
  const paths = names.length > 0 ? names : [join(directory, 'nginx.conf')];
  return paths.map((path) => ({ conf: loadConf(path), sinceMs: null }));
}

function accessSteps(directory: string, name: string, session: ReplaySession): Step[] {
  const feed = session.accessFeed(compileLogFormat(formatOf(directory, name)), null);
  // The feed reads what its own scanner found.
  const { scanner } = feed.fields;
  let latestMs = -Infinity;
  return linesOf(join(directory, name)).map((line): Step => {
    if (scanner.scan(line, 0, line.length) !== -1)
      throw new Error(`${directory}: ${line.toString()}`);
    const endMs = feed.fields.endMs(line);
    latestMs = Math.max(latestMs, endMs);
    const run = (): void => {
      scanner.scan(line, 0, line.length);
      feed.submit(line, endMs);
    };
    return { ms: latestMs, rank: 1, run };
  });
}

function errorSteps(directory: string, session: ReplaySession): Step[] {
  const clock = new LogClock({ offsetMinutes: 0 });
  let latestMs = -Infinity;
  const lines = readFileSync(join(directory, 'error.log'), 'latin1').split('\n').slice(0, -1);
  return lines.map((line): Step => {
    const { parsed, secondMs } = session.errorFeed.parse(line, clock);
    if (!Number.isNaN(secondMs)) latestMs = Math.max(latestMs, secondMs);
    return { ms: latestMs, rank: 0, run: takeLine(session, line, parsed, secondMs) };
  });
}

function takeLine(session: ReplaySession, line: string, parsed: ErrorLine, ms: number): () => void {
  return () => void session.errorFeed.take(line, parsed, ms, 0);
}
