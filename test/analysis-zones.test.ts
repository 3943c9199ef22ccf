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
