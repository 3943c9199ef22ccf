/**
 * The replay of the daemon, put together: session, aggregator, the sources whose lines it is handed,
 * and the rows that come out of it.
 *
 * Not here: reading (tail-reader.ts), when lines are handed on (tailer.ts), its state in a checkpoint
 * (tail-checkpoint.ts).
 */
import type { LineScanner } from '../../parsers/access/line-scanner.js';
import { hasWildcard } from '../../parsers/conf/glob.js';
import type { LogZone } from '../../parsers/time.js';
import { Aggregator } from '../aggregate/aggregator.js';
import { countingSink } from '../pipeline/counting-sink.js';
import type { Privacy } from '../pipeline/privacy.js';
import { PrivateRows } from '../pipeline/private-rows.js';
import { AccessFields } from '../replay/access-fields.js';
import { FLAG } from '../replay/event-flags.js';
import { ReplaySession } from '../replay/session.js';
import type { JsonLog } from './json-log.js';
import { showsZone, ZoneFinder } from './log-zone.js';
import { RecordRows } from './record-rows.js';
import type { TailGeneration } from './tail-generations.js';
import { LogList, type AccessLog, type TailLog } from './tail-log.js';
import type { TailLogs } from './tail-logs.js';
import { TailSources } from './tail-sources.js';

export interface TailReplayOptions {
  readonly instance: string;
  readonly generations: readonly TailGeneration[];
  readonly logs: TailLogs;
  readonly latenessMs: number;
  /** Of the error logs' times; undefined to find it out from the access logs. */
  readonly zone: LogZone | undefined;
  readonly privacy: Privacy;
  readonly log: JsonLog;
  /** A request was logged later after its decision than latenessMs. */
  readonly onLate?: () => void;
}

export class TailReplay {
  readonly session: ReplaySession;
  readonly aggregator: Aggregator;
  /** Rows that became complete and are in no record yet. */
  readonly rows = new RecordRows();
  readonly sources: TailSources;
  readonly logs: LogList;
  readonly zone: ZoneFinder;
  /** Nothing waits for its decision. */
  isDrained = true;
  readonly #options: TailReplayOptions;

  constructor(options: TailReplayOptions) {
    this.#options = options;
    const { logs } = options;
    const access = [...logs.access, ...logs.live.flatMap((plan) => plan.access)];
    const errors = [...logs.errors, ...logs.live.map((plan) => plan.errors)];
    // Those of patterns and folders are not known yet.
    const mayGrow = logs.patterns.some(hasWildcard);
    const mixed = access.filter((log) => log.isPrefixed).length;
    const notes: string[] = [];
    this.session = new ReplaySession({
      generations: options.generations,
      isAudit: false,
      latenessMs: options.latenessMs,
      usesConnection: logs.formats.every(hasConnection),
      hasErrorLog: logs.hasErrorLog,
      isErrorLogAlone: access.length === 0 && !mayGrow,
      errorLogCount: mayGrow ? Infinity : errors.length + mixed,
      details: 'refused',
      onDecision: (event) => {
        if ((this.session.engine.pool.flags[event]! & FLAG.late) !== 0) options.onLate?.();
        this.aggregator.decide(event);
      },
      onPlain: (plain) => this.aggregator.decidePlain(plain),
      onUnmatchedLine: (line) => this.aggregator.unmatchedLine(line),
      onMark: (mark, ms) => this.aggregator.mark(mark, ms, ''),
      onNote: (note) => {
        options.log.warn('cannot be evaluated', { note });
        // The session's first notes come while it is being made.
        notes.push(note);
        (this.aggregator as Aggregator | undefined)?.note(note);
      },
    });
    this.aggregator = new Aggregator(this.session, {
      instance: options.instance,
      sink: new PrivateRows(this.rows, options.privacy),
    });
    for (const note of notes) this.aggregator.note(note);
    // With the live ones: a state can hold lines of theirs.
    const isLeftOut = (log: AccessLog): boolean => logs.liveLeftOut.includes(log);
    this.logs = new LogList([...errors, ...access.filter((log) => !isLeftOut(log))]);
    const mayShow = access.some(({ file }) => showsZone(file.scanner)) || mayGrow;
    this.zone = zoneFinder(options, mayShow);
    const sink = countingSink(this.aggregator);
    this.sources = new TailSources(this.session, sink, this.logs, this.zone);
  }

  /** Hands on what is not younger than this; Infinity decides all that waits. */
  async handOn(untilMs: number): Promise<void> {
    this.isDrained = untilMs === Infinity;
    if (this.isDrained) this.zone.settle();
    await this.sources.handOn(untilMs);
    if (!this.isDrained) return;
    this.session.finish(true);
    this.aggregator.flush();
  }

  /** A log has come that was not there at the start. */
  tellLog(log: TailLog): void {
    const { path, kind } = log;
    this.#options.log.info('follows another log', { path, kind });
    const { formats, hasErrorLog } = this.#options.logs;
    const isUnexpected =
      kind === 'error'
        ? !hasErrorLog
        : formats.every(hasConnection) && !hasConnection(log.file.scanner);
    if (!isUnexpected) return;
    const hint = 'start again, so that error-log lines and requests are joined in view of it';
    this.#options.log.warn('a log of a kind that was not there at the start', { path, hint });
  }
}

function hasConnection(scanner: LineScanner): boolean {
  return new AccessFields(scanner).hasConnection;
}

/** @param mayShow whether an access log can tell the zone of the error logs' times */
function zoneFinder({ zone, log }: TailReplayOptions, mayShow: boolean): ZoneFinder {
  return new ZoneFinder(zone ?? (mayShow ? undefined : 'system'), (offsetMinutes) => {
    log.warn(
      "the access logs show another offset from UTC than the error logs' times are read with; " +
        'give --timezone with the name of the zone',
      { offsetMinutes },
    );
  });
}
