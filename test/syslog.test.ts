/**
 * Lines by syslog: from the real nginx over UDP and a unix datagram socket, and what is counted
 * when datagrams come faster than they are taken.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import fs from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { InputError } from '../src/errors.js';
import { receiveSyslog, type SyslogOptions, type SyslogReceiver } from '../src/input/syslog.js';
import { dropsIn } from '../src/input/syslog-drops.js';
import { syslogLineStart } from '../src/input/syslog-message.js';
import type { SyslogAddress } from '../src/input/syslog-worker.js';
import { startNginx } from './support/nginx.js';
import { makeTempDir } from './support/temp-dir.js';

const UDP: SyslogAddress = { kind: 'udp', host: '127.0.0.1', port: 0 };

/** A receiver that can be waited for. */
class Inbox {
  readonly lines: string[] = [];
  readonly sourceIds = new Set<string>();
  offset = 0;
  #receiver: SyslogReceiver | undefined;
  #woken: () => void = () => undefined;

  static async open(
    t: TestContext,
    address: SyslogAddress,
    options: SyslogOptions = {},
  ): Promise<[Inbox, SyslogReceiver]> {
    const inbox = new Inbox();
    const receiver = await receiveSyslog(address, {
      ...options,
      onReceived: () => {
        inbox.#woken();
      },
    });
    inbox.#receiver = receiver;
    t.after(() => receiver.close());
    return [inbox, receiver];
  }

  take(): void {
    this.#receiver!.take((bytes, start, end, offset, nextOffset, sourceId) => {
      assert.equal(offset, this.offset);
      this.offset = nextOffset;
      this.sourceIds.add(sourceId);
      this.lines.push(Buffer.from(bytes.subarray(start, end)).toString('latin1'));
    });
  }

  async until(isDone: () => boolean, takes = true): Promise<void> {
    for (;;) {
      const woken = new Promise<void>((resolve) => (this.#woken = resolve));
      if (takes) this.take();
      if (isDone()) return;
      await woken;
    }
  }
}

function request(port: number, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.resume();
      response.on('end', () => {
        resolve();
      });
    }).on('error', reject);
  });
}

