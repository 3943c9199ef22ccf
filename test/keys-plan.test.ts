import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileLogFormat, type Escape } from '../parsers/access/line-scanner.js';
import { parseConf } from '../parsers/conf/read-conf.js';
import { type KeyContext, planKey } from '../src/keys/key-plan.js';

interface Setting {
  readonly escape?: Escape;
  /** Directives inside of http. */
  readonly conf?: string;
  readonly constants?: Readonly<Record<string, string>>;
  readonly isRewritten?: boolean;
  readonly mergeSlashes?: boolean;
  readonly zone?: string;
}

function contextOf(format: string, setting: Setting): KeyContext {
  const text = `events {} http { ${setting.conf ?? ''} }`;
  const conf = parseConf('nginx.conf', {
    read: (path) => (path === 'nginx.conf' ? text : undefined),
    glob: () => [],
  });
  const escape = setting.escape ?? 'default';
  const { variables } = compileLogFormat({ name: 'f', escape, text: format });
  const { isRewritten = false, mergeSlashes = true } = setting;
  const zone = setting.zone === undefined ? {} : { zone: setting.zone };
  const constants = setting.constants ?? {};
  return { conf, variables, escape, constants, isRewritten, mergeSlashes, ...zone };
}

/** The keys of lines, as latin1 text with nginx's length; null where a line does not tell it. */
function keysOf(
  expression: string,
  format: string,
  lines: readonly string[],
  setting: Setting = {},
): readonly (readonly [string, number] | null)[] {
  const planned = planKey(expression, contextOf(format, setting));
  if (!('plan' in planned)) assert.fail(planned.why);
  const { plan } = planned;
  const escape = setting.escape ?? 'default';
  const scanner = compileLogFormat({ name: 'f', escape, text: format });
  return lines.map((line) => {
    const bytes = Buffer.from(`<<${line}>>`, 'latin1');
    assert.equal(scanner.scan(bytes, 2, bytes.length - 2), -1, `${line} does not fit ${format}`);
    const length = plan.evaluate(bytes, scanner);
    if (length === -1) return null;
    return [Buffer.from(plan.out.subarray(0, length)).toString('latin1'), plan.keyLengthBytes];
  });
}

function keyOf(expression: string, format: string, line: string, setting: Setting = {}) {
  return keysOf(expression, format, [line], setting)[0]!;
}

type Row = readonly [
  expression: string,
  format: string,
  line: string,
  key: string | null,
  nginxLength?: number,
];

