/**
 * The dashboard over Prometheus metrics, for who has only that: no keys, no places, no examples.
 *
 * PromQL over the names of ../metric-names.ts. Variables are regular expressions there (`=~`), which
 * Grafana escapes by itself for a Prometheus data source.
 */
import { METRICS } from '../metric-names.js';
import type { Panel } from './panel.js';

export interface PrometheusQuery {
  readonly expr: string;
  /** `{{label}}` stands for the label's value. */
  readonly legend: string;
}

export interface PrometheusPanel extends Omit<Panel, 'sql' | 'kind'> {
  readonly kind: 'timeseries' | 'stat';
  readonly queries: readonly PrometheusQuery[];
}

const IN_ZONES = 'instance=~"$instance", zone=~"$zone"';
const BY_ZONE = 'by (instance, zone)';
const PER_ZONE = '{{instance}} {{zone}}';

function rate(metric: keyof typeof METRICS, selector: string): string {
  return `rate(${METRICS[metric].name}{${selector}}[$__rate_interval])`;
}

const REFUSED = 'outcome=~"rejected|exhausted"';
const REFUSED_DRY_RUN = 'outcome=~"rejected_dry_run|exhausted_dry_run"';
const DECIDED = 'outcome!~"skipped|not_reached"';
const NODES = METRICS.zoneNodes.name;
const CAPACITY = METRICS.zoneCapacityNodes.name;

export const PROMETHEUS_VARIABLES = [
  {
    name: 'instance',
    label: 'Instance',
    query: `label_values(${METRICS.limitReqRequests.name}, instance)`,
  },
  {
    name: 'zone',
    label: 'Zone',
    query: `label_values(${METRICS.limitReqRequests.name}{instance=~"$instance"}, zone)`,
  },
] as const;

