/**
 * A log counts once, however it is given: again, gzipped, renamed, grown, rotated, copied.
 */
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { confOf, Imports, sums } from './support/imports.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir, type TraceName } from './support/truth.js';

interface Trace {
  readonly dir: string;
  readonly access: string;
  readonly error: string;
  readonly accessLines: readonly string[];
  readonly errorLines: readonly string[];
}

function trace(t: TestContext, name: TraceName): Trace {
  const from = traceDir(name);
  const lines = (file: string): string[] =>
    readFileSync(join(from, file), 'latin1').trimEnd().split('\n');
  return {
    dir: makeTempDir(t),
    access: join(from, 'access.log'),
    error: join(from, 'error.log'),
    accessLines: lines('access.log'),
    errorLines: lines('error.log'),
  };
}

function write(dir: string, name: string, lines: readonly string[]): string {
  const path = join(dir, name);
  const text = Buffer.from(lines.map((line) => `${line}\n`).join(''), 'latin1');
  writeFileSync(path, name.endsWith('.gz') ? gzipSync(text) : text);
  return path;
}

/** An own format with all that a replay needs, and lines of one client. */
function writeDebtConf(dir: string): string {
  const path = join(dir, 'nginx.conf');
  writeFileSync(
    path,
    `events {}
http {
  log_format replay '$msec $request_time $status $limit_req_status $remote_addr $connection "$request"';
  access_log /var/log/nginx/access.log replay;
  limit_req_zone $remote_addr zone=slow:1m rate=1r/m;
  server { listen 80; server_name s; location / { limit_req zone=slow burst=5 nodelay; } }
}
`,
  );
  return path;
}

function debtLine(ms: number, word: string): string {
  const status = word === 'REJECTED' ? 503 : 200;
  return `${(ms / 1000).toFixed(3)} 0.000 ${status} ${word} 192.0.2.1 ${ms % 100_000} "GET / HTTP/1.1"`;
}

