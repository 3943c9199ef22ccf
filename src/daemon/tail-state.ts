/**
 * What a step of the daemon is, and what it leaves for the next one, in this process or another.
 *
 * Plain JSON in the store's intent and checkpoint. A state is a SessionState too, so that an import
 * can go on behind a daemon that has drained.
 *
 * Units: bytes of content, epoch milliseconds.
 */
import type { LogZone } from '../../parsers/time.js';
import type { AggregatorSnapshot } from '../aggregate/aggregator.js';
import type { LogProgress } from '../input/follow-progress.js';
import type { EngineState } from '../replay/engine-state.js';
import type { SessionState } from '../replay/session-state.js';
import type { StateSeal } from '../pipeline/state-seal.js';
import type { Checkpoint, SourceRange } from '../store/write-ahead.js';
import type { StoredGeneration } from './tail-generations.js';
import type { ToldLog } from './tail-log.js';

/** The bytes of one source that a step reads. */
export interface TailRange extends SourceRange {
  /** Path of the log that it belongs to. */
  readonly name: string;
  /** Lines up to this time are handed on; null for all of them, and then the replay is drained. */
  readonly untilMs: number | null;
  /** Received, not read: not to be had again. Its lines are handed on by the next step. */
  readonly isLive?: boolean;
  /** What the log is, where this step read from it for the first time. */
  readonly log?: ToldLog;
}

/** A source whose lines are handed on, oldest source of a log first. */
export interface TailSourceState {
  readonly name: string;
  readonly sourceId: string;
  readonly isLive?: boolean;
  /** Offset of the first line that waits, and the lines in base64. */
  readonly offset: number;
  readonly lines: string;
  /** Time reached; null before the first line. */
  readonly reachedMs: number | null;
  /** Requests submitted. */
  readonly order: number;
}

export interface TailState extends SessionState {
  readonly tail: {
    /** Configurations, oldest first; what has been told of when they were in force is the engine's. */
    readonly generations?: readonly StoredGeneration[];
    /** Of rules and zones: waiting requests are numbers of these. */
    readonly rules: string;
    readonly ruleCount?: number;
    readonly engine: EngineState;
    readonly aggregates: AggregatorSnapshot;
    readonly logs: readonly LogProgress[];
    readonly sources: readonly TailSourceState[];
    /** Logs that the configuration does not tell of, as they were told by their content. */
    readonly told?: readonly ToldLog[];
    /** Logs whose lines wait. */
    readonly waiting?: readonly ToldLog[];
    /** Of the error logs' times; null while it is not known. */
    readonly zone?: LogZone | null;
    /** Time of the newest line seen; null before the first. */
    readonly newestMs: number | null;
    readonly isDrained: boolean;
    /** How long the replay waited for late lines: steps done again have to wait as long. */
    readonly latenessMs?: number;
  };
}

/** States are large: each is read once. */
const read = new WeakMap<Checkpoint, TailState | null>();

/** The daemon's state; undefined for one of an import, or none. @throws InputError 78 if sealed */
export function tailOf(checkpoint: Checkpoint, seal: StateSeal): TailState | undefined {
  let state = read.get(checkpoint);
  if (state === undefined) {
    const text = checkpoint.state;
    const found = text === '' ? null : (JSON.parse(seal.open(text)) as Partial<TailState>);
    state = found?.tail === undefined ? null : (found as TailState);
    read.set(checkpoint, state);
  }
  return state ?? undefined;
}
