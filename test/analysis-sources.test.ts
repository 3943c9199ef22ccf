/**
 * Who said 429 or 503: the samples, whose README lists nginx's own words, and what is to be found.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  analyseSources,
  type SourcesAnalysis,
  type SourcesInputs,
} from '../src/analysis/sources.js';
import { sourcesText } from '../src/analysis/sources-text.js';
import { sourcesCommand } from '../src/commands/sources.js';
import type { ResponseStep } from '../src/store/queries-analysis.js';
import { LOG_OPTIONS, outputOf, storeOf } from './support/analysed.js';
import { writeConf } from './support/limited-log.js';
import { makeTempDir } from './support/temp-dir.js';

async function sources(store: string, until?: string): Promise<SourcesAnalysis> {
  const { text } = await outputOf((output) =>
    sourcesCommand(
      { store, examples: 2, format: 'json', ...(until === undefined ? {} : { until }) },
      output,
    ),
  );
  return JSON.parse(text) as SourcesAnalysis;
}

test('samples: each 429 and 503 has its source, its place and its examples', async (t) => {
  const store = await storeOf(t, 'samples');
  const analysis = await sources(store);
  assert.deepEqual(
    analysis.sources.map((row) => [
      `${row.server} ${row.location} ${row.status} ${row.source}`,
      row.requests,
    ]),
    [
      ['shop.example = /login 429 limit_req', 234],
      ['api.example /v1/ 429 limit_req', 170],
      ['shop.example /downloads/ 503 limit_conn', 18],
      ['api.example /v1/ 429 upstream', 15],
      ['api.example /v1/ 503 upstream', 15],
      ['shop.example /old-shop/ 503 nginx', 12],
    ],
  );
  for (const row of analysis.sources) {
    assert.equal(row.hours.reduce((sum, hour) => sum + hour.requests, 0), row.requests); // prettier-ignore
    assert.equal(row.examples.length, 2);
    assert.ok(row.examples.every(({ path }) => path.startsWith('/') && !path.includes('?')));
    assert.ok(row.examples[0]!.timeMs >= row.examples[1]!.timeMs);
  }
  const login = analysis.sources[0]!.examples[0]!;
  assert.equal(login.zone, 'login');
  assert.ok(login.excess > 5 && login.excess <= 6);
  assert.deepEqual(
    analysis.findings.map(({ code, subject }) => [code, subject]),
    [['return_before_limit', 'shop.example /old-shop/']],
  );
  assert.match(sourcesText(analysis), /user agents are not stored/);
  const before = await sources(store, '2026-01-01T00:00:00Z');
  assert.deepEqual([before.sources, before.findings], [[], []]);
  assert.match(sourcesText(before), /^No 429/);
});

const STEP: ResponseStep = {
  instance: 'default',
  server: 's',
  location: '/a',
  status: 429,
  source: 'limit_req',
  limitReqStatus: 'REJECTED',
  timeMs: 0,
  requests: 7,
};

function inputsOf(step: Partial<ResponseStep>, more: Partial<SourcesInputs> = {}): SourcesInputs {
  const rules = [{ server: 's', location: '/a', status: 429, where: 'nginx.conf:9' }];
  return {
    hours: [{ ...STEP, ...step }],
    examples: [],
    places: [],
    limits: [
      {
        instance: 'default',
        zone: 'z',
        sinceMs: 0,
        keyExpression: '$arg_k',
        sizeBytes: 32_768,
        rateMilliRps: 1000,
        capacityNodes: 191,
        rules: JSON.stringify(rules),
      },
    ],
    findings: [],
    ...more,
  };
}

const PLACE = { instance: 'default', server: 's', location: '/a' };
const NGINX = { source: 'nginx', limitReqStatus: '', status: 503 };
const found: readonly [title: string, inputs: SourcesInputs, codes: string[]][] = [
  ['REJECTED with its own status', inputsOf({}), []],
  ['REJECTED turned into 200', inputsOf({ status: 200 }), ['refusal_with_other_status']],
  ['REJECTED with 503 where 429 is set', inputsOf({ status: 503 }), ['refusal_with_other_status']],
  ['a custom status, its rule unknown', inputsOf({ status: 444 }, { limits: [] }), []],
  [
    '200, its rule unknown',
    inputsOf({ status: 200 }, { limits: [] }),
    ['refusal_with_other_status'],
  ],
  ['nobody knows', inputsOf({ source: 'unknown' }), ['source_unknown']],
  [
    'nginx answers and the limit is never asked',
    inputsOf(NGINX, { places: [{ ...PLACE, requests: 7, withoutStatus: 7 }] }),
    ['return_before_limit'],
  ],
  [
    'nginx answers, and the limit is asked of others',
    inputsOf(NGINX, { places: [{ ...PLACE, requests: 9, withoutStatus: 7 }] }),
    [],
  ],
  [
    'nginx answers where nothing is limited',
    inputsOf(
      { ...NGINX, location: '/b' },
      { places: [{ ...PLACE, location: '/b', requests: 7, withoutStatus: 7 }] },
    ),
    [],
  ],
  [
    'one private key has nearly all rejects',
    inputsOf(
      {},
      {
        findings: [
          {
            instance: 'default',
            code: 'single_private_key',
            subject: 'z 10.0.0.1',
            message: '99 % of the rejections',
            sinceMs: 0,
            untilMs: 0,
            details: '',
          },
        ],
      },
    ),
    ['single_private_key'],
  ],
];

for (const [title, inputs, codes] of found) {
  test(`sources: ${title}`, () => {
    assert.deepEqual(analyseSources(inputs).findings.map(({ code }) => code), codes); // prettier-ignore
  });
}

test('the newest configuration of a zone counts, and each status has its own row', () => {
  const older = inputsOf({}).limits[0]!;
  const rules = [{ server: 's', location: '/a', status: 503, where: 'nginx.conf:9' }];
  const newer = { ...older, sinceMs: 1, rules: JSON.stringify(rules) };
  const hours = [STEP, { ...STEP, timeMs: 3_600_000 }, { ...STEP, status: 503 }];
  const { sources: rows, findings } = analyseSources({
    ...inputsOf({}),
    hours,
    limits: [older, newer],
  });
  assert.deepEqual(rows.map((row) => [row.status, row.requests, row.hours.length]), [[429, 14, 2], [503, 7, 1]]); // prettier-ignore
  assert.deepEqual(findings.map(({ message }) => /logged with (\d+)/.exec(message)?.[1]), ['429']); // prettier-ignore
});

/** Ten addresses behind one key, and one address of its own, both refused twelve times. */
function natLog(dir: string, format: string): { conf: string; log: string } {
  const conf = writeConf(dir, { rate: '1r/m', limit: 'nodelay', format });
  const log = join(dir, 'access.log');
  const hasAgent = format.includes('http_user_agent');
  const lines = Array.from({ length: 26 }, (_, i) => {
    const key = i % 2 === 0 ? 'office' : 'person';
    const agent = key === 'office' ? `Browser/${i % 10}` : 'Tool/1';
    const outcome = i < 2 ? '200 PASSED' : '429 REJECTED';
    const time = `1772445600.${String(i * 10).padStart(3, '0')}`;
    return `${time} 0.000 ${outcome} "GET /?k=${key} HTTP/1.1"${hasAgent ? ` "${agent}"` : ''}\n`;
  });
  writeFileSync(log, lines.join(''));
  return { conf, log };
}

