/**
 * The conditions that panels share: which rows the variables select, and in which steps of time.
 *
 * A variable's value reaches SQL as `${name:percentencode}` and is decoded by the engine. The format
 * that Grafana recommends, `singlequote`, escapes quotes but no backslashes, so that a key ending in
 * a backslash, which any client can send, would leave its string literal; and a value with `$__` in
 * it would be taken for a macro. Percent-encoded, neither can happen. Options of variables are
 * encoded once more in themselves (variables.ts), so that a list may be cut at its commas; a plain
 * name without `%`, a comma or braces, as a link has it, means itself.
 *
 * IN with a subquery, since the engine matches that with the primary key, but no computed array.
 */

/** Rows whose column is among the values chosen for the variable; all of them for All. */
export function chosen(column: string, variable: string): string {
  return `$__conditionalAll(${column} IN (${valuesOf(variable)}), $${variable})`;
}

function valuesOf(variable: string): string {
  return (
    `SELECT decodeURLComponent(arrayJoin(splitByChar(',', ` +
    `trim(BOTH '{}' FROM ${textOf(variable)}))))`
  );
}

/** Rows whose column is the one value of a variable without All. */
export function equals(column: string, variable: string): string {
  return `${column} = decodeURLComponent(${textOf(variable)})`;
}

function textOf(variable: string): string {
  return `decodeURLComponent('\${${variable}:percentencode}')`;
}

/** Rows of zone_outcomes, which know all four variables. */
export const OF_LIMITS = [
  chosen('instance', 'instance'),
  chosen('zone', 'zone'),
  '$__timeFilter(bucket)',
  chosen('server', 'server'),
  chosen('location', 'location'),
].join('\n  AND ');

/** Rows of responses: what a client got has a place, but no zone. */
export const OF_RESPONSES = [
  chosen('instance', 'instance'),
  chosen('server', 'server'),
  '$__timeFilter(bucket)',
  chosen('location', 'location'),
].join('\n  AND ');

export const OF_INSTANCES = chosen('instance', 'instance');

/** Rows with an instance and a zone, in buckets or minutes. */
export function ofZones(timeColumn: 'bucket' | 'minute'): string {
  return `${ofZonesEver()}\n  AND $__timeFilter(${timeColumn})`;
}

/** The same at any time. */
export function ofZonesEver(): string {
  return `${OF_INSTANCES}\n  AND ${chosen('zone', 'zone')}`;
}

/** Two buckets of 10 s: Grafana's next steps are 20 s and 30 s, which buckets fill; 15 s is not. */
export const BUCKET_STEP_SECONDS = 20;
export const MINUTE_STEP_SECONDS = 60;

export const BUCKET_STEP = '$__timeInterval(bucket) AS time';
export const MINUTE_STEP = '$__timeInterval(minute) AS time';

/** Outcomes by which a limit turned a request away. */
export const REFUSED = "outcome IN ('rejected', 'exhausted')";
export const REFUSED_DRY_RUN = "outcome IN ('rejected_dry_run', 'exhausted_dry_run')";
/** Outcomes of requests that a limit had a say in. */
export const DECIDED = "outcome NOT IN ('skipped', 'not_reached')";
export const BY_LIMITER = "startsWith(source, 'limit_')";

/** The newest configuration of each zone until the end of the range: rules_now is JSON. */
export const NEWEST_LIMITS = `SELECT instance, zone, argMax(rules, since) AS rules_now,
    argMax(key_expression, since) AS key_now, argMax(size_bytes, since) AS size_now,
    argMax(rate_milli_rps, since) AS rate_now
  FROM limits FINAL
  WHERE ${ofZonesEver()} AND since <= $__toTime
  GROUP BY instance, zone`;
