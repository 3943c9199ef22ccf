import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type ErrorLine, parseErrorLine } from '../parsers/error/error-line.js';
import { captureDirectories, linesOf } from './support/captures.js';

/** Asserts that the parsed line has at least these properties. */
function assertHas(found: ErrorLine, expected: object): void {
  const picked = Object.fromEntries(
    Object.keys(expected).map((key) => [key, (found as unknown as Record<string, unknown>)[key]]),
  );
  assert.deepEqual(picked, expected);
}

const HEAD = '2026/03/02 10:00:00';
const TAIL =
  'client: 127.0.0.1, server: a.example, request: "GET /d?k=d HTTP/1.1", host: "a.example"';

const get = (
  target: string,
  path: string,
  args: string | null,
  protocol: string | null = 'HTTP/1.1',
) => ({
  raw: `GET ${target}${protocol === null ? '' : ` ${protocol}`}`,
  method: 'GET',
  target,
  path,
  args,
  protocol,
});

const REJECTED = { kind: 'limiting_requests', status: 'REJECTED', dryRun: false };
const DELAYED = { kind: 'delaying_request', status: 'DELAYED', dryRun: false };
const CONNECTIONS = { kind: 'limiting_connections', excessMilliReq: null };

const cases: readonly (readonly [string, object])[] = [
  // The sentences of nginx 1.22 and 1.28.
  [
    `${HEAD} [warn] 17#17: *3 delaying request, excess: 0.969, by zone "rz", ${TAIL}`,
    {
      ...DELAYED,
      timeText: HEAD,
      level: 'warn',
      pid: 17,
      tid: 17,
      connection: 3,
      truncated: false,
      excessMilliReq: 969,
      zone: 'rz',
      client: '127.0.0.1',
      server: 'a.example',
      request: get('/d?k=d', '/d', 'k=d'),
      subrequest: null,
      upstream: null,
      host: 'a.example',
      referrer: null,
      ambiguous: false,
    },
  ],
  [
    `${HEAD} [error] 17#0: *5 limiting requests, excess: 2.897 by zone "rz", ${TAIL}`,
    { ...REJECTED, excessMilliReq: 2897, tid: 0 },
  ],
  [
    `${HEAD} [warn] 17#0: *10 delaying request, dry run, excess: 0.970, by zone "rz", ${TAIL}`,
    { ...DELAYED, status: 'DELAYED_DRY_RUN', dryRun: true, excessMilliReq: 970 },
  ],
  [
    `${HEAD} [error] 17#0: *14 limiting requests, dry run, excess: 2.906 by zone "rz", ${TAIL}`,
    { ...REJECTED, status: 'REJECTED_DRY_RUN', dryRun: true, excessMilliReq: 2906 },
  ],
  [
    `${HEAD} [error] 17#0: *39 limiting connections by zone "cz", ${TAIL}`,
    { ...CONNECTIONS, status: 'REJECTED', zone: 'cz', client: '127.0.0.1' },
  ],
  [
    `${HEAD} [error] 17#0: *42 limiting connections, dry run, by zone "cz", ${TAIL}`,
    { ...CONNECTIONS, status: 'REJECTED_DRY_RUN', dryRun: true },
  ],
  // The other sentence's punctuation and number.
  [
    `${HEAD} [warn] 17#0: *3 delaying requests, excess: 5.010 by zone "z", ${TAIL}`,
    { ...DELAYED, excessMilliReq: 5010 },
  ],
  [
    `${HEAD} [error] 17#0: *3 limiting request, excess: 5.010, by zone "z", ${TAIL}`,
    { ...REJECTED, excessMilliReq: 5010 },
  ],
  // cases.md
  [
    `${HEAD} [error] 17#17: *9 limiting requests, excess: 50.416 by zone "api_tok", client: 192.0.2.7, server: api.example.com, request: "POST /graphql?access_token=AAAA HTTP/2.0", host: "api.example.com"`,
    { ...REJECTED, excessMilliReq: 50_416, zone: 'api_tok', client: '192.0.2.7' },
  ],
  [
    `${HEAD} [warn] 47#47: *68 delaying request, excess: 0.841, by zone "req", client: 2001:db8::42, server: example.net, request: "GET /a HTTP/1.1", host: "198.51.100.4"`,
    { ...DELAYED, excessMilliReq: 841, client: '2001:db8::42', host: '198.51.100.4' },
  ],
  [
    `${HEAD} [error] 5#5: *2 limiting requests, dry run, excess: 2.000 by zone "z", client: 203.0.113.5, server: , request: "GET / HTTP/1.1", host: "example.com"`,
    { status: 'REJECTED_DRY_RUN', zone: 'z', server: '', request: get('/', '/', null) },
  ],
  [
    `${HEAD} [error] 5#5: *2 limiting connections by zone "addr", client: 192.0.2.9, server: 0.0.0.0:12345`,
    { ...CONNECTIONS, client: '192.0.2.9', server: '0.0.0.0:12345', request: null, host: null },
  ],
  [
    `${HEAD} [error] 5#5: *2 limiting connections by zone "addr", udp client: 192.0.2.9, server: 0.0.0.0:53, bytes from/to client:0/0, bytes from/to upstream:0/0`,
    { client: '192.0.2.9', server: '0.0.0.0:53', request: null },
  ],
  [
    `${HEAD} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "z", client: 192.0.2.7, server: s, request: "POST https://example.org/login", host: "example.org", referrer: "https://example.org/login?r=/"`,
    {
      request: {
        raw: 'POST https://example.org/login',
        method: 'POST',
        target: 'https://example.org/login',
        path: '/login',
        args: null,
        protocol: null,
      },
      host: 'example.org',
      referrer: 'https://example.org/login?r=/',
      ambiguous: false,
    },
  ],
  [
    `${HEAD} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "z", client: 192.0.2.7, server: s, request: "GET /list/a&P1.html HTTP/2.0"`,
    { request: get('/list/a&P1.html', '/list/a&P1.html', null, 'HTTP/2.0'), host: null },
  ],
  [
    `${HEAD} [notice] 133#133: signal process started`,
    { kind: 'process_mark', mark: 'signal_process_started', connection: null, pid: 133 },
  ],
  [
    `${HEAD} [crit] 58#58: ngx_slab_alloc() failed: no memory in limit_conn_zone "addr"`,
    { kind: 'slab_no_memory', pool: { what: 'limit_conn_zone', zone: 'addr' } },
  ],
  [
    `${HEAD} [crit] 58#58: ngx_slab_alloc() failed: no memory in upstream zone "be"`,
    { pool: { what: 'upstream zone', zone: 'be' } },
  ],
  [
    `${HEAD} [crit] 58#58: ngx_slab_alloc() failed: no memory in vhost_traffic_status_zone "v"`,
    { pool: { what: 'vhost_traffic_status_zone', zone: 'v' } },
  ],
  [
    `${HEAD} [crit] 58#58: ngx_slab_alloc() failed: no memory`,
    { pool: { what: null, zone: null } },
  ],
  [
    `${HEAD} [crit] 58#58: ngx_slab_alloc() failed: no memory in SSL session shared cache`,
    { pool: { what: 'SSL session shared cache', zone: null } },
  ],
  [
    `${HEAD} [emerg] 8123#8123: ngx_slab_alloc() failed: no memory in shared zone "perip"`,
    { kind: 'slab_no_memory', level: 'emerg', pool: { what: 'shared zone', zone: 'perip' } },
  ],
  [
    `${HEAD} [alert] 5#5: could not allocate node in limit_req zone "perip"`,
    { kind: 'node_allocation_failed', zone: 'perip' },
  ],
  [`${HEAD} [alert] 5#5: could not allocate node`, { kind: 'node_allocation_failed', zone: null }],
  [
    `${HEAD} [alert] 8#8: *42 could not allocate new session in SSL session shared cache "SSL" while SSL handshaking, client: 198.51.100.8, server: 0.0.0.0:443`,
    { kind: 'other', connection: 42 },
  ],
  [
    'E0302 10:00:00.1       6 controller.go:2] error obtaining endpoints',
    {
      kind: 'other',
      level: '',
      message: 'E0302 10:00:00.1       6 controller.go:2] error obtaining endpoints',
    },
  ],
  [
    `${HEAD} [error] 5#5: *2 limiting requests, excess: 3.200 by zone "z", client: 192.0.2.7, server: s, request: "GET /?q=AAAA`,
    {
      ...REJECTED,
      truncated: true,
      request: get('/?q=AAAA', '/', 'q=AAAA', null),
      ambiguous: false,
    },
  ],
  [
    `${HEAD} [warn] 5#5: *65 delaying request, excess: 0.997, by zone "rz", client: 127.0.0.1, server: a.example, request: "GET /def?k=Q1&a=",+client:+9.9.9.9,+server:+evil HTTP/1.1", host: "a.example"`,
    {
      client: '127.0.0.1',
      server: 'a.example',
      host: 'a.example',
      ambiguous: false,
      request: get(
        '/def?k=Q1&a=",+client:+9.9.9.9,+server:+evil',
        '/def',
        'k=Q1&a=",+client:+9.9.9.9,+server:+evil',
      ),
    },
  ],
  [
    `${HEAD} [warn] 5#5: *61 delaying request, excess: 0.997, by zone "rz", client: unix:, server: a, request: "GET /def HTTP/1.1", host: "ev"il,client:"`,
    { client: 'unix:', host: 'ev"il,client:' },
  ],
  // Around the request.
  [
    `${HEAD} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "z", client: 192.0.2.7, server: s, request: "GET /a HTTP/1.1", subrequest: "/b", upstream: "http://127.0.0.1:80/c", host: "h"`,
    { subrequest: '/b', upstream: 'http://127.0.0.1:80/c', host: 'h', ambiguous: false },
  ],
  [
    `${HEAD} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "z" while sending to client, client: 192.0.2.7, server: s, request: "GET /a HTTP/1.1"`,
    { client: '192.0.2.7', server: 's' },
  ],
  [
    `${HEAD} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "z"`,
    { client: null, server: null },
  ],
  [
    `${HEAD} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "z", ${TAIL}\r`,
    { host: 'a.example' },
  ],
  // A referrer is free text; nothing in it is a host.
  [
    `${HEAD} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "z", client: 192.0.2.7, server: s, request: "GET /a HTTP/1.1", host: "h", referrer: "x", host: "evil"`,
    { host: 'h', referrer: 'x", host: "evil', ambiguous: false },
  ],
  // An old nginx would write the same for a request with spaces, so this one is open to doubt.
  [
    `${HEAD} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "z", client: 192.0.2.7, server: s, request: "GET /a HTTP/1.1", host: "h", referrer: "x HTTP/1.1", host: "evil"`,
    { host: 'h', ambiguous: true },
  ],
  [
    `${HEAD} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "z", client: 192.0.2.7, server: s, request: "GET /a b", host: "evil HTTP/1.1", host: "h"`,
    { host: 'h', request: get('/a b", host: "evil', '/a b", host: "evil', null), ambiguous: false },
  ],
  [
    `${HEAD} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "z", client: 192.0.2.7, server: s, request: "GET /a", host: "evil HTTP/1.1", host: "h"`,
    { host: 'h', request: get('/a", host: "evil', '/a", host: "evil', null) },
  ],
  // Keys that are too long.
  [
    `${HEAD} [error] 5#5: *2 the value of the "$arg_k" key is more than 65535 bytes: "zzz`,
    { kind: 'key_too_long', keyExpression: '$arg_k', limitBytes: 65535, module: 'limit_req' },
  ],
  [
    `${HEAD} [error] 5#5: *2 the value of the "$arg_k" key is more than 255 bytes: "zzz", ${TAIL}`,
    { kind: 'key_too_long', limitBytes: 255, module: 'limit_conn', connection: 2 },
  ],
  // Reloads.
  [
    `${HEAD} [emerg] 5#5: limit_req "rz" uses the "$arg_k$uri" key while previously it used the "$arg_k" key`,
    { kind: 'zone_key_conflict', zone: 'rz', where: null },
  ],
  [
    `${HEAD} [emerg] 5#5: limit_conn_zone "cz" uses the "$a" key while previously it used the "$b" key`,
    { kind: 'zone_key_conflict', zone: 'cz' },
  ],
  [
    `${HEAD} [emerg] 5#5: the size 2097152 of shared memory zone "rz" conflicts with already declared size 1048576 in /etc/nginx/nginx.conf:17`,
    { kind: 'zone_size_conflict', zone: 'rz', where: { path: '/etc/nginx/nginx.conf', line: 17 } },
  ],
  [
    'nginx: [emerg] the shared memory zone "rz" is already declared for a different use in /etc/nginx/nginx.conf:17',
    { kind: 'zone_use_conflict', zone: 'rz', level: 'emerg', timeText: '', connection: null },
  ],
  [
    `${HEAD} [emerg] 5#5: unknown directive "limit" in /etc/nginx/nginx.conf:3`,
    { kind: 'refused', zone: null, where: { path: '/etc/nginx/nginx.conf', line: 3 } },
  ],
  [
    `${HEAD} [emerg] 5#5: bind() to 0.0.0.0:80 failed (98: Address already in use)`,
    { kind: 'other' },
  ],
  [
    `${HEAD} [notice] 5#5: signal 1 (SIGHUP) received from 17, reconfiguring`,
    {
      mark: 'signal_received',
      signal: 'SIGHUP',
      message: 'signal 1 (SIGHUP) received from 17, reconfiguring',
    },
  ],
  [`${HEAD} [notice] 5#5: reconfiguring`, { mark: 'reconfiguring' }],
  [`${HEAD} [notice] 5#5: reopening logs`, { mark: 'reopening_logs' }],
  [`${HEAD} [notice] 5#5: exiting`, { mark: 'exiting' }],
  [
    `${HEAD} [notice] 5#5: start worker process 42`,
    { mark: 'start_process', role: 'worker process', childPid: 42 },
  ],
  [
    `${HEAD} [notice] 5#5: worker process 42 exited with code 0`,
    { mark: 'process_exited', role: 'worker process', childPid: 42 },
  ],
  [
    `${HEAD} [notice] 5#5: start new binary process 43`,
    { role: 'new binary process', childPid: 43 },
  ],
  // Near misses.
  [`${HEAD} [error] 5#5: *1 limiting requests by zone "z", ${TAIL}`, { kind: 'other' }],
  [`${HEAD} [error] 5#5: *1 delaying connections by zone "z", ${TAIL}`, { kind: 'other' }],
  [
    `${HEAD} [error] 5#5: *1 open() "/x/limiting requests, excess: 1.000 by zone "z"" failed, ${TAIL}`,
    { kind: 'other' },
  ],
  // What is no line of an error log.
  ['', { kind: 'malformed', column: 1, expected: 'a time like 2026/03/02 10:00:00' }],
  ['192.0.2.7 - - [02/Mar/2026:10:00:00 +0000] "GET /" 200', { kind: 'malformed', column: 1 }],
  [`${HEAD} [loud] 5#5: x`, { kind: 'malformed', column: 21, expected: 'a level like [error]' }],
  [
    `${HEAD} [warn] x`,
    { kind: 'malformed', column: 28, expected: 'a process and thread like 17#17:' },
  ],
];

