/**
 * The alerts: files up to date, promtool's own judgement, and the same conditions on the store.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Condition, ConditionName, Settings } from '../alerts/condition.js';
import { valueText } from '../alerts/condition.js';
import { alertTexts, CONDITIONS, settingsOf, type Overrides } from '../alerts/conditions.js';
import { durationOf, quoted } from '../alerts/forms.js';
import { prometheusRules } from '../alerts/prometheus-rules.js';
import { prometheusTests } from '../alerts/prometheus-tests.js';
import { RULE_CASES } from '../alerts/rule-cases.js';
import { DASHBOARDS } from '../dashboards/catalogue/dashboards.js';
import { METRICS } from '../dashboards/metric-names.js';
import type { RowTable } from '../src/aggregate/rows.js';
import { openStore, type Store } from '../src/store/store.js';
import { columnsOf } from '../src/store/tables.js';
import { requireProgram } from './support/debian.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';

const RUNBOOKS = 'alerts/runbooks';

function promtool(...args: string[]): { status: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync(requireProgram('promtool'), args, {
    encoding: 'utf8',
  });
  return { status, text: stdout + stderr };
}

for (const [path, text] of [
  ['alerts/prometheus.rules.yml', prometheusRules()],
  ['alerts/prometheus.tests.yml', prometheusTests()],
] as const) {
  test(`${path} is up to date; node dist/alerts/generate.js writes it`, () => {
    assert.equal(readFileSync(path, 'utf8'), text);
  });
}

test('promtool accepts the rules, and they fire and are silent as the cases say', () => {
  const check = promtool('check', 'rules', 'alerts/prometheus.rules.yml');
  assert.equal(check.status, 0, check.text);
  assert.match(check.text, new RegExp(`${CONDITIONS.length} rules found`));
  const run = promtool('test', 'rules', 'alerts/prometheus.tests.yml');
  assert.equal(run.status, 0, run.text);
});

/** promtool's answer to the cases, with other numbers in the rules. */
function tryRules(t: Cleanup, overrides: Overrides, runbooksUrl?: string) {
  const directory = makeTempDir(t);
  writeFileSync(join(directory, 'prometheus.rules.yml'), prometheusRules(runbooksUrl, overrides));
  const tests = join(directory, 'prometheus.tests.yml');
  writeFileSync(tests, prometheusTests(runbooksUrl));
  return promtool('test', 'rules', tests);
}

test('the base of the runbooks can be given', (t) => {
  const url = 'https://wiki.example/runbooks';
  assert.match(
    prometheusRules(url),
    /runbook_url: 'https:\/\/wiki\.example\/runbooks\/no-events\.md'/,
  );
  const run = tryRules(t, {}, url);
  assert.equal(run.status, 0, run.text);
});

/** Other numbers in all rules at once; the cases of each that they matter to have to fail. */
const CHANGES: readonly [
  title: string,
  change: Partial<Settings>,
  isFor: (c: Condition) => boolean,
][] = [
  ['a threshold that nothing reaches', { threshold: 1e9 }, () => true],
  ['no threshold', { threshold: -1e9, forSeconds: 0 }, () => true],
  ['for ever', { forSeconds: 100_000 }, () => true],
  ['no least traffic', { least: 0 }, ({ defaults }) => defaults.least > 0],
  ['traffic that nobody has', { least: 1e9 }, ({ defaults }) => defaults.least > 0],
];
for (const [title, change, isFor] of CHANGES) {
  test(`the cases notice other numbers: ${title}`, (t) => {
    const changed = CONDITIONS.filter(isFor);
    const overrides = Object.fromEntries(changed.map(({ name }) => [name, change]));
    const { status, text } = tryRules(t, overrides);
    assert.equal(status, 1);
    for (const { name } of changed) assert.ok(text.includes(`alertname: ${name},`), name);
  });
}

