/**
 * Requests under way: by hand, against a count that looks at every millisecond, on real nginx's own
 * limit_conn, and as the command tells it.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ConcurrencyAnalysis } from '../src/analysis/concurrency.js';
import { concurrencyText } from '../src/analysis/concurrency-text.js';
import { TimeHeap } from '../src/analysis/time-heap.js';
import { KeyTallies } from '../src/analysis/key-tallies.js';
import { WeightedHistogram } from '../src/analysis/weighted-histogram.js';
import { concurrencyCommand } from '../src/commands/concurrency.js';
import { InputError } from '../src/errors.js';
import { LOG_OPTIONS, outputOf } from './support/analysed.js';
import { runCli } from './support/cli.js';
import { BEGIN_MS, decide, writeConf, writeLog, type Sent } from './support/limited-log.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';

interface Choice {
  readonly key?: string;
  readonly limitConn?: number;
  readonly errorLog?: readonly string[];
  readonly latenessMs?: number;
}

async function concurrency(
  files: readonly string[],
  conf: string,
  choice: Choice = {},
): Promise<ConcurrencyAnalysis> {
  const { text } = await outputOf((output) =>
    concurrencyCommand(
      files,
      { ...LOG_OPTIONS, conf: [conf], top: 5, format: 'json', ...choice },
      output,
    ),
  );
  return JSON.parse(text) as ConcurrencyAnalysis;
}

/** A limit so wide that nothing is refused. */
const WIDE = { rate: '1000r/s', limit: 'burst=10000 nodelay' };

async function concurrencyOf(t: Cleanup, sent: readonly Sent[], choice: Choice = {}, http = '') {
  const dir = makeTempDir(t);
  const log = writeLog(dir, decide(sent, 1e6, 1e7));
  const server = http === '' ? '' : 'limit_conn cz 2;';
  return concurrency([log], writeConf(dir, { ...WIDE, http, server }), choice);
}

function during(key: string, ...spans: [fromMs: number, toMs: number][]): Sent[] {
  return spans.map(([atMs, toMs]) => ({ key, atMs, tookMs: toMs - atMs }));
}

const BY_KEY = { key: '$arg_k' };
const THREE = [...during('a', [0, 400], [100, 500], [200, 300]), ...during('b', [900, 1000])].sort(
  (x, y) => x.atMs - y.atMs,
);

test('by hand: most, mean, quantiles of time, and Little’s law', async (t) => {
  const { all, subjects, fromMs, toMs, configured } = await concurrencyOf(t, THREE, BY_KEY);
  assert.deepEqual([fromMs, toMs], [BEGIN_MS, BEGIN_MS + 1000]);
  // 400 ms of nobody, 300 with one, 200 with two, 100 with three: 1000 request-ms in 1000 ms.
  assert.deepEqual(all, {
    requests: 4,
    arrivalsPerSecond: 4,
    meanMs: 250,
    concurrency: 1,
    measuredMean: 1,
    most: 3,
    mostAtMs: BEGIN_MS + 200,
    p50: 1,
    p90: 2,
    p99: 3,
  });
  const [subject, ...others] = subjects;
  assert.deepEqual(others, []);
  assert.equal(subject!.zone, null);
  assert.equal(subject!.keys, 2);
  assert.deepEqual(subject!.worstKeys[0], {
    key: 'a',
    requests: 3,
    arrivalsPerSecond: 3,
    meanMs: 300,
    concurrency: 0.9,
    most: 3,
    mostAtMs: BEGIN_MS + 200,
  });
  // While a key has anything under way: 300 ms of one, 200 of two, 100 of three.
  assert.deepEqual([subject!.p50, subject!.p90, subject!.most], [1, 3, 3]);
  assert.deepEqual(
    subject!.candidates.slice(0, 3).map(({ connections, rejected, keys }) => [connections, rejected, keys]),
    [
      [1, 2, 1],
      [2, 1, 1],
      [3, 0, 0],
    ],
  ); // prettier-ignore
  assert.equal(configured, null);
});

