/**
 * Logs that are followed to be looked at: replayed as they grow, with nothing kept on disk.
 *
 * Of a long log its end is read alone, so that there is something to see at once; the limiter begins
 * without memory there. Not here: what is made of the rows (../top), state, spool and store, which
 * the daemon has (tailer.ts).
 */
import { Writable } from 'node:stream';
import type { LogZone } from '../../parsers/time.js';
import { expandPattern } from '../input/follow-set.js';
import { knownToItsEnd } from '../input/follow-end.js';
import type { KnownLog } from '../input/follow-progress.js';
import { KEEP_ADDRESSES, Privacy } from '../pipeline/privacy.js';
import type { GenerationInput } from '../replay/generations.js';
import { holdMsOf } from './buffered-logs.js';
import { JsonLog } from './json-log.js';
import type { TableRows } from './spool.js';
import { tailGeneration, type TailGeneration } from './tail-generations.js';
import type { TailLogs } from './tail-logs.js';
import { TailReader } from './tail-reader.js';
import { TailReplay } from './tail-replay.js';

export interface WatchOptions {
  readonly instance: string;
  readonly generations: readonly GenerationInput[];
  readonly logs: TailLogs;
  readonly latenessMs: number;
  /** Of the error logs' times; undefined to find it out from the access logs. */
  readonly zone: LogZone | undefined;
  /** Of each log that is there. */
  readonly endBytes: number;
  /** What there is to tell a person; each once. */
  readonly onNote: (note: string) => void;
}

export class WatchedLogs {
  readonly #replay: TailReplay;
  readonly #reader: TailReader;
  readonly #latenessMs: number;
  readonly #generations: readonly TailGeneration[];
  #hasReloaded = false;

  private constructor(options: WatchOptions, known: readonly KnownLog[]) {
    const { logs, generations } = options;
    this.#latenessMs = options.latenessMs;
    this.#generations = generations.map(tailGeneration);
    this.#replay = new TailReplay({
      ...options,
      generations: this.#generations,
      privacy: new Privacy(KEEP_ADDRESSES),
      log: noteLog(options.onNote),
    });
    const { sources, zone, logs: list } = this.#replay;
    this.#reader = new TailReader(list, sources, {
      known,
      patterns: logs.patterns,
      teller: logs.teller,
      zone,
      holdMs: holdMsOf(logs, options.latenessMs),
      onLog: (log) => {
        this.#replay.tellLog(log);
      },
      onNotice: ({ kind, path, message }) => {
        if (kind === 'lost' || kind === 'unreadable') options.onNote(`${path}: ${message}`);
      },
    });
  }

  static async open(options: WatchOptions): Promise<WatchedLogs> {
    const known: KnownLog[] = [];
    for (const pattern of options.logs.patterns) {
      for (const path of await expandPattern(pattern)) {
        const log = await knownToItsEnd(path, options.endBytes);
        if (log !== undefined) known.push(log);
      }
    }
    return new WatchedLogs(options, known);
  }

  /** Whether the other's configuration says the same. */
  isOf(other: WatchedLogs): boolean {
    const identities = (logs: WatchedLogs): string =>
      logs.#generations.map(({ identity }) => identity).join();
    return identities(this) === identities(other);
  }

  /** Reads and replays some of what is there. @returns whether there may be more at once */
  async step(): Promise<boolean> {
    const { ranges, untilMs, isSpent, reloadMs } = await this.#reader.gather();
    if (reloadMs !== undefined) this.#hasReloaded = true;
    if (ranges.length === 0) return false;
    await this.#replay.handOn(untilMs);
    return isSpent;
  }

  /** Decides all that waits: nothing more is to be read. */
  async finish(): Promise<void> {
    await this.#replay.handOn(Infinity);
  }

  /** Whether nginx has written since this was asked last that it read its configuration. */
  takeReload(): boolean {
    const has = this.#hasReloaded;
    this.#hasReloaded = false;
    return has;
  }

  /** What was decided since this was asked last; of a bucket that is not over, as it is so far. */
  takeRows(): TableRows[] {
    const { aggregator, rows, sources } = this.#replay;
    aggregator.flush();
    const tables = rows.tables();
    rows.clear();
    const open = this.#reader.progress().filter(({ complete }) => !complete);
    const isOpen = new Set(open.map(({ sourceId }) => sourceId));
    sources.drop((id) => !isOpen.has(id));
    return tables;
  }

  /** Log time up to which all is decided; -Infinity before the first line. */
  get reachedMs(): number {
    return this.#replay.session.latestMs - this.#latenessMs;
  }

  async close(): Promise<void> {
    await this.#reader.close();
  }
}

/** What the daemon would write to its log. */
function noteLog(onNote: (note: string) => void): JsonLog {
  const stream = new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done): void {
      const { message, note, path } = JSON.parse(line) as Record<string, string | undefined>;
      onNote([path, message, note].filter((part) => part !== undefined).join(': '));
      done();
    },
  });
  return new JsonLog(stream, 'warn');
}
