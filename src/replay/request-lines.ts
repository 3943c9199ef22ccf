/**
 * Between a request and its error-log lines: which lines it may have left, and what one tells of it.
 *
 * Not here: which line is whose (line-join.ts).
 */
import type { ReplayEngine } from './engine.js';
import { FLAG } from './event-flags.js';
import type { Seeker } from './line-join.js';
import { isDelayed, isRejected, STATUS } from './status.js';

const SECOND_MS = 1000;

/** The lines that a request may have caused, given what is known of its outcome. */
export function seekersOf(engine: ReplayEngine, event: number): Seeker[] {
  const { pool } = engine;
  const rule = engine.rules[pool.rules[event]!]!;
  const logged = pool.logged[event]!;
  const zones = rule.limits.map((limit) => limit.zone.name);
  const base = {
    fromMs: pool.loMs[event]! - 1,
    // Whatever the estimate says: a line is written before its request ends.
    toMs: pool.endMs[event]! + (pool.flags[event]! & FLAG.coarse ? SECOND_MS : 1),
    zones,
  };
  const seekers: Seeker[] = [];
  if (logged === STATUS.unknown ? rule.limits.length > 0 : isRejected(logged)) {
    seekers.push({ ...base, kind: 'rejected', isDryRun: rule.isDryRun });
  }
  if (logged === STATUS.unknown ? rule.limits.length > 0 : isDelayed(logged)) {
    seekers.push({ ...base, kind: 'delayed', isDryRun: rule.isDryRun });
  }
  if (isRejected(pool.connLogged[event]!)) {
    const isDryRun = pool.connLogged[event] === STATUS.rejectedDryRun;
    seekers.push({ ...base, kind: 'connections', isDryRun, zones: rule.connZones });
  }
  return seekers;
}

/** Notes on the event what its line says. @returns the position of the limit it names, or -1 */
export function applyLine(
  engine: ReplayEngine,
  event: number,
  line: {
    kind: string;
    isDryRun: boolean;
    rank: number;
    zone: string;
    excessMilliReq: number;
    pid: number;
  },
): number {
  const { pool } = engine;
  if (line.kind === 'connections') {
    pool.flags[event]! |= FLAG.connLine;
    return -1;
  }
  const rule = engine.rules[pool.rules[event]!]!;
  const slot = rule.limits.findIndex((limit) => limit.zone.name === line.zone);
  engine.lineOrder.note(event, line.rank);
  pool.anchorMilliReq[event] = line.excessMilliReq;
  pool.anchorSlot[event] = slot;
  if (pool.pid[event]! < 0) pool.pid[event] = line.pid;
  if (pool.logged[event] === STATUS.unknown) {
    const isReject = line.kind === 'rejected';
    const status = isReject ? STATUS.rejected : STATUS.delayed;
    const dry = isReject ? STATUS.rejectedDryRun : STATUS.delayedDryRun;
    pool.logged[event] = line.isDryRun ? dry : status;
  }
  return slot;
}
