/**
 * Replays of live traffic, beyond the captures: a real nginx serves a few scenarios side by side,
 * and what its debug log decided must lie within what a replay of its logs holds possible.
 *
 * All scenarios, and every kind of log, by hand: support/live-bench.ts.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { compareLive, replayCapture, type LiveAgreement } from './support/live-compare.js';
import { record, type Capture, type Scenario } from './support/live-scenario.js';
import { scenarios } from './support/live-scenarios.js';

const SEED = 20_261_130;
/** What the replay must reach; a share of requests, or of zone rows. */
const LEAST_EXPLAINED = 0.995;
const LEAST_IN_BOUNDS = 0.99;
const MOST_POSSIBLE = 1.3;
/**
 * Each with a kind of traffic that no capture has; of one worker, whose clock no other process on a
 * busy machine can hold back against another's.
 */
const NAMES = [
  'delay=3 with bursts',
  'idle keep-alive connections',
  'error_page after a rejection',
  'several servers and ports',
  'four zones',
  'one zone, several bursts',
  'limit_conn after a delay',
  '1r/m, 7r/m, 59r/m, 100r/m',
  'POST bodies, slow ones too',
];
/** Only $uri tells where these were answered; a format that has the header as well, their keys. */
const BY_URI = 'try_files, error_page, auth_request';

type Undo = () => void | Promise<void>;

function named(name: string): Scenario {
  const scenario = scenarios(SEED).find((one) => one.name === name);
  assert.ok(scenario, `there is a scenario "${name}"`);
  return scenario;
}

function assertHolds(found: LiveAgreement, how: string): void {
  const details = `${how}\n${found.oddities.slice(0, 3).join('\n')}`;
  assert.ok(found.decided > 50, `${found.decided} requests decided ${how}`);
  assert.equal(found.wrongAnchors, 0, details);
  // Of a hundred requests or so, a share this small may be less than one.
  const mostUnexplained = Math.max(1, found.decided * (1 - LEAST_EXPLAINED));
  const mostOutside = Math.max(1, found.zoneRows * (1 - LEAST_IN_BOUNDS));
  assert.ok(found.unexplained <= mostUnexplained, details);
  assert.ok(found.outside <= mostOutside, details);
}

describe('nginx on live traffic decides within what a replay holds possible', () => {
  const captures = new Map<string, Capture>();
  const undo: Undo[] = [];
  // All traffic first, side by side: a replay in between would keep clients and upstreams waiting.
  before(async () => {
    const cleanup = { after: (fn: Undo) => void undo.push(fn) };
    const recorded = [...NAMES, BY_URI].map(async (name) => {
      captures.set(name, await record(cleanup, named(name)));
    });
    await Promise.all(recorded);
  });
  after(async () => {
    for (const fn of undo.reverse()) await fn();
  });

  for (const name of NAMES) {
    test(name, () => {
      const capture = captures.get(name)!;
      const rich = replayCapture(capture, { format: 'rich', withErrorLog: true });
      const full = compareLive(capture, rich);
      assertHolds(full, 'with every field and the error log');
      assert.ok(full.meanPossible <= MOST_POSSIBLE, `${full.meanPossible} possible on average`);
      assert.ok(full.anchored > 5, `${full.anchored} rows anchored`);
      const text = { format: 'limits', withErrorLog: true } as const;
      assertHolds(compareLive(capture, replayCapture(capture, text)), 'from a text format');
      // Whole seconds leave nearly everything open; that no line is misjoined still holds.
      const bare = { format: 'combined_bare', withErrorLog: true } as const;
      const found = compareLive(capture, replayCapture(capture, bare));
      assert.equal(found.wrongAnchors, 0, found.oddities[0]);
    });
  }

  test(BY_URI, () => {
    const capture = captures.get(BY_URI)!;
    const found = compareLive(
      capture,
      replayCapture(capture, { format: 'rich', withErrorLog: true }),
    );
    assertHolds(found, 'with every field and the error log');
    assert.ok(found.meanPossible <= MOST_POSSIBLE, `${found.meanPossible} possible on average`);
    assert.ok(found.anchored > 5, `${found.anchored} rows anchored`);
  });
});
