/**
 * Dry run: what limits would do if they were enforced.
 *
 * A request that dry run would have refused goes on, and so charges the limits behind it as it
 * would not under enforcement; and a client that is refused may retry or go away. What is shown is
 * what nginx itself counted.
 */
import {
  BUCKET_STEP,
  BUCKET_STEP_SECONDS,
  DECIDED,
  NEWEST_LIMITS,
  OF_LIMITS,
  ofZones,
  REFUSED_DRY_RUN,
} from './conditions.js';
import type { Dashboard, Panel } from './panel.js';

const DRY_RUN = "endsWith(outcome, '_dry_run')";
/** Fewer requests than this say nothing about one in a thousand. */
const ENOUGH_REQUESTS = 10_000;
const SAFE_SHARE = 0.001;

const TOTALS: Panel = {
  id: 'dry-run-totals',
  title: 'What enforcement would have cost',
  question: 'How many requests would have been rejected or delayed?',
  why: 'Counted per limit that was asked.',
  kind: 'stat',
  sql: `SELECT sumIf(requests, ${REFUSED_DRY_RUN}) AS "would be rejected",
  sumIf(requests, outcome = 'delayed_dry_run') AS "would be delayed",
  sumIf(requests, ${REFUSED_DRY_RUN}) / greatest(sum(requests), 1) AS "rejected share"
FROM zone_outcomes
WHERE ${OF_LIMITS}
  AND ${DECIDED}`,
  unit: 'requests',
  units: { 'rejected share': 'ratio' },
  width: 12,
};

const KEYS_HIT: Panel = {
  id: 'dry-run-keys-hit',
  title: 'Keys that would be limited',
  question: 'Whom would it have met?',
  why: 'Distinct keys of the range.',
  kind: 'stat',
  sql: `SELECT uniqExactIf((zone, key), rejected_dry_run > 0) AS "would be rejected",
  uniqExactIf((zone, key), delayed_dry_run > 0) AS "would be delayed"
FROM key_minutes
WHERE ${ofZones('minute')}`,
  unit: 'count',
  width: 12,
};

const OVER_TIME: Panel = {
  id: 'dry-run-over-time',
  title: 'Would be rejected, by zone',
  question: 'When would the limits have been felt?',
  why: 'A daily peak is traffic that the limit does not fit; single spikes are clients.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${BUCKET_STEP}, concat(instance, ' ', zone) AS series,
  sum(requests) / $__interval_s AS "would be rejected"
FROM zone_outcomes
WHERE ${OF_LIMITS}
  AND ${REFUSED_DRY_RUN}
GROUP BY time, series
ORDER BY time, series`,
  unit: 'requests per second',
  draw: 'stacked bars',
  minIntervalSeconds: BUCKET_STEP_SECONDS,
  width: 12,
};

const DELAYS_OVER_TIME: Panel = {
  id: 'dry-run-delays-over-time',
  title: 'Would be delayed, by zone',
  question: 'When would clients have had to wait?',
  why: 'With nodelay there are none.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${BUCKET_STEP}, concat(instance, ' ', zone) AS series,
  sum(requests) / $__interval_s AS "would be delayed"
FROM zone_outcomes
WHERE ${OF_LIMITS}
  AND outcome = 'delayed_dry_run'
GROUP BY time, series
ORDER BY time, series`,
  unit: 'requests per second',
  draw: 'stacked bars',
  minIntervalSeconds: BUCKET_STEP_SECONDS,
  width: 12,
};

const SAFE: Panel = {
  id: 'dry-run-safe-to-enforce',
  title: 'Safe to enforce?',
  question: 'Can this dry run end?',
  why:
    `"yes" where at most ${SAFE_SHARE * 100} % of at least ${ENOUGH_REQUESTS} requests would have ` +
    'been rejected. `limitlens dry-run` decides by thresholds of your own. Limits that the newest ' +
    'configuration has under dry run, and others that counted as such in the range.',
  kind: 'table',
  sql: `SELECT instance, zone, server, location, asked AS "requests", hit AS "would be rejected",
  late AS "would be delayed", hit / greatest(asked, 1) AS "rejected share",
  near / greatest(asked, 1) AS "near limit",
  multiIf("rejected share" > ${SAFE_SHARE}, 'no', asked < ${ENOUGH_REQUESTS}, 'not enough requests',
    'yes') AS "safe to enforce"
FROM (
  SELECT instance, zone, server, location, sum(requests) AS asked,
    sumIf(requests, ${REFUSED_DRY_RUN}) AS hit,
    sumIf(requests, outcome = 'delayed_dry_run') AS late, sum(near_limit) AS near,
    sumIf(requests, ${DRY_RUN}) AS dry
  FROM zone_outcomes
  WHERE ${OF_LIMITS}
    AND kind = 'limit_req' AND ${DECIDED}
  GROUP BY instance, zone, server, location
)
WHERE dry > 0 OR (instance, zone, server, location) IN (
  SELECT instance, zone, JSONExtractString(rule, 'server'), JSONExtractString(rule, 'location')
  FROM (${NEWEST_LIMITS})
  ARRAY JOIN JSONExtractArrayRaw(rules_now) AS rule
  WHERE JSONExtractBool(rule, 'dryRun')
)
ORDER BY hit DESC, instance, zone, server, location
LIMIT 500`,
  unit: 'requests',
  units: { 'rejected share': 'ratio', 'near limit': 'ratio' },
  drillDown: [{ column: 'zone', to: 'limitlens-keys', variables: { zone: 'zone' } }],
  width: 24,
};

const WORST_KEYS: Panel = {
  id: 'dry-run-worst-keys',
  title: 'Keys that would be rejected most',
  question: 'Who would complain?',
  why: 'Look whether they are those that the limit is meant for.',
  kind: 'table',
  sql: `SELECT key, zone, instance, sum(rejected_dry_run) AS "would be rejected",
  sum(delayed_dry_run) AS "would be delayed", sum(passed) AS "let through",
  max(excess_max_milli) / 1000 AS "largest excess",
  encodeURLComponent(key) AS key_value, encodeURLComponent(zone) AS zone_value
FROM key_minutes
WHERE ${ofZones('minute')}
GROUP BY instance, zone, key
HAVING "would be rejected" + "would be delayed" > 0
ORDER BY "would be rejected" DESC, "would be delayed" DESC, instance, zone, key
LIMIT 100`,
  unit: 'requests',
  hidden: ['key_value', 'zone_value'],
  drillDown: [
    { column: 'key', to: 'limitlens-keys', variables: { key: 'key_value', zone: 'zone_value' } },
  ],
  width: 24,
};

export const DRY_RUN_DASHBOARD: Dashboard = {
  id: 'limitlens-dry-run',
  title: 'limitlens: dry run',
  question: 'What would limits under dry run do, and is it safe to enforce them?',
  variables: ['instance', 'server', 'location', 'zone'],
  runbooks: ['dry-run-rejects'],
  panels: [TOTALS, KEYS_HIT, OVER_TIME, DELAYS_OVER_TIME, SAFE, WORST_KEYS],
};
