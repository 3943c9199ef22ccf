/**
 * Zones from logs and from the store: what real nginx's full zones forgot, and what would do.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stepSecondsOf, type ZoneInputs } from '../src/analysis/zone-inputs.js';
import { ZoneRows } from '../src/analysis/zone-rows.js';
import { analyseZones, type ZoneAnalysis } from '../src/analysis/zones.js';
import { zonesText } from '../src/analysis/zones-text.js';
import { checkCommand } from '../src/commands/check.js';
import { zonesCommand, zoneSizeCommand, type ZonesOptions } from '../src/commands/zones.js';
import { InputError } from '../src/errors.js';
import { limitReqCapacityNodes } from '../src/limit-req/capacity.js';
import { LOG_OPTIONS, outputOf, storeOf } from './support/analysed.js';
import { mustRun, runCli } from './support/cli.js';
import { makeTempDir } from './support/temp-dir.js';

const K = 'test/traces/k_starvation';
const L = 'test/traces/l_mixed_keys';

async function zones(
  files: readonly string[],
  options: Partial<ZonesOptions>,
): Promise<ZoneAnalysis[]> {
  const { text } = await outputOf((output) =>
    zonesCommand(files, { ...LOG_OPTIONS, conf: [], format: 'json', ...options }, output),
  );
  return (JSON.parse(text) as { zones: ZoneAnalysis[] }).zones;
}

async function zonesOf(directory: string, conf = join(directory, 'nginx.conf')) {
  const [zone, ...others] = await zones([join(directory, 'access.log')], {
    conf: [conf],
    errorLog: [join(directory, 'error.log')],
  });
  assert.deepEqual(others, []);
  return zone!;
}

function assertWithin(actual: number, truth: number, share: number, what: string): void {
  const isWithin = Math.abs(actual - truth) <= truth * share;
  assert.ok(isWithin, `${what}: ${actual}, and the truth is ${truth}`);
}

test('k_starvation from its logs: evictions, those in debt and whom they let in', async () => {
  const zone = await zonesOf(K);
  assert.equal(zone.zone, 'small');
  assert.equal(zone.instance, 'default');
  assert.equal(zone.capacityNodes, 191);
  assert.equal(zone.nodes, 191);
  assert.equal(zone.headroomNodes, 0);
  assertWithin(zone.evictions, 682, 0.05, 'evictions');
  assertWithin(zone.evictionsInDebt, 137, 0.05, 'evictions in debt');
  assertWithin(zone.admittedByEviction, 98, 0.05, 'admitted by eviction');
  assert.equal(zone.allocationFailures, 0);
  assertWithin(zone.keysCreated, 873, 0.05, 'nodes made');
  assert.deepEqual(zone.lowerBound, []);
  const sums = zone.buckets.reduce((sum, bucket) => sum + bucket.evictions, 0);
  assert.equal(sums, zone.evictions);
});

test('k_starvation with the size that is said to do forgets nothing, and half of it does', async (t) => {
  const { sufficient } = await zonesOf(K);
  // 643 distinct keys came; those that came back after an eviction count twice in the estimate.
  assert.ok(sufficient !== null && sufficient.nodes >= 643 && sufficient.nodes <= 873);
  const withSize = async (size: string): Promise<ZoneAnalysis> => {
    const conf = join(makeTempDir(t), 'nginx.conf');
    const text = readFileSync(join(K, 'nginx.conf'), 'utf8');
    writeFileSync(conf, text.replace('zone=small:32k', `zone=small:${size}`));
    return zonesOf(K, conf);
  };
  const enough = await withSize(sufficient.zoneSize);
  assert.equal(enough.evictions, 0);
  assert.ok(enough.nodesMax >= 600, `${enough.nodesMax} nodes`);
  assert.ok((await withSize('64k')).evictions > 0);
});

test('l_mixed_keys from its logs: 92 requests had no memory', async () => {
  const zone = await zonesOf(L);
  assert.equal(zone.allocationFailures, 92);
  assert.equal(zone.hasMixedKeyLengths, true);
  assert.ok(zone.evictionsInDebt > 0);
  assert.match(zonesText([zone]), /92 requests were refused for want of memory; keys of different/);
  // The replay finds the same requests, in the same 10 s, as the alerts tell of.
  const inReplay = zone.buckets.reduce((sum, bucket) => sum + bucket.allocationFailures, 0);
  assert.equal(inReplay, 92);
});

test('l_mixed_keys without its error log: rejects that found no page in the model had none', async () => {
  const [zone] = await zones([join(L, 'access.log')], { conf: [join(L, 'nginx.conf')] });
  assertWithin(zone!.allocationFailures, 92, 0.1, 'allocation failures');
  assertWithin(zone!.evictions, 153, 0.1, 'evictions');
});

for (const directory of [K, L, 'samples']) {
  test(`${directory}: the store says the same as the logs`, async (t) => {
    const conf = [join(directory, 'nginx.conf')];
    const fromLogs = await zones([join(directory, 'access.log')], {
      conf,
      errorLog: [join(directory, 'error.log')],
    });
    const store = await storeOf(t, directory);
    assert.deepEqual(await zones([], { store, conf }), fromLogs);
    const untold = await zones([], { store });
    assert.deepEqual(
      untold.map(({ lowerBound }) => lowerBound),
      fromLogs.map(() => null),
    );
    assert.deepEqual(await zones([], { store, until: '2026-01-01T00:00:00Z' }), []);
  });
}

test('the error log alone is a lower bound, and says which access log is missing', async () => {
  const [zone] = await zones([], {
    conf: [join(K, 'nginx.conf')],
    errorLog: [join(K, 'error.log')],
  });
  const [reason] = zone!.lowerBound!;
  assert.equal(reason!.file, join(K, 'nginx.conf'));
  assert.match(readFileSync(reason!.file, 'utf8').split('\n')[reason!.line - 1]!, /access_log/);
  assert.match(zonesText([zone!]), /≥ /);
});

test('lrx from its error log alone: each alert is a request without memory', async () => {
  const [zone] = await zones([], {
    conf: ['test/fixtures/lrx/nginx.conf'],
    errorLog: ['test/fixtures/lrx/error.log'],
  });
  assert.equal(zone!.allocationFailures, 59);
  // What filled the zone is in no log that was given: no size can be told.
  assert.equal(zone!.sufficient, null);
});

/** Runs the command itself. @returns its only zone */
async function zoneByCommand(directory: string): Promise<ZoneAnalysis> {
  const args = [
    '--conf',
    join(directory, 'nginx.conf'),
    '--error-log',
    join(directory, 'error.log'),
  ];
  const log = join(directory, 'access.log');
  const { stdout } = await mustRun(['zones', ...args, log, '--format', 'json']);
  const [zone, ...others] = (JSON.parse(stdout) as { zones: ZoneAnalysis[] }).zones;
  assert.deepEqual(others, []);
  return zone!;
}

