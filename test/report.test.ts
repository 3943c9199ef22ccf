/**
 * The report: what it says of a trace, in text and as JSON, and of parts of its time.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { mustRun, runCli } from './support/cli.js';
import { confOf, Imports, sums, type Report } from './support/imports.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

void suite('the report', () => {
  const dir = mkdtempSync(join(tmpdir(), 'limitlens-'));
  after(() => rmSync(dir, { recursive: true, force: true }));
  const trace = traceDir('g_mixed_2workers');
  const imports = new Imports(dir, [confOf('g_mixed_2workers')]);
  let whole: Report;

  before(async () => {
    await imports.add([join(trace, 'access.log'), join(trace, 'error.log')]);
    whole = await imports.report();
  });

  test('counts are those of $limit_req_status', () => {
    const log = readFileSync(join(trace, 'access.log'), 'latin1');
    const logged = (word: string): number =>
      log.match(new RegExp(`"limit_req_status":"${word}"`, 'g'))?.length ?? 0;
    const [zone] = whole.zones;
    assert.deepEqual(
      [zone!.passed, zone!.delayed, zone!.rejected],
      [logged('PASSED'), logged('DELAYED'), logged('REJECTED')],
    );
    assert.ok(zone!.rejected > 0);
    const refused = whole.sources.filter((row) => row.source === 'limit_req');
    assert.equal(
      refused.reduce((sum, row) => sum + row.requests, 0),
      zone!.rejected,
    );
  });

  test('parts of the time add up to all of it', async () => {
    const { fromMs, toMs } = whole.spans[0]!;
    const middle = new Date(Math.ceil((fromMs + toMs) / 2 / 10_000) * 10_000).toISOString();
    const first = await imports.report(['--until', middle]);
    const second = await imports.report(['--since', middle]);
    for (const field of ['passed', 'delayed', 'rejected'] as const) {
      const parts = [first.zones[0]![field], second.zones[0]![field]];
      assert.ok(
        parts.every((n) => n > 0 && n < whole.zones[0]![field]),
        `${field}: ${parts}`,
      );
      assert.equal(parts[0]! + parts[1]!, whole.zones[0]![field]);
    }
    const before = await imports.report(['--until', new Date(fromMs - 60_000).toISOString()]);
    assert.deepEqual(before.zones, []);
    const now = await imports.report(['--since', '1h']);
    const isRecent = Date.now() - toMs < 3_600_000;
    assert.equal(now.zones.length, isRecent ? 1 : 0);
    assert.deepEqual(sums(await imports.report(['--since', '2020-01-01'])), sums(whole));
  });

  test('top keys are those with the most refusals, as many as asked for', async () => {
    const { topKeys } = whole.zones[0]!;
    assert.equal(topKeys.length, 10);
    const [one] = (await imports.report(['--top', '1'])).zones;
    assert.deepEqual(one!.topKeys, topKeys.slice(0, 1));
    const all = (await imports.report(['--top', '1000'])).zones[0]!.topKeys;
    const total = (field: 'delayed' | 'rejected'): number =>
      all.reduce((sum, key) => sum + key[field], 0);
    assert.deepEqual(
      [total('delayed'), total('rejected')],
      [whole.zones[0]!.delayed, whole.zones[0]!.rejected],
    );
  });

  test('as text: the same numbers, in tables', async () => {
    const { stdout } = await mustRun(['report', '--store', imports.store]);
    const zone = whole.zones[0]!;
    const numbers = [zone.passed, zone.delayed, zone.rejected].map((n) =>
      n.toLocaleString('en-US'),
    );
    assert.match(stdout, new RegExp(`^perkey +\\S+r/s +${numbers.join(' +')} `, 'm'));
    for (const title of ['ZONES', 'WHO ANSWERED', 'KEYS of perkey', 'ZONE MEMORY', 'LINES']) {
      assert.match(stdout, new RegExp(`^${title}`, 'm'));
    }
    assert.match(stdout, /^503 +limit_req +a\.example \//m);
    assert.ok(stdout.split('\n').every((line) => line === line.trimEnd() && line.length <= 160));
  });

  test('zones hold numbers, not texts', () => {
    for (const zone of whole.zones) {
      for (const field of [
        'passed',
        'delayed',
        'rejected',
        'delayedDryRun',
        'rejectedDryRun',
        'exhausted',
        'skipped',
      ] as const) {
        assert.equal(typeof zone[field], 'number');
      }
      assert.equal(zone.instance, 'default');
    }
  });

  test('of logs without a store: the same report, and nothing is left behind', async (t) => {
    const temporary = makeTempDir(t);
    const logs = ['--conf', confOf('g_mixed_2workers'), join(trace, 'access.log')];
    const ofLogs = ['report', ...logs, join(trace, 'error.log')];
    const { stdout } = await mustRun(ofLogs, { env: { TMPDIR: temporary } });
    assert.equal(stdout, (await mustRun(['report', '--store', imports.store])).stdout);
    assert.deepEqual(readdirSync(temporary), []);
    const both = await runCli([...ofLogs, '--store', imports.store]);
    assert.deepEqual([both.code, both.stdout], [64, '']);
    assert.match(both.stderr, /either logs or a store/);
  });

  test('an instance that the store does not hold is said', async () => {
    const run = await runCli(['report', '--store', imports.store, '--instance', 'defualt']);
    assert.deepEqual([run.code, run.stdout], [66, '']);
    assert.match(run.stderr, /--instance defualt: .*\n {2}It holds: default\./);
  });
});