test('every condition has cases for both, and where it asks for traffic, one with too little', () => {
  for (const { name } of CONDITIONS) {
    const own = RULE_CASES.filter(({ condition }) => condition === name);
    assert.ok(own.some(({ fires }) => fires !== null), name); // prettier-ignore
    assert.ok(own.some(({ fires }) => fires === null), name); // prettier-ignore
  }
  assert.equal(new Set(CONDITIONS.map(({ name }) => name)).size, CONDITIONS.length);
});

test('every number has its reason', () => {
  for (const { name, defaults, reasons } of CONDITIONS) {
    assert.ok(reasons.threshold !== '' && reasons.forSeconds !== '', name);
    assert.equal(defaults.least > 0, reasons.least !== undefined, name);
  }
});

test('rules ask for metrics that there are', () => {
  const known = new Set<string>(Object.values(METRICS).map(({ name }) => name));
  for (const condition of CONDITIONS) {
    const asked = condition.promql(condition.defaults).match(/limitlens_\w+/g) ?? [];
    assert.ok(asked.length > 0);
    for (const name of asked) assert.ok(known.has(name), name);
  }
});

test('every alert and dashboard has its runbook, and no runbook is left over', () => {
  const pages = readdirSync(RUNBOOKS).map((name) => basename(name, '.md'));
  const asked = CONDITIONS.map(({ runbook }) => runbook);
  for (const page of [...asked, ...DASHBOARDS.flatMap(({ runbooks }) => runbooks)]) {
    assert.ok(pages.includes(page), page);
  }
  assert.deepEqual(pages.filter((page) => !asked.includes(page)), []); // prettier-ignore
  const readme = readFileSync('alerts/README.md', 'utf8');
  for (const { name, runbook } of CONDITIONS) {
    assert.ok(readFileSync(join(RUNBOOKS, `${runbook}.md`), 'utf8').includes(name), name);
    assert.match(readme, new RegExp(`\\| ${name} .*runbooks/${runbook}\\.md`));
  }
});