test('limitlens zones on k_starvation and l_mixed_keys: the fields that are promised', async () => {
  const k = await zoneByCommand(K);
  assert.deepEqual([k.capacityNodes, k.nodes, k.allocationFailures], [191, 191, 0]);
  assertWithin(k.evictions, 682, 0.05, 'evictions');
  assertWithin(k.evictionsInDebt, 137, 0.05, 'evictions in debt');
  assertWithin(k.admittedByEviction, 98, 0.05, 'admitted by eviction');
  assert.equal((await zoneByCommand(L)).allocationFailures, 92);
});

test('fixture st: the command marks lower bounds with the directive, and names the field for time', async () => {
  const conf = ['--conf', 'test/fixtures/st/nginx.conf'];
  const { stdout } = await mustRun(['zones', ...conf, 'test/fixtures/st/error.log']);
  for (const zone of ['rz', 'rz2', 'rz3']) {
    const line = new RegExp(
      `^${zone}: a lower bound, since test/fixtures/st/nginx\\.conf:17: .*access\\.log was not given`,
      'gm',
    );
    assert.equal(stdout.match(line)?.length, 1, zone);
  }
  assert.match(stdout, /^rz +1m +≥ 13 +≥ 13/m);
  const timeless = await runCli(['zones', ...conf, 'test/fixtures/st/access.log']);
  assert.equal(timeless.code, 65);
  assert.match(timeless.stderr, /log_format "x" has no time: log \$msec/);
});

test('access_log off and if= over a limit: the command says where', async (t) => {
  const dir = makeTempDir(t);
  const lines = [
    'events {}',
    'http {',
    'log_format fmt \'$msec $request_time "$request" $status $limit_req_status $remote_addr\';',
    'limit_req_zone $remote_addr zone=z:1m rate=1r/s;',
    'map $status $loud { ~^4 1; default 0; }',
    'server { listen 80; access_log access.log fmt; limit_req zone=z burst=5;',
    'location /quiet { access_log off; }',
    'location /loud { access_log access.log fmt if=$loud; } } }',
  ];
  writeFileSync(join(dir, 'nginx.conf'), `${lines.join('\n')}\n`);
  const log = join(dir, 'access.log');
  writeFileSync(log, '1772445600.000 0.000 "GET / HTTP/1.1" 200 PASSED 192.0.2.1\n');
  const [zone] = await zones([log], { conf: [join(dir, 'nginx.conf')] });
  assert.deepEqual(
    zone!.lowerBound!.map(({ file, line }) => [file, line]),
    [
      [join(dir, 'nginx.conf'), 7],
      [join(dir, 'nginx.conf'), 8],
    ],
  );
  assert.match(zonesText([zone!]), /^z +1m +≥ 1 /m);
});

test('what a log lacks is said, field by field', async (t) => {
  const log = join(makeTempDir(t), 'access.log');
  writeFileSync(log, '192.0.2.1 - - [02/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"\n');
  const { notes } = await outputOf((output) =>
    zonesCommand([log], { ...LOG_OPTIONS, conf: ['samples/nginx.conf'], format: 'json' }, output),
  );
  assert.match(notes, /does without \$msec \$request_time \$limit_req_status \$connection/);
});

