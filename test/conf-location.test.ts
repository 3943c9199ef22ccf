/**
 * Which location a request meets: a real nginx, where every location answers with its own label,
 * against normalizeUri() and findRules().
 *
 * Targets go out as raw bytes over one keep-alive connection: no client library would let most of
 * them through.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';
import fc from 'fast-check';
import { findRules, normalizeUri } from '../parsers/conf/location.js';
import type { NginxConf, RuleSet, ServerConf } from '../parsers/conf/model.js';
import { selectServer } from '../parsers/conf/select-server.js';
import { loadConf } from '../src/input/conf-files.js';
import { startNginx, type Nginx } from './support/nginx.js';

/** Heads of locations, and what is nested in them. */
type Site = readonly (string | readonly [string, Site])[];

const SITE: Site = [
  '= /',
  '/',
  '= /exact',
  '/exact',
  '= /exact/',
  '^~ /static/',
  '~ \\.php$',
  '~* \\.(gif|jpe?g)$',
  '~ \\.GIF$',
  '/img/',
  ['^~ /img/raw/', ['~ \\.gif$', '/img/raw/deep/']],
  [
    '/api/',
    [
      '/api/v2/',
      ['/api/v1/', ['= /api/v1/exact', '~ ^/api/v1/\\d+$', '^~ /api/v1/stop']],
      '^~ /api/stop/',
      '~ /deep$',
      '= /api/',
    ],
  ],
  ['~ ^/re/', ['~ ^/re/(?<name>[a-z]+)$', '~ x$']],
  '~ "^/count/a{2}$"',
  '~ ^/percent%25',
  '/perc%',
  '/sp ace',
  '~ ^/nl(.)end$',
  '~ /Case$',
  '~* /nocase$',
  '~* ^/\\xe9$',
  '~ (?i)^/inline$',
  '~ \\A/anchor\\z',
  '/dir',
  '/dir/sub/',
  '"/quo\\"te"',
  '"/semi;colon"',
  '/dots.',
  '/..hidden',
  '~ //twice',
];

function quoteHead(head: string): string {
  return head === '/sp ace' ? '"/sp ace"' : head;
}

/** One label for each location, in the order in which the parser numbers them too. */
function siteConf(site: Site, next: { label: number }): string {
  return site
    .map((entry) => {
      const [head, inner]: readonly [string, Site] =
        typeof entry === 'string' ? [entry, []] : entry;
      const label = next.label++;
      return `location ${quoteHead(head)} {\n${siteConf(inner, next)}return 200 "${label}";\n}\n`;
    })
    .join('');
}

function serverConf(port: number, mergeSlashes: 'on' | 'off', next: { label: number }): string {
  const label = next.label++;
  // The server's own label answers only where no location matches: a location's return wins, for
  // a server's would run before any location is looked up. So it is left to error_page.
  return `server {
    listen 127.0.0.1:${port};
    merge_slashes ${mergeSlashes};
    large_client_header_buffers 4 16k;
    error_page 404 =200 @none;
    ${siteConf(SITE, next)}
    location @none { return 200 "${label}"; }
    root /nonexistent;
  }\n`;
}

async function startSite(t: Parameters<typeof startNginx>[0]): Promise<{
  nginx: Nginx;
  conf: NginxConf;
}> {
  const nginx = await startNginx(t, {
    ports: 2,
    http: ([merged, unmerged]) => {
      const next = { label: 0 };
      // The @none location is last, and takes a number of its own.
      const first = serverConf(merged!, 'on', next);
      next.label++;
      return `keepalive_requests 1000000; access_log off;\n${first}${serverConf(unmerged!, 'off', next)}`;
    },
  });
  return { nginx, conf: loadConf(nginx.path('nginx.conf')) };
}