test('links between runbooks lead somewhere', () => {
  for (const page of readdirSync(RUNBOOKS)) {
    const text = readFileSync(join(RUNBOOKS, page), 'utf8');
    for (const [, target] of text.matchAll(/\]\(([^)#]+)\)/g)) {
      assert.ok(existsSync(join(RUNBOOKS, target!)), `${page}: ${target}`);
    }
  }
});

test('values as Prometheus writes them', () => {
  assert.deepEqual([0.12345, 1, 0.00123].map((v) => valueText(v, 'share')), ['12.35%', '100%', '0.123%']); // prettier-ignore
  assert.deepEqual([5, 61, 3661, 90_061].map((v) => valueText(v, 'seconds')), ['5s', '1m 1s', '1h 1m 1s', '1d 1h 1m 1s']); // prettier-ignore
  assert.deepEqual([0, 60, 90, 3600, 5400].map(durationOf), ['0s', '1m', '90s', '1h', '90m']);
  assert.deepEqual(["it's", 'a "b"', `it's "b"`, 'a'].map(quoted), [`"it's"`, `'a "b"'`, `'it''s "b"'`, `'a'`]); // prettier-ignore
  assert.throws(() => quoted('a\\b'), /without backslashes/);
});

const TO_S = 1_800_000_000;
type StoreCase = readonly [
  condition: ConditionName,
  title: string,
  rows: readonly (readonly [table: RowTable, row: Readonly<Record<string, unknown>>])[],
  expected: readonly Record<string, unknown>[],
];

const AT = { instance: 'web1', zone: 'api', bucket: TO_S - 60 };
const MEMORY = { ...AT, nodes: 10, capacity_nodes: 191 };
const FIRES = { instance: 'web1', zone: 'api' };

function outcomes(...counts: [outcome: string, requests: number][]) {
  const place = { ...AT, kind: 'limit_req', server: '', location: '/' };
  return counts.map(
    ([outcome, requests]) => ['zone_outcomes', { ...place, outcome, requests }] as const,
  );
}

function responses(...counts: [source: string, status: number, requests: number][]) {
  const place = { instance: 'web1', server: '', location: '/', bucket: AT.bucket };
  return counts.map(
    ([source, status, requests]) =>
      ['responses', { ...place, status, source, requests, limit_req_status: '' }] as const,
  );
}

function agreement(...counts: [word: string, requests: number][]) {
  return counts.map(([word, requests]) => ['agreement', { ...AT, class: word, requests }] as const);
}

function lines(...counts: [kind: string, lines: number][]) {
  const source = { instance: 'web1', source: 'access.log', bucket: AT.bucket, reason: '' };
  return counts.map(([kind, n]) => ['line_counts', { ...source, kind, lines: n }] as const);
}

const STORE_CASES: readonly StoreCase[] = [
  ['ZoneForgetsDebt', 'eleven', [['zone_state', { ...MEMORY, evictions_in_debt: 11 }]], [{ ...FIRES, value: 11 }]],
  ['ZoneForgetsDebt', 'ten', [['zone_state', { ...MEMORY, evictions: 90, evictions_in_debt: 10 }]], []],
  ['ZoneForgetsDebt', 'before the window', [['zone_state', { ...MEMORY, bucket: TO_S - 610, evictions_in_debt: 99 }]], []],
  ['ZoneForgetsDebt', 'after the window', [['zone_state', { ...MEMORY, bucket: TO_S, evictions_in_debt: 99 }]], []],
  ['ZoneForgetsDebt', 'in two buckets', [['zone_state', { ...MEMORY, evictions_in_debt: 9 }], ['zone_state', { ...MEMORY, bucket: TO_S - 600, evictions_in_debt: 9 }]], [{ ...FIRES, value: 18 }]],
  ['ZoneNearlyFull', 'full', [['zone_state', { ...MEMORY, nodes: 191 }]], [{ ...FIRES, value: 1 }]],
  ['ZoneNearlyFull', 'full, and then not', [['zone_state', { ...MEMORY, nodes: 191 }], ['zone_state', { ...MEMORY, bucket: TO_S - 30 }]], []],
  ['ZoneOutOfMemory', 'one', [['zone_state', { ...MEMORY, allocation_failures: 1 }]], [{ ...FIRES, value: 1 }]],
  ['ZoneOutOfMemory', 'none', [['zone_state', MEMORY]], []],
  ['DryRunWouldReject', 'one in a hundred', outcomes(['passed', 2970], ['rejected_dry_run', 20], ['exhausted_dry_run', 10]), [{ ...FIRES, value: 0.01 }]],
  ['DryRunWouldReject', 'too few requests', outcomes(['passed', 2900], ['rejected_dry_run', 30], ['skipped', 900]), []],
  ['RejectRatioHigh', 'one in ten', outcomes(['passed', 540], ['rejected', 50], ['exhausted', 10]), [{ ...FIRES, value: 0.1 }]],
  ['RejectRatioHigh', 'one in ten of few', outcomes(['passed', 54], ['rejected', 6]), []],
  ['RejectRatioHigh', 'one in ten under dry run', outcomes(['passed', 540], ['rejected_dry_run', 60]), []],
  ['UpstreamRefuses', 'one in twenty', responses(['', 200, 950], ['upstream', 503, 50]), [{ instance: 'web1', value: 0.05 }]],
  ['UpstreamRefuses', 'the limiter', responses(['', 200, 950], ['limit_req', 503, 50]), []],
  ['LimitConnRefuses', 'both kinds', responses(['', 200, 950], ['limit_conn', 503, 40], ['limit_conn_zone_exhausted', 503, 10]), [{ instance: 'web1', value: 0.05 }]],
  ['LimitConnRefuses', 'too few requests', responses(['', 200, 95], ['limit_conn', 503, 5]), []],
  ['RefusalSourceUnknown', 'half', responses(['', 200, 5], ['unknown', 503, 10], ['upstream', 503, 10]), [{ instance: 'web1', value: 0.5 }]],
  ['RefusalSourceUnknown', 'of few', responses(['', 200, 500], ['unknown', 503, 10]), []],
  ['ReplayAgreementLow', 'a fifth', agreement(['agree', 500], ['explained', 640], ['not_logged', 99], ['unexplained', 300]), [{ ...FIRES, value: 0.2 }]],
  ['ReplayAgreementLow', 'hardly any', agreement(['agree', 799], ['explained', 799], ['unexplained', 1]), []],
  ['LinesUnreadable', 'one in ten', lines(['access', 900], ['unparsable', 100]), [{ instance: 'web1', value: 0.1 }]],
  ['LinesUnreadable', 'of few', lines(['access', 9], ['unparsable', 1]), []],
  ['LinesUnreadable', 'no lines', [], []],
]; // prettier-ignore

describe('conditions on the store', () => {
  let store: Store;
  const cleanups: (() => void | Promise<void>)[] = [];
  before(async () => {
    const path = join(makeTempDir({ after: (fn) => void cleanups.push(fn) }), 'store');
    store = await openStore({ path, createIfMissing: true });
  });
  after(async () => {
    await store.close();
    for (const cleanup of cleanups) await cleanup();
  });

  /** Each case has a day of its own, so that none sees the rows of another. */
  async function fill(number: number, rows: StoreCase[2]): Promise<number> {
    const shiftS = number * 86_400;
    for (const [i, [table, row]] of rows.entries()) {
      const columns = columnsOf(table);
      const shifted: Record<string, unknown> = { ...row, bucket: Number(row['bucket']) + shiftS };
      const values = columns.map((column) => shifted[column] ?? 0);
      await store.insertBlock({ table, columns, rows: [values] }, `case ${number} row ${i}`);
    }
    return TO_S + shiftS;
  }

  function conditionOf(name: ConditionName): Condition {
    return CONDITIONS.find((condition) => condition.name === name)!;
  }

  for (const [i, [name, title, rows, expected]] of STORE_CASES.entries()) {
    test(`${name}: ${title}`, async () => {
      const condition = conditionOf(name);
      assert.ok('sql' in condition.evaluate);
      const to = await fill(i, rows);
      const sql = condition.evaluate.sql(settingsOf(condition));
      const found = await store.query<Record<string, number>>(sql, { to, instance: '' });
      assert.deepEqual(
        found.map((row) => ({ ...row, value: Number(Number(row['value']).toPrecision(12)) })),
        expected,
      );
      for (const row of found) {
        assert.deepEqual(Object.keys(row), [...condition.labels, 'value']);
      }
    });
  }

  test('each that asks what was stored has a case for both', () => {
    for (const { name, evaluate } of CONDITIONS) {
      const own = STORE_CASES.filter(([condition]) => condition === name);
      const asks = evaluate.clock === 'log';
      assert.equal(own.some(([, , , expected]) => expected.length > 0), asks, name); // prettier-ignore
      assert.equal(own.some(([, , , expected]) => expected.length === 0), asks, name); // prettier-ignore
    }
  });
});

test('the texts of an alert have its labels and its value', () => {
  const condition = CONDITIONS[0]!;
  const { summary, description } = alertTexts(condition, { instance: 'web1', zone: 'api' }, 60);
  assert.equal(summary, 'Zone api forgets keys that still have debt');
  assert.match(
    description,
    /^Zone api of web1 is full and dropped 60 keys with debt within 10 minutes/,
  );
  const halfHour = settingsOf(condition, { ZoneForgetsDebt: { windowSeconds: 1800 } });
  assert.match(alertTexts(condition, {}, 60, halfHour).description, /within 30 minutes/);
});
