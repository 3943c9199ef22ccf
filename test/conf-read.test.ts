/**
 * What parseConf() makes of a configuration: tables, and `nginx -T` as a second witness.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { ConfError } from '../parsers/conf/conf-error.js';
import type { ConfWhere, NginxConf, RuleSet } from '../parsers/conf/model.js';
import { parseConf, parseConfDump } from '../parsers/conf/read-conf.js';
import { loadConf } from '../src/input/conf-files.js';
import { InputError } from '../src/errors.js';
import { requireProgram } from './support/debian.js';
import { makeTempDir } from './support/temp-dir.js';

/** Reads text as the main file, beside which the other files lie. */
function read(text: string, files: Readonly<Record<string, string>> = {}): NginxConf {
  const texts = new Map(Object.entries(files).map(([name, body]) => [`/etc/nginx/${name}`, body]));
  texts.set('/etc/nginx/nginx.conf', text);
  return parseConf('/etc/nginx/nginx.conf', {
    read: (path) => texts.get(path),
    glob: (pattern) => {
      assert.equal(pattern, '/etc/nginx/conf.d/*.conf');
      return [...texts.keys()].filter((path) => path.startsWith('/etc/nginx/conf.d/')).sort();
    },
  });
}

function readHttp(text: string): NginxConf {
  return read(`events {}\nhttp {\n${text}\n}\n`);
}

function rulesAt(conf: NginxConf, location: string): RuleSet {
  const rules = conf.ruleSets.find((each) => each.location === location);
  assert.ok(rules, location);
  return rules;
}

const at = (line: number, path = '/etc/nginx/nginx.conf'): ConfWhere => ({ path, line });

const ZONES = `limit_req_zone $binary_remote_addr zone=ip:10m rate=10r/s;
limit_req_zone $server_name zone=site:32k rate=100r/m;
limit_conn_zone $binary_remote_addr zone=conns:1m;`;

test('zones: size, and the rate truncated as nginx truncates it', () => {
  const conf = readHttp(ZONES);
  assert.deepEqual(
    [...conf.reqZones.values()],
    [
      {
        name: 'ip',
        keyExpression: '$binary_remote_addr',
        sizeBytes: 10_485_760,
        rateMilliRps: 10_000,
        where: at(3),
      },
      {
        name: 'site',
        keyExpression: '$server_name',
        sizeBytes: 32_768,
        rateMilliRps: 1666,
        where: at(4),
      },
    ],
  );
  assert.deepEqual(
    [...conf.connZones.values()],
    [
      {
        name: 'conns',
        keyExpression: '$binary_remote_addr',
        sizeBytes: 1_048_576,
        where: at(5),
      },
    ],
  );
});

const RATES = [
  ['1r/m', 16],
  ['2r/m', 33],
  ['10r/m', 166],
  ['59r/m', 983],
  ['60r/m', 1000],
  ['7', 7000],
  ['1r/s', 1000],
] as const;

for (const [rate, rateMilliRps] of RATES) {
  test(`rate=${rate} is ${rateMilliRps} thousandths per second`, () => {
    const conf = readHttp(`limit_req_zone $arg_k zone=a:1m rate=${rate};`);
    assert.equal(conf.reqZones.get('a')?.rateMilliRps, rateMilliRps);
  });
}

const LIMITS = [
  ['zone=ip', 0, 0],
  ['zone=ip burst=20', 20_000, 0],
  ['burst=20 zone=ip nodelay', 20_000, Infinity],
  ['zone=ip burst=20 delay=8', 20_000, 8000],
  // Both in one: the later one counts.
  ['zone=ip nodelay delay=8', 0, 8000],
  ['zone=ip delay=8 nodelay', 0, Infinity],
] as const;

for (const [text, burstMilliReq, delayMilliReq] of LIMITS) {
  test(`limit_req ${text}`, () => {
    const conf = readHttp(`${ZONES}\nserver {\nlimit_req ${text};\n}`);
    assert.deepEqual(conf.servers[0]?.rules.limits, [
      { zone: 'ip', burstMilliReq, delayMilliReq, where: at(7) },
    ]);
  });
}

