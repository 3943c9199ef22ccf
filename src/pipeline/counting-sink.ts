/**
 * What lanes tell of their lines, counted.
 */
import type { Aggregator } from '../aggregate/aggregator.js';
import type { Lane, LineSink } from './lanes.js';

/**
 * @param onUnusable told of each line that could not be used, after it was counted; `raw` is valid
 *   during the call
 */
export function countingSink(
  aggregator: Aggregator,
  onUnusable?: (lane: Lane, reason: string, raw: Uint8Array) => void,
): LineSink {
  return {
    onLines: (lane, atMs, kind, reason, count) =>
      aggregator.lines(lane.name, atMs, kind, reason, count),
    onUnparsable: (lane, reason, raw) => {
      const atMs = Number.isFinite(lane.timeMs) ? lane.timeMs : NaN;
      aggregator.line(lane.name, atMs, 'unparsable', reason);
      const text = Buffer.from(raw).toString('utf8');
      aggregator.unparsable(lane.name, lane.reader.offset, reason, text);
      onUnusable?.(lane, reason, raw);
    },
  };
}
