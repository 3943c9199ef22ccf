/**
 * Parts that the two forms of conditions share: PromQL over our metrics, SQL over the store.
 */
import { METRICS, type MetricId } from '../dashboards/metric-names.js';

/** What a counter gained within the window. */
export function increase(metric: MetricId, selector: string, windowSeconds: number): string {
  const labels = selector === '' ? '' : `{${selector}}`;
  return `increase(${METRICS[metric].name}${labels}[${durationOf(windowSeconds)}])`;
}

export function byInstance(vector: string): string {
  return `sum by (instance) (${vector})`;
}

export function byZone(vector: string): string {
  return `sum by (instance, zone) (${vector})`;
}

/** Rows of the instance asked for, or of all. */
export const OF_INSTANCE = "({instance:String} = '' OR instance = {instance:String})";

/** Rows of the instance asked for, in whole buckets within the window that ends at `{to:UInt32}`. */
export function window(column: string, windowSeconds: number): string {
  return (
    `${column} >= toDateTime({to:UInt32} - ${windowSeconds}, 'UTC')` +
    ` AND ${column} < toDateTime({to:UInt32}, 'UTC') AND ${OF_INSTANCE}`
  );
}

/** Zones of which a sum of zone_state is above the threshold. */
export function zoneStateSums(
  column: 'evictions_in_debt' | 'allocation_failures',
  { threshold, windowSeconds }: { threshold: number; windowSeconds: number },
): string {
  return `SELECT instance, zone, sum(${column}) AS value
FROM zone_state
WHERE ${window('bucket', windowSeconds)}
GROUP BY instance, zone
HAVING value > ${threshold}
ORDER BY instance, zone`;
}

/** `10m`, `1h`, `90s`: a duration as PromQL has it. */
export function durationOf(seconds: number): string {
  if (seconds > 0 && seconds % 3600 === 0) return `${seconds / 3600}h`;
  return seconds > 0 && seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`;
}

/** Text of one line as a YAML scalar, in the quotes that Prettier would choose. */
export function quoted(text: string): string {
  if (/[\\\n]/.test(text)) throw new Error(`not a text of one line without backslashes: ${text}`);
  if (text.includes("'") && !text.includes('"')) return `"${text}"`;
  return `'${text.replaceAll("'", "''")}'`;
}
