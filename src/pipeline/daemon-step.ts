/**
 * What a daemon has left to do in an instance, which an import must not go over.
 *
 * A daemon that was killed, or runs yet, has read lines that wait for their decision; its state in
 * the store is for it alone. An import would count none of those lines and know no zone.
 */
import { EXIT, InputError } from '../errors.js';
import type { Store } from '../store/store.js';

/** Enough of a daemon's state and ranges to know them by (../daemon/tail-state.ts). */
interface DaemonState {
  readonly tail?: { readonly isDrained: boolean };
}

/**
 * @throws InputError (io) when a daemon has to end its work in this instance first, with what to do
 */
export async function refuseUnfinishedDaemon(store: Store, instance: string): Promise<void> {
  const pending = await store.pendingIntent(instance);
  const isDaemons = pending?.ranges.some((range) => 'untilMs' in range) === true;
  if (!isDaemons && !(await hasWaiting(store, instance, pending !== undefined))) return;
  const by = isDaemons ? ` (${pending.startedBy})` : '';
  throw new InputError(
    `${store.where}: expected instance "${instance}" as an import or a drained daemon leaves it, ` +
      `found that limitlens tail${by} runs or was killed, and lines that it has read wait for their decision\n` +
      `  If it runs, it counts these logs by itself. If it was killed, start limitlens tail --instance ${instance} ` +
      'with its options of before and end it with SIGTERM: then import. Or import into another --instance.',
    EXIT.io,
  );
}

/** An import that was interrupted has begun from what is no daemon's, or it would not have begun. */
async function hasWaiting(store: Store, instance: string, isPending: boolean): Promise<boolean> {
  if (isPending) return false;
  const checkpoint = await store.checkpoint(instance);
  // The state of a large site has many megabytes; an import's has no such word.
  if (checkpoint === undefined || !checkpoint.state.includes('"isDrained":false')) return false;
  const { tail } = JSON.parse(checkpoint.state) as DaemonState;
  return tail?.isDrained === false;
}
