/**
 * What the daemon exports: held against its list of names, against promtool under the traffic of a
 * real nginx, and against the store.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { request } from 'node:http';
import { test } from 'node:test';
import { METRICS, type MetricId } from '../dashboards/metric-names.js';
import { ROW_COLUMNS } from '../src/aggregate/rows.js';
import { TailMetrics } from '../src/metrics/tail-metrics.js';
import { Daemon } from './support/daemon.js';
import { requireProgram } from './support/debian.js';
import { startNginx } from './support/nginx.js';
import { makeTempDir } from './support/temp-dir.js';

function promtoolDiffers(text: string): string {
  const { status, stdout, stderr } = spawnSync(requireProgram('promtool'), ['check', 'metrics'], {
    input: text,
    encoding: 'utf8',
  });
  return status === 0 ? stdout + stderr : `${status}: ${stdout}${stderr}`;
}

function makeMetrics(zones: string[] = ['z'], connZones: string[] = ['c']): TailMetrics {
  return new TailMetrics({ instance: 'i', version: '1.2.3', zones, connZones });
}

/** Values by series, without `instance`, which all have. */
function seriesOf(text: string): Map<string, number> {
  const series = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const rest = labels.replace(/(^|,)instance="[^"]*"/, '').replace(/^,/, '');
    series.set(rest === '' ? name : `${name}{${rest}}`, Number(value));
  }
  return series;
}

type Values = Readonly<Record<string, string | number>>;

function store(metrics: TailMetrics, table: keyof typeof ROW_COLUMNS, values: Values): void {
  const row = { instance: 'i', ...values };
  metrics.stored(
    table,
    ROW_COLUMNS[table].map((column) => (row as Values)[column]),
  );
}

test('every name follows the conventions, and every label is one that is bounded', () => {
  const bounded = new Set(
    'zone instance outcome code source class kind reason result table alertname state receiver by version'.split(
      ' ',
    ),
  );
  for (const { name, type, labels, help } of Object.values(METRICS)) {
    assert.match(name, /^limitlens_[a-z0-9_]+$/);
    assert.equal(name.endsWith('_total'), type === 'counter', name);
    assert.match(help, /\.$/, name);
    for (const label of labels) assert.ok(bounded.has(label), `${name}: ${label}`);
  }
});

test('what is known beforehand begins at zero, and promtool has nothing to say', async () => {
  const metrics = makeMetrics(['one', 'two'], ['conns']);
  const text = await metrics.text();
  assert.equal(promtoolDiffers(text), '');
  const series = seriesOf(text);
  const zeros = [
    'limitlens_limit_req_requests_total{zone="two",outcome="rejected_dry_run"}',
    'limitlens_limit_req_requests_total{zone="one",outcome="exhausted"}',
    'limitlens_limit_req_requests_total{zone="one",outcome="skipped"}',
    'limitlens_limit_conn_requests_total{zone="conns",outcome="passed"}',
    'limitlens_limit_conn_requests_total{zone="conns",outcome="exhausted_dry_run"}',
    'limitlens_limit_req_near_limit_total{zone="one"}',
    'limitlens_limit_req_excess_ratio_bucket{zone="two",le="+Inf"}',
    'limitlens_limit_req_excess_ratio_count{zone="two"}',
    'limitlens_zone_evictions_in_debt_total{zone="one"}',
    'limitlens_zone_allocation_failures_total{zone="one"}',
    'limitlens_responses_total{code="503",source="limit_conn_zone_exhausted"}',
    'limitlens_replay_decisions_total{zone="one",class="unexplained"}',
    'limitlens_late_requests_total',
    'limitlens_lines_total{kind="unparsable"}',
    'limitlens_store_inserts_total{result="failed"}',
    'limitlens_store_retries_total',
  ];
  for (const name of zeros) assert.equal(series.get(name), 0, name);
  assert.equal(series.get('limitlens_build_info{version="1.2.3"}'), 1);
  assert.ok(series.get('process_resident_memory_bytes')! > 1e7);
  assert.ok(series.get('process_start_time_seconds')! > 1.7e9);
  assert.ok(series.get('process_cpu_seconds_total')! > 0);
});

