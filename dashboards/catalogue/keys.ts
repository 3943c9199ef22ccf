/**
 * Keys: who is limited, and one key's excess against the burst and delay of its limits.
 *
 * The store keeps every key that was limited and the heaviest of the others, by the minute.
 */
import { equals, MINUTE_STEP, MINUTE_STEP_SECONDS, NEWEST_LIMITS, ofZones } from './conditions.js';
import type { DrillDown, Dashboard, Panel } from './panel.js';

const TO_KEY: readonly DrillDown[] = [
  { column: 'key', to: 'limitlens-keys', variables: { key: 'key_value', zone: 'zone_value' } },
];
const LINKED = `encodeURLComponent(key) AS key_value, encodeURLComponent(zone) AS zone_value`;
const LINKS = ['key_value', 'zone_value'] as const;

const TOTALS: Panel = {
  id: 'keys-totals',
  title: 'Keys that were limited',
  question: 'How many are limited: one, or everybody?',
  why:
    'Few keys with nearly all rejections: a client, or an address that many share. Very many: the ' +
    'limit is too low, or an attack comes from many addresses.',
  kind: 'stat',
  sql: `SELECT uniqExactIf((zone, key), rejected + exhausted > 0) AS "keys rejected",
  uniqExactIf((zone, key), delayed > 0) AS "keys delayed",
  uniqExactIf((zone, key), rejected_dry_run > 0) AS "keys rejected, dry run",
  sum(rejected) + sum(exhausted) AS "requests rejected"
FROM key_minutes
WHERE ${ofZones('minute')}`,
  unit: 'count',
  units: { 'requests rejected': 'requests' },
  width: 24,
};

function topKeys(id: string, title: string, question: string, why: string, order: string): Panel {
  return {
    id,
    title,
    question,
    why,
    kind: 'table',
    sql: `SELECT key, zone, instance,
  sum(rejected) AS "rejections", sum(exhausted) AS "zone exhausted", sum(delayed) AS "delays",
  sum(passed) AS "let through", sum(rejected_dry_run) AS "rejections, dry run",
  max(excess_max_milli) / 1000 AS "largest excess", ${LINKED}
FROM key_minutes
WHERE ${ofZones('minute')}
GROUP BY instance, zone, key
ORDER BY ${order}, instance, zone, key
LIMIT 100`,
    unit: 'requests',
    hidden: LINKS,
    drillDown: TO_KEY,
    width: 12,
  };
}

const BY_REJECTIONS = topKeys(
  'keys-top-by-rejections',
  'Keys by rejections',
  'Who is rejected most?',
  'A loopback or private address at the top is no client: real_ip is missing (see Findings).',
  '"rejections" + "zone exhausted" + "rejections, dry run" DESC, "largest excess" DESC',
);

const BY_EXCESS = topKeys(
  'keys-top-by-excess',
  'Keys by excess',
  'Who came furthest above the rate?',
  'Excess of a rejected request counts as nginx prints it: one above burst at the most.',
  '"largest excess" DESC, "rejections" DESC',
);

const WITH_MOST = `SELECT key
  FROM key_minutes
  WHERE ${ofZones('minute')}
  GROUP BY key
  HAVING sum(rejected) + sum(exhausted) > 0
  ORDER BY sum(rejected) + sum(exhausted) DESC, key
  LIMIT 10`;

