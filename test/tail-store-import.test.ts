/**
 * An import into an instance whose daemon was killed: refused with what to do, and done after it.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { EXIT } from '../src/errors.js';
import { openStore } from '../src/store/store.js';
import { assertSameRows, captureLines, storedRows, TailSite } from './support/tail-site.js';
import type { StoredRows } from './support/tail-site.js';
import { makeTempDir } from './support/temp-dir.js';

const LINES = captureLines(1);

async function rowsOf(path: string): Promise<StoredRows> {
  const store = await openStore({ path, createIfMissing: false, readOnly: true });
  const rows = await storedRows(store);
  await store.close();
  return rows;
}

test('an import behind a killed daemon waits until a drain; the daemon goes on behind an import', async (t) => {
  const site = new TailSite(makeTempDir(t));
  const store = ['--store', site.path('store')];
  site.write(LINES.slice(0, 1500));
  const killed = site.tail(store, '--commit-interval', '200ms');
  t.after(() => killed.child.kill('SIGKILL'));
  await killed.until('"stored"');
  await killed.end('SIGKILL');
  const refused = await site.tryImport(store);
  assert.equal(refused.code, EXIT.io);
  assert.match(refused.said, /found that limitlens tail .*runs or was killed/);
  assert.match(refused.said, /start limitlens tail --instance default .*end it with SIGTERM/);

  site.write(LINES.slice(1500));
  const second = site.tail(store, '--commit-interval', '200ms');
  t.after(() => second.child.kill('SIGKILL'));
  await second.until('"follows"');
  assert.equal(await second.end('SIGTERM'), 0, second.said);
  const drained = await rowsOf(site.path('store'));
  await site.import(store);
  assertSameRows(await rowsOf(site.path('store')), drained);

  // The import has moved the store on: the spool is not what the daemon goes by.
  const third = site.tail(store, '--commit-interval', '200ms');
  t.after(() => third.child.kill('SIGKILL'));
  await third.until('goes on from what it knows');
  await third.until('"follows"');
  assert.equal(await third.end('SIGTERM'), 0, third.said);
  rmSync(site.path('store/spool'), { recursive: true });
  await site.import(['--store', site.path('imported')]);
  assertSameRows(await rowsOf(site.path('store')), await rowsOf(site.path('imported')));
});