/** Sends targets one after the other; the body of each answer, or `400` and the like. */
async function ask(
  port: number,
  targets: readonly string[],
  host = 'a.example',
): Promise<readonly string[]> {
  const answers: string[] = [];
  for (const target of targets) {
    // One connection each: nginx closes it after a 400, and loopback is quick.
    const socket = connect(port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    const closed = once(socket, 'close');
    const text = `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    socket.end(Buffer.from(text, 'latin1'));
    await closed;
    const answer = Buffer.concat(chunks).toString('latin1');
    const status = answer.slice(9, 12);
    answers.push(status === '200' ? answer.slice(answer.indexOf('\r\n\r\n') + 4) : status);
  }
  return answers;
}

/** The parser's answer in the same words. */
function predict(server: ServerConf, target: string): string {
  const uri = normalizeUri(target.replace(/\?.*$/s, ''), server.mergeSlashes);
  return uri === undefined ? '400' : String(findRules(server, uri).id);
}

function serverOf(conf: NginxConf, port: number): ServerConf {
  const server = selectServer(conf, 'a.example', port);
  assert.ok(server);
  return server;
}

const TARGETS = [
  ...['/', '//', '/?x', '/./', '/../', '/..', '/.', '/a/../', '/a/..', '/a/.', '/a/./b', '/...'],
  ...['/exact', '/exact/', '/exact/x', '/exact?', '/%65xact', '/exact%2f', '/exact%2F', '//exact'],
  ...['/exact/..', '/x/../exact', '/x/%2e%2e/exact', '/x/%2E./exact', '/x%2f..%2fexact'],
  ...['/static/a.php', '/static/../a.php', '/a.php', '/a.php/', '/a.php%0a', '/a.php%0d', '/a.PHP'],
  ...['/a.gif', '/a.GIF', '/a.jpg', '/a.JPEG', '/img/a.gif', '/img/raw/a.gif', '/img/raw/a.jpg'],
  ...['/img/raw/deep/a.jpg', '/img/raw/deep/a.gif', '/img/raw', '/img//raw//x.php'],
  ...['/api', '/api/', '/api/x', '/api/v1/', '/api/v1/exact', '/api/v1/12', '/api/v1/12/'],
  ...['/api/v1/stop.php', '/api/v1/x.php', '/api/v2/x.php', '/api/v2/deep', '/api/stop/x.php'],
  ...['/api/stop/deep', '/api/x/deep', '/api/v1/deep', '/api/v1/stop/deep', '/api/x.php'],
  ...['/re/', '/re/abc', '/re/abx', '/re/12x', '/re/12', '/re/a.php', '/count/aa', '/count/aaa'],
  ...['/percent%25', '/percent%2525', '/perc%25', '/perc', '/sp%20ace', '/sp+ace'],
  ...['/nlxend', '/nl%0aend', '/nl%0dend', '/nl%ffend', '/nl\xffend', '/nlend'],
  ...[
    '/x/Case',
    '/x/case',
    '/x/NoCase',
    '/%e9',
    '/%c9',
    '/\xe9',
    '/INLINE',
    '/anchor',
    '/anchor%0a',
  ],
  ...['/dir', '/dirx', '/dir/sub', '/dir/sub/', '/dir//sub/', '/dir/./sub/', '/dir/sub/..'],
  ...['/quo"te', '/quo%22te', '/semi;colon', '/dots.', '/dots./', '/dots', '/..hidden', '/.hidden'],
  ...[
    '//twice',
    '/a//twice',
    '/a/%2ftwice',
    '/a///twice',
    '//',
    '///',
    '//..',
    '/a//..',
    '/a//../',
  ],
  ...['/%', '/%4', '/%zz', '/%00', '/a%', '/%23', '/#', '/a#b', '/a%23b', '/exact#x', '/exact#/..'],
  ...[
    '/%3f',
    '/exact%3f',
    '/exact%3fa',
    '/a/..%3f',
    '/a/..?',
    '/a/.?',
    '/a/..#',
    '/a/.#',
    '/a/..%23',
  ],
  ...[
    '/%2e',
    '/%2e%2e',
    '/%2e/',
    '/a/%2e',
    '/a/%2e%2e',
    '/a/%2e%2e/',
    '/a/...',
    '/a/.../',
    '/a/..b',
  ],
  ...['/a/.b', '/a/..%2f', '/a/b/../../exact', '/a/b/../../../exact', '/a/../../', '/%2f', '/%5c'],
  ...['/\x01', '/\x7f', '/a\x7fb', '/a\tb', '/exact;', '/exact&', '/exact%26', '/+', '/a+b', '*'],
  ...['exact', '', 'http://h/exact', 'http://h/a/../exact', 'http://h', 'http://h?x', 'http://h/'],
  ...[
    'HTTP://h/exact',
    'http://h:80/exact',
    'http://h:/exact',
    'http://[::1]/exact',
    'http:///exact',
  ],
  ...['http://h:80', 'http://h#x', 'http://h/#x', 'ftp://h/exact', 'http:/exact', 'h2+x://h/exact'],
  ...[
    'http://h_x/exact',
    'http://u@h/exact',
    'http://h%41/exact',
    'http://h:80x/exact',
    'http://é/',
  ],
  ...[
    'http://[::1/exact',
    'http://[::g]/exact',
    'http://[v1.a~b]/exact',
    'http://h:8a',
    'http://-/',
  ],
];

test('locations and odd targets, against nginx', async (t) => {
  const { nginx, conf } = await startSite(t);
  for (const port of nginx.ports) {
    const server = serverOf(conf, port);
    const answers = await ask(port, TARGETS);
    assert.deepEqual(
      TARGETS.map((target, i) => [target, answers[i]]),
      TARGETS.map((target) => [target, predict(server, target)]),
    );
    // A site where most targets fell through to one location would prove little.
    assert.ok(new Set(answers).size > 35, String(new Set(answers).size));
  }
});

const PIECES = [
  ...['/', '/', '/', '.', '..', '%2e', '%2F', '%', '#', '%23', '%25', '%3f', '+', 'a', '0', '2'],
  ...['api', 'v1', 'deep', 'exact', 'img', 'raw', 'x.gif', '.php', 'static', 'stop', '\xff', 're'],
];

test('targets made of random pieces, against nginx', async (t) => {
  const { nginx, conf } = await startSite(t);
  const target = fc
    .array(fc.constantFrom(...PIECES), { maxLength: 9 })
    .map((pieces) => `/${pieces.join('')}`);
  await fc.assert(
    fc.asyncProperty(fc.array(target, { minLength: 20, maxLength: 20 }), async (targets) => {
      const port = nginx.ports[targets[0]!.length % 2]!;
      const server = serverOf(conf, port);
      assert.deepEqual(
        await ask(port, targets),
        targets.map((each) => predict(server, each)),
        JSON.stringify(targets),
      );
    }),
    { numRuns: 60, endOnFailure: true },
  );
});

const NAMES = [
  ['first.example', '*.first.example'],
  ['.dot.example', 'www.dot.example'],
  ['exact.dot.example', '~^second\\.dot'],
  ['tail.*', '*.dot.tail.example'],
  ['~^(?<sub>[a-z]+)\\.re\\.example$', '~^UPPER\\.re'],
  ['~^abc\\.re\\.example$', '~^upper\\.re', '*.tail.example'],
  [''],
  ['Upper.Example', 'exact.dot.example'],
];

const HOSTS = [
  ...['first.example', 'www.first.example', 'a.b.first.example', 'FIRST.example', 'first.example.'],
  ...['dot.example', 'www.dot.example', 'x.dot.example', 'exact.dot.example', 'second.dot.example'],
  ...['tail.example', 'tail.example.org', 'x.tail.example', 'x.dot.tail.example', 'tail.', 'tail'],
  ...[
    'abc.re.example',
    'abcd.re.example',
    'ab1.re.example',
    'upper.re.x',
    'UPPER.re.x',
    '127.0.0.1',
  ],
  ...['upper.example', 'nobody', 'first.example:8080', '[::1]', '', 'example', '.first.example'],
];

test('servers by name, against nginx', async (t) => {
  const nginx = await startNginx(t, {
    ports: 2,
    http: ([port, other]) =>
      NAMES.map((names, i) => {
        const list = names.map((name) => (name === '' ? '""' : `"${name}"`)).join(' ');
        return `server {
          listen 127.0.0.1:${port}${i === 5 ? ' default_server' : ''};
          ${i < 2 ? `listen 127.0.0.1:${other};` : ''}
          server_name ${list};
          return 200 "${i} $server_name";
        }\n`;
      }).join(''),
  });
  const conf = loadConf(nginx.path('nginx.conf'));
  for (const port of nginx.ports) {
    for (const host of HOSTS) {
      const [answer] = await ask(port, ['/'], host);
      // nginx answers 400 to a host it finds invalid; no server is chosen then.
      if (answer === '400') continue;
      const server = selectServer(conf, host, port);
      assert.equal(`${server?.id} ${server?.rules.serverName}`, answer, host);
    }
  }
});

test('servers without a host or a port: the default one, or the first', () => {
  const conf = loadConf('test/fixtures/fmt/nginx.conf');
  assert.equal(selectServer(conf, undefined, 18212)?.rules.serverName, 'h2.example');
  assert.equal(selectServer(conf, 'unknown.example', 18211)?.rules.serverName, 'a.example');
  assert.equal(selectServer(conf, 'h2.example', undefined)?.rules.serverName, 'h2.example');
  // A port that nothing listens on was mapped in front of nginx.
  assert.equal(selectServer(conf, 'h2.example', 443)?.rules.serverName, 'h2.example');
});

/** Each location of trace o that its requests can meet. */
const TRACE_O = [
  ['/', '= /', ['perip 5000 Infinity']],
  ['/static/x.php', '^~ /static/', ['perapi 2000 0']],
  ['/x.php', '~ \\.php$', ['perip 3000 1000', 'perapi 4000 Infinity']],
  ['/api/x', '/api/', ['perapi 8000 4000']],
  ['/api/v2/x', '/api/v2/', ['perapi 8000 4000']],
  ['/api/own/x', '/api/own/', ['perapi 10000 0', 'perip 1000 0']],
  ['/api/12/deep', '~ ^/api/[0-9]+/deep', ['perapi 0 0']],
  ['/api/x.php', '~ \\.php$', ['perip 3000 1000', 'perapi 4000 Infinity']],
  ['/dry/x', '/dry/', ['perip 1000 0', 'perapi 2000 0']],
  ['/other', '/', ['perip 5000 Infinity']],
] as const;

for (const [uri, location, limits] of TRACE_O) {
  test(`trace o: ${uri} meets ${location}`, () => {
    const conf = loadConf('test/traces/o_keys_map_geo/nginx.conf');
    const rules: RuleSet = findRules(conf.servers[0]!, uri);
    assert.equal(rules.location, location);
    const found = rules.limits.map(
      (limit) => `${limit.zone} ${limit.burstMilliReq} ${limit.delayMilliReq}`,
    );
    assert.deepEqual(found, limits);
  });
}
