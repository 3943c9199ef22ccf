/**
 * What the aggregates find out by themselves, and what they make of half a log.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import {
  AGREEMENT,
  AGREEMENT_MEANINGS,
  AGREEMENT_WORDS,
} from '../src/aggregate/agreement-classes.js';
import { BurstFindings } from '../src/aggregate/burst-findings.js';
import { isPrivateAddress, RejectShares } from '../src/aggregate/reject-shares.js';
import type { LimitRow } from '../src/replay/limit-table.js';
import { aggregateTrace, rowsOf, sumBy } from './support/aggregate-trace.js';
import { makeTempDir } from './support/temp-dir.js';
import { readTruth, traceDir, type TraceName } from './support/truth.js';

/** A capture's configuration with some words of it changed. */
function changedConf(t: TestContext, name: TraceName, from: string, to: string): string {
  const text = readFileSync(join(traceDir(name), 'nginx.conf'), 'utf8');
  assert.ok(text.includes(from));
  const path = join(makeTempDir(t), 'nginx.conf');
  writeFileSync(path, text.replaceAll(from, to));
  return path;
}

function rowsInto(rows: (readonly unknown[])[]) {
  return { row: (_table: string, row: readonly unknown[]) => void rows.push(row) };
}

for (const wrong of [20, 2]) {
  test(`configuration says burst=${wrong}, the log says 5`, (t) => {
    const conf = changedConf(t, 'a_burst5_delay', 'burst=5', `burst=${wrong}`);
    const { rows } = aggregateTrace(traceDir('a_burst5_delay'), { conf });
    const findings = rowsOf(rows, 'findings');
    const messages = new Set(findings.map(({ message }) => message));
    assert.deepEqual([...messages], [`configuration says burst=${wrong}, the log says 5`]);
    const subjects = new Set(findings.map(({ code, subject }) => `${code}: ${subject}`));
    assert.deepEqual([...subjects], ['burst_differs: perkey a.example /']);
    const rejected = readTruth(traceDir('a_burst5_delay'))
      .filter(({ limitReqStatus }) => limitReqStatus === 'REJECTED')
      .map(({ decisionWallMs }) => decisionWallMs!);
    const last = findings.at(-1)!;
    assert.ok(Math.abs(Number(last['since']) - Math.min(...rejected)) <= 2);
    assert.ok(Math.abs(Number(last['until']) - Math.max(...rejected)) <= 2);
    assert.equal(
      (JSON.parse(String(last['details'])) as { rejects: number }).rejects,
      rejected.length,
    );
    const classes = sumBy(rowsOf(rows, 'agreement'), 'requests', 'class');
    assert.ok(classes['configuration_differs']! > 20, JSON.stringify(classes));
  });
}

test('the last configuration alone: the burst of the first shows, and until when', () => {
  const conf = join(traceDir('p_reload'), 'nginx.conf.3');
  const { rows } = aggregateTrace(traceDir('p_reload'), { conf });
  const findings = rowsOf(rows, 'findings');
  const messages = new Set(findings.map(({ message }) => message));
  assert.deepEqual([...messages], ['configuration says burst=10, the log says 4']);
  const reloadedMs = 1796023870298;
  assert.ok(Number(findings.at(-1)!['until']) <= reloadedMs + 10);
});

test('the right configuration has no findings', () => {
  for (const name of ['a_burst5_delay', 'e_two_zones', 'o_keys_map_geo', 'p_reload'] as const) {
    assert.deepEqual(rowsOf(aggregateTrace(traceDir(name)).rows, 'findings'), []);
  }
});

test('a zone that limits of several bursts share: only what no burst allows is a contradiction', () => {
  const limit = { burstMilliReq: 5000 } as LimitRow;
  const bursts = new BurstFindings();
  // Another limit, of burst 20, has filled the key's node up to 20.
  for (const excess of [5001, 6001, 20_500, 21_000]) bursts.note('z', limit, 20_000, excess, 1);
  assert.equal(bursts.snapshot().length, 0);
  for (let i = 0; i < 3; i++) bursts.note('z', limit, 20_000, 21_001, i);
  assert.equal(bursts.differs('z', limit), true);
  assert.equal(bursts.differs('z', { burstMilliReq: 6000 } as LimitRow), false);
});

