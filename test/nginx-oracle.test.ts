/**
 * The debug-log reader against a live nginx: what it extracts must agree with the access log.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { readDebugTruth, type TruthRequest } from './support/debug-truth.js';
import { type Nginx, startNginx } from './support/nginx.js';
import { ReferenceLimiter } from './support/reference-limiter.js';
import type { Cleanup } from './support/temp-dir.js';
import { type ScheduledRequest, sendTraffic } from './support/traffic.js';

const HTTP = (port: number): string => `
  log_format truth '$connection $connection_requests $msec $status $limit_req_status $limit_conn_status';
  access_log access.log truth;
  limit_req_zone $arg_k zone=perkey:32k rate=10r/s;
  limit_req_zone $server_name zone=all:32k rate=60r/s;
  limit_req_zone $arg_c zone=before_conn:32k rate=10r/s;
  limit_conn_zone $arg_c zone=conns:32k;
  limit_conn_status 509;
  server {
    listen 127.0.0.1:${port};
    server_name test.example;
    root html;
    limit_req_status 429;
    location / { limit_req zone=perkey burst=3; limit_req zone=all burst=20 delay=5; }
    location = /free.txt { }
    location = /conn.txt { limit_conn conns 1; limit_req zone=before_conn burst=8; limit_rate 100; }
  }`;
const LIMITS = [
  { rateMilliRps: 10_000, burstMilliReq: 3_000, delayMilliReq: 0 },
  { rateMilliRps: 60_000, burstMilliReq: 20_000, delayMilliReq: 5_000 },
] as const;
const CONN_LIMITS = [{ rateMilliRps: 10_000, burstMilliReq: 8_000, delayMilliReq: 0 }] as const;

interface LoggedRequest {
  readonly msec: number;
  readonly status: number;
  readonly limitReqStatus: string;
  readonly limitConnStatus: string;
}

function readAccessLog(path: string): ReadonlyMap<string, LoggedRequest> {
  const lines = readFileSync(path, 'latin1').trimEnd().split('\n');
  return new Map(
    lines.map((line) => {
      const [connection, requests, seconds, status, req = '', conn = ''] = line.split(' ');
      const logged = {
        msec: Math.round(Number(seconds) * 1000),
        status: Number(status),
        limitReqStatus: req,
        limitConnStatus: conn,
      };
      return [`${connection}/${requests}`, logged] as const;
    }),
  );
}

/** The status that nginx's return codes and delay amount to. */
function statusOf(request: TruthRequest): string {
  const last = request.zones.at(-1);
  if (last === undefined) return '-';
  if (last.rc === 'BUSY' || last.rc === 'ERROR') return 'REJECTED';
  return request.delayMs > 0 ? 'DELAYED' : 'PASSED';
}

function connStatusOf(request: TruthRequest): string {
  if (request.connRejected) return 'REJECTED';
  return request.connections.length > 0 ? 'PASSED' : '-';
}

/** Bursts and gaps over 4 s on a few keys, some pipelined, some with slow headers. */
function schedule(): readonly ScheduledRequest[] {
  return Array.from({ length: 300 }, (_, i): ScheduledRequest => {
    const atMs = Math.floor(i / 6) * 80 + (i % 3);
    if (i % 25 === 0) return { atMs, path: '/free.txt' };
    if (i % 10 === 1) return { atMs, path: `/conn.txt?c=c${i % 2}`, slowHeaderMs: 15 };
    if (i % 7 === 3) return { atMs, path: '/x.txt?nokey=1' };
    const limited = { atMs, path: `/x.txt?k=key${i % 5}` };
    return i % 4 === 2 ? { ...limited, keepAlive: `pipe${i % 3}` } : limited;
  });
}

/** Runs the schedule against a fresh nginx and gives back its logs, once it has stopped. */
async function run(t: Cleanup): Promise<{
  readonly truth: readonly TruthRequest[];
  readonly logged: ReadonlyMap<string, LoggedRequest>;
}> {
  const nginx: Nginx = await startNginx(t, { http: ([port]) => HTTP(port!) });
  for (const name of ['x.txt', 'free.txt']) writeFileSync(nginx.path(`html/${name}`), 'here\n');
  // 30 bytes under limit_rate 100 keep a connection's slot taken for long enough to be in the way.
  writeFileSync(nginx.path('html/conn.txt'), 'slow\n'.repeat(6));
  const requests = schedule();
  const results = await sendTraffic(nginx.port, requests);
  await nginx.stop();
  assert.ok(results.every(({ status }) => status !== null));
  const logged = readAccessLog(nginx.path('access.log'));
  assert.equal(logged.size, requests.length);
  return { truth: readDebugTruth(readFileSync(nginx.path('debug.log'), 'latin1')), logged };
}

test('debug log of a live nginx: statuses, excess, delay and clock are those nginx used', async (t) => {
  const { truth, logged } = await run(t);
  const byId = new Map(truth.map((r) => [`${r.connection}/${r.connectionRequests}`, r]));
  assert.equal(byId.size, truth.length, 'connection and request number tell requests apart');

  await t.test('every $limit_req_status and $limit_conn_status', () => {
    const seen = new Set<string>();
    for (const [id, { limitReqStatus, limitConnStatus }] of logged) {
      const request = byId.get(id);
      assert.equal(request === undefined ? '-' : statusOf(request), limitReqStatus, id);
      assert.equal(request === undefined ? '-' : connStatusOf(request), limitConnStatus, id);
      seen.add(limitReqStatus).add(limitConnStatus);
    }
    assert.deepEqual([...seen].sort(), ['-', 'DELAYED', 'PASSED', 'REJECTED']);
  });

  await t.test('every return code, excess and delay follows from the clock and the order', () => {
    const limiter = new ReferenceLimiter(LIMITS);
    const connLimiter = new ReferenceLimiter(CONN_LIMITS);
    for (const request of truth) {
      const url = new URL(request.requestLine.split(' ')[1] ?? '', 'http://test.example');
      const conn = url.searchParams.get('c');
      const key = url.searchParams.get('k') ?? '';
      const expected =
        conn === null
          ? limiter.decide([key, 'test.example'], request.decisionMonoMs)
          : connLimiter.decide([conn], request.decisionMonoMs);
      const zones = request.zones.map(({ index, rc, excessMilliReq }) => ({
        index,
        rc,
        excessMilliReq,
      }));
      assert.deepEqual({ zones, delayMs: request.delayMs }, expected, request.requestLine);
    }
  });

  await t.test('a node is new exactly when its key is seen for the first time', () => {
    const known = new Set<string>();
    for (const { requestLine, zones } of truth) {
      for (const { index, isNewNode, freedNodes } of zones) {
        const isAll = requestLine.includes('/x.txt') && index === 1;
        const key = isAll ? 'all' : (/[?&][kc]=(\w+)/.exec(requestLine)?.[1] ?? '');
        assert.equal(isNewNode, !known.has(key), key);
        assert.equal(freedNodes, 0);
        known.add(key);
      }
    }
  });

  await t.test('the rebuilt clock and $msec run side by side', () => {
    const offsets = truth.map(
      (r) => logged.get(`${r.connection}/${r.connectionRequests}`)!.msec - r.logMonoMs,
    );
    // Two clocks, each cut to whole milliseconds, at the same moments.
    assert.ok(Math.max(...offsets) - Math.min(...offsets) <= 1, [...new Set(offsets)].join(' '));
  });
});
