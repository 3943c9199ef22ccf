/**
 * `limitlens report --html`: one page that says what the report says, and can do nothing but be read.
 *
 * The markup is read by a small strict reader (every tag closed, every value quoted), then drawn by
 * the real browser, which must have nothing to complain of.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { chart, niceCeiling } from '../src/report/html-chart.js';
import { markup, shown } from '../src/report/html-markup.js';
import { stepSeconds } from '../src/report/html-timeline.js';
import type { Report } from '../src/report/report.js';
import { openStore, type Store } from '../src/store/store.js';
import { columnsOf, type TableName } from '../src/store/tables.js';
import { finished, mustRun, runCli } from './support/cli.js';
import { requireProgram } from './support/debian.js';
import { readMarkup, type Element } from './support/markup-reader.js';
import { makeTempDir } from './support/temp-dir.js';

const T0_MS = Date.UTC(2026, 10, 30, 8);

async function storeOf(
  t: test.TestContext,
  tables: Partial<Record<TableName, unknown[][]>>,
): Promise<string> {
  const path = join(makeTempDir(t), 'store');
  const store: Store = await openStore({ path, createIfMissing: true });
  for (const [name, rows] of Object.entries(tables)) {
    const table = name as TableName;
    await store.insertBlock({ table, columns: columnsOf(table), rows }, table);
  }
  await store.close();
  return path;
}

async function page(store: string, ...args: string[]): Promise<string> {
  const { stdout } = await mustRun(['report', '--store', store, '--html', '-', ...args]);
  return stdout;
}

/** A page that fetches, runs and sends nothing, whatever it shows. */
function assertInert(text: string): Element {
  const root = readMarkup(text);
  const names = new Set(root.all().map(({ name }) => name));
  for (const name of ['script', 'iframe', 'object', 'embed', 'img', 'link', 'form', 'base']) {
    assert.ok(!names.has(name), `the page has <${name}>`);
  }
  for (const element of root.all()) {
    for (const [name, value] of element.attributes) {
      assert.doesNotMatch(name, /^(on.*|style|src|srcset|action|xlink:href)$/i, element.name);
      if (name === 'href') assert.match(value, /^#zone-\d+$/);
    }
  }
  const [style] = root.named('style');
  assert.doesNotMatch(style!.text(), /url\(|@import/);
  const policy = root.named('meta').find((meta) => meta.attribute('http-equiv') !== undefined);
  const hash = createHash('sha256').update(style!.text()).digest('base64');
  assert.equal(
    policy!.attribute('content'),
    `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`,
  );
  return root;
}

/** The rows of the table whose caption begins so, as texts. */
function rowsOf(root: Element, caption: string): string[][] {
  const tables = root.named('table').filter((one) => one.text().trim().startsWith(caption));
  assert.ok(tables.length > 0, `no table "${caption}"`);
  return tables.flatMap((table) =>
    table
      .named('tbody')[0]!
      .named('tr')
      .map((row) => row.children.map((cell) => cell.text().trim())),
  );
}

test('the page of the samples', async (t) => {
  const dir = makeTempDir(t);
  const store = join(dir, 'store');
  const logs = ['samples/access.log', 'samples/error.log'];
  await mustRun(['import', '--conf', 'samples/nginx.conf', '--store', store, ...logs]);
  const json = await mustRun(['report', '--store', store, '--format', 'json']);
  const report = JSON.parse(json.stdout) as Report;
  const file = join(dir, 'report.html');
  writeFileSync(file, 'an older report');
  const run = await mustRun(['report', '--store', store, '--html', file]);
  const text = readFileSync(file, 'utf8');
  const root = assertInert(text);

  await t.test('is in the file, and nothing is left beside it', () => {
    assert.equal(run.stdout, '');
    assert.match(run.stderr, /report\.html: \d+ KiB written/);
    assert.deepEqual(readdirSync(dir).toSorted(), ['report.html', 'store']);
  });

  await t.test('has the numbers of the report', () => {
    const rows = rowsOf(root, 'What each zone decided');
    const expected = report.zones.map((zone) =>
      [zone.passed, zone.delayed, zone.rejected].map((n) => n.toLocaleString('en-US')),
    );
    assert.deepEqual(
      rows.map((row) => row.slice(4, 7)),
      expected,
    );
    const answers = rowsOf(root, 'Answers of 429 and 503').map((row) => [row[0], row[1], row[3]]);
    assert.deepEqual(
      answers,
      report.sources.map(({ status, source, requests }) => [`${status}`, source, `${requests}`]),
    );
    const keys = rowsOf(root, 'Keys that were limited most');
    assert.ok(keys.some(([key, , , rejected]) => key === '192.0.2.66' && rejected === '164'));
    const [dryRun] = rowsOf(root, 'Rules under dry run');
    assert.deepEqual(dryRun!.slice(4, 5), ['130']);
    assert.ok(rowsOf(root, 'The verdict is the replay').some((row) => row.includes('99.55 %')));
  });

  await t.test('tells its version and time, and what the logs do not tell', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    assert.ok(root.text().includes(`Made by limitlens ${version} at `));
    assert.deepEqual(rowsOf(root, 'The time that this report is about'), [
      ['default', '2026-11-30T08:13:20Z', '2026-11-30T08:14:40Z', '3,474'],
    ]);
    assert.ok(root.text().includes('user agents are not stored'));
  });

  await t.test('draws what it has in its tables: bars that add up to the counts', () => {
    const decisions = rowsOf(root, 'Decisions, requests per second');
    const requests = decisions.flatMap((row) => row.slice(1)).map((n) => Number(n) * 10);
    const all = report.zones.reduce(
      (sum, z) => sum + z.passed + z.delayed + z.rejected + z.rejectedDryRun + z.delayedDryRun,
      0,
    );
    assert.equal(Math.round(requests.reduce((a, b) => a + b, 0)), all);
    for (const figure of root.named('figure')) {
      const shapes = figure
        .named('path')
        .filter((path) => /^(bar|line) /.test(path.attribute('class') ?? ''));
      assert.ok(shapes.length >= 2, 'a shape in the chart, and one in its legend');
      for (const path of shapes) assert.match(path.attribute('d')!, /^M[-\d. MVHhLz]+$/);
    }
  });

  await t.test('is drawn by a browser without a complaint', async () => {
    const seen = await browse(file, dir);
    assert.deepEqual(seen.complaints, []);
    const count = (html: string): number => html.match(/<(td|th|path|rect)\b/g)?.length ?? 0;
    assert.equal(count(seen.dom), count(text));
    const broken = join(dir, 'broken.html');
    writeFileSync(broken, text.replace('<style>', '<style> '));
    assert.match((await browse(broken, dir)).complaints.join(), /Content Security Policy/);
  });
});

interface Seen {
  readonly dom: string;
  readonly complaints: readonly string[];
}

/** Loads a file in the browser. @returns what it made of it, and what it wrote on its console */
async function browse(file: string, dir: string): Promise<Seen> {
  const child = spawn(
    requireProgram('chromium'),
    [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
      ...['--disable-dev-shm-usage', `--user-data-dir=${join(dir, 'browser')}`],
      ...['--enable-logging=stderr', '--dump-dom', pathToFileURL(file).href],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const { code, stdout, stderr } = await finished(child);
  assert.equal(code, 0, stderr);
  const complaints = stderr.split('\n').filter((line) => line.includes(':CONSOLE'));
  return { dom: stdout, complaints };
}

const HOSTILE = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '</style></title></svg><h1>',
  ']]><!--',
  '&lt;b&gt; &amp; &#39;',
  'javascript:alert(1)',
  '${alert(1)} {{x}}',
  'a\u202egnp.exe\u200b\u0000\u001b[31m\r\n\t\ufeff',
  '\\"\\u202e',
  '中文👩‍👩‍👧é',
  'x'.repeat(5_000),
];

test('what clients send is text on the page', async (t) => {
  const tables: Record<string, unknown[][]> = {
    ...{ zone_outcomes: [], responses: [], key_minutes: [], zone_state: [], agreement: [] },
    ...{ line_counts: [], unparsable_samples: [], examples: [], findings: [], marks: [] },
    ...{ limits: [] },
  };
  const atS = T0_MS / 1000;
  for (const [n, name] of HOSTILE.entries()) {
    const ruled = JSON.stringify([
      {
        server: name,
        location: name,
        burst: 5,
        delay: 'nodelay',
        status: 429,
        dryRun: true,
        where: name,
      },
    ]);
    tables['zone_outcomes']!.push(
      [name, name, 'limit_req', name, name, atS, 'rejected_dry_run', n + 1, 0, 6000, 6000, 0],
      [name, name, 'limit_req', name, name, atS, 'rejected', n + 1, 0, 6000, 6000, 0],
    );
    tables['responses']!.push([name, name, name, atS, 429, 'limit_req', 'REJECTED', n + 1]);
    tables['key_minutes']!.push([
      name,
      name,
      name,
      atS,
      1,
      0,
      n + 1,
      0,
      n + 1,
      0,
      6000,
      5900,
      6100,
    ]);
    tables['zone_state']!.push([name, name, atS, 100, 191, 3, 1, 1, 1, 9, 40, 40]);
    tables['agreement']!.push([name, name, atS, 'agree', 9], [name, name, atS, name, 9]);
    tables['line_counts']!.push([name, name, atS, 'unparsable', name, 2]);
    tables['unparsable_samples']!.push([name, name, n, name, name]);
    tables['examples']!.push([
      name,
      name,
      name,
      429,
      'limit_req',
      T0_MS,
      'GET',
      name,
      name,
      name,
      7,
    ]);
    tables['findings']!.push(
      [name, 'burst_differs', name, name, T0_MS, T0_MS + 9000, '{}'],
      [name, 'not_derivable', name, name, T0_MS, T0_MS + 9000, '{}'],
    );
    tables['marks']!.push([name, T0_MS + 5000, 'reload', name]);
    tables['limits']!.push([name, name, T0_MS - 5, name, 32_768, 10_000, 191, ruled]);
  }
  const text = await page(await storeOf(t, tables), '--top', '30');
  const root = assertInert(text);
  for (const name of HOSTILE) {
    assert.ok(root.text().includes(shown(name)), JSON.stringify(shown(name, 40)));
    const cells = root.named('td').filter((cell) => cell.text().trim() === shown(name));
    assert.ok(cells.length >= 5, JSON.stringify(shown(name, 40)));
  }
  assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b\u202e\ufeff]/);
  assert.ok(Buffer.byteLength(text) < 1_000_000, 'long names do not make the page long');
});

