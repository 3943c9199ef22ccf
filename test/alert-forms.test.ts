/**
 * One definition, two forms: on the same data the rules of Prometheus and the daemon's own evaluation
 * fire alike, at every step.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import type { Condition } from '../alerts/condition.js';
import { CONDITIONS, settingsOf, type Overrides } from '../alerts/conditions.js';
import { RULE_CASES, type RuleCase } from '../alerts/rule-cases.js';
import { METRICS } from '../dashboards/metric-names.js';
import { AlertBook } from '../src/alerting/alert-book.js';
import { askStore, ProcessReadings, type Sample } from '../src/alerting/readings.js';
import { openStore, type Store } from '../src/store/store.js';
import {
  alertText,
  firingByStore,
  insertRows,
  LOG_CONDITIONS,
  promtoolDiffers,
  rowOf,
  scrape,
  stretched,
  T0_S,
  type Row,
} from './support/alert-forms.js';
import { aggregateTrace, rowsOf } from './support/aggregate-trace.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

const cleanups: (() => void | Promise<void>)[] = [];
const folders = { after: (fn: () => void) => void cleanups.push(fn) };
let store: Store;
before(async () => {
  store = await openStore({ path: join(makeTempDir(folders), 'store'), createIfMissing: true });
});
after(async () => {
  await store.close();
  for (const cleanup of cleanups) await cleanup();
});

/** So low that captures of a minute reach them, and so different that they do not fire together. */
const LOW: Overrides = {
  ZoneForgetsDebt: { threshold: 10, windowSeconds: 360, forSeconds: 120 },
  ZoneNearlyFull: { threshold: 0.5, forSeconds: 240 },
  ZoneOutOfMemory: { threshold: 3, windowSeconds: 360, forSeconds: 120 },
  DryRunWouldReject: { threshold: 0.011, least: 30, windowSeconds: 480, forSeconds: 120 },
  RejectRatioHigh: { threshold: 0.053, least: 30, windowSeconds: 480, forSeconds: 240 },
  UpstreamRefuses: { threshold: 0.0137, least: 30, windowSeconds: 480, forSeconds: 120 },
  LimitConnRefuses: { threshold: 0.0137, least: 30, windowSeconds: 480, forSeconds: 120 },
  RefusalSourceUnknown: { threshold: 0.053, least: 5, windowSeconds: 600, forSeconds: 120 },
  ReplayAgreementLow: { threshold: 0.0131, least: 20, windowSeconds: 480, forSeconds: 240 },
  LinesUnreadable: { threshold: 0.0123, least: 50, windowSeconds: 480, forSeconds: 120 },
};
const MINUTES = 52;

