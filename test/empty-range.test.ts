/**
 * Times that hold no request are told from a store that holds none.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { emptyRange } from '../src/commands/empty-range.js';
import { openStore } from '../src/store/store.js';
import { mustRun, runCli } from './support/cli.js';
import { confOf } from './support/imports.js';
import { Instance } from './support/instances.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

const TRACE = 'a_burst5_delay';
const BEFORE = '2001-01-01T00:00:00Z';

test('an empty range is said as such, with what the store holds', async (t) => {
  const path = join(makeTempDir(t), 'store');
  const store = await openStore({ path, createIfMissing: true });
  try {
    assert.equal(await emptyRange(store, { untilMs: Date.parse(BEFORE) }), undefined);
    const log = join(traceDir(TRACE), 'access.log');
    await new Instance(store, confOf(TRACE), 'default').add([log]);
    assert.equal(await emptyRange(store, {}), undefined);
    assert.equal(await emptyRange(store, { sinceMs: Date.parse(BEFORE) }), undefined);
  } finally {
    await store.close();
  }
  const where = ['--store', path];
  const said = new RegExp(
    `^No requests until ${BEFORE}: the store holds \\d+, 20\\d\\d-\\S+Z to 20\\d\\d-\\S+Z\\.\n`,
  );
  for (const [command, code] of [
    ['report', 0],
    ['zones', 0],
    ['sources', 0],
    ['dry-run', 3],
  ] as const) {
    const run = await runCli([command, ...where, '--until', BEFORE]);
    assert.equal(run.code, code, run.stderr);
    assert.match(run.stdout, said, command);
  }
  const json = await mustRun(['report', ...where, '--until', BEFORE, '--format', 'json']);
  assert.deepEqual((JSON.parse(json.stdout) as { spans: object[] }).spans, []);
});