test('a request refused holds nothing: the third comes in where the second was refused', async (t) => {
  // With one connection the second is refused, and so the third finds nobody.
  const sent = during('a', [0, 100], [50, 1000], [200, 300]);
  const { subjects } = await concurrencyOf(t, sent, { ...BY_KEY, limitConn: 1 });
  assert.deepEqual(subjects[0]!.candidates, [
    { connections: 1, rejected: 1, rejectedShare: 1 / 3, keys: 1 },
  ]);
});

test('one that ends in the millisecond in which another begins was there beside it', async (t) => {
  const { all, subjects } = await concurrencyOf(t, during('a', [0, 100], [100, 200], [201, 300]));
  assert.equal(all.most, 2);
  // Without a zone keys are addresses, which this log has not.
  assert.deepEqual(
    subjects.map((one) => [one.keyExpression, one.requests, one.withoutKey]),
    [['$binary_remote_addr', 0, 3]],
  );
});

test('by the zones of the configuration, and by the address where there are none', async (t) => {
  const zone = await concurrencyOf(t, THREE, {}, 'limit_conn_zone $arg_k zone=cz:1m;');
  assert.deepEqual(
    zone.subjects.map((one) => [one.zone, one.keyExpression, one.requests]),
    [['cz', '$arg_k', 4]],
  );
  assert.equal(zone.configured!.rejected, 1);
  assert.deepEqual(
    [zone.configured!.limits[0]!.connections, zone.configured!.loggedRejected],
    [2, null],
  );
  assert.match(concurrencyText(zone), /Log \$limit_conn_status to hold that against nginx/);
});

/** What stands at each millisecond, and what each N refuses, the slow way. */
function slowly(sent: readonly Sent[], connections: number) {
  const spans = sent.map(({ atMs, tookMs = 0 }) => [atMs, atMs + tookMs] as const);
  const fromMs = Math.min(...spans.map(([from]) => from));
  const toMs = Math.max(...spans.map(([, to]) => to));
  let most = 0;
  let sum = 0;
  for (let ms = fromMs; ms < toMs; ms++) {
    sum += spans.filter(([from, to]) => from <= ms && ms < to).length;
  }
  for (const [i, [at]] of spans.entries()) {
    most = Math.max(most, spans.filter(([from, to], j) => j <= i && from <= at && to >= at).length);
  }
  const held: Sent[] = [];
  let rejected = 0;
  for (const one of sent) {
    const busy = held.filter(
      ({ key, atMs, tookMs = 0 }) => key === one.key && atMs + tookMs >= one.atMs,
    );
    if (busy.length >= connections) rejected++;
    else held.push(one);
  }
  return { most, mean: toMs > fromMs ? sum / (toMs - fromMs) : 0, rejected };
}

test('on any schedule the numbers are those of a slow count', async (t) => {
  const dir = makeTempDir(t);
  const conf = writeConf(dir, WIDE);
  const schedule = fc.array(
    fc.record({
      gapMs: fc.integer({ min: 0, max: 40 }),
      tookMs: fc.integer({ min: 0, max: 200 }),
      key: fc.constantFrom('a', 'b'),
    }),
    { minLength: 2, maxLength: 60 },
  );
  await fc.assert(
    fc.asyncProperty(schedule, fc.integer({ min: 1, max: 4 }), async (steps, limitConn) => {
      let atMs = 0;
      const sent = steps.map(({ gapMs, ...rest }) => ({ ...rest, atMs: (atMs += gapMs) }));
      const log = writeLog(dir, decide(sent, 1e6, 1e7));
      const { all, subjects } = await concurrency([log], conf, { ...BY_KEY, limitConn });
      const expected = slowly(sent, limitConn);
      assert.equal(all.most, expected.most);
      assert.equal(subjects[0]!.candidates[0]!.rejected, expected.rejected);
      assert.ok(Math.abs(all.measuredMean - expected.mean) < 1e-9);
      // Little's law: the mean over time is λ·W.
      assert.ok(Math.abs(all.measuredMean - all.concurrency) < 1e-9);
    }),
    { seed: 1, numRuns: 25 },
  );
});

