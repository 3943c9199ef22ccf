/**
 * Who comes back too soon: by hand, against a count that knows nothing of queues, on real nginx's
 * own decisions, and as the command tells it.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { honestWaitMs, type RetriesAnalysis } from '../src/analysis/retries.js';
import { retriesCommand } from '../src/commands/retries.js';
import { LOG_OPTIONS, outputOf } from './support/analysed.js';
import { runCli } from './support/cli.js';
import {
  decide,
  writeConf,
  writeLog,
  type ConfParts,
  type Decided,
  type Sent,
} from './support/limited-log.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';
import { accessById, inDecisionOrder, readTruth, traceDir } from './support/truth.js';

const STRICT: ConfParts = { rate: '1r/s', limit: 'nodelay' };

async function retries(
  files: readonly string[],
  conf: string,
  errorLog: readonly string[] = [],
): Promise<RetriesAnalysis> {
  const { text } = await outputOf((output) =>
    retriesCommand(
      files,
      {
        ...LOG_OPTIONS,
        conf: [conf],
        errorLog,
        top: 5,
        minStormRejects: 10,
        format: 'json',
      },
      output,
    ),
  );
  return JSON.parse(text) as RetriesAnalysis;
}

async function retriesOf(t: Cleanup, sent: readonly Sent[], parts = STRICT) {
  const dir = makeTempDir(t);
  const analysis = await retries([writeLog(dir, decide(sent, 1000, 0))], writeConf(dir, parts));
  return { dir, analysis, place: analysis.zones[0]?.places[0] };
}

function sends(key: string, ...times: number[]): Sent[] {
  return times.map((atMs) => ({ atMs, key }));
}

test('one key at 1r/s: its returns, gaps and waits', async (t) => {
  const { analysis, place, dir } = await retriesOf(t, sends('a', 0, 100, 500, 1100, 1101));
  // Refused at 100 with excess 0.900, at 500 with 0.500, at 1101 with 0.999.
  const { where, ...counts } = place!;
  assert.equal(where, `${join(dir, 'nginx.conf')}:9`);
  assert.deepEqual(counts, {
    server: 's',
    location: '',
    rejects: 3,
    returned: 2,
    tooSoon: 1,
    tooSoonShare: 0.5,
    unsure: 0,
    rejectedAgain: 1,
    sameRequest: 1,
    notReturned: 0,
    open: 1,
    withoutWait: 0,
    withoutKey: 0,
    gapMs: { p50: 401, p90: 600, max: 600 },
    waitMs: { p50: 903, p90: 999, max: 999 },
    retryAfterSeconds: 1,
    returnsByShareOfWait: [
      { below: 0.1, returns: 0 },
      { below: 0.5, returns: 1 },
      { below: 1, returns: 0 },
      { below: 2, returns: 1 },
      { below: null, returns: 0 },
    ],
  });
  assert.deepEqual(analysis.zones[0]!.worstKeys, [
    { key: 'a', rejects: 3, retries: 1, tooSoon: 1 },
  ]);
  assert.equal(analysis.zones[0]!.keyExpression, '$arg_k');
});

const hand: readonly [title: string, sent: Sent[], counts: Record<string, number>][] = [
  ['nobody is refused', sends('a', 0, 1000, 2000), {}],
  [
    'sent in parallel is no return',
    sends('a', 0, 10, 10, 10),
    { rejects: 3, returned: 0, open: 3 },
  ],
  [
    'each of a page’s images comes again',
    sends('a', 0, 10, 10, 10, 300, 300, 300),
    { rejects: 6, returned: 3, tooSoon: 3, open: 3 },
  ],
  [
    'other keys are other clients',
    [...sends('a', 0, 10), ...sends('b', 20, 30)],
    { rejects: 2, returned: 0, open: 2 },
  ],
  [
    'a minute later nobody comes back any more',
    [...sends('a', 0, 10), ...sends('b', 60_020), ...sends('a', 60_030)],
    { rejects: 1, returned: 0, notReturned: 1 },
  ],
  [
    'what came within it did',
    [...sends('a', 0, 10, 60_000), ...sends('b', 90_000)],
    { rejects: 1, returned: 1, tooSoon: 0, notReturned: 0 },
  ],
  [
    'another path is a return, and another request',
    [
      { atMs: 0, key: 'a' },
      { atMs: 10, key: 'a' },
      { atMs: 20, key: 'a', path: '/x' },
    ],
    { rejects: 2, returned: 1, tooSoon: 1, sameRequest: 0 },
  ],
];
for (const [title, sent, counts] of hand) {
  test(`retries: ${title}`, async (t) => {
    const { place } = await retriesOf(t, sent);
    const found = Object.keys(counts).map((name) => [name, place![name as 'rejects']]);
    assert.deepEqual(Object.fromEntries(found), counts);
    if (Object.keys(counts).length === 0) assert.equal(place, undefined);
  });
}

/** Counts returns the slow way: every request looks for the oldest refusal that nobody answered. */
function expectedOf(decided: readonly Decided[], rate: number, burst: number) {
  const open: { request: Decided; isAnswered: boolean }[] = [];
  const counts = { rejects: 0, returned: 0, tooSoon: 0, rejectedAgain: 0 };
  for (const request of decided) {
    const { key, atMs, isRejected } = request;
    const answered = open.find(
      (one) => !one.isAnswered && one.request.key === key && one.request.atMs < atMs,
    );
    if (answered !== undefined) {
      answered.isAnswered = true;
      counts.returned++;
      if (isRejected) counts.rejectedAgain++;
      const gapMs = atMs - answered.request.atMs;
      const waitMs = Math.ceil(((answered.request.excess - burst) * 1000) / rate);
      if (isRejected && gapMs < waitMs - 2) counts.tooSoon++;
    }
    if (isRejected) {
      counts.rejects++;
      open.push({ request, isAnswered: false });
    }
  }
  return counts;
}

