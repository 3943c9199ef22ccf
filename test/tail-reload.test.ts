/**
 * The daemon beside an nginx that reloads: by the marks in its error log, by SIGHUP, across kill -9,
 * and with configurations that are no use.
 */
import assert from 'node:assert/strict';
import { appendFileSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { openStore } from '../src/store/store.js';
import { mustRun } from './support/cli.js';
import { storedRows, TailProcess } from './support/tail-site.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

/** Of the capture: when nginx was told to reload. */
const RELOADS_S = [1796023870, 1796023875];

/** The capture p_reload, in three parts: each begins with the reload mark before it. */
class ReloadedSite {
  readonly folder: string;
  readonly conf: string;
  readonly #parts: { readonly access: string; readonly errors: string }[];

  constructor(t: TestContext) {
    this.folder = makeTempDir(t);
    this.conf = join(this.folder, 'nginx.conf');
    const lines = (name: string): string[] =>
      readFileSync(join(traceDir('p_reload'), name), 'latin1')
        .trimEnd()
        .split('\n');
    const errors = lines('error.log');
    const marks = errors.flatMap((line, i) =>
      line.endsWith('(SIGHUP) received from 24082, reconfiguring') ? [i] : [],
    );
    assert.equal(marks.length, 2);
    const access = lines('access.log');
    const partOf = (line: string): number => {
      const seconds = Number(/"msec":([\d.]+)/.exec(line)![1]);
      return RELOADS_S.filter((reload) => seconds >= reload).length;
    };
    this.#parts = [0, 1, 2].map((part) => ({
      access: access.filter((line) => partOf(line) === part).join('\n'),
      errors: errors.slice(marks[part - 1] ?? 0, marks[part]).join('\n'),
    }));
  }

  /** Writes the n-th configuration, as of the moment before its reload. */
  configure(n: number, path = this.conf, change = (text: string): string => text): void {
    const text = readFileSync(join(traceDir('p_reload'), `nginx.conf.${n}`), 'latin1')
      .replace(/^.*(?:debug|combined)\.log.*$/gm, '')
      .replaceAll('/var/log/nginx', this.folder);
    writeFileSync(path, change(text));
    const seconds = (RELOADS_S[n - 2] ?? RELOADS_S[0]!) - 1;
    utimesSync(path, seconds, seconds);
  }

  write(part: number): void {
    const { access, errors } = this.#parts[part - 1]!;
    appendFileSync(join(this.folder, 'error.log'), `${errors}\n`);
    appendFileSync(join(this.folder, 'access.log'), `${access}\n`);
  }

  tail(t: TestContext, ...more: string[]): TailProcess {
    const tail = new TailProcess([
      ...['tail', '--conf', this.conf, '--store', join(this.folder, 'tail'), '--timezone', 'UTC'],
      ...['--lateness', '5s', '--listen', '127.0.0.1:0', '--commit-interval', '50ms', ...more],
    ]);
    t.after(() => tail.child.kill('SIGKILL'));
    return tail;
  }

  /** Compares with one import that is told of all configurations. */
  async compare(): Promise<void> {
    const confs = [1, 2, 3].map((n) => {
      const path = join(this.folder, `nginx.conf.${n}`);
      this.configure(n, path);
      return ['--conf', path];
    });
    const store = join(this.folder, 'import');
    const logs = ['--error-log', join(this.folder, 'error.log'), join(this.folder, 'access.log')];
    const args = ['--store', store, '--timezone', 'UTC', '--lateness', '5s', '--threads', '1'];
    await mustRun(['import', ...confs.flat(), ...args, ...logs]);
    const expected = await rowsOf(store);
    const found = await rowsOf(join(this.folder, 'tail'));
    for (const [table, rows] of Object.entries(expected)) {
      const own = found[table]!;
      const missing = rows.filter((row) => !own.includes(row));
      const extra = own.filter((row) => !rows.includes(row));
      assert.deepEqual({ table, missing, extra }, { table, missing: [], extra: [] });
    }
    // Three configurations, each with its rate and size.
    const limits = found['limits']!.map((row) => JSON.parse(row) as Record<string, unknown>);
    limits.sort((a, b) => String(a['since']).localeCompare(String(b['since'])));
    const sizes = limits.map((row) => [Number(row['rate_milli_rps']), Number(row['size_bytes'])]);
    assert.deepEqual(sizes, [
      [5000, 1 << 20],
      [12_000, 1 << 20],
      [12_000, 2 << 20],
    ]);
  }
}

