/**
 * Keys against a real nginx: it logs a derived variable beside the fields that it comes from, and
 * the key evaluated from those fields alone must be that variable, on every line.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { compileLogFormat, type Escape, type LineScanner } from '../parsers/access/line-scanner.js';
import { unescapeDefault, unescapeJson } from '../parsers/access/escape.js';
import { parseConf } from '../parsers/conf/read-conf.js';
import { parseAddress } from '../src/keys/address.js';
import { type KeyPlan, planKey } from '../src/keys/key-plan.js';
import { linesOf } from './support/captures.js';
import { startNginx } from './support/nginx.js';
import { type ScheduledRequest, sendTraffic } from './support/traffic.js';

const SOURCES = [
  'remote_addr',
  'realip_remote_addr',
  'request',
  'request_uri',
  'http_x_key',
  'http_x_real_ip',
  'http_x_forwarded_for',
  'http_cookie',
  'http_host',
  'server_name',
  'server_port',
  'scheme',
];

/** Zone keys to compare, each with the fields it may be made from. */
const KEYS: readonly (readonly [expression: string, from: readonly string[]])[] = [
  ['$binary_remote_addr', ['remote_addr']],
  ['$request_method', ['request']],
  ['$server_protocol', ['request']],
  ['$request_uri', ['request']],
  ['$uri', ['request']],
  ['$uri', ['request_uri']],
  ['$document_uri$is_args$args', ['request']],
  ['$uri$is_args$query_string', ['request_uri']],
  ['$arg_k', ['request']],
  ['$arg_key_2', ['request_uri']],
  ['${arg_K}_$arg_', ['request_uri']],
  ['$cookie_sid', ['http_cookie']],
  ['$host', ['http_host', 'server_name', 'request']],
  ['$scheme:$server_port', ['scheme', 'server_port']],
  ['$http_x_key$remote_addr', ['http_x_key', 'remote_addr']],
  ['$by_text', ['http_x_key']],
  ['$by_host', ['http_x_key']],
  ['$by_regex', ['http_x_key', 'remote_addr']],
  ['$by_uri', ['request']],
  ['$by_raw', ['remote_addr']],
  ['$by_both', ['http_x_key', 'request']],
  ['$chained', ['http_x_key', 'remote_addr', 'request']],
  ['$white', ['remote_addr']],
  ['$limited', ['remote_addr']],
  ['$by_arg_geo', ['request']],
  ['$by_range', ['remote_addr']],
  ['$behind', ['remote_addr', 'http_x_forwarded_for']],
  ['$far_behind', ['remote_addr', 'http_x_forwarded_for']],
];

const BY_TEXT = KEYS.findIndex(([key]) => key === '$by_text');

const DEFINITIONS = `
  map $http_x_key $by_text { default other; "" none; ABC abc; "a b" spaced; "-" hyphen; \\~x tilde; *.a.example star; }
  map $http_x_key $by_host { hostnames; default other; a.example exact; *.a.example sub; .b.example both;
    *.c.b.example deep; www.* www; www.d.* wwwd; ~^c\\. regex; }
  map $http_x_key $by_regex { default $binary_remote_addr; "~^team-(?<team>[a-z]+)-([0-9]+)$" "$team/$2";
    "~*^CASE(x)?" "case[$1]"; "~[\\xc0-\\xff]" high; "~\\"" quote; "~^.$" one; ~^$ never; }
  map $uri $by_uri { default ""; ~^/([^/]+)/ $1; ~\\.php$ php; /exact exact; }
  map $binary_remote_addr $by_raw { default $remote_addr; "~^\\x7f\\x00\\x00\\x01$" home; "~^\\x20\\x01\\x0d\\xb8" doc; }
  map "$http_x_key:$arg_k" $by_both { default "$arg_k"; ~^:$ ""; "~^(.+):(.+)$" "$2:$1"; }
  map $by_regex $chained { volatile; default "$by_regex-$by_uri"; ~^red red; abc ""; }
  geo $white { default 0; 127.0.0.0/8 home; 203.0.113.0/30 1; 198.51.100.7 1; 2001:db8::/32 six; 2001:db8:1::/48 ""; ::ffff:0:0/96 never; }
  map $white $limited { 0 $binary_remote_addr; default ""; }
  geo $arg_ip $by_arg_geo { default none; 10.0.0.0/8 ten; ::1 loop; 255.0.0.0/8 noaddr; }
  geo $by_range { ranges; default out; 127.0.0.1-127.0.0.1 home; 203.0.113.0-203.0.113.9 a; 203.0.113.4-203.0.113.5 b; }
  geo $behind { proxy 127.0.0.1; proxy 203.0.113.0/24; default far; 198.51.100.0/24 near; 203.0.113.0/24 proxy; 127.0.0.1 self; }
  geo $far_behind { proxy_recursive; proxy 127.0.0.1; proxy 203.0.113.0/24; default far; 198.51.100.0/24 near; 203.0.113.0/24 proxy; 127.0.0.1 self; }
`;

