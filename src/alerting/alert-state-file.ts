/**
 * What the daemon remembers of alerts over a restart: one JSON file, whole or not there.
 *
 * Alerts and the queue of the webhook are written together, so that an alert that fires and the
 * message that says so are both there or both not.
 */
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { EXIT, InputError } from '../errors.js';
import type { BookState } from './alert-book.js';
import type { QueuedMessage } from './webhook.js';

const VERSION = 1;

export interface AlertState extends BookState {
  readonly queue: readonly QueuedMessage[];
}

/** The file of one instance. @param folder of the daemon's state */
export function alertStatePath(folder: string, instance: string): string {
  return join(folder, `alerts-${encodeURIComponent(instance)}.json`);
}

/**
 * @returns undefined where there is none
 * @throws InputError 78 for a file that is none of ours, 74 for one that cannot be read
 */
export async function readAlertState(path: string): Promise<AlertState | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    const { code = 'unreadable' } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new InputError(`${path}: the state of alerts cannot be read (${code})`, EXIT.io, {
      cause,
    });
  }
  const state = parse(text);
  if (state !== undefined) return state;
  throw new InputError(
    `${path}: expected the state of alerts, version ${VERSION}, found something else\n` +
      '  Remove it: alerts that fire are then notified once more.',
    EXIT.configuration,
  );
}

function parse(text: string): AlertState | undefined {
  try {
    const found = JSON.parse(text) as Partial<AlertState> & { version?: unknown };
    const isOurs =
      found.version === VERSION && Array.isArray(found.alerts) && Array.isArray(found.queue);
    return isOurs ? (found as AlertState) : undefined;
  } catch {
    return undefined;
  }
}

/** Writes beside, then renames; the file is ours alone. @throws what the file system says */
export async function writeAlertState(path: string, state: AlertState): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const file = await open(`${path}.tmp`, 'w', 0o600);
  try {
    await file.writeFile(`${JSON.stringify({ version: VERSION, ...state })}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.tmp`, path);
}
