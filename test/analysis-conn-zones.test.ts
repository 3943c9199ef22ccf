/**
 * limit_conn zones from logs and from the store: nodes held, and what was refused.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ConnZoneAnalysis } from '../src/analysis/conn-zones.js';
import { connZonesText } from '../src/analysis/conn-zones-text.js';
import { zonesCommand, type ZonesOptions } from '../src/commands/zones.js';
import { LOG_OPTIONS, outputOf, storeOf } from './support/analysed.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';
import { accessById, readTruth, traceDir } from './support/truth.js';

const Q = 'test/traces/q_limit_conn';
const Q_CONF = { conf: [join(Q, 'nginx.conf')], errorLog: [join(Q, 'error.log')] };

async function connZones(
  files: readonly string[],
  options: Partial<ZonesOptions>,
): Promise<ConnZoneAnalysis[]> {
  const { text } = await outputOf((output) =>
    zonesCommand(files, { ...LOG_OPTIONS, conf: [], format: 'json', ...options }, output),
  );
  return (JSON.parse(text) as { connZones: ConnZoneAnalysis[] }).connZones;
}

/** The most nodes by 10 s and in all, from the debug log: keys with connections, in lock order. */
function truthNodes(): { most: number; steps: Map<number, number> } {
  const keys = accessById(traceDir('q_limit_conn'));
  const events = readTruth(traceDir('q_limit_conn')).flatMap((record) => {
    const { requestId, connSeq, connReleaseSeq, isConnRejected } = record;
    const { decisionWallMs, decisionMonoMs, connMonoMs, connReleaseMonoMs } = record;
    if (isConnRejected !== false || connSeq === null || connReleaseSeq === null) return [];
    const wallMs = (monoMs: number | null): number => monoMs! - decisionMonoMs! + decisionWallMs!;
    const { key } = keys.get(requestId)!;
    return [
      { seq: connSeq, atMs: wallMs(connMonoMs), key, change: 1 },
      { seq: connReleaseSeq, atMs: wallMs(connReleaseMonoMs), key, change: -1 },
    ];
  });
  const held = new Map<string, number>();
  const steps = new Map<number, number>();
  let most = 0;
  for (const { atMs, key, change } of events.toSorted((a, b) => a.seq - b.seq)) {
    const before = held.size;
    const connections = (held.get(key) ?? 0) + change;
    if (connections === 0) held.delete(key);
    else held.set(key, connections);
    const step = Math.floor(atMs / 10_000) * 10_000;
    steps.set(step, Math.max(steps.get(step) ?? 0, before, held.size));
    most = Math.max(most, held.size);
  }
  return { most, steps };
}

test('q_limit_conn from its logs: nodes are those of the debug log, rejections those of the log', async () => {
  const [zone, ...others] = await connZones([join(Q, 'access.log')], Q_CONF);
  assert.deepEqual(others, []);
  const truth = truthNodes();
  assert.ok(truth.most > 1);
  assert.deepEqual(
    [zone!.kind, zone!.zone, zone!.keyExpression, zone!.sizeBytes],
    ['limit_conn', 'conns', '$arg_k', 1 << 20],
  );
  assert.deepEqual([zone!.passed, zone!.rejected, zone!.exhausted], [154, 102, 0]);
  const { occupancy } = zone!;
  assert.equal(occupancy!.nodesMax, truth.most);
  assert.equal(occupancy!.modelledRejected, 102);
  assert.deepEqual(
    occupancy!.steps,
    Array.from(truth.steps, ([timeMs, nodes]) => ({ timeMs, nodes })),
  );
  assert.deepEqual(
    zone!.capacityByKeyLength.map(({ capacityNodes }) => capacityNodes),
    [16191, 8064, 4032, 2016],
  );
  assert.deepEqual(zone!.lowerBound, []);
  assert.match(connZonesText([zone!]), /^conns +1m +3 +16,191 +0\.02 % +154 +102 +0$/m);
});

test('the store knows what was refused, and says where nodes are to be had from', async (t) => {
  const store = await storeOf(t, Q);
  const [zone] = await connZones([], { store, conf: [join(Q, 'nginx.conf')] });
  assert.equal(zone!.occupancy, null);
  assert.deepEqual([zone!.passed, zone!.rejected, zone!.sizeBytes], [154, 102, 1 << 20]);
  assert.match(zone!.unknowns[0]!, /give the logs/);
  const [untold] = await connZones([], { store });
  assert.deepEqual([untold!.sizeBytes, untold!.lowerBound], [null, null]);
  assert.match(connZonesText([untold!]), /^conns +- +- +- +- +154 +102 +0$/m);
});

test('a log without times of requests does not tell nodes, and names the field', async () => {
  const [zone] = await connZones([join(Q, 'combined.log')], Q_CONF);
  assert.equal(zone!.occupancy, null);
  assert.match(zone!.unknowns[0]!, /\$request_time/);
});

const FLOOD_CONF = `events {} http {
  log_format t '$msec $request_time "$request" $status $limit_conn_status $arg_k';
  limit_conn_zone $arg_k zone=cz:32k;
  server {
    server_name s;
    access_log a.log t;
    location / { limit_conn cz 1; }
    location /quiet { access_log off; limit_conn cz 1; }
  }
}`;

/** So many keys at once, for a second: those behind the first `fit` were refused. */
function flood(t: Cleanup, keys: number, fit: number): { conf: string; log: string } {
  const dir = makeTempDir(t);
  const [conf, log] = [join(dir, 'nginx.conf'), join(dir, 'a.log')];
  writeFileSync(conf, FLOOD_CONF);
  const lines = Array.from({ length: keys }, (_, n) => {
    const beganMs = 1_800_000_000_000 + n;
    const tookMs = n < fit ? 1000 : 0;
    const end = `${((beganMs + tookMs) / 1000).toFixed(3)} ${(tookMs / 1000).toFixed(3)}`;
    const status = n < fit ? '200 PASSED' : '503 REJECTED';
    return { atMs: beganMs + tookMs, line: `${end} "GET /?k=k${n} HTTP/1.1" ${status} k${n}` };
  });
  const inOrder = lines.toSorted((a, b) => a.atMs - b.atMs);
  writeFileSync(log, inOrder.map(({ line }) => `${line}\n`).join(''));
  return { conf, log };
}

test('a zone of 32k holds 383 keys at once, and refuses more for want of memory', async (t) => {
  const { conf, log } = flood(t, 400, 383);
  const [zone] = await connZones([log], { conf: [conf] });
  const { occupancy } = zone!;
  assert.deepEqual(
    [occupancy!.nodesMax, occupancy!.capacityNodes, occupancy!.headroomNodes],
    [383, 383, 0],
  );
  assert.deepEqual([occupancy!.modelledExhausted, occupancy!.modelledRejected], [17, 0]);
  assert.deepEqual(occupancy!.steps, [{ timeMs: 1_800_000_000_000, nodes: 383 }]);
  // Requests of /quiet are in no log.
  assert.match(zone!.lowerBound![0]!.why, /access_log off/);
  assert.match(connZonesText([zone!]), /^cz +32k +≥ 383 +383 +100\.00 % /m);
});
