/**
 * The same requests by other ways, or with less in their logs: what comes out of a replay depends
 * on lines and times alone, and what a log does not tell makes it less sure, never wrong.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { CLI, compare, confArguments, type ReplayedRequest } from './support/agreement.js';
import { makeTempDir } from './support/temp-dir.js';
import { readTruth, traceDir, type TraceName } from './support/truth.js';

function run(args: readonly string[], input = ''): string {
  const { stdout, stderr, status } = spawnSync(process.execPath, [CLI, 'replay', ...args], {
    encoding: 'utf8',
    input,
    maxBuffer: 1 << 28,
  });
  assert.equal(status, 0, stderr);
  return stdout;
}

function parsed(stdout: string): ReplayedRequest[] {
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as ReplayedRequest);
}

function logsOf(trace: TraceName): { access: string; error: string; conf: string[] } {
  const dir = traceDir(trace);
  return {
    access: join(dir, 'access.log'),
    error: join(dir, 'error.log'),
    conf: confArguments(dir),
  };
}

test('chunks of any size, gzip, standard input and the order of files change nothing', (t) => {
  const { access, error, conf } = logsOf('e_two_zones');
  const dir = makeTempDir(t);
  const gzipped = [join(dir, 'access.log.1.gz'), join(dir, 'error.log.gz')] as const;
  writeFileSync(gzipped[0], gzipSync(readFileSync(access)));
  writeFileSync(gzipped[1], gzipSync(readFileSync(error)));
  const expected = run([...conf, access, '--error-log', error]);
  assert.equal(parsed(expected).length, 342);
  const others = {
    'chunks of 1': run([...conf, '--chunk-bytes', '1', access, error]),
    'chunks of 7': run([...conf, '--chunk-bytes', '7', access, error]),
    'chunks of 4096': run([...conf, '--chunk-bytes', '4096', access, error]),
    'error log first': run([...conf, error, access]),
    gzip: run([...conf, ...gzipped]),
    'standard input': run([...conf, '-', '--error-log', error], readFileSync(access, 'latin1')),
  };
  for (const [how, stdout] of Object.entries(others)) assert.equal(stdout, expected, how);
});

test('a log cut into files of any names is the same log', (t) => {
  const { access, error, conf } = logsOf('g_mixed_2workers');
  const dir = makeTempDir(t);
  const lines = readFileSync(access, 'latin1').split('\n').slice(0, -1);
  const cuts = [lines.slice(0, 600), lines.slice(600, 601), lines.slice(601)];
  const paths = ['access.log.2', 'access.log.1', 'access.log'].map((name, i) => {
    writeFileSync(join(dir, name), cuts[i]!.map((line) => `${line}\n`).join(''), 'latin1');
    return join(dir, name);
  });
  const expected = run([...conf, access, '--error-log', error]);
  assert.equal(run([...conf, ...paths.reverse(), error]), expected);
});

/** As two workers write a buffered log: blocks of two seconds, each worker's at its own times. */
function inBlocks(lines: readonly string[]): string[] {
  const keyed = lines.map((line) => {
    const { msec, connection } = JSON.parse(line) as { msec: number; connection: number };
    const phaseS = (connection % 2) * 1.3;
    return { line, flushedS: Math.floor((msec + phaseS) / 2) * 2 - phaseS };
  });
  return keyed.sort((a, b) => a.flushedS - b.flushedS).map(({ line }) => line);
}

for (const trace of ['a_burst5_delay', 'e_two_zones', 'g_mixed_2workers'] as TraceName[]) {
  test(`${trace}: lines written in blocks are put in order again`, (t) => {
    const { access, error, conf } = logsOf(trace);
    const path = join(makeTempDir(t), 'access.log');
    const lines = readFileSync(access, 'latin1').split('\n').slice(0, -1);
    writeFileSync(path, inBlocks(lines).join('\n') + '\n', 'latin1');
    const found = compare(trace, parsed(run([...conf, path, '--error-log', error])));
    const plain = compare(trace, parsed(run([...conf, access, '--error-log', error])));
    assert.deepEqual([found.unexplained, found.outside], [0, 0]);
    assert.ok(found.wrong <= plain.wrong + 1, `${found.wrong} wrong`);
  });
}

/** Takes fields out of a JSON format and its lines; the request line takes their place. */
function withoutConnection(dir: string, trace: TraceName): string[] {
  const { access, error, conf } = logsOf(trace);
  const cut = /,"connection":[^,]*,"connection_requests":[^,]*(?=,)/;
  const confs = conf.map((argument, i) => {
    if (i % 2 === 0) return argument;
    const path = join(dir, `nginx.conf.${i}`);
    const text = readFileSync(argument, 'utf8').replace(cut, ',"request":"$request"');
    writeFileSync(path, text);
    return path;
  });
  const lines = readFileSync(access, 'utf8').split('\n').slice(0, -1);
  const written = lines.map((line) => {
    const { method, uri, args } = JSON.parse(line) as Record<string, string>;
    const request = `${method} ${uri}${args === '' ? '' : `?${args}`} HTTP/1.1`;
    return `${line.replace(cut, () => `,"request":${JSON.stringify(request)}`)}\n`;
  });
  const path = join(dir, 'access.log');
  writeFileSync(path, written.join(''));
  return [...confs, path, '--error-log', error];
}

for (const trace of ['a_burst5_delay', 'b_burst5_nodelay', 'd_dry_run', 'e_two_zones'] as const) {
  test(`${trace}: without connection numbers no line is joined to a wrong request`, (t) => {
    const requests = parsed(run(withoutConnection(makeTempDir(t), trace)));
    const truth = new Map(readTruth(traceDir(trace)).map((record) => [record.requestId, record]));
    let anchors = 0;
    for (const { requestId, zones } of requests) {
      for (const zone of truth.get(requestId!)!.zones) {
        const found = zones[zone.index]!;
        if (!found.anchored) continue;
        anchors++;
        assert.equal(Math.round(found.excess! * 1000), zone.excessMilliReq, requestId!);
      }
    }
    assert.ok(anchors > 20, `${anchors} anchors`);
    const found = compare(trace, requests);
    assert.deepEqual([found.unexplained, found.outside], [0, 0]);
    assert.ok(found.wrong <= found.decided * 0.02, `${found.wrong} of ${found.decided} wrong`);
  });
}

for (const trace of ['a_burst5_delay', 'd_dry_run', 'g_mixed_2workers'] as TraceName[]) {
  test(`${trace}: whole seconds leave much open, and explain nearly all`, () => {
    const { conf } = logsOf(trace);
    const requests = parsed(run([...conf, join(traceDir(trace), 'combined.log')]));
    const decided = requests.filter(({ logged }) => logged !== null);
    const unexplained = decided.filter(({ logged, possible }) => !possible.includes(logged!));
    assert.ok(decided.length > 150);
    assert.ok(unexplained.length <= decided.length * 0.01, `${unexplained.length} unexplained`);
  });
}
