/**
 * The ways that lines reach the daemon: logs that come later, standard input, syslog. What is stored
 * in the end is what an import of the same requests stores.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startFakeServer } from './support/clickhouse-http.js';
import { captureLines, type LogLine, type TailProcess } from './support/tail-site.js';
import { siteConf, TailScene } from './support/tail-scene.js';
import { makeTempDir } from './support/temp-dir.js';

const LINES = captureLines(1);

// The engine takes one folder per process: one server for all, with a database for each test.
const server = await startFakeServer({ dataPath: makeTempDir({ after }) });
after(() => server.close());

function texts(lines: readonly LogLine[], name?: LogLine['name']): string[] {
  return lines.filter((line) => name === undefined || line.name === name).map(({ text }) => text);
}

function part(n: number, of: number): LogLine[] {
  const share = Math.ceil(LINES.length / of);
  return LINES.slice(n * share, (n + 1) * share);
}

function bothLogs(scene: TailScene, lines: readonly LogLine[], folder = ''): void {
  // As nginx does: a request's error line is written before the request ends.
  scene.append(join(folder, 'error.log'), texts(lines, 'error.log'));
  scene.append(join(folder, 'access.log'), texts(lines, 'access.log'));
}

async function drained(daemon: TailProcess): Promise<void> {
  assert.equal(await daemon.end('SIGTERM'), 0, daemon.said);
}

test('a folder: logs that come later, one of them through a link, and a file that is none', async (t) => {
  const scene = new TailScene(t, server);
  const conf = scene.conf(siteConf(''));
  fs.mkdirSync(scene.path('logs'));
  fs.mkdirSync(scene.path('elsewhere'));
  fs.writeFileSync(scene.path('logs/notes.txt'), 'what to do\n');
  const daemon = scene.tail(conf, scene.path('logs'));
  await daemon.until('notes.txt');
  await daemon.until('"follows"');
  scene.append('elsewhere/errors', texts(part(0, 3), 'error.log'));
  fs.symlinkSync(scene.path('elsewhere/errors'), scene.path('logs/errors'));
  scene.append('logs/access.log', texts(part(0, 3), 'access.log'));
  await daemon.until('/logs/errors');
  await daemon.until('/logs/access.log');
  await daemon.until('"stored"');
  scene.append('elsewhere/errors', texts(part(1, 3), 'error.log'));
  scene.append('logs/access.log', texts(part(1, 3), 'access.log'));
  fs.renameSync(scene.path('logs/access.log'), scene.path('logs/access.log.1'));
  scene.append('elsewhere/errors', texts(part(2, 3), 'error.log'));
  scene.append('logs/access.log', texts(part(2, 3), 'access.log'));
  await drained(daemon);
  assert.equal(daemon.said.split('"not followed"').length, 2, 'told once');
  bothLogs(scene, LINES, 'whole');
  const files = [scene.path('whole/access.log'), scene.path('whole/error.log')];
  await scene.assertStored(await scene.imported(conf, ...files));
});

test('a pattern, and a kill between two logs that it finds', async (t) => {
  const scene = new TailScene(t, server);
  const conf = scene.conf(siteConf(''));
  const args = ['--error-log', scene.path('*/error.log'), scene.path('*/access.log')];
  const first = scene.tail(conf, ...args);
  await first.until('"follows"');
  bothLogs(scene, part(0, 2), 'one');
  await first.until('"stored"');
  await first.end('SIGKILL');
  bothLogs(scene, part(1, 2), 'two');
  const second = scene.tail(conf, ...args);
  await second.until('two/access.log');
  await drained(second);
  const logs = ['one', 'two'].flatMap((folder) => [
    ...['--error-log', scene.path(`${folder}/error.log`)],
    scene.path(`${folder}/access.log`),
  ]);
  await scene.assertStored(await scene.imported(conf, ...logs));
});

test('a path with variables, and a log that is not there at the start', async (t) => {
  const scene = new TailScene(t, server);
  const logs = `access_log ${scene.path('logs')}/$host.access.log rich;
    error_log ${scene.path('logs')}/error.log notice;`;
  const conf = scene.conf(siteConf(logs));
  const daemon = scene.tail(conf, '--poll');
  await daemon.until('"follows"');
  fs.mkdirSync(scene.path('logs'));
  scene.append('logs/error.log', texts(LINES, 'error.log'));
  scene.append('logs/a.example.access.log', texts(LINES, 'access.log'));
  await daemon.until('a.example.access.log');
  await drained(daemon);
  const files = ['--error-log', scene.path('logs/error.log')];
  const expected = await scene.imported(conf, ...files, scene.path('logs/a.example.access.log'));
  await scene.assertStored(expected);
});

test('a request that the configuration writes to two logs counts once', async (t) => {
  const scene = new TailScene(t, server);
  const logs = `access_log ${scene.path('plain.log')} plain;
    access_log ${scene.path('access.log')} rich;
    error_log ${scene.path('error.log')} notice;`;
  const conf = scene.conf(siteConf(logs));
  bothLogs(scene, LINES);
  const plain = texts(LINES, 'access.log').map((line) => {
    const { msec } = JSON.parse(line) as { msec: number };
    const [, month, day, year, time] = /^\w+, (?=(\d\d) (\w+) (\d+) ([\d:]+))/
      .exec(new Date(msec * 1000).toUTCString())!
      .map((text, i, all) => (i === 1 ? all[2]! : i === 2 ? all[1]! : text));
    return `127.0.0.1 - - [${day}/${month}/${year}:${time} +0000] "GET /x HTTP/1.1" 200`;
  });
  scene.append('plain.log', plain);
  const daemon = scene.tail(conf);
  await daemon.until('holds the same requests as');
  await daemon.until('"stored"');
  await drained(daemon);
  const paths = ['error.log', 'access.log', 'plain.log'].map((name) => scene.path(name));
  await scene.assertStored(await scene.imported(conf, ...paths));
});

test("the zone of the error log's times is the access log's, not this machine's", async (t) => {
  const scene = new TailScene(t, server);
  const logs = `access_log ${scene.path('access.log')} rich;
    error_log ${scene.path('error.log')} notice;`;
  const conf = scene.conf(siteConf(logs));
  const before = process.env['TZ'];
  process.env['TZ'] = 'America/New_York';
  const daemon = scene.tail(conf);
  if (before === undefined) delete process.env['TZ'];
  else process.env['TZ'] = before;
  await daemon.until('"follows"');
  // Nothing tells the zone yet: these have to wait.
  scene.append('error.log', texts(part(0, 2), 'error.log'));
  scene.append('access.log', texts(part(0, 2), 'access.log'));
  bothLogs(scene, part(1, 2));
  await daemon.until('"stored"');
  await drained(daemon);
  const paths = ['error.log', 'access.log'].map((name) => scene.path(name));
  await scene.assertStored(await scene.imported(conf, ...paths));
});
