/**
 * A live nginx against the debug-log reader, and the limiter model against both.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { readDebugTruth, type TruthRequest } from './support/debug-truth.js';
import { decisionOf, ModelReplay } from './support/model-replay.js';
import { startNginx } from './support/nginx.js';
import type { Cleanup } from './support/temp-dir.js';
import { type ScheduledRequest, sendTraffic } from './support/traffic.js';

const LOG = `
  log_format truth '$connection $connection_requests $msec $status $limit_req_status $limit_conn_status';
  access_log access.log truth;`;

interface LoggedRequest {
  readonly msec: number;
  readonly limitReqStatus: string;
  readonly limitConnStatus: string;
}

interface Run {
  readonly truth: readonly TruthRequest[];
  /** By connection and request number, as idOf() writes them. */
  readonly logged: ReadonlyMap<string, LoggedRequest>;
  readonly errorLog: string;
}

/** Sends a schedule to a fresh nginx and gives back its logs, once it has stopped. */
async function run(
  t: Cleanup,
  http: string,
  files: Readonly<Record<string, string>>,
  requests: readonly ScheduledRequest[],
): Promise<Run> {
  const nginx = await startNginx(t, { http: ([port]) => LOG + http.replace('PORT', `${port}`) });
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(nginx.path(`html/${name}`), text);
  }
  const results = await sendTraffic(nginx.port, requests);
  await nginx.stop();
  assert.ok(results.every(({ status }) => status !== null));
  const logged = readAccessLog(nginx.path('access.log'));
  assert.equal(logged.size, requests.length);
  const truth = readDebugTruth(readFileSync(nginx.path('debug.log'), 'latin1'));
  return { truth, logged, errorLog: readFileSync(nginx.path('error.log'), 'latin1') };
}

function readAccessLog(path: string): ReadonlyMap<string, LoggedRequest> {
  const lines = readFileSync(path, 'latin1').trimEnd().split('\n');
  return new Map(
    lines.map((line) => {
      const [connection, requests, seconds, , limitReqStatus = '', limitConnStatus = ''] =
        line.split(' ');
      const msec = Math.round(Number(seconds) * 1000);
      return [`${connection}/${requests}`, { msec, limitReqStatus, limitConnStatus }] as const;
    }),
  );
}

function idOf(request: TruthRequest): string {
  return `${request.connection}/${request.connectionRequests}`;
}

/** The status that nginx's return codes and delay amount to. */
function statusOf(request: TruthRequest | undefined): string {
  const last = request?.zones.at(-1);
  if (request === undefined || last === undefined) return '-';
  if (last.rc === 'BUSY' || last.rc === 'ERROR') return 'REJECTED';
  return request.delayMs > 0 ? 'DELAYED' : 'PASSED';
}

function connStatusOf(request: TruthRequest | undefined): string {
  if (request?.connRejected === true) return 'REJECTED';
  return (request?.connections.length ?? 0) > 0 ? 'PASSED' : '-';
}

function argument(request: TruthRequest, name: string): string {
  const target = request.requestLine.split(' ')[1] ?? '';
  return new URL(target, 'http://test.example').searchParams.get(name) ?? '';
}

/** Compares every status; returns those seen, so that a test can say that all kinds occurred. */
function assertStatusesAgree({ truth, logged }: Run): readonly string[] {
  const byId = new Map(truth.map((request) => [idOf(request), request]));
  assert.equal(byId.size, truth.length, 'connection and request number tell requests apart');
  const seen = new Set<string>();
  for (const [id, { limitReqStatus, limitConnStatus }] of logged) {
    assert.equal(statusOf(byId.get(id)), limitReqStatus, id);
    assert.equal(connStatusOf(byId.get(id)), limitConnStatus, id);
    seen.add(limitReqStatus).add(limitConnStatus);
  }
  return [...seen].sort();
}

const ZONE = { sizeBytes: 32 * 1024 };