/** @returns the names of what fired at any step */
async function compare(
  t: Cleanup,
  rows: readonly Row[],
  instance: string,
  conditions: readonly Condition[],
): Promise<Set<string>> {
  await insertRows(store, rows, instance);
  const zones = [...new Set(rows.filter((one) => one.table === 'zone_state').map(({ row }) => String(row[1])))]; // prettier-ignore
  const firing = await firingByStore(store, instance, MINUTES, conditions, LOW);
  const series = await scrape(rows, MINUTES, { instance, zones });
  const differs = (found: typeof firing): string =>
    promtoolDiffers(makeTempDir(t), series, found, conditions, LOW);
  assert.equal(differs(firing), '');
  const all = [...firing.values()].flat();
  // The comparison is no good if it takes anything.
  const wrong = new Map([...firing].map(([minute, alerts]) => [minute, alerts.slice(1)]));
  assert.equal(differs(wrong) !== '', all.length > 0);
  const atEnd = firing.get(MINUTES)!.filter((text) => !text.startsWith('ZoneNearlyFull'));
  assert.deepEqual(atEnd, [], 'what is over is resolved');
  return new Set(all.map((text) => text.replace(/\{.*/, '')));
}

const TRACES = [
  ['k_starvation', ['ZoneForgetsDebt', 'ZoneNearlyFull', 'RejectRatioHigh']],
  ['l_mixed_keys', ['ZoneOutOfMemory']],
  ['d_dry_run', ['DryRunWouldReject']],
] as const;
for (const [trace, fires] of TRACES) {
  test(`a replayed trace: ${trace}`, async (t) => {
    const { rows } = aggregateTrace(traceDir(trace));
    const buckets = rowsOf(rows, 'responses').map(({ bucket }) => Number(bucket));
    const spanS = Math.max(...buckets) - Math.min(...buckets) + 10;
    const conditions = LOG_CONDITIONS.filter(({ name }) => fires.some((one) => one === name));
    const fired = await compare(t, stretched(rows, (30 * 60) / spanS, trace), trace, conditions);
    assert.deepEqual([...fired].sort(), [...fires].sort());
  });
}

/** Some minutes of one level; of all levels each condition knows some that fire and some that do not. */
const LEVELS = fc.array(
  fc.record({
    minutes: fc.integer({ min: 1, max: 12 }),
    requests: fc.constantFrom(0, 3, 40, 200, 200),
    refusedIn100: fc.constantFrom(0, 2, 7, 30, 30),
    kind: fc.constantFrom('limit_req', 'limit_req', 'limit_conn', 'upstream', 'unknown', 'dry_run'),
    unreadable: fc.constantFrom(0, 0, 1, 9),
    unexplainedIn100: fc.constantFrom(0, 1, 4),
    nodes: fc.constantFrom(0, 90, 120, 191),
    inDebt: fc.constantFrom(0, 1, 6),
    failures: fc.constantFrom(0, 0, 1),
  }),
  { minLength: 6, maxLength: 10 },
);

type Level = (typeof LEVELS extends fc.Arbitrary<infer Levels> ? Levels : never)[number];

function madeUp(levels: readonly Level[], instance: string): Row[] {
  const rows: Row[] = [];
  let bucket = T0_S;
  for (const level of levels) {
    for (
      let minute = 0;
      minute < level.minutes && bucket < T0_S + 36 * 60;
      minute++, bucket += 60
    ) {
      rows.push(...minuteOf(bucket, level, instance));
    }
  }
  return rows;
}

function minuteOf(minuteS: number, level: Level, instance: string): Row[] {
  const { requests, kind, unreadable, nodes, inDebt, failures } = level;
  const refused = Math.floor((requests * level.refusedIn100) / 100);
  const unexplained = Math.floor((requests * level.unexplainedIn100) / 100);
  const at = { instance, zone: 'api', bucket: minuteS + 20, server: '', location: '/' };
  const outcome = kind === 'dry_run' ? 'rejected_dry_run' : 'rejected';
  const isOurs = kind === 'limit_req' || kind === 'dry_run';
  const source = kind === 'dry_run' ? '' : kind;
  const outcomes = (word: string, n: number): Row =>
    rowOf('zone_outcomes', { ...at, kind: 'limit_req', outcome: word, requests: n });
  const answers = (word: string, status: number, n: number): Row =>
    rowOf('responses', { ...at, status, source: word, limit_req_status: '', requests: n });
  const lines = (word: string, n: number): Row =>
    rowOf('line_counts', { ...at, source: 'a', kind: word, reason: word === 'access' ? '' : 'x', lines: n }); // prettier-ignore
  const agreement = (word: string, n: number): Row =>
    rowOf('agreement', { ...at, bucket: minuteS, class: word, requests: n });
  return [
    outcomes('passed', requests - (isOurs ? refused : 0)),
    ...(isOurs ? [outcomes(outcome, refused)] : []),
    outcomes('skipped', 50),
    answers('', 200, requests - refused),
    answers(source, source === '' ? 200 : 503, refused),
    lines('access', requests),
    lines('unparsable', unreadable),
    agreement('agree', requests - unexplained),
    agreement('unexplained', unexplained),
    agreement('explained', requests - unexplained),
    agreement('not_logged', 9),
    rowOf('zone_state', {
      ...at,
      nodes,
      capacity_nodes: 191,
      evictions: 2 * inDebt,
      evictions_in_debt: inDebt,
      allocation_failures: failures,
    }),
  ];
}

test('levels as they come: every condition fires at some time, alike in both forms', async (t) => {
  const fired = new Set<string>();
  for (const [i, levels] of fc.sample(LEVELS, { seed: 3, numRuns: 2 }).entries()) {
    const instance = `levels ${i}`;
    const found = await compare(t, madeUp(levels, instance), instance, LOG_CONDITIONS);
    for (const name of found) fired.add(name);
  }
  assert.deepEqual([...fired].sort(), LOG_CONDITIONS.map(({ name }) => name).sort());
});

/** `0+6x3 5 _` as promtool reads it: the values, one a minute. */
function valuesOf(text: string): number[] {
  return text.split(' ').flatMap((part) => {
    const [, start, step, times] = /^(\d+(?:\.\d+)?)(?:\+(\d+(?:\.\d+)?))?(?:x(\d+))?$/.exec(part)!;
    return Array.from({ length: Number(times ?? 0) + 1 }, (_, i) => Number(start) + i * Number(step ?? 0)); // prettier-ignore
  });
}

interface Series {
  readonly metric: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly values: readonly number[];
}

function seriesOf({ series }: RuleCase): Series[] {
  return series.map(([text, values]) => {
    const [, metric = '', labels = ''] = /^(\w+)\{(.*)\}$/.exec(text)!;
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]);
    return {
      metric,
      labels: Object.fromEntries(pairs) as Series['labels'],
      values: valuesOf(values),
    };
  });
}