/** One list of quoted values for every escaping; the derived ones come last. */
function formatText(): string {
  const names = [...SOURCES, ...KEYS.map((_, i) => `derived_${i}`)];
  return names.map((name) => `"$${name}"`).join(' ');
}

/** A key is logged as one value: in a log_format each absent part of it would be a hyphen. */
function derivedMaps(): string {
  return KEYS.map(([key], i) => `map "" $derived_${i} { volatile; default "${key}"; }`).join('\n');
}

const ADDRESSES = [
  '203.0.113.2',
  '203.0.113.4',
  '203.0.113.9',
  '198.51.100.7',
  '192.0.2.200',
  '2001:db8::1',
  '2001:db8:1::5',
  '::ffff:203.0.113.1',
  '2001:db9:0:0:1::',
  'unknown',
];

const HEADER_VALUES = [
  'abc',
  'ABC',
  'a b',
  '-',
  '~x',
  'x.a.example',
  '*.a.example',
  'a.example',
  'A.Example.',
  'b.example',
  'y.b.example',
  'z.c.b.example',
  '.b.example',
  'www.x',
  'www.d.x',
  'www.',
  'c.d',
  'team-red-7',
  'team-red-',
  'casex1',
  'Case',
  'é\xff',
  'a"b\\c',
  '\t\x7f',
  'x',
  '\\x22',
  '100%',
];

const TARGETS = [
  '/',
  '/exact',
  '/Exact',
  '/dir/x.php',
  '/x.php',
  '/x.php%0a',
  '//a///b/./c/../d',
  '/a/%2e%2e/b%2Fc',
  '/a%20b/?k=%20',
  '/%3fk=1?k=2',
  '/a#f?k=1',
  '/a?k=1#f',
  '/a?K=1&k=2',
  '/a?xk=1&k=2',
  '/a?k',
  '/a?k&k=2',
  '/a?k=',
  '/a?k=-',
  '/a?&&k=1&',
  '/a?k=a=b;c',
  '/a?=x&key_2=y&_=1',
  '/a?KEY_2=Z&k==',
  '/a??k=1',
  '/a?',
  '/a?ip=10.2.3.4',
  '/a?ip=::1',
  '/a?ip=010.1.2.3',
  '/a?ip=10.2.3',
  '/a?ip=10.2.3.4.5',
  '/a?ip=256.1.1.1',
  '/a?ip=1::2::3',
  '/a?ip=::ffff:10.1.1.1',
  '/a?ip=::10.1.1.1',
  '/a?ip=255.255.255.255',
  '/a?k="\\\xe9\xff',
  '/\xc3\xa9/"q"\\',
  'http://other.example/x/y?k=abs',
  'http://other.example',
  'http://Other.Example:81?k=q',
];

const COOKIES = [
  'sid=1',
  'a=1; SID=two; sid=3',
  'sid',
  'xsid=1; sid=',
  'a=1,sid=c',
  'sid = s;',
  '; sid=z',
];

const HOSTS = [
  'Test.Example',
  'test.example.:8080',
  '[2001:DB8::1]:80',
  'a_b.example',
  '127.0.0.1',
];

const FORWARDED = [
  '198.51.100.1',
  '198.51.100.1, 203.0.113.1',
  '192.0.2.1,203.0.113.9 , 203.0.113.8,',
  '198.51.100.1:8080',
  '[2001:db8::1]:80',
  'unknown',
  '203.0.113.1, nonsense',
  ',',
];

/** Every list walked round beside the others, so that each value meets several of the others. */
function requests(): ScheduledRequest[] {
  const pick = <T>(list: readonly T[], i: number): T => list[i % list.length]!;
  return Array.from({ length: 400 }, (_, i) => ({
    atMs: i,
    path: pick(TARGETS, i),
    method: pick(['GET', 'POST', 'PURGE', 'DELETE'], i * 3),
    headers: {
      host: pick(HOSTS, i),
      ...(i % 5 === 0 ? {} : { 'x-key': pick(HEADER_VALUES, i * 7 + (i >> 5)) }),
      ...(i % 3 === 0 ? {} : { 'x-real-ip': pick(ADDRESSES, i * 11 + (i >> 4)) }),
      ...(i % 4 === 0 ? {} : { cookie: pick(COOKIES, i + (i >> 3)) }),
      ...(i % 2 === 0 ? {} : { 'x-forwarded-for': pick(FORWARDED, (i >> 1) + (i >> 6)) }),
    },
  }));
}

/** A plan that sees only some of the sources; the other fields have names that nothing asks for. */
function planFrom(
  expression: string,
  from: readonly string[],
  escape: Escape,
  conf: string,
): KeyPlan {
  const hidden = [...SOURCES, ...KEYS.map(() => '')].map((name, i) =>
    from.includes(name) ? name : `hidden_${i}`,
  );
  const model = parseConf('nginx.conf', { read: () => conf, glob: () => [] });
  const planned = planKey(expression, { conf: model, variables: hidden, escape, constants: {} });
  if (!('plan' in planned)) assert.fail(planned.why);
  return planned.plan;
}

