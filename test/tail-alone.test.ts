/**
 * A daemon that is not alone: a second one on the same store, spool or instance is refused, with what
 * to do about it. And a disk that has no room for the spool: said, waited for, and nothing lost.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, beforeEach, test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Place } from '../src/daemon/spool.js';
import { EXIT } from '../src/errors.js';
import { openStore } from '../src/store/store.js';
import { startFakeServer } from './support/clickhouse-http.js';
import {
  assertSameRows,
  captureLines,
  storedRows,
  TailSite,
  type LogLine,
  type StoredRows,
  type TailProcess,
} from './support/tail-site.js';
import { makeTempDir } from './support/temp-dir.js';

const LINES = captureLines(1);
const LINES_PER_WRITE = 5;

let removeData: () => unknown = () => undefined;
const dataPath = makeTempDir({ after: (remove) => (removeData = remove) });
const server = await startFakeServer({ dataPath });
after(async () => {
  await server.close();
  removeData();
});
let scenes = 0;
beforeEach(() => {
  scenes++;
});

/** A site whose daemons share a database of the server. */
class Scene extends TailSite {
  readonly #t: TestContext;
  readonly #database = `alone_${scenes}`;

  constructor(t: TestContext) {
    super(makeTempDir(t));
    this.#t = t;
  }

