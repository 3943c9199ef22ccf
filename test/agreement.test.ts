/**
 * The replay held to nginx's own debug log, trace by trace: how many requests it judges as nginx
 * did, how many it explains, how narrow its bounds are, and how it does without the logged outcomes.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { measure, replayTrace, type Agreement } from './support/agreement.js';
import { traceDir, TRACES, type TraceName } from './support/truth.js';

/** Shares in percent, widths in ms · rate. */
interface Threshold {
  readonly verdict: number;
  readonly explained: number;
  /** Mean number of entries of `possible`. */
  readonly possible?: number;
  readonly medianWidthMs?: number;
  readonly auditWrong?: number;
  readonly audit?: number;
}

const NARROW = { possible: 1.3, medianWidthMs: 4 };

const THRESHOLDS: Readonly<Record<TraceName, Threshold>> = {
  a_burst5_delay: { verdict: 99.4, explained: 99.9, ...NARROW, auditWrong: 3 },
  // 186 of 188.
  b_burst5_nodelay: { verdict: 98.93, explained: 99.9, ...NARROW, auditWrong: 3 },
  d_dry_run: { verdict: 99.4, explained: 99.9, ...NARROW, auditWrong: 3 },
  e_two_zones: { verdict: 99.4, explained: 99.9, ...NARROW, auditWrong: 3 },
  f_rpm: { verdict: 99.4, explained: 99.9, ...NARROW, auditWrong: 3 },
  g_mixed_2workers: { verdict: 99.4, explained: 99.9, ...NARROW, audit: 99.5 },
  i_mixed_status: { verdict: 98.5, explained: 99.9, ...NARROW, audit: 97 },
  // Headers that trickle in: when nginx decided is not in the log.
  j_slow_headers: { verdict: 96, explained: 99.9 },
  k_starvation: { verdict: 98.5, explained: 99.5, ...NARROW },
  // What an allocation failure destroys is in no log.
  l_mixed_keys: { verdict: 98.5, explained: 99.5, possible: 1.3 },
  m_http2: { verdict: 98.5, explained: 99.5, ...NARROW },
  o_keys_map_geo: { verdict: 98.5, explained: 99.5, ...NARROW },
  p_reload: { verdict: 96, explained: 99.5, ...NARROW },
  q_limit_conn: { verdict: 98.5, explained: 99.5, ...NARROW },
};

function percent(part: number, whole: number): number {
  return whole === 0 ? 100 : (100 * part) / whole;
}

function check(found: Agreement, wanted: Threshold): void {
  const { decided } = found;
  const verdict = percent(decided - found.wrong, decided);
  const explained = percent(decided - found.unexplained, decided);
  const inside = percent(found.zoneRows - found.outside, found.zoneRows);
  assert.ok(decided > 0);
  assert.ok(verdict >= wanted.verdict, `verdict ${verdict.toFixed(2)} %`);
  assert.ok(explained >= wanted.explained, `explained ${explained.toFixed(2)} %`);
  assert.ok(inside >= 99.9, `truth in bounds ${inside.toFixed(2)} %`);
  if (wanted.possible !== undefined) {
    assert.ok(found.meanPossible >= 1 && found.meanPossible <= wanted.possible);
  }
  if (wanted.medianWidthMs !== undefined) {
    // A width of 0.001 request is a width of 1000 / rate ms; widths are thousandths, rounded.
    assert.ok(
      found.medianWidthMs <= wanted.medianWidthMs,
      `width ${found.medianWidthMs} ms · rate`,
    );
  }
}

for (const trace of TRACES) {
  const wanted = THRESHOLDS[trace];
  test(`${trace}: the replay against nginx's debug log`, () => {
    check(measure(trace, false), wanted);
  });
  if (wanted.audit === undefined && wanted.auditWrong === undefined) continue;
  test(`${trace}: the audit, without logged outcomes and error log`, () => {
    const found = measure(trace, true);
    const verdict = percent(found.decided - found.wrong, found.decided);
    assert.ok(found.wrong <= (wanted.auditWrong ?? Infinity), `${found.wrong} wrong`);
    assert.ok(verdict >= (wanted.audit ?? 0), `verdict ${verdict.toFixed(2)} %`);
  });
}

test('l_mixed_keys: each allocation failure of the error log is a request without memory', () => {
  const lines = readFileSync(join(traceDir('l_mixed_keys'), 'error.log'), 'latin1').split('\n');
  const alerts = lines.filter((line) => line.includes('could not allocate node in limit_req zone'));
  const requests = replayTrace('l_mixed_keys', false);
  const failed = requests.filter((request) => request.source === 'limit_req_zone_exhausted');
  assert.equal(alerts.length, 92);
  assert.equal(failed.length, 92);
  for (const { zones } of failed)
    assert.deepEqual(
      zones.map((zone) => zone.outcome),
      ['exhausted'],
    );
});
