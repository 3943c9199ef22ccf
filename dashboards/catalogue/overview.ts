/**
 * Overview: who limits whom, and who says 429 and 503.
 */
import {
  BUCKET_STEP,
  BUCKET_STEP_SECONDS,
  BY_LIMITER,
  chosen,
  DECIDED,
  OF_INSTANCES,
  OF_LIMITS,
  OF_RESPONSES,
  REFUSED,
} from './conditions.js';
import type { Dashboard, Panel } from './panel.js';

const TOTALS: Panel = {
  id: 'overview-totals',
  title: 'Requests, and what limits cost them',
  question: 'How much of the traffic is refused or made to wait?',
  why:
    'Counted once per request, from its response. A share of refused requests that one client ' +
    'causes is the limit doing its work; the Keys dashboard tells.',
  kind: 'stat',
  sql: `SELECT
  sum(requests) AS "all requests",
  sumIf(requests, ${BY_LIMITER}) AS "refused by limits",
  sumIf(requests, limit_req_status = 'DELAYED') AS "delayed",
  sumIf(requests, ${BY_LIMITER}) / greatest(sum(requests), 1) AS "refused share"
FROM responses
WHERE ${OF_RESPONSES}`,
  unit: 'requests',
  units: { 'refused share': 'ratio' },
  width: 24,
};

const RESPONSES_BY_SOURCE: Panel = {
  id: 'overview-429-503-by-source',
  title: '429 and 503 by source',
  question: 'Is it the limiter that says 429 or 503, or the upstream, or nginx itself?',
  why:
    'Decided by what nginx logs after each of its phases. Refusals that an error_page or ' +
    'limit_req_status turned into another status count here as well. `unknown` means that the log ' +
    'lacks a field; `limitlens check` names it.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${BUCKET_STEP}, source AS series,
  sum(requests) / $__interval_s AS "requests per second"
FROM responses
WHERE ${OF_RESPONSES}
  AND source != ''
GROUP BY time, series
ORDER BY time, series`,
  unit: 'requests per second',
  draw: 'stacked bars',
  minIntervalSeconds: BUCKET_STEP_SECONDS,
  width: 12,
};

const DECISIONS: Panel = {
  id: 'overview-decisions',
  title: 'Decisions of limits',
  question: 'What do the limits do, moment by moment?',
  why:
    'Each limit that was asked counts: a request under two zones is in here twice. Skipped requests ' +
    '(an empty key) and limits that were not reached are left out.',
  kind: 'timeseries',
  sql: `SELECT ${BUCKET_STEP},
  sumIf(requests, outcome = 'passed') / $__interval_s AS "passed",
  sumIf(requests, outcome = 'delayed') / $__interval_s AS "delayed",
  sumIf(requests, outcome = 'rejected') / $__interval_s AS "rejected",
  sumIf(requests, outcome = 'exhausted') / $__interval_s AS "zone exhausted",
  sumIf(requests, outcome = 'delayed_dry_run') / $__interval_s AS "delayed, dry run",
  sumIf(requests, outcome IN ('rejected_dry_run', 'exhausted_dry_run')) / $__interval_s
    AS "rejected, dry run"
FROM zone_outcomes
WHERE ${OF_LIMITS}
  AND ${DECIDED}
GROUP BY time
ORDER BY time`,
  unit: 'requests per second',
  draw: 'stacked bars',
  minIntervalSeconds: BUCKET_STEP_SECONDS,
  width: 12,
};

const REFUSED_BY_PLACE: Panel = {
  id: 'overview-refused-by-place',
  title: 'Refused by server and location',
  question: 'Where do clients meet the limits?',
  why: 'The ten places with most refusals by limit_req or limit_conn.',
  kind: 'bar',
  sql: `SELECT concat(server, ' ', location) AS place,
  sumIf(requests, source = 'limit_req') AS "limit_req",
  sumIf(requests, source = 'limit_req_zone_exhausted') AS "limit_req, zone exhausted",
  sumIf(requests, source = 'limit_conn') AS "limit_conn",
  sumIf(requests, source = 'limit_conn_zone_exhausted') AS "limit_conn, zone exhausted"
FROM responses
WHERE ${OF_RESPONSES}
  AND ${BY_LIMITER}
GROUP BY place
ORDER BY sum(requests) DESC, place
LIMIT 10`,
  unit: 'requests',
  width: 12,
};

const NEAR_LIMIT: Panel = {
  id: 'overview-near-limit',
  title: 'Share of requests near their limit',
  question: 'Which zone will begin to reject when traffic grows a little?',
  why:
    'Near means that excess reached four fifths of burst and the request was still let through. A ' +
    'zone that is often near will reject at the next rise.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${BUCKET_STEP}, concat(instance, ' ', zone) AS series,
  sum(near_limit) / greatest(sum(requests), 1) AS "near limit"
FROM zone_outcomes
WHERE ${OF_LIMITS}
  AND kind = 'limit_req' AND ${DECIDED}
GROUP BY time, series
ORDER BY time, series`,
  unit: 'ratio',
  draw: 'lines',
  thresholds: [
    { value: 0.05, colour: 'yellow', why: 'one request in twenty has less than a fifth left' },
  ],
  minIntervalSeconds: BUCKET_STEP_SECONDS,
  width: 12,
};

