/**
 * An import that was killed and whose logs are gone does not hold its instance for ever.
 */
import assert from 'node:assert/strict';
import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Imports } from './support/imports.js';
import { CONF, interrupt, LINES, manyLines } from './support/stopped-imports.js';
import { makeTempDir } from './support/temp-dir.js';

test('its logs are gone: it can be ended as it stands, and nothing of it counts twice', async (t) => {
  const dir = makeTempDir(t);
  const conf = join(dir, 'nginx.conf');
  const log = join(dir, 'access.log');
  const imports = new Imports(dir, [conf]);
  writeFileSync(conf, CONF);
  writeFileSync(log, manyLines(0, LINES));
  await interrupt(imports, log);
  const kept = join(dir, 'backup.log');
  renameSync(log, kept);
  writeFileSync(log, manyLines(LINES, LINES + 500));
  const refused = await imports.try([log]);
  assert.equal(refused.code, 74);
  assert.match(refused.stderr, /1 of its 1 logs is not among the files given now: .*access\.log\n/);
  assert.match(refused.stderr, /--abandon-interrupted ends that import as it stands/);

  const result = await imports.add([log, '--abandon-interrupted']);
  assert.match(result.stderr, /is given up: what it has stored stays/);
  assert.equal(result.summary.requests, 500);
  const { requests } = (await imports.report()).spans[0]!;
  assert.ok(requests >= 500 && requests <= LINES + 500, `${requests} requests`);
  // Neither is anything open now, nor does the log count when it comes back.
  appendFileSync(kept, manyLines(LINES + 500, LINES + 600));
  const back = await imports.add([log, kept]);
  assert.equal(back.summary.requests, 100);
  assert.equal((await imports.report()).spans[0]!.requests, requests + 100);
});
