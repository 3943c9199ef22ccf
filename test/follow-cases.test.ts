/**
 * The follower in single situations: what it says, counts and keeps.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { FollowedLog } from '../src/input/follow.js';
import type { FollowOptions } from '../src/input/follow-options.js';
import {
  makeSourceId,
  unreadLog,
  type KnownLog,
  type OnLine,
} from '../src/input/follow-progress.js';
import { FollowedLogs } from '../src/input/follow-set.js';
import { isRotatedName, listRotated } from '../src/input/follow-rotated.js';
import { hashBytes } from '../src/input/head.js';
import { TimedWaker } from '../src/input/watch.js';
import { makeTempDir } from './support/temp-dir.js';

const GRACE_MS = 30_000;

interface Followed {
  readonly path: string;
  readonly given: string[];
  readonly notices: string[];
  readonly onLine: OnLine;
  log: FollowedLog;
  nowMs: number;
  restart(options?: FollowOptions): Promise<void>;
}

function follow(t: TestContext, options: FollowOptions = {}): Followed {
  const path = join(makeTempDir(t), 'access.log');
  const given: string[] = [];
  const notices: string[] = [];
  const open = (known: readonly KnownLog[]): FollowedLog =>
    new FollowedLog(path, {
      known,
      clock: () => followed.nowMs,
      graceMs: GRACE_MS,
      onNotice: ({ kind }) => notices.push(kind),
      ...options,
    });
  const followed: Followed = {
    path,
    given,
    notices,
    onLine: (bytes, start, end) => {
      given.push(Buffer.from(bytes.subarray(start, end)).toString('latin1'));
    },
    log: open([]),
    nowMs: 0,
    restart: async () => {
      const known = followed.log.progress();
      await followed.log.close();
      followed.log = open(known);
    },
  };
  t.after(() => followed.log.close());
  return followed;
}

test('a last line without newline waits for its end', async (t) => {
  const f = follow(t);
  fs.writeFileSync(f.path, 'one\ntw');
  assert.equal(await f.log.poll(f.onLine), true);
  assert.equal(await f.log.poll(f.onLine), false);
  assert.equal(f.log.lagBytes, 2);
  fs.appendFileSync(f.path, 'o\n');
  await f.log.poll(f.onLine);
  assert.deepEqual(f.given, ['one', 'two']);
  assert.equal(f.log.lagBytes, 0);
});

test('a file and its folder may appear later, vanish and come back', async (t) => {
  const folder = join(makeTempDir(t), 'nginx');
  const path = join(folder, 'access.log');
  const kinds: string[] = [];
  const log = new FollowedLog(path, { onNotice: ({ kind }) => kinds.push(kind) });
  t.after(() => log.close());
  const lines: string[] = [];
  const onLine: OnLine = (bytes, start, end) => {
    lines.push(Buffer.from(bytes.subarray(start, end)).toString());
  };
  await log.poll(onLine);
  fs.mkdirSync(folder);
  await log.poll(onLine);
  fs.writeFileSync(path, 'one\n');
  await log.poll(onLine);
  fs.rmSync(folder, { recursive: true });
  await log.poll(onLine);
  fs.mkdirSync(folder);
  fs.writeFileSync(path, 'two\n');
  await log.poll(onLine);
  assert.deepEqual(lines, ['one', 'two']);
  assert.deepEqual(kinds, ['missing', 'appeared', 'missing', 'rotated', 'appeared']);
});

test('what cannot be opened is told once, and tried again', async (t) => {
  const f = follow(t);
  fs.symlinkSync(f.path, f.path);
  assert.equal(await f.log.poll(f.onLine), false);
  await f.log.poll(f.onLine);
  assert.match(f.log.problem ?? '', /ELOOP/);
  assert.equal(f.log.counters.readErrors, 2);
  fs.unlinkSync(f.path);
  fs.writeFileSync(f.path, 'one\n');
  await f.log.poll(f.onLine);
  assert.equal(f.log.problem, undefined);
  assert.deepEqual(f.notices, ['unreadable', 'appeared']);
  assert.deepEqual(f.given, ['one']);
});

test('a symbolic link is followed to where it leads, also when it leads elsewhere then', async (t) => {
  const folder = makeTempDir(t);
  const f = follow(t);
  fs.writeFileSync(join(folder, 'a.log'), 'one\n');
  fs.symlinkSync(join(folder, 'a.log'), f.path);
  await f.log.poll(f.onLine);
  assert.ok(f.log.folders.includes(fs.realpathSync(folder)));
  fs.appendFileSync(join(folder, 'a.log'), 'two\n');
  fs.renameSync(join(folder, 'a.log'), join(folder, 'a.log.1'));
  fs.writeFileSync(join(folder, 'a.log'), 'three\n');
  await f.log.poll(f.onLine);
  fs.writeFileSync(join(folder, 'b.log'), 'four\n');
  fs.unlinkSync(f.path);
  fs.symlinkSync(join(folder, 'b.log'), f.path);
  await f.log.poll(f.onLine);
  assert.deepEqual(f.given, ['one', 'two', 'three', 'four']);
});

test('an inode used again by another file is another file', async (t) => {
  const f = follow(t);
  fs.writeFileSync(f.path, 'one\n');
  await f.log.poll(f.onLine);
  const [known] = f.log.progress();
  await f.log.close();
  fs.writeFileSync(f.path, 'two\nthree\n');
  assert.equal(fs.statSync(f.path).ino, known!.inode);
  f.log = new FollowedLog(f.path, { known: [known!] });
  await f.log.poll(f.onLine);
  assert.deepEqual(f.given, ['one', 'two', 'three']);
});

test('a file written anew to the same length between two polls is read from its start', async (t) => {
  const f = follow(t);
  fs.writeFileSync(f.path, 'one\n');
  await f.log.poll(f.onLine);
  fs.writeFileSync(f.path, 'two\n');
  await f.log.poll(f.onLine);
  assert.deepEqual(f.given, ['one', 'two']);
  assert.equal(f.log.counters.truncations, 1);
});

test('bytes seen and cut before they were read are counted as lost', async (t) => {
  const f = follow(t);
  fs.writeFileSync(f.path, 'one\ntwo\nthr');
  await f.log.poll(f.onLine);
  fs.writeFileSync(f.path, 'new\n');
  await f.log.poll(f.onLine);
  assert.deepEqual(f.given, ['one', 'two', 'new']);
  assert.equal(f.log.counters.lostBytes, 'thr'.length);
  assert.deepEqual(f.notices, ['truncated', 'lost']);
});

test('a renamed file is read while its successor is empty, and for the grace period after', async (t) => {
  const f = follow(t);
  fs.writeFileSync(f.path, 'one\n');
  await f.log.poll(f.onLine);
  fs.renameSync(f.path, `${f.path}.1`);
  fs.writeFileSync(f.path, '');
  await f.log.poll(f.onLine);
  f.nowMs += 10 * GRACE_MS;
  await f.log.poll(f.onLine);
  fs.appendFileSync(`${f.path}.1`, 'two\n');
  fs.appendFileSync(f.path, 'three\n');
  await f.log.poll(f.onLine);
  f.nowMs += GRACE_MS - 1;
  await f.log.poll(f.onLine);
  fs.appendFileSync(`${f.path}.1`, 'late\n');
  await f.log.poll(f.onLine);
  assert.deepEqual(f.given, ['one', 'two', 'three', 'late']);
  const open = (): boolean[] => f.log.progress().map((known) => known.complete);
  assert.deepEqual(open(), [false, false]);
  f.nowMs += GRACE_MS;
  await f.log.poll(f.onLine);
  assert.deepEqual(open(), [true, false]);
});

test('a removed file is let go after the grace period', async (t) => {
  const f = follow(t);
  fs.writeFileSync(f.path, 'one\n');
  await f.log.poll(f.onLine);
  assert.equal(heldOpen(f.path), 1);
  fs.unlinkSync(f.path);
  await f.log.poll(f.onLine);
  f.nowMs += GRACE_MS;
  await f.log.poll(f.onLine);
  assert.equal(heldOpen(f.path), 0);
});

/** How many of our descriptors are of a file, which may have been removed. */
function heldOpen(path: string): number {
  return fs.readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${fd}`).startsWith(path);
    } catch {
      // The descriptor that listed the folder is gone by now.
      return false;
    }
  }).length;
}

test('downtime over several rotations: the predecessor to its end, then the newer ones', async (t) => {
  const f = follow(t);
  fs.writeFileSync(f.path, 'one\n');
  await f.log.poll(f.onLine);
  fs.writeFileSync(`${f.path}.4.gz`, gzipSync('older\n'));
  fs.utimesSync(`${f.path}.4.gz`, 1000, 1000);
  fs.writeFileSync(`${f.path}.3.gz`, gzipSync('one\ntwo\n'));
  fs.writeFileSync(`${f.path}.2.gz`, gzipSync('three\n'));
  fs.writeFileSync(`${f.path}.1`, 'four\n');
  fs.unlinkSync(f.path);
  fs.writeFileSync(f.path, 'five\n');
  await f.restart();
  await f.log.poll(f.onLine);
  assert.deepEqual(f.given, ['one', 'two', 'three', 'four', 'five']);
  await f.restart();
  await f.log.poll(f.onLine);
  assert.equal(f.given.length, 5);
});

test('a predecessor that is gone is said to be lost; rotated files of before are not read', async (t) => {
  const f = follow(t);
  fs.writeFileSync(`${f.path}.1`, 'older\n');
  fs.utimesSync(`${f.path}.1`, 1000, 1000);
  fs.writeFileSync(f.path, 'one\n');
  await f.log.poll(f.onLine);
  fs.writeFileSync(f.path, 'two\n');
  await f.restart();
  await f.log.poll(f.onLine);
  assert.deepEqual(f.given, ['one', 'two']);
  assert.equal(f.log.counters.lostLogs, 1);
  assert.deepEqual(f.notices, ['lost']);
});

test('damaged gzip is lost from where it is damaged, and not tried for ever', async (t) => {
  const f = follow(t, { withRotated: true });
  fs.writeFileSync(`${f.path}.1.gz`, gzipSync('one\ntwo\n').subarray(0, 20));
  fs.writeFileSync(f.path, 'three\n');
  while (await f.log.poll(f.onLine));
  assert.equal(f.given.at(-1), 'three');
  assert.equal(f.log.counters.lostLogs, 1);
});

test('a range noted before a crash is read again: the same source, and no further', async (t) => {
  const f = follow(t);
  fs.writeFileSync(`${f.path}.1`, 'one\ntwo\nthree\n');
  fs.writeFileSync(f.path, 'four\n');
  const pending = unreadLog(f.path, makeSourceId(f.path, Buffer.from('one')));
  f.log = new FollowedLog(f.path, { known: [pending] });
  const upTo = (id: string): number => (id === pending.sourceId ? 'one\ntwo\n'.length : 0);
  await f.log.poll(f.onLine, { upTo });
  assert.deepEqual(f.given, ['one', 'two']);
  await f.log.poll(f.onLine);
  assert.deepEqual(f.given, ['one', 'two', 'three', 'four']);
});

test('progress has the hashes that an import compares', async (t) => {
  const f = follow(t);
  const text = 'x'.repeat(99).concat('\n').repeat(100);
  fs.writeFileSync(f.path, text);
  await f.log.poll(f.onLine);
  const [known] = f.log.progress();
  assert.equal(known?.offset, text.length);
  assert.equal(known.headLength, 4096);
  assert.equal(known.headHash, hashBytes(Buffer.from(text.slice(0, 4096))));
  assert.equal(known.tailHash, hashBytes(Buffer.from(text.slice(-4096))));
});

test('mostBytes stops after the block that exceeds it', async (t) => {
  const f = follow(t);
  fs.writeFileSync(f.path, `${'x'.repeat(999)}\n`.repeat(1000));
  assert.equal(await f.log.poll(f.onLine, { mostBytes: 1000 }), true);
  assert.ok(f.given.length < 1000);
  assert.equal(f.log.lagBytes, 1_000_000 - f.given.length * 1000);
  while (await f.log.poll(f.onLine, { mostBytes: 1000 }));
  assert.equal(f.given.length, 1000);
});

test('a line without end is given in pieces', async (t) => {
  const f = follow(t);
  fs.writeFileSync(f.path, `${'x'.repeat((1 << 20) + 5)}\nshort\n`);
  await f.log.poll(f.onLine);
  assert.deepEqual(
    f.given.map((line) => line.length),
    [1 << 20, 5, 5],
  );
});

test('an error of the receiver is not taken for one of the file', async (t) => {
  const f = follow(t);
  fs.writeFileSync(f.path, 'one\n');
  const own = Object.assign(new Error('no space'), { code: 'ENOSPC' });
  await assert.rejects(
    f.log.poll(() => {
      throw own;
    }),
    own,
  );
  assert.equal(f.log.counters.readErrors, 0);
});

test('a pattern matches later, leaves rotated files out, and takes two names for one', async (t) => {
  const folder = makeTempDir(t);
  const given: string[] = [];
  const onLine: OnLine = (bytes, start, end) => {
    given.push(Buffer.from(bytes.subarray(start, end)).toString());
  };
  const logs = new FollowedLogs([join(folder, '*', 'access.log*')]);
  t.after(() => logs.close());
  await logs.poll(onLine);
  assert.deepEqual(logs.folders, [folder]);
  fs.mkdirSync(join(folder, 'a'));
  fs.writeFileSync(join(folder, 'a', 'access.log'), 'one\n');
  fs.writeFileSync(join(folder, 'a', 'access.log.1'), 'zero\n');
  fs.symlinkSync('access.log', join(folder, 'a', 'access.log_link'));
  await logs.poll(onLine);
  assert.deepEqual(given, ['one']);
  assert.deepEqual(
    logs.logs.map((log) => log.path),
    [join(folder, 'a', 'access.log')],
  );
  const known = logs.progress();
  await logs.close();
  fs.renameSync(join(folder, 'a', 'access.log'), join(folder, 'a', 'access.log.1'));
  fs.appendFileSync(join(folder, 'a', 'access.log.1'), 'two\n');
  const later = new FollowedLogs([join(folder, '*', 'access.log*')], { known });
  t.after(() => later.close());
  await later.poll(onLine);
  assert.deepEqual(given, ['one', 'two']);
});

const rotatedNames = [
  ['access.log', false],
  ['access.log.1', true],
  ['access.log.12.gz', true],
  ['access.log-20260302', true],
  ['access-20260302.log', false],
  ['0.log.20260302-101500', true],
  ['site.example-80.log', false],
] as const;
for (const [name, isRotated] of rotatedNames) {
  test(`${name} is ${isRotated ? '' : 'not '}a rotated name by itself`, () => {
    assert.equal(isRotatedName(name), isRotated);
  });
}

test('rotated files are listed oldest first, and half-packed ones not', async (t) => {
  const folder = makeTempDir(t);
  const names = ['access.log.1', 'access.log.1.gz', 'access.log.2.gz', 'access.log.10.gz'];
  for (const name of [...names, 'access.log', 'other.log.1']) {
    fs.writeFileSync(join(folder, name), '');
  }
  const listed = await listRotated(join(folder, 'access.log'));
  assert.deepEqual(
    listed.map(({ path }) => path.slice(folder.length + 1)),
    ['access.log.10.gz', 'access.log.2.gz', 'access.log.1'],
  );
});

test('a change in a watched folder wakes long before the interval ends', async (t) => {
  const folder = makeTempDir(t);
  const waker = new TimedWaker({ intervalMs: 1 << 30, pauseMs: 0 });
  t.after(() => {
    waker.close();
  });
  waker.watch([folder, join(folder, 'missing')]);
  const woken = waker.wait();
  fs.writeFileSync(join(folder, 'access.log'), 'one\n');
  await woken;
  waker.wake();
  await waker.wait();
});

test('closing ends a wait', async () => {
  const waker = new TimedWaker({ intervalMs: 1 << 30, pauseMs: 1 << 30 });
  const waiting = waker.wait();
  waker.close();
  await waiting;
  await waker.wait();
});
