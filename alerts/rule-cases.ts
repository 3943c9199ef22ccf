/**
 * For each condition: metrics on which it fires, with what it says, and some on which it must not.
 *
 * Written to prometheus.tests.yml for promtool. Samples come once a minute; `0+6x30` is 0, 6, 12 and
 * so on, 30 steps long. A counter that grows by 6 a minute has gained 60 in ten.
 */
import type { ConditionName } from './condition.js';
import { METRICS, type MetricId } from '../dashboards/metric-names.js';

export interface RuleCase {
  readonly condition: ConditionName;
  /** What is particular to it. */
  readonly title: string;
  readonly series: readonly (readonly [series: string, values: string])[];
  readonly atMinutes: number;
  /** null where it must be silent. */
  readonly fires: {
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  } | null;
}

function of(metric: MetricId, labels: string): string {
  return `${METRICS[metric].name}{${labels}}`;
}

const ZONE = 'instance="web1",zone="api"';
const IN_ZONE = { instance: 'web1', zone: 'api' };
const WEB1 = 'instance="web1"';
const IN_WEB1 = { instance: 'web1' };

function outcomes(passedPerMinute: number, outcome: string, perMinute: number, minutes: number) {
  return [
    [of('limitReqRequests', `${ZONE},outcome="passed"`), `0+${passedPerMinute}x${minutes}`],
    [of('limitReqRequests', `${ZONE},outcome="${outcome}"`), `0+${perMinute}x${minutes}`],
  ] as const;
}

function answers(source: string, perMinute: number, accessPerMinute: number, minutes: number) {
  return [
    [of('responses', `instance="web1",code="503",source="${source}"`), `0+${perMinute}x${minutes}`],
    [of('lines', `${WEB1},kind="access"`), `0+${accessPerMinute}x${minutes}`],
  ] as const;
}

function occupancy(nodes: string, capacity: string) {
  return [
    [of('zoneNodes', ZONE), nodes],
    [of('zoneCapacityNodes', ZONE), capacity],
  ] as const;
}

const ZONE_CASES: readonly RuleCase[] = [
  {
    condition: 'ZoneForgetsDebt',
    title: 'six keys with debt a minute',
    series: [[of('zoneEvictionsInDebt', ZONE), '0+6x30']],
    atMinutes: 20,
    fires: { labels: IN_ZONE, value: 60 },
  },
  {
    condition: 'ZoneForgetsDebt',
    title: 'keys without debt go',
    series: [
      [of('zoneEvictions', ZONE), '0+600x30'],
      [of('zoneEvictionsInDebt', ZONE), '0+1x30'],
    ],
    atMinutes: 20,
    fires: null,
  },
  {
    condition: 'ZoneForgetsDebt',
    title: 'over within five minutes',
    series: [[of('zoneEvictionsInDebt', ZONE), '0x10 0 50 50x20']],
    atMinutes: 15,
    fires: null,
  },
  {
    condition: 'ZoneNearlyFull',
    title: '184 of 191 nodes',
    series: occupancy('184x40', '191x40'),
    atMinutes: 20,
    fires: { labels: IN_ZONE, value: 184 / 191 },
  },
  {
    condition: 'ZoneNearlyFull',
    title: 'half full',
    series: occupancy('95x40', '191x40'),
    atMinutes: 20,
    fires: null,
  },
  {
    condition: 'ZoneNearlyFull',
    title: 'a zone that was not asked yet',
    series: occupancy('0x40', '0x40'),
    atMinutes: 20,
    fires: null,
  },
  {
    condition: 'ZoneOutOfMemory',
    title: 'two failures a minute',
    series: [[of('zoneAllocationFailures', ZONE), '0+2x30']],
    atMinutes: 20,
    fires: { labels: IN_ZONE, value: 20 },
  },
  {
    condition: 'ZoneOutOfMemory',
    title: 'failures before limitlens was started',
    series: [[of('zoneAllocationFailures', ZONE), '92x30']],
    atMinutes: 20,
    fires: null,
  },
  {
    condition: 'DryRunWouldReject',
    title: 'one in fifty',
    series: outcomes(98, 'rejected_dry_run', 2, 120),
    atMinutes: 80,
    fires: { labels: IN_ZONE, value: 0.02 },
  },
  {
    condition: 'DryRunWouldReject',
    title: 'too few requests to tell',
    series: outcomes(20, 'rejected_dry_run', 1, 120),
    atMinutes: 80,
    fires: null,
  },
  {
    condition: 'DryRunWouldReject',
    title: 'one in ten thousand',
    series: outcomes(9999, 'rejected_dry_run', 1, 120),
    atMinutes: 80,
    fires: null,
  },
  {
    condition: 'DryRunWouldReject',
    title: 'rejects of a rule in force',
    series: outcomes(98, 'rejected', 2, 120),
    atMinutes: 80,
    fires: null,
  },
  {
    condition: 'RejectRatioHigh',
    title: 'one in ten',
    series: outcomes(90, 'rejected', 10, 60),
    atMinutes: 30,
    fires: { labels: IN_ZONE, value: 0.1 },
  },
  {
    condition: 'RejectRatioHigh',
    title: 'the same at night',
    series: outcomes(9, 'rejected', 1, 60),
    atMinutes: 30,
    fires: null,
  },
  {
    condition: 'RejectRatioHigh',
    title: 'one in fifty',
    series: outcomes(98, 'rejected', 2, 60),
    atMinutes: 30,
    fires: null,
  },
];

