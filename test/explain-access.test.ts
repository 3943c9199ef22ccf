import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseConfDump } from '../parsers/conf/read-conf.js';
import { type Explanation, explainLine } from '../src/report/explain.js';

const CONF = parseConfDump(
  'dump',
  `# configuration file nginx.conf:
events {}
http {
  log_format open '$http_user_agent';
  log_format own '[$time_local] - $upstream_status $status - $request_method $scheme $host "$request_uri" [Client $remote_addr] [For "$http_x_forwarded_for"]';
  log_format full '$status $limit_req_status $limit_conn_status "$upstream_status" $server_name "$request" $request_time $upstream_response_time';
  limit_req_zone $binary_remote_addr zone=req:1m rate=1r/s;
  limit_conn_zone $binary_remote_addr zone=addr:32k;
  server { server_name example.net;
    location /a { limit_req zone=req burst=5; limit_conn addr 3; limit_conn_status 444; }
    location /free { return 503; } }
  server { server_name example.org; }
}
`,
);

/** [title, line, what the explanation must hold]. */
const lines: readonly (readonly [string, string, object])[] = [
  [
    '14 a TLS handshake',
    '192.0.2.66 - - [02/Mar/2026:10:00:00 +0000] "\\x16\\x03\\x01\\x00\\xA5\\x01" 400 150 "-" "-"',
    {
      kind: 'access',
      format: 'combined',
      httpStatus: 400,
      client: '192.0.2.66',
      status: null,
      source: null,
      request: {
        method: null,
        target: '\x16\x03\x01\0\xa5\x01',
        path: null,
        protocol: null,
        hasArgs: false,
      },
    },
  ],
  [
    '14 no request, status 009',
    '192.0.2.66 - - [02/Mar/2026:10:00:00 +0000] "" 009 0 "-" "-"',
    { kind: 'access', httpStatus: 9, request: null, status: null },
  ],
  [
    '15 an own format, with a list in one field',
    '[02/Mar/2026:16:40:25 +0000] - 200 200 - GET https a.example "/login?x=1" [Client 2001:db8::1234] [For "203.0.113.1, 198.51.100.2"]',
    {
      kind: 'access',
      format: 'own',
      client: '2001:db8::1234',
      host: 'a.example',
      httpStatus: 200,
      request: { method: 'GET', target: '/login', path: '/login', protocol: null, hasArgs: true },
    },
  ],
];

describe('an access line is explained:', () => {
  for (const [title, line, expected] of lines) {
    test(title, () => {
      const explanation = explainLine(line, { conf: CONF });
      const actual = Object.fromEntries(
        Object.keys(expected).map((key) => [key, explanation[key as keyof Explanation]]),
      );
      assert.deepEqual(actual, expected);
    });
  }
});

/** `$status $limit_req_status $limit_conn_status "$upstream_status"`, and who answered. */
const answers: readonly (readonly [string, Explanation['source'], RegExp])[] = [
  ['503 REJECTED - "-"', 'limit_req', /limit_req rejected/],
  ['503 PASSED - "503"', 'upstream', /upstream answered 503/],
  ['503 PASSED REJECTED "-"', 'limit_conn', /limit_conn rejected/],
  ['503 DELAYED REJECTED "-"', 'limit_conn', /after limit_req had delayed it/],
  ['503 - - "-"', 'nginx', /no limit took a decision/],
  ['429 PASSED PASSED "-"', 'nginx', /limits had let the request through/],
  ['200 PASSED - "503, 200"', null, /let this request pass/],
  ['499 DELAYED - "-"', null, /client left \(499\)/],
  ['200 REJECTED - "-"', 'limit_req', /got 200 instead of 503 .*error_page/],
  ['444 PASSED REJECTED "-"', 'limit_conn', /got 444, as limit_conn_status says/],
  ['200 REJECTED_DRY_RUN - "200"', null, /Dry run: limit_req would have rejected/],
  ['200 DELAYED_DRY_RUN - "200"', null, /Dry run: limit_req would have delayed/],
  ['200 PASSED REJECTED_DRY_RUN "200"', null, /Dry run: limit_conn would have rejected/],
  ['200 DELAYED - "200"', null, /limit_req delayed this request/],
  ['502 PASSED - "502"', null, /let this request pass/],
];

describe('16 who answered:', () => {
  for (const [fields, source, summary] of answers) {
    test(fields, () => {
      const line = `${fields} example.net "GET /a HTTP/1.1" 0.843 0.002`;
      const explanation = explainLine(line, { conf: CONF });
      assert.equal(explanation.kind, 'access');
      assert.equal(explanation.source, source);
      assert.match(explanation.summary, summary);
      assert.equal(
        explanation.findings.some(({ code }) => code === 'rule_not_found'),
        false,
      );
    });
  }
});

test("16 another server was asked, and a gateway error is nobody's for sure", () => {
  const codes = (fields: string): string[] =>
    explainLine(`${fields} example.net "GET /a HTTP/1.1" 0.100 0.100`, { conf: CONF }).findings.map(
      ({ code }) => code,
    );
  assert.deepEqual(codes('200 PASSED - "503, 200"'), ['upstream_retried']);
  assert.deepEqual(codes('504 PASSED - "504"'), ['gateway_error']);
  assert.deepEqual(codes('429 REJECTED - "200"'), ['see_error_log', 'redirected']);
});

test('an access line has a zone where its location has but one, and shows the wait', () => {
  const line = '200 DELAYED - "200" example.net "GET /a HTTP/1.1" 0.843 0.002';
  const explanation = explainLine(line, { conf: CONF });
  assert.equal(explanation.zone, 'req');
  assert.match(explanation.arithmetic[0]!, /843 − 2 = 841 ms/);
});

test('a 503 of combined is unknown, and the fields that would tell are named', () => {
  const line = '192.0.2.7 - - [02/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 503 5 "-" "-"';
  const { source, findings } = explainLine(line, {});
  assert.equal(source, 'unknown');
  assert.match(findings[0]!.message, /\$limit_req_status, \$limit_conn_status, \$upstream_status/);
});

test('a limit that the configuration does not have there, and a server that is not told', () => {
  const codes = (line: string): string[] =>
    explainLine(line, { conf: CONF }).findings.map(({ code }) => code);
  const passed = '200 PASSED - "200"';
  assert.deepEqual(codes(`${passed} example.net "GET /free HTTP/1.1" 0.100 0.100`), [
    'rule_not_found',
  ]);
  assert.deepEqual(codes(`${passed} other.example "GET /a HTTP/1.1" 0.100 0.100`), [
    'rule_unknown',
  ]);
});
