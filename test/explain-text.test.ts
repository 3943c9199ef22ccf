import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { loadConf } from '../src/input/conf-files.js';
import { explanationText } from '../src/report/explain-text.js';
import { explainLine } from '../src/report/explain.js';
import { linesOf } from './support/captures.js';

const HEAD =
  '2026/03/02 10:00:00 [error] 17#17: *9 limiting requests, excess: 50.416 by zone "api_tok"';
const REJECT = `${HEAD}, client: 192.0.2.7, server: api.example.com, request: "POST /graphql?access_token=AAAA HTTP/2.0", host: "api.example.com"`;

test('a reject in text', () => {
  assert.equal(
    explanationText(explainLine(REJECT, {})),
    `limit_req rejected a request of 192.0.2.7: excess 50.416 in zone "api_tok" is
above burst.

  kind        limiting_requests
  status      limit_req REJECTED
  zone        "api_tok"
  excess      50.416
  burst       50, implied
  retry after ceil(0.416 / rate) s
  client      192.0.2.7
  request     POST /graphql?… HTTP/2.0
  server      api.example.com
  host        "api.example.com"
  answered by limit_req
  logged      2026/03/02 10:00:00 [error] pid 17 connection 9

How it comes about
  - Excess 50.416 counts requests above the rate, this one included: what was
    stored for the key, less rate times the time since the key's last charge,
    plus 1. A key's first request counts 0.
  - nginx rejects when excess > burst, and stores no more than burst: burst <
    50.416 ≤ burst + 1, so burst was 50 (if all rules of the zone have one
    burst).
  - A rejected request is not charged: more of them do not put off the time to
    wait.
  - One request fits again after 0.416/rate seconds: 416 ms at 1r/s, 42 ms at
    10r/s, if no other request of the key is charged before. An honest
    Retry-After: 1 s from 1r/s up, 26 s at 1r/m. The rate is not in the line;
    --conf tells it.
`,
  );
});

test('a delay in text, with the configuration', () => {
  const directory = 'test/traces/a_burst5_delay';
  const line = linesOf(`${directory}/error.log`)
    .map((bytes) => bytes.toString('latin1'))
    .find((text) => text.includes('delaying request, excess: 0.980'))!;
  const text = explanationText(explainLine(line, { conf: loadConf(`${directory}/nginx.conf`) }));
  for (const part of [
    '  delay       196 ms\n',
    '(0.980 − 0)·1000/5 = 196 ms',
    'limit_req_zone perkey, key $arg_k, 1m (8095 keys at most)',
    'limit_req perkey burst=5 delay=0, in server a.example /',
  ]) {
    assert.ok(text.replace(/\n {4}/g, ' ').includes(part), `${part} is missing in\n${text}`);
  }
});