/** Rows without the names of the configuration's files. */
async function rowsOf(path: string): Promise<Record<string, string[]>> {
  const store = await openStore({ path, createIfMissing: false, readOnly: true });
  try {
    const rows = Object.entries(await storedRows(store));
    const bare = (row: string): string => row.replaceAll(/[\w./-]+nginx\.conf(?:\.\d)?/g, 'CONF');
    return Object.fromEntries(rows.map(([table, all]) => [table, all.map(bare).sort()]));
  } finally {
    await store.close();
  }
}

const TAKEN = 'goes by the new nginx configuration';

test('by its reload marks: what one import under three configurations stores', async (t) => {
  const site = new ReloadedSite(t);
  site.configure(1);
  site.write(1);
  const tail = site.tail(t);
  await tail.until('"message":"follows"');
  site.configure(2);
  site.write(2);
  await tail.until(TAKEN);
  const taken = tail.said.length;
  site.configure(3);
  site.write(3);
  await tail.until(TAKEN, taken);
  assert.equal(await tail.metric('limitlens_config_last_reload_successful'), 1);
  const text = await (await tail.get('/metrics')).text();
  assert.match(text, /^limitlens_config_reloads_total\{result="taken".*\} 2$/m);
  assert.equal(await tail.end('SIGTERM'), 0, tail.said);
  await site.compare();
});

test('killed before and after a reload, which happens while it is down as well', async (t) => {
  const site = new ReloadedSite(t);
  site.configure(1);
  site.write(1);
  const first = site.tail(t);
  await first.until('"message":"stored"');
  site.configure(2);
  site.write(2);
  await first.until(TAKEN);
  await first.end('SIGKILL');
  site.configure(3);
  const second = site.tail(t);
  await second.until('has changed since the last state');
  await second.until('"message":"follows"');
  await second.end('SIGKILL');
  site.write(3);
  const third = site.tail(t);
  await third.until('"message":"follows"');
  assert.equal(await third.end('SIGTERM'), 0, third.said);
  assert.ok(!third.said.includes('has changed since'), third.said);
  await site.compare();
});

test('a configuration that is no use leaves the one before in force, and says why', async (t) => {
  const site = new ReloadedSite(t);
  site.configure(1);
  site.write(1);
  const tail = site.tail(t);
  await tail.until('"message":"follows"');
  const refused = async (change: (text: string) => string, why: RegExp): Promise<void> => {
    const from = tail.said.length;
    site.configure(2, site.conf, change);
    tail.child.kill('SIGHUP');
    await tail.until('is not taken: the one before stays in force', from);
    assert.match(tail.said.slice(from), why);
    assert.equal(await tail.metric('limitlens_config_last_reload_successful'), 0);
  };
  await refused((text) => text.replace('burst=10', 'burst=0'), /invalid burst value/);
  await refused((text) => text.replace('$arg_k zone', '$arg_j zone'), /nginx refuses this reload/);
  await refused((text) => text.replace('}\n}', '}'), /unexpected end of file/);
  // A mark that comes with an unchanged file, and then with the good one.
  site.configure(1);
  const from = tail.said.length;
  tail.child.kill('SIGHUP');
  await tail.until('has not changed', from);
  assert.equal(await tail.metric('limitlens_config_last_reload_successful'), 1);
  site.configure(2);
  site.write(2);
  await tail.until(TAKEN, from);
  const taken = tail.said.length;
  site.configure(3);
  site.write(3);
  await tail.until(TAKEN, taken);
  assert.equal(await tail.end('SIGTERM'), 0, tail.said);
  await site.compare();
});

test('a file that was changed after nginx reloaded waits for the next reload', async (t) => {
  const site = new ReloadedSite(t);
  site.configure(1);
  site.write(1);
  const tail = site.tail(t);
  await tail.until('"message":"follows"');
  site.configure(3);
  site.write(2);
  await tail.until('was changed after this reload of nginx: waits for the next');
  site.write(3);
  await tail.until(TAKEN);
  assert.equal(await tail.end('SIGTERM'), 0, tail.said);
  const rows = await rowsOf(join(site.folder, 'tail'));
  const limits = rows['limits']!.map((row) => JSON.parse(row) as Record<string, unknown>);
  const since = limits.map(
    (row) => Date.parse(`${String(row['since']).replace(' ', 'T')}Z`) / 1000,
  );
  assert.equal(Math.max(...since), RELOADS_S[1]);
  assert.equal(limits.length, 2);
});
