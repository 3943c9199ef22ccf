/**
 * The exact limiter against a transliteration of ngx_http_limit_req_module.c in BigInt, on random
 * requests: rc and excess of each limit, delay, and all that the zones hold afterwards.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LimitReqModel, OUTCOME, STATUS, type ModelLimit } from '../src/limit-req/limits.js';
import { ZoneMemory, type ZoneMemorySnapshot } from '../src/limit-req/zone-memory.js';

const ZONE_BYTES = 32 * 1024;
/** Of keys up to 48 bytes in 32k. All keys here have one slot size, so memory is just this number. */
const ZONE_NODES = 191;
const NODELAY = BigInt(Number.MAX_SAFE_INTEGER);

interface NodeInC {
  readonly key: number;
  excess: bigint;
  last: bigint;
  count: number;
}

interface LimitInC {
  readonly zone: ZoneInC;
  readonly burst: bigint;
  readonly delay: bigint;
}

const signed = (n: bigint): bigint => BigInt.asIntN(64, n);
const unsigned = (n: bigint): bigint => BigInt.asUintN(64, n);

function elapsed(now: bigint, last: bigint): bigint {
  const ms = signed(unsigned(now - last));
  if (ms < -60000n) return 1n;
  return ms < 0n ? 0n : ms;
}

class ZoneInC {
  readonly rate: bigint;
  /** The queue: newest first. */
  readonly queue: NodeInC[] = [];
  pinned: NodeInC | null = null;

  constructor(rate: bigint) {
    this.rate = rate;
  }

  excessOf(node: NodeInC, now: bigint): bigint {
    const drained = unsigned(this.rate * unsigned(elapsed(now, node.last))) / 1000n;
    const excess = signed(unsigned(node.excess - drained + 1000n));
    return excess < 0n ? 0n : excess;
  }

  lookup(limit: LimitInC, key: number, now: bigint, account: boolean): [number, bigint] {
    const at = this.queue.findIndex((node) => node.key === key);
    if (at < 0) return this.insert(key, now, account);
    const [node] = this.queue.splice(at, 1);
    this.queue.unshift(node!);
    const excess = this.excessOf(node!, now);
    if (excess > limit.burst) return [OUTCOME.busy, excess];
    if (account) {
      node!.excess = excess;
      if (elapsed(now, node!.last) !== 0n) node!.last = now;
      return [OUTCOME.ok, excess];
    }
    node!.count++;
    this.pinned = node!;
    return [OUTCOME.again, excess];
  }

  private insert(key: number, now: bigint, account: boolean): [number, bigint] {
    this.expire(1, now);
    if (this.queue.length >= ZONE_NODES) this.expire(0, now);
    if (this.queue.length >= ZONE_NODES) return [OUTCOME.error, 0n];
    const node = { key, excess: 0n, last: account ? now : 0n, count: account ? 0 : 1 };
    this.queue.unshift(node);
    if (account) return [OUTCOME.ok, 0n];
    this.pinned = node;
    return [OUTCOME.again, 0n];
  }

  private expire(from: number, now: bigint): void {
    let n = from;
    while (n < 3) {
      const node = this.queue.at(-1);
      if (node === undefined || node.count > 0) return;
      if (n++ !== 0) {
        let ms = signed(unsigned(now - node.last));
        if (ms < 0n) ms = -ms;
        if (ms < 60000n) return;
        if (signed(unsigned(node.excess - unsigned(this.rate * ms) / 1000n)) > 0n) return;
      }
      this.queue.pop();
    }
  }
}

interface DecisionInC {
  readonly outcomes: number[];
  readonly excess: number[];
  status: number;
  delay: bigint;
  decidedBy: number;
}

