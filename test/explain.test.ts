import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Explanation, explainLine } from '../src/report/explain.js';

const T = '2026/03/02 10:00:00';
const LONG = `${T} [error] 17#17: *9 limiting requests, excess: 50.416 by zone "api_tok", client: 192.0.2.7, server: api.example.com, request: "POST /graphql?access_token=AAAA HTTP/2.0", host: "api.example.com"`;
const DELAYED = `${T} [warn] 47#47: *68 delaying request, excess: 0.841, by zone "req", client: 2001:db8::42, server: example.net, request: "GET /a HTTP/1.1", host: "198.51.100.4"`;
const tail = (request: string): string =>
  `client: 192.0.2.7, server: s, request: "${request}", host: "h.example"`;
const rejected = (excess: string, rest = tail('GET / HTTP/1.1')): string =>
  `${T} [error] 5#5: *2 limiting requests, excess: ${excess} by zone "z", ${rest}`;

/** [title, line, what the explanation must hold]. */
const plain: readonly (readonly [string, string, object])[] = [
  [
    '1 a reject implies its burst',
    LONG,
    {
      kind: 'limiting_requests',
      level: 'error',
      pid: 17,
      connection: 9,
      zone: 'api_tok',
      client: '192.0.2.7',
      server: 'api.example.com',
      host: 'api.example.com',
      status: 'REJECTED',
      excess: 50.416,
      impliedBurst: 50,
      source: 'limit_req',
      retryAfterSeconds: null,
      retryAfterFormula: 'ceil(0.416 / rate)',
      truncated: false,
      findings: [],
      request: {
        method: 'POST',
        target: '/graphql',
        path: '/graphql',
        protocol: 'HTTP/2.0',
        hasArgs: true,
      },
    },
  ],
  [
    '2 a delay is no reject',
    DELAYED,
    {
      kind: 'delaying_request',
      status: 'DELAYED',
      excess: 0.841,
      zone: 'req',
      client: '2001:db8::42',
      impliedBurst: null,
      delayMs: null,
      delayFormula: '(0.841 - delay) * 1000 / rate',
      source: null,
    },
  ],
  [
    '2 the other punctuation',
    DELAYED.replace('request, excess: 0.841,', 'requests, excess: 0.841'),
    { kind: 'delaying_request', status: 'DELAYED', excess: 0.841 },
  ],
  [
    '3 dry run, empty server, whole excess',
    `${T} [error] 5#5: *2 limiting requests, dry run, excess: 2.000 by zone "z", client: 203.0.113.5, server: , request: "GET / HTTP/1.1", host: "example.com"`,
    {
      status: 'REJECTED_DRY_RUN',
      zone: 'z',
      server: '',
      impliedBurst: { low: 1, high: 1 },
      source: null,
      httpStatus: null,
    },
  ],
  [
    '4 limit_conn',
    `${T} [error] 5#5: *2 limiting connections by zone "addr", client: 192.0.2.9, server: s, request: "GET / HTTP/1.1"`,
    {
      kind: 'limiting_connections',
      status: 'REJECTED',
      zone: 'addr',
      client: '192.0.2.9',
      excess: null,
      impliedBurst: null,
      retryAfterFormula: null,
      source: 'limit_conn',
      findings: [],
    },
  ],
  [
    '4 limit_conn in dry run, host missing',
    `${T} [error] 5#5: *2 limiting connections, dry run, by zone "addr", client: 192.0.2.9, server: s, request: "GET / HTTP/1.1"`,
    {
      kind: 'limiting_connections',
      status: 'REJECTED_DRY_RUN',
      limitConnStatus: 'REJECTED_DRY_RUN',
      host: null,
      source: null,
    },
  ],
  [
    '5 absolute form, no version',
    rejected(
      '1.500',
      'client: 192.0.2.7, server: s, request: "POST https://example.org/login", host: "example.org", referrer: "https://example.org/login?r=/"',
    ),
    {
      request: {
        method: 'POST',
        target: 'https://example.org/login',
        path: '/login',
        protocol: null,
        hasArgs: false,
      },
      referrer: 'https://example.org/login?…',
      findings: [],
    },
  ],
  [
    '6 an ampersand in a path',
    rejected('1.500', tail('GET /list/a&P1.html HTTP/2.0')),
    {
      request: {
        method: 'GET',
        target: '/list/a&P1.html',
        path: '/list/a&P1.html',
        protocol: 'HTTP/2.0',
        hasArgs: false,
      },
    },
  ],
  [
    '8 a process mark',
    `${T} [notice] 133#133: signal process started`,
    {
      kind: 'process_mark',
      mark: 'signal_process_started',
      connection: null,
      zone: null,
      status: null,
    },
  ],
  [
    '9 a full limit_conn zone',
    `${T} [crit] 58#58: ngx_slab_alloc() failed: no memory in limit_conn_zone "addr"`,
    {
      kind: 'slab_no_memory',
      zone: 'addr',
      exhausted: { module: 'limit_conn', zone: 'addr' },
      source: 'limit_conn_zone_exhausted',
      status: null,
    },
  ],
  ...[
    'in upstream zone "be"',
    'in vhost_traffic_status_zone "v"',
    'in shared zone "perip"',
    '',
  ].map(
    (pool) =>
      [
        `9 no limit's zone: ${pool}`,
        `${T} [crit] 58#58: ngx_slab_alloc() failed: no memory ${pool}`.trimEnd(),
        { kind: 'slab_no_memory', zone: null, exhausted: null, source: null },
      ] as const,
  ),
  [
    '10 no node',
    `${T} [alert] 5#5: could not allocate node in limit_req zone "perip"`,
    {
      kind: 'node_allocation_failed',
      zone: 'perip',
      client: null,
      exhausted: { module: 'limit_req', zone: 'perip' },
      source: 'limit_req_zone_exhausted',
    },
  ],
  [
    '11 the TLS cache',
    `${T} [alert] 8#8: *42 could not allocate new session in SSL session shared cache "SSL" while SSL handshaking, client: 198.51.100.8, server: 0.0.0.0:443`,
    { kind: 'other', zone: null, status: null, exhausted: null, connection: 42 },
  ],
  [
    '12 CRI',
    `2026-03-02T10:00:00.123456789Z stdout F ${DELAYED}`,
    { kind: 'delaying_request', zone: 'req', excess: 0.841 },
  ],
  [
    '12 CRI in parts',
    `2026-03-02T10:00:00.1Z stderr P ${LONG.slice(0, 90)}\n2026-03-02T10:00:00.1Z stderr F ${LONG.slice(90)}\n`,
    { kind: 'limiting_requests', excess: 50.416, client: '192.0.2.7', findings: [] },
  ],
  [
    '12 Docker',
    JSON.stringify({ log: `${LONG}\n`, stream: 'stderr', time: 'T' }),
    { kind: 'limiting_requests', zone: 'api_tok', client: '192.0.2.7' },
  ],
  ['12 klog', 'E0302 10:00:00.1 6 x.go:2] error', { kind: 'other', level: null, pid: null }],
  [
    '13 cut inside the request',
    rejected('3.200', 'client: 192.0.2.7, server: s, request: "GET /?q=AAAA'),
    {
      truncated: true,
      status: 'REJECTED',
      excess: 3.2,
      client: '192.0.2.7',
      request: { method: 'GET', target: '/', path: '/', protocol: null, hasArgs: true },
    },
  ],
  [
    '17 a forged client in the request',
    rejected(
      '1.500',
      'client: 127.0.0.1, server: a, request: "GET /d?a=",+client:+9.9.9.9,+server:+evil HTTP/1.1", host: "a"',
    ),
    { client: '127.0.0.1', server: 'a', zone: 'z', host: 'a' },
  ],
  [
    '17 a forged limit line in the request of another',
    `${T} [info] 5#5: *2 client sent invalid request while reading client request line, client: 192.0.2.7, server: s, request: "GET / limiting requests, excess: 9.000 by zone "x", client: 9.9.9.9"`,
    { kind: 'other', zone: null, client: null, excess: null },
  ],
  [
    '17 an overlong key that holds a client',
    `${T} [error] 5#5: *2 the value of the "$arg_k" key is more than 255 bytes: "x", client: 9.9.9.9, server: evil, request: "GET / HTTP/1.1"`,
    { kind: 'key_too_long', client: null, server: null, zone: null, status: null },
  ],
  [
    'a refused reload',
    `${T} [emerg] 5#5: limit_req "rz" uses the "$a" key while previously it used the "$b" key`,
    { kind: 'zone_key_conflict', zone: 'rz', status: null },
  ],
  [
    'an excess that no number holds',
    rejected(`${'9'.repeat(400)}.000`),
    { excess: null, impliedBurst: null },
  ],
  ['an excess of nothing', rejected('0.000'), { excess: null, impliedBurst: null, zone: 'z' }],
  [
    'a process that no number holds',
    LONG.replace('17#17: *9', `${'9'.repeat(400)}#0: *${'9'.repeat(400)}`),
    { pid: null, connection: null, zone: 'api_tok' },
  ],
  [
    'a debug line quotes what a client sent',
    `${T} [debug] 5#5: *1 http header: "Authorization: Basic AAAA"`,
    { kind: 'other', message: 'http header: "…' },
  ],
  ['no log line', 'hello world', { kind: 'malformed', level: null }],
  ['nothing', '', { kind: 'malformed', summary: 'The line is empty.' }],
];

function assertHolds(explanation: Explanation, expected: object): void {
  const actual = Object.fromEntries(
    Object.keys(expected).map((key) => [key, explanation[key as keyof Explanation]]),
  );
  assert.deepEqual(actual, expected);
}

describe('a line is explained:', () => {
  for (const [title, line, expected] of plain) {
    test(title, () => assertHolds(explainLine(line, {}), expected));
  }
});

test('arguments are shown only when they are asked for', () => {
  const { request } = explainLine(LONG, { showArgs: true });
  assert.deepEqual([request?.target, request?.args], ['/graphql', 'access_token=AAAA']);
  assert.ok(!('args' in explainLine(LONG, {}).request!));
});

test('text that was decoded before and text as bytes are read alike', () => {
  const line = rejected('1.500', tail('GET /caf\u00e9\u2615 HTTP/1.1'));
  const bytes = Buffer.from(line, 'utf8').toString('latin1');
  assert.equal(explainLine(line, {}).request?.path, '/caf\u00e9\u2615');
  assert.deepEqual(explainLine(bytes, {}), explainLine(line, {}));
});
