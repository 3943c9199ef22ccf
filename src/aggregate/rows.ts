/**
 * The rows that aggregates come out as: their tables, columns and buckets.
 *
 * Columns stand in the order of the store's tables, so that a row is an array (a test holds the two
 * against each other). Buckets and minutes are epoch seconds, times epoch milliseconds.
 *
 * Not here: what the columns are made of (the files named after their tables), SQL types.
 */
export const BUCKET_MS = 10_000;
export const MINUTE_MS = 60_000;

export const ROW_COLUMNS = {
  zone_outcomes: [
    'instance',
    'zone',
    'kind',
    'server',
    'location',
    'bucket',
    'outcome',
    'requests',
    'near_limit',
    'excess_sum_milli',
    'excess_max_milli',
    'delay_ms_sum',
  ],
  responses: [
    'instance',
    'server',
    'location',
    'bucket',
    'status',
    'source',
    'limit_req_status',
    'requests',
  ],
  excess_histogram: ['instance', 'zone', 'bucket', 'fraction', 'requests'],
  key_minutes: [
    'instance',
    'zone',
    'key',
    'minute',
    'passed',
    'delayed',
    'rejected',
    'delayed_dry_run',
    'rejected_dry_run',
    'exhausted',
    'excess_max_milli',
    'excess_low_max_milli',
    'excess_high_max_milli',
  ],
  zone_state: [
    'instance',
    'zone',
    'bucket',
    'nodes',
    'capacity_nodes',
    'evictions',
    'evictions_in_debt',
    'admitted_by_eviction',
    'allocation_failures',
    'keys_created',
    'keys_in_minute',
    'new_keys_in_minute',
  ],
  agreement: ['instance', 'zone', 'bucket', 'class', 'requests'],
  line_counts: ['instance', 'source', 'bucket', 'kind', 'reason', 'lines'],
  unparsable_samples: ['instance', 'source', 'offset', 'reason', 'raw'],
  examples: [
    'instance',
    'server',
    'location',
    'status',
    'source',
    'time',
    'request_method',
    'path',
    'zone',
    'key',
    'excess_milli',
  ],
  findings: ['instance', 'code', 'subject', 'message', 'since', 'until', 'details'],
  marks: ['instance', 'time', 'mark', 'details'],
  limits: [
    'instance',
    'zone',
    'since',
    'key_expression',
    'size_bytes',
    'rate_milli_rps',
    'capacity_nodes',
    'rules',
  ],
} as const;

export type RowTable = keyof typeof ROW_COLUMNS;

/** Takes rows as they become complete. */
export interface RowSink {
  row(table: RowTable, row: readonly unknown[]): void;
}

/** Begin of the span of `spanMs` that holds this moment. */
export function spanStartMs(ms: number, spanMs: number): number {
  return Math.floor(ms / spanMs) * spanMs;
}
