/**
 * Sends what is in the spool to the store, oldest first, until it is taken.
 *
 * Each record is an intent, its blocks under tokens, and a checkpoint where it has a state
 * (../store/write-ahead.ts), so one that was sent in part, or of which no answer came, is sent again
 * whole. Whatever the store answers, the record waits; only another writer of the same instance ends
 * the sending, since the two would count the same lines.
 *
 * Units: milliseconds, seconds where it says so. Not here: the files (spool.ts).
 */
import { performance } from 'node:perf_hooks';
import { EXIT, InputError } from '../errors.js';
import { clickHouseCode } from '../store/retry.js';
import type { Store } from '../store/store.js';
import type { TableName } from '../store/tables.js';
import { blockToken, ContestedError, type Intent } from '../store/write-ahead.js';
import type { JsonLog } from './json-log.js';
import type { Place, Spool, SpoolRecord } from './spool.js';

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** How long a store that fails is tried again when the daemon ends. */
const INSIST_MS = 5000;

export interface SenderEvents {
  /** A row of a record that the store has taken. */
  readonly onStored: (table: string, row: readonly unknown[]) => void;
  /** A block was taken. */
  readonly onInsert: (seconds: number) => void;
  /** A record was refused or not answered; it will be sent again. */
  readonly onFailure: () => void;
  /** The first record was taken. */
  readonly onFirst: () => void;
}

export interface SenderOptions {
  readonly instance: string;
  readonly spool: Spool;
  /** Opens the store, each time that there is none. */
  readonly open: () => Promise<Store>;
  readonly log: JsonLog;
  readonly events: SenderEvents;
  /** Of the first wait after a failure; for tests. */
  readonly firstWaitMs?: number;
}

export class SpoolSender {
  readonly #options: SenderOptions;
  #store: Store | undefined;
  #isEnding = false;
  #giveUpMs = Infinity;
  #isAway = false;
  #hasTaken = false;
  #endWait: () => void = () => undefined;

  /** @param store when it is open already */
  constructor(options: SenderOptions, store?: Store) {
    this.#options = options;
    this.#store = store;
    this.#isAway = store === undefined;
  }

  /** The last attempt failed. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** To be asked; undefined while it could not be opened yet. */
  get store(): Store | undefined {
    return this.#store;
  }

  /**
   * Sends until end() is called and either nothing is left or the store fails for a while.
   *
   * @throws ContestedError when another process writes to the instance
   */
  async run(): Promise<void> {
    const { spool } = this.#options;
    for (let waitMs = this.#firstWaitMs; ;) {
      const sequence = spool.first;
      if (sequence === undefined) {
        if (this.#isEnding) return;
        await spool.change();
        continue;
      }
      const record = await spool.read(sequence);
      try {
        await this.#send(record);
      } catch (error) {
        if (!isOfStore(error)) throw error;
        this.#failed(error as Error);
        if (performance.now() >= this.#giveUpMs) return;
        await this.#pause(waitMs);
        waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
        continue;
      }
      await spool.sent(sequence);
      this.#taken();
      waitMs = this.#firstWaitMs;
    }
  }

  /** Sends what is there, and does not wait long for a store that is away. */
  end(): void {
    if (!this.#isEnding) this.#giveUpMs = performance.now() + INSIST_MS;
    this.#isEnding = true;
    this.#endWait();
    this.#options.spool.wake();
  }

  async close(): Promise<void> {
    await this.#store?.close();
  }

  get #firstWaitMs(): number {
    return this.#options.firstWaitMs ?? FIRST_WAIT_MS;
  }

  async #send(record: SpoolRecord): Promise<void> {
    const { place, tables, state } = record;
    const { instance, open, events } = this.#options;
    this.#store ??= await open();
    const store = this.#store;
    const intent = intentOf(instance, place);
    // Of a commit the answer may have been lost, or the process killed before the record was removed.
    const isThere = state !== undefined && (await store.isCommitted(intent));
    if (!isThere) await this.#sendParts(store, intent, record);
    for (const { table, rows } of tables) for (const row of rows) events.onStored(table, row);
  }

  async #sendParts(store: Store, intent: Intent, record: SpoolRecord): Promise<void> {
    const { place, tables, state } = record;
    await store.begin(intent);
    for (const { table, columns, rows } of tables) {
      const began = performance.now();
      const block = { table: table as TableName, columns, rows };
      await store.insertBlock(block, blockToken(intent, table, 0));
      this.#options.events.onInsert((performance.now() - began) / 1000);
    }
    if (state !== undefined) {
      const { sources, logTimeMs } = place;
      const { instance, sequence } = intent;
      const checkpoint = { instance, sequence, sources, logTimeMs, packed: state };
      await store.commitPacked(intent, checkpoint);
    }
  }

  #taken(): void {
    const { log, events, spool } = this.#options;
    if (this.#isAway) log.info('the store takes again what is sent', { records: spool.waiting });
    if (!this.#hasTaken) events.onFirst();
    this.#isAway = false;
    this.#hasTaken = true;
  }

  #failed(error: Error): void {
    const { log, events, spool } = this.#options;
    events.onFailure();
    spool.wake();
    if (this.#isAway) return;
    this.#isAway = true;
    log.warn('the store does not take what is sent: it waits in the spool', {
      error: error.message,
      spool: spool.path,
    });
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#endWait = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

export function intentOf(instance: string, place: Place): Intent {
  const { sequence, ranges, startedBy } = place;
  return { instance, sequence, ranges, startedBy };
}

/** Whatever a store may answer: it may be mended, and nothing is lost by waiting. A bug is none. */
function isOfStore(error: unknown): boolean {
  if (error instanceof ContestedError) return false;
  if (clickHouseCode(error) !== undefined) return true;
  return error instanceof InputError && error.exitCode !== EXIT.usage;
}
