/**
 * The rows of every capture add up to what its own logs and nginx's debug log say.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columnsOf, DATA_TABLES } from '../src/store/tables.js';
import { ROW_COLUMNS, type RowTable } from '../src/aggregate/rows.js';
import { aggregateTrace, rowsOf, sumBy, type Row } from './support/aggregate-trace.js';
import {
  accessById,
  readAccessJson,
  readTruth,
  traceDir,
  TRACES,
  type TraceName,
} from './support/truth.js';

const REJECTIONS = ['rejected', 'rejected_dry_run', 'exhausted', 'exhausted_dry_run'];
const ASKED = ['passed', 'delayed', 'delayed_dry_run', ...REJECTIONS];
const EXCESS_COLUMNS = ['excess_low_max_milli', 'excess_max_milli', 'excess_high_max_milli'];
/** Captures with one limit in every limited location. */
const SINGLE = TRACES.filter(
  (name) => !['e_two_zones', 'm_http2', 'o_keys_map_geo'].includes(name),
);

const replayed = new Map<TraceName, ReturnType<typeof aggregateTrace>>();

/** A capture's aggregates with every key kept, replayed once. */
function rowsOfTrace(name: TraceName) {
  let result = replayed.get(name);
  if (result === undefined) {
    result = aggregateTrace(traceDir(name), { keysPerMinute: 1e6 });
    replayed.set(name, result);
  }
  return result;
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) counts[keyOf(item)] = (counts[keyOf(item)] ?? 0) + 1;
  return counts;
}

function total(sums: Readonly<Record<string, number>>, words: readonly string[]): number {
  return words.reduce((sum, word) => sum + (sums[word] ?? 0), 0);
}

test('the columns of every row are those of the store, in its order', () => {
  const stored = Object.fromEntries(
    (Object.keys(DATA_TABLES) as RowTable[]).map((table) => [table, columnsOf(table)]),
  );
  assert.deepEqual(ROW_COLUMNS, stored);
});

