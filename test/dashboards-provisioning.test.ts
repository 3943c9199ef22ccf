/**
 * What a deployment mounts: paths, names and versions that must fit each other.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CLICKHOUSE } from '../dashboards/grafana-dashboard.js';

const COMPOSE = readFileSync('compose.yaml', 'utf8');
const DATASOURCES = readFileSync('dashboards/provisioning/datasources/limitlens.yaml', 'utf8');
const PROVIDERS = readFileSync('dashboards/provisioning/dashboards/limitlens.yaml', 'utf8');

test('every image has a version', () => {
  const images = [...COMPOSE.matchAll(/image: (\S+)/g)].map(([, image = '']) => image);
  assert.equal(images.length, 5);
  for (const image of images) assert.match(image, /^[a-z/-]+:v?\d+\.\d+(\.\d+)*$/);
  assert.match(COMPOSE, new RegExp(`${CLICKHOUSE}@4\\.\\d+\\.\\d+`));
});

test('what is mounted is there', () => {
  const mounts = [...COMPOSE.matchAll(/- (\.\/[\w./-]+):(\/[\w./-]+):ro/g)];
  assert.equal(mounts.length, 3);
  for (const [, path = ''] of mounts) assert.ok(existsSync(path), path);
  const path = /path: (\S+)/.exec(PROVIDERS)?.[1];
  assert.ok(
    mounts.some(([, , target]) => target === path),
    path,
  );
});

test('every variable of the data sources is in the environment of Grafana', () => {
  const names = [...DATASOURCES.matchAll(/: \$(\w+)/g)].map(([, name = '']) => name);
  assert.equal(names.length, 5);
  for (const name of names) assert.match(COMPOSE, new RegExp(`^      ${name}: `, 'm'));
  assert.match(DATASOURCES, new RegExp(`type: ${CLICKHOUSE}\n`));
});

test('no password has a default', () => {
  const passwords = [...COMPOSE.matchAll(/PASSWORD: (\S+)/g)].map(([, value = '']) => value);
  assert.equal(passwords.length, 5);
  for (const value of passwords) assert.match(value, /^\$\{\w+:\?/);
});

test('nginx accepts its configuration', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'limitlens-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [, block = ''] = /\n {2}nginx:\n {4}content: \|\n((?: {6}.*\n|\n)+)/.exec(COMPOSE) ?? [];
  const text = block
    .replace(/^ {6}/gm, '')
    .replaceAll('$$', '$')
    .replaceAll('/logs/', `${folder}/`);
  assert.match(text, /limit_req_zone \$binary_remote_addr/);
  writeFileSync(join(folder, 'nginx.conf'), `pid ${folder}/nginx.pid;\n${text}`);
  execFileSync('nginx', ['-t', '-q', '-p', folder, '-c', join(folder, 'nginx.conf')], {
    stdio: 'pipe',
  });
});
