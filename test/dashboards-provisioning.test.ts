/**
 * What a deployment mounts: paths, names and versions that must fit each other, and each part's own
 * configuration, judged by the part itself. No container is started.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createClient } from '@clickhouse/client';
import { parse } from 'yaml';
import { OVERVIEW } from '../dashboards/catalogue/overview.js';
import { ALL, expand } from '../dashboards/expand.js';
import { CLICKHOUSE } from '../dashboards/grafana-dashboard.js';
import { mustRun, runCli } from './support/cli.js';
import { Daemon } from './support/daemon.js';
import { requireProgram } from './support/debian.js';
import { makeTempDir } from './support/temp-dir.js';

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly configs?: readonly { readonly source: string; readonly target: string }[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
  readonly configs?: Readonly<Record<string, { readonly content: string }>>;
}

const FILES = ['compose.yaml', 'compose.embedded.yaml'] as const;
const [SERVER, EMBEDDED] = FILES.map((name) => parse(readFileSync(name, 'utf8')) as Compose);
const ALL_COMPOSE = [SERVER!, EMBEDDED!];
const PROVISIONING = 'dashboards/provisioning';
const NGINX_CONF = 'samples/compose/nginx.conf';

interface DataSource {
  readonly uid: string;
  readonly type: string;
}

function dataSourcesOf(name: string): readonly DataSource[] {
  const text = readFileSync(`${PROVISIONING}/datasources/${name}`, 'utf8');
  return (parse(text) as { datasources: DataSource[] }).datasources;
}

test('every image has one version, and the plugin too', () => {
  const versions = new Map<string, string>();
  for (const { services } of ALL_COMPOSE) {
    for (const { image, build } of Object.values(services)) {
      if (build !== undefined) continue;
      assert.match(image!, /^[a-z/-]+:v?\d+\.\d+(\.\d+)*$/);
      const [name = '', version = ''] = image!.split(':');
      assert.equal(versions.get(name) ?? version, version, name);
      versions.set(name, version);
    }
    const plugins = services['grafana']!.environment!['GF_PLUGINS_PREINSTALL_SYNC']!;
    assert.match(plugins, new RegExp(`^${CLICKHOUSE}@4\\.\\d+\\.\\d+$`));
  }
  assert.equal(versions.size, 5);
});

test('what is mounted is there, what is named is declared, and ports are on loopback', () => {
  for (const compose of ALL_COMPOSE) {
    for (const [name, service] of Object.entries(compose.services)) {
      for (const volume of service.volumes ?? []) {
        const [source = '', target = ''] = volume.split(':');
        if (source.startsWith('./')) {
          assert.ok(existsSync(source), `${name}: ${source}`);
          assert.match(volume, /:ro$/, `${name} may change the files of the repository`);
        } else assert.ok(source in compose.volumes, `${name}: ${source}`);
        assert.match(target, /^\//);
      }
      for (const { source } of service.configs ?? []) assert.ok(source in compose.configs!, source);
      for (const other of Object.keys(service.depends_on ?? {})) {
        assert.ok(other in compose.services, `${name} depends on ${other}`);
      }
      for (const port of service.ports ?? []) assert.match(port, /^127\.0\.0\.1:\d+:\d+$/);
    }
  }
});

test('Grafana finds its data sources and dashboards where they are mounted', () => {
  const provider = parse(readFileSync(`${PROVISIONING}/dashboards/limitlens.yaml`, 'utf8')) as {
    providers: { options: { path: string } }[];
  };
  for (const { services } of ALL_COMPOSE) {
    const { volumes = [], environment = {} } = services['grafana']!;
    const targets = volumes.map((volume) => volume.split(':')[1]);
    assert.ok(targets.includes(provider.providers[0]!.options.path));
    const isWhole = targets.includes('/etc/grafana/provisioning');
    const mounted = isWhole ? ['limitlens.yaml', 'metrics.yaml'] : ['limitlens.yaml'];
    for (const name of mounted) {
      if (!isWhole) assert.ok(targets.includes(`/etc/grafana/provisioning/datasources/${name}`));
      const text = readFileSync(`${PROVISIONING}/datasources/${name}`, 'utf8');
      const names = Array.from(text.matchAll(/: \$(\w+)/g), ([, variable = '']) => variable);
      assert.ok(names.length > 0);
      for (const variable of names) assert.ok(variable in environment, variable);
    }
  }
  const all = readdirSync(`${PROVISIONING}/datasources`).flatMap(dataSourcesOf);
  assert.deepEqual(
    all.map(({ uid, type }) => [uid, type]),
    [
      ['limitlens-clickhouse', CLICKHOUSE],
      ['limitlens-prometheus', 'prometheus'],
    ],
  );
});

test('who logs in has the same name on both sides, and no password has a default', () => {
  for (const { services } of ALL_COMPOSE) {
    for (const { environment = {} } of Object.values(services)) {
      for (const [name, value] of Object.entries(environment)) {
        if (/PASSWORD$|TOKEN$/.test(name)) assert.match(value, /^\$\{\w+:\?.+\}$/, name);
      }
    }
  }
  const readers = SERVER!.configs!['clickhouse_readers']!.content;
  const { environment: server } = SERVER!.services['grafana']!;
  assert.match(readers, new RegExp(`<${server!['LIMITLENS_CLICKHOUSE_USER']}>`));
  const { environment: embedded } = EMBEDDED!.services['grafana']!;
  const { command, environment } = EMBEDDED!.services['limitlens']!;
  assert.ok(command!.includes(`--clickhouse-http-user=${embedded!['LIMITLENS_CLICKHOUSE_USER']}`));
  assert.ok(
    command!.includes(`--clickhouse-http=0.0.0.0:${embedded!['LIMITLENS_CLICKHOUSE_PORT']}`),
  );
  const password = (value: string | undefined): string | undefined => /\w+/.exec(value ?? '')?.[0];
  assert.equal(
    password(environment!['LIMITLENS_CLICKHOUSE_HTTP_PASSWORD']),
    password(embedded!['LIMITLENS_CLICKHOUSE_PASSWORD']),
  );
});

/** nginx's configuration with its logs in a folder of the test. */
function nginxConf(folder: string): string {
  mkdirSync(join(folder, 'logs'), { recursive: true });
  const text = readFileSync(NGINX_CONF, 'utf8').replaceAll('/logs/', `${folder}/logs/`);
  const path = join(folder, 'nginx.conf');
  writeFileSync(path, `pid ${folder}/nginx.pid;\n${text}`);
  return path;
}

