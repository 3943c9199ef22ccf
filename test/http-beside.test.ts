/**
 * Commands beside a daemon that has the store open, and Grafana's way to its store: what they ask,
 * and what it takes.
 */
import assert from 'node:assert/strict';
import { createClient } from '@clickhouse/client';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { copyFileSync, cpSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { checkHttpChoice, type TailHttpChoice } from '../src/commands/tail-http.js';
import { InputError } from '../src/errors.js';
import { makeCertificate } from './support/certificate.js';
import { runCli, type CliRun } from './support/cli.js';
import { Daemon } from './support/daemon.js';
import { Imports } from './support/imports.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

const TRACE = traceDir('g_mixed_2workers');
const CONF = join(TRACE, 'nginx.conf');
const TOKEN = 'a-token-of-some-length';

const QUESTIONS = [
  ['report', '--top', '100', '--until', '2030-01-01T00:00:00Z'],
  ['zones', '--format', 'json', '--instance', 'default'],
  ['sources', '--format', 'json'],
  ['dry-run', '--format', 'json'],
] as const;

interface Site {
  readonly store: string;
  readonly logs: readonly string[];
}

const cleanups: (() => void | Promise<void>)[] = [];
let imported: string;

before(async () => {
  imported = makeTempDir({ after: (fn) => cleanups.push(fn) });
  for (const name of ['access.log', 'error.log']) {
    copyFileSync(join(TRACE, name), join(imported, name));
  }
  await new Imports(imported, [CONF]).add(logsOf(imported));
});

after(async () => {
  for (const fn of cleanups) await fn();
});

function logsOf(folder: string): string[] {
  return [
    '--timezone',
    'UTC',
    '--error-log',
    join(folder, 'error.log'),
    join(folder, 'access.log'),
  ];
}

/** A store with a trace in it, and logs of which there is nothing more to read. */
function makeSite(t: Cleanup): Site {
  const store = join(makeTempDir(t), 'store');
  cpSync(join(imported, 'store'), store, { recursive: true });
  return { store, logs: logsOf(imported) };
}

async function startDaemon(
  t: Cleanup,
  { store, logs }: Site,
  args: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<Daemon> {
  const daemon = new Daemon(t, ['--conf', CONF, '--store', store, ...args, ...logs], { env });
  await daemon.hears('follows');
  return daemon;
}

test('the same answers, byte for byte: by the folder, beside the daemon, over its port', async (t) => {
  const site = makeSite(t);
  const ask = (question: readonly string[], ...store: string[]): Promise<CliRun> =>
    runCli([...question, ...store]);
  const direct: CliRun[] = [];
  for (const question of QUESTIONS) direct.push(await ask(question, '--store', site.store));
  for (const [i, { code, stdout }] of direct.entries()) {
    assert.ok(code === 0 || QUESTIONS[i]![0] === 'dry-run', QUESTIONS[i]!.join(' '));
    assert.ok(stdout.length > 100);
  }
  const password = join(makeTempDir(t), 'password');
  writeFileSync(password, 'correct horse\n');
  const offer = ['--clickhouse-http', '127.0.0.1:0', '--clickhouse-http-password-file', password];
  const daemon = await startDaemon(t, site, offer);
  const { clickhouse } = await daemon.hears('listens');
  const beside = await Promise.all(QUESTIONS.map((one) => ask(one, '--store', site.store)));
  assert.deepEqual(beside, direct);
  const url = clickhouse!.replace('//', '//limitlens:correct%20horse@');
  assert.equal((await ask(QUESTIONS[0], '--clickhouse', url)).stdout, direct[0]!.stdout);
  const client = createClient({
    url: clickhouse!,
    username: 'limitlens',
    password: 'correct horse',
  });
  const rows = await client.query({ query: 'SELECT count() FROM zone_outcomes', format: 'CSV' });
  assert.ok(Number(await rows.text()) > 0);
  await client.close();
  assert.equal(await daemon.end(), 0);
});

test('the address is for the owner alone, goes with the daemon, and a stale one is no hindrance', async (t) => {
  const site = makeSite(t);
  const file = join(site.store, 'daemon.json');
  const report = (): Promise<CliRun> => runCli(['report', '--store', site.store]);
  const before = await report();
  const daemon = await startDaemon(t, site);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const { key, url, pid } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;
  assert.equal(pid, daemon.child.pid);
  assert.match(key!, /^[0-9a-f]{64}$/);
  const ask = async (headers: Record<string, string>): Promise<number> =>
    (await fetch(url!, { method: 'POST', body: 'SELECT 1', headers })).status;
  assert.equal(await ask({ 'X-ClickHouse-Key': key! }), 200);
  assert.equal(await ask({ 'X-ClickHouse-Key': `${key}x` }), 403);
  assert.equal(await ask({}), 403);
  const refused = await runCli(['import', '--conf', CONF, '--store', site.store, ...site.logs]);
  assert.equal(refused.code, 74);
  assert.match(refused.stderr, /found it in use by another process \(pid \d+\)/);
  assert.equal(await daemon.end('SIGKILL'), null);
  assert.equal(existsSync(file), true);
  assert.deepEqual(await report(), before);
  const next = await startDaemon(t, site);
  assert.deepEqual(await report(), before);
  assert.equal(await next.end(), 0);
  assert.equal(existsSync(file), false);
});

test('with a token and TLS: metrics and commands need the token, health does not', async (t) => {
  const site = makeSite(t);
  const before = await runCli(['zones', '--store', site.store]);
  const env = { LIMITLENS_TOKEN: TOKEN };
  const pems = makeTempDir(t);
  const { tlsCert, tlsKey } = makeCertificate(pems, 'daemon');
  const daemon = await startDaemon(t, site, ['--tls-cert', tlsCert, '--tls-key', tlsKey], env);
  const { url } = await daemon.hears('listens');
  assert.match(url!, /^https:/);
  let ca = readFileSync(tlsCert);
  const get = async (path: string, headers: Record<string, string> = {}): Promise<number> => {
    const asked = request(`${url}${path}`, { headers, ca, agent: false });
    asked.end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    answer.resume();
    return answer.statusCode!;
  };
  assert.equal(await get('/healthz'), 200);
  assert.equal(await get('/readyz'), 200);
  assert.equal(await get('/metrics'), 401);
  assert.equal(await get('/metrics', { authorization: `Bearer ${TOKEN}` }), 200);
  assert.doesNotMatch(readFileSync(join(site.store, 'daemon.json'), 'utf8'), /key|a-token/);
  const zones = (own: Record<string, string>): Promise<CliRun> =>
    runCli(['zones', '--store', site.store], { env: own });
  assert.deepEqual(await zones(env), before);
  const none = await zones({});
  assert.equal(none.code, 78);
  assert.match(none.stderr, /expects its token, found none\n {2}Set LIMITLENS_TOKEN/);
  const wrong = await zones({ LIMITLENS_TOKEN: 'another-token-of-that-length' });
  assert.equal(wrong.code, 78);
  assert.match(wrong.stderr, /expects its token, found another one/);
  writeFileSync(tlsKey, 'no key');
  daemon.child.kill('SIGHUP');
  await daemon.hears('logins and TLS files are not taken: those of before stay');
  assert.equal(await get('/healthz'), 200);
  makeCertificate(pems, 'another');
  ca = readFileSync(tlsCert);
  daemon.child.kill('SIGHUP');
  // Until it is taken up the old one is shown, which the new one does not vouch for.
  while ((await get('/healthz').catch(() => 0)) !== 200);
  assert.equal(await daemon.end(), 0);
});

const listen = '127.0.0.1:0';
const refusals: readonly (readonly [Partial<TailHttpChoice>, number, RegExp])[] = [
  [{ listen: 'nowhere' }, 64, /^--listen nowhere: expected an address and port/],
  [{ clickhouseHttp: listen }, 78, /expected a password of at least 8 characters, found none/],
  [{ clickhouseHttp: 'nowhere' }, 64, /--clickhouse-http nowhere: expected an address and port/],
  [{ clickhouseHttpPasswordFile: CONF }, 64, /expected --clickhouse-http with it/],
  [
    { clickhouseHttp: listen, clickhouse: 'http://127.0.0.1:1' },
    64,
    /expected an embedded store, found --clickhouse/,
  ],
  [{ httpTokenFile: '/nowhere' }, 66, /\/nowhere: expected a file to read, found none \(ENOENT\)/],
  [{ tlsCert: CONF }, 64, /expected both, found one/],
];
for (const [choice, exitCode, message] of refusals) {
  test(`refused: ${JSON.stringify(choice).replaceAll(CONF, 'FILE')}`, () => {
    assert.throws(
      () => {
        checkHttpChoice({ listen, ...choice }, {});
      },
      (error: unknown) => {
        assert.ok(error instanceof InputError);
        assert.equal(error.exitCode, exitCode);
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test('what is refused ends the daemon before it opens anything', async (t) => {
  const store = join(makeTempDir(t), 'store');
  const args = ['tail', '--conf', CONF, '--store', store, '--clickhouse-http', listen];
  const run = await runCli(args);
  assert.equal(run.code, 78);
  assert.match(run.stderr, /--clickhouse-http: expected a password/);
  assert.equal(existsSync(store), false);
});
