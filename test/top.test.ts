/**
 * `limitlens top` apart from the terminal: what a frame says, that it fits, and that nothing which a
 * client sent gets out of its place.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { openStore } from '../src/store/store.js';
import { columnsOf as columnsOfTable, type TableName } from '../src/store/tables.js';
import { frame, type FrameState } from '../src/top/frame.js';
import type { TopSnapshot } from '../src/top/snapshot.js';
import { columnsOf, cutText, fitText, harmlessText } from '../src/top/terminal-text.js';
import { mustRun, runCli } from './support/cli.js';
import { makeTempDir } from './support/temp-dir.js';

const AT_MS = Date.UTC(2026, 10, 30, 8, 15);
const LIVE: FrameState = {
  ...{ where: './limitlens-data', waitsFor: 'the store', nowMs: AT_MS + 12_000 },
  order: 'rejected',
  ...{ trouble: '', isLive: true, isPaused: false },
};

const HOSTILE = [
  '\u001b[2J\u001b[H\u001b]0;x\u0007',
  'a\r\nb\tc\u0000\u009b31m',
  '\u202egnp.exe\u2066',
  'e' + '\u0301'.repeat(50),
  '\u0301first',
  '中文密钥'.repeat(40),
  '👩‍👩‍👧🇩🇪❤️',
  '\ud800half',
  '\ue000\u{e0041}\u00ad',
  'x'.repeat(5000),
];

function snapshotOf(names: readonly string[], zones = names.length): TopSnapshot {
  return {
    ...{ atMs: AT_MS, windowMs: 60_000, requestsPerSecond: 46, keysSinceMs: AT_MS - 60_000 },
    zones: Array.from({ length: zones }, (_, i) => ({
      ...{ instance: 'edge', zone: names[i % names.length]!, kind: 'limit_req' },
      ...{ rateMilliRps: 10_000, passedPerSecond: 123.4, delayedPerSecond: 1, dryRunPerSecond: 0 },
      ...{ rejectedPerSecond: zones - i, excessMax: 20.5, nodes: 190, capacityNodes: 191 },
      evictionsInDebt: 3,
    })),
    sources: [
      { status: 429, source: 'limit_req', perSecond: 5.88 },
      { status: 503, source: 'upstream', perSecond: 0.25 },
    ],
    keys: names.map((key) => ({
      ...{ zone: key, key, passed: 1, delayed: 2, rejected: 3, dryRun: 4, excessMax: 20.5 },
    })),
  };
}

/** Only colours, and nothing else that a terminal would act on. */
function plain(line: string): string {
  const text = line.replace(/\u001b\[(?:0|1|2|31|33)m/g, '');
  assert.doesNotMatch(text, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}]/u);
  return text;
}

test('harmless text has the width that is reckoned, and can be cut and padded to any', () => {
  const width = (text: string): number => columnsOf(harmlessText(text, true));
  assert.equal(width('192.0.2.1'), 9);
  assert.equal(width('中文'), 4);
  assert.equal(width('ｆｕｌｌ'), 8);
  assert.equal(width('한국어'), 6);
  assert.equal(width('e\u0301'), 1);
  assert.equal(width('🚀'), 2);
  assert.equal(harmlessText('\u001b[31m\u202e', true), '\\u001b[31m\\u202e');
  assert.equal(harmlessText('é中', false), '\\u00e9\\u4e2d');
  assert.equal(cutText('中文字', 5, true), '中文…');
  assert.equal(cutText('中文字', 4, true), '中…');
  assert.equal(cutText('abcdef', 4, false), 'abc~');
  assert.equal(fitText('中文字', 4, 'left', true), '中… ');
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...HOSTILE)),
      fc.nat(60),
      fc.boolean(),
      (text, columns, isUtf8) => {
        const harmless = harmlessText(text, isUtf8);
        assert.ok(columnsOf(cutText(harmless, columns, isUtf8)) <= columns);
        assert.equal(columnsOf(fitText(harmless, columns, 'right', isUtf8)), columns);
        plain(harmless);
        if (!isUtf8) assert.match(harmless, /^[ -~]*$/);
      },
    ),
    { seed: 1, numRuns: 300 },
  );
});

test('a frame fits every terminal, whatever the names are', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 200 }),
      fc.integer({ min: 1, max: 60 }),
      fc.boolean(),
      fc.boolean(),
      fc.constantFrom('', 'store: in use by process 5\u001b[2J'),
      fc.integer({ min: 0, max: 200 }),
      (columns, rows, isUtf8, hasColour, trouble, zones) => {
        const look = { columns, rows, isUtf8, hasColour };
        const lines = frame(snapshotOf(HOSTILE, zones), { ...LIVE, trouble }, look);
        assert.ok(lines.length <= rows, `${lines.length} lines in ${rows} rows`);
        for (const line of lines) {
          const text = plain(line);
          assert.ok(
            columnsOf(text) <= columns,
            `${columnsOf(text)} columns in ${columns}: ${text}`,
          );
          if (!isUtf8) assert.match(text, /^[ -~]*$/);
          if (!hasColour) assert.equal(text, line);
        }
      },
    ),
    { seed: 1, numRuns: 200 },
  );
});

