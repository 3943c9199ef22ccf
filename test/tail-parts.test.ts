/**
 * What the daemon's sources are made of: queues that hold lines back, standard input in pieces,
 * addresses of syslog, the zone that access logs show, and what a stream's lines are.
 */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { compileLogFormat } from '../parsers/access/line-scanner.js';
import { parseConf } from '../parsers/conf/read-conf.js';
import type { NginxConf } from '../parsers/conf/model.js';
import { LineQueue } from '../src/daemon/line-queue.js';
import { LiveLogs, planLive, syslogServers } from '../src/daemon/live-logs.js';
import { LateClock, ZoneFinder } from '../src/daemon/log-zone.js';
import { LogList } from '../src/daemon/tail-log.js';
import { InputError } from '../src/errors.js';
import { LiveLines } from '../src/input/live-lines.js';
import { addressFor, parseSyslogAddress } from '../src/input/syslog-address.js';
import { AccessFields } from '../src/replay/access-fields.js';

function conf(http: string): NginxConf {
  const text = `events {}\nhttp {\n${http}\n}\n`;
  return parseConf('/etc/nginx/nginx.conf', { read: () => text, glob: () => [] }, '/etc/nginx/');
}

function given(queue: LineQueue): string[] {
  const lines: string[] = [];
  while (queue.next()) {
    lines.push(Buffer.from(queue.bytes.subarray(queue.start, queue.end)).toString());
  }
  return lines;
}

test('a queue that holds lines gives them once they have been stored', () => {
  const queue = new LineQueue(0, true);
  const append = (text: string): void => queue.append(Buffer.from(text), 0, text.length);
  append('one');
  append('two');
  assert.deepEqual(given(queue), []);
  queue.show();
  append('three');
  assert.deepEqual(given(queue), ['one', 'two']);
  const { offset, lines } = queue.left(false);
  const restored = new LineQueue(offset, true);
  restored.refill(lines);
  assert.deepEqual(given(restored), []);
  restored.show();
  assert.deepEqual(given(restored), ['three']);
  assert.equal(restored.nextOffset, 'one\ntwo\nthree\n'.length);
});

test('a queue that holds lines goes on holding them when it grows', () => {
  const queue = new LineQueue(100, true);
  const line = Buffer.from('x'.repeat(5000));
  for (let i = 0; i < 3; i++) queue.append(line, 0, line.length);
  queue.show();
  for (let i = 0; i < 9; i++) queue.append(line, 0, line.length);
  assert.equal(given(queue).length, 3);
  queue.show();
  assert.equal(given(queue).length, 9);
});

test('standard input: lines in pieces, and a last one without newline', async () => {
  const stream = new PassThrough();
  let woken: () => void = () => undefined;
  const input = new LiveLines(stream, () => {
    woken();
  });
  const lines: string[] = [];
  const take = (): boolean =>
    input.take((bytes, start, end) => {
      lines.push(Buffer.from(bytes.subarray(start, end)).toString());
    });
  const received = async (write: () => void): Promise<void> => {
    const wait = new Promise<void>((resolve) => (woken = resolve));
    write();
    await wait;
    take();
  };
  await received(() => stream.write('one\ntw'));
  await received(() => stream.write('o\n\nthree'));
  assert.deepEqual(lines, ['one', 'two', '']);
  assert.equal(input.hasEnded, false);
  await received(() => stream.end());
  assert.deepEqual(lines, ['one', 'two', '', 'three']);
  assert.equal(input.hasEnded, true);
  assert.equal(take(), false);
});

test('standard input: whoever writes has to wait when nobody takes', async () => {
  const stream = new PassThrough();
  const input = new LiveLines(stream, () => undefined);
  const megabyte = Buffer.alloc(1 << 20, 'x\n');
  while (stream.write(megabyte) || !stream.isPaused()) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  let lines = 0;
  input.take(() => lines++);
  assert.equal(lines, 16 << 19);
  assert.equal(stream.isPaused(), false);
});

test('addresses of syslog', () => {
  const cases = [
    ['udp://127.0.0.1:5514', { kind: 'udp', host: '127.0.0.1', port: 5514 }],
    ['udp://[::1]:5514', { kind: 'udp', host: '::1', port: 5514 }],
    ['udp://0.0.0.0', { kind: 'udp', host: '0.0.0.0', port: 514 }],
    ['unix:/run/x.sock', { kind: 'path', path: '/run/x.sock', mode: '0666' }],
    ['unix:///run/x.sock?mode=0660', { kind: 'path', path: '/run/x.sock', mode: '0660' }],
    ['systemd:3', { kind: 'descriptor', fd: 3 }],
  ] as const;
  for (const [text, expected] of cases) assert.deepEqual(parseSyslogAddress(text), expected);
  for (const bad of ['127.0.0.1:514', 'udp://::1:514', 'udp://h:70000', 'tcp://h:1', 'unix:x']) {
    assert.throws(
      () => parseSyslogAddress(bad),
      (error) => error instanceof InputError && error.exitCode === 64,
      bad,
    );
  }
});

test('what to give for the servers that a configuration sends to', () => {
  const servers = syslogServers(
    conf(`
      access_log syslog:server=127.0.0.1,facility=local7,tag=web combined;
      access_log syslog:server=[::1]:5514 combined;
      error_log syslog:server=unix:/run/x.sock,nohostname;`),
  );
  assert.deepEqual(servers.map(addressFor), [
    'udp://127.0.0.1:514',
    'udp://[::1]:5514',
    'unix:/run/x.sock',
  ]);
});

const LOCAL = compileLogFormat({ name: 'l', escape: 'default', text: '[$time_local] $status' });