test('a value that overflows 64 bits is kept as nginx has it, and noted', () => {
  const conf = readHttp(`${ZONES}\nlimit_req zone=ip burst=9223372036854775807;\nserver {}`);
  assert.equal(conf.servers[0]?.rules.limits[0]?.burstMilliReq, -1000);
  assert.deepEqual(
    conf.notes.map((note) => [note.code, note.where.line]),
    [['value-overflows', 6]],
  );
});

const INHERITANCE = readHttp(`${ZONES}
limit_req zone=ip burst=1;
limit_req_status 429;
limit_conn conns 5;
limit_conn_log_level notice;
server {
  limit_req_log_level info;
  location /same { location /same/inner { limit_req_status 420; } }
  location /own { limit_req zone=site; limit_req_dry_run on; location /own/inner {} }
  location /dry { limit_req_dry_run off; limit_conn_dry_run on; limit_conn_status 444; }
}
server {
  limit_req zone=site; limit_req zone=ip;
  limit_req_log_level warn;
  location = /a { limit_conn conns 1; }
}`);

const zonesOf = (rules: RuleSet): readonly string[] => rules.limits.map((limit) => limit.zone);

test('a level with its own limit_req list inherits none; other values come one by one', () => {
  assert.deepEqual(
    INHERITANCE.ruleSets.map((rules) => [
      rules.id,
      rules.location,
      zonesOf(rules).join(),
      rules.limitReqStatus,
      rules.limitReqDryRun,
      rules.limitReqLogLevel,
    ]),
    [
      [0, '', 'ip', 429, false, 'info'],
      [1, '/same', 'ip', 429, false, 'info'],
      [2, '/same/inner', 'ip', 420, false, 'info'],
      [3, '/own', 'site', 429, true, 'info'],
      [4, '/own/inner', 'site', 429, true, 'info'],
      [5, '/dry', 'ip', 429, false, 'info'],
      [6, '', 'site,ip', 429, false, 'warn'],
      [7, '= /a', 'site,ip', 429, false, 'warn'],
    ],
  );
});

test('limit_conn is inherited in the same way', () => {
  assert.deepEqual(
    INHERITANCE.ruleSets.map((rules) => [
      rules.connLimits.map((limit) => limit.connections).join(),
      rules.limitConnStatus,
      rules.limitConnDryRun,
      rules.limitConnLogLevel,
    ]),
    [
      ['5', 503, false, 'notice'],
      ['5', 503, false, 'notice'],
      ['5', 503, false, 'notice'],
      ['5', 503, false, 'notice'],
      ['5', 503, false, 'notice'],
      ['5', 444, true, 'notice'],
      ['5', 503, false, 'notice'],
      ['1', 503, false, 'notice'],
    ],
  );
});

test('without anything written: 503, enforced, level error, merged slashes, port 80, no name', () => {
  const conf = readHttp('server { }');
  assert.deepEqual(conf.servers, [
    {
      id: 0,
      names: [''],
      listens: [{ text: '*:80', port: 80, isDefaultServer: false }],
      mergeSlashes: true,
      realIp: null,
      rules: {
        id: 0,
        serverName: '',
        location: '',
        limits: [],
        limitReqStatus: 503,
        limitReqDryRun: false,
        limitReqLogLevel: 'error',
        connLimits: [],
        limitConnStatus: 503,
        limitConnDryRun: false,
        limitConnLogLevel: 'error',
        accessLogs: [],
        errorLogs: [],
        where: at(3),
      },
      locations: [],
      where: at(3),
    },
  ]);
});

