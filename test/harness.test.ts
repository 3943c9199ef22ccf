/**
 * The test support itself: what it says about a live nginx has to be true, or no oracle is.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, renameSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { findProgram, installLine, missingPrograms } from './support/debian.js';
import { startNginx } from './support/nginx.js';
import { ResponseReader } from './support/response-reader.js';
import { sendTraffic } from './support/traffic.js';
import { TurnClock } from './support/turn-clock.js';

function server(port: number | undefined, body: string): string {
  return `
    log_format line '$remote_addr $uri $status $http_x_mark';
    access_log access.log line;
    server { listen 127.0.0.1:${port}; location / { ${body} } }`;
}

test('nginx: a request reaches it as soon as it has started, from the address asked for', async (t) => {
  const nginx = await startNginx(t, { http: ([port]) => server(port, "return 200 'hello';") });
  const headers = { 'x-mark': 'seen' };
  const results = await sendTraffic(nginx.port, [
    { atMs: 0, path: '/a', localAddress: '127.0.0.9', headers },
  ]);
  await nginx.stop();
  assert.deepEqual(results, [{ status: 200 }]);
  assert.equal(readFileSync(nginx.path('access.log'), 'utf8'), '127.0.0.9 /a 200 seen\n');
});

test('nginx: a refused configuration is an error with its words', async (t) => {
  const started = startNginx(t, { http: ([port]) => server(port, 'limit_req zone=nowhere;') });
  await assert.rejects(started, /did not start: .*zero size shared memory zone "nowhere"/);
});

test('nginx: after a reload new workers answer; a refused one changes nothing', async (t) => {
  const nginx = await startNginx(t, { http: ([port]) => server(port, 'return 201;'), workers: 2 });
  assert.deepEqual(await nginx.reload(server(nginx.port, 'return 202;')), { ok: true, reason: '' });
  const afterReload = await sendTraffic(nginx.port, [{ atMs: 0, path: '/' }]);
  const refused = await nginx.reload(server(nginx.port, 'retrun 203;'));
  const afterRefusal = await sendTraffic(nginx.port, [{ atMs: 0, path: '/' }]);

  assert.equal(refused.ok, false);
  assert.match(refused.reason, /unknown directive "retrun"/);
  assert.deepEqual([...afterReload, ...afterRefusal], [{ status: 202 }, { status: 202 }]);
});

test('nginx: after a reopen it writes to a new file', async (t) => {
  const nginx = await startNginx(t, { http: ([port]) => server(port, 'return 204;'), workers: 2 });
  const log = nginx.path('access.log');
  await sendTraffic(nginx.port, [{ atMs: 0, path: '/before' }]);
  renameSync(log, `${log}.1`);
  assert.equal(existsSync(log), false);
  await nginx.reopen();
  await sendTraffic(nginx.port, [{ atMs: 0, path: '/after' }]);
  await nginx.stop();
  assert.equal(readFileSync(`${log}.1`, 'utf8'), '127.0.0.1 /before 204 -\n');
  assert.equal(readFileSync(log, 'utf8'), '127.0.0.1 /after 204 -\n');
});

test('traffic: answers on a shared connection are told apart, and a lost one is null', async (t) => {
  const nginx = await startNginx(t, {
    http: ([port]) => `
      server {
        listen 127.0.0.1:${port};
        location = /lost { return 444; }
        location = /none { return 204; }
        location = /text { return 418 'text'; }
      }`,
  });
  const shared = { keepAlive: 'one' };
  const results = await sendTraffic(nginx.port, [
    { atMs: 0, path: '/text', ...shared },
    { atMs: 0, path: '/none', ...shared, slowHeaderMs: 5 },
    { atMs: 1, path: '/text', ...shared, method: 'POST', body: 'body' },
    { atMs: 2, path: '/lost', ...shared },
  ]);
  assert.deepEqual(
    results.map(({ status }) => status),
    [418, 204, 418, null],
  );
});

test('responses are found whatever the pieces in which they arrive', () => {
  const text = [
    'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nHTTP/1.1 500',
    'HTTP/1.1 204 No Content\r\n\r\n',
    'HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n\r\n0\r\n\r\na\r\n0123456789\r\n0\r\n\r\n',
    'HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n',
  ].join('');
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }), (sizes) => {
      const statuses: number[] = [];
      const reader = new ResponseReader((status) => statuses.push(status));
      for (let at = 0, i = 0; at < text.length; i += 1) {
        const size = sizes[i % sizes.length]!;
        reader.push(Buffer.from(text.slice(at, at + size), 'latin1'));
        at += size;
      }
      assert.deepEqual(statuses, [200, 204, 503, 429]);
    }),
  );
});

test('turn clock: turns add up from any timer, before or after it', () => {
  const clock = new TurnClock();
  clock.beginTurn();
  clock.endTurn(5);
  clock.beginTurn();
  clock.anchor(1_012);
  clock.endTurn(7);
  clock.beginTurn();
  assert.deepEqual(
    [0, 1, 2, 3].map((turn) => clock.monoMs(turn)),
    [1_000, 1_005, 1_012, undefined],
  );
});

test('turn clock: two timers that disagree are an error, and no timer is one', () => {
  const clock = new TurnClock();
  clock.anchor(100);
  clock.beginTurn();
  clock.anchor(104);
  clock.endTurn(5);
  assert.throws(() => clock.monoMs(1), /contradicts itself in turn 1: .* 104 ms, .* 105 ms/);
  assert.throws(() => new TurnClock().monoMs(0), /no timer/);
});

test('programs: those not found are missing, with the line that installs each package once', () => {
  const programs = [
    { program: 'promtool', package: 'prometheus' },
    { program: 'prometheus', package: 'prometheus' },
    { program: 'here', package: 'here' },
  ];
  const missing = missingPrograms(programs, (name) => (name === 'here' ? '/bin/here' : undefined));
  assert.deepEqual(missing, programs.slice(0, 2));
  assert.equal(
    installLine(missing),
    'sudo apt-get update && sudo apt-get install -y --no-install-recommends prometheus',
  );
});

test('programs: found in the PATH given, and daemons where PATH does not look', () => {
  assert.equal(findProgram('sh', '/nowhere:/bin'), '/bin/sh');
  assert.match(findProgram('nginx', '') ?? '', /\/sbin\/nginx$/);
  assert.equal(findProgram('no-such-program', '/bin'), undefined);
});
