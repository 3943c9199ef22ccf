/**
 * What a follower is told when it is made, and at each poll.
 */
import type { FollowNotice, KnownLog } from './follow-progress.js';
import type { ReadBuffer } from './follow-source.js';

export interface FollowOptions {
  /** What the last checkpoint knows of this log, in any order. */
  readonly known?: readonly KnownLog[];
  /** Whether a log that nothing is known of begins with its rotated files. False by default. */
  readonly withRotated?: boolean;
  /** Epoch milliseconds; only the grace period depends on it. */
  readonly clock?: () => number;
  readonly graceMs?: number;
  readonly onNotice?: (notice: FollowNotice) => void;
  /** Shared by logs that are polled in turn. */
  readonly buffer?: ReadBuffer;
}

export interface PollLimits {
  /** Stop after about this many bytes of lines. */
  readonly mostBytes?: number;
  /** Offset to stop at in a source; Infinity where there is none. */
  readonly upTo?: (sourceId: string) => number;
}
