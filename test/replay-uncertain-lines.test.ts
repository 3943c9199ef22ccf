/**
 * What a replay makes of logs that leave it a choice: whose error-log line it is on a connection
 * with rewrites, and whether a full zone with nodes of several sizes had a page for one more.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { KeyTable } from '../src/keys/key-table.js';
import { ZoneReplay } from '../src/replay/zone-replay.js';
import { replayFiles } from './support/agreement.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';

const SECOND = 1_796_000_000;
const STAMP = '2026/11/30 00:53:20';

interface Told {
  /** As sent, which the error log has. */
  readonly path: string;
  /** As logged; undefined for a request that is in no access log. */
  readonly uri: string | undefined;
  readonly excess: string;
}

/** Replays refused requests of one connection with the same arguments. @returns their excess */
function excessOf(t: Cleanup, location: string, told: readonly Told[], protocol = 'HTTP/1.1') {
  const dir = makeTempDir(t);
  const path = (name: string): string => join(dir, name);
  writeFileSync(
    path('nginx.conf'),
    `events {}
    http {
      log_format f '$msec $request_time $status $limit_req_status $remote_addr $server_name $request_method $uri $args $connection $connection_requests';
      access_log access.log f;
      limit_req_zone $arg_k zone=z:1m rate=1r/s;
      server {
        listen 80; server_name test.example; limit_req zone=z burst=1;
        location /b { limit_req zone=z burst=1; }
        location /a { limit_req zone=z burst=1; ${location} }
      }
    }`,
  );
  const logged = told.map(({ uri }, i) =>
    uri === undefined
      ? ''
      : `${SECOND}.${100 + i * 100} 0.000 503 REJECTED 127.0.0.1 test.example GET ${uri} k=x 7 ${i + 1}\n`,
  );
  writeFileSync(path('access.log'), logged.join(''));
  const lines = told.map(
    (one) =>
      `${STAMP} [error] 1#1: *7 limiting requests, excess: ${one.excess} by zone "z", client: 127.0.0.1, server: test.example, request: "GET ${one.path}?k=x ${protocol}", host: "test.example"\n`,
  );
  writeFileSync(path('error.log'), lines.join(''));
  const found = replayFiles([
    ...['--conf', path('nginx.conf'), path('access.log'), '--error-log', path('error.log')],
    ...['--timezone', 'UTC'],
  ]);
  return found.map(({ zones }) => zones[0]!.excess);
}

test('lines of one connection are taken in order, also where a rewrite hides whose they are', (t) => {
  const told = [
    { path: '/a', uri: '/b', excess: '1.100' },
    { path: '/b', uri: '/b', excess: '1.200' },
    { path: '/a', uri: '/b', excess: '1.300' },
    { path: '/b', uri: '/b', excess: '1.400' },
  ];
  assert.deepEqual(excessOf(t, 'rewrite ^ /b last;', told), [1.1, 1.2, 1.3, 1.4]);
});

test('a line whose request nothing leads elsewhere is not taken for another one', (t) => {
  const told = [
    { path: '/a', uri: undefined, excess: '1.100' },
    { path: '/b', uri: '/b', excess: '1.200' },
  ];
  assert.deepEqual(excessOf(t, '', told), [1.2]);
});

test('streams of one HTTP/2 connection may end in any order: the same request line decides', (t) => {
  const told = [
    { path: '/a', uri: undefined, excess: '1.100' },
    { path: '/b', uri: '/b', excess: '1.200' },
  ];
  assert.deepEqual(excessOf(t, 'rewrite ^ /b last;', told, 'HTTP/2.0'), [1.2]);
});

/** Looks up new keys of these lengths. @returns for each, whether its page was in doubt */
function doubts(lengths: readonly number[]): { unsure: boolean; hadPage: boolean }[] {
  const keys = new KeyTable();
  const zone = new ZoneReplay({ name: 'z', sizeBytes: 32_768, rateMilliRps: 1000 }, keys);
  return lengths.map((length, i) => {
    const bytes = Buffer.from(String(i).padStart(length, 'k'));
    const id = keys.intern(bytes, 0, length);
    keys.retain(id);
    const node = zone.locate(id, length, 1_000_000 + i, false);
    keys.release(id);
    // Charged, as nginx leaves it: it is not idle.
    if (node >= 0) zone.memory.lastMs[node] = 1_000_000 + i;
    return { unsure: zone.isPageUnsure, hadPage: node >= 0 };
  });
}

test('in a full zone with keys of one size an eviction makes room for sure', () => {
  const found = doubts(new Array<number>(600).fill(8));
  assert.ok(found.every(({ unsure, hadPage }) => hadPage && !unsure));
});

test('in a full zone with keys of several sizes the page of a new node is in doubt', () => {
  const found = doubts([
    ...new Array<number>(300).fill(8),
    ...Array.from({ length: 100 }, (_, i) => (i % 2 === 0 ? 8 : 900)),
  ]);
  assert.ok(found.slice(0, 300).every(({ unsure }) => !unsure));
  const without = found.filter(({ hadPage }) => !hadPage);
  assert.ok(without.length > 10, `${without.length} found no page`);
  assert.ok(without.every(({ unsure }) => unsure));
});
