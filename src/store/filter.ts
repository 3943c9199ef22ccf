/**
 * What part of the store a question is about, as SQL conditions with bound parameters.
 *
 * Times select whole buckets: the one that holds `sinceMs` is in, the one that begins at or after
 * `untilMs` is out. Units: epoch milliseconds.
 */
export interface Filter {
  /** All instances when absent. */
  readonly instance?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
}

export interface Condition {
  readonly sql: string;
  readonly params: Record<string, unknown>;
}

export const BUCKET_SECONDS = 10;
export const MINUTE_SECONDS = 60;

/** A filter on rows that have no time. */
export function ofInstance(filter: Pick<Filter, 'instance'>): Condition {
  const parts = ['1'];
  const params: Record<string, unknown> = {};
  addInstance(filter, parts, params);
  return { sql: parts.join(' AND '), params };
}

/** A filter on the time column of buckets that long. */
export function inBuckets(filter: Filter, column: string, bucketSeconds: number): Condition {
  const parts = ['1'];
  const params: Record<string, unknown> = {};
  addInstance(filter, parts, params);
  if (filter.sinceMs !== undefined) {
    parts.push(`${column} >= toDateTime({since:UInt32}, 'UTC')`);
    params['since'] = Math.floor(filter.sinceMs / 1000 / bucketSeconds) * bucketSeconds;
  }
  if (filter.untilMs !== undefined) {
    parts.push(`${column} < toDateTime({until:UInt32}, 'UTC')`);
    params['until'] = Math.ceil(filter.untilMs / 1000);
  }
  return { sql: parts.join(' AND '), params };
}

function addInstance(filter: Filter, parts: string[], params: Record<string, unknown>): void {
  if (filter.instance === undefined) return;
  parts.push('instance = {instance:String}');
  params['instance'] = filter.instance;
}

/** A filter on rows that are in force from `since` to `until`, both DateTime64(3). */
export function inForce(filter: Filter, since: string, until: string): Condition {
  const parts = ['1'];
  const params: Record<string, unknown> = {};
  addInstance(filter, parts, params);
  if (filter.sinceMs !== undefined) {
    parts.push(`${until} >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')`);
    params['since'] = filter.sinceMs;
  }
  if (filter.untilMs !== undefined) {
    parts.push(`${since} < fromUnixTimestamp64Milli({until:Int64}, 'UTC')`);
    params['until'] = filter.untilMs;
  }
  return { sql: parts.join(' AND '), params };
}
