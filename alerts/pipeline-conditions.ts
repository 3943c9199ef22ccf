/**
 * Conditions of answers (who says 429 or 503), and of limitlens itself: whether what it says can be
 * believed, and whether it reads and stores at all.
 */
import { METRICS } from '../dashboards/metric-names.js';
import type { Condition, Settings } from './condition.js';
import { byInstance, byZone, increase, OF_INSTANCE, window } from './forms.js';

/** Of all requests that were logged, those that one source refused; per instance. */
function shareBySource(source: string, settings: Settings): string {
  const { threshold, least, windowSeconds } = settings;
  const part = byInstance(increase('responses', `source=~"${source}"`, windowSeconds));
  const all = byInstance(increase('lines', 'kind="access"', windowSeconds));
  return `${part} / ${all} > ${threshold} and ${all} >= ${least}`;
}

function shareBySourceSql(source: string, settings: Settings): string {
  return `SELECT instance, sumIf(requests, ${source}) / sum(requests) AS value
FROM responses
WHERE ${window('bucket', settings.windowSeconds)}
GROUP BY instance
HAVING value > ${settings.threshold} AND sum(requests) >= ${settings.least}
ORDER BY instance`;
}

const ENOUGH_REQUESTS = 'One request a second: below that a handful of answers makes the share.';

const ANSWER_CONDITIONS: readonly Condition[] = [
  {
    name: 'UpstreamRefuses',
    severity: 'warning',
    labels: ['instance'],
    unit: 'share',
    defaults: { threshold: 0.01, least: 600, windowSeconds: 600, forSeconds: 300 },
    reasons: {
      threshold: 'An application that answers one request in a hundred with 429 or 503 is in need.',
      least: ENOUGH_REQUESTS,
      forSeconds: 'A deployment answers 503 for a minute or two.',
    },
    runbook: 'responses-by-source',
    summary: (l) => `The upstream of ${l('instance')} answers 429 or 503`,
    description: (l, value, within) =>
      `${value} of the requests of ${l('instance')} got a 429 or 503 from the upstream within ${within}. ` +
      "nginx's limits did not refuse them: changing a limit does not help.",
    promql: (settings) => shareBySource('upstream', settings),
    evaluate: {
      clock: 'log',
      sql: (settings) => shareBySourceSql("source = 'upstream'", settings),
    },
  },
  {
    name: 'LimitConnRefuses',
    severity: 'warning',
    labels: ['instance'],
    unit: 'share',
    defaults: { threshold: 0.01, least: 600, windowSeconds: 600, forSeconds: 300 },
    reasons: {
      threshold:
        'limit_conn refuses by what is open at once: above one in a hundred, either few clients ' +
        'open very much, or answers have become slow.',
      least: ENOUGH_REQUESTS,
      forSeconds: 'One slow minute of the upstream is over by then.',
    },
    runbook: 'responses-by-source',
    summary: (l) => `limit_conn of ${l('instance')} refuses requests`,
    description: (l, value, within) =>
      `${value} of the requests of ${l('instance')} were refused by limit_conn within ${within}. ` +
      'Slow answers raise the number of open connections without any client doing more.',
    promql: (settings) => shareBySource('limit_conn.*', settings),
    evaluate: {
      clock: 'log',
      sql: (settings) => shareBySourceSql("startsWith(source, 'limit_conn')", settings),
    },
  },
  {
    name: 'RefusalSourceUnknown',
    severity: 'info',
    labels: ['instance'],
    unit: 'share',
    defaults: { threshold: 0.05, least: 20, windowSeconds: 3600, forSeconds: 600 },
    reasons: {
      threshold: 'Beyond one in twenty, the other shares by source are not worth reading.',
      least: 'Of fewer than twenty refusals a single one would do.',
      forSeconds: 'What the log_format lacks it lacks for longer.',
    },
    runbook: 'source-unknown',
    summary: (l) => `The logs of ${l('instance')} do not tell who refused`,
    description: (l, value, within) =>
      `Of ${value} of the 429 and 503 of ${l('instance')} within ${within} it is not known who gave them: ` +
      'the log_format lacks $limit_req_status, $limit_conn_status or $upstream_status.',
    promql: ({ threshold, least, windowSeconds }) => {
      const unknown = byInstance(increase('responses', 'source="unknown"', windowSeconds));
      const all = byInstance(increase('responses', 'source!=""', windowSeconds));
      return `${unknown} / ${all} > ${threshold} and ${all} >= ${least}`;
    },
    evaluate: {
      clock: 'log',
      sql: ({ threshold, least, windowSeconds }) =>
        `SELECT instance, countUnknown / countAll AS value
FROM (
  SELECT instance, sumIf(requests, source = 'unknown') AS countUnknown, sum(requests) AS countAll
  FROM responses WHERE ${window('bucket', windowSeconds)} AND source != '' GROUP BY instance
)
WHERE value > ${threshold} AND countAll >= ${least}
ORDER BY instance`,
    },
  },
];

