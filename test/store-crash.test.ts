/**
 * kill -9 in the middle of everything that writes, and what is there afterwards.
 */
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { EXIT, InputError } from '../src/errors.js';
import { openStore } from '../src/store/store.js';
import { CRASH_INSTANCE, importSteps, ROWS_PER_BLOCK, STEPS } from './support/import-steps.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';

const CHILD = fileURLToPath(new URL('./support/store-child.js', import.meta.url));

interface Ended {
  readonly stdout: string;
  readonly signal: string | undefined;
}

async function runImport(path: string, killAt: number): Promise<Ended> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [CHILD, 'import', path, String(killAt)], (error, stdout, stderr) => {
      if (error !== null && error.signal !== 'SIGKILL') reject(new Error(stderr, { cause: error }));
      else resolve({ stdout, signal: error?.signal });
    });
  });
}

/** A process that has the store open; killed when the test ends. */
async function holdOpen(t: Cleanup, path: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [CHILD, 'hold', path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => {
    child.kill('SIGKILL');
  });
  await once(child.stdout, 'data');
  return child;
}

test('killed in begin, in each block and in commit: counted once', async (t) => {
  const path = join(makeTempDir(t), 'store');
  const steps = importSteps();
  const requestsPerStep = 2 + (steps[0]?.blocks.length ?? 0);
  // One run per request of the first step, killed in it; a step cut short starts again in the next.
  for (let killAt = 1; killAt <= requestsPerStep; killAt++) {
    assert.deepEqual(await runImport(path, killAt), { stdout: '', signal: 'SIGKILL' });
  }
  assert.deepEqual(await runImport(path, 0), { stdout: 'done\n', signal: undefined });

  const store = await openStore({ path, createIfMissing: false });
  t.after(() => store.close());
  const rows = STEPS * ROWS_PER_BLOCK;
  assert.deepEqual(
    await store.query('SELECT sum(passed) AS passed, uniqExact(minute) AS steps FROM key_minutes'),
    [{ passed: rows, steps: STEPS }],
  );
  assert.deepEqual(await store.query('SELECT sum(requests) AS requests FROM agreement'), [
    { requests: rows },
  ]);
  assert.equal(await store.pendingIntent(CRASH_INSTANCE), undefined);
  assert.deepEqual(await store.checkpoint(CRASH_INSTANCE), steps.at(-1)?.checkpoint);
});

test('in use by another process: said with its pid; free again once that is dead', async (t) => {
  const path = join(makeTempDir(t), 'store');
  const holder = await holdOpen(t, path);
  await assert.rejects(openStore({ path, createIfMissing: true }), (error) => {
    assert.ok(error instanceof InputError, String(error));
    assert.equal(error.exitCode, EXIT.io);
    assert.ok(error.message.startsWith(`${path}: expected a free store`), error.message);
    assert.match(error.message, new RegExp(`in use by another process \\(pid ${holder.pid}\\)`));
    return true;
  });
  const exited = once(holder, 'exit');
  holder.kill('SIGKILL');
  await exited;
  const store = await openStore({ path, createIfMissing: false });
  await store.close();
});
