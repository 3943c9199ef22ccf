/**
 * The store's side of the daemon: spool, sender, and when reading has to stop.
 *
 * Reading goes on while the store is away, slow or full, until the spool holds as much as it may;
 * then it stops, and the lines wait in their logs. Each change is told once.
 *
 * Not here: reading (tailer.ts).
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
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
  /** Ends the waiting for a store that was away at the very first start. */
  readonly ending?: AbortSignal;
  /** Of the first wait for it; for tests. */
  readonly firstWaitMs?: number;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 5000;

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
   * Without a spool only the store knows what was counted before: then a server that is away is waited
   * for, and nothing is read meanwhile.
   *
   * @returns undefined when the wait was ended
   * @throws InputError for an embedded store that is not to be had, a server that refuses, and as
   * findStart() does
   */
  static async open(
    options: TailStoreOptions,
  ): Promise<{ readonly tailStore: TailStore; readonly start: Start } | undefined> {
    const { instance, log } = options;
    const path = join(options.spoolPath, encodeURIComponent(instance));
    let store = options.isEmbedded ? await options.open() : undefined;
    let spool: Spool | undefined;
    try {
      spool = await Spool.open(path, options.spoolMaxBytes);
      const begin = await beginning(options, spool, store);
      if (begin === undefined) {
        spool.close();
        return undefined;
      }
      const { start } = begin;
      store = begin.store;
      tellLostBlocks(store, log);
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

  /** Undefined while it could not be opened yet. */
  get store(): Store | undefined {
    return this.#sender.store;
  }

  /** The store took what was sent last, and the disk what is to be sent. */
  get isTaking(): boolean {
    return !this.isAway && !this.spool.isRefused;
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

interface Beginning {
  /** Undefined where it is away and the spool tells where to go on. */
  readonly store: Store | undefined;
  readonly start: Start;
}

/** @returns undefined when there is nothing to begin from, and the wait for it was ended */
async function beginning(
  options: TailStoreOptions,
  spool: Spool,
  opened: Store | undefined,
): Promise<Beginning | undefined> {
  const { instance, log, ending, events } = options;
  let waitMs = options.firstWaitMs ?? FIRST_WAIT_MS;
  for (let hasTold = false; ;) {
    let store = opened;
    try {
      store ??= await options.open();
      return { store, start: await findStart(instance, spool, store, log) };
    } catch (error) {
      if (store !== opened) await store?.close();
      if (opened !== undefined || !isAway(error)) throw error;
      const fields = { error: (error as Error).message };
      if (spool.newest !== undefined) {
        log.warn('the store is away: begins without it', fields);
        return { store: undefined, start: await findStart(instance, spool, undefined, log) };
      }
      events.onFailure();
      if (!hasTold) {
        log.warn('the store is away: waits for it, since only it knows what was counted', fields);
      }
      hasTold = true;
    }
    await pause(waitMs, undefined, { signal: ending }).catch(() => undefined);
    if (ending?.aborted === true) return undefined;
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
  }
}

/** The store did not answer; what a person has to put right has no cause. */
function isAway(error: unknown): boolean {
  return error instanceof InputError && error.exitCode === EXIT.io && error.cause !== undefined;
}

function tellLostBlocks(store: Store | undefined, log: JsonLog): void {
  const tables = store?.lostBlocksOf ?? [];
  if (tables.length === 0) return;
  log.info('the store was killed in the middle of a block: it is sent again', { tables });
}
