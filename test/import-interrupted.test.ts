/**
 * Imports that are stopped anywhere, and run again: everything counts once.
 */
import assert from 'node:assert/strict';
import { appendFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { openStore } from '../src/store/store.js';
import { finished, startCli, type CliRun } from './support/cli.js';
import { Imports } from './support/imports.js';
import { makeTempDir } from './support/temp-dir.js';

const CONF = `events {}
http {
  log_format replay '$msec $request_time $status $limit_req_status $remote_addr $connection "$request"';
  access_log /var/log/nginx/access.log replay;
  limit_req_zone $remote_addr zone=ip:10m rate=2r/s;
  server { listen 80; server_name s; location / { limit_req zone=ip burst=3 nodelay; } }
}
`;

/** Lines of many clients: several blocks of rows before the end of the log is reached. */
function manyLines(from: number, to: number): string {
  const lines: string[] = [];
  const startMs = Date.UTC(2026, 2, 2, 10);
  for (let n = from; n < to; n++) {
    const client = Math.imul(n, 2654435761) >>> 17;
    const seconds = ((startMs + 4 * n) / 1000).toFixed(3);
    const address = `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`;
    lines.push(`${seconds} 0.001 200 PASSED ${address} ${n} "GET /${n % 7} HTTP/1.1"\n`);
  }
  return lines.join('');
}

const LINES = 120_000;

/** Starts an import and stops it after a while, wherever it is then. */
async function stopped(
  imports: Imports,
  logs: readonly string[],
  signal: NodeJS.Signals,
  afterMs: number,
): Promise<CliRun> {
  const child = startCli(imports.arguments(logs));
  const timer = setTimeout(() => child.kill(signal), afterMs);
  try {
    return await finished(child);
  } finally {
    clearTimeout(timer);
  }
}

void suite('imports that are stopped', { concurrency: 2 }, () => {
  for (const [signal, shares] of [
    ['SIGKILL', [0.4, 0.6, 0.8, 0.95]],
    ['SIGINT', [0.5, 0.8]],
  ] as const) {
    test(`${signal} at several moments, then once more: the report of one import`, async (t) => {
      const dir = makeTempDir(t);
      const conf = join(dir, 'nginx.conf');
      const log = join(dir, 'access.log');
      writeFileSync(conf, CONF);
      writeFileSync(log, manyLines(0, LINES));
      const whole = new Imports(dir, [conf], 'whole');
      const startMs = performance.now();
      await whole.add([log]);
      const wholeMs = performance.now() - startMs;
      const expected = await whole.report();
      assert.equal(expected.spans[0]!.requests, LINES);

      const imports = new Imports(dir, [conf]);
      let stops = 0;
      for (const share of shares) {
        const run = await stopped(imports, [log], signal, share * wholeMs);
        if (run.signal === signal) stops++;
        else assert.equal(run.code, 0, run.stderr);
      }
      assert.ok(stops > 0, 'no import was stopped');
      const last = await imports.add([log]);
      assert.equal(last.files[0]!.knownBytes + last.files[0]!.newBytes, manyLines(0, LINES).length);
      assert.deepEqual(await imports.report(), expected);
    });
  }

  test('what came since, and other logs, follow what was interrupted', async (t) => {
    const dir = makeTempDir(t);
    const conf = join(dir, 'nginx.conf');
    const log = join(dir, 'access.log');
    const imports = new Imports(dir, [conf]);
    writeFileSync(conf, CONF);
    writeFileSync(log, manyLines(0, LINES));
    await interrupt(imports, log);
    // Rotated and gone on meanwhile: the old log has grown, and there is a new one.
    appendFileSync(log, manyLines(LINES, LINES + 1000));
    renameSync(log, `${log}.1`);
    writeFileSync(log, manyLines(LINES + 1000, LINES + 1500));
    const missing = await imports.try([log]);
    assert.equal(missing.code, 74);
    assert.match(
      missing.stderr,
      /was interrupted .*1 of its 1 logs is not among the files given now/s,
    );
    const result = await imports.add([log, `${log}.1`]);
    assert.match(result.stderr, /was interrupted: it is done again first, nothing counts twice/);
    assert.equal(result.summary.requests, LINES + 1500);
    assert.deepEqual(
      result.files.map((file) => file.lines),
      [500, LINES + 1000],
    );
    assert.equal((await imports.report()).spans[0]!.requests, LINES + 1500);
  });
});

/** Kills an import between its beginning and its end, which takes a few attempts. */
async function interrupt(imports: Imports, log: string): Promise<void> {
  let stepMs = 160;
  for (let afterMs = 600; ; afterMs += stepMs) {
    await stopped(imports, [log], 'SIGKILL', afterMs);
    const store = await openStore({ path: imports.store, createIfMissing: true });
    const isDone = (await store.checkpoint('default')) !== undefined;
    const isPending = (await store.pendingIntent('default')) !== undefined;
    await store.close();
    if (isPending) return;
    if (!isDone) continue;
    // It was over before it was killed: once more from the beginning, in smaller steps.
    rmSync(imports.store, { recursive: true });
    afterMs = Math.max(0, afterMs - 4 * stepMs);
    stepMs = Math.max(10, stepMs / 2);
  }
}
