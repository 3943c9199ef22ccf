/**
 * The model driven through what tiny zones did on a live nginx: silent eviction, allocation
 * failures among mixed key lengths, and keys too long to be limited. The captures log no exact
 * times, and need none: at one request per minute, or with a clock standing still, order decides.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { LimitReqModel, OUTCOME, STATUS, type ModelLimit } from '../src/limit-req/limits.js';
import { ZoneMemory } from '../src/limit-req/zone-memory.js';

const NOW_MS = 8_000_000;
const ONE_PER_MINUTE_MILLI_RPS = 16;
const SMALLEST_ZONE_BYTES = 32 * 1024;
const LIMIT: ModelLimit = { zone: 0, burstMilliReq: 0, delayMilliReq: 0 };

/** `limit_req_zone $arg_k zone=perip:32k rate=1r/m; limit_req zone=perip;` */
class SmallZone {
  readonly zone = new ZoneMemory({
    sizeBytes: SMALLEST_ZONE_BYTES,
    nameLength: 'perip'.length,
    rateMilliRps: ONE_PER_MINUTE_MILLI_RPS,
  });
  readonly model = new LimitReqModel([this.zone]);
  readonly #ids = new Map<string, number>();

  /** The request's outcome; keys are told apart by text, their length may be set apart from it. */
  request(key: string, keyLengthBytes = key.length, nowMs = NOW_MS): number {
    const id = this.#ids.get(key) ?? this.#ids.size;
    this.#ids.set(key, id);
    this.model.decide([LIMIT], [id], [keyLengthBytes], nowMs);
    return this.model.outcomes[0]!;
  }

  /** How many new keys of this length fail before one gets its node. */
  failuresUntilRoom(keyLengthBytes: number): number {
    let failures = 0;
    while (this.request(`long-${failures}`, keyLengthBytes) === OUTCOME.error) failures++;
    return failures;
  }
}

function fixtureLines(path: string): string[] {
  return readFileSync(join(process.cwd(), 'test/fixtures', path), 'latin1')
    .trimEnd()
    .split('\n');
}

function shortKey(i: number): string {
  return String(i).padStart(8, '0');
}

test('evict: every line of the capture, in its order', () => {
  const small = new SmallZone();
  const lines = fixtureLines('evict/access.log');
  assert.equal(lines.length, 2003);
  for (const [i, line] of lines.entries()) {
    const [, logged, key = ''] = line.split(' ');
    const outcome = small.request(key);
    assert.equal(outcome === OUTCOME.busy ? 'REJECTED' : 'PASSED', logged, `line ${i + 1}`);
  }
});

test('a rejected client is forgotten after exactly 191 other keys, and not if it keeps knocking', () => {
  const small = new SmallZone();
  small.request('client');
  assert.equal(small.request('client'), OUTCOME.busy);
  for (let i = 0; i < 190; i++) small.request(shortKey(i));
  // This lookup is rejected, and still makes the client the newest of 191.
  assert.equal(small.request('client'), OUTCOME.busy);
  for (let i = 190; i < 380; i++) small.request(shortKey(i));
  assert.equal(small.request('client'), OUTCOME.busy);
  for (let i = 380; i < 571; i++) small.request(shortKey(i));
  assert.equal(small.request('client'), OUTCOME.ok);
  assert.equal(small.model.created[0], 1);
});

/** The capture's requests: short keys up, 150-byte keys, then the short ones down again. */
function lrxKeys(): [key: string, logged: string][] {
  const up = Array.from({ length: 1000 }, (_, i) => shortKey(i));
  const long = Array.from({ length: 60 }, (_, i) => `${'x'.repeat(142)}${shortKey(i)}`);
  const down = Array.from({ length: 299 }, (_, i) => shortKey(999 - i));
  const lines = fixtureLines('lrx/access.log');
  const keys = [...up, ...long, ...down];
  assert.equal(keys.length, lines.length);
  return keys.map((key, i) => [key, / lrs=(\w+) /.exec(lines[i]!)![1]!]);
}

test('lrx: every line of the capture, allocation failures among them', () => {
  const small = new SmallZone();
  let failures = 0;
  for (const [i, [key, logged]] of lrxKeys().entries()) {
    const outcome = small.request(key);
    if (outcome === OUTCOME.error) failures++;
    const isRejected = small.model.status === STATUS.rejected;
    assert.equal(isRejected ? 'REJECTED_DRY_RUN' : 'PASSED', logged, `line ${i + 1}`);
  }
  const alerts = fixtureLines('lrx/error.log').filter((line) =>
    line.includes('could not allocate'),
  );
  assert.equal(failures, alerts.length);
});

/** Short keys before the long ones, and how often those then fail: it depends on both. */
const FAILURES: readonly (readonly [keys: number, keyLengthBytes: number, failures: number])[] = [
  [999, 120, 50],
  [999, 300, 50],
  [999, 2100, 50],
  [999, 5000, 82],
  [1000, 120, 49],
];
for (const [keys, keyLengthBytes, failures] of FAILURES) {
  test(`after ${keys} short keys, ${keyLengthBytes}-byte keys fail ${failures} times`, () => {
    const small = new SmallZone();
    for (let i = 0; i < keys; i++) small.request(shortKey(i));
    assert.equal(small.zone.nodes, 191);
    assert.equal(small.failuresUntilRoom(keyLengthBytes), failures);
  });
}

test('a key of 65535 bytes is limited, a longer one is not', () => {
  const small = new SmallZone();
  const model = small.model;
  const zone = new ZoneMemory({ sizeBytes: 1 << 20, nameLength: 2, rateMilliRps: 16 });
  const large = new LimitReqModel([zone]);
  large.decide([LIMIT], [0], [65_535], NOW_MS);
  assert.equal(large.status, STATUS.passed);
  large.decide([LIMIT], [0], [65_535], NOW_MS);
  assert.equal(large.status, STATUS.rejected);
  large.decide([LIMIT], [1], [65_536], NOW_MS);
  assert.equal(large.status, STATUS.none);
  assert.equal(large.outcomes[0], OUTCOME.keyTooLong);
  // 16 pages and a bit are never free in 32k: the failure costs the oldest key all the same.
  small.request('a');
  assert.equal(small.request('b', 65_535), OUTCOME.error);
  assert.equal(model.status, STATUS.rejected);
  assert.equal(small.zone.evictedCount, 1);
  assert.equal(small.zone.nodes, 0);
});