for (const [trace, requests, rejected, leastAgree] of [
  ['q_limit_conn', 256, 102, 256],
  // Releases and beginnings in one millisecond, which the log does not order.
  ['i_mixed_status', 295, 128, 288],
] as const) {
  test(`${trace}: limit_conn refuses whom real nginx refused`, async () => {
    const dir = join('test/traces', trace);
    const found = await concurrency([join(dir, 'access.log')], join(dir, 'nginx.conf'), {
      errorLog: [join(dir, 'error.log')],
    });
    const { configured } = found;
    assert.equal(configured!.requests, requests);
    assert.equal(configured!.loggedRejected, rejected);
    assert.ok(Math.abs(configured!.rejected - rejected) <= rejected * 0.02);
    assert.ok(configured!.agree! >= leastAgree, `${configured!.agree} of ${requests} agree`);
    assert.equal(found.refusedByLimitConn, rejected);
    const [subject] = found.subjects;
    const asSet = subject!.candidates.find(({ connections }) => connections === 3);
    if (trace === 'q_limit_conn') assert.equal(asSet!.rejected, rejected);
    assert.ok(Math.abs(found.all.concurrency - found.all.measuredMean) < 1e-6);
  });
}

test('samples: two downloads at a time, and the third is refused', async () => {
  const found = await concurrency(['samples/access.log'], 'samples/nginx.conf', {
    errorLog: ['samples/error.log'],
  });
  const { configured } = found;
  assert.deepEqual(
    [configured!.rejected, configured!.loggedRejected, configured!.agree, configured!.requests],
    [18, 18, 36, 36],
  );
  assert.equal(configured!.limits[0]!.where, 'samples/nginx.conf:48');
});

test('a request longer than --lateness is told of, and counted whole with a longer one', async (t) => {
  const sent = [
    ...during('a', [0, 20_000]),
    ...Array.from({ length: 150 }, (_, i) => during('b', [i * 100, i * 100 + 50])).flat(),
  ];
  const short = await concurrencyOf(t, sent, { ...BY_KEY, latenessMs: 1000 });
  assert.equal(short.late, 1);
  assert.match(concurrencyText(short), /1 requests took longer than --lateness/);
  const long = await concurrencyOf(t, sent, { ...BY_KEY, latenessMs: 30_000 });
  assert.equal(long.late, 0);
  assert.ok(long.all.concurrency > short.all.concurrency);
});

const refusals: readonly [
  title: string,
  format: string,
  line: string,
  choice: Choice,
  exit: number,
  message: RegExp,
][] = [
  [
    'no $request_time',
    '$msec "$request"',
    '1772445600.000 "GET / HTTP/1.1"',
    {},
    65,
    /log_format "fmt" has no \$request_time[^]*Log \$request_time, and \$msec/,
  ],
  [
    'no key',
    '$msec $request_time "$request"',
    '1772445600.000 0.000 "GET / HTTP/1.1"',
    { key: '$http_x_client' },
    65,
    /--key \$http_x_client: log_format "fmt" does not tell it: log \$http_x_client/,
  ],
  [
    'no connections',
    '$msec $request_time "$request"',
    '1772445600.000 0.000 "GET / HTTP/1.1"',
    { limitConn: 0 },
    64,
    /--limit-conn 0: nginx takes 1 to 65535/,
  ],
];
for (const [title, format, line, choice, exit, message] of refusals) {
  test(`concurrency stops: ${title}`, async (t) => {
    const dir = makeTempDir(t);
    const log = join(dir, 'access.log');
    writeFileSync(log, `${line}\n`);
    await assert.rejects(
      concurrency([log], writeConf(dir, { ...WIDE, format }), choice),
      (error) =>
        error instanceof InputError && error.exitCode === exit && message.test(error.message),
    );
  });
}

