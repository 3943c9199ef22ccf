/**
 * `limitlens top`: what the limits do now, in a terminal, from the store.
 *
 * An embedded store belongs to one process at a time, so it is opened for each look and closed
 * after it: an import of every few minutes gets in between, and while it runs the last numbers
 * stay. A server stays connected.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { EXIT, InputError } from '../errors.js';
import { frame, type FrameLook, type FrameState } from '../top/frame.js';
import { Screen } from '../top/screen.js';
import { readSnapshot, type KeyOrder, type TopSnapshot } from '../top/snapshot.js';
import { openStore, type Store } from '../store/store.js';
import type { Output } from './output.js';
import { storeOptions, type StoreChoice } from './store-choice.js';

export interface TopOptions extends StoreChoice {
  readonly instance?: string;
  readonly intervalMs: number;
  readonly windowMs: number;
  readonly top: number;
  readonly sort: KeyOrder;
  readonly once: boolean;
  readonly ascii: boolean;
  readonly format: 'text' | 'json';
}

const BUCKET_MS = 10_000;
const LONGEST_WINDOW_MS = 86_400_000;
const SHORTEST_INTERVAL_MS = 500;
/** As many keys as the highest screen shows. */
const KEYS_ON_SCREEN = 200;
const COLUMNS_WITHOUT_TERMINAL = 120;

/** @throws InputError usage (64) where there is no terminal, or a time is out of bounds */
export async function topCommand(options: TopOptions, output: Output): Promise<void> {
  const windowMs = Math.ceil(options.windowMs / BUCKET_MS) * BUCKET_MS;
  if (windowMs < BUCKET_MS || windowMs > LONGEST_WINDOW_MS) {
    throw new InputError('--window: expected 10s to 24h', EXIT.usage);
  }
  if (options.intervalMs < SHORTEST_INTERVAL_MS) {
    throw new InputError('--interval: expected 500ms or more', EXIT.usage);
  }
  const look = new Look({ ...options, windowMs });
  try {
    if (options.once || options.format === 'json') await print(look, options, output);
    else if (process.stdout.isTTY) await watch(look, options);
    else {
      throw new InputError(
        'standard output is no terminal: expected --once, or --format json',
        EXIT.usage,
      );
    }
  } finally {
    await look.close();
  }
}

/** The store, asked again and again. */
class Look {
  readonly #options: TopOptions;
  #server: Store | undefined;

  constructor(options: TopOptions) {
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
      return await readSnapshot(store, {
        ...{ windowMs, order, keys, nowMs: Date.now() },
        ...(instance === undefined ? {} : { instance }),
      });
    } finally {
      if (!isServer) await store.close();
    }
  }

  async close(): Promise<void> {
    await this.#server?.close();
    this.#server = undefined;
  }

  #open(): Promise<Store> {
    return openStore({ ...storeOptions(this.#options), createIfMissing: false, readOnly: true });
  }
}

/** Frames or JSON lines to standard output: one, or one for each interval. */
async function print(look: Look, options: TopOptions, output: Output): Promise<void> {
  const { format, once, sort, top, intervalMs } = options;
  const { stdout, env } = process;
  const shape: FrameLook = {
    columns: stdout.columns ?? (Number(env['COLUMNS']) || COLUMNS_WITHOUT_TERMINAL),
    rows: Infinity,
    isUtf8: !options.ascii && isUtf8(env),
    hasColour: stdout.isTTY && hasColour(env),
  };
  for (;;) {
    const snapshot = await look.snapshot(sort, top);
    if (format === 'json') await output.write(`${JSON.stringify(snapshot)}\n`);
    else {
      const state = { where: look.where, nowMs: Date.now(), order: sort, trouble: '' };
      const lines = frame(snapshot, { ...state, isLive: false, isPaused: false }, shape);
      await output.write(`${lines.map((line) => line.trimEnd()).join('\n')}\n`);
    }
    if (once || output.isGone) return;
    await wait(intervalMs);
  }
}

/** The terminal until somebody has seen enough. */
async function watch(look: Look, options: TopOptions): Promise<void> {
  const { env } = process;
  const style = { isUtf8: !options.ascii && isUtf8(env), hasColour: hasColour(env) };
  let snapshot: TopSnapshot | null = null;
  let order = options.sort;
  let trouble = '';
  let isPaused = false;
  let isDone = false;
  let pause = new AbortController();

  const draw = (): void => {
    const state: FrameState = {
      ...{ where: look.where, nowMs: Date.now(), order, trouble, isLive: true, isPaused },
    };
    screen.draw(frame(snapshot, state, { ...screen.size, ...style }));
  };
  const end = (): void => {
    isDone = true;
    // At once, whatever the store is busy with.
    screen.close();
    pause.abort();
  };
  const onKey = (key: string): void => {
    if (key === 'q' || key === 'Q' || key === '\u0003' || key === '\u0004') end();
    else if (key === ' ') isPaused = !isPaused;
    else if (key === 's') order = order === 'rejected' ? 'excess' : 'rejected';
    else return;
    if (isDone) return;
    draw();
    pause.abort();
  };
  const screen = new Screen(process.stdin, process.stdout, { onKey, onRedraw: draw, onEnd: end });

  screen.open();
  try {
    draw();
    while (!isDone) {
      pause = new AbortController();
      const asked = order;
      if (!isPaused) {
        ({ snapshot, trouble } = await refreshed(look, asked, snapshot));
        draw();
      }
      // What was pressed meanwhile is done at once.
      if (asked !== order) continue;
      await wait(options.intervalMs, undefined, { signal: pause.signal }).catch(() => undefined);
    }
  } finally {
    screen.close();
  }
}

/** The newest numbers; the last ones with the reason when there are none to be had just now. */
async function refreshed(
  look: Look,
  order: KeyOrder,
  last: TopSnapshot | null,
): Promise<{ snapshot: TopSnapshot | null; trouble: string }> {
  try {
    return { snapshot: await look.snapshot(order, KEYS_ON_SCREEN), trouble: '' };
  } catch (error) {
    if (!(error instanceof InputError) || error.exitCode !== EXIT.io) throw error;
    return { snapshot: last, trouble: error.message.split('\n')[0]! };
  }
}

/** As the locale has it: what is named first decides (setlocale(3)). */
function isUtf8(env: NodeJS.ProcessEnv): boolean {
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '';
  return /utf-?8/i.test(locale);
}

/** https://no-color.org */
function hasColour(env: NodeJS.ProcessEnv): boolean {
  return !env['NO_COLOR'] && env['TERM'] !== 'dumb';
}
