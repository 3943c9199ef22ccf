/**
 * The exact model against captures of real nginx: fed with the true decision times in the order of
 * the locks, every request must come out with nginx's own rc, excess, delay and evictions.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LimitReqModel, OUTCOME, STATUS, type ModelLimit } from '../src/limit-req/limits.js';
import { ZoneMemory } from '../src/limit-req/zone-memory.js';
import {
  accessById,
  inDecisionOrder,
  readTruth,
  traceDir,
  workerGenerations,
  type AccessJson,
  type TraceName,
  type TruthRecord,
} from './support/truth.js';

const KIB = 1024;
const MIB = 1024 * KIB;
const NODELAY = Infinity;

interface ZoneSpec {
  readonly name: string;
  readonly sizeBytes: number;
  readonly rateMilliRps: number;
  readonly key: (line: AccessJson) => string;
}

/** A limit_req line as written: zone by index, burst and delay in requests. */
type LimitSpec = readonly [zone: number, burst: number, delay: number];

interface TraceSpec {
  readonly zones: readonly ZoneSpec[];
  readonly limits: (line: AccessJson) => readonly LimitSpec[];
}

const argK = (line: AccessJson): string => line.key;
const serverName = (line: AccessJson): string => line.serverName;
/** $binary_remote_addr of an IPv4 client: four bytes, one character each. */
const binaryRemoteAddr = (line: AccessJson): string =>
  String.fromCharCode(...line.remoteAddr.split('.').map(Number));

function perKey(name: string, sizeBytes: number, rateMilliRps: number): ZoneSpec {
  return { name, sizeBytes, rateMilliRps, key: argK };
}

function oneZone(zone: ZoneSpec, burst: number, delay: number): TraceSpec {
  const limits: LimitSpec[] = [[0, burst, delay]];
  return { zones: [zone], limits: () => limits };
}

/** Each server's configuration, read from its nginx.conf by hand. */
const SPECS: Readonly<Record<Exclude<TraceName, 'p_reload'>, TraceSpec>> = {
  a_burst5_delay: oneZone(perKey('perkey', MIB, 5000), 5, 0),
  b_burst5_nodelay: oneZone(perKey('perkey', MIB, 5000), 5, NODELAY),
  d_dry_run: oneZone(perKey('perkey', MIB, 5000), 5, 0),
  e_two_zones: {
    zones: [
      { name: 'perip', sizeBytes: MIB, rateMilliRps: 4000, key: binaryRemoteAddr },
      { name: 'perserver', sizeBytes: MIB, rateMilliRps: 20_000, key: serverName },
    ],
    limits: () => [
      [0, 6, 3],
      [1, 15, NODELAY],
    ],
  },
  f_rpm: oneZone(perKey('login', MIB, 1666), 3, NODELAY),
  g_mixed_2workers: oneZone(perKey('perkey', MIB, 2000), 4, 2),
  i_mixed_status: {
    zones: [perKey('perkey', MIB, 8000)],
    limits: (line) => (line.uri.startsWith('/both') ? [[0, 4, 0]] : [[0, 4, NODELAY]]),
  },
  j_slow_headers: oneZone(perKey('perkey', MIB, 5000), 5, 2),
  k_starvation: oneZone(perKey('small', 32 * KIB, 33), 2, NODELAY),
  l_mixed_keys: oneZone(perKey('mixed', 64 * KIB, 100), 1, NODELAY),
  m_http2: {
    zones: [
      perKey('perkey', MIB, 6000),
      { name: 'perserver', sizeBytes: MIB, rateMilliRps: 40_000, key: serverName },
    ],
    limits: () => [
      [0, 6, 3],
      [1, 25, 10],
    ],
  },
  o_keys_map_geo: {
    zones: [
      { name: 'perip', sizeBytes: MIB, rateMilliRps: 4000, key: ipKey },
      { name: 'perapi', sizeBytes: MIB, rateMilliRps: 6000, key: apiKey },
    ],
    limits: locationLimits,
  },
  q_limit_conn: oneZone(perKey('perkey', MIB, 10_000), 6, 0),
};

