/**
 * What must not be opened: a pipe in place of a log, and a log in place of a file to write.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { linkSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { InputError } from '../src/errors.js';
import { readHead } from '../src/input/head.js';
import { DeadLetters } from '../src/pipeline/dead-letters.js';
import { makeTempDir } from './support/temp-dir.js';

function isRefusal(code: number, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof InputError, String(error));
    assert.equal(error.exitCode, code);
    assert.match(error.message, message);
    return true;
  };
}

test('a named pipe is refused without waiting for somebody who writes to it', async (t) => {
  const pipe = join(makeTempDir(t), 'pipe');
  execFileSync('mkfifo', [pipe]);
  await assert.rejects(readHead(pipe), isRefusal(66, /is a pipe or a socket.*\n.*standard input/));
});

test('what lies below a file is told as a file that is not there', async (t) => {
  const dir = makeTempDir(t);
  writeFileSync(join(dir, 'file'), 'a line\n');
  const below = join(dir, 'file', 'access.log');
  await assert.rejects(readHead(below), isRefusal(66, /ENOTDIR/));
  assert.throws(() => new DeadLetters(below, []), isRefusal(74, /file.access\.log.*ENOTDIR/));
});

test('dead letters go over no file that is read, whatever it is called', (t) => {
  const dir = makeTempDir(t);
  const log = join(dir, 'access.log');
  writeFileSync(log, 'a line\n');
  symlinkSync(log, join(dir, 'symbolic'));
  linkSync(log, join(dir, 'hard'));
  for (const name of ['access.log', 'symbolic', 'hard']) {
    assert.throws(
      () => new DeadLetters(join(dir, name), [join(dir, 'other.log'), log]),
      isRefusal(
        64,
        /--dead-letter .*expected a file of its own, found .*access\.log, which is read/,
      ),
    );
  }
  assert.equal(readFileSync(log, 'utf8'), 'a line\n');
  const letters = new DeadLetters(join(dir, 'dead.ndjson'), [log]);
  letters.write(log, 0, 'expected a time', Buffer.from('a line'));
  letters.close();
  assert.match(readFileSync(join(dir, 'dead.ndjson'), 'utf8'), /"raw":"a line"\}\n$/);
});

test('a full disk under the dead letters is said as such', () => {
  const letters = new DeadLetters('/dev/full', []);
  assert.throws(
    () => letters.write('access.log', 0, 'expected a time', Buffer.from('a line')),
    isRefusal(74, /--dead-letter \/dev\/full: no space left on the device/),
  );
  letters.close();
});