test('access_log: formats, conditions, several per level, off, inheritance', () => {
  const conf = read(`error_log main.log;
events {}
http {
log_format one escape=json '{"a":"$arg_a",'
  '"b":"$arg_b"}';
access_log a.log one buffer=4k flush=1m gzip=3 if=$arg_log;
access_log syslog:server=unix:/dev/log,nohostname;
error_log http.log warn;
server {
  location /off { access_log off; location /off/on { access_log b.log ONE; } }
  location /both { access_log c.log; access_log off; }
  location /errors { error_log e1.log info; error_log e2.log; }
  location /if { if ($host) { access_log d.log; } }
}}`);
  assert.deepEqual(conf.logFormats.get('one'), {
    name: 'one',
    escape: 'json',
    text: '{"a":"$arg_a","b":"$arg_b"}',
    where: at(4),
  });
  assert.ok(conf.logFormats.get('combined')?.text.startsWith('$remote_addr - $remote_user ['));
  const inherited = [
    {
      path: 'a.log',
      format: 'one',
      condition: '$arg_log',
      buffer: { bytes: 4096, flushMs: 60_000, isGzip: true },
      where: at(6),
    },
    { path: 'syslog:server=unix:/dev/log,nohostname', format: 'combined', where: at(7) },
  ];
  assert.deepEqual(conf.servers[0]?.rules.accessLogs, inherited);
  assert.deepEqual(rulesAt(conf, '/off').accessLogs, []);
  assert.deepEqual(rulesAt(conf, '/off').accessLogOffWhere, at(10));
  assert.deepEqual(rulesAt(conf, '/off/on').accessLogs, [
    { path: 'b.log', format: 'one', where: at(10) },
  ]);
  assert.equal(rulesAt(conf, '/off/on').accessLogOffWhere, undefined);
  assert.deepEqual(rulesAt(conf, '/both').accessLogs, []);
  assert.deepEqual(rulesAt(conf, '/both').accessLogOffWhere, at(11));
  assert.deepEqual(
    rulesAt(conf, '/errors').errorLogs.map((log) => `${log.path} ${log.level}`),
    ['e1.log info', 'e2.log error'],
  );
  assert.deepEqual(
    rulesAt(conf, '/if').errorLogs.map((log) => `${log.path} ${log.level}`),
    ['http.log warn'],
  );
  assert.deepEqual(
    conf.accessLogs.map((log) => log.path),
    ['a.log', 'syslog:server=unix:/dev/log,nohostname', 'b.log', 'c.log', 'd.log'],
  );
  assert.deepEqual(
    conf.errorLogs.map((log) => log.path),
    ['main.log', 'http.log', 'e1.log', 'e2.log'],
  );
  assert.deepEqual(
    conf.notes.map((note) => [note.code, note.where.line]),
    [['conditional-access-log', 13]],
  );
});

test('error logs of the main level come first, wherever they stand', () => {
  const conf = read('events {}\nhttp { error_log h.log; }\nerror_log m1.log;\nerror_log m2.log;');
  assert.deepEqual(
    conf.errorLogs.map((log) => log.path),
    ['m1.log', 'm2.log', 'h.log'],
  );
});

test('map: regular expressions, escapes, default, hostnames, volatile, include', () => {
  const conf = read(
    `events {}
http { map "$host:$arg_a" $b {
  hostnames; volatile;
  default "d $arg_d";
  *.example.com 1;
  \\~literal 2;
  ~^(?<x>a|b)$ $x;
  "~*quoted \\d" 3;
  include conf.d/*.conf;
  "" 5;
}}`,
    { 'conf.d/1.conf': 'one 1;\n', 'conf.d/2.conf': 'two 2;\nhostnames;' },
  );
  const map = conf.maps.get('b');
  assert.deepEqual(map, {
    source: '$host:$arg_a',
    variable: 'b',
    hostnames: true,
    isVolatile: true,
    entries: [
      { pattern: '*.example.com', value: '1', where: at(5) },
      { pattern: '~literal', isLiteral: true, value: '2', where: at(6) },
      { pattern: '~^(?<x>a|b)$', value: '$x', where: at(7) },
      { pattern: '~*quoted \\d', value: '3', where: at(8) },
      { pattern: 'one', value: '1', where: at(1, '/etc/nginx/conf.d/1.conf') },
      { pattern: 'two', value: '2', where: at(1, '/etc/nginx/conf.d/2.conf') },
      { pattern: '', value: '5', where: at(10) },
    ],
    defaultValue: 'd $arg_d',
    where: at(2),
  });
});