const DEFAULT_ROWS: readonly Row[] = [
  ['$binary_remote_addr', '$remote_addr', '192.0.2.7', '192.0.2.7', 4],
  ['$binary_remote_addr', '$remote_addr', '2001:db8::42', '2001:db8::42', 16],
  ['$binary_remote_addr', '$remote_addr', '::ffff:192.0.2.7', '::ffff:192.0.2.7', 16],
  ['$binary_remote_addr', '$remote_addr', 'unix:', 'unix:', 5],
  ['$binary_remote_addr', '$remote_addr', 'example.com', null],
  ['$binary_remote_addr', '"$binary_remote_addr"', '"\\xC0\\x00\\x02\\x07"', '192.0.2.7', 4],
  ['$binary_remote_addr', '"$binary_remote_addr"', '"abcd"', '97.98.99.100', 4],
  ['$BINARY_remote_ADDR', '$Remote_Addr', '192.0.2.7', '192.0.2.7', 4],
  ['${binary_remote_addr}', '$remote_addr', '192.0.2.7', '192.0.2.7', 4],
  ['$remote_addr', '$remote_addr', '192.0.2.7', '192.0.2.7', 9],
  ['$realip_remote_addr', '$realip_remote_addr', '192.0.2.7', '192.0.2.7'],
  ['$server_name', '"$server_name"', '"a.example"', 'a.example'],
  ['$scheme://$host', '$scheme $host', 'https a.example', 'https://a.example'],
  ['static', '$status', '200', 'static', 6],
  ['$request_length$connection$pid', '$request_length $connection $pid', '121 8 24', '121824'],
  // Absent is "-", and empty is nothing.
  ['$http_x_api_key', '"$http_x_api_key"', '"-"', ''],
  ['$http_x_api_key', '"$http_x_api_key"', '""', ''],
  ['$http_x_api_key', '"$http_x_api_key"', '"--"', '--'],
  ['a$http_x_api_key', '"$http_x_api_key"', '"-"', 'a'],
  ['$remote_user', '[$remote_user]', '[jane doe]', 'jane doe'],
  ['$http_x', '"$http_x"', '"a\\x22b\\x5Cc\\xFF"', 'a"b\\c\xff', 6],
  // Request line.
  ['$request_method', '"$request"', '"POST /a HTTP/1.1"', 'POST'],
  ['$request_method', '"$request" $request_method', '"POST /a HTTP/1.1" GET', 'POST'],
  ['$request_method', '"$request"', '"\\x16\\x03\\x01\\x00"', null],
  ['$request_method', '"$request" $request_method', '"\\x16\\x03\\x01\\x00" -', ''],
  ['$request_uri', '"$request"', '"GET /a%20b?c=d HTTP/1.1"', '/a%20b?c=d'],
  ['$request_uri', '"$request"', '"GET http://a.example/x?y HTTP/1.1"', '/x?y'],
  ['$request_uri', '"$request"', '"GET http://a.example HTTP/1.1"', '/'],
  ['$request_uri', '$request_uri', '/x?y', '/x?y'],
  ['$server_protocol', '"$request"', '"GET / HTTP/2.0"', 'HTTP/2.0'],
  ['$args', '"$request"', '"GET /a?k=1&b HTTP/1.1"', 'k=1&b'],
  ['$args', '"$request"', '"GET /a?k=1#f HTTP/1.1"', 'k=1'],
  ['$args', '"$request"', '"GET /a#f?k=1 HTTP/1.1"', ''],
  ['$query_string', '"$args"', '"k=1"', 'k=1'],
  ['$args', '"$query_string"', '"k=1"', 'k=1'],
  ['$uri$is_args$args', '$request_uri', '/a?k=1', '/a?k=1'],
  ['$uri$is_args$args', '$request_uri', '/a?', '/a'],
  ['$is_args', '"$args"', '"-"', ''],
  ['$is_args', '$request_uri "$is_args"', '/a?b ""', '?'],
  ['$arg_k', '"$request"', '"GET /a?b=2&K=v%20w&k=3 HTTP/1.1"', 'v%20w'],
  ['$arg_K', '$request_uri', '/a?kk=1&k=2', '2'],
  ['$arg_k', '"$args"', '"k"', ''],
  ['$arg_k', '"$args"', '"k=&k=2"', ''],
  ['$arg_k', '"$args"', '"xk=1&k=2=3"', '2=3'],
  ['$arg_k', '"$arg_k"', '"v"', 'v'],
  // An error_page takes the arguments away; the limiter still saw them.
  ['$arg_k$request_uri', '"$request" "$args" "$arg_k"', '"GET /a?k=1 HTTP/1.1" "-" "-"', '1/a?k=1'],
  ['$uri', '"$request" $uri', '"GET /a HTTP/1.1" /limited.html', '/a'],
  ['$uri', '"$request"', '"GET /a//b/./c/%2E./d%20e?x HTTP/1.1"', '/a/b/d e'],
  ['$document_uri', '$uri', '/x', '/x'],
  ['$uri', '$document_uri', '/x', '/x'],
  ['$uri', '$request_uri', '/%zz', null],
  // Cookies and hosts.
  ['$cookie_sid', '"$http_cookie"', '"a=1; SID=xyz; sid=2"', 'xyz'],
  ['$cookie_sid', '"$http_cookie"', '"sidx=1; sid = y"', 'y'],
  ['$cookie_sid', '"$http_cookie"', '"a=1, sid=2"', '2'],
  ['$cookie_sid', '"$http_cookie"', '"sid"', ''],
  ['$cookie_sid', '"$cookie_sid"', '"abc"', 'abc'],
  ['$host', '"$http_host"', '"A.Example.:8080"', 'a.example'],
  ['$host', '"$http_host"', '"[2001:DB8::1]:80"', '[2001:db8::1]'],
  ['$host', '"$http_host" $server_name', '"-" b.example', 'b.example'],
  ['$host', '"$http_host"', '"-"', null],
  ['$host', '"$request" "$http_host"', '"GET https://C.example:8/ HTTP/1.1" "a"', 'c.example'],
  ['$host', '"$request" "$http_host"', '"GET / HTTP/1.1" "a"', 'a'],
  ['$host', '"$http_host" $host', '"A" b', 'b'],
];

for (const [expression, format, line, key, nginxLength = key?.length] of DEFAULT_ROWS) {
  test(`${expression} of ${line} in ${format}`, () => {
    const found = keyOf(expression, format, line);
    assert.deepEqual(found, key === null ? null : [key, nginxLength]);
  });
}

test('under escape=json a hyphen is a hyphen, and an escape stands for a byte', () => {
  const setting = { escape: 'json' } as const;
  assert.equal(keyOf('$http_x', '"$http_x"', '"-"', setting)?.[0], '-');
  assert.equal(keyOf('$http_x', '"$http_x"', '""', setting)?.[0], '');
  assert.equal(keyOf('$http_x', '"$http_x"', '"a\\"\\u0001\\\\"', setting)?.[0], 'a"\x01\\');
});

test('under escape=none nothing is undone', () => {
  assert.equal(keyOf('$http_x', '[$http_x]', '[a\\x22-]', { escape: 'none' })?.[0], 'a\\x22-');
  assert.equal(keyOf('$http_x', '[$http_x]', '[-]', { escape: 'none' })?.[0], '-');
});