test('an error log alone does not tell when requests ended', async () => {
  await assert.rejects(
    concurrency([], 'samples/nginx.conf', { errorLog: ['samples/error.log'] }),
    (error) => error instanceof InputError && error.exitCode === 66,
  );
});

test('keys that nginx does not count, and whole seconds, are told of', async (t) => {
  const dir = makeTempDir(t);
  const conf = writeConf(dir, { ...WIDE, format: '[$time_local] $request_time "$request"' });
  const log = join(dir, 'access.log');
  const long = 'x'.repeat(256);
  const targets = ['/', `/?k=${long}`, '/?k=a'];
  const lines = targets.map(
    (target) => `[02/Mar/2026:10:00:00 +0000] 0.100 "GET ${target} HTTP/1.1"\n`,
  );
  writeFileSync(log, lines.join(''));
  const { subjects, unknowns } = await concurrency([log], conf, BY_KEY);
  assert.deepEqual([subjects[0]!.notLimited, subjects[0]!.requests], [2, 1]);
  assert.match(unknowns.join('\n'), /ends are whole seconds. Log \$msec/);
  assert.match(unknowns.join('\n'), /Log \$limit_req_status/);
});

test('limitlens concurrency as a command', async () => {
  const logs = ['--error-log', 'samples/error.log', 'samples/access.log'];
  const run = await runCli(['concurrency', '--conf', 'samples/nginx.conf', ...logs]);
  assert.equal(run.code, 0);
  assert.match(run.stdout, /^All: 3,474 requests, 47\.8 per second/);
  assert.match(run.stdout, /limit_conn downloads 2 +18 +50\.00 % +3/);
  assert.match(run.stdout, /nginx logged 18 refusals of 36 requests \(the model 18\)/);
  const key = ['--key', '$server_name', '--limit-conn', '3', '--format', 'json'];
  const asked = await runCli(['concurrency', '--conf', 'samples/nginx.conf', ...logs, ...key]);
  const { subjects } = JSON.parse(asked.stdout) as ConcurrencyAnalysis;
  assert.deepEqual(
    subjects[0]!.candidates.map(({ connections }) => connections),
    [3],
  );
  assert.deepEqual(subjects[0]!.worstKeys.map(({ key: name }) => name).sort(), [
    'api.example',
    'shop.example',
  ]);
});

test('a heap gives back in order of time, and of equal times in order of coming', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 20 })), (times) => {
      const heap = new TimeHeap<number>();
      for (const [i, time] of times.entries()) heap.push(time, i);
      const out = times.map(() => heap.pop()!);
      const sorted = times.map((_, i) => i).sort((a, b) => times[a]! - times[b]! || a - b);
      assert.deepEqual(out, sorted);
      assert.equal(heap.pop(), undefined);
    }),
    { seed: 1 },
  );
});

test('quantiles are exact for small values and within 1 % for large ones', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 5_000_000 }), { minLength: 1, maxLength: 200 }),
      fc.double({ min: 0.01, max: 1, noNaN: true }),
      (values, share) => {
        const histogram = new WeightedHistogram();
        for (const value of values) histogram.add(value);
        const sorted = values.toSorted((a, b) => a - b);
        const exact = sorted[Math.max(0, Math.ceil(share * values.length * (1 - 1e-12)) - 1)]!;
        const found = histogram.quantile(share);
        assert.ok(found >= exact && found <= exact * 1.01, `${found} for ${exact}`);
        if (exact < 256) assert.equal(found, exact);
        assert.equal(histogram.largest, sorted.at(-1));
      },
    ),
    { seed: 1 },
  );
});

test('tallies keep the heavy keys, and say when others were dropped', () => {
  const tallies = new KeyTallies(
    () => ({ n: 0 }),
    ({ n }) => n,
    100,
  );
  tallies.of('heavy').n = 1000;
  for (let i = 0; i < 1000; i++) tallies.of(`k${i}`).n++;
  assert.ok(tallies.size <= 100 && tallies.dropped > 0);
  assert.deepEqual(tallies.heaviest(1), [['heavy', { n: 1000 }]]);
});
