/**
 * Where `limitlens top` looks: into a store, or at logs as they grow.
 *
 * An embedded store belongs to one process at a time, so it is opened for each look and closed
 * after it: an import of every few minutes gets in between, and while it runs the last numbers
 * stay. A server stays connected. Logs need neither: they are replayed in memory, and of a long one
 * the end alone is read.
 */
import { findTailLogs } from '../daemon/tail-logs.js';
import { WatchedLogs } from '../daemon/watched-logs.js';
import { EXIT, InputError } from '../errors.js';
import { checkTimezone, readConfs } from '../pipeline/confs.js';
import { openStore, type Store } from '../store/store.js';
import { RecentRows } from '../top/recent-rows.js';
import { takeSnapshot, type KeyOrder, type TopSnapshot } from '../top/snapshot.js';
import { StoreInputs } from '../top/store-inputs.js';
import type { LogsChoice } from './replayed-logs.js';
import { storeOptions, type StoreChoice } from './store-choice.js';

const BUCKET_MS = 10_000;
/** Some hundred thousand lines, read within seconds. */
const END_BYTES = 64 << 20;
/** After so long a look shows what it has, however much there is still to be read. */
const LONGEST_READ_MS = 5000;
const MOST_NOTES = 20;

export interface LookOptions extends StoreChoice, LogsChoice {
  readonly instance?: string;
  /** A multiple of the bucket of 10 s. */
  readonly windowMs: number;
  /** All that is there is to be shown, as nothing more will come. */
  readonly once: boolean;
}

export interface Look {
  /** What is looked at. */
  readonly where: string;
  /** What there is nothing of before the first snapshot. */
  readonly waitsFor: string;
  /** For a person, when it is over. */
  readonly notes: readonly string[];
  snapshot(order: KeyOrder, keys: number): Promise<TopSnapshot>;
  /** Ends a snapshot that is being taken. */
  stop(): void;
  close(): Promise<void>;
}

export class StoreLook implements Look {
  readonly waitsFor = 'the store';
  readonly notes: readonly string[] = [];
  readonly #options: LookOptions;
  #server: Store | undefined;

  constructor(options: LookOptions) {
    this.#options = options;
  }

  get where(): string {
    const where = storeOptions(this.#options);
    // Without the password that a URL may hold.
    return where.url === undefined ? where.path! : new URL(where.url).host;
  }

  async snapshot(order: KeyOrder, keys: number): Promise<TopSnapshot> {
    const { instance, windowMs, clickhouse } = this.#options;
    const isServer = clickhouse !== undefined;
    const store = this.#server ?? (await this.#open());
    if (isServer) this.#server = store;
    try {
      return await takeSnapshot(new StoreInputs(store), {
        ...{ windowMs, order, keys, completeMs: Date.now() - BUCKET_MS },
        ...(instance === undefined ? {} : { instance }),
      });
    } finally {
      if (!isServer) await store.close();
    }
  }

  stop(): void {
    // A question takes no longer than the store's own bounds allow.
  }

  async close(): Promise<void> {
    await this.#server?.close();
    this.#server = undefined;
  }

  #open(): Promise<Store> {
    return openStore({ ...storeOptions(this.#options), createIfMissing: false, readOnly: true });
  }
}

export class LogLook implements Look {
  readonly waitsFor = 'the logs';
  readonly where: string;
  readonly #options: LookOptions;
  readonly #files: readonly string[];
  readonly #notes = new Set<string>();
  #logs: WatchedLogs;
  #rows: RecentRows;
  #readMs = -Infinity;
  #isStopped = false;

  private constructor(
    files: readonly string[],
    options: LookOptions,
    logs: WatchedLogs,
    where: string,
    notes: readonly string[],
  ) {
    this.#files = files;
    this.#options = options;
    this.#logs = logs;
    this.#rows = new RecentRows(options.windowMs);
    this.where = where;
    for (const note of notes) this.#note(note);
  }

  /** @throws InputError 64 for a store beside logs, or standard input; as findTailLogs() */
  static async open(files: readonly string[], options: LookOptions): Promise<LogLook> {
    if (options.store !== undefined || options.clickhouse !== undefined) {
      throw new InputError('give either logs or a store, not both', EXIT.usage);
    }
    if (files.includes('-')) {
      throw new InputError(
        'expected logs that are files: keys are read from standard input\n' +
          '  `limitlens tail` takes standard input into a store, and `limitlens top` shows that.',
        EXIT.usage,
      );
    }
    checkTimezone(options.timezone);
    const notes: string[] = [];
    const { logs, where } = await watched(files, options, (note) => notes.push(note));
    return new LogLook(files, options, logs, where, notes);
  }

  get notes(): readonly string[] {
    return [...this.#notes];
  }

  async snapshot(order: KeyOrder, keys: number): Promise<TopSnapshot> {
    const { windowMs, once } = this.#options;
    await this.#read();
    if (once) await this.#logs.finish();
    this.#rows.take(this.#logs.takeRows());
    const { sinceMs } = this.#rows;
    return takeSnapshot(this.#rows, {
      ...{ windowMs, order, keys, sinceMs: Number.isFinite(sinceMs) ? sinceMs : -Infinity },
      completeMs: once ? Date.now() - BUCKET_MS : this.#completeMs,
    });
  }

  stop(): void {
    this.#isStopped = true;
  }

  async close(): Promise<void> {
    await this.#logs.close();
  }

  /** In a log that is idle, nothing more comes for what is decided. */
  get #completeMs(): number {
    const isIdle = performance.now() - this.#readMs > this.#options.latenessMs + BUCKET_MS;
    return isIdle ? Infinity : this.#logs.reachedMs;
  }

  async #read(): Promise<void> {
    const beganMs = performance.now();
    const reached = this.#logs.reachedMs;
    let isMore = true;
    while (isMore && !this.#isStopped) {
      isMore = await this.#logs.step();
      if (!this.#options.once && performance.now() - beganMs > LONGEST_READ_MS) break;
    }
    if (this.#logs.reachedMs > reached) this.#readMs = performance.now();
    if (!this.#options.once && this.#logs.takeReload()) await this.#beginAnew();
  }

  /** nginx has read its configuration: if it says anything new, all begins from the logs' ends. */
  async #beginAnew(): Promise<void> {
    const next = await watched(this.#files, this.#options, (note) => {
      this.#note(note);
    }).catch((error: unknown) => {
      if (!(error instanceof InputError)) throw error;
      this.#note(`the configuration before stays: ${error.message}`);
      return undefined;
    });
    if (next === undefined) return;
    if (next.logs.isOf(this.#logs)) {
      await next.logs.close();
      return;
    }
    await this.#logs.close();
    this.#logs = next.logs;
    this.#rows = new RecentRows(this.#options.windowMs);
  }

  #note(note: string): void {
    if (this.#notes.size < MOST_NOTES) this.#notes.add(note);
  }
}

async function watched(
  files: readonly string[],
  options: LookOptions,
  onNote: (note: string) => void,
): Promise<{ readonly logs: WatchedLogs; readonly where: string }> {
  const generations = readConfs(options.conf);
  const confs = generations.map(({ conf }) => conf);
  const found = await findTailLogs(files, options.errorLog, confs, options);
  for (const { path, reason } of found.leftOut) onNote(`${path}: not followed, ${reason}`);
  const logs = await WatchedLogs.open({
    instance: options.instance ?? 'default',
    generations,
    logs: found,
    latenessMs: options.latenessMs,
    zone: options.timezone === undefined ? undefined : { iana: options.timezone },
    endBytes: END_BYTES,
    onNote,
  });
  return { logs, where: found.patterns.join(' ') };
}
