/**
 * A full zone of a real nginx: what it forgot, as nginx's debug log has it, and what
 * `limitlens zones` makes of the access log alone.
 *
 * One worker and one connection, so that the order of the requests is the same for all. At one
 * request per minute nothing drains that would matter while the test runs: excess stays within half
 * a request of a whole number, and milliseconds decide nothing. So all numbers must be equal.
 *
 * nginx logs which lookups made a node and which freed one, and does not say whose. An LRU of as many
 * keys as the zone holds has to give the same for every request; then it tells whose they were.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { ZoneAnalysis } from '../src/analysis/zones.js';
import { mustRun } from './support/cli.js';
import { readDebugTruth, type TruthRequest } from './support/debug-truth.js';
import { Dice } from './support/live-schedule.js';
import { startNginx } from './support/nginx.js';
import { sendTraffic } from './support/traffic.js';

const REQUESTS = 2400;
const KEYS = 900;
/** Of a 32k zone with keys up to 48 bytes. */
const CAPACITY = 191;
const BURST = 2000;
/** 1r/m, truncated. */
const RATE = 16;

/** Few keys often, many seldom; most come back only after the zone has gone round. */
function makeKeys(): string[] {
  const dice = new Dice(20_261_130);
  return Array.from({ length: REQUESTS }, () => `k${dice.zipf(KEYS)}`);
}

interface KeyState {
  excess: number;
  lastMs: number;
}

interface Truth {
  nodesCreated: number;
  recreated: number;
  evictions: number;
  evictionsInDebt: number;
  admittedByEviction: number;
  rejected: number;
}

function decayed(state: KeyState, nowMs: number): number {
  return state.excess - Math.trunc((RATE * (nowMs - state.lastMs)) / 1000);
}

/** Follows nginx's own decisions, and holds every step against its debug log. */
function follow(requests: readonly TruthRequest[]): Truth {
  const zone = new Map<string, KeyState>();
  const endless = new Map<string, KeyState>();
  const truth: Truth = {
    nodesCreated: 0,
    recreated: 0,
    evictions: 0,
    evictionsInDebt: 0,
    admittedByEviction: 0,
    rejected: 0,
  };
  for (const { requestLine, zones, decisionMonoMs: now } of requests) {
    const [{ rc, excessMilliReq, isNewNode, freedNodes }] = zones as [TruthRequest['zones'][0]];
    const key = /k=(k\d+)/.exec(requestLine)![1]!;
    const known = zone.get(key);
    assert.equal(isNewNode, known === undefined, requestLine);
    if (known === undefined) {
      truth.nodesCreated++;
      if (endless.has(key)) truth.recreated++;
      assert.equal(freedNodes, zone.size === CAPACITY ? 1 : 0, requestLine);
      if (freedNodes === 1) {
        const [[oldest, state]] = zone as unknown as [[string, KeyState]];
        zone.delete(oldest);
        truth.evictions++;
        if (decayed(state, now) > 0) truth.evictionsInDebt++;
      }
    }
    const excess = known === undefined ? 0 : Math.max(0, decayed(known, now) + 1000);
    assert.equal(excess, excessMilliReq, requestLine);
    assert.equal(rc, excess > BURST ? 'BUSY' : 'OK', requestLine);
    zone.delete(key);
    zone.set(key, rc === 'OK' ? { excess, lastMs: now } : known!);
    if (rc === 'BUSY') {
      truth.rejected++;
      continue;
    }
    const former = endless.get(key);
    const withoutEnd = former === undefined ? 0 : Math.max(0, decayed(former, now) + 1000);
    if (withoutEnd > BURST) truth.admittedByEviction++;
    else endless.set(key, { excess: withoutEnd, lastMs: now });
  }
  return truth;
}

function conf(port: number): string {
  return `
    log_format key '$msec $request_time $connection $connection_requests $limit_req_status $arg_k';
    log_format whole '[$time_local] $limit_req_status $arg_k';
    access_log key.log key;
    access_log whole.log whole;
    keepalive_requests 100000;
    limit_req_zone $arg_k zone=small:32k rate=1r/m;
    server {
      listen 127.0.0.1:${port};
      limit_req zone=small burst=2 nodelay;
      location / { empty_gif; }
    }`;
}

describe('a full zone of a live nginx', () => {
  let dir = '';
  let truth: Truth;
  const undo: (() => void | Promise<void>)[] = [];

  before(async () => {
    const cleanup = { after: (fn: () => void | Promise<void>) => void undo.push(fn) };
    const nginx = await startNginx(cleanup, { http: ([port]) => conf(port!) });
    await sendTraffic(
      nginx.port,
      makeKeys().map((k) => ({ atMs: 0, path: `/?k=${k}`, keepAlive: 'one' })),
    );
    await nginx.stop();
    dir = nginx.dir;
    truth = follow(readDebugTruth(readFileSync(nginx.path('debug.log'), 'latin1')));
    return async () => {
      for (const fn of undo.reverse()) await fn();
    };
  });

  async function zoneFrom(...logs: string[]): Promise<ZoneAnalysis> {
    const files = logs.map((log) => join(dir, log));
    const args = ['zones', '--conf', join(dir, 'nginx.conf'), ...files, '--format', 'json'];
    const { stdout } = await mustRun(args);
    const { zones } = JSON.parse(stdout) as { zones: ZoneAnalysis[] };
    assert.equal(zones.length, 1);
    return zones[0]!;
  }

  test('the traffic shows what is to be shown', () => {
    assert.ok(truth.evictions > 500, `${truth.evictions} evictions`);
    assert.ok(truth.recreated > 200, `${truth.recreated} keys came back forgotten`);
    assert.ok(truth.evictionsInDebt > 50, `${truth.evictionsInDebt} in debt`);
    assert.ok(truth.admittedByEviction > 30, `${truth.admittedByEviction} let in by it`);
    assert.ok(truth.rejected > 100, `${truth.rejected} rejected`);
  });

  for (const logs of [['key.log'], ['key.log', 'error.log']]) {
    test(`from ${logs.join(' and ')}: evictions and readmissions are nginx's`, async () => {
      const zone = await zoneFrom(...logs);
      assert.deepEqual(
        {
          nodesCreated: zone.keysCreated,
          evictions: zone.evictions,
          evictionsInDebt: zone.evictionsInDebt,
          admittedByEviction: zone.admittedByEviction,
          allocationFailures: zone.allocationFailures,
          nodes: zone.nodes,
          capacityNodes: zone.capacityNodes,
        },
        {
          nodesCreated: truth.nodesCreated,
          evictions: truth.evictions,
          evictionsInDebt: truth.evictionsInDebt,
          admittedByEviction: truth.admittedByEviction,
          allocationFailures: 0,
          nodes: CAPACITY,
          capacityNodes: CAPACITY,
        },
      );
    });
  }

  // Within a second only outcomes tell the order, so that a key may go a little sooner or later.
  test('from whole seconds and outcomes: nearly so', async () => {
    const zone = await zoneFrom('whole.log');
    const isNear = Math.abs(zone.evictions - truth.evictions) <= truth.evictions * 0.15;
    assert.ok(isNear, `${zone.evictions} evictions, and nginx had ${truth.evictions}`);
  });
});
