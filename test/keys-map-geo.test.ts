import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileLogFormat } from '../parsers/access/line-scanner.js';
import { parseConf } from '../parsers/conf/read-conf.js';
import { planKey } from '../src/keys/key-plan.js';
import { formatOf, linesOf } from './support/captures.js';

/** Evaluates a variable of a configuration for values of $http_x, $remote_addr and $xff. */
function evaluator(conf: string, expression: string) {
  const model = parseConf('nginx.conf', {
    read: () => `events {} http { ${conf} }`,
    glob: () => [],
  });
  const text = '$remote_addr|$http_x_forwarded_for|$http_x';
  const scanner = compileLogFormat({ name: 'f', escape: 'none', text });
  const planned = planKey(expression, {
    conf: model,
    variables: scanner.variables,
    escape: 'none',
    constants: {},
  });
  if (!('plan' in planned)) assert.fail(planned.why);
  const { plan } = planned;
  return (value: string, address = '192.0.2.1', forwardedFor = '') => {
    const line = Buffer.from(`${address}|${forwardedFor}|${value}`, 'latin1');
    assert.equal(scanner.scan(line, 0, line.length), -1);
    const length = plan.evaluate(line, scanner);
    return length === -1 ? null : Buffer.from(plan.out.subarray(0, length)).toString('latin1');
  };
}

test('map: exact without case, then wildcards, longest first, then regular expressions, then default', () => {
  const of = evaluator(
    `map $http_x $v { hostnames; default D;
       ~^b\\.example$ regex; ~example regex2; ~*NOCASE$ nocase;
       a.example exact; *.example head; *.c.example longer; .d.example dot; a.* tail; a.b.* tail2; }`,
    '$v',
  );
  const cases: readonly (readonly [string, string])[] = [
    ['a.example', 'exact'],
    ['A.eXample', 'exact'],
    ['a.example.', 'exact'],
    ['b.example', 'head'],
    ['x.c.example', 'longer'],
    ['c.example', 'head'],
    ['d.example', 'dot'],
    ['x.d.example', 'dot'],
    ['.example', 'head'],
    ['a.com', 'tail'],
    ['a.b.com', 'tail2'],
    ['a.b', 'tail'],
    ['a', 'D'],
    ['example', 'regex2'],
    ['noCase', 'nocase'],
    ['', 'D'],
  ];
  for (const [value, expected] of cases) assert.equal(of(value), expected, value);
});

test('map: without hostnames a star is a star, and a last dot is kept', () => {
  const of = evaluator('map $http_x $v { default D; *.example star; a.example exact; }', '$v');
  assert.equal(of('x.example'), 'D');
  assert.equal(of('*.example'), 'star');
  assert.equal(of('a.example.'), 'D');
});

test('map: the empty source has its own entry, and meets no regular expression', () => {
  const with_ = evaluator('map $http_x $v { "" empty; ~^ any; }', '$v');
  assert.equal(with_(''), 'empty');
  assert.equal(with_('x'), 'any');
  const without = evaluator('map $http_x $v { ~^ any; default D; }', '$v');
  assert.equal(without(''), 'D');
});

test('map: an escaped pattern is a text', () => {
  const of = evaluator('map $http_x $v { \\~a tilde; \\default word; default D; }', '$v');
  assert.equal(of('~a'), 'tilde');
  assert.equal(of('a'), 'D');
  assert.equal(of('DEFAULT'), 'word');
});

test('map: without a default the value is empty', () => {
  assert.equal(evaluator('map $http_x $v { a 1; }', '$v')('b'), '');
});

test('map: values take captures by number and name, and other variables', () => {
  const of = evaluator(
    `map $http_x $v { ~^(?<Team>[a-z]+)-([0-9]+)$ "$2:$team@$remote_addr"; ~^(x)?y$ "[$1]"; }`,
    '$v',
  );
  assert.equal(of('red-7'), '7:red@192.0.2.1');
  assert.equal(of('blue-8', '2001:db8::1'), '8:blue@2001:db8::1');
  assert.equal(of('y'), '[]');
  assert.equal(of('xy'), '[x]');
});

test('map: regular expressions see bytes, also those that are not UTF-8', () => {
  const of = evaluator('map $http_x $v { "~^.{2}\\xff$" three; default D; }', '$v');
  assert.equal(of('\xc3\xa9\xff'), 'three');
  assert.equal(of('\xc3\xff'), 'D');
});

