/**
 * Logs with $msec and $request_time, but without an upstream's time: a request that took long was
 * decided when it came, not when it had been answered.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { compare, replayFiles, type Agreement } from './support/agreement.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';
import { traceDir, type TraceName } from './support/truth.js';

const UPSTREAM_TIME = /"upstream_response_time":"[^"]*",/g;

/** What a replay that may not look at outcomes makes of a capture whose log lacks that field. */
function auditWithout(t: Cleanup, trace: TraceName): Agreement {
  const dir = makeTempDir(t);
  for (const name of ['nginx.conf', 'access.log']) {
    const text = readFileSync(join(traceDir(trace), name), 'latin1');
    const without = text.replaceAll(UPSTREAM_TIME, '');
    assert.notEqual(without, text);
    writeFileSync(join(dir, name), without, 'latin1');
  }
  const files = ['--conf', join(dir, 'nginx.conf'), join(dir, 'access.log')];
  return compare(trace, replayFiles([...files, '--audit']));
}

for (const [trace, leastShare] of [
  ['a_burst5_delay', 0.98],
  ['g_mixed_2workers', 0.99],
  ['i_mixed_status', 0.97],
] as const) {
  test(`${trace} without $upstream_response_time`, (t) => {
    const { decided, wrong, zoneRows, outside } = auditWithout(t, trace);
    assert.ok(decided > 100);
    assert.ok(wrong <= decided * (1 - leastShare), `${wrong} of ${decided} verdicts wrong`);
    assert.ok(outside <= zoneRows * 0.01, `${outside} of ${zoneRows} excesses out of bounds`);
  });
}