function handlerInC(
  limits: readonly LimitInC[],
  keys: readonly number[],
  now: bigint,
): DecisionInC {
  const decision: DecisionInC = {
    outcomes: limits.map(() => OUTCOME.notReached),
    excess: limits.map(() => 0),
    status: STATUS.none,
    delay: 0n,
    decidedBy: -1,
  };
  let rc = -1;
  let excess = 0n;
  let n = 0;
  for (; n < limits.length; n++) {
    if (keys[n]! < 0) {
      decision.outcomes[n] = OUTCOME.skipped;
      continue;
    }
    const limit = limits[n]!;
    [rc, excess] = limit.zone.lookup(limit, keys[n]!, now, n === limits.length - 1);
    decision.outcomes[n] = rc;
    decision.excess[n] = Number(excess);
    if (rc !== OUTCOME.again) break;
  }
  if (rc < 0) return decision;
  if (rc === OUTCOME.busy || rc === OUTCOME.error) {
    decision.decidedBy = n;
    decision.status = STATUS.rejected;
    while (n--) {
      const { zone } = limits[n]!;
      if (zone.pinned !== null) zone.pinned.count--;
      zone.pinned = null;
    }
    return decision;
  }
  accountInC(limits, n, rc === OUTCOME.again ? 0n : excess, now, decision);
  decision.status = decision.delay > 0n ? STATUS.delayed : STATUS.passed;
  return decision;
}

function accountInC(
  limits: readonly LimitInC[],
  end: number,
  start: bigint,
  now: bigint,
  decision: DecisionInC,
): void {
  const last = limits[Math.min(end, limits.length - 1)]!;
  if (start > last.delay) {
    decision.delay = ((start - last.delay) * 1000n) / last.zone.rate;
    if (decision.delay > 0n) decision.decidedBy = end;
  }
  for (let n = end - 1; n >= 0; n--) {
    const limit = limits[n]!;
    const node = limit.zone.pinned;
    if (node === null) continue;
    const excess = limit.zone.excessOf(node, now);
    if (elapsed(now, node.last) !== 0n) node.last = now;
    node.excess = excess;
    node.count--;
    limit.zone.pinned = null;
    if (excess <= limit.delay) continue;
    const delay = ((excess - limit.delay) * 1000n) / limit.zone.rate;
    if (delay > decision.delay) {
      decision.delay = delay;
      decision.decidedBy = n;
    }
  }
}

/** Mostly a few milliseconds on; at times a step back, a minute idle, or a clock that was set. */
const stepMs = fc.oneof(
  { weight: 20, arbitrary: fc.nat(30) },
  { weight: 3, arbitrary: fc.integer({ min: -12, max: 0 }) },
  { weight: 2, arbitrary: fc.integer({ min: 59_990, max: 60_010 }) },
  { weight: 1, arbitrary: fc.integer({ min: -70_000, max: -59_990 }) },
  { weight: 1, arbitrary: fc.nat(40_000_000) },
);

/** A few busy keys, many rare ones, and none. */
const key = fc.oneof(
  { weight: 6, arbitrary: fc.nat(4) },
  { weight: 6, arbitrary: fc.nat(600) },
  { weight: 1, arbitrary: fc.constant(-1) },
);

const request = fc.record({ stepMs, keys: fc.tuple(key, key, key) });

const limit = fc.record({
  rateMilliRps: fc.oneof(fc.integer({ min: 16, max: 20_000 }), fc.constant(1_000_000)),
  burst: fc.nat(6),
  delay: fc.oneof(fc.nat(6), fc.constant(Infinity)),
});

const scenario = fc.record({
  limits: fc.array(limit, { minLength: 1, maxLength: 3 }),
  // Clocks since boot and since 1970; a node not yet charged has last = 0 on both.
  startMs: fc.constantFrom(100, 8_000_000, 1_796_015_772_498),
  requests: fc.array(request, { minLength: 300, maxLength: 700, size: 'max' }),
});

type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

function zoneFor(rateMilliRps: number): ZoneMemory {
  return new ZoneMemory({ sizeBytes: ZONE_BYTES, nameLength: 5, rateMilliRps, initialNodes: 1 });
}

function modelLimits(limits: Scenario['limits']): ModelLimit[] {
  return limits.map(({ burst, delay }, zone) => ({
    zone,
    burstMilliReq: burst * 1000,
    delayMilliReq: delay * 1000,
  }));
}

function limitsInC(limits: Scenario['limits']): LimitInC[] {
  return limits.map(({ rateMilliRps, burst, delay }) => ({
    zone: new ZoneInC(BigInt(rateMilliRps)),
    burst: BigInt(burst * 1000),
    delay: delay === Infinity ? NODELAY : BigInt(delay * 1000),
  }));
}