describe('error lines', () => {
  for (const [line, expected] of cases) {
    test(JSON.stringify(line), () => assertHas(parseErrorLine(line), expected));
  }
});

test('a line of exactly 2047 bytes was cut, wherever that was', () => {
  const start = `${HEAD} [error] 5#5: *2 limiting requests, excess: 3.200 by zone "z", client: 192.0.2.7, server: s, request: "GET /`;
  const end = ' HTTP/1.1", host: "a.example", referrer: "http://b.example/';
  for (let shift = 0; shift <= end.length; shift++) {
    const line = start + 'q'.repeat(2047 - start.length - shift) + end.slice(0, shift);
    assert.equal(line.length, 2047);
    const found = parseErrorLine(line);
    assertHas(found, { kind: 'limiting_requests', truncated: true, client: '192.0.2.7' });
    assert.ok('ambiguous' in found && !found.ambiguous, line.slice(-60));
    if (shift > ' HTTP/1.1", host: "a.example"'.length) assertHas(found, { host: 'a.example' });
  }
});

describe('captures', () => {
  for (const directory of captureDirectories()) {
    for (const name of ['error.log', 'server_error.log']) {
      const path = join(directory, name);
      if (!existsSync(path)) continue;
      test(`${path}: every line is read, and the limit lines are those that grep finds`, () => {
        const lines = linesOf(path).map((line) => line.toString('latin1'));
        const events = lines.map(parseErrorLine);
        assert.deepEqual(
          events.filter((event) => event.kind === 'malformed'),
          [],
        );
        const isLimitLine = (line: string): boolean => /: \*\d+ (?:limiting|delaying) /.test(line);
        assert.deepEqual(
          events.map((event) => 'status' in event),
          lines.map(isLimitLine),
        );
        for (const event of events) {
          if ('status' in event) assert.ok(event.client !== null && !event.ambiguous);
        }
      });
    }
  }
});

