/**
 * The daemon and a server that hangs, that is slow but alive, or that is not there yet at the very
 * first start: noticed soon, not given up on, waited for; and what is stored in the end is what one
 * import stores.
 */
import assert from 'node:assert/strict';
import { after, beforeEach, test, type TestContext } from 'node:test';
import { openStore } from '../src/store/store.js';
import { startFakeServer } from './support/clickhouse-http.js';
import { NetProxy } from './support/net-proxy.js';
import {
  assertSameRows,
  captureLines,
  storedRows,
  TailSite,
  type StoredRows,
  type TailProcess,
} from './support/tail-site.js';
import { makeTempDir } from './support/temp-dir.js';

const LINES = captureLines(1);
const HALF = LINES.length >> 1;

let removeData: () => unknown = () => undefined;
const dataPath = makeTempDir({ after: (remove) => (removeData = remove) });
const server = await startFakeServer({ dataPath });
after(async () => {
  await server.close();
  removeData();
});
beforeEach(() => server.start());
let expected: StoredRows | undefined;

async function rowsOf(database: string): Promise<StoredRows> {
  const store = await openStore({ url: server.url, database, createIfMissing: false });
  const rows = await storedRows(store);
  await store.close();
  return rows;
}

async function compare(site: TailSite, database: string): Promise<void> {
  if (expected === undefined) {
    await site.import(['--clickhouse', server.url, '--database', 'imported']);
    expected = await rowsOf('imported');
  }
  assertSameRows(await rowsOf(database), expected);
}

function tail(
  t: TestContext,
  site: TailSite,
  [url, database]: readonly [string, string],
  ...more: string[]
): TailProcess {
  const store = ['--clickhouse', url, '--database', database, '--spool', site.path('spool')];
  const daemon = site.tail(store, '--commit-interval', '100ms', ...more);
  t.after(() => daemon.child.kill('SIGKILL'));
  return daemon;
}

test('a server that hangs is away after the silence; one that sends on slowly is not', async (t) => {
  const proxy = await NetProxy.open(t, server.url);
  const site = new TailSite(makeTempDir(t));
  const daemon = tail(t, site, [proxy.url, 'hangs'], '--store-timeout', '2s');
  site.write(LINES.slice(0, HALF));
  await daemon.until('"stored"');

  // Longer in all than the silence that would end it, and never silent for so long.
  proxy.mode = 'trickle';
  site.write(LINES.slice(HALF, HALF + 200));
  await proxy.trickledFor(2500);
  assert.doesNotMatch(daemon.said, /the store does not take what is sent/);

  proxy.mode = 'hang';
  site.write(LINES.slice(HALF + 200, HALF + 300));
  const hungMs = Date.now();
  await daemon.until('the store does not take what is sent');
  const noticedMs = Date.now() - hungMs;
  assert.ok(noticedMs < 30_000, `${noticedMs} ms`);
  assert.match(daemon.said, /it did not answer in time/);
  assert.equal((await daemon.get('/readyz')).status, 503);

  proxy.mode = 'pass';
  site.write(LINES.slice(HALF + 300));
  await daemon.until('the store takes again what is sent');
  assert.equal(await daemon.end('SIGTERM'), 0, daemon.said);
  await compare(site, 'hangs');
});

test('the very first start waits for a server that comes later, and is of use meanwhile', async (t) => {
  await server.stop();
  const site = new TailSite(makeTempDir(t));
  site.write(LINES.slice(0, HALF));
  const daemon = tail(t, site, [server.url, 'later']);
  await daemon.until('waits for it, since only it knows what was counted');
  assert.equal((await daemon.get('/readyz')).status, 503);
  assert.equal((await daemon.get('/healthz')).status, 200);
  assert.equal(await daemon.metric('limitlens_store_up'), 0);
  assert.doesNotMatch(daemon.said, /"follows"/);
  site.write(LINES.slice(HALF));
  await server.start();
  await daemon.until('"stored"');
  assert.equal((await daemon.get('/readyz')).status, 200);
  assert.equal((await daemon.get('/')).status, 200, 'the page is there as well');
  assert.equal(await daemon.end('SIGTERM'), 0, daemon.said);
  assert.equal(daemon.said.split('waits for it').length, 2, 'told once');
  await compare(site, 'later');
});

test('SIGTERM ends the wait for a first store; a second start without it begins from the spool', async (t) => {
  await server.stop();
  const site = new TailSite(makeTempDir(t));
  site.write(LINES.slice(0, HALF));
  const first = tail(t, site, [server.url, 'never']);
  await first.until('waits for it');
  assert.equal(await first.end('SIGTERM'), 0, first.said);
  await server.start();
  const second = tail(t, site, [server.url, 'never']);
  await second.until('"stored"');
  await server.stop();
  await second.end('SIGKILL');
  const third = tail(t, site, [server.url, 'never']);
  await third.until('begins without it');
  await third.until('"follows"');
  assert.equal((await third.get('/')).status, 404);
  site.write(LINES.slice(HALF));
  await server.start();
  await third.until('the store takes again what is sent');
  assert.equal((await third.get('/')).status, 200, 'the page came with the store');
  assert.equal(await third.end('SIGTERM'), 0, third.said);
  await compare(site, 'never');
});
