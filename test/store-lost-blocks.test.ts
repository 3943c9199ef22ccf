/**
 * A process that is killed after the engine has noted a block's token and before the block has its
 * place: what is left on disk is a line in the table's deduplication log, and no part. The block is
 * sent again, and has to come in.
 *
 * Found by killing at the engine's rename(2) under strace; here the part is taken away, which leaves
 * the same files.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openStore, type Block, type Store } from '../src/store/store.js';
import { blockToken, type Intent } from '../src/store/write-ahead.js';
import { makeTempDir } from './support/temp-dir.js';

const NOVEMBER_S = Date.UTC(2023, 10, 30, 12) / 1000;
const DECEMBER_S = Date.UTC(2023, 11, 1) / 1000;

function intentOf(sequence: number): Intent {
  const ranges = [{ sourceId: 'a', fromByte: 0, toByte: sequence }];
  return { instance: 'i', sequence, ranges, startedBy: 'test' };
}

function blockOf(sequence: number, ...minutes: readonly number[]): Block {
  return {
    table: 'key_minutes',
    columns: ['instance', 'zone', 'key', 'minute', 'passed'],
    rows: minutes.map((minuteS) => ['i', 'z', `key ${sequence}`, minuteS, 1]),
  };
}

async function insert(store: Store, sequence: number, ...minutes: readonly number[]) {
  const block = blockOf(sequence, ...minutes);
  await store.insertBlock(block, blockToken(intentOf(sequence), 'key_minutes', 0));
}

/** The sums of all keys and months. */
async function passed(store: Store): Promise<unknown> {
  return store.query(
    `SELECT key, toUInt32(toYYYYMM(minute)) AS month, sum(passed) AS passed FROM key_minutes
     GROUP BY key, month ORDER BY key, month`,
  );
}

/** Where the newest part of a table lies. */
async function newestPart(store: Store, table: string): Promise<string> {
  const [row] = await store.query<{ path: string }>(
    `SELECT path FROM system.parts WHERE database = 'limitlens' AND table = {table:String}
     ORDER BY max_block_number DESC LIMIT 1`,
    { table },
  );
  return row!.path;
}

test('a block noted and not made comes in when it is sent again, the others stay once', async (t) => {
  const path = join(makeTempDir(t), 'store');
  let store = await openStore({ path, createIfMissing: true });
  await insert(store, 1, NOVEMBER_S);
  await insert(store, 2, NOVEMBER_S, DECEMBER_S);
  const lost = await newestPart(store, 'key_minutes');
  await store.close();
  rmSync(lost, { recursive: true });

  store = await openStore({ path, createIfMissing: false });
  assert.deepEqual(store.lostBlocksOf, ['key_minutes']);
  for (const times of [1, 2]) {
    await insert(store, 1, NOVEMBER_S);
    await insert(store, 2, NOVEMBER_S, DECEMBER_S);
    const expected = [
      { key: 'key 1', month: 202311, passed: 1 },
      { key: 'key 2', month: 202311, passed: 1 },
      { key: 'key 2', month: 202312, passed: 1 },
    ];
    assert.deepEqual(await passed(store), expected, `sent again ${times} times`);
  }
  await store.close();

  store = await openStore({ path, createIfMissing: false });
  t.after(() => store.close());
  assert.deepEqual(store.lostBlocksOf, []);
});

test('the very first block of a table, too, and an intent', async (t) => {
  const path = join(makeTempDir(t), 'store');
  let store = await openStore({ path, createIfMissing: true });
  await store.begin(intentOf(1));
  await insert(store, 1, NOVEMBER_S);
  const lost = [await newestPart(store, 'key_minutes'), await newestPart(store, 'intents')];
  await store.close();
  for (const part of lost) rmSync(part, { recursive: true });

  store = await openStore({ path, createIfMissing: false });
  t.after(() => store.close());
  assert.deepEqual(store.lostBlocksOf, ['intents', 'key_minutes']);
  assert.equal(await store.pendingIntent('i'), undefined);
  await store.begin(intentOf(1));
  assert.equal((await store.pendingIntent('i'))?.sequence, 1);
  await insert(store, 1, NOVEMBER_S);
  assert.deepEqual(await passed(store), [{ key: 'key 1', month: 202311, passed: 1 }]);
});