describe('nothing that a client sends changes zone, client, server or host', () => {
  const piece = fc.constantFrom(
    ...[
      '"',
      '", ',
      ',',
      'host:',
      'client:',
      '+',
      '", host: "',
      ', client: 6.6.6.6',
      'x',
      '/',
      '?',
      '=',
      '&',
    ],
    ...[
      '", referrer: "',
      '", upstream: "http://6.6.6.6',
      ', server: evil',
      ' HTTP/1.1',
      'by zone "evil"',
      '\xff',
    ],
  );
  const text = fc.array(piece, { maxLength: 8 }).map((parts) => parts.join(''));
  // What nginx lets through: no space in a target, neither space nor slash in a host.
  const target = text.map((value) => `/${value.replaceAll(' ', '+')}`);
  const host = text.map((value) => value.replace(/[ /]/g, ''));

  test('request, host and referrer come back as sent', () => {
    fc.assert(
      fc.property(target, fc.option(host), fc.option(text), (sent, hostSent, referrer) => {
        const line =
          `${HEAD} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "z", client: 192.0.2.7, server: s` +
          `, request: "GET ${sent} HTTP/1.1"` +
          (hostSent === null ? '' : `, host: "${hostSent}"`) +
          (referrer === null ? '' : `, referrer: "${referrer}"`);
        const found = parseErrorLine(line);
        assertHas(found, { zone: 'z', client: '192.0.2.7', server: 's', host: hostSent, referrer });
        assert.equal('request' in found ? found.request?.target : undefined, sent);
      }),
      { numRuns: 2000 },
    );
  });

  test('no line throws', () => {
    const lineText = fc.array(piece, { maxLength: 12 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(lineText, (tail) => {
        const found = parseErrorLine(
          `${HEAD} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "z"${tail}`,
        );
        assertHas(found, { kind: 'limiting_requests', zone: 'z' });
      }),
    );
    fc.assert(fc.property(fc.string(), (line) => void parseErrorLine(line)));
  });
});