test('pages of little and of much', async (t) => {
  await t.test('a store without requests has a page that says so', async () => {
    const root = assertInert(await page(await storeOf(t, {})));
    assert.match(root.text(), /holds no requests of this time/);
    assert.deepEqual(root.named('svg'), []);
  });

  await t.test('of 200 zones those with most refusals are drawn, all are told', async () => {
    const rows: unknown[][] = [];
    for (let n = 0; n < 200; n++) {
      for (let minute = 0; minute < 60; minute += 10) {
        const row = ['edge', `zone${n}`, 'limit_req', 's', '/', T0_MS / 1000 + 60 * minute];
        rows.push([...row, 'passed', 100, 0, 0, 0, 0], [...row, 'rejected', n, 0, 6000, 6000, 0]);
      }
    }
    const responses = [['edge', 's', '/', T0_MS / 1000, 200, '', 'PASSED', 5]];
    const text = await page(await storeOf(t, { zone_outcomes: rows, responses }));
    const root = assertInert(text);
    assert.equal(rowsOf(root, 'What each zone decided').length, 200);
    const drawn = root
      .named('section')
      .map((one) => one.named('h3')[0]!.text().trim().split(/\s/)[0]);
    const expected = Array.from({ length: 20 }, (_, n) => `zone${180 + n}`);
    assert.deepEqual(drawn, expected);
    assert.match(root.text(), /Of the 200 zones, the 20 that refused and delayed most/);
    assert.ok(Buffer.byteLength(text) < 3_000_000);
  });

  await t.test('a time without requests is an empty page, not an error', async () => {
    const responses = [['edge', 's', '/', T0_MS / 1000, 200, '', 'PASSED', 5]];
    const store = await storeOf(t, { responses });
    const root = assertInert(await page(store, '--until', '2020-01-01'));
    assert.match(root.text(), /holds no requests of this time/);
  });
});

