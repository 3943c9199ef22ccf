/**
 * Where the daemon goes on: from its spool, or from the store where that knows better or the spool is
 * new.
 *
 * The spool is never behind the store, unless somebody else wrote to the instance meanwhile: an
 * import after a drain, a daemon with another spool. Then the store's state counts.
 */
import { EXIT, InputError } from '../errors.js';
import type { Store } from '../store/store.js';
import { packState, unpackState, type Checkpoint } from '../store/write-ahead.js';
import type { StateSeal } from '../pipeline/state-seal.js';
import type { JsonLog } from './json-log.js';
import type { Spool } from './spool.js';
import { intentOf } from './spool-sender.js';
import { tailOf } from './tail-state.js';
import { stepsAfter, type StepRange, type TailStep } from './tail-steps.js';

export interface Start {
  /** undefined where nothing was ever counted. */
  readonly checkpoint: Checkpoint | undefined;
  /** To be done again after the checkpoint. */
  readonly steps: readonly TailStep[];
  /** Records up to this sequence are in the spool or the store; steps of later ones are not. */
  readonly closed: number;
}

/**
 * @param store undefined while it is away; then there is something in the spool
 * @throws InputError (io) for an import that was interrupted, and for a spool and a store that do
 * not belong together
 */
export async function findStart(
  instance: string,
  spool: Spool,
  store: Store | undefined,
  log: JsonLog,
): Promise<Start> {
  if (store !== undefined && spool.newest !== undefined) {
    if (!(await isOwn(instance, spool, store))) {
      refuseToForget(spool, store);
      log.warn('the store was written to by somebody else: goes on from what it knows', {
        spool: spool.path,
      });
      await spool.clear();
    }
  }
  const later = store === undefined ? [] : await takeFromStore(instance, spool, store);
  const place = spool.newest;
  if (place === undefined) return { checkpoint: undefined, steps: stepsAfter(0, later), closed: 0 };
  const { base, sequence } = place;
  const packed = await spool.state(base);
  const again = stepsAfter(base, place.ranges).filter((step) => step.sequence <= sequence);
  const checkpoint =
    packed === undefined
      ? undefined
      : { instance, sequence: base, logTimeMs: 0, ...(await unpackState(packed)) };
  return { checkpoint, steps: [...again, ...stepsAfter(sequence, later)], closed: sequence };
}

/**
 * How long to wait for late lines. Steps that are done again have to close the same rows, so what
 * they waited stays in force for as long as the daemon runs now.
 */
export function latenessFor(start: Start, askedMs: number, seal: StateSeal, log: JsonLog): number {
  const { checkpoint, steps } = start;
  if (checkpoint === undefined || steps.length === 0) return askedMs;
  const latenessMs = tailOf(checkpoint, seal)?.tail.latenessMs ?? askedMs;
  if (latenessMs !== askedMs) {
    log.warn('steps are done again as they were: a changed lateness counts from the next start', {
      ...{ latenessMs, askedMs },
    });
  }
  return latenessMs;
}

/** Whether the store holds what this spool has sent and nothing else. */
async function isOwn(instance: string, spool: Spool, store: Store): Promise<boolean> {
  const first = spool.first ?? spool.newest!.sequence + 1;
  const stored = await store.newestSequence(instance);
  if (stored < first - 1) {
    throw new InputError(
      `${spool.path}: expected the spool of this store, found one that goes on from step ${first - 1} ` +
        `where the store knows ${stored} (instance "${instance}")\n` +
        '  Name the store that it belongs to, or remove the folder to go on from what this store knows.',
      EXIT.io,
    );
  }
  if (stored === first - 1) return true;
  if (stored > first || spool.first === undefined) return false;
  const { place } = await spool.read(first);
  const intent = intentOf(instance, place);
  const pending = await store.pendingIntent(instance);
  if (pending === undefined) return store.isCommitted(intent);
  return JSON.stringify(pending.ranges) === JSON.stringify(intent.ranges);
}

function refuseToForget(spool: Spool, store: Store): void {
  if (spool.first === undefined) return;
  throw new InputError(
    `${spool.path}: expected ${store.where} as this spool left it, found it written to by somebody else, ` +
      `and ${spool.waiting} steps wait to be sent\n` +
      '  Remove the folder to go on from what the store knows: lines that are still in the logs are read again.',
    EXIT.io,
  );
}

/** Fills an empty spool. @returns what the store knows to have been begun after its checkpoint */
async function takeFromStore(
  instance: string,
  spool: Spool,
  store: Store,
): Promise<readonly StepRange[]> {
  if (spool.newest !== undefined) return [];
  const pending = await store.pendingIntent(instance);
  const ranges = (pending?.ranges ?? []) as readonly StepRange[];
  if (ranges.some((range) => range.untilMs === undefined)) {
    throw new InputError(
      `an import into instance "${instance}" was interrupted (begun by ${pending!.startedBy})\n` +
        '  Run that import again first: it goes on without counting anything twice. If its logs are gone, ' +
        'limitlens import --abandon-interrupted ends it as it stands.',
      EXIT.io,
    );
  }
  const checkpoint = await store.checkpoint(instance);
  if (checkpoint !== undefined) {
    const { sequence, sources, logTimeMs, state } = checkpoint;
    const startedBy = '';
    await spool.adopt(
      { version: 1, sequence, base: sequence, ranges: [], startedBy, sources, logTimeMs },
      await packState(sources, state),
    );
  }
  return ranges;
}
