import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { compileLogFormat } from '../parsers/access/line-scanner.js';
import { captureDirectories, formatOf, linesOf } from './support/captures.js';

const logs = captureDirectories().flatMap((directory) =>
  ['access.log', 'combined.log']
    .filter((name) => existsSync(join(directory, name)))
    .map((name) => ({ directory, name })),
);

test('there are captures to read', () => {
  assert.ok(logs.length >= 34, `${logs.length} logs`);
});

for (const { directory, name } of logs) {
  test(`every line fits its log_format: ${directory}/${name}`, () => {
    const scanner = compileLogFormat(formatOf(directory, name));
    for (const [i, line] of linesOf(join(directory, name)).entries()) {
      const column = scanner.scan(line, 0, line.length);
      assert.equal(column, -1, `line ${i + 1}: expected ${scanner.expected()}`);
    }
  });
}

test('values of trace a are those of its JSON', () => {
  const directory = 'test/traces/a_burst5_delay';
  const scanner = compileLogFormat(formatOf(directory, 'access.log'));
  for (const line of linesOf(join(directory, 'access.log'))) {
    const parsed = Object.values(JSON.parse(line.toString()) as Record<string, unknown>);
    assert.equal(scanner.scan(line, 0, line.length), -1);
    const values = scanner.variables.map((_, i) =>
      line.toString('latin1', scanner.starts[i], scanner.ends[i]),
    );
    assert.equal(parsed.length, values.length);
    for (const [i, value] of values.entries()) {
      const expected = parsed[i];
      assert.equal(typeof expected === 'number' ? Number(value) : value, expected);
    }
  }
});
