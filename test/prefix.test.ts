import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { PrefixStripper } from '../parsers/prefix.js';
import { captureDirectories, linesOf } from './support/captures.js';

const ERROR = '2026/03/02 10:00:00 [warn] 17#17: *9 delaying request, excess: 0.5';
const ACCESS = '192.0.2.7 - - [02/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "-"';

/** [line, what is left of it] */
const prefixed: readonly (readonly [string, string])[] = [
  [`<190>Nov 30 07:00:00 web nginx: ${ACCESS}`, ACCESS],
  [`<190>Nov  3 07:00:00 nginx: ${ACCESS}`, ACCESS],
  [`<187>Nov 30 07:00:00 2001:db8::1 edge_1: ${ERROR}`, ERROR],
  [`Nov 30 07:00:00 web nginx: ${ERROR}`, ERROR],
  [`Nov 30 07:00:00 web nginx[12]: ${ACCESS}`, ACCESS],
  [`2026-11-30T07:00:00.123456+00:00 web nginx[12]: ${ACCESS}`, ACCESS],
  [`<190>1 2026-11-30T07:00:00.003Z web nginx 12 - - ${ACCESS}`, ACCESS],
  [`<190>1 2026-11-30T07:00:00Z web nginx - ID47 [a@1 b="c\\]d"][e@2] \xef\xbb\xbf${ERROR}`, ERROR],
  [`2026-03-02T10:00:00.123456789Z stdout F ${ERROR}`, ERROR],
  [`2026-03-02T10:00:00.123456789+01:00 stderr F ${ACCESS}`, ACCESS],
  [`2026-03-02T10:00:00.123456789Z ${ACCESS}`, ACCESS],
  [`[pod/web-7d9/nginx] ${ERROR}`, ERROR],
  [`[pod/web-7d9/nginx] 2026-03-02T10:00:00.123456789Z ${ACCESS}`, ACCESS],
  [`web-1  | ${ACCESS}`, ACCESS],
  [`web | ${ERROR}`, ERROR],
  [JSON.stringify({ log: `${ERROR}\n`, stream: 'stderr', time: '2026-03-02T10:00:00Z' }), ERROR],
  // Docker's encoder writes < > & as \u003c and so on.
  [`{"log":"a \\u003cb\\u003e \xc3\xa9\\n","stream":"stdout","time":"t"}`, 'a <b> \xc3\xa9'],
];

describe('a prefix is taken off:', () => {
  for (const [line, rest] of prefixed) {
    test(line, () => assert.equal(new PrefixStripper().push(line), rest));
  }
});

/** Lines of nginx, or of its neighbours, that only look as if they had a prefix. */
const bare = [
  ERROR,
  ACCESS,
  '',
  'nginx: [emerg] unknown directive "x" in /etc/nginx/nginx.conf:3',
  'E0302 10:00:00.1       6 controller.go:2] error obtaining endpoints',
  '2026-03-02T10:00:00+00:00 a.example GET /x: 200',
  'a.example | 200 | GET / HTTP/1.1',
  '{"log":"x"}',
  '{"log":"x","stream":"stdin","time":"t"}',
  '{"log":"unfinished',
  '[02/Mar/2026:16:40:25 +0000] - 200 200 - GET https a.example "/login"',
  '<script>alert(1)</script>',
  'November 30 07:00:00 web nginx: x',
];

describe('a line without a prefix stays:', () => {
  for (const line of bare) {
    test(JSON.stringify(line), () => assert.equal(new PrefixStripper().push(line), line));
  }
});

test('no line of real nginx is changed', () => {
  const stripper = new PrefixStripper();
  let count = 0;
  for (const directory of captureDirectories()) {
    for (const name of ['access.log', 'combined.log', 'error.log']) {
      const path = join(directory, name);
      if (!existsSync(path)) continue;
      for (const bytes of linesOf(path)) {
        const line = bytes.toString('latin1');
        assert.equal(stripper.push(line), line);
        count++;
      }
    }
  }
  assert.ok(count > 20_000, `${count} lines`);
});

const CRI_TIME = '2026-03-02T10:00:00.123456789Z';

test('CRI parts are joined per stream', () => {
  const stripper = new PrefixStripper();
  const pushed = [
    `${CRI_TIME} stdout P 192.0.2.7 - `,
    `${CRI_TIME} stderr P 2026/03/02 `,
    `${CRI_TIME} stdout P - [02/Mar`,
    `${CRI_TIME} stderr F 10:00:00 [warn]`,
    `${CRI_TIME} stdout F /2026]`,
    `${CRI_TIME} stdout F next`,
  ].map((line) => stripper.push(line));
  assert.deepEqual(pushed, [
    undefined,
    undefined,
    undefined,
    '2026/03/02 10:00:00 [warn]',
    '192.0.2.7 - - [02/Mar/2026]',
    'next',
  ]);
  assert.deepEqual(stripper.drain(), []);
});

test('parts of two pods in one file do not mix', () => {
  const stripper = new PrefixStripper();
  assert.equal(stripper.push(`[pod/a/nginx] ${CRI_TIME} stdout P one `), undefined);
  assert.equal(stripper.push(`[pod/b/nginx] ${CRI_TIME} stdout P two `), undefined);
  assert.equal(stripper.push(`[pod/a/nginx] ${CRI_TIME} stdout F end`), 'one end');
  assert.deepEqual(stripper.drain(), ['two ']);
  assert.deepEqual(stripper.drain(), []);
});

test("Docker's parts end with a newline", () => {
  const stripper = new PrefixStripper();
  const entry = (log: string): string => JSON.stringify({ log, stream: 'stdout', time: 't' });
  assert.equal(stripper.push(entry('a')), undefined);
  assert.equal(stripper.push(entry('b\n')), 'ab');
});

test('any bytes survive a CRI prefix, however they are cut into parts', () => {
  const byteText = fc.uint8Array({ maxLength: 40 }).map((bytes) =>
    Buffer.from(bytes)
      .toString('latin1')
      .replace(/[\r\n]/g, '.'),
  );
  fc.assert(
    fc.property(fc.array(byteText, { minLength: 1, maxLength: 4 }), (parts) => {
      // A joined line can begin like another prefix; that is tested above, so start with a space.
      const whole = ` ${parts.join('')}`;
      const stripper = new PrefixStripper();
      const texts = [` ${parts[0]}`, ...parts.slice(1)];
      const results = texts.map((text, i) =>
        stripper.push(`${CRI_TIME} stdout ${i === texts.length - 1 ? 'F' : 'P'} ${text}`),
      );
      assert.equal(results.at(-1), whole);
    }),
  );
});
