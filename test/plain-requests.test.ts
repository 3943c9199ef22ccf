/**
 * Requests with nothing uncertain about them take a short way through the replay: what is counted of
 * them is what the long way counts.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { compileLogFormat, type LineScanner } from '../parsers/access/line-scanner.js';
import { parseConf } from '../parsers/conf/read-conf.js';
import { LogClock } from '../parsers/time.js';
import { Aggregator } from '../src/aggregate/aggregator.js';
import { loadConf } from '../src/input/conf-files.js';
import type { GenerationInput } from '../src/replay/generations.js';
import { ReplaySession } from '../src/replay/session.js';
import { formatOf, linesOf } from './support/captures.js';
import { traceDir, TRACES } from './support/truth.js';

interface Input {
  readonly generations: readonly GenerationInput[];
  readonly scanner: LineScanner;
  readonly access: readonly Uint8Array[];
  readonly errors: readonly string[];
}

interface Counted {
  readonly rows: readonly string[];
  /** Requests that took the short way to the end. */
  readonly plain: number;
}

/** @param isShort with the short way, or all as events */
function count(input: Input, isShort: boolean): Counted {
  const rows: string[] = [];
  let plain = 0;
  const session = new ReplaySession({
    generations: input.generations,
    isAudit: false,
    latenessMs: 2000,
    usesConnection: true,
    hasErrorLog: input.errors.length > 0,
    errorLogCount: 1,
    details: isShort ? 'refused' : 'all',
    onDecision: (event) => void aggregator.decide(event),
    ...(isShort
      ? {
          onPlain: (decision) => {
            plain++;
            aggregator.decidePlain(decision);
          },
        }
      : {}),
    onUnmatchedLine: (line) => void aggregator.unmatchedLine(line),
    onMark: () => undefined,
    onNote: () => undefined,
  });
  const sink = {
    row: (table: string, row: readonly unknown[]) =>
      void rows.push(JSON.stringify([table, ...row])),
  };
  const aggregator = new Aggregator(session, { instance: 'test', sink, keysPerMinute: 1e6 });
  const feed = session.accessFeed(input.scanner, null);
  const clock = new LogClock({ offsetMinutes: 0 });
  let next = 0;
  const takeErrors = (untilMs: number): void => {
    for (; next < input.errors.length; next++) {
      const { parsed, secondMs } = session.errorFeed.parse(input.errors[next]!, clock);
      if (secondMs > untilMs) return;
      session.errorFeed.take(input.errors[next]!, parsed, secondMs, 0);
    }
  };
  let latestMs = 0;
  for (const line of input.access) {
    feed.fields.scanner.scan(line, 0, line.length);
    latestMs = Math.max(latestMs, feed.fields.endMs(line));
    takeErrors(latestMs);
    session.advance(latestMs);
    feed.submit(line, feed.fields.endMs(line));
  }
  takeErrors(Infinity);
  session.finish();
  aggregator.flush();
  return { rows: rows.sort(), plain };
}

function assertSameRows(input: Input): Counted {
  const short = count(input, true);
  const long = count(input, false);
  for (const [i, row] of long.rows.entries()) assert.equal(short.rows[i], row);
  assert.equal(short.rows.length, long.rows.length);
  return short;
}

for (const name of TRACES) {
  test(`${name}: the short way and the long way count the same`, () => {
    const directory = traceDir(name);
    const scanner = compileLogFormat(formatOf(directory, 'access.log'));
    const access = linesOf(join(directory, 'access.log')).map((line) => Uint8Array.from(line));
    const errors = readFileSync(join(directory, 'error.log'), 'latin1').split('\n').slice(0, -1);
    const generations = [
      {
        conf: loadConf(join(directory, name === 'p_reload' ? 'nginx.conf.1' : 'nginx.conf')),
        sinceMs: null,
      },
    ];
    assertSameRows({ generations, scanner, access, errors: [] });
    assertSameRows({ generations, scanner, access, errors });
  });
}

const CONF = `events {} http {
  log_format t '$remote_addr [$msec] $request_time $upstream_response_time "$request" $status $limit_req_status $connection $connection_requests $pid';
  access_log a t;
  limit_req_zone $remote_addr zone=small:32k rate=2r/s;
  limit_req_zone $remote_addr zone=other:32k rate=7r/m;
  server {
    server_name s;
    location / { limit_req zone=small burst=3 delay=1; }
    location /two { limit_req zone=small burst=5 nodelay; limit_req zone=other burst=1; }
    location /none { return 204; }
  }
}`;

interface Request {
  readonly afterMs: number;
  readonly takenMs: number;
  readonly client: number;
  readonly path: number;
  readonly outcome: number;
  readonly connection: number;
}

/** Whatever the log says is counted alike, whether nginx would have written it or not. */
test('any log is counted the same by the short way and the long way', () => {
  const conf = parseConf('nginx.conf', { read: () => CONF, glob: () => [] }, '');
  const scanner = compileLogFormat(conf.logFormats.get('t')!);
  const request = fc.record({
    afterMs: fc.oneof(fc.constant(0), fc.nat(3), fc.nat(400), fc.nat(90_000)),
    takenMs: fc.oneof(fc.nat(3), fc.nat(3000)),
    client: fc.oneof(fc.nat(3), fc.nat(600)),
    path: fc.nat(2),
    outcome: fc.oneof(fc.constant(0), fc.nat(3)),
    connection: fc.nat(6),
  });
  let plain = 0;
  fc.assert(
    fc.property(fc.array(request, { minLength: 50, maxLength: 800, size: 'max' }), (requests) => {
      const access = linesFrom(requests);
      plain += assertSameRows({
        generations: [{ conf, sinceMs: null }],
        scanner,
        access,
        errors: [],
      }).plain;
    }),
    { numRuns: 60 },
  );
  assert.ok(plain > 1000, `only ${plain} requests took the short way`);
});

function linesFrom(requests: readonly Request[]): Uint8Array[] {
  const statuses = ['PASSED', 'DELAYED', 'REJECTED', '-'];
  const codes = [200, 200, 503, 404];
  const paths = ['/', '/two', '/none'];
  let ms = 1_800_000_000_000;
  return requests.map(({ afterMs, takenMs, client, path, outcome, connection }, i) => {
    ms += afterMs;
    const second = (value: number): string => (value / 1000).toFixed(3);
    const fields = [
      `10.0.${client >> 8}.${client & 255} [${second(ms)}] ${second(takenMs)}`,
      outcome === 0 ? second(takenMs >> 1) : '-',
      `"GET ${paths[path]} HTTP/1.1" ${codes[outcome]} ${statuses[outcome]} ${connection} ${i} 7`,
    ];
    return Buffer.from(fields.join(' '), 'latin1');
  });
}