const PLAIN = '$msec $request_time $status $limit_req_status "$request"';
for (const [title, format, codes, unknown] of [
  [
    'many user agents on one key are told',
    `${PLAIN} "$http_user_agent"`,
    ['many_user_agents'],
    null,
  ],
  ['a log without them names the field', PLAIN, [], /Log \$http_user_agent/],
] as const) {
  test(`sources with logs: ${title}`, async (t) => {
    const { conf, log } = natLog(makeTempDir(t), format);
    const store = await storeOf(t, 'test/traces/k_starvation');
    const logs = { ...LOG_OPTIONS, conf: [conf], files: [log] };
    const { text } = await outputOf((output) =>
      sourcesCommand({ store, examples: 1, format: 'json', logs }, output),
    );
    const { findings, unknowns } = JSON.parse(text) as SourcesAnalysis;
    const inLogs = findings.filter(({ code }) => code === 'many_user_agents');
    assert.deepEqual(
      inLogs.map(({ code }) => code),
      codes,
    );
    if (unknown === null) {
      assert.deepEqual(unknowns, []);
      assert.equal(inLogs[0]!.subject, 'z office');
      assert.match(inLogs[0]!.message, /^12 requests of office .* with 5 different user agents/);
    } else {
      assert.match(unknowns.join(), unknown);
    }
  });
}
