/**
 * The command line itself: usage, output that goes nowhere, formats of a replay, hostile bytes.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { startCli, mustRun, runCli } from './support/cli.js';
import { confOf, Imports } from './support/imports.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

const CONF = confOf('a_burst5_delay');
const ACCESS = join(traceDir('a_burst5_delay'), 'access.log');
const REPLAY = ['replay', '--conf', CONF, ACCESS];

/** A control byte that a terminal acts on, C0 but the line feed, or C1 as UTF-8. */
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;

void suite('the command line', { concurrency: 2 }, () => {
  test('what is not understood: 64, and nothing on standard output', async () => {
    const wrong: [string[], RegExp][] = [
      [['imprt'], /unknown command 'imprt'\n\(Did you mean import\?\)/],
      [['import', '--bogus'], /unknown option '--bogus'/],
      [['import', ACCESS], /expected --conf FILE/],
      [['import', '--conf', CONF], /expected a log to read/],
      [['import', '--conf', CONF, '--lateness', 'soon', ACCESS], /Expected a duration like 60s/],
      [
        ['replay', '--conf', CONF, '--timezone', 'Mars/North', ACCESS],
        /Mars\/North: no such time zone/,
      ],
      [
        [
          'replay',
          '--conf',
          `${CONF}@2026-03-02T10:00:00Z`,
          '--conf',
          `${CONF}@2026-03-01T10:00:00Z`,
          ACCESS,
        ],
        /in the order of their times/,
      ],
      [['report', '--format', 'xml'], /Allowed choices are text, json/],
      [['report', '--since', 'yesterday'], /--since yesterday: expected a time like/],
      [['report', '--store', 'a', '--clickhouse', 'http://b'], /either --store or --clickhouse/],
      [['report', '--cluster', 'c'], /--cluster needs --clickhouse URL/],
    ];
    for (const [args, message] of wrong) {
      const run = await runCli(args);
      assert.equal(run.code, 64, `${args.join(' ')}: ${run.stderr}`);
      assert.match(run.stderr, message);
      assert.equal(run.stdout, '');
    }
  });

  test('explain takes lines from standard input', async () => {
    const stdin = `${readFileSync('samples/error.log', 'utf8').split('\n').slice(0, 2).join('\n')}\n`;
    const [one, two] = stdin.trimEnd().split('\n') as [string, string];
    const alone = await Promise.all([one, two].map((line) => mustRun(['explain', line])));
    const texts = alone.map(({ stdout }) => stdout);
    for (const args of [['explain'], ['explain', '-']]) {
      assert.equal((await mustRun(args, { stdin })).stdout, texts.join('\n'));
    }
    const json = (await mustRun(['explain', '--format', 'json'], { stdin })).stdout;
    assert.equal(json.trimEnd().split('\n').length, 2);
  });

  test('options from the environment', async () => {
    const { stdout } = await mustRun(['replay', ACCESS], { env: { LIMITLENS_CONF: CONF } });
    assert.equal(stdout, (await mustRun(REPLAY)).stdout);
  });

  for (const format of ['jsonl', 'json', 'text']) {
    test(`a reader that goes away ends a replay quietly (${format})`, async () => {
      // Longer than any pipe holds: what is written after the reader has gone fails.
      const logs = ['g_mixed_2workers', 'k_starvation'] as const;
      for (const trace of logs) {
        const log = join(traceDir(trace), 'access.log');
        const child = startCli(['replay', '--conf', confOf(trace), log, '--format', format]);
        const stderr: Buffer[] = [];
        child.stderr!.on('data', (chunk: Buffer) => stderr.push(chunk));
        child.stdout!.once('data', () => child.stdout!.destroy());
        const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
          child.once('close', (...end) => resolve(end));
        });
        assert.deepEqual([code, signal, Buffer.concat(stderr).toString()], [0, null, '']);
      }
    });
  }

  test('a replay as JSON lines, as one array, and as a table', async () => {
    const lines = (await mustRun(REPLAY)).stdout.trimEnd().split('\n');
    const array = await mustRun([...REPLAY, '--format', 'json']);
    assert.deepEqual(
      JSON.parse(array.stdout),
      lines.map((line) => JSON.parse(line) as unknown),
    );
    const table = (await mustRun([...REPLAY, '--format', 'text'])).stdout.trimEnd().split('\n');
    assert.equal(table.length, lines.length + 1);
    assert.match(table[0]!, /^decided +status +logged +verdict +source +zones/);
    const row = /^2026-11-30T07:00:\d\d\.\d{3}Z +(?:200|503) +\w+ +=? ?\w* +[\w-]+ +perkey \w+ \d/;
    for (const line of table.slice(1)) assert.match(line, row);
    const empty = await mustRun(['replay', '--conf', CONF, '--format', 'json', '/dev/null']);
    assert.deepEqual(JSON.parse(empty.stdout), []);
  });

  test('hostile bytes reach no terminal, and JSON stays UTF-8', async (t) => {
    const dir = makeTempDir(t);
    const conf = join(dir, 'nginx.conf');
    writeFileSync(
      conf,
      `events {}
http {
  log_format raw escape=none '$msec $request_time $status $limit_req_status $connection $remote_addr "$request" "$http_referer"';
  access_log /var/log/nginx/access.log raw;
  limit_req_zone $http_referer zone=ref:1m rate=1r/m;
  server { listen 80; server_name s; location / { limit_req zone=ref nodelay; } }
}
`,
    );
    const hostile = '\x1b]0;owned\x07\x1b[2J\x9b31m\xff\xfe\xe2\x80';
    const seconds = Date.UTC(2026, 2, 2, 10) / 1000;
    const line = (n: number): string =>
      `${seconds + n}.000 0.000 ${n === 0 ? 200 : 503} ${n === 0 ? 'PASSED' : 'REJECTED'} ${n} 192.0.2.1 "GET /${hostile} HTTP/1.1" "${hostile}"\n`;
    const log = join(dir, 'access\x1b[31m.log');
    writeFileSync(log, `${[0, 1, 2, 3].map(line).join('')}${hostile}\n`, 'latin1');
    const imports = new Imports(dir, [conf]);
    const imported = await imports.try([log]);
    const report = await runCli(['report', '--store', imports.store]);
    const replayed = await runCli(['replay', '--conf', conf, log, '--format', 'text']);
    const missing = await runCli(['replay', '--conf', conf, `${log}\x1b[2J`]);
    for (const [run, code] of [
      [imported, 0],
      [report, 0],
      [replayed, 0],
      [missing, 66],
    ] as const) {
      assert.equal(run.code, code, `${run.signal} ${run.stderr}`);
    }
    for (const { stdout, stderr } of [imported, report, replayed, missing]) {
      assert.doesNotMatch(stdout, CONTROL);
      assert.doesNotMatch(stderr, CONTROL);
    }
    assert.match(report.stdout, /\\u001b\]0;owned/);
    const utf8 = new TextDecoder('utf-8', { fatal: true });
    const json = await runJson(['report', '--store', imports.store, '--format', 'json']);
    const parsed = JSON.parse(utf8.decode(json)) as { zones: { rejected: number }[] };
    assert.equal(parsed.zones[0]!.rejected, 3);
    const jsonl = utf8.decode(await runJson(['replay', '--conf', conf, log]));
    assert.equal(jsonl.trimEnd().split('\n').length, 4);
  });
});

/** Standard output as bytes. */
async function runJson(args: readonly string[]): Promise<Buffer> {
  const child = startCli(args);
  const chunks: Buffer[] = [];
  child.stderr!.resume();
  for await (const chunk of child.stdout! as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test('the version is that of the package', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  assert.equal((await mustRun(['--version'])).stdout, `${version}\n`);
});
