import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseConfDump } from '../parsers/conf/read-conf.js';
import { type Explanation, explainLine } from '../src/report/explain.js';

const T = '2026/03/02 10:00:00';
const LONG = `${T} [error] 17#17: *9 limiting requests, excess: 50.416 by zone "api_tok", client: 192.0.2.7, server: api.example.com, request: "POST /graphql?access_token=AAAA HTTP/2.0", host: "api.example.com"`;
const DELAYED = `${T} [warn] 47#47: *68 delaying request, excess: 0.841, by zone "req", client: 2001:db8::42, server: example.net, request: "GET /a HTTP/1.1", host: "198.51.100.4"`;
const tail = (request: string): string =>
  `client: 192.0.2.7, server: s, request: "${request}", host: "h.example"`;
const rejected = (excess: string, rest = tail('GET / HTTP/1.1')): string =>
  `${T} [error] 5#5: *2 limiting requests, excess: ${excess} by zone "z", ${rest}`;

const CONF = parseConfDump(
  'dump',
  `# configuration file nginx.conf:
events {}
http {
  limit_req_zone $binary_remote_addr zone=api_tok:1m rate=10r/s;
  limit_req_zone $binary_remote_addr zone=req:1m rate=1r/s;
  limit_req_zone $binary_remote_addr zone=slow:1m rate=1r/m;
  limit_req_zone $arg_k zone=perip:32k rate=5r/s;
  limit_conn_zone $binary_remote_addr zone=addr:32k;
  server { server_name api.example.com; limit_req_status 429;
    location / { limit_req zone=api_tok burst=20 nodelay; } }
  server { server_name example.net;
    location /a { limit_req zone=req burst=5; limit_conn addr 3; limit_conn_status 444; }
    location /shared { limit_req zone=perip burst=2; }
    location /big { limit_req zone=perip burst=9 delay=4; }
    location /dry { limit_req zone=req burst=5; limit_req_dry_run on; }
    location /slow { limit_req zone=slow; limit_req_status 429; }
    location /free { return 503; } }
}
`,
);

/** [title, line, what the explanation must hold with CONF]. */
const configured: readonly (readonly [string, string, object])[] = [
  [
    '1 another burst than the log tells',
    LONG,
    { impliedBurst: 50, retryAfterSeconds: 1, httpStatus: 429 },
  ],
  ['2 the delay in milliseconds', DELAYED, { delayMs: 841, findings: [] }],
  [
    'less than delay= is taken off, and divided by the rate',
    `${T} [warn] 5#5: *2 delaying request, excess: 7.500, by zone "perip", client: 192.0.2.7, server: example.net, request: "GET /big HTTP/1.1"`,
    { delayMs: 700, findings: [] },
  ],
  [
    '1r/m is 0.016r/s',
    `${T} [error] 5#5: *2 limiting requests, excess: 1.000 by zone "slow", client: 192.0.2.7, server: example.net, request: "GET /slow HTTP/1.1"`,
    { impliedBurst: { low: 0, high: 0 }, retryAfterSeconds: 63, httpStatus: 429, findings: [] },
  ],
  [
    'dry run: the client got its normal answer',
    `${T} [error] 5#5: *2 limiting requests, dry run, excess: 5.250 by zone "req", client: 192.0.2.7, server: example.net, request: "GET /dry HTTP/1.1"`,
    {
      status: 'REJECTED_DRY_RUN',
      httpStatus: null,
      source: null,
      retryAfterSeconds: 1,
      findings: [],
    },
  ],
  [
    'limit_conn_status',
    `${T} [error] 5#5: *2 limiting connections by zone "addr", client: 192.0.2.9, server: example.net, request: "GET /a HTTP/1.1"`,
    { httpStatus: 444, findings: [] },
  ],
  [
    '9 a zone that the configuration knows as limit_req',
    `${T} [emerg] 8123#8123: ngx_slab_alloc() failed: no memory in shared zone "perip"`,
    {
      zone: 'perip',
      exhausted: { module: 'limit_req', zone: 'perip' },
      source: 'limit_req_zone_exhausted',
    },
  ],
  [
    '9 the name of a limit does not make an upstream one',
    `${T} [crit] 5#5: ngx_slab_alloc() failed: no memory in upstream zone "perip"`,
    { zone: null, exhausted: null, source: null },
  ],
  [
    'the zone of an overlong key',
    `${T} [error] 5#5: *2 the value of the "$arg_k" key is more than 65535 bytes: "x`,
    { kind: 'key_too_long', zone: 'perip' },
  ],
];

function assertHolds(explanation: Explanation, expected: object): void {
  const actual = Object.fromEntries(
    Object.keys(expected).map((key) => [key, explanation[key as keyof Explanation]]),
  );
  assert.deepEqual(actual, expected);
}

describe('a line is explained with its configuration:', () => {
  for (const [title, line, expected] of configured) {
    test(title, () => assertHolds(explainLine(line, { conf: CONF }), expected));
  }
});