test('geo: networks, a second line for one, delete, default, proxies, include', () => {
  const conf = read(
    `events {}
http { geo $arg_ip $zone {
  proxy 10.0.0.0/8; proxy_recursive;
  0.0.0.0/0 early;
  default other;
  192.0.2.0/24 one;
  192.0.2.77/24 two;
  198.51.100.1 three;
  2001:db8::/32 four;
  include geo.inc;
  delete 198.51.100.1/32;
  delete 2001:0DB8:0::/32;
}}`,
    { 'geo.inc': '203.0.113.0/24 "five six";' },
  );
  assert.deepEqual(conf.geos.get('zone'), {
    source: 'arg_ip',
    variable: 'zone',
    ranges: false,
    entries: [
      { network: '192.0.2.77/24', value: 'two', where: at(7) },
      { network: '203.0.113.0/24', value: 'five six', where: at(1, '/etc/nginx/geo.inc') },
    ],
    defaultValue: 'other',
    proxies: ['10.0.0.0/8'],
    proxyRecursive: true,
    where: at(2),
  });
});

test('geo ranges: a range inside of another one gives way, delete leaves a hole', () => {
  const conf = readHttp(`geo $zone { ranges;
    default d;
    192.0.2.0-192.0.2.255 out;
    192.0.2.16-192.0.2.31 in;
    192.0.2.0-192.0.2.7 start;
    10.0.0.0-10.2.255.255 big;
    198.51.100.0-198.51.100.9 gone;
    delete 198.51.100.0-198.51.100.9;
  }`);
  const geo = conf.geos.get('zone');
  assert.equal(geo?.source, 'remote_addr');
  assert.equal(geo.ranges, true);
  assert.deepEqual(
    geo.entries.map((entry) => `${entry.network} ${entry.value} ${entry.where.line}`),
    [
      '10.0.0.0-10.2.255.255 big 8',
      '192.0.2.0-192.0.2.7 start 7',
      '192.0.2.8-192.0.2.15 out 5',
      '192.0.2.16-192.0.2.31 in 6',
      '192.0.2.32-192.0.2.255 out 5',
    ],
  );
});

test('server: names, addresses, trusted proxies', () => {
  const conf = readHttp(`set_real_ip_from 10.0.0.0/8;
real_ip_header X-Forwarded-For;
merge_slashes off;
server { server_name .Example.com *.x.org; server_name ~^Y;
  listen 80 default_server; listen [::]:443 ssl http2; listen unix:/run/a; listen a.example;
  listen 127.0.0.1:8001-8003; }
server { set_real_ip_from 192.0.2.1; set_real_ip_from unix:; real_ip_recursive on;
  merge_slashes on; listen *:80; }`);
  const [one, two] = conf.servers;
  assert.deepEqual(one?.names, ['.example.com', '*.x.org', '~^Y']);
  assert.equal(one.rules.serverName, 'example.com');
  assert.deepEqual(
    one.listens.map((listen) => [listen.text, listen.port, listen.isDefaultServer]),
    [
      ['80', 80, true],
      ['[::]:443', 443, false],
      ['unix:/run/a', null, false],
      ['a.example', 80, false],
      ['127.0.0.1:8001', 8001, false],
      ['127.0.0.1:8002', 8002, false],
      ['127.0.0.1:8003', 8003, false],
    ],
  );
  assert.deepEqual(one.realIp, {
    from: ['10.0.0.0/8'],
    header: 'X-Forwarded-For',
    recursive: false,
  });
  assert.equal(one.mergeSlashes, false);
  assert.deepEqual(two?.realIp, {
    from: ['192.0.2.1', 'unix:'],
    header: 'X-Forwarded-For',
    recursive: true,
  });
  assert.equal(two.mergeSlashes, true);
});