const WHO_LIMITS_WHOM: Panel = {
  id: 'overview-who-limits-whom',
  title: 'Who limits whom',
  question: 'Which limit of which place costs how many requests?',
  why:
    'One row per limit line of the configuration, by its zone and place. Mean delay is of the ' +
    'requests that were delayed. Excess is in requests above the rate.',
  kind: 'table',
  sql: `SELECT instance, zone, kind, server, location,
  sumIf(requests, outcome = 'passed') AS "passed",
  sumIf(requests, outcome = 'delayed') AS "delayed",
  sumIf(requests, outcome = 'rejected') AS "rejected",
  sumIf(requests, outcome = 'exhausted') AS "zone exhausted",
  sumIf(requests, outcome = 'skipped') AS "skipped",
  sumIf(requests, ${REFUSED}) / greatest(sumIf(requests, ${DECIDED}), 1) AS "refused share",
  max(excess_max_milli) / 1000 AS "largest excess",
  sumIf(delay_ms_sum, outcome = 'delayed') / greatest(sumIf(requests, outcome = 'delayed'), 1)
    AS "mean delay"
FROM zone_outcomes
WHERE ${OF_LIMITS}
GROUP BY instance, zone, kind, server, location
ORDER BY sumIf(requests, ${REFUSED}) DESC, instance, zone, kind, server, location
LIMIT 500`,
  unit: 'requests',
  units: { 'refused share': 'ratio', 'mean delay': 'milliseconds' },
  drillDown: [{ column: 'zone', to: 'limitlens-keys', variables: { zone: 'zone' } }],
  width: 24,
};

const SOURCES: Panel = {
  id: 'overview-sources',
  title: 'Who answered 429 and 503',
  question: 'Who answered, with what status, for which server?',
  why: 'Rows with another status are refusals that an error_page or limit_req_status turned into it.',
  kind: 'table',
  sql: `SELECT source, status, instance, server, location, sum(requests) AS "answered"
FROM responses
WHERE ${OF_RESPONSES}
  AND source != ''
GROUP BY source, status, instance, server, location
ORDER BY "answered" DESC, source, status, instance, server, location
LIMIT 200`,
  unit: 'requests',
  units: { status: 'count' },
  width: 12,
};

const EXAMPLES: Panel = {
  id: 'overview-examples',
  title: 'Examples',
  question: 'What does such a request look like?',
  why: 'A few are kept of each source. Paths without their arguments, which may hold secrets.',
  kind: 'table',
  sql: `SELECT time, source, status, server, location, request_method AS method, path, zone,
  key, excess_milli / 1000 AS excess
FROM examples
WHERE ${OF_INSTANCES}
  AND ${chosen('server', 'server')}
  AND $__timeFilter(time)
  AND ${chosen('location', 'location')}
ORDER BY time DESC, server, location, path
LIMIT 100`,
  unit: 'requests',
  units: { status: 'count' },
  width: 12,
};

const FINDINGS: Panel = {
  id: 'overview-findings',
  title: 'Findings',
  question: 'What is wrong, or not as the configuration says?',
  why: 'In force at some time of the range. The message says what was found and what to do.',
  kind: 'table',
  sql: `SELECT since, until, instance, code, subject, message
FROM findings FINAL
WHERE ${OF_INSTANCES}
  AND since <= $__toTime AND until >= $__fromTime
ORDER BY until DESC, code, subject
LIMIT 200`,
  unit: 'count',
  width: 24,
};

export const OVERVIEW: Dashboard = {
  id: 'limitlens-overview',
  title: 'limitlens: overview',
  question: 'Who limits whom, and who says 429 and 503?',
  variables: ['instance', 'server', 'location', 'zone'],
  runbooks: ['reject-ratio', 'responses-by-source'],
  panels: [
    TOTALS,
    RESPONSES_BY_SOURCE,
    DECISIONS,
    REFUSED_BY_PLACE,
    NEAR_LIMIT,
    WHO_LIMITS_WHOM,
    SOURCES,
    EXAMPLES,
    FINDINGS,
  ],
};