const PANELS: readonly PrometheusPanel[] = [
  {
    id: 'prometheus-outcomes',
    title: 'Decisions of limit_req',
    question: 'What do the limits do, moment by moment?',
    why: 'Each limit that was asked counts.',
    kind: 'timeseries',
    queries: [
      {
        expr: `sum by (outcome) (${rate('limitReqRequests', `${IN_ZONES}, ${DECIDED}`)})`,
        legend: '{{outcome}}',
      },
    ],
    unit: 'requests per second',
    draw: 'stacked bars',
    width: 8,
  },
  {
    id: 'prometheus-limit-conn',
    title: 'Decisions of limit_conn',
    question: 'Do clients open more connections at a time than they may?',
    why: 'limit_conn has no delay: a request is let through or refused.',
    kind: 'timeseries',
    queries: [
      {
        expr: `sum by (outcome) (${rate('limitConnRequests', `${IN_ZONES}, ${DECIDED}`)})`,
        legend: '{{outcome}}',
      },
    ],
    unit: 'requests per second',
    draw: 'stacked bars',
    width: 8,
  },
  {
    id: 'prometheus-responses',
    title: '429 and 503 by source',
    question: 'Is it the limiter that says 429 or 503, or the upstream, or nginx itself?',
    why: 'Refusals with another code count as well.',
    kind: 'timeseries',
    queries: [
      {
        expr: `sum by (code, source) (${rate('responses', 'instance=~"$instance", source!=""')})`,
        legend: '{{code}} {{source}}',
      },
    ],
    unit: 'requests per second',
    draw: 'stacked bars',
    width: 8,
  },
  {
    id: 'prometheus-refused-share',
    title: 'Refused share by zone',
    question: 'Which zone refuses most of what it is asked?',
    why: 'Of the requests that the zone decided, without dry run.',
    kind: 'timeseries',
    queries: [
      {
        expr:
          `sum ${BY_ZONE} (${rate('limitReqRequests', `${IN_ZONES}, ${REFUSED}`)}) / ` +
          `sum ${BY_ZONE} (${rate('limitReqRequests', `${IN_ZONES}, ${DECIDED}`)})`,
        legend: PER_ZONE,
      },
    ],
    unit: 'ratio',
    draw: 'lines',
    width: 8,
  },
  {
    id: 'prometheus-dry-run-share',
    title: 'Would be rejected, by zone',
    question: 'What would limits under dry run do?',
    why: 'Of the requests that the zone decided.',
    kind: 'timeseries',
    queries: [
      {
        expr:
          `sum ${BY_ZONE} (${rate('limitReqRequests', `${IN_ZONES}, ${REFUSED_DRY_RUN}`)}) / ` +
          `sum ${BY_ZONE} (${rate('limitReqRequests', `${IN_ZONES}, ${DECIDED}`)})`,
        legend: PER_ZONE,
      },
    ],
    unit: 'ratio',
    draw: 'lines',
    width: 8,
  },
  {
    id: 'prometheus-near-limit',
    title: 'Share of requests near their limit',
    question: 'Which zone will begin to reject when traffic grows a little?',
    why: 'Near: let through with an excess of at least four fifths of burst.',
    kind: 'timeseries',
    queries: [
      {
        expr:
          `sum ${BY_ZONE} (${rate('nearLimit', IN_ZONES)}) / ` +
          `sum ${BY_ZONE} (${rate('limitReqRequests', `${IN_ZONES}, ${DECIDED}`)})`,
        legend: PER_ZONE,
      },
    ],
    unit: 'ratio',
    draw: 'lines',
    width: 8,
  },
  {
    id: 'prometheus-excess',
    title: 'Excess as a share of burst, 95th percentile',
    question: 'How much of their burst do requests use?',
    why: 'Above 1 they are refused. Steps of the histogram are coarse: read it as a tendency.',
    kind: 'timeseries',
    queries: [
      {
        expr:
          'histogram_quantile(0.95, sum by (le, instance, zone) ' +
          `(rate(${METRICS.excessRatio.name}_bucket{${IN_ZONES}}[$__rate_interval])))`,
        legend: PER_ZONE,
      },
    ],
    unit: 'ratio',
    draw: 'lines',
    thresholds: [{ value: 0.8, colour: 'yellow', why: 'a fifth of the burst is left' }],
    width: 12,
  },
  {
    id: 'prometheus-late-or-lost',
    title: 'Late or lost',
    question: 'Is anything missing in these numbers?',
    why:
      'Late: logged longer after the decision than lateness allows, counted all the same. Dropped: ' +
      'messages of syslog that came faster than they could be taken.',
    kind: 'timeseries',
    queries: [
      { expr: `sum(${rate('lateRequests', '')})`, legend: 'late' },
      { expr: `sum(${rate('syslogDropped', '')})`, legend: 'dropped' },
    ],
    unit: 'lines per second',
    draw: 'lines',
    width: 12,
  },
  {
    id: 'prometheus-occupancy',
    title: 'Occupancy of zones',
    question: 'How full is each zone?',
    why: 'A full zone is normal; evictions of keys in debt are not.',
    kind: 'timeseries',
    queries: [{ expr: `${NODES}{${IN_ZONES}} / ${CAPACITY}{${IN_ZONES}}`, legend: PER_ZONE }],
    unit: 'ratio',
    draw: 'lines',
    thresholds: [
      { value: 0.8, colour: 'yellow', why: 'a fifth is left for clients that are new' },
      { value: 0.98, colour: 'orange', why: 'the next new keys push out the oldest' },
    ],
    width: 8,
  },
  {
    id: 'prometheus-evictions',
    title: 'Evictions',
    question: 'Does a zone forget keys that it should have limited?',
    why: 'Each eviction in debt lets one client begin anew with its whole burst.',
    kind: 'timeseries',
    queries: [
      {
        expr: `sum ${BY_ZONE} (${rate('zoneEvictionsInDebt', IN_ZONES)})`,
        legend: `${PER_ZONE} in debt`,
      },
      { expr: `sum ${BY_ZONE} (${rate('zoneEvictions', IN_ZONES)})`, legend: `${PER_ZONE} all` },
    ],
    unit: 'nodes per second',
    draw: 'lines',
    width: 8,
  },
  {
    id: 'prometheus-lost-requests',
    title: 'What a zone too small does',
    question: 'What is wrongly let through or refused for want of memory?',
    why: 'Let through since a key was forgotten; refused since no node could be made.',
    kind: 'timeseries',
    queries: [
      {
        expr: `sum ${BY_ZONE} (${rate('zoneAdmittedByEviction', IN_ZONES)})`,
        legend: `${PER_ZONE} let through`,
      },
      {
        expr: `sum ${BY_ZONE} (${rate('zoneAllocationFailures', IN_ZONES)})`,
        legend: `${PER_ZONE} no memory`,
      },
    ],
    unit: 'requests per second',
    draw: 'lines',
    width: 8,
  },
  {
    id: 'prometheus-distinct-keys',
    title: 'Distinct keys in a minute',
    question: 'How many clients does each zone see?',
    why: 'The mean over the minutes of a step; fewer than nginx saw where requests are not logged.',
    kind: 'timeseries',
    queries: [
      { expr: `60 * sum ${BY_ZONE} (${rate('zoneMinuteKeys', IN_ZONES)})`, legend: PER_ZONE },
    ],
    unit: 'count',
    draw: 'lines',
    width: 24,
  },
  {
    id: 'prometheus-agreement',
    title: 'Decisions that the replay explains',
    question: 'How far can the replay be believed?',
    why: 'Low: the configuration is not the one of that time, or lines are missing.',
    kind: 'timeseries',
    queries: [{ expr: `${METRICS.replayAgreement.name}{${IN_ZONES}}`, legend: PER_ZONE }],
    unit: 'ratio',
    draw: 'lines',
    width: 12,
  },
  {
    id: 'prometheus-agreement-classes',
    title: 'What keeps the replay from agreeing',
    question: 'Why does the replay not say what the log says?',
    why:
      'Decisions by class, without those that agree. timestamp_resolution and order are what the log ' +
      'leaves open; configuration_differs and rule_unknown want another configuration.',
    kind: 'timeseries',
    queries: [
      {
        expr:
          'sum by (class) ' +
          `(${rate('replayDecisions', `${IN_ZONES}, class!~"agree|explained|not_logged"`)})`,
        legend: '{{class}}',
      },
    ],
    unit: 'requests per second',
    draw: 'stacked bars',
    width: 12,
  },
  {
    id: 'prometheus-source-lag',
    title: 'Lag of sources',
    question: 'Is everything read in time?',
    why: 'Grows when a log is not read or the store does not take its rows.',
    kind: 'timeseries',
    queries: [{ expr: METRICS.sourceLag.name, legend: '{{source}}' }],
    unit: 'seconds',
    draw: 'lines',
    width: 8,
  },
  {
    id: 'prometheus-newest-line',
    title: 'Age of the newest line',
    question: 'Do the logs still grow?',
    why: 'Grows in a quiet hour as well as when nginx writes to another file. None yet: no line.',
    kind: 'timeseries',
    queries: [{ expr: `time() - (${METRICS.lastEventTime.name} > 0)`, legend: '{{source}}' }],
    unit: 'seconds',
    draw: 'lines',
    width: 8,
  },
  {
    id: 'prometheus-lines',
    title: 'Lines by kind',
    question: 'Do the lines keep coming, and can they be read?',
    why: 'Reasons are those of lines that could not be read.',
    kind: 'timeseries',
    queries: [
      { expr: `sum by (kind) (${rate('lines', '')})`, legend: '{{kind}}' },
      { expr: `sum by (reason) (${rate('parseErrors', '')})`, legend: 'unread: {{reason}}' },
    ],
    unit: 'lines per second',
    draw: 'lines',
    width: 8,
  },
  {
    id: 'prometheus-store',
    title: 'Store: seconds per insert',
    question: 'Does the store keep up?',
    why: 'The 95th percentile of the time that a block takes.',
    kind: 'timeseries',
    queries: [
      {
        expr:
          'histogram_quantile(0.95, sum by (le) ' +
          `(rate(${METRICS.storeInsertDuration.name}_bucket[$__rate_interval])))`,
        legend: '95th percentile',
      },
    ],
    unit: 'seconds',
    draw: 'lines',
    width: 8,
  },
  {
    id: 'prometheus-spool',
    title: 'Store: what waits for it',
    question: 'How long can the store stay away before reading stops?',
    why: 'Bytes on disk that the store has not taken, beside what may wait. Nothing is lost at its end: reading stops.',
    kind: 'timeseries',
    queries: [
      { expr: METRICS.storePendingBytes.name, legend: 'waiting' },
      { expr: METRICS.spoolCapacity.name, legend: 'may wait' },
    ],
    unit: 'bytes',
    draw: 'lines',
    width: 8,
  },
  {
    id: 'prometheus-store-failures',
    title: 'Troubles',
    question: 'Does the store refuse what it is sent, or was a configuration no use?',
    why: 'Blocks that failed wait on disk and are tried again. A configuration that cannot be read leaves the one before in force.',
    kind: 'stat',
    queries: [
      {
        expr: `sum(increase(${METRICS.storeInserts.name}{result="failed"}[$__range]))`,
        legend: 'failed inserts',
      },
      { expr: `sum(increase(${METRICS.storeRetries.name}[$__range]))`, legend: 'sent again' },
      { expr: `count(${METRICS.storeUp.name} == 0) or vector(0)`, legend: 'stores away' },
      { expr: `sum(${METRICS.backpressure.name})`, legend: 'reading stopped' },
      {
        expr: `count(${METRICS.configReloadSuccessful.name} == 0) or vector(0)`,
        legend: 'configuration refused',
      },
    ],
    unit: 'count',
    thresholds: [{ value: 1, colour: 'yellow', why: 'the log of limitlens says why' }],
    width: 8,
  },
  {
    id: 'prometheus-alerts',
    title: 'Alerts of limitlens itself',
    question: 'Which conditions are met, as limitlens sees them without Prometheus?',
    why: 'The rules in alerts/ are the same conditions asked of Prometheus: one of both should notify.',
    kind: 'timeseries',
    queries: [
      {
        expr: `sum by (alertname, state) (${METRICS.alerts.name}) > 0`,
        legend: '{{alertname}} {{state}}',
      },
    ],
    unit: 'count',
    draw: 'lines',
    width: 12,
  },
  {
    id: 'prometheus-notifications',
    title: 'Notifications',
    question: 'Do they reach those who are to know?',
    why: 'Failed attempts are repeated; a growing queue means that a receiver is away.',
    kind: 'timeseries',
    queries: [
      {
        expr: `sum by (receiver) (increase(${METRICS.notifications.name}[$__rate_interval]))`,
        legend: '{{receiver}} taken',
      },
      {
        expr: `sum by (receiver) (increase(${METRICS.notificationsFailed.name}[$__rate_interval]))`,
        legend: '{{receiver}} failed',
      },
      { expr: METRICS.notificationQueueLength.name, legend: '{{receiver}} waiting' },
    ],
    unit: 'count',
    draw: 'lines',
    width: 12,
  },
];

/** The alerts of alerts/prometheus.rules.yml, as Prometheus knows of them. */
export const FIRING_ALERTS = [
  'ZoneForgetsDebt',
  'ZoneNearlyFull',
  'ZoneOutOfMemory',
  'DryRunWouldReject',
  'RejectRatioHigh',
  'UpstreamRefuses',
  'LimitConnRefuses',
  'RefusalSourceUnknown',
  'ReplayAgreementLow',
  'SourceLagging',
  'LinesUnreadable',
  'StoreFailing',
  'NoEvents',
  'NotificationsFailing',
] as const;

/** Marks on the time line while an alert fires. */
export const ALERTS_ANNOTATION = {
  title: 'Alerts',
  colour: 'red',
  expr: `ALERTS{alertstate="firing", alertname=~"${FIRING_ALERTS.join('|')}"}`,
} as const;

export const PROMETHEUS_DASHBOARD = {
  id: 'limitlens-prometheus',
  title: 'limitlens: metrics',
  question: 'The state of limits and zones, from Prometheus alone.',
  runbooks: ['zone-starvation', 'reject-ratio', 'responses-by-source', 'dry-run-rejects'],
  panels: PANELS,
} as const;
