/**
 * The metrics that limitlens exports: one list, for what exports them and for what asks for them
 * (the Prometheus dashboard, alert rules).
 *
 * Prometheus's conventions: base units, `_total` for counters. No label holds a client or a key.
 * Label sets that are known beforehand begin at zero. Beside its own labels each has `instance`, which
 * nginx it is about. Not here: how values come about.
 */
export interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
}

export const METRICS = {
  limitReqRequests: {
    name: 'limitlens_limit_req_requests_total',
    type: 'counter',
    labels: ['zone', 'instance', 'outcome'],
    help: 'Decisions of limit_req zones by outcome: passed, delayed, rejected and the like.',
  },
  limitConnRequests: {
    name: 'limitlens_limit_conn_requests_total',
    type: 'counter',
    labels: ['zone', 'instance', 'outcome'],
    help: 'Decisions of limit_conn zones by outcome.',
  },
  nearLimit: {
    name: 'limitlens_limit_req_near_limit_total',
    type: 'counter',
    labels: ['zone', 'instance'],
    help: 'Requests let through with an excess of at least four fifths of burst.',
  },
  excessRatio: {
    name: 'limitlens_limit_req_excess_ratio',
    type: 'histogram',
    labels: ['zone', 'instance'],
    help: 'Excess of requests as a share of their burst; above 1 they were refused. The sum is good to a fortieth each.',
  },
  lateRequests: {
    name: 'limitlens_late_requests_total',
    type: 'counter',
    labels: [],
    help: 'Requests logged later after their decision than lateness allows: counted, their order guessed.',
  },
  responses: {
    name: 'limitlens_responses_total',
    type: 'counter',
    labels: ['code', 'source', 'instance'],
    help: 'Responses 429 and 503, and refusals with another code, by who answered.',
  },
  zoneNodes: {
    name: 'limitlens_zone_nodes',
    type: 'gauge',
    labels: ['zone', 'instance'],
    help: 'Nodes that the zone holds.',
  },
  zoneCapacityNodes: {
    name: 'limitlens_zone_capacity_nodes',
    type: 'gauge',
    labels: ['zone', 'instance'],
    help: 'Nodes that fit into the zone, for keys as long as the last one.',
  },
  zoneEvictions: {
    name: 'limitlens_zone_evictions_total',
    type: 'counter',
    labels: ['zone', 'instance'],
    help: 'Nodes that the zone dropped by force to make room.',
  },
  zoneEvictionsInDebt: {
    name: 'limitlens_zone_evictions_in_debt_total',
    type: 'counter',
    labels: ['zone', 'instance'],
    help: 'Such nodes whose key still had an excess.',
  },
  zoneAdmittedByEviction: {
    name: 'limitlens_zone_admitted_by_eviction_total',
    type: 'counter',
    labels: ['zone', 'instance'],
    help: 'Requests let through that a zone large enough would have refused.',
  },
  zoneAllocationFailures: {
    name: 'limitlens_zone_allocation_failures_total',
    type: 'counter',
    labels: ['zone', 'instance'],
    help: 'Requests refused since the zone had no memory for their key.',
  },
  zoneMinuteKeys: {
    name: 'limitlens_zone_minute_keys_total',
    type: 'counter',
    labels: ['zone', 'instance'],
    help: 'Keys that were new in their minute: over n minutes, n times the distinct keys per minute.',
  },
  replayAgreement: {
    name: 'limitlens_replay_agreement_ratio',
    type: 'gauge',
    labels: ['zone', 'instance'],
    help: 'Share of logged decisions that the replay explains.',
  },
  replayDecisions: {
    name: 'limitlens_replay_decisions_total',
    type: 'counter',
    labels: ['zone', 'instance', 'class'],
    help: 'Decisions by how the replay compares with the log; those of class explained are in another one too.',
  },
  sourceLag: {
    name: 'limitlens_source_lag_seconds',
    type: 'gauge',
    labels: ['source'],
    help: 'Age of the oldest line of the source that is not counted yet.',
  },
  sourceLagBytes: {
    name: 'limitlens_source_lag_bytes',
    type: 'gauge',
    labels: ['source'],
    help: 'Bytes of the source that are not read yet.',
  },
  syslogMessages: {
    name: 'limitlens_syslog_messages_total',
    type: 'counter',
    labels: ['source'],
    help: 'Datagrams of syslog that were received.',
  },
  syslogDropped: {
    name: 'limitlens_syslog_dropped_total',
    type: 'counter',
    labels: ['source', 'by'],
    help: 'Datagrams of syslog that were lost: by the kernel, or by the queue of the receiver.',
  },
  lastEventTime: {
    name: 'limitlens_last_event_timestamp_seconds',
    type: 'gauge',
    labels: ['source'],
    help: 'Time of the newest line of the source that was counted.',
  },
  lines: {
    name: 'limitlens_lines_total',
    type: 'counter',
    labels: ['kind'],
    help: 'Lines read, by kind.',
  },
  parseErrors: {
    name: 'limitlens_parse_errors_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Lines that could not be read, by reason.',
  },
  storeInserts: {
    name: 'limitlens_store_inserts_total',
    type: 'counter',
    labels: ['result'],
    help: 'Blocks sent to the store, by result: ok or failed.',
  },
  storeRows: {
    name: 'limitlens_store_rows_total',
    type: 'counter',
    labels: ['table'],
    help: 'Rows that the store acknowledged.',
  },
  storeInsertDuration: {
    name: 'limitlens_store_insert_duration_seconds',
    type: 'histogram',
    labels: [],
    help: 'Time that the store took for a block.',
  },
  storePendingBytes: {
    name: 'limitlens_store_pending_bytes',
    type: 'gauge',
    labels: [],
    help: 'Bytes in the spool that wait for the store.',
  },
  spoolCapacity: {
    name: 'limitlens_spool_capacity_bytes',
    type: 'gauge',
    labels: [],
    help: 'Bytes that may wait for the store before reading stops.',
  },
  backpressure: {
    name: 'limitlens_backpressure',
    type: 'gauge',
    labels: [],
    help: '1 while reading has stopped since the spool is full, else 0.',
  },
  storeUp: {
    name: 'limitlens_store_up',
    type: 'gauge',
    labels: [],
    help: '1 while the store takes what is sent, 0 while it does not.',
  },
  storeRetries: {
    name: 'limitlens_store_retries_total',
    type: 'counter',
    labels: [],
    help: 'Requests to the store that were sent again after a failure that may pass.',
  },
  alerts: {
    name: 'limitlens_alerts',
    type: 'gauge',
    labels: ['alertname', 'state'],
    help: 'Alerts of limitlens itself by state: pending or firing.',
  },
  alertEvaluations: {
    name: 'limitlens_alert_evaluations_total',
    type: 'counter',
    labels: ['result'],
    help: 'Conditions evaluated, by result: ok, failed, or waiting for the log to be caught up with.',
  },
  notifications: {
    name: 'limitlens_notifications_total',
    type: 'counter',
    labels: ['receiver'],
    help: 'Notifications that a receiver took.',
  },
  notificationsFailed: {
    name: 'limitlens_notifications_failed_total',
    type: 'counter',
    labels: ['receiver'],
    help: 'Attempts to notify a receiver that failed.',
  },
  notificationsMerged: {
    name: 'limitlens_notifications_merged_total',
    type: 'counter',
    labels: ['receiver'],
    help: 'Notifications that were merged with the next one, since too many waited.',
  },
  notificationQueueLength: {
    name: 'limitlens_notification_queue_length',
    type: 'gauge',
    labels: ['receiver'],
    help: 'Notifications that wait for their receiver.',
  },
  notificationLastSuccess: {
    name: 'limitlens_notification_last_success_timestamp_seconds',
    type: 'gauge',
    labels: ['receiver'],
    help: 'When the receiver took a notification last; 0 for never.',
  },
  configReloads: {
    name: 'limitlens_config_reloads_total',
    type: 'counter',
    labels: ['result'],
    help: "Readings of nginx's configuration and limitlens.yaml after the start, by result: taken, unchanged, refused.",
  },
  configReloadSuccessful: {
    name: 'limitlens_config_last_reload_successful',
    type: 'gauge',
    labels: [],
    help: 'Whether the last reading of the configurations was of use: 0 keeps what was before.',
  },
  configReloadTime: {
    name: 'limitlens_config_last_reload_success_timestamp_seconds',
    type: 'gauge',
    labels: [],
    help: 'When the configuration was read again with success.',
  },
  buildInfo: {
    name: 'limitlens_build_info',
    type: 'gauge',
    labels: ['version'],
    help: 'Always 1; the label tells the version.',
  },
} as const satisfies Record<string, Metric>;

export type MetricId = keyof typeof METRICS;
