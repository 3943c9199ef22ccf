/**
 * `limitlens tail` as a service: signals, limitlens.yaml at run time, health, an unprivileged user.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { openStore } from '../src/store/store.js';
import { TailProcess } from './support/tail-site.js';
import { makeTempDir } from './support/temp-dir.js';

const CLI = join(dirname(fileURLToPath(import.meta.url)), '../src/cli.js');
const TAKEN = 'goes by the new nginx configuration';

/** A small nginx whose error log tells nothing of reloads. */
class QuietSite {
  readonly folder: string;
  readonly yaml: string;

  constructor(t: TestContext) {
    this.folder = makeTempDir(t);
    this.yaml = join(this.folder, 'limitlens.yaml');
    this.configure(1);
    this.write(20);
    this.settings({});
  }

  configure(rate: number, format = '"$request"'): void {
    writeFileSync(
      join(this.folder, 'nginx.conf'),
      `error_log ${this.folder}/error.log error;
       events {}
       http {
         log_format lim '$remote_addr $msec $request_time $limit_req_status $status ${format}';
         access_log ${this.folder}/access.log lim;
         limit_req_zone $remote_addr zone=z:1m rate=${rate}r/s;
         server { listen 80; server_name a.example; location / { limit_req zone=z burst=5; } }
       }\n`,
    );
  }

  write(count: number, request = '"GET / HTTP/1.1"'): void {
    const line = (i: number): string =>
      `192.0.2.${1 + (i % 9)} ${(Date.now() / 1000).toFixed(3)} 0.000 PASSED 200 ${request}\n`;
    appendFileSync(
      join(this.folder, 'access.log'),
      Array.from({ length: count }, (_, i) => line(i)).join(''),
    );
  }

  settings(changed: Record<string, Record<string, unknown>>): void {
    const settings = {
      nginx: { conf: 'nginx.conf' },
      logs: { timezone: 'UTC', lateness: '1s' },
      store: { folder: 'store', commit_interval: '50ms' },
      http: { listen: '127.0.0.1:0' },
      alerts: { interval: 0 },
      ...changed,
    };
    writeFileSync(this.yaml, JSON.stringify(settings));
  }

  tail(t: TestContext, ...more: string[]): TailProcess {
    const tail = new TailProcess(['tail', '--config', this.yaml, ...more]);
    t.after(() => tail.child.kill('SIGKILL'));
    return tail;
  }

  async limits(): Promise<number[]> {
    return this.#numbers('SELECT toUInt32(rate_milli_rps) AS n FROM limits FINAL ORDER BY since');
  }

  async accessLines(): Promise<number> {
    const sql = "SELECT toUInt32(sum(lines)) AS n FROM line_counts WHERE kind = 'access'";
    return (await this.#numbers(sql))[0]!;
  }

  async #numbers(sql: string): Promise<number[]> {
    const path = join(this.folder, 'store');
    const store = await openStore({ path, createIfMissing: false, readOnly: true });
    const rows = await store.query<{ n: number }>(sql);
    await store.close();
    return rows.map(({ n }) => n);
  }
}

test('SIGHUP takes the configuration up where no log tells of a reload; many of them are settled', async (t) => {
  const site = new QuietSite(t);
  const tail = site.tail(t);
  await tail.until('"message":"stored"');
  for (let rate = 2; rate <= 11; rate++) {
    const from = tail.said.length;
    site.configure(rate);
    tail.child.kill('SIGHUP');
    await tail.until(TAKEN, from);
    site.write(20);
  }
  assert.equal((await tail.get('/readyz')).status, 200);
  const spool = join(site.folder, 'store', 'spool', 'default');
  const states = readdirSync(spool).filter((name) => name.endsWith('.state'));
  const packed = gunzipSync(readFileSync(join(spool, states.at(-1)!))).toString();
  const state = JSON.parse(packed.slice(packed.indexOf('\n') + 1)) as {
    tail: { generations: unknown[] };
  };
  assert.ok(state.tail.generations.length <= 8, String(state.tail.generations.length));
  assert.equal(await tail.end('SIGTERM'), 0, tail.said);
  const limits = await site.limits();
  assert.equal(limits[0], 1000);
  assert.equal(limits.at(-1), 11_000);
});