test('map: of $binary_remote_addr sees raw bytes, and gives the address as text', () => {
  const of = evaluator(
    `map $binary_remote_addr $v { "~^\\x7f\\x00" ""; "~^\\x20\\x01\\x0d\\xb8" v6; 192.0.2.1 text; default $binary_remote_addr; }`,
    '$v',
  );
  assert.equal(of('', '127.0.0.1'), '');
  assert.equal(of('', '2001:db8::5'), 'v6');
  assert.equal(of('', '192.0.2.1'), '192.0.2.1');
});

test('map: chains, also through a map of several variables', () => {
  const of = evaluator(
    `map $http_x $a { ~^a "A"; default ""; } map "$a:$remote_addr" $b { ~^A:192 "in"; ~^: ""; default "$a-out"; }`,
    '$b',
  );
  assert.equal(of('abc'), 'in');
  assert.equal(of('abc', '198.51.100.1'), 'A-out');
  assert.equal(of('x'), '');
});

test('map: more different sources than are remembered change nothing', () => {
  const of = evaluator('map $http_x $v { ~^(.*)7$ "seven:$1"; default D; }', '$v');
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 20_000; i++) {
      const value = `${i}`;
      assert.equal(of(value), value.endsWith('7') ? `seven:${value.slice(0, -1)}` : 'D');
    }
  }
});

test('map: volatile evaluates alike', () => {
  const of = evaluator('map $http_x $v { volatile; ~^(.)a "$1"; default D; }', '$v');
  assert.deepEqual(
    ['xa', 'ya', 'z', 'xa'].map((value) => of(value)),
    ['x', 'y', 'D', 'x'],
  );
});

const GEO_CASES: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  [
    'geo $v { default 0; 10.0.0.0/8 ten; 10.1.0.0/16 ten-one; 10.1.2.3 host; 2001:db8::/32 six; 2001:db8:1::/48 six-one; ::1 loop; }',
    [
      ['10.2.0.1', 'ten'],
      ['10.1.0.0', 'ten-one'],
      ['10.1.255.255', 'ten-one'],
      ['10.1.2.3', 'host'],
      ['10.1.2.4', 'ten-one'],
      ['9.255.255.255', '0'],
      ['11.0.0.0', '0'],
      ['2001:db8::1', 'six'],
      ['2001:db8:1::', 'six-one'],
      ['2001:db8:2::', 'six'],
      ['2001:db9::', '0'],
      ['::1', 'loop'],
      ['::2', '0'],
      ['::ffff:10.1.2.3', 'host'],
      ['unix:', '0'],
    ],
  ],
  [
    'geo $v { 0.0.0.0/0 four; ::/0 six; }',
    [
      ['255.255.255.254', 'four'],
      ['::', 'six'],
      ['unix:', 'four'],
    ],
  ],
  [
    'geo $v { 255.0.0.0/8 high; }',
    [
      ['unix:', 'high'],
      ['254.0.0.1', ''],
      ['ffff::', ''],
    ],
  ],
  [
    'geo $v { ranges; default 0; 10.0.0.0-10.0.255.255 a; 10.0.1.0-10.0.1.9 b; 10.1.0.0-10.3.0.5 c; }',
    [
      ['10.0.0.0', 'a'],
      ['10.0.1.0', 'b'],
      ['10.0.1.9', 'b'],
      ['10.0.1.10', 'a'],
      ['10.3.0.5', 'c'],
      ['10.3.0.6', '0'],
      ['2001:db8::1', '0'],
      ['::ffff:10.0.1.5', 'b'],
    ],
  ],
];

for (const [conf, cases] of GEO_CASES) {
  test(conf, () => {
    const of = evaluator(conf, '$v');
    for (const [address, expected] of cases) assert.equal(of('', address), expected, address);
  });
}

test('geo: of another variable reads its text; what is no address meets only what covers all', () => {
  const of = evaluator('geo $http_x $v { default 0; 10.0.0.0/8 ten; ::1 one; }', '$v');
  assert.equal(of('10.9.9.9'), 'ten');
  assert.equal(of('::1'), 'one');
  assert.equal(of('[::1]'), '0');
  assert.equal(of('10.9.9'), '0');
  assert.equal(of(''), '0');
});