test('a file that cannot be written', async (t) => {
  const dir = makeTempDir(t);
  const store = await storeOf(t, {});
  const report = (...args: string[]) => runCli(['report', '--store', store, ...args]);

  const missing = await report('--html', join(dir, 'none', 'r.html'));
  assert.equal(missing.code, 74);
  assert.match(missing.stderr, /none\/r\.html: expected a file that can be written/);

  mkdirSync(join(dir, 'folder'));
  const folder = await report('--html', join(dir, 'folder'));
  assert.equal(folder.code, 74);
  assert.deepEqual(readdirSync(dir), ['folder']);

  const both = await report('--html', '-', '--format', 'json');
  assert.equal(both.code, 64);
  assert.match(both.stderr, /--html.*cannot be used with.*--format/);

  const device = await report('--html', '/dev/null');
  assert.equal(device.code, 0, device.stderr);
});

test('markup: every text comes back as it was', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const { source } = markup`<p title="${shown(text, Infinity)}">${shown(text, Infinity)}</p>`;
      const [p] = readMarkup(`<!DOCTYPE html>\n${source}`).named('p');
      assert.equal(p!.text(), shown(text, Infinity));
      assert.equal(p!.attribute('title'), shown(text, Infinity));
    }),
    { seed: 1 },
  );
});