test('rows of the store become what the metrics say', async () => {
  const metrics = makeMetrics();
  const outcome = { zone: 'z', kind: 'limit_req', server: '', location: '', bucket: 0 };
  store(metrics, 'zone_outcomes', { ...outcome, outcome: 'delayed', requests: 7, near_limit: 2 });
  store(metrics, 'zone_outcomes', { ...outcome, outcome: 'delayed', requests: 1, near_limit: 0 });
  const conn = { ...outcome, zone: 'c', kind: 'limit_conn', near_limit: 0 };
  store(metrics, 'zone_outcomes', { ...conn, outcome: 'rejected', requests: 3 });
  for (const [fraction, requests] of [
    [0, 10],
    [1, 5],
    [19, 2],
    [20, 1],
    [21, 4],
  ] as const) {
    store(metrics, 'excess_histogram', { zone: 'z', bucket: 0, fraction, requests });
  }
  const state = { zone: 'z', bucket: 0, nodes: 5, capacity_nodes: 191, evictions: 4 };
  store(metrics, 'zone_state', {
    ...state,
    evictions_in_debt: 2,
    admitted_by_eviction: 1,
    allocation_failures: 3,
    new_keys_in_minute: 6,
  });
  // Of a record that was written before keys were counted.
  store(metrics, 'zone_state', {
    ...state,
    ...{ evictions: 0, evictions_in_debt: 0, admitted_by_eviction: 0, allocation_failures: 0 },
  });
  store(metrics, 'responses', { status: 429, source: 'upstream', requests: 9 });
  store(metrics, 'responses', { status: 200, source: '', requests: 99 });
  store(metrics, 'agreement', { zone: 'z', class: 'agree', requests: 95 });
  store(metrics, 'agreement', { zone: 'z', class: 'order', requests: 5 });
  store(metrics, 'agreement', { zone: 'z', class: 'explained', requests: 98 });
  store(metrics, 'agreement', { zone: 'z', class: 'not_logged', requests: 50 });
  const text = await metrics.text();
  assert.equal(promtoolDiffers(text), '');
  const series = seriesOf(text);
  const ratio = 'limitlens_limit_req_excess_ratio';
  const expected: Readonly<Record<string, number>> = {
    'limitlens_limit_req_requests_total{zone="z",outcome="delayed"}': 8,
    'limitlens_limit_req_near_limit_total{zone="z"}': 2,
    'limitlens_limit_conn_requests_total{zone="c",outcome="rejected"}': 3,
    [`${ratio}_bucket{zone="z",le="0.1"}`]: 15,
    [`${ratio}_bucket{zone="z",le="0.95"}`]: 15,
    [`${ratio}_bucket{zone="z",le="1"}`]: 18,
    [`${ratio}_bucket{zone="z",le="+Inf"}`]: 22,
    [`${ratio}_count{zone="z"}`]: 22,
    'limitlens_zone_nodes{zone="z"}': 5,
    'limitlens_zone_capacity_nodes{zone="z"}': 191,
    'limitlens_zone_evictions_total{zone="z"}': 4,
    'limitlens_zone_evictions_in_debt_total{zone="z"}': 2,
    'limitlens_zone_admitted_by_eviction_total{zone="z"}': 1,
    'limitlens_zone_allocation_failures_total{zone="z"}': 3,
    'limitlens_zone_minute_keys_total{zone="z"}': 6,
    'limitlens_responses_total{code="429",source="upstream"}': 9,
    'limitlens_replay_agreement_ratio{zone="z"}': 0.98,
    'limitlens_replay_decisions_total{zone="z",class="order"}': 5,
    'limitlens_store_rows_total{table="zone_outcomes"}': 3,
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(series.get(name), value, name);
  const sum = 10 * 0.025 + 5 * 0.075 + 2 * 0.975 + 1 + 4;
  assert.ok(Math.abs(series.get(`${ratio}_sum{zone="z"}`)! - sum) < 1e-9);
});

test('label sets stay bounded: reasons of hostile lines, sources that come and go', async () => {
  const metrics = makeMetrics();
  for (let i = 0; i < 500; i++) {
    const reason = `expected "${'x'.repeat(i)}"\n} 1`;
    const source = 'a.log';
    store(metrics, 'line_counts', { source, bucket: 0, kind: 'unparsable', reason, lines: 1 });
  }
  for (let day = 0; day < 50; day++) {
    metrics.sources(new Map([[`/var/log/"${day}\n.log`, day]]), 1000, 3000);
  }
  const text = await metrics.text();
  assert.equal(promtoolDiffers(text), '');
  const lines = text.split('\n');
  const ofReasons = lines.filter((line) => line.startsWith('limitlens_parse_errors_total{'));
  assert.equal(ofReasons.length, 65);
  assert.match(text, /^limitlens_parse_errors_total\{reason="other",instance="i"\} 436$/m);
  const lags = lines.filter((line) => line.startsWith('limitlens_source_lag_'));
  assert.deepEqual(lags.sort(), [
    'limitlens_source_lag_bytes{source="/var/log/\\"49\\n.log",instance="i"} 49',
    'limitlens_source_lag_seconds{source="/var/log/\\"49\\n.log",instance="i"} 2',
  ]);
});

test('zones that no configuration names are a bounded set, and hide none that one does', async () => {
  const metrics = makeMetrics(['z'], []);
  const count = (zone: string): void => {
    const place = { server: '', location: '', bucket: 0, outcome: 'rejected', requests: 1 };
    const sums = { near_limit: 0, excess_sum_milli: 0, excess_max_milli: 0, delay_ms_sum: 0 };
    store(metrics, 'zone_outcomes', { zone, kind: 'limit_req', ...place, ...sums });
  };
  for (let i = 0; i < 500; i++) count(`"claimed ${i}`);
  count('z');
  const text = await metrics.text();
  assert.equal(promtoolDiffers(text), '');
  const rejected = [...seriesOf(text)].filter(
    ([name]) => name.startsWith('limitlens_limit_req_requests_total{') && /rejected"/.test(name),
  );
  assert.equal(rejected.length, 64 + 2);
  assert.match(
    text,
    /^limitlens_limit_req_requests_total\{zone="other",.*outcome="rejected".*\} 436$/m,
  );
  assert.match(text, /^limitlens_limit_req_requests_total\{zone="z",.*outcome="rejected".*\} 1$/m);
  metrics.know(['"claimed 400'], []);
  count('"claimed 400');
  assert.match(await metrics.text(), /^limitlens_limit_req_requests_total\{zone="\\?"claimed 400",.*outcome="rejected".*\} 1$/m); // prettier-ignore
});

test('counters of syslog sockets only grow', async () => {
  const metrics = makeMetrics();
  metrics.received('s', { datagrams: 5, queueDrops: 0, kernelDrops: undefined });
  metrics.received('s', { datagrams: 9, queueDrops: 1, kernelDrops: 2 });
  const series = seriesOf(await metrics.text());
  assert.equal(series.get('limitlens_syslog_messages_total{source="s"}'), 9);
  assert.equal(series.get('limitlens_syslog_dropped_total{source="s",by="kernel"}'), 2);
  assert.equal(series.get('limitlens_syslog_dropped_total{source="s",by="queue"}'), 1);
});

/** What is there from the first scrape on, or as soon as there has been traffic. */
const ALWAYS: readonly MetricId[] = [
  'limitReqRequests',
  'limitConnRequests',
  'nearLimit',
  'excessRatio',
  'lateRequests',
  'responses',
  'zoneNodes',
  'zoneCapacityNodes',
  'zoneEvictions',
  'zoneEvictionsInDebt',
  'zoneAllocationFailures',
  'replayDecisions',
  'sourceLag',
  'sourceLagBytes',
  'lastEventTime',
  'lines',
  'storeInserts',
  'storeRows',
  'storeInsertDuration',
  'storePendingBytes',
  'storeRetries',
  'buildInfo',
];

test("promtool accepts a daemon's metrics under the traffic of a real nginx", async (t) => {
  const nginx = await startNginx(t, {
    http: ([port]) => `
      log_format limits '$remote_addr [$time_local] "$request" $status msec=$msec rt=$request_time '
        'us="$upstream_status" lr=$limit_req_status lc=$limit_conn_status key="$arg_k"';
      access_log access.log limits;
      limit_req_zone $arg_k zone=hot:32k rate=5r/s;
      limit_conn_zone $arg_k zone=conns:32k;
      server {
        listen 127.0.0.1:${port};
        server_name shop.example;
        location / { limit_req zone=hot burst=4 nodelay; limit_conn conns 9; root html; }
        location /own { return 503; }
      }`,
  });
  const port = nginx.ports[0]!;
  const folder = makeTempDir(t);
  const daemon = new Daemon(t, [
    ...['--conf', join(nginx.dir, 'nginx.conf'), '--store', join(folder, 'store')],
    ...['--lateness', '200ms', '--error-log', join(nginx.dir, 'error.log')],
    join(nginx.dir, 'access.log'),
  ]);
  const { url } = await daemon.hears('listens');
  await daemon.hears('follows');
  const scrape = async (): Promise<string> => (await fetch(`${url}/metrics`)).text();
  assert.equal(promtoolDiffers(await scrape()), '');
  const name = METRICS.limitReqRequests.name;
  const rejected = `${name}{zone="hot",outcome="rejected"}`;
  let text = '';
  for (let i = 0; ; i++) {
    for (const path of ['/?k=a', '/?k=b', '/own', '/?k=%22%0a%7D', `/?k=${i}`]) {
      await get(port, path);
    }
    await garbage(port);
    text = await scrape();
    // Buckets of 10 s; what counts by minutes would take longer.
    if ((seriesOf(text).get(rejected) ?? 0) > 0) break;
  }
  assert.equal(promtoolDiffers(text), '');
  const names = new Set(
    [...seriesOf(text).keys()].map((key) =>
      key.replace(/\{.*$/, '').replace(/_(?:bucket|sum|count)$/, ''),
    ),
  );
  for (const id of ALWAYS) assert.ok(names.has(METRICS[id].name), METRICS[id].name);
  // No value of a client in any label.
  assert.doesNotMatch(text, /127\.0\.0\.1|="a"|\?k=/);
  assert.equal(await daemon.end(), 0);
});

async function get(port: number, path: string): Promise<void> {
  const asked = request({ port, host: '127.0.0.1', path, agent: false });
  asked.end();
  const [answer] = (await once(asked, 'response')) as [NodeJS.ReadableStream];
  answer.resume();
  await once(answer, 'end');
}

/** A request line that is none. */
async function garbage(port: number): Promise<void> {
  const { connect } = await import('node:net');
  const socket = connect(port, '127.0.0.1');
  socket.end('\x16\x03\x01 "k=\r\n\r\n');
  socket.resume();
  await once(socket, 'close');
}