const LIMIT = {
  instance: 'web1',
  zone: 'z',
  sinceMs: 0,
  keyExpression: '$arg_k',
  sizeBytes: 32 * 1024,
  rateMilliRps: 1000,
  capacityNodes: 191,
  rules: JSON.stringify([{ burst: 5 }]),
};
const BUCKET = {
  instance: 'web1',
  zone: 'z',
  timeMs: 0,
  nodes: 191,
  capacityNodes: 191,
  evictions: 0,
  evictionsInDebt: 0,
  admittedByEviction: 0,
  allocationFailures: 0,
  keysCreated: 0,
};

function inputsOf(evictions: readonly [seconds: number, count: number][]): ZoneInputs {
  const rows = new ZoneRows();
  for (const [seconds, count] of evictions) {
    const counts = [count, 0, 0, 0, count];
    rows.row('zone_state', ['web1', 'z', seconds, BUCKET.nodes, BUCKET.capacityNodes, ...counts]);
  }
  return { ...rows.inputs(), limits: [LIMIT] };
}

test('evictions count for the size while their keys would still have been held', () => {
  const needed = (evictions: [number, number][], limit = LIMIT): number =>
    analyseZones({ ...inputsOf(evictions), limits: [limit] }, null)[0]!.sufficient!.nodes;
  assert.equal(needed([[0, 100]]), 191 + 100);
  // Both within a minute; a minute and a bucket apart.
  assert.equal(needed([[0, 100], [50, 30]]), 191 + 130); // prettier-ignore
  assert.equal(needed([[0, 100], [70, 30]]), 191 + 100); // prettier-ignore
  // burst / rate is 5 s above, and 600 s here: debt outlives the minute.
  const slow = { ...LIMIT, rules: JSON.stringify([{ burst: 600 }]) };
  assert.equal(needed([[0, 100], [590, 30]], slow), 191 + 130); // prettier-ignore
});

test('a zone that was never asked has room for all', () => {
  const [zone] = analyseZones({ ...inputsOf([]), limits: [LIMIT] }, null);
  assert.equal(zone!.nodes, 0);
  assert.equal(zone!.headroomNodes, 191);
  assert.equal(zone!.capacityByKeyLength[0]!.capacityNodes, 191);
  assert.deepEqual(analyseZones(inputsOf([]), null)[0]?.buckets, []);
});

test('the step grows with the time asked for', () => {
  const hourMs = 3_600_000;
  assert.deepEqual([0, 1, 24, 24 * 7, 24 * 400].map((hours) => stepSecondsOf(hours * hourMs)), [10, 10, 300, 3600, 86_400]); // prettier-ignore
});

for (const [keys, keyLength, kind] of [
  [8095, 4, 'limit_req'],
  [8096, 16, 'limit_req'],
  [40_000, 100, 'limit_req'],
  [16_191, 16, 'limit_conn'],
] as const) {
  test(`zones size: ${keys} keys of ${keyLength} bytes in ${kind}`, async () => {
    const options = { keys, keyLength, kind, format: 'json' } as const;
    const { text } = await outputOf((output) => zoneSizeCommand(options, output));
    const answer = JSON.parse(text) as { sizeBytes: number; capacityKeys: number };
    assert.ok(answer.capacityKeys >= keys);
    if (kind !== 'limit_req') return;
    assert.ok(limitReqCapacityNodes(answer.sizeBytes, keyLength, 8) >= keys);
    assert.ok(limitReqCapacityNodes(answer.sizeBytes - 4096, keyLength, 8) < keys);
  });
}

for (const [options, complaint] of [
  [{ keys: 0, keyLength: 4, kind: 'limit_req' }, /--keys: expected at least one/],
  [{ keys: 1, keyLength: 256, kind: 'limit_conn' }, /more than 255 bytes/],
] as const) {
  test(`zones size refuses ${JSON.stringify(options)}`, async () => {
    await assert.rejects(
      outputOf((output) => zoneSizeCommand({ ...options, format: 'text' }, output)),
      (error) =>
        error instanceof InputError && error.exitCode === 64 && complaint.test(error.message),
    );
  });
}

test('check exits 1 for what is to be changed, and logs tell how many keys there are', async (t) => {
  const check = (files: string[], conf: string) =>
    outputOf((output) =>
      checkCommand(
        files,
        { ...LOG_OPTIONS, conf: [conf], patienceMs: 5000, format: 'json' },
        output,
      ),
    );
  const codesOf = (text: string): string[] =>
    (JSON.parse(text) as { findings: { code: string; severity: string }[] }).findings.map(
      ({ code, severity }) => `${severity} ${code}`,
    );
  const bare = await check([], 'samples/nginx.conf');
  assert.equal(bare.result, 1);
  assert.ok(!codesOf(bare.text).includes('error zone-too-small'));
  const informed = await check(['samples/access.log'], 'samples/nginx.conf');
  assert.ok(codesOf(informed.text).includes('error zone-too-small'));
  const empty = join(makeTempDir(t), 'nginx.conf');
  writeFileSync(empty, 'events {}\nhttp { server { listen 80; } }\n');
  assert.equal((await check([], empty)).result, 0);
});