test('live nginx, two zones, limit_conn, pipelining, slow headers: all of it is told and modelled', async (t) => {
  const http = `
    limit_req_zone $arg_k zone=perkey:32k rate=10r/s;
    limit_req_zone $server_name zone=all:32k rate=60r/s;
    limit_req_zone $arg_c zone=slots:32k rate=10r/s;
    limit_conn_zone $arg_c zone=conns:32k;
    server {
      listen 127.0.0.1:PORT;
      server_name test.example;
      root html;
      location / { limit_req zone=perkey burst=3; limit_req zone=all burst=20 delay=5; }
      location = /free.txt { }
      location = /conn.txt { limit_conn conns 1; limit_req zone=slots burst=8; limit_rate 100; }
    }`;
  // 30 bytes under limit_rate 100 keep a connection's slot taken for long enough to be in the way.
  const files = { 'x.txt': 'here\n', 'free.txt': 'here\n', 'conn.txt': 'slow\n'.repeat(6) };
  const requests = Array.from({ length: 300 }, (_, i): ScheduledRequest => {
    const atMs = Math.floor(i / 6) * 80 + (i % 3);
    if (i % 25 === 0) return { atMs, path: '/free.txt' };
    if (i % 10 === 1) return { atMs, path: `/conn.txt?c=c${i % 2}`, slowHeaderMs: 15 };
    if (i % 7 === 3) return { atMs, path: '/x.txt?nokey=1' };
    const limited = { atMs, path: `/x.txt?k=key${i % 5}` };
    return i % 4 === 2 ? { ...limited, keepAlive: `pipe${i % 3}` } : limited;
  });
  const result = await run(t, http, files, requests);

  await t.test('every $limit_req_status and $limit_conn_status', () => {
    assert.deepEqual(assertStatusesAgree(result), ['-', 'DELAYED', 'PASSED', 'REJECTED']);
  });

  await t.test('the model gives every return code, excess and delay', () => {
    const site = new ModelReplay([
      { ...ZONE, nameLength: 6, rateMilliRps: 10_000, burstMilliReq: 3_000, delayMilliReq: 0 },
      { ...ZONE, nameLength: 3, rateMilliRps: 60_000, burstMilliReq: 20_000, delayMilliReq: 5_000 },
    ]);
    const slots = new ModelReplay([
      { ...ZONE, nameLength: 5, rateMilliRps: 10_000, burstMilliReq: 8_000, delayMilliReq: 0 },
    ]);
    for (const request of result.truth) {
      const slot = argument(request, 'c');
      const decision =
        slot === ''
          ? site.decide([argument(request, 'k'), 'test.example'], request.decisionMonoMs)
          : slots.decide([slot], request.decisionMonoMs);
      assert.deepEqual(decision, decisionOf(request), request.requestLine);
    }
  });

  await t.test('the rebuilt clock and $msec run side by side', () => {
    const offsets = result.truth.map((r) => result.logged.get(idOf(r))!.msec - r.logMonoMs);
    // Two clocks, each cut to whole milliseconds, read at the same moments.
    assert.ok(Math.max(...offsets) - Math.min(...offsets) <= 1, [...new Set(offsets)].join(' '));
  });
});

test('live nginx, a zone too small for keys of several sizes: each loss is told and modelled', async (t) => {
  const http = `
    limit_req_zone $arg_k zone=mixed:32k rate=30r/m;
    server { listen 127.0.0.1:PORT; root html; limit_req zone=mixed burst=1 nodelay; }`;
  // Short keys fill the zone; long ones then find no page, and short ones suffer for it.
  const requests = Array.from({ length: 700 }, (_, i): ScheduledRequest => {
    const isLong = i > 300 && i % 5 === 0;
    const isRegular = i % 4 === 1;
    const key = isLong ? `long${i % 90}`.padEnd(200, 'x') : isRegular ? `r${i % 3}` : `k${i % 331}`;
    return { atMs: i * 3, path: `/x.txt?k=${key}`, keepAlive: `client${i % 4}` };
  });
  const result = await run(t, http, { 'x.txt': 'here\n' }, requests);

  assert.deepEqual(assertStatusesAgree(result), ['-', 'PASSED', 'REJECTED']);
  const zone = { ...ZONE, nameLength: 5, rateMilliRps: 500 };
  const model = new ModelReplay([{ ...zone, burstMilliReq: 1_000, delayMilliReq: Infinity }]);
  for (const request of result.truth) {
    const decision = model.decide([argument(request, 'k')], request.decisionMonoMs);
    assert.deepEqual(decision, decisionOf(request), request.requestLine);
  }
  const lookups = result.truth.flatMap(({ zones }) => zones);
  const failed = lookups.filter(({ rc }) => rc === 'ERROR').length;
  assert.equal(result.errorLog.split('could not allocate node').length - 1, failed);
  assert.ok(failed > 0 && lookups.some(({ rc, freedNodes }) => rc === 'OK' && freedNodes > 0));
});