test('charts: nothing leaves the plot, and steps fit every span', () => {
  fc.assert(
    fc.property(
      fc.array(fc.option(fc.double({ min: 0, max: 1e9, noNaN: true })), {
        minLength: 1,
        maxLength: 96,
      }),
      fc.double({ min: 0, max: 1e9, noNaN: true }),
      (values, value) => {
        const series = { name: 'a', style: 's-a', values };
        const { source } = chart({
          ...{ title: 't', unit: 'u', fromMs: 0, stepMs: 10_000, steps: values.length },
          ...{ bars: [series, series], lines: [series], format: String },
          levels: [{ name: 'burst', style: 's-burst', value }],
        });
        if (source === '') {
          assert.ok(values.every((one) => one === null || one === 0));
          return;
        }
        const [svg] = readMarkup(`<!DOCTYPE html>\n${source}`).named('svg');
        for (const path of svg!.named('path')) {
          for (const [, x, y] of path.attribute('d')!.matchAll(/[ML]([-\d.]+) ([-\d.]+)/g)) {
            assert.ok(Number(x) >= 0 && Number(x) <= 760 && Number(y) >= 7.9 && Number(y) <= 190);
          }
        }
      },
    ),
    { seed: 1 },
  );
  fc.assert(
    fc.property(fc.integer({ min: 10_000, max: 4 * 366 * 86_400_000 }), (spanMs) => {
      const step = stepSeconds(spanMs);
      assert.equal(step % 10, 0);
      assert.ok(spanMs / 1000 / step <= 96);
    }),
    { seed: 1 },
  );
  fc.assert(
    fc.property(fc.double({ min: 1e-6, max: 1e12, noNaN: true }), (value) => {
      const top = niceCeiling(value);
      assert.ok(top >= value * (1 - 1e-9) && top <= value * 2.5 * (1 + 1e-9));
    }),
    { seed: 1 },
  );
});