function scannerOf(escape: Escape): LineScanner {
  return compileLogFormat({ name: 'f', escape, text: formatText() });
}

/** A field's bytes as latin1, unescaped. */
function valueOf(line: Buffer, scanner: LineScanner, field: number): string {
  const [start, end] = [scanner.starts[field]!, scanner.ends[field]!];
  const out = Buffer.alloc(end - start);
  const undo = scanner.format.escape === 'json' ? unescapeJson : unescapeDefault;
  return out.toString('latin1', 0, undo(line, start, end, out, 0));
}

/** An address as nginx's keys hold it. */
function rawAddress(text: string): string {
  const raw = Buffer.alloc(16);
  const length = parseAddress(Buffer.from(text), 0, text.length, raw);
  assert.notEqual(length, 0, text);
  return raw.toString('latin1', 0, length);
}

test('every key evaluated from its sources is the one that nginx logged', async (t) => {
  const nginx = await startNginx(t, {
    http: ([port]) => `${DEFINITIONS} ${derivedMaps()}
      set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;
      large_client_header_buffers 8 128k;
      log_format j escape=json '${formatText()}';
      log_format d '${formatText()}';
      access_log json.log j; access_log default.log d;
      server { listen 127.0.0.1:${port}; server_name named.example; location / { return 200 x; } }`,
  });
  const results = await sendTraffic(nginx.port, requests());
  assert.ok(results.every(({ status }) => status === 200));
  await nginx.stop();
  const conf = readFileSync(nginx.path('nginx.conf'), 'latin1');

  for (const [escape, file] of [
    ['json', 'json.log'],
    ['default', 'default.log'],
  ] as const) {
    const scanner = scannerOf(escape);
    const plans = KEYS.map(([expression, from]) => planFrom(expression, from, escape, conf));
    const lines = linesOf(nginx.path(file));
    assert.ok(lines.length > 350);
    const values = KEYS.map(() => new Set<string>());
    for (const line of lines) {
      assert.equal(scanner.scan(line, 0, line.length), -1, line.toString('latin1'));
      // A header that is really "-" is logged like one that is absent, and taken for that.
      const isHyphen = valueOf(line, scanner, SOURCES.length + BY_TEXT) === 'hyphen';
      if (escape === 'default' && isHyphen) continue;
      const address = valueOf(line, scanner, SOURCES.indexOf('remote_addr'));
      for (const [index, plan] of plans.entries()) {
        const [expression] = KEYS[index]!;
        const what = `${expression} of ${line.toString('latin1')}`;
        const logged = valueOf(line, scanner, SOURCES.length + index);
        const length = plan.evaluate(line, scanner);
        assert.notEqual(length, -1, what);
        const key = Buffer.from(plan.out.subarray(0, length)).toString('latin1');
        assert.equal(key, logged.replace(rawAddress(address), address), what);
        assert.equal(plan.keyLengthBytes, logged.length, what);
        values[index]!.add(logged);
      }
    }
    for (const [index, seen] of values.entries()) {
      assert.ok(seen.size > 1 || /scheme|protocol/.test(KEYS[index]![0]), KEYS[index]![0]);
    }
  }
});

test('a rejected request that error_page redirects keeps the key that the limiter saw', async (t) => {
  const expression = '$request_method $uri$is_args$args $arg_k';
  const format = '"$request" "$uri" "$args" "$is_args" "$arg_k" "$request_method" "$seen"';
  const nginx = await startNginx(t, {
    http: ([port]) => `log_format f '${format}'; access_log access.log f;
      limit_req_zone static zone=z:1m rate=1r/m; limit_req_status 429;
      server { listen 127.0.0.1:${port};
        location / { set $seen "${expression}"; limit_req zone=z; error_page 429 /limited; }
        location = /limited { internal; return 200 "sorry"; } }`,
  });
  const targets = ['/', '/a/./%62?k=1', '/c?K=2&k=3', '//d?', '/e?k'];
  const schedule = targets.map((path, i) => ({ atMs: i * 5, path, method: 'POST' }));
  const results = await sendTraffic(nginx.port, schedule);
  assert.equal(results.filter(({ status }) => status === 429).length, targets.length - 1);
  await nginx.stop();

  const scanner = compileLogFormat({ name: 'f', escape: 'default', text: format });
  const conf = { maps: new Map(), geos: new Map() };
  const { variables } = scanner;
  const planned = planKey(expression, { conf, variables, escape: 'default', constants: {} });
  assert.ok('plan' in planned);
  const lines = linesOf(nginx.path('access.log'));
  const redirected = lines.filter((line) => line.includes('"/limited" "-"'));
  assert.equal(redirected.length, targets.length - 1);
  for (const line of lines) {
    assert.equal(scanner.scan(line, 0, line.length), -1);
    const length = planned.plan.evaluate(line, scanner);
    const key = Buffer.from(planned.plan.out.subarray(0, length)).toString('latin1');
    assert.equal(key, valueOf(line, scanner, scanner.indexOf('seen')));
  }
});