test('two rejections that contradict the burst are no finding, three are one', () => {
  const limit = { burstMilliReq: 10_000 } as LimitRow;
  const rows: (readonly unknown[])[] = [];
  const bursts = new BurstFindings();
  bursts.note('z', limit, 10_000, 5001, 1);
  bursts.note('z', limit, 10_000, 6000, 2);
  bursts.emit(rowsInto(rows), 'x');
  assert.deepEqual(rows, []);
  bursts.note('z', limit, 10_000, 5500, 3);
  bursts.emit(rowsInto(rows), 'x');
  bursts.emit(rowsInto(rows), 'x');
  const message = 'configuration says burst=10, the log says 5';
  const details = '{"configured":10,"implied":5,"rejects":3}';
  assert.deepEqual(rows, [['x', 'burst_differs', 'z', message, 1, 3, details]]);
});

test('one private address that gets nearly all rejections is not a client', () => {
  const rows: (readonly unknown[])[] = [];
  const shares = new RejectShares();
  shares.note('z', '10.0.0.7', 45, 60_000);
  shares.emit(rowsInto(rows), 'x');
  assert.equal(rows.length, 0, 'too few');
  shares.note('z', '10.0.0.7', 46, 120_000);
  shares.note('z', '192.0.2.1', 9, 120_000);
  shares.emit(rowsInto(rows), 'x');
  const [, code, subject, message, since, until] = rows[0]!;
  assert.deepEqual([code, subject], ['single_private_key', 'z 10.0.0.7']);
  assert.match(String(message), /^91 % of the rejections of zone z are of 10\.0\.0\.7, .*real_ip/);
  assert.deepEqual([since, until], [60_000, 120_000]);
  rows.length = 0;
  shares.note('z', '192.0.2.2', 2, 180_000);
  shares.emit(rowsInto(rows), 'x');
  assert.equal(rows.length, 0, 'no longer more than nine in ten');
});

test('a public address, or one among many, is no finding', () => {
  const rows: (readonly unknown[])[] = [];
  const shares = new RejectShares();
  shares.note('public', '192.0.2.1', 500, 0);
  for (let i = 0; i < 5000; i++) shares.note('many', `10.0.${i >> 8}.${i & 255}`, 1, 0);
  shares.emit(rowsInto(rows), 'x');
  assert.deepEqual(rows, []);
  assert.ok(shares.snapshot().every(({ keys }) => keys.length <= 64));
});

test('an address that comes late among many still has its own count only', () => {
  const rows: (readonly unknown[])[] = [];
  const shares = new RejectShares();
  for (let i = 0; i < 640; i++) shares.note('z', `192.0.2.${i}`, 10, 0);
  shares.note('z', '127.0.0.1', 5700, 0);
  shares.emit(rowsInto(rows), 'x');
  assert.deepEqual(rows, []);
});

const addresses: readonly (readonly [string, boolean])[] = [
  ['127.0.0.1', true],
  ['10.255.0.1', true],
  ['172.16.0.1', true],
  ['172.31.255.1', true],
  ['192.168.1.1', true],
  ['169.254.1.1', true],
  ['::1', true],
  ['fd00::1', true],
  ['fe80::1', true],
  ['unix:', true],
  ['172.32.0.1', false],
  ['192.0.2.1', false],
  ['2001:db8::1', false],
  ['10.0.0.1/login', false],
  ['fdic', false],
  ['', false],
];
for (const [text, isPrivate] of addresses) {
  test(`${JSON.stringify(text)} is ${isPrivate ? 'a' : 'no'} private address`, () => {
    assert.equal(isPrivateAddress(text), isPrivate);
  });
}

test('every class of agreement has a word, a number and a meaning', () => {
  assert.deepEqual(Object.keys(AGREEMENT), [...AGREEMENT_WORDS]);
  assert.deepEqual(Object.values(AGREEMENT), [...AGREEMENT_WORDS.keys()]);
  assert.deepEqual(Object.keys(AGREEMENT_MEANINGS), [...AGREEMENT_WORDS]);
});

test('the error log alone: what its lines say, and what their limit shows', (t) => {
  const conf = changedConf(t, 'a_burst5_delay', 'burst=5', 'burst=20');
  const { rows, aggregator } = aggregateTrace(traceDir('a_burst5_delay'), { conf, log: null });
  const outcomes = rowsOf(rows, 'zone_outcomes');
  assert.deepEqual(sumBy(outcomes, 'requests', 'zone', 'server', 'location', 'outcome'), {
    'perkey a.example  delayed': 120,
    'perkey a.example  rejected': 65,
  });
  assert.ok(sumBy(outcomes, 'delay_ms_sum', 'outcome')['delayed']! > 10_000);
  assert.deepEqual(rowsOf(rows, 'responses'), []);
  const [finding, ...others] = rowsOf(rows, 'findings');
  assert.deepEqual(others, []);
  assert.equal(finding!['subject'], 'perkey a.example');
  assert.equal(finding!['message'], 'configuration says burst=20, the log says 5');
  assert.equal(rowsOf(rows, 'limits').length, 1);
  assert.equal(aggregator.summary().unmatchedLines, 185);
});

