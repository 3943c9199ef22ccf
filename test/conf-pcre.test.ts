/**
 * compilePcre() against PCRE itself, as a running nginx uses it: every pattern is a map over $uri,
 * which can hold any byte but 0, and the answer lists what matched and what was captured.
 */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { once } from 'node:events';
import { test } from 'node:test';
import fc from 'fast-check';
import { compilePcre } from '../parsers/conf/pcre.js';
import { startNginx } from './support/nginx.js';

/** Pieces of the subjects: what the patterns below tell apart. */
const SUBJECTS = [
  ...[
    '',
    'a',
    'A',
    'b',
    'ab',
    'aB',
    'abc',
    'aab',
    'aaa',
    'aaaa',
    'a.b',
    'a-b',
    'a_b',
    'a]b',
    'a[b',
  ],
  ...['x.php', 'x.PHP', 'x.php\n', 'x.php\n\n', 'x.php\r', 'a\nb', '\n', 'a\rb', 'a b', 'a\tb'],
  ...[
    'a\x0bb',
    'a\x85b',
    'a\xa0b',
    '\xe9',
    '\xc9',
    '\xff',
    'caf\xe9',
    'a^b',
    'a$b',
    'a{2}',
    'a{,3}',
  ],
  ...[
    'a}b',
    'a|b',
    'a*b',
    'a(b)',
    'a\\b',
    '0',
    '42',
    'v2-x',
    '2026-11-30',
    'team-red-7',
    'a,b',
    '~',
  ],
  ...['a/b/c', 'AbC', 'word1 word2', '\x7f', '\x01', 'k', 'K', 's', 'S', '\xdf', '\xb5'],
];

const PATTERNS = [
  ...[
    '\\.php$',
    '\\.php\\Z',
    '\\.php\\z',
    '^/a',
    '\\A/a',
    '^/a$',
    '^/$',
    '/.$',
    '/.b',
    '(?s)/a.b$',
  ],
  ...['(?m)^b', '(?m)a$', '(?i)ABC', '(?i:A)B', '(?-i:a)', 'a(?i)B', '(a(?i)b)C', '(?i)[a-c]+$'],
  ...[
    '[]a]',
    '[^]a]b',
    '[a\\]]b',
    '[[:alpha:]]+$',
    '[[:^digit:]]$',
    '[^[:space:]]$',
    '[\\d-]+',
    '[a-]b',
  ],
  ...[
    '[\\w.]+',
    '[.-_]',
    '[\\x41-\\x43]',
    '[\\101]',
    '[^\\S]',
    '[\\h]',
    '[\\s]b',
    '\\s',
    '\\S$',
    '\\h',
  ],
  ...[
    '\\v',
    '\\H$',
    '\\V$',
    '\\d+',
    '\\D+',
    '\\w+$',
    '\\W',
    '\\bb',
    '\\Bb',
    '\\N+$',
    'a{2}',
    'a{2,}',
  ],
  ...['a{2,3}$', 'a{,3}', 'a\\{2}', 'a{x', 'a{', '{', 'a+?', 'a*?b', 'a??b', '(a)?b', '(?:a|b)+'],
  ...[
    '(?<n>[a-z]+)-',
    '(?P<n>\\d+)',
    "(?'n'\\w)-",
    '^/team-(?<team>[a-z]+)-[0-9]+$',
    'a(?=b)',
    'a(?!b)',
  ],
  ...[
    '(?<=a)b',
    '(?<!a)b',
    'a(?#a comment)b',
    '\\Qa.b\\E',
    '\\Q[',
    '\\Qa\\E+$',
    '[\\Q]^\\E]',
    '\\x2fa',
  ],
  ...[
    '\\x{e9}',
    '\\xe9',
    '[\\xe0-\\xef]',
    '(?i)\\xe9',
    '(?i)[\\xe9]',
    '(?i)k',
    '(?i)s',
    '\\t',
    '\\n',
    '\\r',
  ],
  ...[
    '\\e',
    '\\a',
    '\\f',
    '\\012',
    '\\0',
    '\\/',
    '\\-',
    '\\~',
    '\\"',
    '|a',
    'a|',
    '()',
    '(|a)b',
    '\\.',
    '.',
  ],
  ...[
    '\\$',
    '\\^',
    '[$]',
    '[^^]$',
    '(a|ab)(c|bcd)?',
    '^/(.*)/(.*)$',
    '~',
    '[a-c-e]$',
    '[+--]',
    '\\E',
  ],
];

/** Patterns of random make; all of them valid. */
const atom = fc.oneof(
  fc.constantFrom('a', 'b', 'c', 'B', '-', '\\.', '.', '\\d', '\\w', '\\s', '\\S', '[ab]', '[^a]'),
  fc.constantFrom('[a-c]', '[^\\n]', '[[:upper:]]', '\\n', '/', '$', '^', '\\b', '(?=b)', '(?!b)'),
);
const { pattern: random } = fc.letrec<{ pattern: string; piece: string; sequence: string }>(
  (tie) => ({
    pattern: fc.oneof(
      { maxDepth: 3 },
      tie('sequence'),
      fc.tuple(tie('sequence'), tie('sequence')).map(([a, b]) => `${a}|${b}`),
    ),
    sequence: fc.array(tie('piece'), { minLength: 1, maxLength: 4 }).map((list) => list.join('')),
    piece: fc.oneof(
      { maxDepth: 3 },
      atom,
      fc
        .tuple(
          fc.constantFrom('a', 'b', '.', '[ab]', '\\w'),
          fc.constantFrom('*', '+', '?', '{1,2}'),
        )
        .map(([a, b]) => `${a}${b}`),
      tie('pattern').map((inner) => `(${inner})`),
      tie('pattern').map((inner) => `(?i:${inner})`),
    ),
  }),
);

