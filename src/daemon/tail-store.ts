/**
 * The store's side of the daemon: spool, sender, and when reading has to stop.
 *
 * Reading goes on while the store is away, slow or full, until the spool holds as much as it may;
 * then it stops, and the lines wait in their logs. Each change is told once.
 *
 * Not here: reading (tailer.ts).
 */
import { join } from 'node:path';
import { EXIT, InputError } from '../errors.js';
import type { Store } from '../store/store.js';
import type { JsonLog } from './json-log.js';
import { Spool } from './spool.js';
import { SpoolSender, type SenderEvents } from './spool-sender.js';
import { findStart, type Start } from './tail-start.js';

export interface TailStoreOptions {
  readonly instance: string;
  /** Folder that holds a spool per instance. */
  readonly spoolPath: string;
  readonly spoolMaxBytes: number;
  readonly open: () => Promise<Store>;
  /** An embedded store is there or not to be had; and the spool may lie in its folder. */
  readonly isEmbedded: boolean;
  readonly log: JsonLog;
  readonly events: SenderEvents;
}

export class TailStore {
  readonly spool: Spool;
  readonly #sender: SpoolSender;
  readonly #log: JsonLog;
  #sending: Promise<void> = Promise.resolve();
  #error: unknown;
  #isHeld = false;

  private constructor(spool: Spool, sender: SpoolSender, log: JsonLog) {
    this.spool = spool;
    this.#sender = sender;
    this.#log = log;
  }

  /**
   * Opens spool and store, and finds out where to go on.
   *
   * @throws InputError for a store that is not to be had and no spool to begin from, and as
   * findStart() does
   */
  static async open(
    options: TailStoreOptions,
  ): Promise<{ readonly tailStore: TailStore; readonly start: Start }> {
    const { instance, log } = options;
    const path = join(options.spoolPath, encodeURIComponent(instance));
    let store = options.isEmbedded ? await options.open() : undefined;
    let spool: Spool | undefined;
    try {
      spool = await Spool.open(path, options.spoolMaxBytes);
      store ??= await openOrSpool(options, spool);
      tellLostBlocks(store, log);
      const start = await findStart(instance, spool, store, log);
      const sender = new SpoolSender({ ...options, spool }, store);
      return { tailStore: new TailStore(spool, sender, log), start };
    } catch (error) {
      spool?.close();
      await store?.close();
      throw error;
    }
  }

  /** The store did not take what was sent last. */
  get isAway(): boolean {
    return this.#sender.isAway;
  }

  /** Asks the store. @throws InputError (io) where there is none yet, and as Store.query() does */
  readonly query: Store['query'] = async (...question) => {
    const { store } = this.#sender;
    if (store === undefined) throw new InputError('the store is away', EXIT.io);
    return store.query(...question);
  };

  /** Begins to send. */
  run(): void {
    this.#sending = this.#sender.run().catch((error: unknown) => {
      this.#error = error;
      this.spool.wake();
    });
  }

  /** Reading has to wait. @throws what ended the sending */
  get isHeld(): boolean {
    if (this.#error !== undefined) throw this.#error as Error;
    const { isFull, waitingBytes } = this.spool;
    if (isFull !== this.#isHeld) {
      this.#isHeld = isFull;
      const fields = { spool: this.spool.path, bytes: waitingBytes };
      if (isFull)
        this.#log.error('the spool is full: stops reading until the store takes it', fields);
      else this.#log.info('the spool has room again: goes on reading', fields);
    }
    return isFull;
  }

  /** Waits for room in a spool that is full; false when the store does not take what is in it. */
  async hasRoom(): Promise<boolean> {
    while (this.isHeld) {
      if (this.isAway) return false;
      await this.spool.change();
    }
    return true;
  }

  /** Waits until what is in the spool has been sent, or is not taken. */
  async end(): Promise<void> {
    this.#sender.end();
    await this.#sending;
    if (this.#error !== undefined) throw this.#error as Error;
    const { waiting, path } = this.spool;
    if (waiting === 0) return;
    this.#log.warn('ends with records that the store does not have: the next start sends them', {
      records: waiting,
      spool: path,
    });
  }

  async close(): Promise<void> {
    this.#sender.end();
    await this.#sending;
    await this.#sender.close();
    this.spool.close();
  }
}

/** @returns undefined where the store is away and the spool tells where to go on */
async function openOrSpool(options: TailStoreOptions, spool: Spool): Promise<Store | undefined> {
  try {
    return await options.open();
  } catch (error) {
    const isAway = error instanceof InputError && error.exitCode === EXIT.io;
    if (!isAway || spool.newest === undefined) throw error;
    options.log.warn('the store is away: begins without it', { error: error.message });
    return undefined;
  }
}

function tellLostBlocks(store: Store | undefined, log: JsonLog): void {
  const tables = store?.lostBlocksOf ?? [];
  if (tables.length === 0) return;
  log.info('the store was killed in the middle of a block: it is sent again', { tables });
}
