/**
 * Conditions of limit_req zones: their memory, and how many requests they refuse.
 */
import { METRICS } from '../dashboards/metric-names.js';
import type { Condition } from './condition.js';
import { byZone, increase, window, zoneStateSums } from './forms.js';

const DECIDED = 'outcome!~"skipped|not_reached"';
const REFUSED = 'outcome=~"rejected|exhausted"';
const REFUSED_DRY_RUN = 'outcome=~"rejected_dry_run|exhausted_dry_run"';

/** The share of decisions with some outcomes, where there were enough decisions. */
function shareOfDecisions(
  refused: string,
  settings: { threshold: number; least: number; windowSeconds: number },
): string {
  const part = byZone(increase('limitReqRequests', refused, settings.windowSeconds));
  const all = byZone(increase('limitReqRequests', DECIDED, settings.windowSeconds));
  return `${part} / ${all} > ${settings.threshold} and ${all} >= ${settings.least}`;
}

function shareOfOutcomes(
  outcomes: string,
  settings: { threshold: number; least: number; windowSeconds: number },
): string {
  return `SELECT instance, zone, sumIf(requests, outcome IN (${outcomes})) / sum(requests) AS value
FROM zone_outcomes
WHERE ${window('bucket', settings.windowSeconds)} AND kind = 'limit_req'
  AND outcome NOT IN ('skipped', 'not_reached')
GROUP BY instance, zone
HAVING value > ${settings.threshold} AND sum(requests) >= ${settings.least}
ORDER BY instance, zone`;
}

export const ZONE_CONDITIONS: readonly Condition[] = [
  {
    name: 'ZoneForgetsDebt',
    severity: 'warning',
    labels: ['instance', 'zone'],
    unit: 'count',
    defaults: { threshold: 10, least: 0, windowSeconds: 600, forSeconds: 300 },
    reasons: {
      threshold:
        'Now and then a full zone drops a key with a trace of debt, and nobody gains by it. Ten in ' +
        'ten minutes are one a minute: then limited clients are being let in.',
      forSeconds: 'A burst of new keys that is over within five minutes asks for nothing.',
    },
    runbook: 'zone-starvation',
    summary: (l) => `Zone ${l('zone')} forgets keys that still have debt`,
    description: (l, value, within) =>
      `Zone ${l('zone')} of ${l('instance')} is full and dropped ${value} keys with debt within ${within}. ` +
      'Their clients start afresh: the limit does not hold for them. nginx logs nothing of it.',
    promql: ({ threshold, windowSeconds }) =>
      `${byZone(increase('zoneEvictionsInDebt', '', windowSeconds))} > ${threshold}`,
    evaluate: { clock: 'log', sql: (settings) => zoneStateSums('evictions_in_debt', settings) },
  },
  {
    name: 'ZoneNearlyFull',
    severity: 'info',
    labels: ['instance', 'zone'],
    unit: 'share',
    // Nodes stay while nobody asks: the newest state counts, as a gauge does.
    defaults: { threshold: 0.9, least: 0, windowSeconds: 86_400, forSeconds: 900 },
    reasons: {
      threshold:
        'nginx removes idle nodes only while it makes new ones, two at a time, so what is held is ' +
        'about what is in use. Above nine tenths an ordinary peak begins to push keys out.',
      forSeconds: 'A quarter of an hour is no single wave of traffic.',
    },
    runbook: 'zone-starvation',
    summary: (l) => `Zone ${l('zone')} is nearly full`,
    description: (l, value) =>
      `Zone ${l('zone')} of ${l('instance')} is filled to ${value}. When it is full, it forgets its ` +
      'oldest keys, with their debt.',
    promql: ({ threshold }) =>
      `max by (instance, zone) (${METRICS.zoneNodes.name})` +
      ` / max by (instance, zone) (${METRICS.zoneCapacityNodes.name} > 0) > ${threshold}`,
    evaluate: {
      clock: 'log',
      sql: ({ threshold, windowSeconds }) => `SELECT instance, zone, held / capacity AS value
FROM (
  SELECT instance, zone, argMax(b_nodes, bucket) AS held, argMax(b_capacity, bucket) AS capacity
  FROM (
    SELECT instance, zone, bucket, max(nodes) AS b_nodes, max(capacity_nodes) AS b_capacity
    FROM zone_state WHERE ${window('bucket', windowSeconds)} GROUP BY instance, zone, bucket
  )
  GROUP BY instance, zone
)
WHERE capacity > 0 AND value > ${threshold}
ORDER BY instance, zone`,
    },
  },
  {
    name: 'ZoneOutOfMemory',
    severity: 'critical',
    labels: ['instance', 'zone'],
    unit: 'count',
    defaults: { threshold: 0, least: 0, windowSeconds: 600, forSeconds: 60 },
    reasons: {
      threshold: 'Each one is a client refused that did nothing wrong.',
      forSeconds: 'A minute, so that a restart of limitlens which reads old lines does not page.',
    },
    runbook: 'zone-out-of-memory',
    summary: (l) => `Zone ${l('zone')} has no memory for new keys`,
    description: (l, value, within) =>
      `nginx refused ${value} requests within ${within} since zone ${l('zone')} of ${l('instance')} had no ` +
      'memory for their keys: long and short keys share it, or one key needs whole pages.',
    promql: ({ threshold, windowSeconds }) =>
      `${byZone(increase('zoneAllocationFailures', '', windowSeconds))} > ${threshold}`,
    evaluate: { clock: 'log', sql: (settings) => zoneStateSums('allocation_failures', settings) },
  },
  {
    name: 'DryRunWouldReject',
    severity: 'info',
    labels: ['instance', 'zone'],
    unit: 'share',
    defaults: { threshold: 0.001, least: 3000, windowSeconds: 3600, forSeconds: 600 },
    reasons: {
      threshold: 'The same 0.1 % that `limitlens dry-run` calls safe to enforce.',
      least: 'Three over the threshold: fewer requests cannot tell so small a share.',
      forSeconds: 'The window is an hour already; ten minutes keep a border case from flapping.',
    },
    runbook: 'dry-run-rejects',
    summary: (l) => `Zone ${l('zone')} under dry run would reject requests`,
    description: (l, value, within) =>
      `Within ${within}, ${value} of the requests of zone ${l('zone')} of ${l('instance')} would have been ` +
      'rejected, were it not under dry run.',
    promql: (settings) => shareOfDecisions(REFUSED_DRY_RUN, settings),
    evaluate: {
      clock: 'log',
      sql: (settings) => shareOfOutcomes("'rejected_dry_run', 'exhausted_dry_run'", settings),
    },
  },
  {
    name: 'RejectRatioHigh',
    severity: 'warning',
    labels: ['instance', 'zone'],
    unit: 'share',
    defaults: { threshold: 0.05, least: 600, windowSeconds: 600, forSeconds: 600 },
    reasons: {
      threshold:
        'A limit that refuses one request in twenty for so long either holds off an attack, which ' +
        'is worth knowing, or is too tight.',
      least: 'One request a second: below that a single client makes the share.',
      forSeconds: 'Bursts are what burst is for; twenty minutes in all are more than one.',
    },
    runbook: 'reject-ratio',
    summary: (l) => `Zone ${l('zone')} rejects many requests`,
    description: (l, value, within) =>
      `Zone ${l('zone')} of ${l('instance')} rejected ${value} of its requests within ${within}.`,
    promql: (settings) => shareOfDecisions(REFUSED, settings),
    evaluate: {
      clock: 'log',
      sql: (settings) => shareOfOutcomes("'rejected', 'exhausted'", settings),
    },
  },
];
