/**
 * The limits of every rule set as the replay reads them: zones resolved, numbers side by side.
 *
 * Rule sets of several configurations (generations) share one numbering; a zone that a reload kept
 * is one ZoneReplay under several rates.
 */
import type { ZoneReplay } from './zone-replay.js';

/** One limit_req line of a rule set, resolved. */
export interface LimitRow {
  readonly zone: ZoneReplay;
  readonly zoneIndex: number;
  readonly rateMilliRps: number;
  readonly burstMilliReq: number;
  /** Infinity for nodelay. */
  readonly delayMilliReq: number;
}

export interface RuleRow {
  readonly limits: readonly LimitRow[];
  readonly isDryRun: boolean;
  /** limit_req_status and limit_conn_status. */
  readonly limitReqStatus: number;
  readonly limitConnStatus: number;
  /** Names of the limit_conn zones asked, in order. */
  readonly connZones: readonly string[];
  /** A `return` answers before any limit is asked. */
  readonly returnsEarly: boolean;
  /** auth_request is asked after the limits: what that takes is no slow header. */
  readonly asksAuth: boolean;
  /** The longest wait that an accepted request can have been given. */
  readonly longestDelayMs: number;
}
