/**
 * An access log and its error log in calls of their own, whichever comes first: each request counts
 * once.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { InputError } from '../src/errors.js';
import type { ImportResult } from '../src/pipeline/import-logs.js';
import { openStore, type Store } from '../src/store/store.js';
import { confOf } from './support/imports.js';
import { Instance } from './support/instances.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

const TRACE = 'a_burst5_delay';
const CONF = confOf(TRACE);
const ACCESS = join(traceDir(TRACE), 'access.log');
const ERROR = join(traceDir(TRACE), 'error.log');

function linesOf(path: string): string[] {
  return readFileSync(path, 'latin1').trimEnd().split('\n');
}

function write(dir: string, name: string, lines: readonly string[]): string {
  const path = join(dir, name);
  const text = Buffer.from(lines.map((line) => `${line}\n`).join(''), 'latin1');
  writeFileSync(path, name.endsWith('.gz') ? gzipSync(text) : text);
  return path;
}

const ACCESS_LINES = linesOf(ACCESS);
const THIRD = Math.floor(ACCESS_LINES.length / 3);
const ERROR_LINES = linesOf(ERROR);
const isLimit = (line: string): boolean => /(?:limiting|delaying) request/.test(line);
const LIMIT_LINES = ERROR_LINES.filter(isLimit).length;

void suite('an access log and its error log in two calls', () => {
  let store: Store;
  let expected: object;

  const root = mkdtempSync(join(tmpdir(), 'limitlens-two-calls-'));

  before(async () => {
    store = await openStore({ path: join(root, 'store'), createIfMissing: true });
    const both = new Instance(store, CONF, 'both');
    await both.add([ACCESS, ERROR]);
    expected = await both.counted();
  });

  after(async () => {
    await store.close();
    rmSync(root, { recursive: true });
  });

  test('the error log later, grown, and gzipped: nothing new, and said', async (t) => {
    const dir = makeTempDir(t);
    const instance = new Instance(store, CONF, 'error-later');
    await instance.add([ACCESS]);
    const counted = await instance.counted();
    let known = 0;
    for (const [name, length] of [
      ['error.log', ERROR_LINES.length >> 1],
      ['error.log', ERROR_LINES.length],
      ['error.log.2.gz', ERROR_LINES.length],
    ] as const) {
      const result = await instance.add([write(dir, name, ERROR_LINES.slice(0, length))]);
      assert.deepEqual([result.summary.requests, result.summary.unmatchedLines], [0, 0]);
      assert.deepEqual([result.waitingLines, result.isNewest], [0, true]);
      assert.deepEqual(result.said, []);
      known += result.knownLines;
    }
    assert.equal(known, LIMIT_LINES);
    assert.deepEqual(await instance.counted(), counted);
  });

  test('a second error log with the same lines, later: nothing new', async (t) => {
    const dir = makeTempDir(t);
    const instance = new Instance(store, CONF, 'second-error-log');
    await instance.add([ACCESS, ERROR]);
    const lines = ERROR_LINES.filter(isLimit).slice(3);
    const result = await instance.add([write(dir, 'site-error.log', lines)]);
    assert.equal(result.knownLines, lines.length);
    assert.deepEqual(await instance.counted(), expected);
  });

  test('the error log first, its access log in pieces later: as both in one call', async (t) => {
    const dir = makeTempDir(t);
    const instance = new Instance(store, CONF, 'error-first');
    // A new log beside it, as after rotation, tells that there are access logs.
    const first = await instance.add([write(dir, 'access.log', []), ERROR]);
    assert.deepEqual([first.waitingLines, first.summary.requests], [LIMIT_LINES, 0]);
    await instance.add([write(dir, 'access.log', ACCESS_LINES.slice(0, THIRD))]);
    await instance.add([write(dir, 'access.log', ACCESS_LINES.slice(0, 2 * THIRD))]);
    const rotated = write(dir, 'access.log.1.gz', ACCESS_LINES.slice(0, 2 * THIRD));
    const rest = write(dir, 'access.log', ACCESS_LINES.slice(2 * THIRD));
    const last = await instance.add([rotated, rest]);
    assert.deepEqual([last.knownLines, last.isNewest], [0, true]);
    assert.deepEqual(await instance.counted(), expected);
  });

  test('by turns, the error log ahead each time', async (t) => {
    const dir = makeTempDir(t);
    const instance = new Instance(store, CONF, 'turns');
    await instance.add([write(dir, 'access.log', ACCESS_LINES.slice(0, 20))]);
    for (let part = 1; part <= 3; part++) {
      const errors = Math.floor((ERROR_LINES.length * part) / 3);
      await instance.add([write(dir, 'error.log', ERROR_LINES.slice(0, errors))]);
      const lines = part === 3 ? ACCESS_LINES.length : part * THIRD - 5;
      const result = await instance.add([write(dir, 'access.log', ACCESS_LINES.slice(0, lines))]);
      assert.deepEqual([result.isNewest, result.said], [true, []]);
    }
    assert.deepEqual(await instance.counted(), expected);
  });

  test('an error log that reaches further than the access log, on both sides', async (t) => {
    const dir = makeTempDir(t);
    const instance = new Instance(store, CONF, 'both-sides');
    const middle = write(dir, 'access.log.1', ACCESS_LINES.slice(THIRD, 2 * THIRD));
    const first = await instance.add([middle, ERROR]);
    assert.equal(first.summary.unmatchedLines, 0);
    assert.ok(first.waitingLines > 0, 'no line waits');
    const last = await instance.add([write(dir, 'access.log', ACCESS_LINES.slice(2 * THIRD))]);
    assert.ok(last.waitingLines < first.waitingLines);
    const older = await instance.add([write(dir, 'access.log.2.gz', ACCESS_LINES.slice(0, THIRD))]);
    assert.equal(older.isNewest, false);
    assert.deepEqual(await instance.counted(), expected);
  });

  test('an error log alone counts requests; the access log of its time is refused', async (t) => {
    const dir = makeTempDir(t);
    const instance = new Instance(store, CONF, 'alone');
    const alone = await instance.add([ERROR]);
    assert.equal(alone.summary.requests, LIMIT_LINES);
    const counted = await instance.counted();
    for (const log of [ACCESS, write(dir, 'access.log.2.gz', ACCESS_LINES)]) {
      await assert.rejects(instance.add([log, ERROR]), (error: unknown) => {
        assert.ok(error instanceof InputError);
        assert.equal(error.exitCode, 65);
        assert.match(error.message, /expected requests that are not counted yet.*error\.log/);
        assert.match(error.message, /Import both in one call into another --instance or --store/);
        return true;
      });
    }
    const grown = [...ERROR_LINES, ERROR_LINES.at(-1)!];
    const again = await instance.add([write(dir, 'error.log', grown)]);
    assert.equal(again.summary.requests, isLimit(ERROR_LINES.at(-1)!) ? 1 : 0);
    if (again.summary.requests === 0) assert.deepEqual(await instance.counted(), counted);
    // An access log of another time has nothing to do with it.
    const later = ACCESS_LINES.map((line) =>
      line.replace(/"msec":(\d+)/, (_, seconds: string) => `"msec":${Number(seconds) + 86_400}`),
    );
    const next = await instance.add([write(dir, 'access.log', later)]);
    assert.equal(next.summary.requests, later.length);
  });

  test('a line of a location without an access log has none to wait for', async (t) => {
    const dir = makeTempDir(t);
    const conf = join(dir, 'nginx.conf');
    writeFileSync(
      conf,
      `events {}
http {
  log_format replay '$msec $request_time $status $limit_req_status $remote_addr $connection "$request"';
  limit_req_zone $remote_addr zone=ip:1m rate=1r/s;
  access_log /var/log/nginx/access.log replay;
  server {
    listen 80;
    server_name s;
    location / { limit_req zone=ip; }
    location /quiet { limit_req zone=ip; access_log off; }
    location /own { limit_req zone=ip; access_log /var/log/nginx/own.log replay; }
  }
}
`,
    );
    const line = (second: number, path: string): string =>
      `2026/03/02 10:00:0${second} [error] 7#7: *${second} limiting requests, excess: 0.500 by zone "ip", ` +
      `client: 192.0.2.7, server: s, request: "GET ${path} HTTP/1.1", host: "s"`;
    const access = (second: number, path: string): string =>
      `${Date.UTC(2026, 2, 2, 10) / 1000 + second}.500 0.000 503 REJECTED 192.0.2.7 ${second} "GET ${path} HTTP/1.1"`;
    const instance = new Instance(store, conf, 'quiet');
    const error = write(dir, 'error.log', [line(1, '/'), line(2, '/quiet'), line(3, '/own')]);
    const first = await instance.add([
      write(dir, 'access.log', [access(1, '/'), access(4, '/')]),
      error,
    ]);
    assert.deepEqual([first.summary.requests, first.waitingLines], [2, 1]);
    const own = await instance.add([write(dir, 'own.log', [access(3, '/own')])]);
    assert.deepEqual(
      [own.summary.requests, own.waitingLines, own.summary.unmatchedLines],
      [1, 0, 0],
    );
    // Long after, nobody has taken the quiet line.
    const late = await instance.add([
      write(dir, 'access.log', [
        ...[access(1, '/'), access(4, '/')],
        access(600, '/'),
        access(1200, '/'),
      ]),
    ]);
    assert.equal(first.summary.unmatchedLines + late.summary.unmatchedLines, 1);
  });

  test('a zone without memory in the last seconds of the log counts, at once or with its request', async (t) => {
    const dir = makeTempDir(t);
    const alert = ERROR_LINES.filter(isLimit)
      .at(-1)!
      .replace(/\*\d+ .*/, 'could not allocate node in limit_req zone "perkey"')
      .replace(/\[\w+\]/, '[alert]');
    const lines = [...ERROR_LINES, alert];
    const exhausted = (result: ImportResult): number =>
      result.summary.zones.reduce((sum, zone) => sum + zone.outcomes.exhausted, 0);
    const both = new Instance(store, CONF, 'alert-both');
    assert.equal(exhausted(await both.add([ACCESS, write(dir, 'error.log', lines)])), 1);
    const apart = new Instance(store, CONF, 'alert-first');
    const first = await apart.add([write(dir, 'access.log', []), write(dir, 'error.log', lines)]);
    assert.deepEqual([exhausted(first), first.waitingLines], [0, LIMIT_LINES + 1]);
    const second = await apart.add([write(dir, 'access.log', ACCESS_LINES)]);
    assert.deepEqual([exhausted(second), second.waitingLines], [1, 0]);
  });
});