test('a frame of 24 lines and 80 columns has what matters most', () => {
  const names = Array.from({ length: 30 }, (_, i) => `key${i}`);
  const look = { columns: 80, rows: 24, isUtf8: true, hasColour: false };
  const lines = frame(snapshotOf(names, 30), LIVE, look);
  assert.equal(lines.length, 24);
  assert.match(lines[1]!, /^46\.00 requests\/s in the 60 s to 08:15:00Z, which is 12 s ago$/);
  assert.match(lines[2]!, /^429 and 503\/s: +429 limit_req 5\.88 +503 upstream 0\.25$/);
  assert.match(lines[4]!, /^ZONE +RATE +PASSED\/s +DELAYED\/s +REJECTED\/s +DRY RUN\/s/);
  assert.match(lines[5]!, /^key0 +10r\/s +123 +1\.00 +30\.00 +0\.00/);
  assert.ok(lines.some((line) => /^ {2}and \d+ more zones$/.test(line)));
  assert.ok(lines.some((line) => /^ +3 +2 +4 +1 +20\.500 +key0 +key0$/.test(line)));
  assert.ok(lines.some((line) => /^ {2}and \d+ more keys$/.test(line)));
  assert.match(lines[23]!, /^q quit/);
  const narrow = frame(snapshotOf(names, 3), LIVE, { ...look, columns: 32 });
  assert.match(
    narrow.find((line) => line.startsWith('ZONE'))!,
    /REJECTED\/s$/,
  );
  const waiting = frame(null, { ...LIVE, trouble: 'x: in use' }, look);
  assert.deepEqual(waiting.slice(1, 3), ['waiting for the store', 'x: in use']);
});

test('top --once and JSON say what the store holds', async (t) => {
  const store = join(makeTempDir(t), 'store');
  const logs = ['samples/access.log', 'samples/error.log'];
  await mustRun(['import', '--conf', 'samples/nginx.conf', '--store', store, ...logs]);
  const top = ['top', '--store', store, '--once', '--window', '80s'];

  const { stdout } = await mustRun([...top, '--format', 'json', '--top', '1000']);
  const snapshot = JSON.parse(stdout) as TopSnapshot;
  assert.equal(snapshot.atMs, Date.parse('2026-11-30T08:14:40Z'));
  assert.equal(Math.round(snapshot.requestsPerSecond * 80), 3474);
  const login = snapshot.zones.find(({ zone }) => zone === 'login')!;
  assert.deepEqual(
    [login.passedPerSecond, login.rejectedPerSecond].map((rate) => Math.round(rate * 80)),
    [100, 234],
  );
  assert.equal(login.rateMilliRps, 166, 'the configuration from before the window is in force');
  const pages = snapshot.zones.find(({ zone }) => zone === 'pages')!;
  assert.deepEqual([pages.nodes, pages.capacityNodes], [191, 191]);
  const limitReq = snapshot.sources.find((row) => row.status === 429 && row.source === 'limit_req');
  assert.equal(Math.round(limitReq!.perSecond * 80), 404);
  assert.deepEqual(
    snapshot.keys.slice(0, 2).map(({ key, rejected }) => [key, rejected]),
    [
      ['192.0.2.66', 164],
      ['demo-partner', 90],
    ],
  );
  const byExcess = await mustRun([...top, '--format', 'json', '--sort', 'excess', '--top', '1']);
  assert.equal((JSON.parse(byExcess.stdout) as TopSnapshot).keys[0]!.key, 'demo-batch');

  const env = { COLUMNS: '100', LC_ALL: 'C.UTF-8' };
  const text = (await mustRun([...top], { env })).stdout;
  assert.match(text, /^login +0\.166r\/s +1\.25 +0\.00 +2\.92 /m);
  assert.match(text, /^ +164 +0 +0 +16 +5\.942 +login +192\.0\.2\.66$/m);
  assert.doesNotMatch(text, /\u001b/);
  assert.ok(text.split('\n').every((line) => columnsOf(line) <= 100));
  const ascii = (await mustRun([...top], { env: { COLUMNS: '160', LC_ALL: 'C' } })).stdout;
  assert.match(ascii, /##########/);
  assert.match(ascii, /^[\n -~]*$/);

  const later = await mustRun([...top, '--instance', 'other']);
  assert.match(later.stdout, /no requests yet/);
});

test('top says what it needs', async (t) => {
  const store = join(makeTempDir(t), 'store');
  const missing = await runCli(['top', '--store', store, '--once']);
  assert.equal(missing.code, 66);
  for (const args of [[], ['--interval', '0s', '--once'], ['--window', '48h', '--once']]) {
    const run = await runCli(['top', '--store', store, ...args]);
    assert.equal(run.code, 64, args.join(' '));
    assert.match(run.stderr, /expected/);
  }
});

test('while requests may still come for the newest bucket, the window ends before it', async (t) => {
  const path = join(makeTempDir(t), 'store');
  const bucketS = Math.floor(Date.now() / 10_000) * 10;
  const rows = [0, 10].map((back) => {
    return ['edge', 's', '/', bucketS + 3600 - back, 200, '', 'PASSED', 60];
  });
  const table: TableName = 'responses';
  const store = await openStore({ path, createIfMissing: true });
  await store.insertBlock({ table, columns: columnsOfTable(table), rows }, 'one');
  await store.close();
  const { stdout } = await mustRun(['top', '--store', path, '--once', '--format', 'json']);
  const snapshot = JSON.parse(stdout) as TopSnapshot;
  assert.deepEqual([snapshot.atMs, snapshot.requestsPerSecond], [(bucketS + 3600) * 1000, 1]);
});
