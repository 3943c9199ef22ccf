import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { detectFormat, looksLikeErrorLog } from '../parsers/access/detect.js';
import { compileLogFormat } from '../parsers/access/line-scanner.js';
import { PREDEFINED_FORMATS, predefinedFormat } from '../parsers/access/predefined.js';
import { captureDirectories, formatOf, linesOf } from './support/captures.js';

const predefined = PREDEFINED_FORMATS.map(compileLogFormat);
const HEAD = '192.0.2.7 - - [02/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "-"';

/** Name of what was found, or the kind of answer. */
function detect(lines: readonly string[], candidates = predefined): string {
  const found = detectFormat(
    lines.map((line) => Buffer.from(line)),
    candidates,
  );
  if ('format' in found) return found.format.format.name;
  if ('tie' in found) return `tie: ${found.tie.map((one) => one.format.name).join(' ')}`;
  const { best } = found;
  return best === undefined
    ? 'none'
    : `none: ${best.scanner.format.name} ${best.line}:${best.column} ${best.expected}`;
}

const own = (name: string, text: string) => compileLogFormat({ name, escape: 'default', text });

describe('formats by content', () => {
  test('combined', () => assert.equal(detect([HEAD]), 'combined'));
  test('main', () => assert.equal(detect([`${HEAD} "-"`]), 'main'));
  test('most lines decide', () => {
    assert.equal(detect(['garbage', `${HEAD} "-"`, HEAD, HEAD, '']), 'combined');
  });
  test('equal formats under two names are one', () => {
    const twin = own('mine', predefinedFormat('combined')!.text);
    assert.equal(detect([HEAD], [twin, ...predefined]), 'mine');
  });
  test('two that fit alike are a tie', () => {
    const candidates = [
      own('a', '$remote_addr $status $uri'),
      own('b', '$remote_addr $status $host'),
    ];
    assert.equal(detect(['192.0.2.1 200 /'], candidates), 'tie: a b');
  });
  test('the grammar of the variables tells formats apart', () => {
    const candidates = [own('a', '$remote_addr $status'), own('b', '$remote_addr $msec')];
    assert.equal(detect(['192.0.2.1 1796022103.711'], candidates), 'b');
  });
  test('none says how far the best came', () => {
    assert.equal(
      detect(['', HEAD.replace(' 200 ', ' 2x0 ')], [predefined[0]!]),
      'none: combined 2:62 $status like 200',
    );
    assert.equal(detect([]), 'none');
    assert.equal(detect([HEAD], []), 'none');
  });
});

describe('logs of the captures', () => {
  for (const directory of captureDirectories()) {
    const names = ['access.log', 'combined.log'].filter((name) =>
      existsSync(join(directory, name)),
    );
    const logs = names.map((name) => ({ name, lines: linesOf(join(directory, name)) }));
    for (const { name, lines } of logs) {
      test(`${directory}/${name} is told from the other formats, and is no error log`, () => {
        const candidates = names.map((one) => compileLogFormat(formatOf(directory, one)));
        const found = detectFormat(lines, [...candidates, ...predefined]);
        assert.ok('format' in found);
        assert.deepEqual(found.format.format, formatOf(directory, name));
        assert.equal(looksLikeErrorLog(lines), false);
      });
    }
    test(`${directory}/error.log is an error log`, () => {
      const lines = linesOf(join(directory, 'error.log'));
      assert.equal(looksLikeErrorLog(lines), true);
      assert.ok('none' in detectFormat(lines, predefined));
    });
  }

  test('nothing is no error log', () => assert.equal(looksLikeErrorLog([]), false));
});