test('a rewrite before the limiter turns the order of $uri and $args round', () => {
  const format = '"$request" $uri "$args"';
  const line = '"GET /a?k=1 HTTP/1.1" /b "k=2"';
  assert.equal(keyOf('$uri?$args $arg_k', format, line)?.[0], '/a?k=1 1');
  assert.equal(keyOf('$uri?$args $arg_k', format, line, { isRewritten: true })?.[0], '/b?k=2 2');
});

test('merge_slashes off keeps slashes in $uri', () => {
  assert.equal(keyOf('$uri', '$request_uri', '/a//b', { mergeSlashes: false })?.[0], '/a//b');
});

test('a constant serves only where the variable is not logged', () => {
  const constants = { server_name: 'from.conf', scheme: 'http' };
  assert.equal(keyOf('$server_name', '$status', '200', { constants })?.[0], 'from.conf');
  assert.equal(keyOf('$server_name', '$server_name', 'logged', { constants })?.[0], 'logged');
  assert.equal(keyOf('$scheme', '$scheme', 'https', { constants })?.[0], 'https');
});

test('keys of raw addresses beside other values stay apart as text', () => {
  const format = '$remote_addr "$http_x"';
  const expressions = ['$binary_remote_addr$http_x', '$http_x$binary_remote_addr'];
  for (const expression of expressions) {
    const lines = ['1.2.3.4 "5"', '1.2.3.45 ""', '1.2.3.4 " 5"', '::1 "d"', '::1d ""', '::1 " d"'];
    const keys = keysOf(expression, format, [...lines, '5.1.2.3 "4"', '1.2.3.4 "GET"']);
    assert.equal(new Set(keys.map((key) => key?.[0])).size, keys.length, expression);
    assert.deepEqual(
      keys.map((key) => key?.[1]),
      [5, 4, 6, 17, 16, 18, 5, 7],
    );
  }
  assert.equal(keyOf('$binary_remote_addr$http_x', format, '1.2.3.4 "GET"')?.[0], '1.2.3.4GET');
});

test('a key longer than the buffer grows it', () => {
  const long = 'x'.repeat(70_000);
  assert.deepEqual(keyOf('$http_x$http_x', '"$http_x"', `"${long}"`), [long + long, 140_000]);
  assert.deepEqual(keyOf('$http_x', '"$http_x"', `"${long}\\x22"`), [`${long}"`, 70_001]);
});

const MISSING: readonly (readonly [string, string, readonly string[], RegExp])[] = [
  ['$http_x_api_key', '$status', ['http_x_api_key'], /^log \$http_x_api_key \(zone z's key\)$/],
  ['$binary_remote_addr', '$status', ['remote_addr'], /^log \$remote_addr /],
  ['$arg_k$remote_addr', '$status', ['arg_k', 'remote_addr'], /^log \$arg_k, \$remote_addr /],
  ['$uri', '$status', ['uri'], /^log \$uri /],
  ['$geoip_country_code', '"$request"', ['geoip_country_code'], /^log \$geoip_country_code /],
  ['$1', '$status', [], /^cannot tell zone z's key; \$1 in the key is of a regular expression/],
  ['$m', '$status', ['remote_addr', 'http_b'], /^log \$remote_addr, \$http_b /],
  ['$g', '$status', ['arg_ip'], /^log \$arg_ip /],
  ['$p', '$remote_addr', ['http_x_forwarded_for'], /^log \$http_x_forwarded_for /],
  ['$loop', '$remote_addr', [], /^cannot tell zone z's key; \$loop is defined by itself$/],
  [
    '$atomic',
    '$http_a',
    ['atomic'],
    /^log \$atomic \(zone z's key\); "~\(\?>a\)" of map \$atomic at nginx\.conf:1 has a group/,
  ],
  ['$outside', '$http_a', [], /\$1 in the map at nginx\.conf:1 is of a regular expression/],
];

const MISSING_CONF = `
  map $remote_addr $m { default $http_b; }
  map $loop2 $loop { default 1; } map $loop $loop2 { default 1; }
  map $http_a $atomic { "~(?>a)" 1; }
  map $http_a $outside { default $1; }
  geo $arg_ip $g { default 0; }
  geo $p { proxy 127.0.0.1; default 0; }
`.replaceAll('\n', ' ');

for (const [expression, format, missing, why] of MISSING) {
  test(`${expression} cannot be had from ${format}, and that is said`, () => {
    const planned = planKey(expression, contextOf(format, { conf: MISSING_CONF, zone: 'z' }));
    assert.ok(!('plan' in planned));
    assert.deepEqual(planned.missing, missing);
    assert.match(planned.why, why);
  });
}

test('evaluating a key again does not depend on the line before', () => {
  const conf = 'map $http_x $k { ~^(?<a>.)(?<b>.)?$ "$b$a-$2$1"; default d; }';
  const lines = ['"xy"', '"z"', '"xyz"', '"-"', '"xy"', '"z"'];
  const keys = keysOf('$k', '"$http_x"', lines, { conf });
  assert.deepEqual(
    keys.map((key) => key?.[0]),
    ['yx-yx', 'z-z', 'd', 'd', 'yx-yx', 'z-z'],
  );
});