void suite('a log counts once', { concurrency: 2 }, () => {
  test('the samples: what nginx says it did is what the report counts', async (t) => {
    const imports = new Imports(makeTempDir(t), ['samples/nginx.conf']);
    const log = readFileSync('samples/access.log', 'latin1');
    const result = await imports.add(['samples/access.log', 'samples/error.log']);
    const requests = log.trimEnd().split('\n').length;
    assert.equal(result.summary.requests, requests);
    const report = await imports.report();
    const total = (field: 'delayed' | 'rejected' | 'rejectedDryRun'): number =>
      report.zones
        .filter((zone) => zone.kind === 'limit_req')
        .reduce((sum, zone) => sum + zone[field], 0);
    assert.equal(total('rejected'), log.match(/ lr=REJECTED /g)?.length);
    assert.equal(total('rejectedDryRun'), log.match(/ lr=REJECTED_DRY_RUN /g)?.length);
    assert.equal(total('delayed'), log.match(/ lr=DELAYED /g)?.length);
  });

  test('again, gzipped, and under another name', async (t) => {
    const { dir, access, error, accessLines, errorLines } = trace(t, 'a_burst5_delay');
    const imports = new Imports(dir, [confOf('a_burst5_delay')]);
    await imports.add([access, error]);
    const first = await imports.report();
    const gzipped = write(dir, 'access.log.2.gz', accessLines);
    const renamed = join(dir, 'old-name.txt');
    copyFileSync(error, renamed);
    const again = await imports.add([access, error]);
    const other = await imports.add([renamed, gzipped]);
    for (const { files, summary } of [again, other]) {
      assert.deepEqual(
        files.map((file) => file.newBytes),
        [0, 0],
      );
      assert.equal(summary.requests, 0);
    }
    assert.deepEqual(await imports.report(), first);
    assert.equal(first.lines.find((row) => row.kind === 'access')?.lines, accessLines.length);
    assert.ok(errorLines.length > 0);
  });

  test('grown, and meanwhile gzipped: the sums of one import of the whole', async (t) => {
    const { dir, access, error, accessLines, errorLines } = trace(t, 'g_mixed_2workers');
    const conf = [confOf('g_mixed_2workers')];
    const whole = new Imports(dir, conf, 'whole');
    await whole.add([access, error]);
    const grown = new Imports(dir, conf, 'grown');
    await grown.add([
      write(dir, 'access.log', accessLines.slice(0, 700)),
      write(dir, 'error.log', errorLines.slice(0, 500)),
    ]);
    await grown.add([
      write(dir, 'access.log', accessLines.slice(0, 1300)),
      write(dir, 'error.log', errorLines),
    ]);
    const last = await grown.add([write(dir, 'access.log.1.gz', accessLines)]);
    assert.equal(last.files[0]!.lines, accessLines.length - 1300);
    assert.deepEqual(sums(await grown.report()), sums(await whole.report()));
  });

  test('a key that is in debt where the log was cut is still in debt', async (t) => {
    const dir = makeTempDir(t);
    const imports = new Imports(dir, [writeDebtConf(dir)]);
    const startMs = Date.UTC(2026, 2, 2, 10);
    const before = Array.from({ length: 6 }, (_, n) => debtLine(startMs + 100 * n, 'PASSED'));
    const after = [1, 2, 3].map((n) => debtLine(startMs + 5000 + 100 * n, 'REJECTED'));
    await imports.add([write(dir, 'access.log', before)]);
    await imports.add([write(dir, 'access.log', [...before, ...after])]);
    const [zone] = (await imports.report()).zones;
    assert.equal(zone!.rejected, 3);
    assert.deepEqual([zone!.agreement?.compared, zone!.agreement?.agree], [9, 9]);
    // Full at five; two of the three hundredths of a request are gone after five seconds.
    assert.ok(zone!.excessMax > 5.8 && zone!.excessMax < 6, `excess ${zone!.excessMax}`);
  });

  test('older logs that come later: without the state of the newer ones, and said', async (t) => {
    const dir = makeTempDir(t);
    const imports = new Imports(dir, [writeDebtConf(dir)]);
    const startMs = Date.UTC(2026, 2, 2, 10);
    const lines = (fromMs: number): string[] => [
      ...Array.from({ length: 6 }, (_, n) => debtLine(fromMs + 100 * n, 'PASSED')),
      debtLine(fromMs + 1000, 'REJECTED'),
    ];
    await imports.add([write(dir, 'access.log', lines(startMs))]);
    const older = await imports.add([write(dir, 'access.log.1', lines(startMs - 86_400_000))]);
    assert.equal(older.isNewest, false);
    assert.match(older.stderr, /begin at 2026-03-01T10:00:00\.000Z, before what is in the store/);
    // The newer state is still there: a minute later one request fits, and no second.
    const later = [debtLine(startMs + 65_000, 'PASSED'), debtLine(startMs + 65_100, 'REJECTED')];
    await imports.add([write(dir, 'access.log', [...lines(startMs), ...later])]);
    const [zone] = (await imports.report()).zones;
    assert.deepEqual([zone!.passed, zone!.rejected], [13, 3]);
    assert.deepEqual([zone!.agreement?.compared, zone!.agreement?.agree], [16, 16]);
  });

  test('rotated files of one call, in any order, are one log', async (t) => {
    const { dir, access, error, accessLines } = trace(t, 'g_mixed_2workers');
    const conf = [confOf('g_mixed_2workers')];
    const files = [
      write(dir, 'access.log.2.gz', accessLines.slice(0, 600)),
      write(dir, 'access.log.1', accessLines.slice(600, 1200)),
      write(dir, 'access.log', accessLines.slice(1200)),
    ];
    const whole = new Imports(dir, conf, 'whole');
    await whole.add([access, error]);
    const expected = await whole.report();
    for (const [i, order] of [
      [0, 1, 2],
      [2, 0, 1],
      [1, 2, 0],
    ].entries()) {
      const imports = new Imports(dir, conf, `order${i}`);
      await imports.add([...order.map((n) => files[n]!), error]);
      const report = await imports.report();
      assert.deepEqual(sums(report), sums(expected));
      assert.deepEqual(report.zones, expected.zones);
    }
  });

  test('copies in one call, shorter copies later', async (t) => {
    const { dir, access, accessLines } = trace(t, 'a_burst5_delay');
    const imports = new Imports(dir, [confOf('a_burst5_delay')]);
    const few = write(dir, 'few.log', accessLines.slice(0, 3));
    const half = write(dir, 'half.log', accessLines.slice(0, 100));
    const gzipped = write(dir, 'access.log.1.gz', accessLines);
    const result = await imports.add([access, few, gzipped, half]);
    assert.equal(result.summary.requests, accessLines.length);
    assert.equal(result.stderr.match(/ holds the same log as .*: read once\n/g)?.length, 3);
    assert.ok(!result.stderr.includes(`same log as ${half}`), result.stderr);
    const again = await imports.add([write(dir, 'half.gz', accessLines.slice(0, 100))]);
    assert.equal(again.summary.requests, 0);
    assert.match(again.stderr, /half\.gz is an older copy of what was imported as .*access\.log/);
    assert.equal((await imports.report()).spans[0]!.requests, accessLines.length);
  });

  test('a last line without an end is left for next time, and said', async (t) => {
    const { dir, accessLines } = trace(t, 'a_burst5_delay');
    const imports = new Imports(dir, [confOf('a_burst5_delay')]);
    const path = join(dir, 'access.log');
    const text = accessLines.slice(0, 5).join('\n');
    writeFileSync(path, text);
    const run = await imports.try([path]);
    const leftBytes = accessLines[4]!.length;
    assert.match(run.stdout, new RegExp(`the last line has no end yet \\(${leftBytes} bytes\\)`));
    assert.match(run.stdout, /^4 requests/m);
    writeFileSync(path, `${text}\n`);
    assert.equal((await imports.add([path])).summary.requests, 1);
  });

  test('a line that stands in two error logs counts once', async (t) => {
    const { dir, access, error, errorLines } = trace(t, 'a_burst5_delay');
    const imports = new Imports(dir, [confOf('a_burst5_delay')]);
    const limiting = errorLines.filter((line) => line.includes('limiting requests'));
    const second = write(dir, 'site-error.log', limiting);
    const { summary } = await imports.add([access, error, '--error-log', second]);
    const isLimit = (line: string): boolean => /(?:limiting|delaying) request/.test(line);
    assert.equal(summary.lines.limit_line, errorLines.filter(isLimit).length);
    assert.equal(summary.lines.duplicate, limiting.length);
    assert.equal(summary.unmatchedLines, 0);
  });

  test('instances are counted apart', async (t) => {
    const { dir, access, accessLines } = trace(t, 'a_burst5_delay');
    const imports = new Imports(dir, [confOf('a_burst5_delay')]);
    await imports.add([access, '--instance', 'web1']);
    await imports.add([access, '--instance', 'web2']);
    const both = await imports.report();
    assert.deepEqual(
      both.spans.map((span) => [span.instance, span.requests]),
      [
        ['web1', accessLines.length],
        ['web2', accessLines.length],
      ],
    );
    const one = await imports.report(['--instance', 'web2']);
    assert.deepEqual(
      one.zones,
      both.zones.filter((zone) => zone.instance === 'web2'),
    );
    assert.equal(one.zones.length, 1);
  });
});

test('a folder of logs may hold nothing new', async (t) => {
  const dir = makeTempDir(t);
  mkdirSync(join(dir, 'logs'));
  const imports = new Imports(dir, [confOf('a_burst5_delay')]);
  const empty = write(join(dir, 'logs'), 'access.log', []);
  const run = await imports.try([empty]);
  assert.equal(run.code, 0);
  assert.match(run.stdout, /access\.log +empty/);
  assert.match(run.stdout, /^0 requests/m);
});
