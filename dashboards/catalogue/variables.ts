/**
 * The variables of the dashboards: what can be chosen, and where the choices come from.
 *
 * An option's value is percent-encoded, its text is plain; conditions.ts says why.
 */
import { chosen, OF_INSTANCES, ofZones } from './conditions.js';

export interface Variable {
  readonly name: string;
  readonly label: string;
  /** Columns: value, text. */
  readonly sql: string;
  /** Several values and All; else exactly one. */
  readonly isMulti: boolean;
}

function options(column: string): string {
  return `encodeURLComponent(${column}) AS value, ${column} AS text`;
}

export const VARIABLES: readonly Variable[] = [
  {
    name: 'instance',
    label: 'Instance',
    sql: `SELECT DISTINCT ${options('instance')}
FROM responses
WHERE $__timeFilter(bucket)
ORDER BY text LIMIT 1000`,
    isMulti: true,
  },
  {
    name: 'server',
    label: 'Server',
    sql: `SELECT DISTINCT ${options('server')}
FROM responses
WHERE ${OF_INSTANCES}
  AND $__timeFilter(bucket)
ORDER BY text LIMIT 1000`,
    isMulti: true,
  },
  {
    name: 'location',
    label: 'Location',
    sql: `SELECT DISTINCT ${options('location')}
FROM responses
WHERE ${OF_INSTANCES}
  AND ${chosen('server', 'server')}
  AND $__timeFilter(bucket)
ORDER BY text LIMIT 1000`,
    isMulti: true,
  },
  {
    name: 'zone',
    label: 'Zone',
    sql: `SELECT DISTINCT ${options('zone')}
FROM zone_outcomes
WHERE ${OF_INSTANCES}
  AND $__timeFilter(bucket)
ORDER BY text LIMIT 1000`,
    isMulti: true,
  },
  {
    name: 'key',
    label: 'Key',
    sql: `SELECT ${options('key')}
FROM key_minutes
WHERE ${ofZones('minute')}
GROUP BY key
ORDER BY sum(rejected) + sum(exhausted) + sum(rejected_dry_run) DESC, max(excess_max_milli) DESC, text
LIMIT 200`,
    isMulti: false,
  },
];

/** The value by which a variable of these dashboards means this name. */
export function variableValue(name: string): string {
  return encodeURIComponent(name).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