test('on any schedule the counts are those of a slow count', async (t) => {
  const dir = makeTempDir(t);
  const conf = writeConf(dir, { rate: '5r/s', limit: 'burst=2 nodelay' });
  const schedule = fc.array(
    fc.record({ gapMs: fc.integer({ min: 0, max: 300 }), key: fc.constantFrom('a', 'b', 'c') }),
    { minLength: 20, maxLength: 120 },
  );
  await fc.assert(
    fc.asyncProperty(schedule, async (steps) => {
      let atMs = 0;
      const sent = steps.map(({ gapMs, key }) => ({ key, atMs: (atMs += gapMs) }));
      const decided = decide(sent, 5000, 2000);
      const { zones } = await retries([writeLog(dir, decided)], conf);
      const place = zones[0]?.places[0];
      const expected = expectedOf(decided, 5000, 2000);
      const { rejects = 0, returned = 0, tooSoon = 0, rejectedAgain = 0 } = place ?? {};
      assert.deepEqual({ rejects, returned, tooSoon, rejectedAgain }, expected);
    }),
    { seed: 1, numRuns: 25 },
  );
});

for (const [trace, rate, burst] of [
  ['b_burst5_nodelay', 5000, 5000],
  ['f_rpm', 1666, 3000],
  ['k_starvation', 33, 2000],
] as const) {
  test(`${trace}: real nginx lets a refused key in after the wait, and not before`, () => {
    const dir = traceDir(trace);
    const lines = accessById(dir);
    const refused = new Map<string, { readyMs: number }>();
    let [early, late] = [0, 0];
    for (const { requestId, zones, decisionMonoMs, isNewNode } of inDecisionOrder(readTruth(dir))) {
      const { key } = lines.get(requestId)!;
      const { rc, excessMilliReq } = zones[0]!;
      const before = refused.get(key);
      const now = decisionMonoMs!;
      // What the full zone forgot is let in at once.
      if (before !== undefined && isNewNode !== true) {
        assert.equal(
          rc === 'BUSY',
          now < before.readyMs,
          `${requestId} at ${now - before.readyMs}`,
        );
        if (rc === 'BUSY') early++;
        else late++;
      }
      if (rc !== 'BUSY') refused.delete(key);
      else refused.set(key, { readyMs: now + honestWaitMs(excessMilliReq, burst, rate) });
    }
    assert.ok(early >= 10 && early + late > 20, `${early} came early, ${late} late`);
  });
}

