/**
 * Which class of agreement a request is in: the replay's verdict against the outcome that was logged.
 *
 * Not here: what the classes mean (agreement-classes.ts).
 */
import { FLAG } from '../replay/engine.js';
import type { EventPool } from '../replay/event-pool.js';
import { STATUS } from '../replay/status.js';
import { AGREEMENT } from './agreement-classes.js';

/** nginx's own outcome is known, not inferred by us. */
export function isOutcomeKnown(pool: EventPool, event: number): boolean {
  return pool.logged[event] !== STATUS.unknown && (pool.flags[event]! & FLAG.inferred) === 0;
}

/** The replay holds the logged outcome possible. */
export function isExplained(pool: EventPool, event: number): boolean {
  return ((pool.possible[event]! >> pool.logged[event]!) & 1) === 1;
}

/**
 * The class of a request that its limits decided.
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
  if (!isOutcomeKnown(pool, event)) return AGREEMENT.not_logged;
  if (pool.verdict[event] === pool.logged[event]) return AGREEMENT.agree;
  if (lacksKey) return AGREEMENT.key_not_derivable;
  if (flags & FLAG.late) return AGREEMENT.late;
  if (flags & FLAG.coarse) return AGREEMENT.timestamp_resolution;
  if (flags & FLAG.nearEviction) return AGREEMENT.eviction;
  if (flags & FLAG.openOrder) return AGREEMENT.order;
  if (flags & FLAG.warm) return AGREEMENT.warm_up;
  if (isExplained(pool, event)) return AGREEMENT.timestamp_resolution;
  return isOtherBurst ? AGREEMENT.configuration_differs : AGREEMENT.unexplained;
}
