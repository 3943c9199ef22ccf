/**
 * What real nginx refuses, limitlens refuses, in nginx's words and on nginx's line.
 *
 * Every line of the tables is given to `nginx -t` and to the parser; nothing is written down twice.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfError } from '../parsers/conf/conf-error.js';
import { parseConf } from '../parsers/conf/read-conf.js';
import { requireProgram } from './support/debian.js';
import { makeTempDir } from './support/temp-dir.js';

/** nginx's answer to a configuration, without date, level and process; empty when it is fine. */
function askNginx(dir: string, text: string): string {
  const path = join(dir, 'nginx.conf');
  writeFileSync(path, text, 'latin1');
  const args = ['-t', '-p', dir, '-c', path, '-e', join(dir, 'e.log'), '-g', 'pid nginx.pid;'];
  const { stderr, status } = spawnSync(requireProgram('nginx'), args, { encoding: 'latin1' });
  if (status === 0) return '';
  const refusal = /\[emerg\] (?:\d+#\d+: )?(.*)/.exec(stderr)?.[1] ?? stderr;
  // Temporary directories and ports below 1024 belong to root; the configuration is not at fault.
  return /^(?:mkdir|bind)\(\)/.test(refusal) ? '' : refusal;
}

/** The parser's answer in the same shape. */
function askParser(dir: string, text: string): string {
  const path = join(dir, 'nginx.conf');
  try {
    parseConf(path, { read: (name) => (name === path ? text : undefined), glob: () => [] });
    return '';
  } catch (error) {
    if (!(error instanceof ConfError)) throw error;
    // nginx has no line for what it finds out when all has been read.
    if (error.reason.startsWith('zero size')) return error.reason;
    return `${error.reason} in ${error.where.path}:${error.where.line}`;
  }
}

function title(text: string): string {
  const line = text.replaceAll('\n', '\\n');
  return line.length <= 120 ? line : `${line.slice(0, 60)}… (${line.length} bytes)`;
}

const long = (bytes: number): string => 'x'.repeat(bytes);

const WHOLE_FILES = [
  'events {}\nhttp {',
  'events {}\nhttp { server { ',
  'events {}\nhttp { server { listen 8080',
  'events {}\n}',
  'events {}\nhttp { foo } }',
  'events {}\nhttp { ; }',
  'events {}\nhttp { { }',
  'events {}\nhttp { log_format a "b"c; }',
  'events {}\nhttp { log_format a "b; }',
  "events {}\nhttp { log_format a 'b\\'; }",
  'events {}\nhttp { log_format a "b"{ } }',
  'events {}\nhttp { log_format a b\\ c\\;d; }',
  'events {}\nhttp { log_format a b#c "#" ; # } "\n}',
  'events {}\nhttp { log_format a ${arg_b}{ c; }',
  'events {}\nhttp { log_format a $arg_b{ c; }',
  'events {}\nhttp { log_format a "$arg_b{" c; }',
  'events {}\r\nhttp {\r\nlog_format a b;\r\nlimit_req zone=;;\r\n}\r\n',
  `events {}\nhttp { log_format a '${long(5000)}'; }`,
  `events {}\nhttp { log_format a "\n${long(5000)}"; }`,
  `events {}\nhttp { log_format a ${long(5000)}; }`,
  `events {}\nhttp { log_format a ${long(4095)}; }`,
  `events {}\nhttp { log_format a ${long(4096)}; }`,
  `events {}\nhttp { log_format a '${long(4094)}'; }`,
  `events {}\nhttp { log_format a '${long(4095)}'; }`,
  `events {}\nhttp { log_format a '${long(4096)}'; }`,
  `#${long(4094)}\nevents {}`,
  `#${long(5000)}\nevents {}`,
  '\u00ef\u00bb\u00bfevents {}\nhttp {}',
  'events {}\nevents {}',
  'events {}\nhttp {}\nhttp {}',
  'events {}\nhttp a {}',
  'events {}\nhttp ;',
  'events {}\nhttp { server { listen 8080 }\n }',
  'events {}\ninclude x.conf;',
  'events {}\ninclude x*.conf;',
  'events {}\ninclude;',
  'events {}\ninclude a b;',
  'events {}\nlimit_req zone=a;',
  'events {}\nhttp { server { limit_req_zone $arg_a zone=b:1m rate=1r/s; } }',
  'events {}\nhttp { server { if ($host) { limit_req zone=a; } } }',
  'events {}\nhttp { location / {} }',
  'events {}\nhttp { listen 8080; }',
  'events {}\nhttp { server { listen 8099; location / { return 200 "a";;; } } }',
  'events {}\nhttp { foo-bar 1; }',
  'events {}\nhttp { limit_req_zone $arg_k\nzone=a:1m\nrate=0r/s\n;}',
  'events {}\nhttp { log_format a b\n\n\nx;\nlimit_req_status\n1\n\n;}',
  'events {}\nhttp { types { text/html\n html; } }',
  'events {}\nhttp { upstream a { server 127.0.0.1; } }',
  'error_log a warn;\nerror_log b foo;\nevents {}',
];

const HTTP_LEVEL = [
  'limit_req_zone $arg_k zone=a:10k rate=1r/s;',
  'limit_req_zone $arg_k zone=a:31k rate=1r/s;',
  'limit_req_zone $arg_k zone=a:32K rate=1r/s;',
  'limit_req_zone $arg_k zone=a:32767 rate=1r/s;',
  'limit_req_zone $arg_k zone=a:32768 rate=1r/s;',
  'limit_req_zone $arg_k zone=a:1M rate=1r/s;',
  'limit_req_zone $arg_k zone=a:1g rate=1r/s;',
  'limit_req_zone $arg_k zone=a:10x rate=10;',
  'limit_req_zone $arg_k zone=a:-1m rate=10;',
  'limit_req_zone $arg_k zone=a: rate=10;',
  'limit_req_zone $arg_k zone=a:m rate=10;',
  'limit_req_zone $arg_k zone=a rate=10;',
  'limit_req_zone $arg_k zone=:10m rate=10;',
  'limit_req_zone $arg_k zone=a:99999999999999999999 rate=10;',
  'limit_req_zone $arg_k zone=a:9999999999999m rate=10;',
  'limit_req_zone $arg_k zone=a:1m rate=10;',
  'limit_req_zone $arg_k zone=a:1m rate=1r/m;',
  'limit_req_zone $arg_k zone=a:1m rate=0r/s;',
  'limit_req_zone $arg_k zone=a:1m rate=0.5r/s;',
  'limit_req_zone $arg_k zone=a:1m rate=1r/h;',
  'limit_req_zone $arg_k zone=a:1m rate=r/s;',
  'limit_req_zone $arg_k zone=a:1m rate=;',
  'limit_req_zone $arg_k zone=a:1m rate=-1r/s;',
  'limit_req_zone $arg_k zone=a:1m rate=9223372036854775807r/s;',
  'limit_req_zone $arg_k zone=a:1m rate=9223372036854775808r/s;',
  'limit_req_zone $arg_k zone=a:1m;',
  'limit_req_zone $arg_k zone=a:1m rate=1r/s sync;',
  'limit_req_zone $arg_k rate=10r/s sync;',
  'limit_req_zone $arg_k rate=10r/s rate=10r/s;',
  'limit_req_zone a b;',
  'limit_req_zone $ zone=a:1m rate=1r/s;',
  'limit_req_zone ${arg_k zone=a:1m rate=1r/s;',
  'limit_req_zone "${" zone=a:1m rate=1r/s;',
  'limit_req_zone "${}" zone=a:1m rate=1r/s;',
  'limit_req_zone a$- zone=a:1m rate=1r/s;',
  'limit_req_zone "" zone=a:1m rate=1r/s;',
  'limit_req_zone abc zone=a:1m rate=1r/s;',
  'limit_req_zone $arg_k zone=a:1m rate=1r/s; limit_req_zone $arg_k zone=a:1m rate=1r/s;',
  'limit_req_zone $arg_k zone=a:1m rate=1r/s; limit_req_zone $arg_k zone=a:2m rate=1r/s;',
  'limit_req_zone $arg_k zone=a:1m rate=1r/s; limit_conn_zone $arg_k zone=a:1m;',
  'limit_req_zone $arg_k zone=a:1m rate=1r/s; limit_conn a 1;',
  'limit_req zone=a; limit_req_zone $arg_k zone=a:1m rate=1r/s;',
  'limit_req zone=a; limit_conn_zone $arg_k zone=a:1m;',
  'limit_req zone=b;\n\n',
  'limit_req zone=;',
  'limit_req zone=b {',
  'limit_conn b 2;',
  'limit_req burst=2;',
  'limit_req;',
  'limit_req zone=a burst=1 nodelay x;',
  'limit_req zone=a burst=0;',
  'limit_req zone=a burst=;',
  'limit_req zone=a burst=1.5;',
  'limit_req zone=a delay=0;',
  'limit_req zone=a delay=x;',
  'limit_req zone=a nodelay=1;',
  'limit_req zone=a; limit_req zone=a burst=1;',
  'limit_req zone=a burst=9223372036854775808;',
  'limit_req_zone $arg_k zone=a:1m rate=1r/s; limit_req zone=a burst=9223372036854775807;',
  'limit_req_zone $arg_k zone=a:1m rate=1r/s; limit_req zone=a delay=5 nodelay;',
  'limit_req_zone $arg_k zone=a:1m rate=1r/s; limit_req zone=a nodelay delay=5;',
  'limit_conn_zone $arg_k;',
  'limit_conn_zone $arg_k x;',
  'limit_conn_zone $arg_k zone=a:1k;',
  'limit_conn_zone $arg_k zone=a;',
  'limit_conn_zone abc$arg_x zone=a:1m;',
  'limit_conn_zone $arg_k zone=a:1m; limit_conn_zone $arg_j zone=a:1m;',
  'limit_conn_zone $arg_k zone=a:1m; limit_conn a 0;',
  'limit_conn_zone $arg_k zone=a:1m; limit_conn a 65535;',
  'limit_conn_zone $arg_k zone=a:1m; limit_conn a 65536;',
  'limit_conn_zone $arg_k zone=a:1m; limit_conn a x;',
  'limit_conn_zone $arg_k zone=a:1m; limit_conn a 1; limit_conn a 0;',
  'limit_conn a;',
  ...['limit_req', 'limit_conn'].flatMap((name) => [
    `${name}_status 399;`,
    `${name}_status 400;`,
    `${name}_status 599;`,
    `${name}_status 600;`,
    `${name}_status x;`,
    `${name}_status 429;\n ${name}_status 429;`,
    `${name}_dry_run 1;`,
    `${name}_dry_run ON;`,
    `${name}_dry_run on; ${name}_dry_run 1;`,
    `${name}_dry_run;`,
    `${name}_log_level crit;`,
    `${name}_log_level WARN;`,
    `${name}_log_level warn; ${name}_log_level warn;`,
  ]),
  'log_format a;',
  'log_format a $;',
  'log_format a ${x;',
  'log_format a "$arg_x $- a";',
  'log_format a "${";',
  'log_format a "${}";',
  'log_format a escape=xml b;',
  'log_format a escape=json;',
  'log_format a b escape=json;',
  'log_format combined b;',
  'log_format a b; log_format a c;',
  'log_format a b; log_format A c; access_log x A;',
  'log_format a b; access_log x A;',
  'access_log x nope;',
  'access_log x buffer=32k;',
  'access_log off x;',
  'access_log off; access_log x; access_log off;',
  'access_log x combined buffer=0;',
  'access_log x combined flush=5s;',
  'access_log x combined flush=q buffer=1k;',
  'access_log x combined buffer=1k flush=1m30s;',
  'access_log x combined buffer=1k flush=30s1m;',
  'access_log x combined buffer=1k flush=5;',
  'access_log x combined buffer=1k flush=0;',
  'access_log x combined gzip=10;',
  'access_log x combined gzip=;',
  'access_log x combined gzip flush=1s;',
  'access_log x$host combined gzip;',
  'access_log syslog:server=127.0.0.1 combined buffer=3k;',
  'access_log syslog:server=127.0.0.1,tag=a,nohostname combined;',
  'access_log syslog:foo=127.0.0.1;',
  'access_log x combined if=$arg_x zz;',
  'access_log x combined if=$;',
  'access_log x combined buffer=3k; access_log x combined buffer=4k;',
  'access_log x combined buffer=3k; access_log x combined buffer=3k;',
  'access_log;',
  'error_log x foo;',
  'error_log x WARN;',
  'error_log x warn error;',
  'error_log x warn foo;',
  'error_log;',
  'error_log syslog:x warn;',
  'map $arg_a b {}',
  'map $arg_a $b c {}',
  'map $arg_a $b;',
  'map $arg_a $b { a; }',
  'map $arg_a $b { a 1 2; }',
  'map $arg_a $b { default 1; default 2; }',
  'map $arg_a $b { a 1; A 2; }',
  'map $arg_a $b { a 1; \\a 2; }',
  'map $arg_a $b { "" 1; "" 2; }',
  'map $arg_a $b { hostnames; *.a 1; *.a 2; }',
  'map $arg_a $b { hostnames; *.a 1; .a 2; }',
  'map $arg_a $b { hostnames; *.a 1; a 2; a.* 3; b.a 4; }',
  'map $arg_a $b { hostnames; .a 1; a 2; }',
  'map $arg_a $b { hostnames; *a 1; }',
  'map $arg_a $b { hostnames; a.*.b 1; }',
  'map $arg_a $b { hostnames; a..b 1; }',
  'map $arg_a $b { *.a 1; *.A 2; }',
  'map $arg_a $b { a { x y; } }',
  'map $arg_a $b { "" 2; default 3; volatile; hostnames; }',
  'map $arg_a $b { a $; }',
  'map $arg_a $b { ~x $1; }',
  'map $arg_a $b { include nope; }',
  'geo b { }',
  'geo $b { a; }',
  'geo $b { a 1 2; }',
  'geo $arg_b $c { default 1; default 2; }',
  'geo $b { 1.2.3.4 1; 1.2.3.4/32 2; }',
  'geo $b { 1.2.3.400 1; }',
  'geo $b { 1.2.3 1; }',
  'geo $b { 1.2.3.4/33 1; }',
  'geo $b { 1.2.3.4/ 1; }',
  'geo $b { 1.2.3.4/8 1; }',
  'geo $b { ::1 1; 2001:db8::/32 2; ::ffff:1.2.3.4 3; 1::2::3 4; }',
  'geo $b { 1:2:3:4:5:6:7 1; }',
  'geo $b { 1:2:3:4:5:6:7:8/128 1; }',
  'geo $b { ::1/129 1; }',
  'geo $b { delete 1.2.3.4/8; }',
  'geo $b { delete x; }',
  'geo $b { 1.2.3.4 1; ranges; }',
  'geo $b { default 1; ranges; }',
  'geo $b { ranges; 1.2.3.4 1; }',
  'geo $b { ranges; 1.2.3.4-1.2.3.1 1; }',
  'geo $b { ranges; 1.2.3.4-1.2.3.8 1; 1.2.3.5-1.2.3.9 2; }',
  'geo $b { ranges; 1.2.3.4-1.2.3.8 1; 1.2.3.3-1.2.3.9 2; }',
  'geo $b { ranges; 1.2.3.4-1.2.3.8 1; 1.2.3.4-1.2.3.9 2; }',
  'geo $b { ranges; 1.2.3.4-1.2.3.8 1; 1.2.3.4-1.2.3.8 2; 1.2.3.5-1.2.3.6 3; }',
  'geo $b { ranges; 1.2.3.4-1.2.3.5 1; 1.2.3.7-1.2.3.8 2; 1.2.3.3-1.2.3.9 3; }',
  'geo $b { ranges; 1.2.0.0-1.2.255.255 1; 1.2.0.0-1.3.0.9 2; 1.4.0.0-1.5.0.0 3; }',
  'geo $b { ranges; ::1-::2 1; }',
  'geo $b { proxy foo; }',
  'geo $b { proxy 10.0.0.0/8; proxy_recursive; 10.0.0.0/8 1; }',
  'geo $b { include nope; }',
  'real_ip_recursive foo;',
  'real_ip_header a; real_ip_header b;',
  'set_real_ip_from a b;',
  'merge_slashes x;',
];

const SERVER_LEVEL = [
  'server_name *;',
  'server_name *a;',
  'server_name *.;',
  'server_name .;',
  'server_name ~;',
  'server_name;',
  'server_name ""; server_name A.b .c *.d e.*;',
  'location;',
  'location {}',
  'location + /a {}',
  'location = {}',
  'location / {} location / {}',
  'location /a {} location ^~ /a {}',
  'location /a {} location = /a {} location ~ /a {} location ~ /a {}',
  'location = /a {} location = /a {}',
  'location /a { location /a/b {} location /a/b {} }',
  'location = /a { location /a/b {} }',
  'location /a { location /b {} }',
  'location /a { location = /a {} location ~ b {} }',
  'location ~ ^/a { location /a/b {} }',
  'location ~ ^/a { location ^/a/b {} }',
  'location ~*^/a { location ~ b {} }',
  'location /a { location @x {} }',
  'location @x { location / {} }',
  'location @x { location ~ / {} }',
  'location ~ {}',
  'location "" {}',
  'location /a b c {}',
  'location ~ "a{2}" {}',
  'location ~ a{2} {}',
  'return;',
  'return 99x;',
  'return 1000;',
  'return http://a;',
  'return 301 http://a b;',
  'rewrite a;',
  'rewrite a b c;',
  'rewrite a b last;',
  'if x {}',
  'if ($host) {}',
  'if ($host = "a") { return 200; }',
  'if ($host = a {}',
  'set x 1;',
  'set $x;',
  'listen 99999;',
  'listen 0;',
  'listen 127.0.0.1:0;',
  'listen 127.0.0.1:8098 default_server; listen 127.0.0.1:8098;',
  'listen 127.0.0.1:8099;',
  'listen 8098; listen *:8098;',
  'listen [::1]:8098; listen [::1]:8098;',
  'listen 127.0.0.1:abc;',
  'listen 127.0.0.1:;',
  'listen 127.0.0.1:8097 foo;',
  'listen [::1;',
  'listen;',
  'listen unix:;',
  'listen 127.0.0.1:8010-8005;',
  'listen 127.0.0.1:8005-8010; listen 127.0.0.1:8007;',
  'listen 8098 default_server; } server { listen 8098 default_server;',
  'listen 8098 default_server; } server { listen 127.0.0.1:8098 default;',
  'limit_except GET { }',
  'location / { limit_except GET { limit_req zone=a; } }',
  'location / { if ($arg_x) { limit_req zone=a; } }',
  'location / { if ($arg_x) { access_log off; error_log x; } }',
  'location / { if ($arg_x) { location / {} } }',
  'limit_req zone=a burst=1 burst=2;',
  'limit_req_zone $arg_k zone=a:1m rate=1r/s;',
];

const CASES = [
  ...WHOLE_FILES,
  ...HTTP_LEVEL.map((text) => `events {}\nhttp {\n${text}\n}\n`),
  ...SERVER_LEVEL.map(
    (text) => `events {}\nhttp {\nserver { listen 127.0.0.1:8099;\n${text}\n}\n}\n`,
  ),
];

for (const text of CASES) {
  test(`nginx -t agrees: ${title(text)}`, (t) => {
    const dir = makeTempDir(t);
    assert.equal(askParser(dir, text), askNginx(dir, text));
  });
}

/** Where the parser is more lenient, and has to be: it does not know the modules nginx has. */
const LENIENT = [
  ['events {}\nhttp { foo_bar 1; }', 'unknown directive "foo_bar"'],
  ['events {}\nhttp { limit_req_zone $nope zone=a:1m rate=1r/s; }', 'unknown "nope" variable'],
  ['http {}', 'no "events" section in configuration'],
  ['events {}\nhttp { server { location ~ ( {} } }', 'pcre2_compile() failed'],
  ['events {}\nhttp { set_real_ip_from name.invalid; }', 'host not found in set_real_ip_from'],
] as const;

for (const [text, refusal] of LENIENT) {
  test(`only nginx refuses: ${title(text)}`, (t) => {
    const dir = makeTempDir(t);
    assert.ok(askNginx(dir, text).startsWith(refusal), askNginx(dir, text));
    assert.equal(askParser(dir, text), '');
  });
}