test('arguments, passwords and what could drive a terminal stay out', () => {
  const line = `${HEAD}, client: 192.0.2.7, server: s, request: "GET /\x1b[2J\x9b\xe2\x80\xae?token=AAAA HTTP/1.1", host: "h", referrer: "http://user:AAAA@h/?t=AAAA"`;
  const text = explanationText(explainLine(line, {}));
  assert.doesNotMatch(text, /AAAA/);
  assert.doesNotMatch(text, /[\0-\x09\x0b-\x1f\x7f-\x9f\u202e]/);
  assert.match(text, /\\u001b\[2J/);
  assert.match(explanationText(explainLine(line, { showArgs: true })), /token=AAAA/);
});

test('no line is wider than 80 columns, but for words that are longer', () => {
  for (const line of explanationText(explainLine(REJECT, {})).split('\n')) {
    assert.ok(line.length <= 80, line);
  }
});

/** Each delayed request waited, by the debug log, for as long as is said here. */
describe('the delay is that of the debug log:', () => {
  const captures = [
    'a_burst5_delay',
    'e_two_zones',
    'g_mixed_2workers',
    'j_slow_headers',
    'm_http2',
    'o_keys_map_geo',
  ];
  for (const name of captures) {
    test(name, () => {
      const directory = `test/traces/${name}`;
      const conf = loadConf(`${directory}/nginx.conf`);
      const waits = waitsByRequest(`${directory}/truth.jsonl`);
      let compared = 0;
      for (const bytes of linesOf(`${directory}/error.log`)) {
        const explanation = explainLine(bytes.toString('latin1'), { conf });
        if (explanation.status !== 'DELAYED') continue;
        const expected = waits.get(`${explanation.connection} ${explanation.excess}`) ?? [];
        assert.ok(expected.includes(explanation.delayMs ?? -1), bytes.toString('latin1'));
        compared++;
      }
      assert.ok(compared > 0);
    });
  }
});

interface TruthRow {
  readonly connection: number;
  readonly delay_ms?: number;
  readonly zones: readonly { readonly excess?: number }[];
}

/** Delays by connection and the excess of any of its zones. */
function waitsByRequest(path: string): ReadonlyMap<string, number[]> {
  const waits = new Map<string, number[]>();
  for (const line of readFileSync(path, 'utf8').trimEnd().split('\n')) {
    const row = JSON.parse(line) as TruthRow;
    if (row.delay_ms === undefined) continue;
    for (const { excess } of row.zones) {
      const key = `${row.connection} ${excess}`;
      waits.set(key, [...(waits.get(key) ?? []), row.delay_ms]);
    }
  }
  return waits;
}

/** Nothing that only a configuration of another time would bring about. */
describe('a line of nginx fits the configuration that it ran with:', () => {
  const captures = [
    'traces/a_burst5_delay',
    'traces/b_burst5_nodelay',
    'traces/d_dry_run',
    'traces/e_two_zones',
    'traces/f_rpm',
    'traces/i_mixed_status',
    'traces/l_mixed_keys',
    'traces/o_keys_map_geo',
    'traces/q_limit_conn',
    'fixtures/fmt',
    'fixtures/lcx',
    'fixtures/lk',
  ];
  const doubts = /_differs$|^zone_unknown|^zone_unused|^rule_not_found|^impossible/;
  for (const name of captures) {
    test(name, () => {
      const conf = loadConf(`test/${name}/nginx.conf`);
      const lines = linesOf(`test/${name}/error.log`).map((bytes) => bytes.toString('latin1'));
      let limited = 0;
      for (const line of lines) {
        const { findings, kind, zone } = explainLine(line, { conf });
        assert.notEqual(kind, 'malformed', line);
        const codes = findings.map(({ code }) => code).filter((code) => doubts.test(code));
        assert.deepEqual(codes, [], line);
        if (zone !== null) limited++;
      }
      assert.ok(limited > 0);
    });
  }
});

test('a configuration of another generation is found out', () => {
  const conf = loadConf('test/traces/p_reload/nginx.conf.1');
  const codes = new Set(
    linesOf('test/traces/p_reload/error.log').flatMap((bytes) =>
      explainLine(bytes.toString('latin1'), { conf }).findings.map(({ code }) => code),
    ),
  );
  assert.ok(codes.has('burst_differs'));
});

const conf = loadConf('test/fixtures/fmt/nginx.conf');
const hostile = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.constantFrom('", client: 9.9.9.9, server: evil', '"', '?', ' HTTP/1.1"', '\n', ', host: "x"'),
);
const request = fc.array(hostile, { maxLength: 5 }).map((parts) => parts.join(''));
/** Lines of either log with anything in the request, and anything at all. */
const line = fc.oneof(
  request,
  request.map((raw) => `${HEAD}, client: 192.0.2.7, server: s, request: "${raw}`),
  request.map((raw) => `192.0.2.7 - - [02/Mar/2026:10:00:00 +0000] "${raw}" 503 5 "-" "-"`),
  request.map((raw) => `503 lrs=REJECTED lcs=- "GET ${raw} HTTP/1.1" len=9`),
  request.map((raw) => `2026/03/02 10:00:00 [error] 5#5: *1 ${raw}`),
);

test('any line is explained, in JSON without loss and in text without control bytes', () => {
  fc.assert(
    fc.property(line, fc.boolean(), (text, withConf) => {
      const explanation = explainLine(text, withConf ? { conf } : {});
      assert.deepEqual(JSON.parse(JSON.stringify(explanation)), explanation);
      assert.doesNotMatch(explanationText(explanation), /[\0-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]/);
    }),
    { numRuns: 1000 },
  );
});

test('whatever a request holds, zone and client are those that nginx wrote', () => {
  fc.assert(
    fc.property(request, (raw) => {
      fc.pre(!raw.includes('\n'));
      const text = `${HEAD}, client: 192.0.2.7, server: s, request: "GET /${raw} HTTP/1.1", host: "h"`;
      const { zone, client, server, excess } = explainLine(text, {});
      assert.deepEqual([zone, client, server, excess], ['api_tok', '192.0.2.7', 's', 50.416]);
    }),
    { numRuns: 500 },
  );
});

test('arguments are in no output, whatever stands around them', () => {
  const logs = fc.constantFrom(
    (raw: string) => `${HEAD}, client: 192.0.2.7, server: s, request: "${raw}", host: "h"`,
    (raw: string) => `192.0.2.7 - - [02/Mar/2026:10:00:00 +0000] "${raw}" 503 5 "-" "-"`,
    (raw: string) =>
      `2026/03/02 10:00:00 [error] 5#5: *1 open() "/x" failed, client: 192.0.2.7, request: "${raw}"`,
  );
  const before = fc.stringMatching(/^[a-z /%#.]{0,20}$/);
  fc.assert(
    fc.property(logs, before, before, (log, path, more) => {
      const explanation = explainLine(log(`GET /${path}?${more}SECRET HTTP/1.1`), { conf });
      assert.ok(!JSON.stringify(explanation).includes('SECRET'));
      assert.ok(!explanationText(explanation).includes('SECRET'));
    }),
    { numRuns: 500 },
  );
});
