/**
 * The rows as the store takes them: types, times and sums come back as they went in.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROW_COLUMNS, type RowTable } from '../src/aggregate/rows.js';
import * as queries from '../src/store/queries.js';
import { openStore } from '../src/store/store.js';
import { aggregateTrace, rowsOf, sumBy } from './support/aggregate-trace.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

test('q_limit_conn, stored and asked for', async (t) => {
  const { rows } = aggregateTrace(traceDir('q_limit_conn'), {
    conf: join(traceDir('a_burst5_delay'), 'nginx.conf'),
  });
  const right = aggregateTrace(traceDir('q_limit_conn'));
  right.aggregator.lines('access.log', 1_796_023_865_327, 'access', '', 326);
  right.aggregator.unparsable('access.log', 17, 'status', 'a\u0000b');
  right.aggregator.flush();
  const all = [...right.rows, ...rows.filter(({ table }) => table === 'findings')];
  const store = await openStore({ path: join(makeTempDir(t), 'store'), createIfMissing: true });
  t.after(() => store.close());
  for (const table of Object.keys(ROW_COLUMNS) as RowTable[]) {
    const ofTable = all.filter((row) => row.table === table).map(({ row }) => row);
    await store.insertBlock({ table, columns: ROW_COLUMNS[table], rows: ofTable }, table);
  }
  const zones = await queries.zoneTotals(store);
  const totals = zones.map((row) => [row.kind, row.zone, row.outcome, row.requests]);
  assert.deepEqual(totals, [
    ['limit_conn', 'conns', 'passed', 154],
    ['limit_conn', 'conns', 'rejected', 102],
    ['limit_req', 'perkey', 'delayed', 209],
    ['limit_req', 'perkey', 'passed', 47],
    ['limit_req', 'perkey', 'rejected', 70],
  ]);
  const outcomes = rowsOf(right.rows, 'zone_outcomes');
  const delayed = zones.find(({ outcome }) => outcome === 'delayed')!;
  const ofDelayed = outcomes.filter(({ outcome }) => outcome === 'delayed');
  assert.equal(delayed.delayMsSum, sumBy(ofDelayed, 'delay_ms_sum')['']);
  assert.equal(delayed.nearLimit, sumBy(ofDelayed, 'near_limit')['']);
  assert.equal(
    delayed.excessMaxMilli,
    Math.max(...ofDelayed.map((row) => Number(row['excess_max_milli']))),
  );
  const sources = await queries.sources429503(store);
  assert.deepEqual(
    sources.map((row) => [row.status, row.source, row.limitReqStatus, row.requests]),
    [
      [503, 'limit_conn', 'DELAYED', 97],
      [429, 'limit_req', 'REJECTED', 70],
      [503, 'limit_conn', 'PASSED', 5],
    ],
  );
  const [limits] = await queries.limits(store);
  assert.equal(limits!.sinceMs, right.aggregator.summary().firstMs);
  assert.equal(limits!.capacityNodes, 8095);
  const [state] = await queries.zoneStateLatest(store);
  assert.equal(state!.nodes, rowsOf(right.rows, 'zone_state').at(-1)!['nodes']);
  const examples = await queries.examples(store, 1000);
  const times = rowsOf(right.rows, 'examples').map((row) => Number(row['time']));
  assert.deepEqual(
    examples.map(({ timeMs }) => timeMs),
    times.toSorted((a, b) => b - a),
  );
  assert.equal((await queries.lineTotals(store))[0]!.lines, 326);
  assert.equal((await queries.unparsableSamples(store, 1))[0]!.raw, 'a\u0000b');
  const found = await queries.findings(store);
  assert.ok(found.length > 0);
  assert.equal(found.length, new Set(rowsOf(rows, 'findings').map((row) => row['since'])).size);
  assert.ok(found.every(({ sinceMs, untilMs }) => sinceMs > 1.79e12 && untilMs >= sinceMs));
  const keys = await queries.topKeys(store, 'perkey', 100);
  assert.equal(
    keys.reduce((sum, { rejected }) => sum + rejected, 0),
    70,
  );
});