/** Trace o: empty for the addresses that its geo block lists. */
function ipKey(line: AccessJson): string {
  const isListed = /^203\.0\.113\.[0-3]$|^198\.51\.100\.7$/.test(line.remoteAddr);
  return isListed ? '' : binaryRemoteAddr(line);
}

/** Trace o: the team in the header, else the address. */
function apiKey(line: AccessJson): string {
  return /^team-([a-z]+)-[0-9]+$/.exec(line.apiKey)?.[1] ?? binaryRemoteAddr(line);
}

/** Trace o: the effective list of the location that nginx picks. */
function locationLimits({ uri }: AccessJson): readonly LimitSpec[] {
  if (uri.startsWith('/static/')) return [[1, 2, 0]];
  if (/^\/api\/[0-9]+\/deep/.test(uri)) return [[1, 0, 0]];
  if (uri.endsWith('.php')) {
    return [
      [0, 3, 1],
      [1, 4, NODELAY],
    ];
  }
  if (uri.startsWith('/api/own/')) {
    return [
      [1, 10, 0],
      [0, 1, 0],
    ];
  }
  if (uri.startsWith('/api/')) return [[1, 8, 4]];
  if (uri.startsWith('/dry/')) {
    return [
      [0, 1, 0],
      [1, 2, 0],
    ];
  }
  return [[0, 5, NODELAY]];
}

/** The model with its keys interned, one number per distinct text and zone. */
class Replica {
  readonly zones: ZoneMemory[];
  readonly model: LimitReqModel;
  readonly #specs: readonly ZoneSpec[];
  readonly #ids: Map<string, number>[];
  readonly #texts: string[][];

  constructor(specs: readonly ZoneSpec[]) {
    this.#specs = specs;
    this.zones = specs.map(
      ({ name, sizeBytes, rateMilliRps }) =>
        new ZoneMemory({ sizeBytes, nameLength: name.length, rateMilliRps, initialNodes: 1 }),
    );
    this.model = new LimitReqModel(this.zones);
    this.#ids = specs.map(() => new Map<string, number>());
    this.#texts = specs.map(() => []);
  }