  /** Starts a daemon; it is killed when the test ends. */
  start(spool = 'spool'): TailProcess {
    return this.over(this.#store(this.#database), '--spool', this.path(spool));
  }

  over(store: readonly string[], ...more: readonly string[]): TailProcess {
    const daemon = this.tail(store, ...more, '--commit-interval', '20ms');
    this.#t.after(() => daemon.child.kill('SIGKILL'));
    return daemon;
  }

  /** Compares what the daemons have stored with an import of the logs. */
  async compare(): Promise<void> {
    const imported = `${this.#database}_imported`;
    await this.import(this.#store(imported));
    assertSameRows(await rowsOf(this.#database), await rowsOf(imported));
  }

  #store(database: string): readonly string[] {
    return ['--clickhouse', server.url, '--database', database];
  }
}

async function rowsOf(database: string): Promise<StoredRows> {
  const store = await openStore({ url: server.url, database, createIfMissing: false });
  const rows = await storedRows(store);
  await store.close();
  return rows;
}

function part(n: 0 | 1 | 2 | 3): LogLine[] {
  const share = Math.ceil(LINES.length / 4);
  return LINES.slice(n * share, (n + 1) * share);
}

test('a second daemon on an embedded store is refused; the first goes on', async (t) => {
  const site = new Scene(t);
  const store = ['--store', site.path('store')];
  site.write(part(0));
  const first = site.over(store);
  await first.until('"stored"');
  for (const spool of [[], ['--spool', site.path('other')]]) {
    const second = site.over(store, ...spool);
    assert.deepEqual(await second.exit, [EXIT.io, null], second.said);
    assert.ok(
      second.said.includes(`in use by another process (pid ${first.child.pid})`),
      second.said,
    );
  }
  assert.equal(await first.end('SIGTERM'), 0, first.said);
});

test('a second daemon on the spool of another is refused, while that lives', async (t) => {
  const site = new Scene(t);
  site.write(part(0));
  const first = site.start();
  await first.until('"stored"');
  const second = site.start();
  assert.deepEqual(await second.exit, [EXIT.io, null], second.said);
  assert.ok(second.said.includes(`found it in use by process ${first.child.pid}`), second.said);
  assert.match(second.said, /give each nginx its own --instance/);
  site.write([...part(1), ...part(2), ...part(3)]);
  await first.end('SIGKILL');
  const third = site.start();
  await third.until('"follows"');
  assert.equal(await third.end('SIGTERM'), 0, third.said);
  await site.compare();
});

test('two daemons that write one instance: one of them ends, and nothing counts twice', async (t) => {
  const site = new Scene(t);
  site.write(part(0));
  const first = site.start('one');
  await first.until('"stored"');
  const second = site.start('other');
  await second.until('"follows"');
  let ended: readonly [TailProcess, number | null] | undefined;
  for (const daemon of [first, second]) {
    void daemon.exit.then(([code]) => (ended ??= [daemon, code]));
  }
  // Sooner or later they read different bytes in a step.
  const rest = [...part(1), ...part(2), ...part(3)];
  for (let at = 0; at < rest.length; at += LINES_PER_WRITE) {
    site.write(rest.slice(at, at + LINES_PER_WRITE));
    await pause(2);
  }
  await Promise.race([first.exit, second.exit]);
  const [loser, code] = ended!;
  assert.equal(code, EXIT.io, loser.said);
  assert.match(loser.said, /expected to be the only writer of instance/);
  assert.match(loser.said, /give each nginx its own --instance/);
  const winner = loser === first ? second : first;
  assert.equal(await winner.end('SIGTERM'), 0, winner.said);
  await site.compare();
});

/** What is written to the next records' files meets a disk without room. */
function fillDisk(spool: string): void {
  const newest = Math.max(...readdirSync(spool).map((name) => Number(/^\d+/.exec(name)?.[0] ?? 0)));
  for (let n = newest; n < newest + 100; n++) {
    const unfinished = join(spool, `${String(n).padStart(12, '0')}.rows.tmp`);
    rmSync(unfinished, { force: true });
    symlinkSync('/dev/full', unfinished);
  }
}

function makeRoom(spool: string): void {
  for (const name of readdirSync(spool)) {
    if (name.endsWith('.rows.tmp')) rmSync(join(spool, name), { force: true });
  }
}

const REFUSED = 'the spool cannot be written: stops reading until it can';

test('no room for the spool: said, waited for, and all is stored when there is room', async (t) => {
  const site = new Scene(t);
  const spool = join(site.path('spool'), 'default');
  site.write(part(0));
  const first = site.start();
  await first.until('"stored"');
  fillDisk(spool);
  site.write(part(1));
  await first.until(REFUSED);
  assert.match(first.said, /"error":"ENOSPC: no space left on device/);
  assert.equal((await first.get('/readyz')).status, 503);
  assert.equal(await first.metric('limitlens_backpressure'), 1);
  const before = first.said.length;
  makeRoom(spool);
  await first.until('the spool takes records again', before);
  assert.equal((await first.get('/readyz')).status, 200);

  fillDisk(spool);
  site.write(part(2));
  await first.until(REFUSED, before);
  assert.equal(await first.end('SIGTERM'), EXIT.io, first.said);
  assert.match(first.said, /expected room for what was read, found ENOSPC/);
  assert.match(first.said, /Make room and start again/);

  makeRoom(spool);
  site.write(part(3));
  const last = site.start();
  await last.until('"follows"');
  assert.equal(await last.end('SIGTERM'), 0, last.said);
  await site.compare();
});

/** File of the record that a start goes on from. */
function newestPlace(spool: string): string {
  const places = readdirSync(spool).filter((name) => name.endsWith('.place'));
  return join(spool, places.sort().at(-1)!);
}

function isBehindState(place: string): boolean {
  const { sequence, base } = JSON.parse(readFileSync(place, 'utf8')) as Place;
  return sequence > base;
}

test('steps done again that make other rows are told as an error', async (t) => {
  const site = new Scene(t);
  const spool = join(site.path('spool'), 'default');
  site.write(part(0));
  const first = site.start();
  await first.until('"stored"');
  const rest = [...part(1), ...part(2), ...part(3)];
  // Few records have a state.
  for (let isBehind = false; !isBehind;) {
    assert.ok(rest.length > 0, first.said);
    site.write(rest.splice(0, LINES_PER_WRITE));
    await pause(30);
    first.child.kill('SIGSTOP');
    isBehind = isBehindState(newestPlace(spool));
    first.child.kill(isBehind ? 'SIGKILL' : 'SIGCONT');
  }
  await first.exit;
  site.write(rest);
  const place = newestPlace(spool);
  const stored = JSON.parse(readFileSync(place, 'utf8')) as { digests: Record<string, string> };
  const digests = Object.fromEntries(
    Object.entries(stored.digests).map(([n, digest]) => [n, digest.replace(/.$/, '!')]),
  );
  writeFileSync(place, JSON.stringify({ ...stored, digests }));
  const second = site.start();
  await second.until('"follows"');
  assert.match(second.said, /"level":"error"[^\n]*"message":"steps done again made other rows/);
  assert.equal(await second.end('SIGTERM'), 0, second.said);
  await site.compare();
});