test('return and rewrite: what is certain is in the rules, the rest in notes', () => {
  const conf = readHttp(`${ZONES}
map $flag $key { 1 $limit_key; }
limit_req_zone $key zone=mapped:1m rate=1r/s;
server {
  set $flag 1;
  set $unrelated 1;
  if ($host = "x") { return 403; }
  location /return { return 204; location /return/inner {} }
  location /break { break; return 204; }
  location /if { if ($arg_a) { return 204; set $limit_key a; } }
  location /rewrite { rewrite ^/a /b last; }
  location /stay { rewrite ^/a /b break; }
  location /redirect { rewrite ^ https://x.example permanent; }
  location /internal { internal; location /internal/inner {} }
  location /auth { auth_request /a; }
  location /lua { rewrite_by_lua_block { return "}" } access_by_lua_file x.lua; }
  location /js { js_content a.b; }
  location ~ "a++" {}
  location /real { set_real_ip_from 10.0.0.1; }
}
server { return 301 https://$host; location /w {}
  location /x { return 200; } }
server { rewrite ^ /y break; location /x {} }`);
  const placesOf = (pick: (rules: RuleSet) => ConfWhere | undefined): readonly string[] =>
    conf.ruleSets.flatMap((rules) => {
      const where = pick(rules);
      return where === undefined ? [] : [`${rules.location} ${where.line}`];
    });
  assert.deepEqual(
    placesOf((rules) => rules.returnWhere),
    ['/return 12', ' 25', '/w 25', '/x 25'],
  );
  assert.deepEqual(
    placesOf((rules) => rules.rewriteWhere),
    ['/rewrite 15', ' 27', '/x 27'],
  );
  assert.deepEqual(
    placesOf((rules) => rules.internalWhere),
    ['/internal 18', '/internal/inner 18'],
  );
  assert.deepEqual(
    conf.notes.map((note) => `${note.where.line} ${note.code}`),
    [
      '11 return-in-if',
      '14 return-in-if',
      '15 rewrite-not-followed',
      '17 rewrite-redirects',
      '19 auth-request',
      '20 lua-before-limit',
      '20 lua-after-limit',
      '21 js-not-followed',
      '22 regex-not-evaluated',
      '23 real-ip-in-location',
      '27 rewrite-not-followed',
      '9 key-variable-set',
      '14 key-variable-set',
    ],
  );
});

test('locations keep their order, nesting and modifiers, attached ones too', () => {
  const conf = readHttp(`server { location =/a {} location ^~/b {} location ~*c {} location ~ d {
    location ~ e {} } location @f {} location "/g h" { location = "/g h/i" {} } }`);
  assert.deepEqual(
    conf.ruleSets.map((rules) => `${rules.id} ${rules.location}`),
    ['0 ', '1 = /a', '2 ^~ /b', '3 ~* c', '4 ~ d', '5 ~ e', '6 @f', '7 /g h', '8 = /g h/i'],
  );
  assert.deepEqual(
    conf.servers[0]?.locations.map((node) => [node.kind, node.pattern, node.children.length]),
    [
      ['exact', '/a', 0],
      ['prefix-no-regex', '/b', 0],
      ['regex-nocase', 'c', 0],
      ['regex', 'd', 1],
      ['named', '@f', 0],
      ['prefix', '/g h', 1],
    ],
  );
});

test('limits inside of stream are left out, and said', () => {
  const conf = read(`events {}
stream { limit_conn_zone $binary_remote_addr zone=s:1m;
  server { listen 1234; limit_conn s 1; } }
http { other_module { limit_req zone=nowhere; } }`);
  assert.deepEqual([...conf.connZones.keys()], []);
  assert.deepEqual(
    conf.notes.map((note) => `${note.where.line} ${note.code}`),
    ['2 stream-limit-conn', '3 stream-limit-conn', '4 limit-in-unknown-block'],
  );
});

const LUA_BODIES = [
  'return "}"',
  "return '}' .. '\\'}'",
  'local a = [[ } " ]]',
  'local a = [==[ }]] ]=] ]==]',
  '-- }\nreturn 1',
  '--[[ } \n } ]] return 1',
  '--[=[ } ]] } ]=] return 1',
  'local t = { a = { 1 }, b = #x } ; if x then y() end',
  'return "\\"}" -- " }',
  'local u = t[t2[1]] }} {{'.replace('}} {{', '{}'),
  '',
];

