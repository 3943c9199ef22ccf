/**
 * Zones: how full their memory is, what they forget, and how close to their limits keys come.
 *
 * A full zone does not say so: it drops its oldest node, with that key's debt, and logs nothing
 * (ngx_http_limit_req_expire()). Only a replay sees it.
 */
import {
  BUCKET_STEP,
  BUCKET_STEP_SECONDS,
  DECIDED,
  MINUTE_STEP_SECONDS,
  NEWEST_LIMITS,
  OF_LIMITS,
  ofZones,
  REFUSED,
} from './conditions.js';
import type { Dashboard, Panel } from './panel.js';

const LOST: Panel = {
  id: 'zones-forgotten',
  title: 'What the zones forgot',
  question: 'Did a zone run out of memory?',
  why:
    'An eviction of an idle key costs nothing. One of a key in debt lets that client begin anew; ' +
    'what was let through because of it is counted by asking a zone that forgets nothing.',
  kind: 'stat',
  sql: `SELECT sum(evictions) AS "evictions",
  sum(evictions_in_debt) AS "evictions in debt",
  sum(admitted_by_eviction) AS "requests let through by them",
  sum(allocation_failures) AS "allocation failures"
FROM zone_state
WHERE ${ofZones('bucket')}`,
  unit: 'count',
  units: { 'requests let through by them': 'requests' },
  width: 24,
};

const OCCUPANCY: Panel = {
  id: 'zones-occupancy',
  title: 'Occupancy',
  question: 'How full is each zone?',
  why:
    'Nodes held of those that fit, for keys as long as the zone saw last. nginx frees idle nodes ' +
    'only when it makes new ones, so that a quiet zone stays as full as it was: a full zone is ' +
    'normal, evictions in debt are not.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${BUCKET_STEP}, concat(instance, ' ', zone) AS series,
  max(nodes) / greatest(max(capacity_nodes), 1) AS "occupancy"
FROM zone_state
WHERE ${ofZones('bucket')}
GROUP BY time, series
ORDER BY time, series`,
  unit: 'ratio',
  draw: 'lines',
  thresholds: [
    { value: 0.8, colour: 'yellow', why: 'a fifth is left for clients that are new' },
    { value: 0.98, colour: 'orange', why: 'the next new keys push out the oldest' },
  ],
  minIntervalSeconds: BUCKET_STEP_SECONDS,
  width: 12,
};

const STATE: Panel = {
  id: 'zones-state',
  title: 'State of memory',
  question: 'When did a zone forget keys that it should have limited?',
  why: 'The worst that happened in each step.',
  kind: 'state',
  sql: `SELECT ${BUCKET_STEP}, concat(instance, ' ', zone) AS series,
  multiIf(sum(allocation_failures) > 0, 3, sum(evictions_in_debt) > 0, 2, sum(evictions) > 0, 1, 0)
    AS state
FROM zone_state
WHERE ${ofZones('bucket')}
GROUP BY time, series
ORDER BY time, series`,
  unit: 'count',
  states: [
    { value: 0, text: 'forgets nothing', colour: 'green' },
    { value: 1, text: 'forgets idle keys', colour: 'yellow' },
    { value: 2, text: 'forgets keys in debt', colour: 'orange' },
    { value: 3, text: 'no memory for a key', colour: 'red' },
  ],
  minIntervalSeconds: BUCKET_STEP_SECONDS,
  width: 12,
};

const EVICTIONS: Panel = {
  id: 'zones-evictions',
  title: 'Evictions in debt',
  question: 'How fast does each zone forget keys that still owed?',
  why: 'Each lets one client begin anew with its whole burst.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${BUCKET_STEP}, concat(instance, ' ', zone) AS series,
  sum(evictions_in_debt) / $__interval_s AS "evictions in debt"
FROM zone_state
WHERE ${ofZones('bucket')}
GROUP BY time, series
ORDER BY time, series`,
  unit: 'nodes per second',
  draw: 'stacked bars',
  minIntervalSeconds: BUCKET_STEP_SECONDS,
  width: 12,
};

const ADMITTED: Panel = {
  id: 'zones-admitted-by-eviction',
  title: 'Requests let through because a key was forgotten',
  question: 'What does a zone that is too small let through?',
  why: 'The difference to a zone that is large enough.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${BUCKET_STEP}, concat(instance, ' ', zone) AS series,
  sum(admitted_by_eviction) / $__interval_s AS "let through"
FROM zone_state
WHERE ${ofZones('bucket')}
GROUP BY time, series
ORDER BY time, series`,
  unit: 'requests per second',
  draw: 'stacked bars',
  minIntervalSeconds: BUCKET_STEP_SECONDS,
  width: 12,
};

const KEYS_CREATED: Panel = {
  id: 'zones-keys-created',
  title: 'Nodes made',
  question: 'How fast do new keys come?',
  why:
    'A zone must hold as many keys as come in the time that a debt takes to run out. A sudden rise ' +
    'is a scan, or a key that a client can make up.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${BUCKET_STEP}, concat(instance, ' ', zone) AS series,
  sum(keys_created) / $__interval_s AS "nodes made"
FROM zone_state
WHERE ${ofZones('bucket')}
GROUP BY time, series
ORDER BY time, series`,
  unit: 'nodes per second',
  draw: 'stacked bars',
  minIntervalSeconds: BUCKET_STEP_SECONDS,
  width: 12,
};