function decisionOf(model: LimitReqModel, count: number): object {
  return {
    outcomes: [...model.outcomes.subarray(0, count)],
    excess: [...model.excessMilliReq.subarray(0, count)],
    status: model.status,
    delay: BigInt(model.delayMs),
    decidedBy: model.decidedBy,
  };
}

/** Key, excess, last and pin of every node, newest first. */
function contents(zone: ZoneMemory): object[] {
  const nodes: object[] = [];
  for (let node = zone.head(); node >= 0; node = zone.nextOlder(node)) {
    nodes.push({
      key: zone.keyOf(node),
      excess: BigInt(zone.excessMilliReq[node]!),
      last: BigInt(zone.lastMs[node]!),
      count: zone.isPinned(node) ? 1 : 0,
    });
  }
  return nodes;
}

test('random requests over one to three zones: as the C decides, and the same memory after', () => {
  fc.assert(
    fc.property(scenario, ({ limits, startMs, requests }) => {
      const model = new LimitReqModel(limits.map(({ rateMilliRps }) => zoneFor(rateMilliRps)));
      const inModel = modelLimits(limits);
      const inC = limitsInC(limits);
      const lengths = [8, 16, 48];
      let nowMs: number = startMs;
      for (const { stepMs: step, keys } of requests) {
        nowMs = Math.max(0, nowMs + step);
        model.decide(inModel, keys, lengths, nowMs);
        const expected = handlerInC(inC, keys, BigInt(nowMs));
        assert.deepEqual(decisionOf(model, limits.length), expected);
      }
      for (const [i, zone] of model.zones.entries()) {
        assert.deepEqual(contents(zone), inC[i]!.zone.queue);
      }
    }),
    { numRuns: 120 },
  );
});

test('a snapshot at any moment, restored from JSON, has the same future', () => {
  const at = fc.nat(299);
  fc.assert(
    fc.property(scenario, at, ({ limits, startMs, requests }, snapshotAt) => {
      const inModel = modelLimits(limits);
      const model = new LimitReqModel(limits.map(({ rateMilliRps }) => zoneFor(rateMilliRps)));
      let restored = model;
      let nowMs: number = startMs;
      for (const [i, { stepMs: step, keys }] of requests.entries()) {
        if (i === snapshotAt) {
          const json = JSON.stringify(model.zones.map((zone) => zone.snapshot()));
          const snapshots = JSON.parse(json) as ZoneMemorySnapshot[];
          restored = new LimitReqModel(snapshots.map((zone) => ZoneMemory.restore(zone)));
        }
        nowMs = Math.max(0, nowMs + step);
        // Lengths of several slot sizes, so that memory fails as well.
        const lengths = keys.map((id) => (id % 7 === 0 ? 900 : id % 5 === 0 ? 5000 : 8));
        model.decide(inModel, keys, lengths, nowMs);
        if (restored === model) continue;
        restored.decide(inModel, keys, lengths, nowMs);
        assert.deepEqual(decisionOf(restored, limits.length), decisionOf(model, limits.length));
      }
      for (const [i, zone] of model.zones.entries()) {
        assert.deepEqual(restored.zones[i]!.snapshot(), zone.snapshot());
      }
    }),
    { numRuns: 40 },
  );
});

test('of equal delays the limit nearest to the end of the list is named', () => {
  const zones = [zoneFor(5000), zoneFor(5000), zoneFor(5000)];
  const model = new LimitReqModel(zones);
  const limits = zones.map((_, zone) => ({ zone, burstMilliReq: 9000, delayMilliReq: 0 }));
  const lengths = [8, 8, 8];
  // The last limit's key is empty at first: it neither decides nor is charged.
  for (const last of [-1, -1, 7, 7]) model.decide(limits, [7, 7, last], lengths, 8_000_000);
  assert.equal(model.decidedBy, 1);
  assert.equal(model.decidedExcessMilliReq, 3000);
  assert.equal(model.excessMilliReq[2], 1000);
  model.decide(limits, [7, -1, 8], lengths, 8_000_000);
  assert.equal(model.decidedBy, 0);
  model.decide(limits, [9, 9, 9], lengths, 8_000_000);
  model.decide(limits, [9, 9, 9], lengths, 8_000_000);
  assert.equal(model.decidedBy, 2);
  assert.equal(model.delayMs, 200);
});