async function assertNginxIsHeard(t: TestContext, inbox: Inbox, server: string): Promise<void> {
  const nginx = await startNginx(t, {
    http: ([port]) => `
      log_format plain '$request_uri $status';
      limit_req_zone $binary_remote_addr zone=one:32k rate=1r/m;
      server {
        listen 127.0.0.1:${port};
        access_log syslog:server=${server},tag=web,nohostname plain;
        error_log syslog:server=${server} error;
        limit_req zone=one;
      }`,
  });
  await request(nginx.ports[0]!, '/first');
  await request(nginx.ports[0]!, '/second');
  await inbox.until(() => inbox.lines.length >= 3);
  const limited = inbox.lines.filter((line) => line.includes('limiting requests, excess: 1.000'));
  assert.equal(limited.length, 1);
  assert.match(limited[0]!, /^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d \[error\] .* "GET \/second HTTP/);
  const access = inbox.lines.filter((line) => !line.includes('[error]') || line.startsWith('/'));
  assert.deepEqual(access, ['/first 404', '/second 503']);
}

test('nginx over UDP: access and error lines without their headers', async (t) => {
  const [inbox, receiver] = await Inbox.open(t, UDP);
  await assertNginxIsHeard(t, inbox, `127.0.0.1:${receiver.port}`);
  assert.equal(receiver.counters.datagrams, inbox.lines.length);
  assert.equal(receiver.counters.foreign, 0);
  await receiver.close();
  assert.equal(receiver.counters.kernelDrops, 0);
  assert.equal(receiver.counters.queueDrops, 0);
});

test('nginx to a unix datagram socket, which is removed at the end', async (t) => {
  const path = join(makeTempDir(t), 'nginx.sock');
  const [inbox, receiver] = await Inbox.open(t, { kind: 'path', path, mode: '0660' });
  assert.equal(fs.statSync(path).mode & 0o777, 0o660);
  await assertNginxIsHeard(t, inbox, `unix:${path}`);
  assert.deepEqual([...inbox.sourceIds], [`syslog:unix:${path}`]);
  await receiver.close();
  assert.equal(receiver.counters.kernelDrops, undefined);
  assert.equal(fs.existsSync(path), false);
});

test('a socket left by a process that was killed is replaced; one in use is not', async (t) => {
  const path = join(makeTempDir(t), 'nginx.sock');
  const address: SyslogAddress = { kind: 'path', path, mode: '0600' };
  const [, receiver] = await Inbox.open(t, address);
  await assert.rejects(
    receiveSyslog(address),
    (error) => error instanceof InputError && /bind: Address already in use/.test(error.message),
  );
  fs.renameSync(path, `${path}.left`);
  await receiver.close();
  fs.renameSync(`${path}.left`, path);
  const [, second] = await Inbox.open(t, address);
  assert.ok(fs.statSync(path).isSocket());
  await second.close();
});

test('a socket that systemd opened is taken over, with what waits in it', () => {
  const receive = `
    let receiver;
    const onReceived = () =>
      receiver?.take((bytes, start, end) => {
        process.stdout.write(Buffer.from(bytes.subarray(start, end)));
        void receiver.close();
      });
    import(process.argv[1]).then(async ({ receiveSyslog }) => {
      receiver = await receiveSyslog({ kind: 'descriptor', fd: 3 }, { onReceived });
      onReceived();
    });`;
  const open = `
    use Socket; use POSIX; $^F = 9;
    socketpair(my $nginx, my $own, AF_UNIX, SOCK_DGRAM, 0) or die;
    send($nginx, '<190>Nov 30 07:00:00 nginx: line', 0) or die;
    POSIX::dup2(fileno($own), 3) if fileno($own) != 3;
    exec @ARGV`;
  const module = new URL('../src/input/syslog.js', import.meta.url).href;
  const node = [process.execPath, '-e', receive, module];
  const output = execFileSync('perl', ['-e', open, ...node], { encoding: 'latin1' });
  assert.equal(output, 'line');
});

test('a UDP port in use is an error that names it', async (t) => {
  const [, receiver] = await Inbox.open(t, UDP);
  await assert.rejects(
    receiveSyslog({ kind: 'udp', host: '127.0.0.1', port: receiver.port }),
    (error) => error instanceof InputError && error.message.includes(`:${receiver.port}: cannot`),
  );
});

async function sendAll(t: TestContext, port: number, messages: readonly string[]): Promise<void> {
  const socket = createSocket('udp4');
  t.after(() => {
    socket.close();
  });
  for (const message of messages) {
    await new Promise<void>((resolve, reject) => {
      socket.send(message, port, '127.0.0.1', (error) => {
        if (error === null) resolve();
        else reject(error);
      });
    });
  }
}

test('beyond the bound of the queue datagrams are dropped and counted, and then taken again', async (t) => {
  const [inbox, receiver] = await Inbox.open(t, UDP, { mostQueuedBytes: 100 });
  const message = (n: number): string => `<190>Nov 30 07:00:00 host nginx: line ${n}`;
  await sendAll(t, receiver.port, [0, 1, 2, 3].map(message));
  // 38 bytes each: two fit.
  await inbox.until(() => receiver.counters.queueDrops === 2, false);
  await inbox.until(() => inbox.lines.length === 2);
  await sendAll(t, receiver.port, [message(4)]);
  await inbox.until(() => inbox.lines.length === 3);
  await receiver.close();
  assert.deepEqual(inbox.lines, ['line 0', 'line 1', 'line 4']);
  assert.equal(receiver.counters.queueDrops, 2);
});

test('what others send is given whole and counted', async (t) => {
  const [inbox, receiver] = await Inbox.open(t, UDP);
  await sendAll(t, receiver.port, ['hello', '<190>Nov 30 07:00:00 nginx: line']);
  await inbox.until(() => inbox.lines.length === 2);
  assert.deepEqual(inbox.lines, ['hello', 'line']);
  assert.equal(receiver.counters.foreign, 1);
});

const messages = [
  ['<190>Nov 30 07:00:00 host nginx: a: b', 'a: b'],
  ['<6>Nov  3 07:00:00 nginx: a', 'a'],
  ['<190>Nov 30 07:00:00 host nginx: ', undefined],
  ['<190>Nov 30 07:00:00 one two three: a', undefined],
  ['<1900>Nov 30 07:00:00 nginx: a', undefined],
  ['<190>', undefined],
  ['<190>Nov 30 07:00:00 nginx:', undefined],
  ['192.0.2.7 - - [02/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 0', undefined],
] as const;
for (const [message, line] of messages) {
  test(`syslog message: ${message}`, () => {
    const bytes = Buffer.from(`before${message}after`);
    const end = bytes.length - 'after'.length;
    const start = syslogLineStart(bytes, 'before'.length, end);
    const found = start < 0 || start === end ? undefined : bytes.toString('latin1', start, end);
    assert.equal(found, line);
  });
}

const UDP_TABLE = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  315: 0100007F:1FBB 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 66170 2 0000000000000000 42
  316: 00000000:1FBB 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 66171 2 0000000000000000 7
`;
const UDP6_TABLE = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
 1217: B80D0120000000000000000001000000:0202 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000   0        0 39 2 0000000000000000 5
`;

test('drops of the socket with that address and port, and no other', () => {
  assert.equal(dropsIn(UDP_TABLE, '127.0.0.1', 8123), 42);
  assert.equal(dropsIn(UDP_TABLE, '0.0.0.0', 8123), 7);
  assert.equal(dropsIn(UDP_TABLE, '127.0.0.1', 8124), undefined);
  assert.equal(dropsIn(UDP6_TABLE, '2001:db8::1', 514), 5);
});
