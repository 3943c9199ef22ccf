/**
 * A daemon that was killed, and is started with another lateness: the steps that it does again close
 * the rows that they closed before, so nothing is lost and nothing counts twice.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { openStore } from '../src/store/store.js';
import { makeTempDir } from './support/temp-dir.js';
import {
  assertSameRows,
  captureLines,
  storedRows,
  TailSite,
  type StoredRows,
  type TailProcess,
} from './support/tail-site.js';

async function hasReadAll(daemon: TailProcess): Promise<void> {
  while ((await daemon.metric('limitlens_source_lag_bytes')) !== 0) await pause(20);
}

async function hasStored(daemon: TailProcess, blocks: number): Promise<void> {
  while (!((await daemon.metric('limitlens_store_inserts_total')) >= blocks)) await pause(20);
}

async function rowsOf(path: string): Promise<StoredRows> {
  const store = await openStore({ path, createIfMissing: false });
  const rows = await storedRows(store);
  await store.close();
  return rows;
}

test('a changed lateness counts when there is nothing to be done again', async (t) => {
  const site = new TailSite(makeTempDir(t));
  const lines = captureLines(3);
  const part = Math.ceil(lines.length / 12);
  const options = [['--store', site.path('store')], '--spool', site.path('spool')] as const;
  const first = site.tail(...options);
  await first.until('"follows"');
  // A state comes first, then records without one for a while: those are done again.
  for (let at = 0; at < 6; at++) {
    site.write(lines.slice(at * part, (at + 1) * part));
    await hasReadAll(first);
  }
  await hasStored(first, 10);
  await first.end('SIGKILL');

  const second = site.tail(...options, '--lateness', '25s');
  await second.until('"follows"');
  assert.match(second.said, /reads again what was read/);
  assert.match(second.said, /"latenessMs":5000,"askedMs":25000[^\n]*from the next start/);
  site.write(lines.slice(6 * part));
  assert.equal(await second.end('SIGTERM'), 0, second.said);
  assert.doesNotMatch(second.said, /other rows/);

  await site.import(['--store', site.path('imported')]);
  assertSameRows(await rowsOf(site.path('store')), await rowsOf(site.path('imported')));

  const third = site.tail(...options, '--lateness', '25s');
  await third.until('"follows"');
  assert.equal(await third.end('SIGTERM'), 0, third.said);
  assert.doesNotMatch(third.said, /from the next start/);
});
