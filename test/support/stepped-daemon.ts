/**
 * The daemon's steps in this process, over logs that grow and rotate between them; and the same steps
 * done again from any state that was kept, as a restart does them.
 *
 * Every record is kept whole and in memory, which the daemon's own spool does not do. Not here: the store, and
 * kills (kill-rounds.ts).
 */
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { JsonLog } from '../../src/daemon/json-log.js';
import { Spool, type SpoolRecord, type TableRows } from '../../src/daemon/spool.js';
import { tailGeneration, type TailGeneration } from '../../src/daemon/tail-generations.js';
import { findTailLogs, type TailLogs } from '../../src/daemon/tail-logs.js';
import type { Start } from '../../src/daemon/tail-start.js';
import { stepsAfter, type StepRange } from '../../src/daemon/tail-steps.js';
import { Tailer } from '../../src/daemon/tailer.js';
import { readConfs } from '../../src/pipeline/confs.js';
import { KEEP_ADDRESSES, Privacy } from '../../src/pipeline/privacy.js';
import { StateSeal } from '../../src/pipeline/state-seal.js';
import { unpackState } from '../../src/store/write-ahead.js';
import type { LogLine } from './tail-site.js';

const SPOOL_BYTES = 1 << 30;
const LOGS = ['access.log', 'error.log'] as const;

export interface SteppedOptions {
  /** Bytes of one log that a step reads at most, twice. */
  readonly mostBytes: number;
  readonly latenessMs: number;
}

/** What one tailer has put into its spool. */
interface Recorded {
  readonly tailer: Tailer;
  readonly records: Map<number, SpoolRecord>;
  readonly close: () => Promise<void>;
}

export class SteppedDaemon {
  /** Everything that it has said; nothing of it may be an error. */
  said = '';
  readonly #folder: string;
  readonly #options: SteppedOptions;
  readonly #generations: readonly TailGeneration[];
  readonly #rotations = { 'access.log': 0, 'error.log': 0 };
  #first: Recorded | undefined;
  #spools = 0;

  /** @param folder an empty one, for logs and spools */
  constructor(folder: string, conf: string, options: SteppedOptions) {
    this.#folder = folder;
    this.#options = options;
    this.#generations = readConfs([conf]).map(tailGeneration);
    for (const name of LOGS) writeFileSync(this.#path(name), '');
  }

  /** Appends text, whole lines or not. */
  append(name: LogLine['name'], text: string): void {
    appendFileSync(this.#path(name), text, 'latin1');
  }

  rotate(name: LogLine['name']): void {
    for (let n = this.#rotations[name]; n >= 1; n--) {
      renameSync(this.#path(`${name}.${n}`), this.#path(`${name}.${n + 1}`));
    }
    renameSync(this.#path(name), this.#path(`${name}.1`));
    writeFileSync(this.#path(name), '');
    this.#rotations[name]++;
  }

  /** Does a step, and closes a record after it. @param isWhole with the state */
  async step(isWhole: boolean): Promise<void> {
    this.#first ??= await this.#start(BEGIN);
    await this.#first.tailer.step();
    await this.#first.tailer.commit({ isWhole });
  }

  async drain(): Promise<void> {
    await this.#first!.tailer.drain();
  }

  /** All rows of each record, in order. */
  get records(): ReadonlyMap<number, readonly TableRows[]> {
    return tablesOf(this.#first!.records);
  }

  /** Sequences of records that have a state; 0 for the state before anything. */
  get states(): readonly number[] {
    const kept = [...this.#first!.records].filter(([, { state }]) => state !== undefined);
    return [0, ...kept.map(([sequence]) => sequence)];
  }

  /**
   * Does the steps after a state again, up to a record, and goes on from there in steps of its own.
   *
   * @returns the records of the steps done again, and the later ones
   */
  async again(from: number, to: number): Promise<ReadonlyMap<number, readonly TableRows[]>> {
    const { records } = this.#first!;
    const state = from === 0 ? undefined : records.get(from)!.state!;
    const checkpoint =
      state === undefined
        ? undefined
        : { instance: 'i', sequence: from, logTimeMs: 0, ...(await unpackState(state)) };
    const ranges = [...records].flatMap(([sequence, { place }]): readonly StepRange[] =>
      sequence > to ? [] : place.ranges.filter((range) => range.sequence === sequence),
    );
    const second = await this.#start({ checkpoint, steps: stepsAfter(from, ranges), closed: from });
    await second.tailer.drain();
    await second.close();
    return tablesOf(second.records);
  }

  async close(): Promise<void> {
    await this.#first?.close();
  }

  async #start(start: Start): Promise<Recorded> {
    const records = new Map<number, SpoolRecord>();
    const path = join(this.#folder, `spool-${++this.#spools}`);
    const spool = await Spool.open(path, SPOOL_BYTES);
    spool.append = (place, tables, state) => {
      records.set(place.sequence, { place, tables, state });
      return Promise.resolve();
    };
    const log = new JsonLog(
      new Writable({
        write: (text, _, done) => {
          this.said += String(text);
          done();
        },
      }),
    );
    const tailer = new Tailer({
      instance: 'i',
      generations: this.#generations,
      logs: await this.#findLogs(),
      latenessMs: this.#options.latenessMs,
      mostBytes: this.#options.mostBytes,
      zone: { offsetMinutes: 0 },
      privacy: new Privacy(KEEP_ADDRESSES),
      seal: new StateSeal(),
      log,
      spool,
    });
    await tailer.begin(start);
    const close = async (): Promise<void> => {
      await tailer.close();
      spool.close();
    };
    return { tailer, records, close };
  }

  #findLogs(): Promise<TailLogs> {
    const confs = this.#generations.map(({ conf }) => conf);
    return findTailLogs([this.#path('access.log')], [this.#path('error.log')], confs);
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }

  /** What a log holds, its rotated pieces included. */
  textOf(name: LogLine['name']): string {
    const pieces = Array.from({ length: this.#rotations[name] }, (_, i) => `${name}.${i + 1}`);
    return [...pieces.reverse(), name].map((piece) => readFileSync(this.#path(piece))).join('');
  }
}

const BEGIN: Start = { checkpoint: undefined, steps: [], closed: 0 };

function tablesOf(
  records: ReadonlyMap<number, SpoolRecord>,
): ReadonlyMap<number, readonly TableRows[]> {
  return new Map([...records].map(([sequence, { tables }]) => [sequence, tables]));
}
