/**
 * Pipeline health: whether what the other dashboards say can be believed.
 */
import {
  BUCKET_STEP,
  BUCKET_STEP_SECONDS,
  MINUTE_STEP_SECONDS,
  OF_INSTANCES,
  ofZones,
} from './conditions.js';
import type { Dashboard, Panel } from './panel.js';

const OF_LINES = `${OF_INSTANCES}
  AND $__timeFilter(bucket)`;
/** Classes that say how a decision compares; `explained` is counted in addition to one of them. */
const COMPARED = "class NOT IN ('explained', 'not_logged')";

const TOTALS: Panel = {
  id: 'health-totals',
  title: 'Lines read',
  question: 'Is everything read, and is it recent?',
  why: 'Age is that of the newest bucket in the range; of old logs that were imported it says nothing.',
  kind: 'stat',
  sql: `SELECT sum(lines) AS "lines read",
  sumIf(lines, kind = 'unparsable') AS "unparsable",
  sumIf(lines, kind = 'unparsable') / greatest(sum(lines), 1) AS "unparsable share",
  dateDiff('second', maxOrNull(bucket), now()) AS "age of the newest"
FROM line_counts
WHERE ${OF_LINES}`,
  unit: 'count',
  units: { 'unparsable share': 'ratio', 'age of the newest': 'seconds' },
  width: 12,
};

const EXPLAINED_NOW: Panel = {
  id: 'health-explained-total',
  title: 'Decisions that the replay explains',
  question: 'How far can the replay be believed?',
  why: 'Of the decisions whose outcome is logged: the same verdict, and an outcome that is possible.',
  kind: 'stat',
  sql: `SELECT
  sumIf(requests, class = 'explained') / nullIf(sumIf(requests, ${COMPARED}), 0) AS "explained",
  sumIf(requests, class = 'agree') / nullIf(sumIf(requests, ${COMPARED}), 0) AS "same verdict",
  sumIf(requests, class = 'not_logged') AS "not logged"
FROM agreement
WHERE ${ofZones('bucket')}`,
  unit: 'ratio',
  units: { 'not logged': 'requests' },
  width: 12,
};

const LINES: Panel = {
  id: 'health-lines',
  title: 'Lines by kind',
  question: 'Do the lines keep coming?',
  why: 'A gap is a log that was not read, or a time without traffic.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${BUCKET_STEP}, kind AS series,
  sum(lines) / $__interval_s AS "lines per second"
FROM line_counts
WHERE ${OF_LINES}
GROUP BY time, series
ORDER BY time, series`,
  unit: 'lines per second',
  draw: 'stacked bars',
  minIntervalSeconds: BUCKET_STEP_SECONDS,
  width: 12,
};

const EXPLAINED: Panel = {
  id: 'health-explained',
  title: 'Explained share by zone',
  question: 'When did the replay and nginx part?',
  why:
    'A drop that lasts means that the configuration is not the one of that time, or that lines are ' +
    'missing; the classes beside it say which.',
  kind: 'timeseries',
  isNamedBySeries: true,
  sql: `SELECT ${BUCKET_STEP}, concat(instance, ' ', zone) AS series,
  sumIf(requests, class = 'explained') / nullIf(sumIf(requests, ${COMPARED}), 0) AS "explained"
FROM agreement
WHERE ${ofZones('bucket')}
GROUP BY time, series
ORDER BY time, series`,
  unit: 'ratio',
  draw: 'lines',
  minIntervalSeconds: MINUTE_STEP_SECONDS,
  width: 12,
};

const CLASSES: Panel = {
  id: 'health-disagreement',
  title: 'Disagreement by class',
  question: 'Why does the replay not agree?',
  why:
    'timestamp_resolution: log $msec and $request_time. order: log $connection. ' +
    'configuration_differs: give the configuration of that time. key_not_derivable and ' +
    'rule_unknown: see Findings.',
  kind: 'bar',
  sql: `SELECT class, sum(requests) AS "decisions"
FROM agreement
WHERE ${ofZones('bucket')}
  AND class NOT IN ('agree', 'explained', 'not_logged')
GROUP BY class
ORDER BY "decisions" DESC, class`,
  unit: 'requests',
  width: 8,
};

const REASONS: Panel = {
  id: 'health-unparsable-reasons',
  title: 'Why lines could not be read',
  question: 'Which lines are lost, and why?',
  why: 'By source and reason. `--dead-letter FILE` keeps them whole.',
  kind: 'table',
  sql: `SELECT instance, source, reason, sum(lines) AS "count"
FROM line_counts
WHERE ${OF_LINES}
  AND kind = 'unparsable'
GROUP BY instance, source, reason
ORDER BY "count" DESC, instance, source, reason
LIMIT 100`,
  unit: 'count',
  width: 8,
};

const SAMPLES: Panel = {
  id: 'health-unparsable-samples',
  title: 'Such lines',
  question: 'What do they look like?',
  why: 'The first of each source and reason, whenever they came; they have no time.',
  kind: 'table',
  sql: `SELECT instance, source, offset, reason, raw
FROM unparsable_samples
WHERE ${OF_INSTANCES}
ORDER BY instance, source, offset
LIMIT 100`,
  unit: 'count',
  units: { offset: 'bytes' },
  width: 8,
};

const SOURCES: Panel = {
  id: 'health-sources',
  title: 'Logs that were counted',
  question: 'Which files are in here, and how far?',
  why: 'At any time. A file that is not complete ended in the middle of a line.',
  kind: 'table',
  sql: `SELECT instance, name, offset AS "read", lines,
  fromUnixTimestamp64Milli(first_ms) AS "first", fromUnixTimestamp64Milli(last_ms) AS "last",
  toUInt8(complete) AS "complete"
FROM sources FINAL
WHERE ${OF_INSTANCES}
ORDER BY last_ms DESC, instance, name
LIMIT 200`,
  unit: 'count',
  units: { read: 'bytes' },
  width: 12,
};

const MARKS: Panel = {
  id: 'health-marks',
  title: 'Reloads and restarts',
  question: 'What happened to nginx, and to limitlens?',
  why: 'A reload that changes a zone’s size loses its state, and nginx does not say so.',
  kind: 'table',
  sql: `SELECT time, instance, mark, details
FROM marks
WHERE ${OF_INSTANCES}
  AND $__timeFilter(time)
ORDER BY time DESC, instance, mark
LIMIT 200`,
  unit: 'count',
  width: 12,
};

export const PIPELINE_HEALTH: Dashboard = {
  id: 'limitlens-pipeline-health',
  title: 'limitlens: pipeline health',
  question: 'Is everything read, and how far can the replay be believed?',
  variables: ['instance', 'zone'],
  runbooks: ['agreement-low', 'source-lag', 'parse-errors', 'store-failing', 'no-events'],
  panels: [TOTALS, EXPLAINED_NOW, LINES, EXPLAINED, CLASSES, REASONS, SAMPLES, SOURCES, MARKS],
};