test('an excess that is not above the burst gives no wait', () => {
  assert.equal(honestWaitMs(5000, 5000, 1000), NaN);
  assert.equal(honestWaitMs(5001, 5000, 1000), 1);
  assert.equal(honestWaitMs(6000, 5000, 16), 62_500);
});

test('minutes of retries are a storm, with the worst keys', async (t) => {
  const every = (key: string, fromMs: number, stepMs: number, count: number): Sent[] =>
    Array.from({ length: count }, (_, i) => ({ key, atMs: fromMs + i * stepMs }));
  const sent = [
    ...every('hammer', 0, 100, 900),
    ...every('second', 30_000, 250, 60),
    // Refused once a minute later on: no storm.
    ...every('calm', 240_000, 10, 2),
  ].sort((a, b) => a.atMs - b.atMs);
  const { analysis } = await retriesOf(t, sent);
  const [storm, ...others] = analysis.zones[0]!.storms;
  assert.deepEqual(others, []);
  assert.equal(storm!.toMs - storm!.fromMs, 120_000);
  assert.deepEqual(
    storm!.worstKeys.map(({ key }) => key),
    ['hammer', 'second'],
  );
  assert.ok(storm!.retries > storm!.rejects * 0.85 && storm!.retries < storm!.rejects);
  const firsts = storm!.rejects - storm!.retries;
  assert.equal(storm!.rejectsPerFirst, storm!.rejects / firsts);
});

test('many first refusals are no storm', async (t) => {
  const sent = Array.from({ length: 60 }, (_, i) => sends(`k${i}`, i * 20, i * 20 + 5)).flat();
  const { analysis, place } = await retriesOf(t, sent);
  assert.equal(place!.rejects, 60);
  assert.deepEqual(analysis.zones[0]!.storms, []);
});

test('under dry run nobody was refused', async () => {
  const dir = 'test/traces/d_dry_run';
  const analysis = await retries([join(dir, 'access.log')], join(dir, 'nginx.conf'));
  assert.deepEqual([analysis.zones.length, analysis.dryRunRejects], [0, 60]);
});

test('the error log tells the excess, and alone it is a part of the story', async () => {
  const conf = 'samples/nginx.conf';
  const full = await retries(['samples/access.log'], conf, ['samples/error.log']);
  assert.deepEqual(
    full.zones.map(({ zone, places }) => [zone, places[0]!.rejects, places[0]!.where]),
    [
      ['login', 234, 'samples/nginx.conf:42'],
      ['apikey', 170, 'samples/nginx.conf:61'],
    ],
  );
  for (const { places } of full.zones) {
    const place = places[0]!;
    assert.ok(place.tooSoon > 0 && place.tooSoon <= place.rejectedAgain);
    assert.ok(place.waitMs!.max <= place.retryAfterSeconds! * 1000);
  }
  const alone = await retries([], conf, ['samples/error.log']);
  assert.equal(alone.zones.find(({ zone }) => zone === 'login')!.places[0]!.rejects, 234);
  assert.match(alone.unknowns.join('\n'), /\$msec, \$request_time and \$limit_req_status/);
});

/** A log of six requests, refused and not, in another format. */
async function unknownsIn(t: Cleanup, format: string, write: (decided: Decided) => string) {
  const dir = makeTempDir(t);
  const decided = decide(sends('a', 0, 200, 400, 2000, 4000, 4100), 1000, 0);
  const log = join(dir, 'access.log');
  writeFileSync(log, decided.map((one) => `${write(one)}\n`).join(''));
  const analysis = await retries([log], writeConf(dir, { ...STRICT, format }));
  return { analysis, text: analysis.unknowns.join('\n') };
}