function judge(program: string, ...args: string[]): void {
  const { status, stdout, stderr } = spawnSync(requireProgram(program), args, { encoding: 'utf8' });
  assert.equal(status, 0, `${program}: ${stdout}${stderr}`);
}

test('nginx, Prometheus and Alertmanager accept their configurations', (t) => {
  const folder = makeTempDir(t);
  judge('nginx', '-t', '-q', '-p', folder, '-c', nginxConf(folder));
  const { prometheus, alertmanager } = SERVER!.configs!;
  assert.ok(
    !/\$(?!\$)/.test(prometheus!.content + alertmanager!.content),
    'Compose would expand it',
  );
  const mount = SERVER!.services['prometheus']!.volumes!.find((one) => one.startsWith('./alerts:'));
  const rules = mount!.split(':')[1]!;
  assert.ok(prometheus!.content.includes(`${rules}/*.rules.yml`));
  const local = prometheus!.content.replaceAll(rules, join(process.cwd(), 'alerts'));
  writeFileSync(join(folder, 'prometheus.yml'), local);
  judge('promtool', 'check', 'config', join(folder, 'prometheus.yml'));
  writeFileSync(join(folder, 'alertmanager.yml'), alertmanager!.content);
  judge('amtool', 'check-config', join(folder, 'alertmanager.yml'));
});

test('limitlens has the options that it is started with', async () => {
  const { stdout: help } = await runCli(['help', 'tail']);
  for (const { services } of ALL_COMPOSE) {
    const [name, ...options] = services['limitlens']!.command!;
    assert.equal(name, 'tail');
    for (const one of options) {
      const option = one.split('=')[0]!;
      assert.match(help, new RegExp(`^ +${option}[ ,]`, 'm'), option);
    }
  }
});

test('limitlens, started as the embedded one is, answers what Grafana asks', async (t) => {
  const folder = makeTempDir(t);
  const conf = nginxConf(folder);
  const atMs = Math.floor(Date.now() / 60_000) * 60_000 - 120_000;
  const time = new Date(atMs).toISOString().slice(11, 19);
  const day = new Date(atMs).toUTCString().slice(5, 16).replaceAll(' ', '/');
  const line = (n: number, status: string) =>
    `192.0.2.1 - - [${day}:${time} +0000] "GET / HTTP/1.1" ${status === 'REJECTED' ? 429 : 200} 1 "-" "-" ` +
    `msec=${((atMs + n) / 1000).toFixed(3)} rt=0.000 us="-" urt="-" lr=${status} lc=- server=localhost ` +
    `conn=${n}/1 pid=1 id=${n}\n`;
  const log = Array.from({ length: 20 }, (_, n) => line(n, n < 11 ? 'PASSED' : 'REJECTED'));
  writeFileSync(join(folder, 'logs', 'access.log'), log.join(''));
  writeFileSync(join(folder, 'logs', 'error.log'), '');
  const args = EMBEDDED!.services['limitlens']!.command!.slice(1).map((one) =>
    one
      .replace('/etc/nginx/nginx.conf', conf)
      .replace('/var/lib/limitlens', folder)
      .replace(/0\.0\.0\.0:\d+/, '127.0.0.1:0'),
  );
  const secrets = {
    LIMITLENS_TOKEN: 'a-token-of-some-length',
    LIMITLENS_CLICKHOUSE_HTTP_PASSWORD: 'correct horse',
  };
  const store = args.find((one) => one.startsWith('--store='))!;
  await mustRun(['import', `--conf=${conf}`, store, join(folder, 'logs', 'access.log')]);
  const daemon = new Daemon(t, args, { env: secrets });
  await daemon.hears('follows');
  const { url, clickhouse } = await daemon.hears('listens');
  const client = createClient({
    url: clickhouse!,
    username: EMBEDDED!.services['grafana']!.environment!['LIMITLENS_CLICKHOUSE_USER']!,
    password: secrets.LIMITLENS_CLICKHOUSE_HTTP_PASSWORD,
  });
  const totals = OVERVIEW.panels[0]!;
  const range = { fromMs: atMs - 60_000, toMs: atMs + 60_000, intervalMs: 20_000 };
  const choice = { instance: ALL, server: ALL, location: ALL, zone: ALL };
  const query = expand(totals.sql, range, choice);
  const result = await client.query({ query, format: 'JSONEachRow' });
  const [row] = await result.json<Record<string, number>>();
  await client.close();
  const numbers = Object.values(row!).map(Number);
  assert.deepEqual(numbers, [20, 9, 0, 9 / 20]);
  const page = await fetch(`${url!}/`, {
    headers: { authorization: 'Bearer a-token-of-some-length' },
  });
  assert.equal(page.status, 200);
  assert.equal((await fetch(`${url!}/`)).status, 401);
  assert.equal(await daemon.end(), 0);
});
