/**
 * The daemon's own log: JSON lines that nothing in a log can break.
 */
import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { JsonLog } from '../src/daemon/json-log.js';

class Lines extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

test('a line has level, time, pid, the fields and the message', () => {
  const lines = new Lines();
  new JsonLog(lines).warn('lags', { source: 'access.log', bytes: 7 });
  const line = JSON.parse(lines.text) as Record<string, unknown>;
  assert.deepEqual(Object.keys(line), ['level', 'time', 'pid', 'source', 'bytes', 'message']);
  assert.equal(line['level'], 'warn');
  assert.equal(line['message'], 'lags');
  assert.equal(line['pid'], process.pid);
  assert.equal(new Date(String(line['time'])).toISOString(), line['time']);
});

test('levels below the one asked for are left out', () => {
  const lines = new Lines();
  const log = new JsonLog(lines, 'warn');
  log.info('a');
  log.error('b');
  assert.deepEqual(
    lines.text.split('\n').filter((line) => line.includes('"a"')),
    [],
  );
  assert.match(lines.text, /"level":"error".*"message":"b"/);
});

test('any text comes back as it was, in one line without a character that a terminal obeys', () => {
  const hostile = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('\u001b[2J', '\u009b31m', '\u202e', '\r\n{"level":"error"}', '"}\n'),
  );
  fc.assert(
    fc.property(hostile, hostile, (message, found) => {
      const lines = new Lines();
      new JsonLog(lines).info(message, { found });
      assert.match(lines.text, /^[^\n]+\n$/);
      assert.doesNotMatch(lines.text.slice(0, -1), /[\p{Cc}\u2028\u2029\u202a-\u202e]/u);
      const line = JSON.parse(lines.text) as Record<string, unknown>;
      assert.deepEqual([line['message'], line['found']], [message, found]);
    }),
    { seed: 1 },
  );
});
