/**
 * A store that the previous version of the schema made: opened, brought up to date, and asked. What
 * its rows do not have is not known, which is not zero.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { DASHBOARDS } from '../dashboards/catalogue/dashboards.js';
import { ALL, expand } from '../dashboards/expand.js';
import { readZoneInputs } from '../src/analysis/zone-inputs.js';
import { analyseZones } from '../src/analysis/zones.js';
import { zonesText } from '../src/analysis/zones-text.js';
import { InputError } from '../src/errors.js';
import { DEFAULT_RETENTION } from '../src/store/ddl.js';
import { openEmbedded } from '../src/store/embedded.js';
import { Engine } from '../src/store/engine.js';
import { migrate, MIGRATIONS } from '../src/store/migrations.js';
import { DEFAULT_RETRY } from '../src/store/retry.js';
import { openStore, type Store } from '../src/store/store.js';
import { columnsOf, TABLES, type TableName } from '../src/store/tables.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';

const T0_S = 1_700_000_040;
const OLD_ROWS: Readonly<Partial<Record<TableName, unknown[][]>>> = {
  key_minutes: ['a', 'b'].map((key) => ['edge', 'rz', key, T0_S, 5, 1, 1, 0, 0, 0, 900]),
  zone_state: [['edge', 'rz', T0_S, 100, 191, 1, 0, 0, 0, 1]],
};
const NEW_ROWS: Readonly<Partial<Record<TableName, unknown[][]>>> = {
  key_minutes: [['edge', 'rz', 'a', T0_S + 60, 5, 1, 1, 0, 0, 0, 700, 650, 800]],
  zone_state: [['edge', 'rz', T0_S + 60, 100, 191, 1, 0, 0, 0, 1, 70, 70]],
};

/** @returns the folder of a store as version 1 left it */
async function oldStore(t: Cleanup): Promise<string> {
  const path = join(makeTempDir(t), 'store');
  const parts = await openEmbedded(path, 'limitlens', true);
  const engine = await Engine.over({
    ...parts,
    ...{ isEmbedded: true, isCluster: false, retryPolicy: DEFAULT_RETRY },
  });
  const target = { database: 'limitlens' };
  await migrate(engine, undefined, target, DEFAULT_RETENTION, MIGRATIONS.slice(0, 1));
  for (const [table, rows] of Object.entries(OLD_ROWS)) {
    const columns = TABLES[table as TableName].columns.map(([name]) => name);
    await engine.insert(table, columns, rows, table);
  }
  await engine.close();
  return path;
}

async function insert(store: Store): Promise<void> {
  for (const [name, rows] of Object.entries(NEW_ROWS)) {
    const table = name as TableName;
    await store.insertBlock({ table, columns: columnsOf(table), rows }, `new ${name}`);
  }
}

function excessOf(store: Store): Promise<Record<string, unknown>[]> {
  const panels = DASHBOARDS.flatMap((dashboard) => dashboard.panels);
  const { sql } = panels.find(({ id }) => id === 'keys-one-excess')!;
  const range = { fromMs: T0_S * 1000, toMs: (T0_S + 120) * 1000, intervalMs: 60_000 };
  return store.query(expand(sql, range, { instance: ALL, zone: ALL, key: 'a' }));
}

test('a store of version 1 is brought up to date when it is opened to be written', async (t) => {
  const path = await oldStore(t);
  await assert.rejects(openStore({ path, createIfMissing: false, readOnly: true }), (error) => {
    assert.ok(error instanceof InputError);
    return /found version 1\n {2}The next `limitlens import`/.test(error.message);
  });
  const store = await openStore({ path, createIfMissing: false });
  t.after(() => store.close());

  const [old] = analyseZones(await readZoneInputs(store, {}), null);
  assert.deepEqual(old!.keysPerMinute, { mean: 2, max: 2, atMost: null, isExact: false });
  assert.deepEqual(old!.keys, []);
  assert.match(zonesText([old!]), /^edge: rz .* ≥ 2 \(2\)$/m);
  assert.match(
    zonesText([old!]),
    /Older rows tell of the limited and the most frequent keys alone/,
  );

  await insert(store);
  const [mixed] = analyseZones(await readZoneInputs(store, {}), null);
  assert.deepEqual(mixed!.keysPerMinute, { mean: 36, max: 70, atMost: null, isExact: false });
  assert.deepEqual(mixed!.keys, [{ timeMs: (T0_S + 60) * 1000, keys: 70, keysMost: 70 }]);
  const excess = await excessOf(store);
  assert.deepEqual(
    excess.map((row) => [row['excess'], row['at least'], row['at most']]),
    [
      [0.9, null, null],
      [0.7, 0.65, 0.8],
    ],
  );
  const since = { sinceMs: (T0_S + 60) * 1000 };
  const [newer] = analyseZones(await readZoneInputs(store, since), null);
  const number = { mean: 70, max: 70 };
  assert.deepEqual(newer!.keysPerMinute, { ...number, atMost: number, isExact: true });
});