function quote(pattern: string): string {
  return `"${pattern.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** For each subject, what each pattern gave: `-` or `+` with its first capture. */
async function askNginx(
  t: Parameters<typeof startNginx>[0],
  patterns: readonly string[],
  subjects: readonly string[],
): Promise<readonly (readonly string[])[]> {
  const nginx = await startNginx(t, {
    http: ([port]) => `
      merge_slashes off; access_log off; variables_hash_max_size 4096;
      ${patterns.map((each, i) => `map $uri $p${i} { default -; ${quote(`~${each}`)} "+$1"; }`).join('\n')}
      server { listen 127.0.0.1:${port};
        location / { return 200 "${patterns.map((_, i) => `$p${i}`).join('\t|')}"; } }`,
  });
  const answers: string[][] = [];
  for (const subject of subjects) {
    const path = [...Buffer.from(subject, 'latin1')]
      .map((byte) => `%${byte.toString(16).padStart(2, '0')}`)
      .join('');
    const call = request({ port: nginx.port, path: `/${path}`, agent: false });
    call.end();
    const [response] = (await once(call, 'response')) as [NodeJS.ReadableStream];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    answers.push(Buffer.concat(chunks).toString('latin1').split('\t|'));
  }
  return answers;
}

function askRegExp(pattern: string, subject: string): string {
  const regex = compilePcre(pattern, { nocase: false });
  assert.ok(regex instanceof RegExp, `${pattern}: ${JSON.stringify(regex)}`);
  const match = regex.exec(`/${subject}`);
  return match === null ? '-' : `+${match[1] ?? ''}`;
}

async function compare(
  t: Parameters<typeof startNginx>[0],
  patterns: readonly string[],
  subjects: readonly string[],
): Promise<void> {
  const answers = await askNginx(t, patterns, subjects);
  let matches = 0;
  for (const [s, subject] of subjects.entries()) {
    for (const [p, pattern] of patterns.entries()) {
      const answer = answers[s]![p];
      if (answer !== '-') matches++;
      assert.equal(
        askRegExp(pattern, subject),
        answer,
        `/${pattern}/ on ${JSON.stringify(`/${subject}`)}`,
      );
    }
  }
  // Neither always nor never: else the comparison would say little.
  const share = matches / (patterns.length * subjects.length);
  assert.ok(share > 0.1 && share < 0.9, String(share));
}

test('patterns that configurations have, against nginx', async (t) => {
  await compare(t, PATTERNS, SUBJECTS);
});

test('patterns of random make, against nginx', async (t) => {
  const patterns = fc.sample(random, { numRuns: 300, seed: 20261130 });
  // JavaScript forgets a capture at each repetition; these patterns repeat no group.
  await compare(t, patterns, SUBJECTS);
});

const UNSUPPORTED = [
  ['a++', 'a possessive quantifier'],
  ['a{2}+', 'a possessive quantifier'],
  ['(?>a)', 'a group that begins with "(?>"'],
  ['(?R)', 'a group that begins with "(?R"'],
  ['(?|a|b)', 'a group that begins with "(?|"'],
  ['(?x) a', 'a group that begins with "(?x"'],
  ['(a)\\1', 'a back reference'],
  ['\\K', 'the escape \\K'],
  ['\\p{L}', 'the escape \\p'],
  ['\\x{100}', 'a character beyond one byte'],
  ['(*UTF8)a', 'a verb such as (*UTF8)'],
  ['a(*PRUNE)', 'a verb such as (*PRUNE)'],
  ['(', 'a missing closing parenthesis'],
  [')', 'an unmatched closing parenthesis'],
  ['[a', 'a missing closing bracket'],
  ['[z-a]', 'a range out of order'],
  ['[[:nope:]]', 'the class [:nope:]'],
  ['a\\', 'a lone backslash at the end'],
  ['+', 'a syntax that has no counterpart'],
] as const;

for (const [pattern, unsupported] of UNSUPPORTED) {
  test(`not evaluated, and said: ${pattern}`, () => {
    assert.deepEqual(compilePcre(pattern, { nocase: false }), { unsupported });
  });
}

test('nocase folds ASCII letters only', () => {
  const regex = compilePcre('^/\xe9k$', { nocase: true });
  assert.ok(regex instanceof RegExp);
  assert.deepEqual(
    ['/\xe9K', '/\xe9k', '/\xc9k', '/\xe9\u212a'].map((text) => regex.test(text)),
    [true, true, false, false],
  );
});

test('any text gives a RegExp or a reason, never an error', () => {
  const alphabet = fc.constantFrom(...'ab019\\()[]{}?*+|^$.-:=!<>iPQEx,#\'"\n\xff');
  fc.assert(
    fc.property(fc.array(alphabet, { maxLength: 12 }), fc.boolean(), (letters, nocase) => {
      const result = compilePcre(letters.join(''), { nocase });
      assert.ok(result instanceof RegExp || result.unsupported.length > 0);
    }),
    { numRuns: 3000 },
  );
});