const ANSWER_CASES: readonly RuleCase[] = [
  {
    condition: 'UpstreamRefuses',
    title: 'one in twenty from the upstream',
    series: answers('upstream', 10, 200, 60),
    atMinutes: 20,
    fires: { labels: IN_WEB1, value: 0.05 },
  },
  {
    condition: 'UpstreamRefuses',
    title: 'the limiter says 503',
    series: answers('limit_req', 10, 200, 60),
    atMinutes: 20,
    fires: null,
  },
  {
    condition: 'UpstreamRefuses',
    title: 'hardly any traffic',
    series: answers('upstream', 2, 20, 60),
    atMinutes: 20,
    fires: null,
  },
  {
    condition: 'LimitConnRefuses',
    title: 'one in twenty by limit_conn',
    series: answers('limit_conn', 10, 200, 60),
    atMinutes: 20,
    fires: { labels: IN_WEB1, value: 0.05 },
  },
  {
    condition: 'UpstreamRefuses',
    title: 'one in a thousand',
    series: answers('upstream', 1, 1000, 60),
    atMinutes: 20,
    fires: null,
  },
  {
    condition: 'LimitConnRefuses',
    title: 'one in a thousand',
    series: answers('limit_conn', 1, 1000, 60),
    atMinutes: 20,
    fires: null,
  },
  {
    condition: 'LimitConnRefuses',
    title: 'hardly any traffic',
    series: answers('limit_conn', 2, 20, 60),
    atMinutes: 20,
    fires: null,
  },
  {
    condition: 'LimitConnRefuses',
    title: 'one in twenty by the upstream',
    series: answers('upstream', 10, 200, 60),
    atMinutes: 20,
    fires: null,
  },
  {
    condition: 'RefusalSourceUnknown',
    title: 'nobody knows who said it',
    series: answers('unknown', 1, 200, 120),
    atMinutes: 80,
    fires: { labels: IN_WEB1, value: 1 },
  },
  {
    condition: 'RefusalSourceUnknown',
    title: 'six refusals an hour',
    series: answers('unknown', 0.1, 200, 120),
    atMinutes: 80,
    fires: null,
  },
  {
    condition: 'RefusalSourceUnknown',
    title: 'all sources known',
    series: [
      ...answers('limit_req', 10, 200, 120),
      [of('responses', 'instance="web1",code="503",source="unknown"'), '0x120'],
    ],
    atMinutes: 80,
    fires: null,
  },
];

/** What `perMinute` decisions of a zone are, of which the replay explains a share. */
function compared(perMinute: number, explained: number, minutes: number) {
  const series = (word: string, n: number) =>
    [of('replayDecisions', `${ZONE},class="${word}"`), `0+${n}x${minutes}`] as const;
  return [
    series('agree', perMinute - 10),
    series('unexplained', 10),
    series('explained', explained),
    series('not_logged', 500),
  ];
}