test('geo: behind a proxy the last forwarded address counts, behind several the last that is none', () => {
  const body = 'proxy 10.0.0.0/8; default 0; 192.0.2.0/24 net; 10.0.0.0/8 proxy;';
  const once = evaluator(`geo $v { ${body} }`, '$v');
  assert.equal(once('', '192.0.2.9', '10.0.0.1'), 'net');
  assert.equal(once('', '10.0.0.1', '192.0.2.1, 192.0.2.2'), 'net');
  assert.equal(once('', '10.0.0.1', '192.0.2.1, 10.0.0.2'), 'proxy');
  assert.equal(once('', '10.0.0.1', ''), 'proxy');
  assert.equal(once('', '10.0.0.1', 'unknown'), 'proxy');
  assert.equal(once('', '10.0.0.1', '192.0.2.1:8080'), 'net');
  assert.equal(once('', '10.0.0.1', '[2001:db8::1]:80'), '0');
  const recursive = evaluator(`geo $v { proxy_recursive; ${body} }`, '$v');
  assert.equal(recursive('', '10.0.0.1', '192.0.2.1, 10.0.0.2'), 'net');
  assert.equal(recursive('', '10.0.0.1', '192.0.2.1, 198.51.100.1, 10.0.0.2, '), '0');
  assert.equal(recursive('', '10.0.0.1', '10.0.0.3,10.0.0.2'), 'proxy');
});

test('a variable of a map that is logged serves where the sources are not', () => {
  const conf = parseConf('nginx.conf', {
    read: () => 'events {} http { map $http_x $v { ~^(.)$ $1; default D; } }',
    glob: () => [],
  });
  const keyOf = (text: string, line: string) => {
    const scanner = compileLogFormat({ name: 'f', escape: 'json', text });
    const planned = planKey('$v', {
      conf,
      variables: scanner.variables,
      escape: 'json',
      constants: {},
    });
    assert.ok('plan' in planned);
    const bytes = Buffer.from(line);
    assert.equal(scanner.scan(bytes, 0, bytes.length), -1);
    const length = planned.plan.evaluate(bytes, scanner);
    return Buffer.from(planned.plan.out.subarray(0, length)).toString();
  };
  assert.equal(keyOf('"$v"', '"logged"'), 'logged');
  assert.equal(keyOf('"$v" "$http_x"', '"logged" "x"'), 'x');
});

interface TraceLine {
  readonly remote_addr: string;
  readonly hdr: string;
}

/** The zones of trace o, written out by hand. */
function traceKeys({ remote_addr: address, hdr }: TraceLine): readonly [string, string] {
  const isWhite = /^203\.0\.113\.[0-3]$/.test(address) || address === '198.51.100.7';
  const team = /^team-([a-z]+)-[0-9]+$/.exec(hdr)?.[1];
  return [isWhite ? '' : address, team ?? address];
}

test('trace o: the keys of both zones, on every line', () => {
  const directory = 'test/traces/o_keys_map_geo';
  const lines = linesOf(`${directory}/access.log`);
  assert.equal(lines.length, 716);
  const scanner = compileLogFormat(formatOf(directory, 'access.log'));
  const conf = parseConf(`${directory}/nginx.conf`, {
    read: () => linesOf(`${directory}/nginx.conf`).join('\n'),
    glob: () => [],
  });
  const plans = ['perip', 'perapi'].map((zone) => {
    const planned = planKey(conf.reqZones.get(zone)!.keyExpression, {
      conf,
      variables: scanner.variables,
      escape: 'json',
      constants: {},
      zone,
    });
    if (!('plan' in planned)) assert.fail(planned.why);
    return planned.plan;
  });
  const seen = new Set<string>();
  for (const line of lines) {
    assert.equal(scanner.scan(line, 0, line.length), -1);
    const expected = traceKeys(JSON.parse(line.toString()) as TraceLine);
    for (const [index, plan] of plans.entries()) {
      const length = plan.evaluate(line, scanner);
      const key = Buffer.from(plan.out.subarray(0, length)).toString();
      assert.equal(key, expected[index]);
      assert.equal(plan.keyLengthBytes, /\d\./.test(key) ? 4 : key.length);
      seen.add(`${index}${key}`);
    }
  }
  assert.ok(seen.has('0') && seen.has('1red') && seen.size > 10);
});