const SELF_CONDITIONS: readonly Condition[] = [
  {
    name: 'ReplayAgreementLow',
    severity: 'warning',
    labels: ['instance', 'zone'],
    unit: 'share',
    defaults: { threshold: 0.05, least: 600, windowSeconds: 1800, forSeconds: 900 },
    reasons: {
      threshold:
        'On logs with $msec and $request_time the replay explains more than 99.5 %; below 95 % it ' +
        'replays another configuration than the one in force, or misses logs.',
      least:
        'A start in mid-stream is wrong about keys that it has not seen; 600 decisions outweigh it.',
      forSeconds: 'After a reload old workers go on for a while with the old rules.',
    },
    runbook: 'agreement-low',
    summary: (l) => `The replay of zone ${l('zone')} does not agree with the log`,
    description: (l, value, within) =>
      `${value} of the decisions of zone ${l('zone')} of ${l('instance')} within ${within} cannot be explained. ` +
      'What is said of its excess, occupancy and evictions is in doubt until then.',
    promql: ({ threshold, least, windowSeconds }) => {
      const of = (selector: string): string =>
        byZone(increase('replayDecisions', selector, windowSeconds));
      const all = of('class!~"explained|not_logged"');
      return `1 - ${of('class="explained"')} / ${all} > ${threshold} and ${all} >= ${least}`;
    },
    evaluate: {
      clock: 'log',
      sql: ({ threshold, least, windowSeconds }) =>
        `SELECT instance, zone, 1 - countExplained / countAll AS value
FROM (
  SELECT instance, zone, sumIf(requests, class = 'explained') AS countExplained,
    sumIf(requests, class NOT IN ('explained', 'not_logged')) AS countAll
  FROM agreement WHERE ${window('bucket', windowSeconds)} AND zone != '' GROUP BY instance, zone
)
WHERE countAll > 0 AND value > ${threshold} AND countAll >= ${least}
ORDER BY instance, zone`,
    },
  },
  {
    name: 'SourceLagging',
    severity: 'warning',
    labels: ['instance', 'source'],
    unit: 'seconds',
    defaults: { threshold: 300, least: 0, windowSeconds: 0, forSeconds: 300 },
    reasons: {
      threshold:
        'Lateness is 60 s by default, and buffered logs come up to a minute late: five minutes are ' +
        'neither.',
      forSeconds: 'Catching up after a restart takes less.',
    },
    runbook: 'source-lag',
    summary: (l) => `${l('source')} is read too slowly`,
    description: (l, value) =>
      `The oldest line of ${l('source')} that is not counted yet is ${value} old. ` +
      'Everything else that is said lags by as much.',
    promql: ({ threshold }) =>
      `max by (instance, source) (${METRICS.sourceLag.name}) > ${threshold}`,
    evaluate: { clock: 'wall', metric: 'sourceLag', take: 'value' },
  },
  {
    name: 'LinesUnreadable',
    severity: 'warning',
    labels: ['instance'],
    unit: 'share',
    defaults: { threshold: 0.01, least: 1000, windowSeconds: 600, forSeconds: 600 },
    reasons: {
      threshold:
        'Scanners send bytes that end up in lines which no format fits, far below one in a hundred. ' +
        'More is another log_format than the one that limitlens knows.',
      least: 'So that ten bad lines of a quiet night do not count.',
      forSeconds: 'A rotation can cut a line or two.',
    },
    runbook: 'parse-errors',
    summary: (l) => `Many log lines of ${l('instance')} cannot be read`,
    description: (l, value, within) =>
      `${value} of the log lines of ${l('instance')} within ${within} could not be read, and are not counted.`,
    promql: ({ threshold, least, windowSeconds }) => {
      const bad = byInstance(increase('parseErrors', '', windowSeconds));
      const all = byInstance(increase('lines', '', windowSeconds));
      return `${bad} / ${all} > ${threshold} and ${all} >= ${least}`;
    },
    evaluate: {
      clock: 'log',
      sql: ({ threshold, least, windowSeconds }) => `SELECT instance, countBad / countAll AS value
FROM (
  SELECT instance, sumIf(lines, kind = 'unparsable') AS countBad, sum(lines) AS countAll
  FROM line_counts WHERE ${window('bucket', windowSeconds)} GROUP BY instance
)
WHERE countAll > 0 AND value > ${threshold} AND countAll >= ${least}
ORDER BY instance`,
    },
  },
  {
    name: 'StoreFailing',
    severity: 'critical',
    labels: ['instance'],
    unit: 'count',
    defaults: { threshold: 0, least: 0, windowSeconds: 600, forSeconds: 300 },
    reasons: {
      threshold: 'A block that was refused after retries waits in memory, and memory is bounded.',
      forSeconds: 'A restart of ClickHouse is shorter.',
    },
    runbook: 'store-failing',
    summary: (l) => `The store takes no rows of ${l('instance')}`,
    description: (l, value, within) =>
      `${value} times within ${within} the rows of ${l('instance')} could not be stored. They wait, and reading of logs will wait for ` +
      'them: nothing is lost while the logs are still there.',
    promql: ({ threshold, windowSeconds }) =>
      `${byInstance(increase('storeInserts', 'result="failed"', windowSeconds))} > ${threshold}`,
    evaluate: {
      clock: 'wall',
      metric: 'storeInserts',
      where: ['result', 'failed'],
      take: 'increase',
    },
  },
  {
    name: 'NoEvents',
    severity: 'warning',
    labels: ['instance'],
    unit: 'seconds',
    defaults: { threshold: 900, least: 0, windowSeconds: 0, forSeconds: 300 },
    reasons: {
      threshold: 'A quarter of an hour without one request is no lull on a server with limits.',
      forSeconds: 'So that a restart of limitlens does not fire it.',
    },
    runbook: 'no-events',
    summary: (l) => `limitlens sees no requests of ${l('instance')}`,
    description: (l, value) =>
      `The newest line of ${l('instance')} that was counted is ${value} old. Either there is no traffic, or the logs ` +
      'are no longer read.',
    promql: ({ threshold }) =>
      `time() - max by (instance) (${METRICS.lastEventTime.name}) > ${threshold}`,
    evaluate: {
      clock: 'wall',
      // Checkpoints are written now and then; what was read since then is in the counts of a day.
      sql: ({ threshold }) => `SELECT instance, {to:UInt32} - max(newest) AS value
FROM (
  SELECT instance, max(log_time_ms) / 1000 AS newest
  FROM checkpoints WHERE ${OF_INSTANCE} GROUP BY instance
  UNION ALL
  SELECT instance, toUnixTimestamp(max(bucket)) AS newest
  FROM line_counts WHERE ${window('bucket', Math.max(86_400, threshold + 60))} GROUP BY instance
)
GROUP BY instance
HAVING value > ${threshold} AND max(newest) > 0
ORDER BY instance`,
    },
  },
  {
    name: 'NotificationsFailing',
    severity: 'warning',
    labels: ['instance', 'receiver'],
    unit: 'count',
    defaults: { threshold: 2, least: 0, windowSeconds: 900, forSeconds: 60 },
    reasons: {
      threshold: 'An Alertmanager that restarts misses one or two; after the third nobody hears.',
      forSeconds: 'The window says it already; a minute more costs nothing.',
    },
    runbook: 'notifications-failing',
    summary: (l) => `${l('receiver')} does not take the alerts of limitlens`,
    description: (l, value, within) =>
      `${value} attempts of ${l('instance')} to notify ${l('receiver')} failed within ${within}. ` +
      'What fires there is not heard, unless another receiver takes it.',
    promql: ({ threshold, windowSeconds }) =>
      `sum by (instance, receiver) (${increase('notificationsFailed', '', windowSeconds)}) > ${threshold}`,
    evaluate: { clock: 'wall', metric: 'notificationsFailed', take: 'increase' },
  },
];

export const PIPELINE_CONDITIONS: readonly Condition[] = [...ANSWER_CONDITIONS, ...SELF_CONDITIONS];