const SELF_CASES: readonly RuleCase[] = [
  {
    condition: 'ReplayAgreementLow',
    title: 'a fifth is not explained',
    series: compared(100, 80, 60),
    atMinutes: 50,
    fires: { labels: IN_ZONE, value: 0.2 },
  },
  {
    condition: 'ReplayAgreementLow',
    title: 'nearly all is explained',
    series: compared(1000, 998, 60),
    atMinutes: 50,
    fires: null,
  },
  {
    condition: 'ReplayAgreementLow',
    title: 'a few requests after the start',
    series: compared(15, 5, 60),
    atMinutes: 50,
    fires: null,
  },
  {
    condition: 'SourceLagging',
    title: 'ten minutes behind',
    series: [[of('sourceLag', `${WEB1},source="access.log"`), '600x30']],
    atMinutes: 15,
    fires: { labels: { ...IN_WEB1, source: 'access.log' }, value: 600 },
  },
  {
    condition: 'SourceLagging',
    title: 'a minute behind, as with buffered logs',
    series: [[of('sourceLag', `${WEB1},source="access.log"`), '60x30']],
    atMinutes: 15,
    fires: null,
  },
  {
    condition: 'LinesUnreadable',
    title: 'one in ten',
    series: [
      [of('lines', `${WEB1},kind="access"`), '0+180x60'],
      [of('lines', `${WEB1},kind="unparsable"`), '0+20x60'],
      [of('parseErrors', `${WEB1},reason="status"`), '0+20x60'],
    ],
    atMinutes: 30,
    fires: { labels: IN_WEB1, value: 0.1 },
  },
  {
    condition: 'LinesUnreadable',
    title: 'a quiet night',
    series: [
      [of('lines', `${WEB1},kind="access"`), '0+5x60'],
      [of('lines', `${WEB1},kind="unparsable"`), '0+1x60'],
      [of('parseErrors', `${WEB1},reason="status"`), '0+1x60'],
    ],
    atMinutes: 30,
    fires: null,
  },
  {
    condition: 'LinesUnreadable',
    title: 'a scanner',
    series: [
      [of('lines', `${WEB1},kind="access"`), '0+2000x60'],
      [of('lines', `${WEB1},kind="unparsable"`), '0+2x60'],
      [of('parseErrors', `${WEB1},reason="request"`), '0+2x60'],
    ],
    atMinutes: 30,
    fires: null,
  },
  {
    condition: 'StoreFailing',
    title: 'a block a minute',
    series: [[of('storeInserts', `${WEB1},result="failed"`), '0+1x30']],
    atMinutes: 20,
    fires: { labels: IN_WEB1, value: 10 },
  },
  {
    condition: 'StoreFailing',
    title: 'all is stored',
    series: [
      [of('storeInserts', `${WEB1},result="ok"`), '0+10x30'],
      [of('storeInserts', `${WEB1},result="failed"`), '3x30'],
    ],
    atMinutes: 20,
    fires: null,
  },
  {
    condition: 'NoEvents',
    title: 'the log has ended',
    series: [[of('lastEventTime', `${WEB1},source="access.log"`), '0x60']],
    atMinutes: 30,
    fires: { labels: IN_WEB1, value: 1800 },
  },
  {
    condition: 'NoEvents',
    title: 'one of two logs is quiet',
    series: [
      [of('lastEventTime', `${WEB1},source="access.log"`), '0+60x60'],
      [of('lastEventTime', `${WEB1},source="error.log"`), '0x60'],
    ],
    atMinutes: 30,
    fires: null,
  },
  {
    condition: 'NotificationsFailing',
    title: 'one a minute',
    series: [[of('notificationsFailed', `${WEB1},receiver="http://am:9093"`), '0+1x40']],
    atMinutes: 30,
    fires: { labels: { ...IN_WEB1, receiver: 'http://am:9093' }, value: 15 },
  },
  {
    condition: 'NotificationsFailing',
    title: 'a restart of the receiver',
    series: [
      [of('notificationsFailed', `${WEB1},receiver="http://am:9093"`), '0x10 1 2x20'],
      [of('notifications', `${WEB1},receiver="http://am:9093"`), '0+1x40'],
    ],
    atMinutes: 15,
    fires: null,
  },
];

export const RULE_CASES: readonly RuleCase[] = [...ZONE_CASES, ...ANSWER_CASES, ...SELF_CASES];