for (const body of LUA_BODIES) {
  test(`the Lua block ends behind: ${JSON.stringify(body)}`, () => {
    const conf = readHttp(
      `server { location /l { content_by_lua_block {${body}\n} limit_req_status 418; } }`,
    );
    assert.equal(rulesAt(conf, '/l').limitReqStatus, 418);
  });
}

test('a Lua block that does not end is refused where the file ends', () => {
  assert.throws(() => read('events {}\nhttp { server { access_by_lua_block {\nx = "}" --}\n'), {
    message: '/etc/nginx/nginx.conf:4: unexpected end of file, expecting "}"',
  });
});

test('a line of several lines: its place is where it begins, its error where it ends', () => {
  const text = 'events {}\nhttp {\nlimit_req_zone\n $arg_k\n zone=a:1m\n rate=1r/s;\n';
  assert.equal(read(`${text}}`).reqZones.get('a')?.where.line, 3);
  assert.throws(
    () => read(`${text}limit_req_status\n1\n;}`),
    (error) => error instanceof ConfError && error.where.line === 9,
  );
});

test('an error in an included file names that file', () => {
  const files = { 'conf.d/a.conf': 'limit_req_status 429;\nlimit_req_status 429;' };
  assert.throws(() => read('events {}\nhttp { include conf.d/*.conf; }', files), {
    name: 'ConfError',
    message: '/etc/nginx/conf.d/a.conf:2: "limit_req_status" directive is duplicate',
    reason: '"limit_req_status" directive is duplicate',
    where: at(2, '/etc/nginx/conf.d/a.conf'),
  });
});

test('a block has to end in the file in which it began', () => {
  const files = { 'conf.d/a.conf': 'server {', 'b.conf': '}' };
  assert.throws(() => read('events {}\nhttp { include conf.d/*.conf; } }', files), {
    message: '/etc/nginx/conf.d/a.conf:1: unexpected end of file, expecting "}"',
  });
  assert.throws(() => read('events {}\nhttp { server { include b.conf; }', files), {
    message: '/etc/nginx/b.conf:1: unexpected "}"',
  });
});

test('a file that includes itself ends in an error, not in a crash', () => {
  assert.throws(() => read('include nginx.conf;'), {
    message:
      '/etc/nginx/nginx.conf:1: open() "/etc/nginx/nginx.conf" failed (24: Too many open files)',
  });
});

// The second witness: nginx -T.

/** A site with includes of every kind. */
const SITE: Readonly<Record<string, string>> = {
  'nginx.conf': `pid nginx.pid;
events { include events.inc; }
http {
  client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u;
  scgi_temp_path s;
  include mime.types; include "empty/*.conf"; include conf.d/[!x]?-*.conf;
  map $arg_k $k { include map.inc; default $remote_addr; }
  limit_req_zone $k zone=z:1m rate=3r/m;
  include sites/*/*.conf;
}
`,
  'events.inc': 'worker_connections 64;',
  'mime.types': 'types {\n  text/html html htm;\n}\n\n',
  'map.inc': '~^a a;\nb b;',
  'conf.d/00-logs.conf':
    "log_format l '$remote_addr\\t'\n '\"$request\"'; access_log a.log l;\nerror_log e.log;\n",
  'conf.d/10-a.conf': '# nothing but a comment, without a line feed',
  'conf.d/x0-left-out.conf': 'limit_req_status 400;',
  'conf.d/.10-hidden.conf': 'limit_req_status 401;',
  'sites/b/b.conf': 'server { listen 8098; include snippets/limit.inc; }',
  'sites/a/a.conf':
    'server { listen 8099; server_name a;\n  location / { include snippets/limit.inc; } }\r\n',
  'snippets/limit.inc': 'limit_req zone=z burst=4;\nlimit_req_status 429;\n',
};

function writeSite(dir: string): string {
  for (const [name, text] of Object.entries(SITE)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), text);
  }
  return join(dir, 'nginx.conf');
}