for (const name of TRACES) {
  test(`${name}: responses are the lines of the access log`, () => {
    const log = readAccessJson(traceDir(name));
    const responses = rowsOf(rowsOfTrace(name).rows, 'responses');
    assert.deepEqual(
      sumBy(responses, 'requests', 'limit_req_status', 'status'),
      countBy(log, (line) => `${line.limitReqStatus} ${line.status}`),
    );
    const refused = log.filter(({ status }) => status === 429 || status === 503);
    const attributed = responses.filter(({ status }) => status === 429 || status === 503);
    assert.equal(attributed.filter(({ source }) => source === 'unknown').length, 0);
    assert.equal(attributed.filter(({ source }) => source === '').length, 0);
    assert.equal(sumBy(attributed, 'requests')[''], refused.length || undefined);
  });

  test(`${name}: every rejected request was rejected by one limit`, () => {
    const log = readAccessJson(traceDir(name));
    const outcomes = rowsOf(rowsOfTrace(name).rows, 'zone_outcomes');
    const ofKind = (kind: string) => outcomes.filter((row) => row['kind'] === kind);
    const req = sumBy(ofKind('limit_req'), 'requests', 'outcome');
    const logged = countBy(log, (line) => line.limitReqStatus);
    assert.equal(total(req, ['rejected', 'exhausted']), logged['REJECTED'] ?? 0);
    assert.equal(
      total(req, ['rejected_dry_run', 'exhausted_dry_run']),
      logged['REJECTED_DRY_RUN'] ?? 0,
    );
    assert.ok((req['delayed'] ?? 0) >= (logged['DELAYED'] ?? 0));
    assert.ok((req['delayed_dry_run'] ?? 0) >= (logged['DELAYED_DRY_RUN'] ?? 0));
    const conn = sumBy(ofKind('limit_conn'), 'requests', 'outcome');
    const loggedConn = countBy(log, (line) => line.limitConnStatus);
    assert.equal(conn['passed'] ?? 0, loggedConn['PASSED'] ?? 0);
    assert.equal(conn['rejected'] ?? 0, loggedConn['REJECTED'] ?? 0);
  });

  test(`${name}: limits were asked as often as the debug log says`, () => {
    const lookups = readTruth(traceDir(name)).flatMap(({ zones }) => zones);
    const outcomes = rowsOf(rowsOfTrace(name).rows, 'zone_outcomes');
    const req = sumBy(
      outcomes.filter(({ kind }) => kind === 'limit_req'),
      'requests',
      'outcome',
    );
    assert.equal(total(req, ASKED), lookups.length);
  });

  test(`${name}: histogram, keys and agreement count what the outcomes count`, () => {
    const { rows } = rowsOfTrace(name);
    const outcomes = rowsOf(rows, 'zone_outcomes').filter(({ kind }) => kind === 'limit_req');
    const asked = outcomes.filter(({ outcome }) => ASKED.includes(String(outcome)));
    const measured = asked.filter(({ outcome }) => !String(outcome).startsWith('exhausted'));
    assert.deepEqual(
      sumBy(rowsOf(rows, 'excess_histogram'), 'requests', 'zone'),
      sumBy(measured, 'requests', 'zone'),
    );
    const keys = rowsOf(rows, 'key_minutes');
    for (const word of ['passed', 'delayed', 'rejected', 'delayed_dry_run', 'rejected_dry_run']) {
      const sums = sumBy(keys, word, 'zone');
      const ofWord = outcomes.filter(({ outcome }) => outcome === word);
      for (const [zone, n] of Object.entries(sumBy(ofWord, 'requests', 'zone'))) {
        assert.equal(sums[zone], n, `${zone} ${word}`);
      }
    }
    const classes = rowsOf(rows, 'agreement');
    const disjoint = classes.filter((row) => row['class'] !== 'explained');
    assert.deepEqual(sumBy(disjoint, 'requests', 'zone'), sumBy(asked, 'requests', 'zone'));
    const explained = sumBy(classes, 'requests', 'class')['explained'] ?? 0;
    assert.ok(explained >= 0.995 * total(sumBy(asked, 'requests'), ['']), `${explained}`);
  });

  test(`${name}: a key's largest excess of a minute lies within its bounds`, () => {
    const keys = rowsOf(rowsOfTrace(name).rows, 'key_minutes');
    let narrow = 0;
    for (const row of keys) {
      const [low, excess, high] = EXCESS_COLUMNS.map((column) => Number(row[column]));
      assert.ok(low! <= excess! && excess! <= high!, JSON.stringify(row));
      if (high! - low! < 1000) narrow++;
    }
    assert.ok(narrow > 0.5 * keys.length, `${narrow} of ${keys.length}`);
  });

  test(`${name}: rows are whole, in order of time, and the same the second time`, () => {
    const { rows } = rowsOfTrace(name);
    for (const { table, row } of rows) {
      assert.equal(row.length, ROW_COLUMNS[table].length, table);
      const isWhole = row.every((v) => typeof v === 'string' || Number.isSafeInteger(v));
      assert.ok(isWhole, `${table}: ${JSON.stringify(row)}`);
      const numbers = row.filter((value) => typeof value === 'number');
      assert.ok(numbers.every((value) => value >= 0));
    }
    for (const table of ['zone_outcomes', 'responses', 'zone_state', 'agreement'] as const) {
      const buckets = rowsOf(rows, table).map(({ bucket }) => Number(bucket));
      assert.deepEqual(
        buckets,
        [...buckets].sort((a, b) => a - b),
      );
      assert.deepEqual(keysTwice(rows, table), []);
    }
    assert.deepEqual(aggregateTrace(traceDir(name), { keysPerMinute: 1e6 }).rows, rows);
  });
}

/** Keys of a table that two of its rows share: the column before `requests` and all others. */
function keysTwice(rows: readonly Row[], table: RowTable): string[] {
  const sums = ['requests', 'near_limit', 'excess_sum_milli', 'excess_max_milli', 'delay_ms_sum'];
  const names = ROW_COLUMNS[table].filter((column) => !sums.includes(column));
  const ofTable = rowsOf(rows, table);
  const keys = ofTable.map((row) => names.map((column) => String(row[column])).join('|'));
  return keys.filter((key, i) => keys.indexOf(key) !== i);
}

for (const name of SINGLE) {
  test(`${name}: the sum of all excess is nginx's own, within a few requests`, () => {
    const lookups = readTruth(traceDir(name)).flatMap(({ zones }) => zones);
    const nginx = lookups.reduce((sum, { rc, excessMilliReq }) => {
      return rc === 'ERROR' ? sum : sum + excessMilliReq;
    }, 0);
    const ours = sumBy(rowsOf(rowsOfTrace(name).rows, 'zone_outcomes'), 'excess_sum_milli')['']!;
    const perRequest = Math.abs(ours - nginx) / lookups.length;
    assert.ok(perRequest <= 20, `${perRequest} milliReq per request`);
    const largest = Math.max(
      ...rowsOf(rowsOfTrace(name).rows, 'zone_outcomes').map((row) =>
        Number(row['excess_max_milli']),
      ),
    );
    assert.ok(Math.abs(largest - Math.max(...lookups.map((z) => z.excessMilliReq))) <= 1000);
  });
}