test('lines that stand for their requests: another burst is a difference of configuration', (t) => {
  const conf = changedConf(t, 'a_burst5_delay', 'burst=5', 'burst=20');
  const { rows } = aggregateTrace(traceDir('a_burst5_delay'), {
    conf,
    log: null,
    isErrorLogAlone: true,
  });
  const outcomes = rowsOf(rows, 'zone_outcomes');
  assert.deepEqual(sumBy(outcomes, 'requests', 'zone', 'location', 'outcome'), {
    'perkey / delayed': 120,
    'perkey / rejected': 65,
  });
  const { explained, ...disjoint } = sumBy(rowsOf(rows, 'agreement'), 'requests', 'class');
  assert.deepEqual(disjoint, { agree: 120, configuration_differs: 65 });
  assert.equal(explained, 120);
  const [finding] = rowsOf(rows, 'findings');
  assert.equal(finding!['message'], 'configuration says burst=20, the log says 5');
});

test('limit_conn lines alone count for their zone', () => {
  const { rows } = aggregateTrace(traceDir('q_limit_conn'), { log: null });
  const outcomes = rowsOf(rows, 'zone_outcomes');
  const sums = sumBy(outcomes, 'requests', 'kind', 'zone', 'outcome');
  assert.deepEqual(sums, {
    'limit_conn conns rejected': 102,
    'limit_req perkey delayed': 209,
    'limit_req perkey rejected': 70,
  });
});

test('the access log alone: nothing is told of anchors, everything adds up', () => {
  const { rows } = aggregateTrace(traceDir('g_mixed_2workers'), { hasErrorLog: false });
  const outcomes = sumBy(rowsOf(rows, 'zone_outcomes'), 'requests', 'outcome');
  assert.deepEqual(outcomes, { passed: 900, delayed: 256, rejected: 668 });
});

test('whole seconds: disagreement is put down to the resolution of the times', () => {
  const { rows } = aggregateTrace(traceDir('a_burst5_delay'), {
    log: 'combined.log',
    hasErrorLog: false,
  });
  const classes = sumBy(rowsOf(rows, 'agreement'), 'requests', 'class');
  const { explained = 0, agree = 0, timestamp_resolution: coarse = 0, ...others } = classes;
  assert.deepEqual(others, {});
  assert.ok(coarse > 0);
  assert.equal(agree + coarse, 189);
  assert.ok(explained >= agree && explained <= 189);
});

test('a key that the log does not tell: outcomes are those of the log, and a note says what to log', (t) => {
  const conf = changedConf(t, 'a_burst5_delay', '$arg_k zone', '$http_x_key zone');
  const { rows } = aggregateTrace(traceDir('a_burst5_delay'), { conf });
  const outcomes = rowsOf(rows, 'zone_outcomes');
  assert.deepEqual(sumBy(outcomes, 'requests', 'outcome'), {
    passed: 4,
    delayed: 120,
    rejected: 65,
  });
  assert.ok(sumBy(outcomes, 'excess_sum_milli', 'outcome')['rejected']! > 65 * 5000);
  assert.deepEqual(sumBy(rowsOf(rows, 'agreement'), 'requests', 'class'), {
    key_not_derivable: 189,
  });
  assert.deepEqual(rowsOf(rows, 'key_minutes'), []);
  const notes = rowsOf(rows, 'findings').filter(({ code }) => code === 'not_derivable');
  assert.match(String(notes[0]!['message']), /^log \$http_x_key/);
  assert.ok(Number(notes.at(-1)!['until']) > Number(notes.at(-1)!['since']));
});

test('limited where the configuration has no limit: the rule is not known', (t) => {
  const conf = changedConf(t, 'a_burst5_delay', 'location / ', 'location /elsewhere ');
  const { rows } = aggregateTrace(traceDir('a_burst5_delay'), { conf, hasErrorLog: false });
  assert.deepEqual(sumBy(rowsOf(rows, 'agreement'), 'requests', 'zone', 'class'), {
    ' rule_unknown': 189,
  });
  assert.deepEqual(rowsOf(rows, 'zone_outcomes'), []);
  assert.deepEqual(sumBy(rowsOf(rows, 'responses'), 'requests', 'status', 'source'), {
    '200 ': 124,
    '503 limit_req': 65,
  });
});
