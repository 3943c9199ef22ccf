import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aggregateTrace, rowsOf, sumBy } from './support/aggregate-trace.js';
import { readdirSync } from 'node:fs';
for (const name of readdirSync('test/traces')) {
  test(name, () => {
    const { rows, aggregator } = aggregateTrace(`test/traces/${name}`);
    assert.ok(rows.length > 0);
    console.log(JSON.stringify(sumBy(rowsOf(rows, 'zone_outcomes'), 'requests', 'kind','zone', 'outcome')), JSON.stringify(sumBy(rowsOf(rows, 'responses'), 'requests', 'limit_req_status')), JSON.stringify(sumBy(rowsOf(rows,'agreement'),'requests','zone','class')), rows.length);
    console.log(rowsOf(rows,'findings'), sumBy(rowsOf(rows,'responses'),'requests','status','source'));
    void aggregator;
  });
}
