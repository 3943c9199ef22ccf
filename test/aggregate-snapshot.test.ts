/**
 * An import that stops anywhere and goes on in another process hands over the same rows.
 */
import assert from 'node:assert/strict';
import { writeFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Aggregator, AggregatorSnapshot } from '../src/aggregate/aggregator.js';
import type { SessionState } from '../src/replay/session-state.js';
import { aggregateTrace, rowsOf, sumBy, type TraceOptions } from './support/aggregate-trace.js';
import { makeTempDir } from './support/temp-dir.js';
import { readAccessJson, traceDir } from './support/truth.js';

/** What a checkpoint would have stored. */
function throughJson(aggregator: Aggregator): AggregatorSnapshot {
  return JSON.parse(JSON.stringify(aggregator.snapshot())) as AggregatorSnapshot;
}

/** Goes on with a fresh aggregator before each of these decisions. */
function stopAt(decisions: ReadonlySet<number>): NonNullable<TraceOptions['beforeDecision']> {
  let decided = 0;
  return (aggregator, fresh) => {
    if (!decisions.has(decided++)) return aggregator;
    const next = fresh();
    next.restore(throughJson(aggregator));
    assert.deepEqual(throughJson(next), throughJson(aggregator));
    return next;
  };
}

for (const name of ['e_two_zones', 'k_starvation', 'p_reload', 'q_limit_conn'] as const) {
  test(`${name}: stopped at any decisions, the rows are the same`, () => {
    const { rows } = aggregateTrace(traceDir(name));
    const decisions = fc.uniqueArray(fc.nat({ max: 320 }), { maxLength: 8 });
    fc.assert(
      fc.property(decisions, (at) => {
        const again = aggregateTrace(traceDir(name), { beforeDecision: stopAt(new Set(at)) });
        assert.deepEqual(again.rows, rows);
      }),
      { numRuns: 8 },
    );
  });
}

test('error lines without requests: stopped at any decisions, the rows are the same', () => {
  const options = { log: 'combined.log', keysPerMinute: 2 };
  const { rows } = aggregateTrace(traceDir('g_mixed_2workers'), options);
  const beforeDecision = stopAt(new Set([3, 700, 701, 1500]));
  const again = aggregateTrace(traceDir('g_mixed_2workers'), { ...options, beforeDecision });
  assert.deepEqual(again.rows, rows);
});

test('what a configuration no longer names still comes out under its names', (t) => {
  const directory = traceDir('a_burst5_delay');
  let stored: AggregatorSnapshot | null = null;
  aggregateTrace(directory, {
    beforeDecision: (aggregator) => {
      stored ??= aggregator.snapshot().limits.outcomes.length > 1 ? throughJson(aggregator) : null;
      return aggregator;
    },
  });
  assert.ok(stored !== null);
  const conf = join(makeTempDir(t), 'nginx.conf');
  const text = readFileSync(join(directory, 'nginx.conf'), 'utf8').replaceAll('perkey', 'renamed');
  writeFileSync(conf, text.replaceAll('location / ', 'location /x '));
  const snapshot: AggregatorSnapshot = stored;
  const later = aggregateTrace(directory, {
    conf,
    hasErrorLog: false,
    beforeDecision: (aggregator, fresh) => {
      if (aggregator.snapshot().bucketMs !== null) return aggregator;
      const next = fresh();
      next.restore(snapshot);
      return next;
    },
  });
  const before = snapshot.limits.outcomes.reduce((sum, { sums }) => sum + sums[0]!, 0);
  const outcomes = rowsOf(later.rows, 'zone_outcomes');
  assert.equal(sumBy(outcomes, 'requests', 'zone')['perkey'], before);
  assert.equal(sumBy(outcomes, 'requests', 'zone')['renamed'], 189);
});

test('the summary counts what was handed over since, not what was before', () => {
  let first: Aggregator | null = null;
  const { aggregator, rows } = aggregateTrace(traceDir('i_mixed_status'), {
    beforeDecision: (old, fresh) => {
      if (first !== null || old.snapshot().bucketMs === null) return old;
      if (old.summary().requests < 100) return old;
      first = old;
      const next = fresh();
      next.restore(throughJson(old));
      return next;
    },
  });
  const all = sumBy(rowsOf(rows, 'responses'), 'requests')[''];
  assert.ok(first !== null);
  const before = (first as Aggregator).summary().requests;
  assert.ok(before >= 100 && aggregator.summary().requests > 100);
  assert.equal(before + aggregator.summary().requests, all);
});

test('k_starvation in two imports: keys keep their names, what was forgotten counts once', () => {
  const directory = traceDir('k_starvation');
  const options = { keysPerMinute: 1e6 };
  const first = aggregateTrace(directory, { ...options, part: [0, 0.5] });
  const state = JSON.parse(JSON.stringify(first.session.snapshot())) as SessionState;
  const before = first.session.generations.zones[0]!.counts.evictions;
  const second = aggregateTrace(directory, { ...options, part: [0.5, 1], state });
  const after = second.session.generations.zones[0]!.counts.evictions;
  const evictions = [first, second].map(
    ({ rows }) => sumBy(rowsOf(rows, 'zone_state'), 'evictions')[''],
  );
  assert.ok(before > 100 && after - before > 100, `${before} ${after}`);
  assert.deepEqual(evictions, [before, after - before]);
  for (const { rows } of [first, second]) {
    const outcomes = sumBy(rowsOf(rows, 'zone_outcomes'), 'requests', 'outcome');
    const keys = rowsOf(rows, 'key_minutes');
    assert.equal(sumBy(keys, 'passed')[''], outcomes['passed']);
    assert.equal(sumBy(keys, 'rejected')[''], outcomes['rejected']);
  }
  const logged = new Set(readAccessJson(directory).map(({ key }) => key));
  const named = rowsOf(second.rows, 'key_minutes').map(({ key }) => String(key));
  assert.ok(named.length > 100 && named.every((key) => logged.has(key)));
});
