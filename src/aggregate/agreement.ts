/**
 * Which class of agreement a request is in: the replay's verdict against the outcome that was logged.
 *
 * Not here: what the classes mean (agreement-classes.ts).
 */
import { FLAG } from '../replay/event-flags.js';
import type { EventPool } from '../replay/event-pool.js';
import { AGREEMENT } from './agreement-classes.js';

/** The replay holds the logged outcome possible. */
export function isPossible(pool: EventPool, event: number): boolean {
  return ((pool.possible[event]! >> pool.logged[event]!) & 1) === 1;
}

/**
 * The class of a request whose verdict is not what was logged.
 *
 * @param lacksKey a key of the request cannot be derived from what is logged
 * @param isOtherBurst the log shows another burst than the limit's
 */
export function agreementClass(
  pool: EventPool,
  event: number,
  lacksKey: boolean,
  isOtherBurst: boolean,
): number {
  const flags = pool.flags[event]!;
  // Judged by the excess in its line, so that nothing but the configuration is left to be wrong.
  if (flags & FLAG.errorOnly) return AGREEMENT.configuration_differs;
  if (lacksKey) return AGREEMENT.key_not_derivable;
  if (flags & FLAG.late) return AGREEMENT.late;
  if (flags & FLAG.coarse) return AGREEMENT.timestamp_resolution;
  if (flags & FLAG.nearEviction) return AGREEMENT.eviction;
  if (flags & FLAG.openOrder) return AGREEMENT.order;
  if (flags & FLAG.warm) return AGREEMENT.warm_up;
  if (isPossible(pool, event)) return AGREEMENT.timestamp_resolution;
  return isOtherBurst ? AGREEMENT.configuration_differs : AGREEMENT.unexplained;
}