/** By minute and key, what nginx's debug log has as the largest excess. */
function largestExcess(name: TraceName): Map<string, number> {
  const lines = accessById(traceDir(name));
  const largest = new Map<string, number>();
  for (const { zones, requestId, decisionWallMs } of readTruth(traceDir(name))) {
    const [zone] = zones;
    const line = lines.get(requestId);
    if (zone === undefined || zone.rc === 'ERROR' || line === undefined) continue;
    if (decisionWallMs === null) continue;
    const key = `${Math.floor(decisionWallMs / 60_000) * 60} ${line.key}`;
    largest.set(key, Math.max(largest.get(key) ?? 0, zone.excessMilliReq));
  }
  return largest;
}

/** How many of nginx's largest excesses lie outside the bounds that the rows give. */
function outside(name: TraceName, rows: readonly Row[]): { keys: number; outside: number } {
  const bounds = new Map<string, { low: number; high: number }>();
  for (const row of rowsOf(rows, 'key_minutes')) {
    const key = `${String(row['minute'])} ${String(row['key'])}`;
    const { low, high } = bounds.get(key) ?? { low: 0, high: 0 };
    bounds.set(key, {
      low: Math.max(low, Number(row['excess_low_max_milli'])),
      high: Math.max(high, Number(row['excess_high_max_milli'])),
    });
  }
  const compared = [...largestExcess(name)].filter(([key]) => bounds.has(key));
  const off = compared.filter(([key, excess]) => {
    const { low, high } = bounds.get(key)!;
    return excess < low || excess > high;
  });
  return { keys: compared.length, outside: off.length };
}

for (const name of SINGLE) {
  test(`${name}: a key's largest excess in nginx lies within its bounds`, () => {
    const withErrors = outside(name, rowsOfTrace(name).rows);
    assert.ok(withErrors.keys > 0);
    assert.equal(withErrors.outside, 0);
    // The error log tells of the reload.
    if (name === 'p_reload') return;
    const options = { keysPerMinute: 1e6, hasErrorLog: false };
    const without = outside(name, aggregateTrace(traceDir(name), options).rows);
    assert.ok(without.outside <= 0.005 * without.keys, JSON.stringify(without));
  });
}

test('a_burst5_delay: the delays are those that the arithmetic of the debug log gives', () => {
  const truth = readTruth(traceDir('a_burst5_delay'));
  const nginx = truth
    .filter(({ limitReqStatus }) => limitReqStatus === 'DELAYED')
    .reduce((sum, { zones }) => sum + Math.trunc((zones[0]!.excessMilliReq * 1000) / 5000), 0);
  const outcomes = rowsOf(rowsOfTrace('a_burst5_delay').rows, 'zone_outcomes');
  const delays = sumBy(outcomes, 'delay_ms_sum', 'outcome');
  assert.equal(delays['delayed'], nginx);
  assert.equal(delays['rejected'], 0);
});

test('b_burst5_nodelay: near the limit are those let through at four fifths of the burst', () => {
  const near = readTruth(traceDir('b_burst5_nodelay')).filter(
    ({ zones }) => zones[0]!.rc !== 'BUSY' && zones[0]!.excessMilliReq >= 4000,
  );
  const outcomes = rowsOf(rowsOfTrace('b_burst5_nodelay').rows, 'zone_outcomes');
  const nearby = sumBy(outcomes, 'near_limit', 'outcome');
  assert.ok(near.length > 20);
  assert.ok(Math.abs(nearby['passed']! - near.length) <= 3, `${nearby['passed']} ${near.length}`);
  assert.equal(nearby['rejected'], 0);
});

test('k_starvation: the state of a full zone, and all it forgot', () => {
  const { rows, session } = rowsOfTrace('k_starvation');
  const states = rowsOf(rows, 'zone_state');
  assert.ok(states.every((row) => row['capacity_nodes'] === 191 && Number(row['nodes']) <= 191));
  assert.equal(states.at(-1)!['nodes'], 191);
  const { counts } = session.generations.zones[0]!;
  assert.equal(sumBy(states, 'evictions')[''], counts.evictions);
  assert.equal(sumBy(states, 'keys_created')[''], counts.nodesCreated);
  assert.equal(sumBy(states, 'admitted_by_eviction')[''], counts.admittedByEviction);
  assert.ok(counts.evictions > 600);
});