  decide(line: AccessJson, specs: readonly LimitSpec[], nowMs: number): void {
    const limits: ModelLimit[] = specs.map(([zone, burst, delay]) => ({
      zone,
      burstMilliReq: burst * 1000,
      delayMilliReq: delay * 1000,
    }));
    const keys = specs.map(([zone]) => this.#specs[zone]!.key(line));
    const ids = keys.map((key, i) => this.#intern(specs[i]![0], key));
    this.model.decide(
      limits,
      ids,
      keys.map((key) => key.length),
      nowMs,
    );
  }

  keyText(zone: number, id: number): string {
    return this.#texts[zone]![id]!;
  }

  #intern(zone: number, key: string): number {
    if (key === '') return -1;
    const known = this.#ids[zone]!.get(key);
    if (known !== undefined) return known;
    const id = this.#texts[zone]!.push(key) - 1;
    this.#ids[zone]!.set(key, id);
    return id;
  }
}

const RC_OF: Readonly<Record<number, string>> = {
  [OUTCOME.ok]: 'OK',
  [OUTCOME.again]: 'AGAIN',
  [OUTCOME.busy]: 'BUSY',
  [OUTCOME.error]: 'ERROR',
};

/** What the model said, in the terms of truth.jsonl. */
function observed(replica: Replica, limits: readonly LimitSpec[], truth: TruthRecord): object {
  const { model } = replica;
  const zones = limits.flatMap((_, index) => {
    const rc = RC_OF[model.outcomes[index]!];
    return rc === undefined ? [] : [{ index, rc, excessMilliReq: model.excessMilliReq[index] }];
  });
  const isRejectedByExcess =
    model.status === STATUS.rejected && model.outcomes[model.decidedBy] === OUTCOME.busy;
  return {
    zones,
    status: model.status,
    hasLimitingLine: isRejectedByExcess,
    hasDelayingLine: model.status === STATUS.delayed,
    delayMs: truth.delayMs === null ? null : model.delayMs,
  };
}

const STATUS_OF: Readonly<Record<string, number>> = {
  PASSED: STATUS.passed,
  DELAYED: STATUS.delayed,
  DELAYED_DRY_RUN: STATUS.delayed,
  REJECTED: STATUS.rejected,
  REJECTED_DRY_RUN: STATUS.rejected,
};

function expected(truth: TruthRecord): object {
  return {
    zones: truth.zones,
    status: STATUS_OF[truth.limitReqStatus],
    hasLimitingLine: truth.hasLimitingLine,
    hasDelayingLine: truth.hasDelayingLine,
    delayMs: truth.delayMs,
  };
}

/** New node, freed keys and their debt, for the traces that have them (one zone each). */
function checkEvictions(replica: Replica, truth: TruthRecord): void {
  const zone = replica.zones[0]!;
  const isTried = replica.model.created[0] === 1;
  const count = isTried ? zone.evictedCount : 0;
  assert.deepEqual(
    {
      isNewNode: isTried && replica.model.outcomes[0] === OUTCOME.ok,
      allocFailures: isTried ? zone.allocFailures : 0,
      keys: Array.from(zone.evictedKeys.subarray(0, count), (id) => replica.keyText(0, id)),
      excessMilliReq: Array.from(zone.evictedExcessMilliReq.subarray(0, count)),
    },
    {
      isNewNode: truth.isNewNode,
      allocFailures: truth.allocFailures ?? 0,
      keys: truth.evictedKeys ?? [],
      excessMilliReq: truth.evictedExcessMilliReq ?? [],
    },
    truth.requestId,
  );
}

for (const [name, spec] of Object.entries(SPECS)) {
  test(`every request of ${name}: rc, excess, status, delay, evictions`, () => {
    const dir = traceDir(name as TraceName);
    const lines = accessById(dir);
    const replica = new Replica(spec.zones);
    const records = inDecisionOrder(readTruth(dir));
    assert.ok(records.length > 50);
    for (const truth of records) {
      const line = lines.get(truth.requestId)!;
      const limits = spec.limits(line);
      replica.decide(line, limits, truth.decisionMonoMs!);
      assert.deepEqual(observed(replica, limits, truth), expected(truth), truth.requestId);
      if (truth.isNewNode !== null) checkEvictions(replica, truth);
    }
  });
}

test('o_keys_map_geo: requests whose keys are all empty get no status', () => {
  const dir = traceDir('o_keys_map_geo');
  const lines = accessById(dir);
  const spec = SPECS.o_keys_map_geo;
  const undecided = readTruth(dir).filter((truth) => truth.decisionMonoMs === null);
  assert.equal(undecided.length, 58);
  const replica = new Replica(spec.zones);
  for (const truth of undecided) {
    const line = lines.get(truth.requestId)!;
    const limits = spec.limits(line);
    replica.decide(line, limits, truth.requestLineMonoMs);
    assert.equal(replica.model.status, STATUS.none, truth.requestId);
    assert.ok(limits.every((_, i) => replica.model.outcomes[i] === OUTCOME.skipped));
  }
});

test('every request of p_reload: rate changed with the state kept, then size changed', () => {
  const dir = traceDir('p_reload');
  const lines = accessById(dir);
  const generations = workerGenerations(dir);
  assert.equal(generations.length, 3);
  const generationOf = (pid: number): number => generations.findIndex((pids) => pids.includes(pid));
  const limits: LimitSpec[][] = [[[0, 4, 2]], [[0, 10, 4]], [[0, 10, 4]]];
  let replica = new Replica([perKey('perkey', MIB, 5000)]);
  let current = 0;
  for (const truth of inDecisionOrder(readTruth(dir))) {
    const generation = generationOf(truth.pid);
    if (generation !== current) {
      if (generation === 1) replica.zones[0]!.rateMilliRps = 12_000;
      else replica = new Replica([perKey('perkey', 2 * MIB, 12_000)]);
      current = generation;
    }
    replica.decide(lines.get(truth.requestId)!, limits[current]!, truth.decisionMonoMs!);
    assert.deepEqual(observed(replica, limits[current]!, truth), expected(truth), truth.requestId);
  }
  assert.equal(current, 2);
});