const fields: readonly [
  title: string,
  format: string,
  write: (one: Decided) => string,
  field: RegExp,
][] = [
  [
    'whole seconds',
    '[$time_local] $limit_req_status "$request"',
    ({ atMs, isRejected, key }) =>
      `[02/Mar/2026:10:00:0${Math.floor(atMs / 1000)} +0000] ${isRejected ? 'REJECTED' : 'PASSED'} "GET /?k=${key} HTTP/1.1"`,
    /log \$msec/,
  ],
  [
    'no $request_time',
    '$msec $limit_req_status "$request"',
    ({ atMs, isRejected, key }) =>
      `1772445600.${String(atMs % 1000).padStart(3, '0')} ${isRejected ? 'REJECTED' : 'PASSED'} "GET /?k=${key} HTTP/1.1"`,
    /Log \$request_time/,
  ],
  [
    'no $limit_req_status and no error log',
    '$msec $request_time $status "$request"',
    ({ atMs, isRejected, key }) =>
      `${(1_772_445_600 + atMs / 1000).toFixed(3)} 0.000 ${isRejected ? 429 : 200} "GET /?k=${key} HTTP/1.1"`,
    /Log \$limit_req_status/,
  ],
  [
    'no path',
    '$msec $request_time $status $limit_req_status $arg_k',
    ({ atMs, isRejected, key }) =>
      `${(1_772_445_600 + atMs / 1000).toFixed(3)} 0.000 ${isRejected ? '429 REJECTED' : '200 PASSED'} ${key}`,
    /log \$request\b/,
  ],
];
for (const [title, format, write, field] of fields) {
  test(`what is not known is said: ${title}`, async (t) => {
    const { analysis, text } = await unknownsIn(t, format, write);
    assert.match(text, field);
    assert.ok(analysis.zones[0]!.places[0]!.rejects >= 3);
  });
}

test('whole seconds: near the wait nothing is claimed', async (t) => {
  const dir = makeTempDir(t);
  const conf = writeConf(dir, {
    rate: '6r/m',
    limit: 'nodelay',
    format: '[$time_local] $limit_req_status "$request"',
  });
  const log = join(dir, 'access.log');
  // The refusals at 1 and 2 s would have had to wait 9 and 8 s; a second more or less is open.
  const lines = [0, 1, 2, 9, 11].map((second, i) => {
    const time = `02/Mar/2026:10:00:${String(second).padStart(2, '0')} +0000`;
    return `[${time}] ${i === 0 || i === 4 ? 'PASSED' : 'REJECTED'} "GET /?k=a HTTP/1.1"\n`;
  });
  writeFileSync(log, lines.join(''));
  const place = (await retries([log], conf)).zones[0]!.places[0]!;
  assert.deepEqual([place.rejects, place.returned, place.tooSoon], [3, 3, 1]);
  assert.equal(place.unsure, 1);
});

test('limitlens retries as a command: text, JSON, and what it refuses', async () => {
  const logs = ['--error-log', 'samples/error.log', 'samples/access.log'];
  const conf = ['--conf', 'samples/nginx.conf'];
  const text = await runCli(['retries', ...conf, ...logs]);
  assert.equal(text.code, 0);
  assert.match(text.stdout, /Zone login \(\$binary_remote_addr\)/);
  assert.match(text.stdout, /192\.0\.2\.66 +164 +153 +153/);
  assert.match(text.stdout, /2026-11-30T08:13Z +2 +234/);
  assert.match(text.stdout, /130 requests would have been refused under dry run/);
  assert.equal((await runCli(['retries', ...conf])).code, 64);
  const st = 'test/fixtures/st';
  const timeless = await runCli(['retries', '--conf', `${st}/nginx.conf`, `${st}/access.log`]);
  assert.equal(timeless.code, 65);
  assert.match(timeless.stderr, /no time: log \$msec/);
});