const REJECTIONS: Panel = {
  id: 'keys-rejections',
  title: 'Rejections of the ten keys with most',
  question: 'When was who rejected?',
  why: 'A key that is rejected at a steady rate retries at once, whatever it is told.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${MINUTE_STEP}, key AS series,
  (sum(rejected) + sum(exhausted)) / $__interval_s AS "rejections"
FROM key_minutes
WHERE ${ofZones('minute')}
  AND key IN (
  ${WITH_MOST}
)
GROUP BY time, series
ORDER BY time, series`,
  unit: 'requests per second',
  draw: 'stacked bars',
  minIntervalSeconds: MINUTE_STEP_SECONDS,
  width: 12,
};

const LIMITED_KEYS: Panel = {
  id: 'keys-limited-count',
  title: 'Number of keys limited',
  question: 'Does a limit meet a few clients, or all of them at once?',
  why: 'Distinct keys in each step.',
  kind: 'timeseries',
  sql: `SELECT ${MINUTE_STEP},
  uniqExactIf((zone, key), rejected + exhausted > 0) AS "keys rejected",
  uniqExactIf((zone, key), delayed > 0) AS "keys delayed",
  uniqExactIf((zone, key), rejected_dry_run > 0) AS "keys rejected, dry run"
FROM key_minutes
WHERE ${ofZones('minute')}
GROUP BY time
ORDER BY time`,
  unit: 'count',
  draw: 'lines',
  minIntervalSeconds: MINUTE_STEP_SECONDS,
  width: 12,
};

const NO_DELAY = '1e18';

const ONE_KEY_EXCESS: Panel = {
  id: 'keys-one-excess',
  title: 'Excess of the chosen key',
  question: 'How far above the rate was this key, and where do its limits lie?',
  why:
    'The largest excess in each step, and between what it lies: logs tell when a request was ' +
    'decided to the millisecond at best. Rows of older versions have no bounds. ' +
    'Above `delay` a request waits, above `burst` it is rejected. ' +
    'These two are of the newest configuration; where several limits use the zone, the lowest. ' +
    'With nodelay there is no line for delay.',
  kind: 'timeseries',
  sql: `SELECT one.time AS time, concat(one.instance, ' ', one.zone) AS series,
  one.low AS "at least", one.high AS "at most", one.excess AS "excess",
  rules.burst AS "burst", rules.delay AS "delay"
FROM (
  SELECT ${MINUTE_STEP}, instance, zone, max(excess_max_milli) / 1000 AS excess,
    if(countIf(excess_high_max_milli IS NULL) = 0, max(excess_low_max_milli) / 1000, NULL) AS low,
    if(countIf(excess_high_max_milli IS NULL) = 0, max(excess_high_max_milli) / 1000, NULL) AS high
  FROM key_minutes
  WHERE ${ofZones('minute')}
    AND ${equals('key', 'key')}
  GROUP BY time, instance, zone
) AS one
LEFT JOIN (
  SELECT instance, zone,
    toNullable(arrayMin(arrayMap(rule -> JSONExtractFloat(rule, 'burst'), list))) AS burst,
    nullIf(arrayMin(arrayMap(
      rule -> if(JSONExtractString(rule, 'delay') = 'nodelay', ${NO_DELAY},
        JSONExtractFloat(rule, 'delay')), list)), ${NO_DELAY}) AS delay
  FROM (
    SELECT instance, zone, JSONExtractArrayRaw(rules_now) AS list
    FROM (${NEWEST_LIMITS})
    WHERE notEmpty(list)
  )
) AS rules ON rules.instance = one.instance AND rules.zone = one.zone
ORDER BY time, series`,
  unit: 'requests',
  draw: 'lines',
  band: ['at least', 'at most'],
  minIntervalSeconds: MINUTE_STEP_SECONDS,
  width: 12,
};

const ONE_KEY_OUTCOMES: Panel = {
  id: 'keys-one-outcomes',
  title: 'Requests of the chosen key',
  question: 'What happened to this key’s requests?',
  why: 'Minutes in which a key was let through only are kept for the heaviest keys alone.',
  kind: 'timeseries',
  sql: `SELECT ${MINUTE_STEP},
  sum(passed) / $__interval_s AS "let through",
  sum(delayed) / $__interval_s AS "delays",
  sum(rejected) / $__interval_s AS "rejections",
  sum(exhausted) / $__interval_s AS "zone exhausted",
  sum(delayed_dry_run) / $__interval_s AS "delays, dry run",
  sum(rejected_dry_run) / $__interval_s AS "rejections, dry run"
FROM key_minutes
WHERE ${ofZones('minute')}
  AND ${equals('key', 'key')}
GROUP BY time
ORDER BY time`,
  unit: 'requests per second',
  draw: 'stacked bars',
  minIntervalSeconds: MINUTE_STEP_SECONDS,
  width: 12,
};

export const KEYS: Dashboard = {
  id: 'limitlens-keys',
  title: 'limitlens: keys',
  question: 'Who is limited, and how far above the rate is one key?',
  variables: ['instance', 'zone', 'key'],
  runbooks: ['reject-ratio'],
  panels: [
    TOTALS,
    BY_REJECTIONS,
    BY_EXCESS,
    REJECTIONS,
    LIMITED_KEYS,
    ONE_KEY_EXCESS,
    ONE_KEY_OUTCOMES,
  ],
};