test('SIGHUP takes up what can change of limitlens.yaml, says what cannot, and keeps it when it is no use', async (t) => {
  const site = new QuietSite(t);
  const tail = site.tail(t);
  await tail.until('"message":"follows"');
  const hangUp = async (text: string): Promise<string> => {
    const from = tail.said.length;
    tail.child.kill('SIGHUP');
    await tail.until(text, from);
    return tail.said.slice(from);
  };
  await hangUp('the nginx configuration has not changed');
  writeFileSync(site.yaml, '{"nginx": {"conf": "nginx.conf"}, "stor": {}}');
  assert.match(
    await hangUp('limitlens.yaml is not taken'),
    /stor: unknown key; did you mean store/,
  );
  const text = await (await tail.get('/metrics')).text();
  assert.match(text, /^limitlens_config_reloads_total\{result="refused".*\} 1$/m);
  const other = join(site.folder, 'other.log');
  writeFileSync(other, readFileSync(join(site.folder, 'access.log')));
  site.settings({
    logs: {
      timezone: 'UTC',
      lateness: '2s',
      access: [other, join(site.folder, 'access.log')],
      all: true,
    },
  });
  const said = await hangUp(TAKEN);
  assert.match(said, /"keys":\["logs.lateness"\].*needs a restart/);
  assert.match(said, /other\.log/);
  assert.equal(await tail.end('SIGINT'), 0, tail.said);
  assert.match(tail.said, /"message":"drained"/);
});

test('a log_format that changes at a reload loses no line of before or after', async (t) => {
  const site = new QuietSite(t);
  const tail = site.tail(t);
  await tail.until('"message":"follows"');
  site.write(50);
  site.configure(1, '$host "$request"');
  tail.child.kill('SIGHUP');
  await tail.until(TAKEN);
  assert.match(tail.said, /the format of a log has changed/);
  site.write(30, 'a.example "GET / HTTP/1.1"');
  assert.equal(await tail.end('SIGTERM'), 0, tail.said);
  assert.equal(await site.accessLines(), 100);
});

test('a second signal ends it at once, and the next start goes on', async (t) => {
  const site = new QuietSite(t);
  // Read a few lines at a time, so that a drain takes its time.
  site.write(200_000);
  const tail = site.tail(t, '--chunk-bytes', '2000');
  await tail.until('"message":"follows"');
  assert.equal((await tail.get('/healthz')).status, 200);
  tail.child.kill('SIGTERM');
  await tail.until('"message":"drains"');
  tail.child.kill('SIGTERM');
  assert.deepEqual(await tail.exit, [143, null]);
  assert.match(tail.said, /ends at once; the next start goes on/);
  assert.doesNotMatch(tail.said, /"message":"drained"/);
  const again = site.tail(t);
  await again.until('"message":"follows"');
  assert.equal(await again.end('SIGTERM'), 0, again.said);
  assert.equal(await site.accessLines(), 200_020);
});

test('an unprivileged user in group adm can run it, on logs that are root:adm 0640', async (t) => {
  const site = new QuietSite(t);
  const own = join(site.folder, 'state');
  mkdirSync(own);
  chmodSync(site.folder, 0o755);
  const log = join(site.folder, 'access.log');
  chmodSync(log, 0o640);
  const isRoot = process.getuid!() === 0;
  const [nobody, adm] = [65_534, 4];
  if (isRoot) {
    chownSync(log, 0, adm);
    chownSync(own, nobody, adm);
  }
  site.settings({
    store: { folder: 'state/store', commit_interval: '50ms' },
    logs: { timezone: 'UTC', access: [log] },
  });
  const child = spawn(process.execPath, [CLI, 'tail', '--config', site.yaml], {
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: own,
    env: { PATH: process.env['PATH'], HOME: own },
    ...(isRoot ? { uid: nobody, gid: adm } : {}),
  });
  t.after(() => child.kill('SIGKILL'));
  let said = '';
  const lines = createInterface({ input: child.stderr });
  lines.on('line', (line) => (said += `${line}\n`));
  const exit = once(child, 'close');
  while (!said.includes('"message":"stored"') && child.exitCode === null) {
    await Promise.race([once(lines, 'line'), exit]);
  }
  child.kill('SIGTERM');
  assert.deepEqual(await exit, [0, null], said);
});