/** Rows of which the daemon's metrics would be those of a case. */
function rowsOfCase(one: RuleCase, shiftS: number): Row[] {
  const all = seriesOf(one);
  return all.flatMap(({ metric, labels, values }) =>
    values.slice(1).flatMap((value, i) => {
      const gained = Math.floor(value) - Math.floor(values[i]!);
      const at = { server: '', location: '/', ...labels, bucket: T0_S + shiftS + i * 60 };
      switch (metric) {
        case METRICS.limitReqRequests.name:
          return rowOf('zone_outcomes', { ...at, kind: 'limit_req', requests: gained });
        case METRICS.responses.name:
          return rowOf('responses', { ...at, status: 503, limit_req_status: '', requests: gained });
        case METRICS.lines.name: {
          if (labels['kind'] !== 'access') return [];
          const refused = all
            .filter((other) => other.metric === METRICS.responses.name)
            .reduce(
              (sum, { values: own }) => sum + Math.floor(own[i + 1]!) - Math.floor(own[i]!),
              0,
            );
          return [
            rowOf('line_counts', { ...at, source: 'a', reason: '', lines: gained }),
            rowOf('responses', { ...at, status: 200, source: '', limit_req_status: '', requests: gained - refused }), // prettier-ignore
          ];
        }
        case METRICS.parseErrors.name:
          return rowOf('line_counts', { ...at, source: 'a', kind: 'unparsable', lines: gained });
        case METRICS.replayDecisions.name:
          return rowOf('agreement', { ...at, requests: gained });
        case METRICS.zoneNodes.name:
          return rowOf('zone_state', { ...at, nodes: value });
        case METRICS.zoneCapacityNodes.name:
          return rowOf('zone_state', { ...at, capacity_nodes: value });
        case METRICS.zoneEvictions.name:
          return rowOf('zone_state', { ...at, evictions: gained });
        case METRICS.zoneEvictionsInDebt.name:
          return rowOf('zone_state', { ...at, evictions_in_debt: gained });
        case METRICS.zoneAllocationFailures.name:
          return rowOf('zone_state', { ...at, allocation_failures: gained });
        case METRICS.lastEventTime.name:
          return rowOf('line_counts', { ...at, source: labels['source'], kind: 'access', reason: '', bucket: T0_S + shiftS + value, lines: 1 }); // prettier-ignore
        default:
          throw new Error(`no rows for ${metric}`);
      }
    }),
  );
}

describe('the cases of promtool, by the daemon', () => {
  let sequence = 0;
  /** Takes the place of the daemon's steps: which sources there are, and how far they were read. */
  async function commitSource(sequence: number, lastMs: number): Promise<void> {
    const intent = { instance: 'web1', sequence, ranges: [], startedBy: 'a test' };
    await store.begin(intent);
    const place = { offset: 1, lines: 1, firstMs: lastMs, lastMs, complete: false };
    const source = {
      sourceId: 'a',
      headHash: '',
      headLength: 0,
      tailHash: '',
      name: 'a',
      ...place,
    };
    const state = { instance: 'web1', sequence, sources: [source], state: '', logTimeMs: lastMs };
    await store.commit(intent, state);
  }

  for (const [i, one] of RULE_CASES.entries()) {
    test(`${one.condition}: ${one.title}`, async () => {
      const condition = CONDITIONS.find(({ name }) => name === one.condition)!;
      const settings = settingsOf(condition);
      const { evaluate } = condition;
      // Far enough from each other that none sees the rows of another.
      const shiftS = i * 3 * 86_400;
      if ('sql' in evaluate) await insertRows(store, rowsOfCase(one, shiftS), `case ${i}`);
      if (evaluate.clock === 'wall' && 'sql' in evaluate) {
        await commitSource(++sequence, (T0_S + shiftS) * 1000);
      }
      const samples = (minute: number): readonly Sample[] =>
        'metric' in evaluate
          ? seriesOf(one)
              .filter(({ metric }) => metric === METRICS[evaluate.metric].name)
              .map(({ labels, values }) => ({ labels, value: values[minute]! }))
          : [];
      let minute = 0;
      const readings = new ProcessReadings(() => Promise.resolve(samples(minute)));
      const book = new AlertBook();
      // Nothing before can make it fire at the end, but for the gains of counters.
      const from = 'sql' in evaluate ? one.atMinutes - settings.forSeconds / 60 - 1 : 0;
      for (minute = from; minute <= one.atMinutes; minute++) {
        const ms = (T0_S + shiftS + minute * 60) * 1000;
        const found =
          'sql' in evaluate
            ? await askStore(store, condition, evaluate, settings, ms / 1000, 'web1')
            : await readings.ask(condition, evaluate, settings, ms);
        book.advance(condition, settings, found, ms, ms);
      }
      const firing = book.alerts.filter(({ state }) => state === 'firing');
      assert.deepEqual(
        firing.map(({ name, labels }) => alertText(name, labels)),
        one.fires === null ? [] : [alertText(one.condition, one.fires.labels)],
      );
      if (one.fires !== null) {
        assert.ok(Math.abs(firing[0]!.value - one.fires.value) <= 1e-9 * one.fires.value);
      }
    });
  }
});