/** Codes of findings, with CONF. */
const doubtful: readonly (readonly [string, string, readonly string[]])[] = [
  ['a smaller burst than that of the log', LONG, ['burst_differs']],
  ['a larger burst than that of the log', LONG.replace('50.416', '10.416'), ['burst_differs']],
  ['a zone of another time', rejected('1.500'), ['zone_unknown']],
  ['a delay that burst does not allow', DELAYED.replace('0.841', '6.500'), ['burst_differs']],
  [
    'a delay under nodelay',
    `${T} [warn] 5#5: *2 delaying request, excess: 3.000, by zone "api_tok", client: 192.0.2.7, server: api.example.com, request: "GET / HTTP/1.1"`,
    ['delay_differs'],
  ],
  ['no dry run there', DELAYED.replace('request,', 'request, dry run,'), ['dry_run_differs']],
  ['another log level', DELAYED.replace('[warn]', '[notice]'), ['log_level_differs']],
  [
    'a debt built up under a larger burst of the zone',
    `${T} [error] 5#5: *2 limiting requests, excess: 7.500 by zone "perip", client: 192.0.2.7, server: example.net, request: "GET /shared HTTP/1.1"`,
    ['zone_has_several_bursts'],
  ],
  ['a location that does not use the zone', DELAYED.replace('/a', '/free'), ['rule_not_found']],
  [
    'nothing of a path that is cut',
    `${T} [error] 5#5: *2 limiting requests, excess: 2.500 by zone "perip", client: 192.0.2.7, server: example.net, request: "GET /shar`,
    ['truncated'],
  ],
  [
    'nothing of a path that an upstream has changed',
    `${T} [error] 5#5: *2 limiting requests, excess: 2.500 by zone "perip", client: 192.0.2.7, server: example.net, request: "GET /x HTTP/1.1", upstream: "http://192.0.2.1/x", host: "h"`,
    [],
  ],
  ['a loopback client', DELAYED.replace('2001:db8::42', '::1'), ['client_is_not_public']],
  ['a unix socket', DELAYED.replace('2001:db8::42', 'unix:'), ['client_is_not_public']],
  ['a private client', DELAYED.replace('2001:db8::42', '172.31.0.1'), ['client_is_not_public']],
  ['a public neighbour of it', DELAYED.replace('2001:db8::42', '172.32.0.1'), []],
  ['two lines', `${DELAYED}\n${LONG}`, ['more_lines']],
];

describe('a finding is made of:', () => {
  for (const [title, line, codes] of doubtful) {
    test(title, () => {
      const { findings } = explainLine(line, { conf: CONF });
      assert.deepEqual(
        findings.map(({ code }) => code),
        codes,
      );
    });
  }
});

test('the configuration says its burst, its rule and where they stand', () => {
  const { configuration, findings } = explainLine(LONG, { conf: CONF });
  assert.deepEqual(configuration?.burst, { configured: 20, implied: 50, agrees: false });
  assert.match(findings[0]!.message, /configuration says burst=20, the line says 50/);
  assert.equal(findings[0]!.where, 'nginx.conf:9');
  assert.deepEqual(configuration.rules, [
    {
      module: 'limit_req',
      zone: 'api_tok',
      where: 'nginx.conf:9',
      server: 'api.example.com',
      location: '/',
      places: 1,
      isOfThisRequest: true,
      burst: 20,
      delay: 'nodelay',
      connections: null,
      httpStatus: 429,
      dryRun: false,
      logLevel: 'error',
      delayMs: null,
    },
  ]);
  const [zone] = configuration.zones;
  assert.deepEqual(
    [zone?.rate, zone?.key, zone?.sizeBytes],
    ['10r/s', '$binary_remote_addr', 1 << 20],
  );
});

test('of several rules of a zone, that of the request decides', () => {
  const line = `${T} [error] 5#5: *2 limiting requests, excess: 7.500 by zone "perip", client: 192.0.2.7, server: example.net, request: "GET /%73hared?q HTTP/1.1"`;
  const { configuration, retryAfterSeconds } = explainLine(line, { conf: CONF });
  assert.deepEqual(
    configuration?.rules.map(({ location, isOfThisRequest }) => [location, isOfThisRequest]),
    [
      ['/shared', true],
      ['/big', false],
    ],
  );
  // (7.5 − 2) / 5 r/s, not (7.5 − 7) / 5: this rule wants the debt down to 2.
  assert.equal(retryAfterSeconds, 2);
  assert.equal(configuration?.burst?.agrees, true);
});

test('where the request is not told, no rule is said to be its own', () => {
  const line = `${T} [warn] 5#5: *2 delaying request, excess: 4.500, by zone "perip", client: 192.0.2.7, server: example.net, request: "GET /x HTTP/1.1", upstream: "http://127.0.0.1/x?secret", host: "example.net"`;
  const { configuration, upstream } = explainLine(line, { conf: CONF });
  assert.deepEqual(
    configuration?.rules.map(({ isOfThisRequest }) => isOfThisRequest),
    [null, null],
  );
  assert.equal(upstream, 'http://127.0.0.1/x?…');
});