const DISTINCT_KEYS: Panel = {
  id: 'zones-distinct-keys',
  title: 'Distinct keys in a minute',
  question: 'How many clients does each zone see?',
  why:
    'Of the minute in each step that had most. All keys are counted, those that the store does not ' +
    'keep as well; fewer than nginx saw where requests are not logged.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${BUCKET_STEP}, concat(instance, ' ', zone) AS series,
  max(keys_in_minute) AS "distinct keys"
FROM zone_state
WHERE ${ofZones('bucket')}
GROUP BY time, series
ORDER BY time, series`,
  unit: 'count',
  draw: 'lines',
  minIntervalSeconds: MINUTE_STEP_SECONDS,
  width: 12,
};

const REFUSED_BY_ZONE: Panel = {
  id: 'zones-refused-share',
  title: 'Refused share by zone',
  question: 'Which zone refuses most of what it is asked?',
  why: 'Of the requests that the zone decided, without dry run.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${BUCKET_STEP}, concat(instance, ' ', zone) AS series,
  sumIf(requests, ${REFUSED}) / greatest(sum(requests), 1) AS "refused share"
FROM zone_outcomes
WHERE ${OF_LIMITS}
  AND ${DECIDED}
GROUP BY time, series
ORDER BY time, series`,
  unit: 'ratio',
  draw: 'lines',
  minIntervalSeconds: BUCKET_STEP_SECONDS,
  width: 12,
};

const STEPS = Array.from({ length: 21 }, (_, step) => step);
const HISTOGRAM_COLUMNS = [
  ...STEPS.map((step) => `sumIf(requests, fraction = ${step}) AS "${5 * step} %"`),
  `sumIf(requests, fraction > 20) AS "above"`,
];

const EXCESS: Panel = {
  id: 'zones-excess-of-burst',
  title: 'Excess as a share of burst',
  question: 'How much of the burst do requests use?',
  why:
    'Requests by excess in steps of 5 % of burst. All at the bottom: the limit is never felt. Much ' +
    'in the upper rows: the next rise will be rejected. `above` was.',
  kind: 'heatmap',
  sql: `SELECT ${BUCKET_STEP},
  ${HISTOGRAM_COLUMNS.join(',\n  ')}
FROM excess_histogram
WHERE ${ofZones('bucket')}
GROUP BY time
ORDER BY time`,
  unit: 'requests',
  minIntervalSeconds: MINUTE_STEP_SECONDS,
  width: 12,
};

const HEADROOM: Panel = {
  id: 'zones-headroom',
  title: 'Headroom',
  question: 'How many more keys fit, and is the zone large enough?',
  why:
    'Nodes and capacity at the end of the range. Headroom for keys as long as the zone saw last: ' +
    'up to 48 bytes all cost the same.',
  kind: 'table',
  sql: `SELECT state.instance AS instance, state.zone AS zone, newest.key_now AS "key",
  newest.size_now AS "size", newest.rate_now / 1000 AS "rate",
  nodes_now AS "nodes", nodes_most AS "most nodes", capacity_now AS "capacity",
  greatest(toInt64(capacity_now) - toInt64(nodes_now), 0) AS "headroom",
  lost AS "evictions", lost_in_debt AS "evictions in debt", admitted AS "let through by them",
  failures AS "allocation failures"
FROM (
  SELECT instance, zone, argMax(b_nodes, bucket) AS nodes_now, max(b_nodes) AS nodes_most,
    argMax(b_capacity, bucket) AS capacity_now, sum(b_evictions) AS lost,
    sum(b_in_debt) AS lost_in_debt, sum(b_admitted) AS admitted, sum(b_failures) AS failures
  FROM (
    SELECT instance, zone, bucket, max(nodes) AS b_nodes, max(capacity_nodes) AS b_capacity,
      sum(evictions) AS b_evictions, sum(evictions_in_debt) AS b_in_debt,
      sum(admitted_by_eviction) AS b_admitted, sum(allocation_failures) AS b_failures
    FROM zone_state
    WHERE ${ofZones('bucket')}
    GROUP BY instance, zone, bucket
  )
  GROUP BY instance, zone
) AS state
LEFT JOIN (
  ${NEWEST_LIMITS}
) AS newest ON newest.instance = state.instance AND newest.zone = state.zone
ORDER BY "evictions in debt" DESC, "nodes" / greatest("capacity", 1) DESC, instance, zone
LIMIT 500`,
  unit: 'nodes',
  units: {
    size: 'bytes',
    rate: 'requests per second',
    'let through by them': 'requests',
    'allocation failures': 'count',
  },
  drillDown: [{ column: 'zone', to: 'limitlens-keys', variables: { zone: 'zone' } }],
  width: 24,
};

export const ZONES: Dashboard = {
  id: 'limitlens-zones',
  title: 'limitlens: zones',
  question: 'How full is each zone, what does it forget, and how close to its limit are its keys?',
  variables: ['instance', 'server', 'location', 'zone'],
  runbooks: ['zone-starvation'],
  panels: [
    LOST,
    OCCUPANCY,
    STATE,
    EVICTIONS,
    ADMITTED,
    KEYS_CREATED,
    DISTINCT_KEYS,
    REFUSED_BY_ZONE,
    EXCESS,
    HEADROOM,
  ],
};
