/**
 * Words, quotes, comments and braces: tables, and random text given to nginx -t as well.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { ConfError } from '../parsers/conf/conf-error.js';
import { hasWildcard, matchesGlob } from '../parsers/conf/glob.js';
import { Lexer } from '../parsers/conf/lexer.js';
import { parseConf } from '../parsers/conf/read-conf.js';
import { splitDump } from '../parsers/conf/source.js';
import { requireProgram } from './support/debian.js';
import { makeTempDir } from './support/temp-dir.js';

function words(text: string): readonly string[] {
  const token = new Lexer('x', text).next();
  assert.ok(token.kind === 'simple' || token.kind === 'block');
  return token.words;
}

const WORDS: readonly (readonly [string, readonly string[]])[] = [
  ['a b;', ['a', 'b']],
  ['\t a\r\n\tb\r\n;', ['a', 'b']],
  ['a "b c" \'d "e"\';', ['a', 'b c', 'd "e"']],
  ['a "";', ['a', '']],
  ['a "b\\"c" \'d\\\'e\';', ['a', 'b"c', "d'e"]],
  ['a "\\t\\r\\n\\\\\\x\\$";', ['a', '\t\r\n\\\\x\\$']],
  ['a \\t\\\\;', ['a', '\t\\']],
  ['a b\\ c\\;d\\{e;', ['a', 'b\\ c\\;d\\{e']],
  ['a ~ "x{2}";', ['a', '~', 'x{2}']],
  ['a ${b}c $d;', ['a', '${b}c', '$d']],
  ['a "${b}{";', ['a', '${b}{']],
  ['a b"c d;', ['a', 'b"c', 'd']],
  ['a b#c d; # e', ['a', 'b#c', 'd']],
  ['a # b; "\n c;', ['a', 'c']],
  ['if ($a = "b"){', ['if', '($a', '=', 'b', ')']],
  ['a{', ['a']],
  ['a "b"{', ['a', 'b']],
  ['a }b;', []],
];

for (const [text, expected] of WORDS) {
  test(`words of ${JSON.stringify(text)}`, () => {
    if (expected.length > 0) assert.deepEqual(words(text), expected);
    else assert.throws(() => words(text), { message: 'x:1: unexpected "}"' });
  });
}

function parse(path: string, text: string): string {
  try {
    parseConf(path, { read: (name) => (name === path ? text : undefined), glob: () => [] });
    return '';
  } catch (error) {
    if (!(error instanceof ConfError)) throw error;
    return `${error.reason} in ${error.where.path}:${error.where.line}`;
  }
}

function askNginx(dir: string, path: string): string {
  const args = ['-t', '-p', dir, '-c', path, '-e', join(dir, 'e.log'), '-g', 'pid nginx.pid;'];
  const { stderr } = spawnSync(requireProgram('nginx'), args, { encoding: 'latin1' });
  const refusal = /\[emerg\] (?:\d+#\d+: )?(.*)/.exec(stderr)?.[1] ?? '';
  // Variables that no module has are looked for when all has been read.
  return /^(?:unknown "\w+" variable$|mkdir\(\))/.test(refusal) ? '' : refusal;
}

const PIECES = fc.constantFrom(
  ...['a', 'bc', ' ', ' ', ';', ';', '\n', '"', "'", '\\', '#', '{', '}', '$', '${', '$arg_x', ')'],
  ...[
    'a b;',
    '"c d" e;',
    '"\\"',
    'x{y}',
    '# z\n',
    '\r\n',
    '\t',
    '; default 1;',
    ';hostnames;',
    '=',
  ],
);

test('random lines inside of a map: nginx -t says the same', (t) => {
  const dir = makeTempDir(t);
  const path = join(dir, 'nginx.conf');
  let accepted = 0;
  fc.assert(
    fc.property(fc.array(PIECES, { maxLength: 7 }), (pieces) => {
      const text = `events {}\nhttp { map $arg_a $arg_b { ${pieces.join('')}; } }`.replace(
        '; }',
        ' }',
      );
      writeFileSync(path, text, 'latin1');
      const answer = askNginx(dir, path);
      // A brace ended the map early, and what follows could be any module's directive.
      fc.pre(!/^unknown directive "\w+"/.test(answer));
      assert.equal(parse(path, text), answer, JSON.stringify(text));
      if (answer === '') accepted++;
    }),
    { numRuns: 200, seed: 20261130, endOnFailure: true },
  );
  assert.ok(accepted > 10, String(accepted));
});

test('whatever the text, the only error is a ConfError', () => {
  const directive = fc.constantFrom(
    ...['http {', 'server {', 'location / {', 'if (a) {', 'map $a $b {', 'geo $c {', '}', '}', ';'],
    ...[
      'limit_req zone=a',
      'limit_req_zone $a zone=b:1m rate=1r/s;',
      'listen 80;',
      'listen [',
      '"',
    ],
    ...['access_by_lua_block {', 'include x;', 'server_name ~(;', 'ranges;', '1.2.3.4-1.2.3.9 1;'],
    ...['delete x;', 'return 1;', 'rewrite a b;', '\\', '#', '\n', '\0', '\xff', '~( 1;', '* 2;'],
  );
  fc.assert(
    fc.property(fc.array(directive, { maxLength: 14 }), (pieces) => {
      parse('x', pieces.join(' '));
    }),
    { numRuns: 3000 },
  );
});

const GLOBS = [
  ['conf.d/*.conf', 'conf.d/a.conf', true],
  ['conf.d/*.conf', 'conf.d/.a.conf', false],
  ['conf.d/*.conf', 'conf.d/a/b.conf', false],
  ['conf.d/.*', 'conf.d/.a', true],
  ['*/?.conf', 'x/a.conf', true],
  ['*/?.conf', 'x/ab.conf', false],
  ['[a-c]', 'b', true],
  ['[!a-c]', 'b', false],
  ['[^a-c]', 'd', true],
  ['[]x]', ']', true],
  ['[z-a]', 'b', false],
  ['\\*', '*', true],
  ['\\*', 'a', false],
  ['a[', 'a[', true],
  ['a.c', 'abc', false],
] as const;

for (const [pattern, path, expected] of GLOBS) {
  test(`glob ${pattern} ${expected ? 'takes' : 'leaves'} ${path}`, () => {
    assert.equal(matchesGlob(pattern, path), expected);
  });
}

test('only *, ? and [ make a pattern', () => {
  assert.deepEqual(['a*', 'a?', 'a[', 'a]', 'a{b}', 'a'].map(hasWildcard), [
    ...[true, true, true],
    ...[false, false, false],
  ]);
});

test('a dump is split at its section lines, and loses the line feed nginx adds', () => {
  const text =
    'nginx: the configuration file /a syntax is ok\n' +
    '# configuration file /a:\nuser x;\n\n# configuration file /b b:\nuser y;\n# end\n';
  assert.deepEqual(splitDump(text), [
    { path: '/a', text: 'user x;\n' },
    { path: '/b b', text: 'user y;\n# end' },
  ]);
});