/** Standard output and standard error of nginx -T, in the order a terminal would show. */
function dump(dir: string, path: string): string {
  const args = ['-T', '-p', dir, '-c', path, '-e', join(dir, 'error.log')];
  const { stdout, stderr, status } = spawnSync(requireProgram('nginx'), args, {
    encoding: 'latin1',
  });
  assert.equal(status, 0, stderr);
  return stderr + stdout;
}

function assertSameModel(fromFile: NginxConf, fromDump: NginxConf): void {
  assert.deepEqual({ ...fromDump, path: '' }, { ...fromFile, path: '' });
}

test('a site with includes: the files and nginx -T give one model', (t) => {
  const dir = makeTempDir(t);
  const path = writeSite(dir);
  const conf = loadConf(path);
  assert.deepEqual(
    conf.servers.map((server) => server.rules.serverName),
    ['a', ''],
  );
  assert.equal(conf.reqZones.get('z')?.rateMilliRps, 50);
  assert.deepEqual(rulesAt(conf, '/').limits[0]?.where, at(1, join(dir, 'snippets/limit.inc')));
  assert.equal(conf.logFormats.get('l')?.text, '$remote_addr\t"$request"');
  const text = dump(dir, path);
  assertSameModel(conf, parseConfDump('dump', text));
  writeFileSync(join(dir, 'dump.txt'), text);
  assertSameModel(conf, loadConf(join(dir, 'dump.txt')));
  assert.equal(loadConf(join(dir, 'dump.txt')).path, join(dir, 'dump.txt'));
});

test('a copy of the main file finds its includes behind a prefix', (t) => {
  const dir = makeTempDir(t);
  const path = writeSite(dir);
  const copy = join(makeTempDir(t), 'copy.conf');
  writeFileSync(copy, readFileSync(path));
  assert.deepEqual(
    [...loadConf(copy, { prefix: dir }).reqZones.keys()],
    [...loadConf(path).reqZones.keys()],
  );
  assert.throws(() => loadConf(copy), {
    name: 'InputError',
    exitCode: 78,
    message: new RegExp(`^${copy}:2: open\\(\\) ".*/events\\.inc" failed \\(2: No such file`),
  });
});

test('files that cannot be read: exit 66', (t) => {
  const dir = makeTempDir(t);
  for (const path of [join(dir, 'none.conf'), dir, join(dir, 'none', 'x.conf')]) {
    assert.throws(
      () => loadConf(path),
      (error) =>
        error instanceof InputError && error.exitCode === 66 && error.message.startsWith(path),
    );
  }
});

test('text without a section is no dump', () => {
  assert.throws(() => parseConfDump('dump', 'events {}'), { name: 'ConfError' });
});

/** Every configuration among the captures; the reload fixture holds the one that was refused. */
function capturedConfs(): readonly string[] {
  return ['test/traces', 'test/fixtures'].flatMap((top) =>
    readdirSync(top).flatMap((name) =>
      readdirSync(join(top, name))
        .filter((file) => file.startsWith('nginx.conf'))
        .map((file) => join(top, name, file)),
    ),
  );
}

for (const path of capturedConfs()) {
  test(`${path}: nginx -T and the file give one model`, (t) => {
    const dir = makeTempDir(t);
    const local = join(dir, 'nginx.conf');
    const text = readFileSync(path, 'latin1')
      .replaceAll(/\/var\/(?:log|lib)\/nginx\/|\/run\//g, '')
      // The directive is younger than Debian's nginx.
      .replaceAll(/^user root;$|http2 on;/gm, '');
    writeFileSync(local, text, 'latin1');
    if (path === 'test/fixtures/reload/nginx.conf') {
      assert.throws(() => loadConf(path), /nginx\.conf:17: the shared memory zone "rz" is already/);
      return;
    }
    const conf = loadConf(local);
    assert.ok(conf.ruleSets.length > 1);
    assert.deepEqual(conf.notes, []);
    assertSameModel(conf, parseConfDump('dump', dump(dir, local)));
  });
}
