/**
 * When to poll: at a steady pace, which works on every file system, and sooner when the kernel
 * tells of a change.
 *
 * fs.watch is a hint and no more: over NFS it says nothing, and it can be refused for want of
 * inotify watches. Nothing but the delay depends on it.
 */
import { watch, type FSWatcher } from 'node:fs';

/** What a follower waits on between polls. Tests have one of their own, without time. */
export interface Waker {
  /** Resolves when it is time to poll; at once when wake() was called since the last time. */
  wait(): Promise<void>;
  wake(): void;
  /** Folders whose changes wake it, from now on. */
  watch(folders: readonly string[]): void;
  close(): void;
}

export interface TimedWakerOptions {
  /** The longest wait. */
  readonly intervalMs?: number;
  /** The shortest: a busy log changes all the time. */
  readonly pauseMs?: number;
}

const DEFAULT_INTERVAL_MS = 500;
const DEFAULT_PAUSE_MS = 50;

export class TimedWaker implements Waker {
  readonly #intervalMs: number;
  readonly #pauseMs: number;
  readonly #watchers = new Map<string, FSWatcher>();
  #isWoken = false;
  #isClosed = false;
  #endSleep: (() => void) | undefined;
  #isWakeable = false;

  constructor(options: TimedWakerOptions = {}) {
    this.#intervalMs = options.intervalMs ?? DEFAULT_INTERVAL_MS;
    this.#pauseMs = options.pauseMs ?? DEFAULT_PAUSE_MS;
  }

  async wait(): Promise<void> {
    if (this.#isClosed) return;
    await this.#sleep(this.#pauseMs, false);
    if (!this.#isWoken) await this.#sleep(this.#intervalMs - this.#pauseMs, true);
    this.#isWoken = false;
  }

  wake(): void {
    this.#isWoken = true;
    if (this.#isWakeable) this.#endSleep?.();
  }

  watch(folders: readonly string[]): void {
    if (this.#isClosed) return;
    for (const [folder, watcher] of this.#watchers) {
      if (folders.includes(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    for (const folder of folders) {
      if (!this.#watchers.has(folder)) this.#watchFolder(folder);
    }
  }

  /** Ends a wait that is going on, and all to come. */
  close(): void {
    this.#isClosed = true;
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
    this.#isWoken = true;
    this.#endSleep?.();
  }

  #watchFolder(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, (event) => {
        // The folder itself may have been renamed or removed: watch anew what is there then.
        if (event === 'rename') this.#forget(folder, watcher);
        this.wake();
      });
      watcher.on('error', () => {
        this.#forget(folder, watcher);
      });
      this.#watchers.set(folder, watcher);
    } catch {
      // It is not there yet, or cannot be watched: the pace goes on, and the next call tries again.
    }
  }

  #forget(folder: string, watcher: FSWatcher): void {
    watcher.close();
    if (this.#watchers.get(folder) === watcher) this.#watchers.delete(folder);
  }

  #sleep(ms: number, isWakeable: boolean): Promise<void> {
    this.#isWakeable = isWakeable;
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#endSleep = undefined;
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#endSleep = end;
    });
  }
}
