/**
 * The error log alone: every limiting and delaying line of the captures becomes a request with the
 * excess that it states, its key, and the verdict that the configuration gives to that excess.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseErrorLine, type LimitLine } from '../parsers/error/error-line.js';
import { confArguments, replayFiles } from './support/agreement.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir, type TraceName } from './support/truth.js';

const CONF = `events {} http {
  log_format all '$remote_addr';
  limit_req_zone $arg_k zone=perkey:1m rate=10r/s;
  limit_req_zone $http_x_api_key zone=perapi:1m rate=10r/s;
  limit_req_zone $binary_remote_addr zone=peraddr:1m rate=5r/s;
  limit_conn_zone $binary_remote_addr zone=conns:1m;
  server { listen 80; server_name a.example;
    location / { limit_req zone=perkey burst=2; limit_req_status 429; }
    location /api { limit_req zone=perapi burst=2 nodelay; }
    location /two { limit_req zone=peraddr burst=4 nodelay; limit_req zone=perkey burst=3 nodelay; }
    location /conn { limit_conn conns 1; }
  } }`;
const HEAD = '2026/03/02 10:00:00 [error] 7#7: *3';
const AT = 'client: 192.0.2.7, server: a.example, request:';

function limitLines(path: string): LimitLine[] {
  return readFileSync(path, 'latin1')
    .split('\n')
    .map(parseErrorLine)
    .filter((line): line is LimitLine => 'excessMilliReq' in line);
}

function replayLines(t: { after(fn: () => void): void }, lines: readonly string[]) {
  const dir = makeTempDir(t);
  writeFileSync(join(dir, 'nginx.conf'), CONF);
  writeFileSync(join(dir, 'error.log'), lines.map((line) => `${line}\n`).join(''), 'latin1');
  const conf = join(dir, 'nginx.conf');
  return replayFiles(['--conf', conf, '--timezone', 'UTC', join(dir, 'error.log')]);
}

for (const name of ['a_burst5_delay', 'd_dry_run', 'e_two_zones', 'q_limit_conn'] as TraceName[]) {
  test(`${name}: each line is a request, as nginx states it`, () => {
    const errorLog = join(traceDir(name), 'error.log');
    const lines = limitLines(errorLog);
    assert.ok(lines.length > 100);
    const requests = replayFiles([...confArguments(traceDir(name)), '--error-log', errorLog]);
    const found = requests.map((request) => {
      const stated = request.zones.find((zone) => zone.anchored);
      const told = [request.connection, request.logged ?? 'by limit_conn', stated?.excess ?? null];
      return JSON.stringify(told);
    });
    const expected = lines.map(({ connection, kind, status, excessMilliReq }) =>
      JSON.stringify([
        connection,
        kind === 'limiting_connections' ? 'by limit_conn' : status,
        excessMilliReq === null ? null : excessMilliReq / 1000,
      ]),
    );
    assert.deepEqual(found.sort(), expected.sort());
    for (const { verdict, logged, possible, zones } of requests) {
      assert.equal(verdict, logged);
      assert.deepEqual(possible, logged === null ? [] : [logged]);
      for (const zone of zones) assert.notEqual(zone.key, null);
    }
  });
}

test('a line whose excess the configuration would let pass gives another verdict', (t) => {
  const line = `${HEAD} limiting requests, excess: 1.500 by zone "perkey", ${AT} "GET /?k=x HTTP/1.1", host: "a.example"`;
  const [request] = replayLines(t, [line]);
  assert.equal(request?.logged, 'REJECTED');
  assert.equal(request.verdict, 'DELAYED');
  assert.equal(request.status, 429);
  assert.equal(request.decisionMs, Date.UTC(2026, 2, 2, 10));
});

test('a key that the error log cannot tell is null, the excess stands', (t) => {
  const line = `${HEAD} limiting requests, excess: 2.500 by zone "perapi", ${AT} "GET /api HTTP/1.1", host: "a.example"`;
  const [zone] = replayLines(t, [line])[0]!.zones;
  assert.deepEqual(
    [zone?.key, zone?.outcome, zone?.excess, zone?.excessLow, zone?.excessHigh],
    [null, 'rejected', 2.5, 2.5, 2.5],
  );
});

test('a limit asked before the one that rejected lies anywhere up to its burst', (t) => {
  const line = `${HEAD} limiting requests, excess: 3.200 by zone "perkey", ${AT} "GET /two?k=y HTTP/1.1", host: "a.example"`;
  const [first, second] = replayLines(t, [line])[0]!.zones;
  assert.deepEqual(
    [first?.key, first?.excessLow, first?.excessHigh, first?.outcome],
    ['192.0.2.7', 0, 4, 'passed'],
  );
  assert.deepEqual([second?.key, second?.excess, second?.outcome], ['y', 3.2, 'rejected']);
});

test('a line cut inside its request has no key that the request would tell', (t) => {
  const path = `/two?k=${'y'.repeat(1900)}`;
  const line = `${HEAD} limiting requests, excess: 3.200 by zone "perkey", ${AT} "GET ${path}`;
  const [request] = replayLines(t, [line]);
  assert.deepEqual(
    request?.zones.map(({ key }) => key),
    ['192.0.2.7', null],
  );
});

test('limiting connections is an answer of limit_conn, and none of limit_req', (t) => {
  const line = `${HEAD} limiting connections by zone "conns", ${AT} "GET /conn HTTP/1.1", host: "a.example"`;
  const [request] = replayLines(t, [line]);
  assert.deepEqual(
    [request?.source, request?.status, request?.verdict, request?.zones],
    ['limit_conn', 503, null, []],
  );
});

test('a line whose zone no location has is no request', (t) => {
  const line = `${HEAD} limiting requests, excess: 3.200 by zone "gone", ${AT} "GET / HTTP/1.1", host: "a.example"`;
  assert.deepEqual(replayLines(t, [line]), []);
});