function finderAfter(line: string): ZoneFinder {
  const finder = new ZoneFinder(undefined, () => undefined);
  const fields = new AccessFields(LOCAL);
  const bytes = Buffer.from(line);
  assert.ok(LOCAL.scan(bytes, 0, bytes.length) < 0);
  finder.see(fields, bytes);
  return finder;
}

test('the zone that an access line shows, and its clock', () => {
  // No zone of this machine has that offset.
  const finder = finderAfter('[02/Mar/2026:10:00:00 +1337] 200');
  assert.deepEqual(finder.zone, { offsetMinutes: 13 * 60 + 37 });
  const clock = new LateClock(finder);
  assert.equal(clock.toEpochMs('2026/03/02 10:00:00'), Date.parse('2026-03-01T20:23:00Z'));
  const given = new ZoneFinder({ iana: 'Europe/Berlin' }, () => undefined);
  given.resume({ offsetMinutes: 0 });
  assert.deepEqual(given.zone, { iana: 'Europe/Berlin' });
});

test("this machine's own zone, which knows when clocks are set, where it has the offset", () => {
  const ms = Date.parse('2026-03-02T10:00:00Z');
  const minutes = -new Date(ms).getTimezoneOffset();
  const two = (n: number): string => String(n).padStart(2, '0');
  const offset = `${minutes < 0 ? '-' : '+'}${two(Math.floor(Math.abs(minutes) / 60))}${two(Math.abs(minutes) % 60)}`;
  const local = new Date(ms + minutes * 60_000).toISOString();
  const line = `[${local.slice(8, 10)}/Mar/2026:${local.slice(11, 19)} ${offset}] 200`;
  assert.equal(finderAfter(line).zone, 'system');
});

test('another offset than before is told once', () => {
  const told: number[] = [];
  const finder = new ZoneFinder({ offsetMinutes: 60 }, (minutes) => told.push(minutes));
  const fields = new AccessFields(LOCAL);
  for (const offset of ['+0100', '+0200', '+0200']) {
    const bytes = Buffer.from(`[02/Mar/2026:10:00:00 ${offset}] 200`);
    LOCAL.scan(bytes, 0, bytes.length);
    finder.compare(fields, bytes);
  }
  assert.deepEqual(told, [120]);
});

test('logs that come later stand by their names, whenever they came', () => {
  const error = (path: string) => ({ kind: 'error', path, isPrefixed: false }) as const;
  const one = new LogList([error('/z')]);
  const other = new LogList([error('/z')]);
  for (const path of ['/b', '/a', '/c']) one.add(error(path));
  for (const path of ['/c', '/b', '/a']) other.add(error(path));
  const paths = (list: LogList): string[] => list.inOrder.map(({ path }) => path);
  assert.deepEqual(paths(one), ['/z', '/a', '/b', '/c']);
  assert.deepEqual(paths(other), paths(one));
  assert.notEqual(one.numberOf('/a'), one.numberOf('/b'));
});

test('lines of a stream: by their format, error lines, and what fits nothing', () => {
  const parsed = conf(`
    log_format one '$remote_addr one $status';
    log_format two '$remote_addr two $status';
    access_log syslog:server=127.0.0.1 one;
    server { listen 1; server_name b; access_log syslog:server=127.0.0.1 two; }`);
  const plan = planLive({ kind: 'syslog', text: 'udp://127.0.0.1:514' }, parsed, undefined);
  const lines = [
    '192.0.2.7 one 200',
    '192.0.2.7 two 200',
    '2026/03/02 10:00:00 [warn] 5#5: *1 delaying request',
    '192.0.2.7 - - [02/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"',
    'nothing of the kind',
    'Mar  2 10:00:00 host nginx: 192.0.2.8 two 200',
  ];
  const routed: string[] = [];
  const unexpected: string[] = [];
  const input = {
    hasEnded: false,
    close: () => Promise.resolve(),
    take: (onLine: (bytes: Uint8Array, start: number, end: number) => void): boolean => {
      for (const line of lines) onLine(Buffer.from(`<${line}>`), 1, line.length + 1);
      return true;
    },
  };
  const live = new LiveLogs(plan, input, [parsed], [], {
    onLog: ({ path }) => {
      unexpected.push(path);
      return true;
    },
    onLine: ({ path }, bytes, start, end) => {
      routed.push(`${path}: ${Buffer.from(bytes.subarray(start, end)).toString()}`);
    },
  });
  assert.equal(live.take(), lines.length);
  const name = 'syslog:udp://127.0.0.1:514';
  assert.deepEqual(routed, [
    `${name} one: ${lines[0]}`,
    `${name} two: ${lines[1]}`,
    `${name} error: ${lines[2]}`,
    `${name} combined: ${lines[3]}`,
    `${name} one: ${lines[4]}`,
    `${name} two: 192.0.2.8 two 200`,
  ]);
  assert.deepEqual(unexpected, [`${name} combined`]);
});

test('lines of a stream whose requests another log holds are not read', () => {
  const parsed = conf(`log_format one '$remote_addr one $status'; access_log /dev/stdout one;`);
  const plan = planLive({ kind: 'stdin' }, parsed, undefined);
  const line = Buffer.from('192.0.2.7 one 200');
  const input = {
    hasEnded: false,
    close: () => Promise.resolve(),
    take: (onLine: (bytes: Uint8Array, start: number, end: number) => void): boolean => {
      onLine(line, 0, line.length);
      return true;
    },
  };
  const live = new LiveLogs(plan, input, [parsed], plan.access, {
    onLog: () => true,
    onLine: () => assert.fail('a line that another log holds'),
  });
  assert.equal(live.take(), 1);
});
