/**
 * Zone memory against a live nginx: keys of every slot size and of whole pages, in two small
 * zones, from a seeded generator. At one request per minute without burst the clock decides
 * nothing: a key that the zone remembers is rejected, one that it forgot passes, and a failed
 * allocation leaves its alert. So nginx's logs must be the model's, line by line.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { LimitReqModel, OUTCOME, type ModelLimit } from '../src/limit-req/limits.js';
import { ZoneMemory } from '../src/limit-req/zone-memory.js';
import { startNginx } from './support/nginx.js';
import { sendTraffic } from './support/traffic.js';

const REQUESTS = 1500;
const NOW_MS = 8_000_000;
/** Mostly short keys, so that long ones must take pages from them; up to three pages. */
const KEY_LENGTHS = [8, 8, 8, 8, 8, 8, 40, 60, 200, 600, 1200, 2100, 5000, 9000];
const ZONES = [
  { name: 'small', sizeBytes: 32 * 1024 },
  { name: 'larger', sizeBytes: 64 * 1024 },
];

interface Request {
  readonly zone: number;
  readonly key: string;
}

/** Numbers from 0 to below `below`, the same on every run (a linear congruential generator). */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

function makeRequests(): Request[] {
  const next = seeded(20_261_130);
  return Array.from({ length: REQUESTS }, () => {
    const length = KEY_LENGTHS[next(KEY_LENGTHS.length)]!;
    // Short keys come from a large set, long ones from a small one; both come again.
    const serial = next(length < 60 ? 400 : 20);
    return { zone: next(ZONES.length), key: String(serial).padStart(length, 'k') };
  });
}

/** What the model expects of access.log and, for the limits, of error.log. */
function expectedLogs(requests: readonly Request[]): { access: string[]; error: string[] } {
  const model = new LimitReqModel(
    ZONES.map(
      ({ name, sizeBytes }) =>
        new ZoneMemory({ sizeBytes, nameLength: name.length, rateMilliRps: 16 }),
    ),
  );
  const limits = ZONES.map((_, zone): ModelLimit[] => [
    { zone, burstMilliReq: 0, delayMilliReq: 0 },
  ]);
  const ids = new Map<string, number>();
  const error: string[] = [];
  const access = requests.map(({ zone, key }) => {
    const id = ids.get(key) ?? ids.size;
    ids.set(key, id);
    model.decide(limits[zone]!, [id], [key.length], NOW_MS);
    const outcome = model.outcomes[0]!;
    if (outcome === OUTCOME.error) error.push(`exhausted ${ZONES[zone]!.name}`);
    if (outcome === OUTCOME.busy) error.push(`limiting ${ZONES[zone]!.name}`);
    return `${outcome === OUTCOME.ok ? 'PASSED' : 'REJECTED_DRY_RUN'} ${key}`;
  });
  return { access, error };
}

function loggedErrors(text: string): string[] {
  const pattern =
    /could not allocate node in limit_req zone "(\w+)"|limiting requests.* by zone "(\w+)"/;
  return text.split('\n').flatMap((line) => {
    const found = pattern.exec(line);
    if (found === null) return [];
    const [, exhausted, limiting] = found;
    return [exhausted === undefined ? `limiting ${limiting}` : `exhausted ${exhausted}`];
  });
}

test('1500 keys of all lengths: nginx remembers, forgets and fails as the model does', async (t) => {
  const requests = makeRequests();
  const nginx = await startNginx(t, {
    http: ([port]) => `
      log_format key '$limit_req_status $arg_k';
      access_log access.log key;
      keepalive_requests 100000;
      large_client_header_buffers 8 128k;
      ${ZONES.map(({ name, sizeBytes }) => `limit_req_zone $arg_k zone=${name}:${sizeBytes} rate=1r/m;`).join('\n')}
      server {
        listen 127.0.0.1:${port};
        limit_req_dry_run on;
        ${ZONES.map(({ name }, i) => `location = /${i} { limit_req zone=${name}; empty_gif; }`).join('\n')}
      }`,
  });
  const results = await sendTraffic(
    nginx.port,
    requests.map(({ zone, key }) => ({ atMs: 0, path: `/${zone}?k=${key}`, keepAlive: 'one' })),
  );
  assert.ok(results.every(({ status }) => status === 200));
  await nginx.stop();
  const expected = expectedLogs(requests);
  const access = readFileSync(nginx.path('access.log'), 'latin1').trimEnd().split('\n');
  assert.deepEqual(access, expected.access);
  assert.deepEqual(loggedErrors(readFileSync(nginx.path('error.log'), 'latin1')), expected.error);
  // All three outcomes must be there often, or the test shows nothing.
  const count = (kind: string): number =>
    expected.error.filter((line) => line.startsWith(kind)).length;
  assert.ok(count('exhausted') > 100 && count('limiting') > 100);
  assert.ok(expected.error.length < requests.length - 100);
});
