/**
 * Access logs that nginx writes from a buffer: how long after their time their lines can come.
 *
 * Each worker keeps its lines until its buffer is full or `flush=` has passed since the first of them
 * (ngx_http_log_write), while lines of the error log come at once. So what is read is handed on that
 * much later, and both logs meet in order of time. Without `flush=` a quiet worker keeps its lines
 * without end: the wait is as long as the lateness then, and what comes later still is counted as late.
 *
 * Units: milliseconds. Not here: the waiting (tail-reader.ts).
 */
import type { AccessLogTarget } from '../../parsers/conf/model.js';
import type { JsonLog } from './json-log.js';
import type { TailLogs } from './tail-logs.js';

/** An error line is written up to a second after its time; workers' clocks differ by less. */
const UNBUFFERED_MS = 2000;

type Buffered = AccessLogTarget & { readonly buffer: NonNullable<AccessLogTarget['buffer']> };

/** How far behind the newest line what is handed on ends. */
export function holdMsOf(logs: Pick<TailLogs, 'confs' | 'leftOut'>, latenessMs: number): number {
  const waits = bufferedLogs(logs).map(({ buffer: { flushMs } }) => flushMs ?? latenessMs);
  return UNBUFFERED_MS + Math.max(0, ...waits);
}

/** Says what buffers mean for what is shown, and which of them lose something. */
export function tellBuffers(logs: TailLogs, latenessMs: number, log: JsonLog): void {
  const buffered = bufferedLogs(logs);
  if (buffered.length === 0) return;
  const holdMs = holdMsOf(logs, latenessMs);
  log.info('an access log is buffered: all lines wait for it', {
    logs: [...new Set(buffered.map(({ path }) => path))],
    holdMs,
  });
  const seen = new Set<string>();
  for (const { path, buffer } of buffered) {
    const { flushMs, isGzip } = buffer;
    if (seen.has(path)) continue;
    seen.add(path);
    if (isGzip) {
      log.warn('an access log is written compressed and cannot be followed: leave gzip out', {
        path,
      });
    } else if (flushMs === undefined) {
      const hint = 'write flush=5s behind buffer=';
      log.warn('an access log is flushed only when its buffer is full: late lines count as late', {
        ...{ path, hint },
      });
    } else if (flushMs >= latenessMs) {
      // Within one log, another worker's lines can be so much older than those before them.
      log.warn(
        'an access log is flushed less often than --lateness waits: lines can count as late',
        {
          ...{ path, flushMs, latenessMs },
        },
      );
    }
  }
}

function bufferedLogs({ confs, leftOut }: Pick<TailLogs, 'confs' | 'leftOut'>): Buffered[] {
  const isFollowed = (path: string): boolean => !leftOut.some((log) => log.path === path);
  return confs
    .flatMap(({ accessLogs }) => accessLogs)
    .filter((target): target is Buffered => target.buffer !== undefined && isFollowed(target.path));
}
