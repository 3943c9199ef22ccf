/**
 * The named queries against rows whose sums are known, on the embedded engine and a server.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as queries from '../src/store/queries.js';
import * as analysis from '../src/store/queries-analysis.js';
import type { Store } from '../src/store/store.js';
import { columnsOf, type TableName } from '../src/store/tables.js';
import { STORE_KINDS } from './support/store-kinds.js';

const T0_S = 1_700_000_040; // on a minute
const T0_MS = T0_S * 1000;

const ROWS: Readonly<Record<TableName, readonly (readonly unknown[])[]>> = {
  zone_outcomes: [
    ['edge', 'rz', 'limit_req', 'a.example', '/', T0_S, 'passed', 10, 3, 5000, 900, 0],
    ['edge', 'rz', 'limit_req', 'a.example', '/', T0_S, 'passed', 1, 1, 1000, 1000, 0],
    ['edge', 'rz', 'limit_req', 'b.example', '/x', T0_S + 10, 'passed', 2, 0, 0, 0, 0],
    ['edge', 'rz', 'limit_req', 'a.example', '/', T0_S, 'delayed', 4, 0, 9000, 2500, 1200],
    ['edge', 'cz', 'limit_conn', 'a.example', '/', T0_S, 'rejected', 7, 0, 0, 0, 0],
    ['core', 'rz', 'limit_req', 'a.example', '/', T0_S, 'passed', 100, 0, 0, 0, 0],
  ],
  responses: [
    ['edge', 'a.example', '/', T0_S, 200, '', 'PASSED', 50],
    ['edge', 'a.example', '/', T0_S, 503, 'limit_req', 'REJECTED', 6],
    ['edge', 'a.example', '/', T0_S + 20, 503, 'limit_req', 'REJECTED', 3],
    ['edge', 'a.example', '/', T0_S, 503, 'upstream', 'PASSED', 8],
    ['edge', 'a.example', '/', T0_S, 200, 'limit_req', 'REJECTED', 1],
    ['core', 'c.example', '', T0_S + 100, 429, 'nginx', '', 2],
  ],
  excess_histogram: [
    ['edge', 'rz', T0_S, 0, 5],
    ['edge', 'rz', T0_S, 21, 1],
    ['edge', 'rz', T0_S + 60, 21, 2],
  ],
  key_minutes: [
    ['edge', 'rz', '192.0.2.1', T0_S, 5, 1, 2, 0, 0, 0, 3000, 2980, 3030],
    ['edge', 'rz', '192.0.2.1', T0_S + 60, 5, 1, 2, 0, 0, 0, 7000, 6980, 7030],
    ['edge', 'rz', '192.0.2.2', T0_S, 1, 0, 3, 0, 0, 0, 100, 80, 130],
    ['edge', 'rz', '192.0.2.3', T0_S, 9, 2, 0, 0, 0, 0, 50, 30, 80],
    ['edge', 'rz', '192.0.2.4', T0_S, 0, 0, 0, 1, 5, 1, 20, 0, 50],
    ['edge', 'other', '192.0.2.9', T0_S, 0, 0, 99, 0, 0, 0, 1, 0, 31],
  ],
  zone_state: [
    ['edge', 'rz', T0_S, 100, 191, 3, 1, 1, 0, 103, 100, 100],
    ['edge', 'rz', T0_S, 120, 191, 2, 0, 0, 0, 22, 130, 30],
    ['edge', 'rz', T0_S + 10, 90, 191, 0, 0, 0, 4, 0, 150, 20],
  ],
  agreement: [
    ['edge', 'rz', T0_S, 'agree', 90],
    ['edge', 'rz', T0_S, 'explained', 9],
    ['edge', 'rz', T0_S + 60, 'agree', 10],
  ],
  line_counts: [
    ['edge', 'access.log', T0_S, 'access', '', 70],
    ['edge', 'access.log', T0_S, 'unparsable', 'not the format', 2],
    ['edge', 'access.log', T0_S + 10, 'access', '', 5],
  ],
  unparsable_samples: [
    ['edge', 'access.log', 900, 'not the format', 'late'],
    ['edge', 'access.log', 30, 'not the format', 'early'],
    ['core', 'access.log', 1, 'binary', 'core'],
  ],
  examples: [
    ...[
      ['edge', 'a.example', '/', 503, 'limit_req', T0_MS + 5, 'GET', '/a', 'rz', '192.0.2.1', 6000],
      ['edge', 'a.example', '/', 503, 'upstream', T0_MS + 9, 'POST', '/b', '', '', 0],
    ],
  ],
  findings: [
    ['edge', 'one-key', 'rz', 'first words', T0_MS, T0_MS + 1000, '{}'],
    ['edge', 'one-key', 'rz', 'last words', T0_MS, T0_MS + 60_000, '{"n":1}'],
  ],
  marks: [
    ['edge', T0_MS + 1, 'reload', ''],
    ['edge', T0_MS, 'import', 'access.log'],
  ],
  limits: [
    ['edge', 'rz', T0_MS, '$binary_remote_addr', 32_768, 10_000, 191, '[]'],
    ['edge', 'rz', T0_MS, '$binary_remote_addr', 32_768, 5000, 191, '[1]'],
    ['edge', 'rz', T0_MS + 5, '$binary_remote_addr', 65_536, 5000, 447, '[]'],
  ],
};

async function fill(store: Store): Promise<void> {
  for (const [name, rows] of Object.entries(ROWS)) {
    const table = name as TableName;
    // One row per block: what adds up must do so across blocks as well.
    for (const [n, row] of rows.entries()) {
      await store.insertBlock({ table, columns: columnsOf(table), rows: [row] }, `${name}/${n}`);
    }
  }
}

const EDGE = { instance: 'edge' } as const;
const FIRST_BUCKET = { ...EDGE, sinceMs: T0_MS + 3000, untilMs: T0_MS + 10_000 };

for (const kind of STORE_KINDS) {
  test(`${kind.name}: named queries`, async (t) => {
    const store = await (await kind.make(t)).open();
    t.after(() => store.close());
    await t.test('on an empty store give no rows', () => emptyStore(store));
    await fill(store);
    await t.test('zoneTotals', () => zoneTotals(store));
    await t.test('sources429503', () => sources429503(store));
    await t.test('topKeys', () => topKeys(store));
    await t.test('keysPerMinute', () => keysPerMinute(store));
    await t.test('zoneStateLatest', () => zoneStateLatest(store));
    await t.test('agreementByZone, lineTotals, excessHistogram', () => counts(store));
    await t.test('samples, findings, marks, limits', () => texts(store));
    await t.test('timeSpan and sources', () => spans(store));
  });
}

async function emptyStore(store: Store): Promise<void> {
  assert.deepEqual(await queries.zoneTotals(store), []);
  assert.deepEqual(await queries.sources429503(store, FIRST_BUCKET), []);
  assert.deepEqual(await queries.topKeys(store, 'rz', 5), []);
  assert.deepEqual(await queries.agreementByZone(store), []);
  assert.deepEqual(await queries.lineTotals(store), []);
  assert.deepEqual(await queries.unparsableSamples(store, 5), []);
  assert.deepEqual(await queries.findings(store, FIRST_BUCKET), []);
  assert.deepEqual(await queries.marks(store), []);
  assert.deepEqual(await queries.limits(store), []);
  assert.deepEqual(await queries.examples(store, 5), []);
  assert.deepEqual(await queries.zoneStateLatest(store), []);
  assert.deepEqual(await queries.excessHistogram(store), []);
  assert.deepEqual(await queries.timeSpan(store), []);
  assert.deepEqual(await queries.sources(store), []);
}

async function zoneTotals(store: Store): Promise<void> {
  const none = { nearLimit: 0, excessSumMilli: 0, excessMaxMilli: 0, delayMsSum: 0 };
  const conn = {
    ...{ instance: 'edge', zone: 'cz', kind: 'limit_conn', outcome: 'rejected', requests: 7 },
    ...none,
  };
  const delayed = {
    ...{ instance: 'edge', zone: 'rz', kind: 'limit_req', outcome: 'delayed', requests: 4 },
    ...{ nearLimit: 0, excessSumMilli: 9000, excessMaxMilli: 2500, delayMsSum: 1200 },
  };
  const passed = {
    ...{ instance: 'edge', zone: 'rz', kind: 'limit_req', outcome: 'passed', requests: 13 },
    ...{ nearLimit: 4, excessSumMilli: 6000, excessMaxMilli: 1000, delayMsSum: 0 },
  };
  assert.deepEqual(await queries.zoneTotals(store, EDGE), [conn, delayed, passed]);
  const inBucket = [conn, delayed, { ...passed, requests: 11 }];
  assert.deepEqual(await queries.zoneTotals(store, FIRST_BUCKET), inBucket);
  const core = { ...passed, instance: 'core', requests: 100, ...none };
  assert.deepEqual(await queries.zoneTotals(store), [core, conn, delayed, passed]);
  const later = { instance: 'edge', sinceMs: T0_MS + 20_000 };
  assert.deepEqual(await queries.zoneTotals(store, later), []);
}

async function sources429503(store: Store): Promise<void> {
  const place = { instance: 'edge', server: 'a.example', location: '/' };
  const limited = { ...place, status: 503, source: 'limit_req', limitReqStatus: 'REJECTED' };
  const hidden = { ...limited, status: 200, requests: 1 };
  const upstream = { ...limited, source: 'upstream', limitReqStatus: 'PASSED', requests: 8 };
  assert.deepEqual(await queries.sources429503(store, EDGE), [
    { ...limited, requests: 9 },
    upstream,
    hidden,
  ]);
  assert.deepEqual(await queries.sources429503(store, FIRST_BUCKET), [
    upstream,
    { ...limited, requests: 6 },
    hidden,
  ]);
}

async function topKeys(store: Store): Promise<void> {
  const top = await queries.topKeys(store, 'rz', 3);
  const all = { instance: 'edge', zone: 'rz' };
  const wet = { delayedDryRun: 0, rejectedDryRun: 0, exhausted: 0 };
  assert.deepEqual(top, [
    {
      ...{ ...all, key: '192.0.2.4', passed: 0, delayed: 0, rejected: 0, excessMaxMilli: 20 },
      ...{ delayedDryRun: 1, rejectedDryRun: 5, exhausted: 1 },
    },
    { ...all, ...wet, key: '192.0.2.1', passed: 10, delayed: 2, rejected: 4, excessMaxMilli: 7000 },
    { ...all, ...wet, key: '192.0.2.2', passed: 1, delayed: 0, rejected: 3, excessMaxMilli: 100 },
  ]);
  const firstMinute = { untilMs: T0_MS + 60_000 };
  const [, second] = await queries.topKeys(store, 'rz', 2, firstMinute);
  assert.equal(second?.key, '192.0.2.2');
}

async function zoneStateLatest(store: Store): Promise<void> {
  const state = {
    ...{ instance: 'edge', zone: 'rz', nodes: 90, nodesMax: 120, capacityNodes: 191 },
    ...{ timeMs: T0_MS + 10_000, evictions: 5, evictionsInDebt: 1, admittedByEviction: 1 },
    ...{ allocationFailures: 4, keysCreated: 125 },
  };
  assert.deepEqual(await queries.zoneStateLatest(store), [state]);
  assert.deepEqual(await queries.zoneStateLatest(store, FIRST_BUCKET), [
    { ...state, nodes: 120, timeMs: T0_MS, allocationFailures: 0 },
  ]);
}

async function keysPerMinute(store: Store): Promise<void> {
  const none = { keysMostMean: null, keysMostMax: null };
  const zone = { instance: 'edge', zone: 'rz' };
  const other = { instance: 'edge', zone: 'other', keysMean: 1, keysMax: 1, ...none };
  // Of the second minute no row of zone_state tells: it has the one key that key_minutes holds.
  assert.deepEqual(await analysis.keysPerMinute(store), [
    other,
    { ...zone, keysMean: 75.5, keysMax: 150, ...none },
  ]);
  const first = { sinceMs: T0_MS + 10_000, untilMs: T0_MS + 60_000 };
  assert.deepEqual(await analysis.keysPerMinute(store, first), [
    other,
    { ...zone, keysMean: 150, keysMax: 150, keysMostMean: 150, keysMostMax: 150 },
  ]);
  assert.deepEqual(await analysis.keyCountSteps(store, 10), [
    { ...zone, timeMs: T0_MS, keys: 150, keysMost: 150 },
  ]);
}

async function counts(store: Store): Promise<void> {
  const zone = { instance: 'edge', zone: 'rz' };
  assert.deepEqual(await queries.agreementByZone(store, EDGE), [
    { ...zone, class: 'agree', requests: 100 },
    { ...zone, class: 'explained', requests: 9 },
  ]);
  // A minute is in when any moment of it is asked for.
  const minute = { sinceMs: T0_MS + 30_000, untilMs: T0_MS + 60_000 };
  assert.deepEqual(await queries.agreementByZone(store, minute), [
    { ...zone, class: 'agree', requests: 90 },
    { ...zone, class: 'explained', requests: 9 },
  ]);
  const source = { instance: 'edge', source: 'access.log' };
  assert.deepEqual(await queries.lineTotals(store), [
    { ...source, kind: 'access', reason: '', lines: 75 },
    { ...source, kind: 'unparsable', reason: 'not the format', lines: 2 },
  ]);
  assert.deepEqual(await queries.excessHistogram(store), [
    { ...zone, fraction: 0, requests: 5 },
    { ...zone, fraction: 21, requests: 3 },
  ]);
}

async function texts(store: Store): Promise<void> {
  const samples = await queries.unparsableSamples(store, 1, EDGE);
  const sample = { instance: 'edge', source: 'access.log', offset: 30, raw: 'early' };
  assert.deepEqual(samples, [{ ...sample, reason: 'not the format' }]);
  assert.equal((await queries.unparsableSamples(store, 9)).length, 3);

  const finding = { instance: 'edge', code: 'one-key', subject: 'rz', message: 'last words' };
  const found = [{ ...finding, details: '{"n":1}', sinceMs: T0_MS, untilMs: T0_MS + 60_000 }];
  assert.deepEqual(await queries.findings(store), found);
  assert.deepEqual(await queries.findings(store, { sinceMs: T0_MS + 60_000 }), found);
  assert.deepEqual(await queries.findings(store, { sinceMs: T0_MS + 60_001 }), []);
  assert.deepEqual(await queries.findings(store, { untilMs: T0_MS }), []);

  assert.deepEqual(await queries.marks(store), [
    { instance: 'edge', timeMs: T0_MS, mark: 'import', details: 'access.log' },
    { instance: 'edge', timeMs: T0_MS + 1, mark: 'reload', details: '' },
  ]);
  const inForce = await queries.limits(store);
  assert.deepEqual(
    inForce.map((limit) => [limit.sinceMs - T0_MS, limit.rateMilliRps, limit.rules]),
    [
      [0, 5000, '[1]'],
      [5, 5000, '[]'],
    ],
  );
  assert.equal((await queries.limits(store, { untilMs: T0_MS + 5 })).length, 1);

  const [newest, ...older] = await queries.examples(store, 9, EDGE);
  assert.deepEqual(newest, {
    ...{ instance: 'edge', server: 'a.example', location: '/', status: 503, source: 'upstream' },
    ...{ timeMs: T0_MS + 9, requestMethod: 'POST', path: '/b', zone: '', key: '', excessMilli: 0 },
  });
  assert.equal(older.length, 1);
}

async function spans(store: Store): Promise<void> {
  assert.deepEqual(await queries.timeSpan(store), [
    { instance: 'core', fromMs: T0_MS + 100_000, toMs: T0_MS + 110_000, requests: 2 },
    { instance: 'edge', fromMs: T0_MS, toMs: T0_MS + 30_000, requests: 68 },
  ]);
  const progress = (name: string, offset: number) => ({
    ...{ sourceId: name, headHash: '', headLength: 0, tailHash: '', offset, lines: 3, name },
    ...{ firstMs: T0_MS, lastMs: T0_MS + 1, complete: name === 'b' },
  });
  for (const sequence of [1, 2]) {
    const intent = { instance: 'edge', sequence, ranges: [], startedBy: 'test' };
    await store.begin(intent);
    const sources = [progress('b', 10), progress('a', 100 * sequence)];
    await store.commit(intent, { ...intent, sources, state: '', logTimeMs: 0 });
  }
  const same = { instance: 'edge', lines: 3, firstMs: T0_MS, lastMs: T0_MS + 1 };
  assert.deepEqual(await queries.sources(store, EDGE), [
    { ...same, sourceId: 'a', name: 'a', offset: 200, complete: false },
    { ...same, sourceId: 'b', name: 'b', offset: 10, complete: true },
  ]);
}
