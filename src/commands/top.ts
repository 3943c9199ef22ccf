/**
 * `limitlens top`: what the limits do now, in a terminal.
 *
 * Not here: where the numbers come from (top-looks.ts), what a frame says (../top).
 */
import { setTimeout as wait } from 'node:timers/promises';
import { EXIT, InputError } from '../errors.js';
import { frame, type FrameLook, type FrameState } from '../top/frame.js';
import { Screen } from '../top/screen.js';
import type { KeyOrder, TopSnapshot } from '../top/snapshot.js';
import type { Output } from './output.js';
import { LogLook, StoreLook, type Look, type LookOptions } from './top-looks.js';

export interface TopOptions extends LookOptions {
  readonly intervalMs: number;
  readonly top: number;
  readonly sort: KeyOrder;
  readonly ascii: boolean;
  readonly format: 'text' | 'json';
}

const BUCKET_MS = 10_000;
const LONGEST_WINDOW_MS = 86_400_000;
const SHORTEST_INTERVAL_MS = 500;
/** As many keys as the highest screen shows. */
const KEYS_ON_SCREEN = 200;
const COLUMNS_WITHOUT_TERMINAL = 120;

/**
 * Logs are read where files or a configuration are given; otherwise the store is asked.
 *
 * @throws InputError usage (64) where there is no terminal, or a time is out of bounds; as openStore(),
 *   findTailLogs() and readConfs() do
 */
export async function topCommand(
  files: readonly string[],
  options: TopOptions,
  output: Output,
): Promise<void> {
  const windowMs = Math.ceil(options.windowMs / BUCKET_MS) * BUCKET_MS;
  if (windowMs < BUCKET_MS || windowMs > LONGEST_WINDOW_MS) {
    throw new InputError('--window: expected 10s to 24h', EXIT.usage);
  }
  if (options.intervalMs < SHORTEST_INTERVAL_MS) {
    throw new InputError('--interval: expected 500ms or more', EXIT.usage);
  }
  const isPrinted = options.once || options.format === 'json';
  if (!isPrinted && !process.stdout.isTTY) {
    throw new InputError(
      'standard output is no terminal: expected --once, or --format json',
      EXIT.usage,
    );
  }
  const isOfLogs = files.length + options.errorLog.length + options.conf.length > 0;
  const choice = { ...options, windowMs };
  const look = isOfLogs ? await LogLook.open(files, choice) : new StoreLook(choice);
  try {
    await (isPrinted ? print(look, options, output) : watch(look, options));
  } finally {
    await look.close();
    for (const note of look.notes) output.note(note);
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
      const { where, waitsFor } = look;
      const state = { where, waitsFor, nowMs: Date.now(), order: sort, trouble: '' };
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
      ...{ where: look.where, waitsFor: look.waitsFor, nowMs: Date.now(), order, trouble },
      ...{ isLive: true, isPaused },
    };
    screen.draw(frame(snapshot, state, { ...screen.size, ...style }));
  };
  const end = (): void => {
    isDone = true;
    // At once, whatever the store is busy with.
    screen.close();
    look.stop();
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
