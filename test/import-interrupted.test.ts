/**
 * Imports that are stopped anywhere, and run again: everything counts once.
 */
import assert from 'node:assert/strict';
import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { Imports } from './support/imports.js';
import { CONF, interrupt, LINES, manyLines, stopped } from './support/stopped-imports.js';
import { makeTempDir } from './support/temp-dir.js';

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