for (const name of ['g_mixed_2workers', 'k_starvation'] as const) {
  test(`${name}: distinct keys of each minute are those that the replay decided in it`, () => {
    const { rows } = aggregateTrace(traceDir(name), { keysPerMinute: 3 });
    const all = rowsOf(rowsOfTrace(name).rows, 'key_minutes');
    const expected = countBy(all, ({ minute }) => String(minute));
    const minutes = rowsOf(rows, 'zone_state').map((row) => ({
      ...row,
      minute: Math.floor(Number(row['bucket']) / 60) * 60,
    }));
    assert.deepEqual(sumBy(minutes, 'new_keys_in_minute', 'minute'), expected);
    for (const [minute, keys] of Object.entries(expected)) {
      const own = minutes.filter((row) => String(row.minute) === minute);
      const most = own.map((row) => Number((row as Record<string, unknown>)['keys_in_minute']));
      assert.equal(Math.max(...most), keys);
    }
    const stored = rowsOf(rows, 'key_minutes').length;
    assert.ok(stored < all.length, `${stored} of ${all.length} keys are in rows`);
  });
}

test('l_mixed_keys: every allocation failure of the error log is an exhausted zone', () => {
  const { rows } = rowsOfTrace('l_mixed_keys');
  const outcomes = sumBy(rowsOf(rows, 'zone_outcomes'), 'requests', 'outcome');
  assert.equal(outcomes['exhausted'], 92);
  assert.equal(sumBy(rowsOf(rows, 'key_minutes'), 'exhausted')[''], 92);
  const sources = sumBy(rowsOf(rows, 'responses'), 'requests', 'source');
  assert.equal(sources['limit_req_zone_exhausted'], 92);
});

test('m_http2: a limit behind the one that rejected was not reached', () => {
  const outcomes = rowsOf(rowsOfTrace('m_http2').rows, 'zone_outcomes');
  const sums = sumBy(outcomes, 'requests', 'zone', 'outcome');
  assert.equal(sums['perkey rejected'], 120);
  assert.equal(sums['perserver not_reached'], 120);
});

test('o_keys_map_geo: the empty key of a whitelisted address skips its zone', () => {
  const whitelisted = /^(?:203\.0\.113\.[0-3]|198\.51\.100\.7)$/;
  // /static/ and /api/ ask perapi alone, but for /api/own/, which asks it before perip, and *.php.
  const asked = readAccessJson(traceDir('o_keys_map_geo')).filter((line) => {
    const { uri, remoteAddr, limitReqStatus } = line;
    if (!whitelisted.test(remoteAddr) || uri.startsWith('/static/')) return false;
    if (uri.startsWith('/api/own/')) return limitReqStatus !== 'REJECTED';
    return !uri.startsWith('/api/') || uri.endsWith('.php');
  });
  const outcomes = rowsOf(rowsOfTrace('o_keys_map_geo').rows, 'zone_outcomes');
  const sums = sumBy(outcomes, 'requests', 'zone', 'outcome');
  assert.ok(asked.length > 100);
  assert.equal(sums['perip skipped'], asked.length);
});

test('p_reload: each configuration has its limits, in force from its reload on', () => {
  const limits = rowsOf(rowsOfTrace('p_reload').rows, 'limits');
  const brief = limits.map((row) => {
    const rules = JSON.parse(String(row['rules'])) as { burst: number; where: string }[];
    return [row['size_bytes'], row['rate_milli_rps'], row['capacity_nodes'], rules[0]!.burst];
  });
  assert.deepEqual(brief, [
    [1 << 20, 5000, 8095, 4],
    [1 << 20, 12000, 8095, 10],
    [2 << 20, 12000, 16223, 10],
  ]);
  const since = limits.map((row) => Number(row['since']));
  assert.ok(since[0]! < since[1]! && since[1]! < since[2]!, String(since));
  const marks = rowsOf(rowsOfTrace('p_reload').rows, 'marks').map(({ mark }) => mark);
  assert.equal(marks.filter((mark) => mark === 'reload').length, 2);
});

test('the summary is the sum of the rows', () => {
  const { rows, aggregator } = rowsOfTrace('q_limit_conn');
  const summary = aggregator.summary();
  assert.equal(summary.requests, 326);
  assert.deepEqual(
    { ...summary.byLimitReqStatus },
    sumBy(rowsOf(rows, 'responses'), 'requests', 'limit_req_status'),
  );
  assert.deepEqual(summary.bySource, { limit_req: 70, limit_conn: 102 });
  assert.equal(summary.compared, 326);
  assert.equal(summary.agreement.explained, 326);
  const zones = summary.zones.map(({ kind, zone }) => `${kind} ${zone}`);
  assert.deepEqual(zones.sort(), ['limit_conn conns', 'limit_req perkey']);
  assert.ok(summary.firstMs! < summary.lastMs!);
});
