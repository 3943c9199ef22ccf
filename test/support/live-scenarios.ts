/**
 * Scenarios beyond the captures: what a limiter meets in the field, a few seconds of each.
 *
 * Every scenario is made from a seed; how the machine's load moves its requests is nginx's and the
 * replay's business alike.
 */
import type { Scenario } from './live-scenario.js';
import { bursts, conversations, Dice, steady } from './live-schedule.js';

const byArg = (rate: string, zone = 'perkey', size = '1m'): string =>
  `limit_req_zone $arg_k zone=${zone}:${size} rate=${rate};`;
const server = (port: number | undefined, body: string, names = 'test.example'): string =>
  `server { listen 127.0.0.1:${port}; server_name ${names}; ${body} }`;
const KEYS = ['alpha', 'beta', 'gamma', 'delta'];
const LAST_MS = 5000;

/** A path with a key, an upstream's time, and a number that makes request lines differ. */
function path(dice: Dice, index: number, base = '/', keys: readonly string[] = KEYS): string {
  return `${base}?k=${dice.pick(keys)}&ms=${dice.below(40)}&n=${index}`;
}

function delayWithBursts(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'delay=3 with bursts',
    http: ([port]) =>
      `${byArg('10r/s')} ${server(port, 'location / { limit_req zone=perkey burst=8 delay=3; proxy_pass http://be; }')}`,
    requests: bursts(dice, { everyMs: 400, size: 14, spreadMs: 5, lastsMs: LAST_MS }, (d, i) => ({
      path: path(d, i),
    })),
  };
}

function sameRequestLine(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'same request line again and again',
    http: ([port]) =>
      `${byArg('8r/s')} ${server(port, 'location / { limit_req zone=perkey burst=4 delay=2; limit_req_status 429; proxy_pass http://be; }')}`,
    requests: bursts(dice, { everyMs: 300, size: 10, spreadMs: 30, lastsMs: LAST_MS }, (d) => ({
      path: `/x?k=${d.pick(KEYS)}`,
    })),
  };
}

function pipelined(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'pipelined',
    http: ([port]) =>
      `${byArg('20r/s')} ${server(
        port,
        `location /n { limit_req zone=perkey burst=5 nodelay; empty_gif; }
         location /d { limit_req zone=perkey burst=5; proxy_pass http://be; }`,
      )}`,
    requests: bursts(dice, { everyMs: 250, size: 12, spreadMs: 1, lastsMs: LAST_MS }, (d, i) => ({
      path: path(d, i, d.pick(['/n', '/d'])),
      keepAlive: `p${d.below(6)}`,
    })),
  };
}

function keepAliveIdle(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'idle keep-alive connections',
    http: ([port]) =>
      `${byArg('4r/s')} ${server(port, 'location / { limit_req zone=perkey burst=2; proxy_pass http://be; }')}`,
    requests: conversations(dice, { count: 12, gapMs: 600, lastsMs: 6000 }, (d, i) => ({
      path: path(d, i),
    })),
  };
}

function ssi(seed: number): Scenario {
  const dice = new Dice(seed);
  const page = '<!--#include virtual="/part?k=ssi" --><!--#include virtual="/part?k=two" -->';
  return {
    name: 'SSI subrequests',
    http: ([port]) =>
      `${byArg('6r/s')} ${server(
        port,
        `ssi on; ssi_types *; root html;
         location /page { try_files /page.html =404; }
         location /limited { limit_req zone=perkey burst=3 nodelay; try_files /page.html =404; }
         location /part { limit_req zone=perkey burst=3 nodelay; proxy_pass http://be; }`,
      )}`,
    files: { 'page.html': page },
    requests: steady(dice, 12, LAST_MS, (d, i) => ({
      path: path(d, i, d.pick(['/page', '/limited', '/part']), ['ssi', 'two', 'own']),
    })),
  };
}

function errorPage(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'error_page after a rejection',
    http: ([port]) =>
      `${byArg('8r/s')} ${server(
        port,
        `limit_req_status 429;
         location /a { limit_req zone=perkey burst=2 nodelay; error_page 429 /sorry; proxy_pass http://be; }
         location /b { limit_req zone=perkey burst=2 delay=1; error_page 429 =200 @named; proxy_pass http://be; }
         location /sorry { limit_req zone=perkey burst=1; proxy_pass http://be; }
         location @named { proxy_pass http://be; }
         location /up { error_page 404 /a; proxy_intercept_errors on; proxy_pass http://be/?status=404; }`,
      )}`,
    requests: steady(dice, 30, LAST_MS, (d, i) => ({
      path: path(d, i, d.pick(['/a', '/b', '/sorry', '/up'])),
    })),
  };
}

function internalRedirects(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'rewrite, try_files, X-Accel, auth, return',
    http: ([port]) =>
      `${byArg('8r/s')} ${server(
        port,
        `root html;
         location /r { rewrite ^/r(.*)$ /lim$1 last; }
         location /t { limit_req zone=perkey burst=2 nodelay; try_files /none /lim; }
         location /x { proxy_pass http://be/?accel=/lim%3Fk%3Daccel; }
         location /lim { limit_req zone=perkey burst=3 nodelay; proxy_pass http://be; }
         location /auth { limit_req zone=perkey burst=3 nodelay; auth_basic x; auth_basic_user_file none; }
         location /deny { limit_req zone=perkey burst=3 nodelay; deny all; }
         location /ret { limit_req zone=perkey burst=3 nodelay; return 204; }
         location /missing { limit_req zone=perkey burst=3 nodelay; }`,
      )}`,
    requests: steady(dice, 35, LAST_MS, (d, i) => ({
      path: path(d, i, d.pick(['/r', '/t', '/x', '/lim', '/auth', '/deny', '/ret', '/missing']), [
        'alpha',
        'beta',
        'accel',
      ]),
    })),
  };
}

function reloads(seed: number): Scenario {
  const dice = new Dice(seed);
  const conf =
    (rate: string, limit: string, size = '1m') =>
    ([port]: readonly number[]): string =>
      `${byArg(rate, 'perkey', size)} ${server(port, `location / { limit_req zone=perkey ${limit}; proxy_pass http://be; }`)}`;
  return {
    name: 'reloads: rate, burst, size',
    workers: 2,
    http: conf('5r/s', 'burst=4 delay=2'),
    reloads: [
      { atMs: 2000, http: conf('12r/s', 'burst=6') },
      { atMs: 4000, http: conf('12r/s', 'burst=3 nodelay', '2m') },
    ],
    requests: steady(dice, 40, 6500, (d, i) => ({ path: path(d, i) })),
  };
}

function severalServers(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'several servers and ports',
    ports: 2,
    http: ([first, second]) =>
      `${byArg('6r/s')} limit_req_zone $server_name zone=perserver:1m rate=20r/s;
       limit_req_zone $binary_remote_addr zone=peraddr:1m rate=12r/s;
       ${server(first, 'location / { limit_req zone=perkey burst=3; limit_req zone=perserver burst=8 nodelay; proxy_pass http://be; }', 'a.example')}
       ${server(first, 'location / { limit_req zone=peraddr burst=5 delay=2; proxy_pass http://be; }', 'b.example *.b.example')}
       ${server(second, 'limit_req zone=perserver burst=4 nodelay; location /free { limit_req zone=perkey burst=9; proxy_pass http://be; } location / { proxy_pass http://be; }', '_')}`,
    requests: steady(dice, 60, LAST_MS, (d, i) => ({
      path: path(d, i, d.pick(['/', '/free'])),
      headers: { host: d.pick(['a.example', 'b.example', 'x.b.example', 'other.example']) },
      localAddress: `127.0.0.${1 + d.below(4)}`,
    })),
  };
}

function otherAddresses(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'IPv6 and unix clients',
    http: ([port], dir) =>
      `limit_req_zone $binary_remote_addr zone=peraddr:1m rate=7r/s;
       server { listen 127.0.0.1:${port}; listen [::1]:${port}; listen unix:${dir}/sock;
         server_name test.example;
         location / { limit_req zone=peraddr burst=4 delay=1; proxy_pass http://be; } }`,
    requests: steady(dice, 40, LAST_MS, (d, i) => ({
      path: path(d, i),
      localAddress: '127.0.0.9',
      ...(d.below(2) === 0 ? { host: '::1', localAddress: '::1' } : {}),
    })),
  };
}

function highRate(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: '1000r/s',
    http: ([port]) =>
      `${byArg('1000r/s')} ${server(
        port,
        `location /n { limit_req zone=perkey burst=20 nodelay; empty_gif; }
         location /d { limit_req zone=perkey burst=30 delay=5; empty_gif; }`,
      )}`,
    requests: bursts(dice, { everyMs: 200, size: 110, spreadMs: 12, lastsMs: LAST_MS }, (d, i) => ({
      path: path(d, i, d.pick(['/n', '/d']), ['one', 'two']),
      keepAlive: `h${d.below(24)}`,
    })),
  };
}

function lowRates(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: '1r/m, 7r/m, 59r/m, 100r/m',
    http: ([port]) =>
      `${byArg('1r/m', 'm1')} ${byArg('7r/m', 'm7')} ${byArg('59r/m', 'm59')} ${byArg('100r/m', 'm100')}
       ${server(
         port,
         `location /1 { limit_req zone=m1 burst=3 nodelay; proxy_pass http://be; }
          location /7 { limit_req zone=m7 burst=2 nodelay; proxy_pass http://be; }
          location /59 { limit_req zone=m59 burst=2; proxy_pass http://be; }
          location /100 { limit_req zone=m100 burst=3 delay=1; proxy_pass http://be; }`,
       )}`,
    requests: steady(dice, 25, 6000, (d, i) => ({
      path: path(d, i, d.pick(['/1', '/7', '/59', '/100'])),
    })),
  };
}

function noBurst(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'no burst',
    http: ([port]) =>
      `${byArg('5r/s')} ${server(port, 'location / { limit_req zone=perkey; proxy_pass http://be; }')}`,
    requests: steady(dice, 40, LAST_MS, (d, i) => ({ path: path(d, i) })),
  };
}

function fourZones(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'four zones',
    http: ([port]) =>
      `${byArg('6r/s')} limit_req_zone $binary_remote_addr zone=peraddr:1m rate=10r/s;
       limit_req_zone $uri zone=peruri:1m rate=15r/s; limit_req_zone $server_name zone=all:1m rate=25r/s;
       ${server(
         port,
         `location / { limit_req zone=all burst=20 nodelay; limit_req zone=perkey burst=3;
            limit_req zone=peruri burst=6 delay=2; limit_req zone=peraddr burst=5 delay=3; proxy_pass http://be; }`,
       )}`,
    requests: steady(dice, 45, LAST_MS, (d, i) => ({
      path: path(d, i, d.pick(['/a', '/b', '/c']), ['', ...KEYS]),
      localAddress: `127.0.0.${1 + d.below(4)}`,
    })),
  };
}

function oneZoneManyLocations(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'one zone, several bursts',
    http: ([port]) =>
      `${byArg('9r/s')} ${server(
        port,
        `location /a { limit_req zone=perkey burst=2 nodelay; proxy_pass http://be; }
         location /b { limit_req zone=perkey burst=10 delay=4; proxy_pass http://be; }
         location = /c { limit_req zone=perkey burst=6; limit_req_dry_run on; proxy_pass http://be; }
         location ~ \\.(php|asp)$ { limit_req zone=perkey burst=1; limit_req_status 429; proxy_pass http://be; }`,
      )}`,
    requests: steady(dice, 50, LAST_MS, (d, i) => ({
      path: path(d, i, d.pick(['/a', '/b', '/c', '/d.php', '/a/x.asp'])),
    })),
  };
}

function connDelay(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'limit_conn after a delay',
    http: ([port]) =>
      `${byArg('10r/s')} limit_conn_zone $arg_k zone=conn:1m; ${server(
        port,
        'location / { limit_req zone=perkey burst=6 delay=1; limit_conn conn 2; proxy_pass http://be; }',
      )}`,
    requests: steady(dice, 45, LAST_MS, (d, i) => ({
      path: `/?k=${d.pick(KEYS)}&ms=${d.below(400)}&n=${i}`,
    })),
  };
}

function aborts(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'clients leave while delayed',
    http: ([port]) =>
      `${byArg('6r/s')} ${server(port, 'location / { limit_req zone=perkey burst=8; proxy_pass http://be; }')}`,
    requests: steady(dice, 35, LAST_MS, (d, i) => ({
      path: path(d, i),
      ...(d.below(2) === 0 ? { abortAfterMs: 20 + d.below(500) } : {}),
    })),
  };
}

function mixedKeyLengths(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'keys of all lengths in 32k',
    http: ([port]) =>
      `${byArg('2r/s', 'perkey', '32k')} ${server(port, 'location / { limit_req zone=perkey burst=2 nodelay; empty_gif; }')}`,
    requests: steady(dice, 220, LAST_MS, (d, i) => ({
      path: `/?k=${'k'.repeat(d.pick([1, 1, 1, 1, 1, 60, 200, 900]))}${d.zipf(600)}&n=${i}`,
      keepAlive: `s${d.below(8)}`,
    })),
  };
}

function manyWorkers(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'four workers',
    workers: 4,
    http: ([port]) =>
      `${byArg('5r/s')} ${server(port, 'location / { limit_req zone=perkey burst=5 delay=2; proxy_pass http://be; }')}`,
    requests: [
      ...steady(dice, 90, LAST_MS, (d, i) => ({
        path: `/?k=${d.zipf(100)}&ms=${d.below(20)}&n=${i}`,
      })),
      ...bursts(dice, { everyMs: 500, size: 25, spreadMs: 2, lastsMs: LAST_MS }, (d, i) => ({
        path: `/?k=${d.below(3)}&n=b${i}`,
      })),
    ],
  };
}

function slowHeaders(seed: number, workers: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: `slow headers, ${workers} worker${workers > 1 ? 's' : ''}`,
    workers,
    http: ([port]) =>
      `${byArg('8r/s')} ${server(
        port,
        `location /n { limit_req zone=perkey burst=4 nodelay; proxy_pass http://be; }
         location /d { limit_req zone=perkey burst=5 delay=2; proxy_pass http://be; }`,
      )}`,
    requests: steady(dice, 45, LAST_MS, (d, i) => ({
      path: path(d, i, d.pick(['/n', '/d'])),
      ...(d.below(2) === 0 ? { slowHeaderMs: 1 + d.below(500) } : {}),
    })),
  };
}

function bodies(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'POST bodies, slow ones too',
    http: ([port]) =>
      `${byArg('8r/s')} ${server(port, 'location / { limit_req zone=perkey burst=4 delay=2; proxy_pass http://be; }')}`,
    requests: steady(dice, 30, LAST_MS, (d, i) => ({
      path: path(d, i),
      method: 'POST',
      body: 'b'.repeat(1 + d.below(30_000)),
      ...(d.below(2) === 0 ? { slowBodyMs: 20 + d.below(600) } : {}),
    })),
  };
}

function downloads(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'large downloads, slow readers',
    http: ([port]) =>
      `${byArg('8r/s')} ${server(
        port,
        `location = /s { limit_req zone=perkey burst=4 delay=1; limit_rate 2m; alias html/big; }
         location /p { limit_req zone=perkey burst=4 delay=1; proxy_pass http://be/?bytes=900000; }`,
      )}`,
    files: { big: 'B'.repeat(900_000) },
    requests: steady(dice, 25, LAST_MS, (d, i) => ({
      path: path(d, i, d.pick(['/s', '/p'])),
      ...(d.below(3) === 0 ? { pauseMs: 10 + d.below(60) } : {}),
    })),
  };
}

function staticTies(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'static, many in one millisecond',
    http: ([port]) =>
      `${byArg('50r/s')} limit_req_zone $server_name zone=all:1m rate=200r/s; ${server(
        port,
        `location / { limit_req zone=perkey burst=10 nodelay; limit_req zone=all burst=40 nodelay; empty_gif; }
         location /q { limit_req zone=perkey burst=12 delay=4; empty_gif; }`,
      )}`,
    requests: bursts(dice, { everyMs: 300, size: 90, spreadMs: 3, lastsMs: LAST_MS }, (d, i) => ({
      path: path(d, i, d.pick(['/', '/q'])),
      keepAlive: `t${d.below(40)}`,
    })),
  };
}

function dryRun(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'dry run, two zones',
    workers: 2,
    http: ([port]) =>
      `${byArg('6r/s')} limit_req_zone $binary_remote_addr zone=peraddr:1m rate=20r/s; ${server(
        port,
        'limit_req_dry_run on; limit_req_log_level notice; location / { limit_req zone=peraddr burst=6 delay=3; limit_req zone=perkey burst=3; proxy_pass http://be; }',
      )}`,
    requests: steady(dice, 50, LAST_MS, (d, i) => ({
      path: path(d, i),
      localAddress: `127.0.0.${1 + d.below(3)}`,
    })),
  };
}

function starvation(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'starved zone, two workers',
    workers: 2,
    http: ([port]) =>
      `${byArg('30r/m', 'perkey', '32k')} ${server(port, 'location / { limit_req zone=perkey burst=2 nodelay; empty_gif; }')}`,
    requests: steady(dice, 250, LAST_MS, (d, i) => ({
      path: `/?k=${d.zipf(1500)}&n=${i}`,
      keepAlive: `z${d.below(10)}`,
    })),
  };
}

function upstreamErrors(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: '429, 502, 503, 504 of upstreams',
    http: ([port]) =>
      `${byArg('10r/s')} upstream dead { server 127.0.0.1:1; } upstream retry { server 127.0.0.1:1; server 127.0.0.1:2; }
       ${server(
         port,
         `limit_req zone=perkey burst=4 delay=2; proxy_next_upstream error timeout;
          location /429 { proxy_pass http://be/?status=429; }
          location /503 { proxy_pass http://be/?status=503; }
          location /502 { proxy_pass http://dead; }
          location /retry { proxy_pass http://retry; }
          location /504 { proxy_read_timeout 120ms; proxy_pass http://be/?ms=900; }`,
       )}`,
    requests: steady(dice, 40, LAST_MS, (d, i) => ({
      path: path(d, i, d.pick(['/429', '/503', '/502', '/504', '/retry'])),
    })),
  };
}

function buffered(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'buffered access logs, two workers',
    workers: 2,
    logOptions: 'buffer=32k flush=2s',
    http: ([port]) =>
      `${byArg('8r/s')} ${server(port, 'location / { limit_req zone=perkey burst=5 delay=2; proxy_pass http://be; }')}`,
    requests: steady(dice, 70, 6000, (d, i) => ({ path: path(d, i) })),
  };
}

function realIp(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'addresses from X-Forwarded-For',
    workers: 2,
    http: ([port]) =>
      `set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;
       limit_req_zone $binary_remote_addr zone=peraddr:1m rate=5r/s;
       ${server(port, 'location / { limit_req zone=peraddr burst=4 delay=2; proxy_pass http://be; }')}`,
    requests: steady(dice, 50, LAST_MS, (d, i) => ({
      path: path(d, i),
      headers: {
        'x-forwarded-for': d.pick(['192.0.2.1', '192.0.2.7', '2001:db8::5', '198.51.100.3']),
      },
    })),
  };
}

function subrequests(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'auth_request and mirror',
    http: ([port]) =>
      `${byArg('8r/s')} ${server(
        port,
        `location /a { limit_req zone=perkey burst=3 nodelay; auth_request /check; proxy_pass http://be; }
         location = /check { internal; limit_req zone=perkey burst=1 nodelay; proxy_pass http://be; }
         location /m { limit_req zone=perkey burst=4 delay=2; mirror /copy; proxy_pass http://be; }
         location = /copy { internal; proxy_pass http://be; }
         location /u { auth_request /check; proxy_pass http://be; }`,
      )}`,
    requests: steady(dice, 30, LAST_MS, (d, i) => ({
      path: path(d, i, d.pick(['/a', '/m', '/u'])),
    })),
  };
}

/** $uri is the page's, not the request's; auth_request takes time behind the limits. */
function answeredElsewhere(seed: number): Scenario {
  const dice = new Dice(seed);
  return {
    name: 'try_files, error_page, auth_request',
    http: ([port]) =>
      `limit_req_zone $http_x_api_key zone=perkey:1m rate=8r/s; ${server(
        port,
        `root html;
         location /page { limit_req zone=perkey burst=3 nodelay; try_files /page.html =404; }
         location /a { limit_req zone=perkey burst=5 delay=1; auth_request /check; proxy_pass http://be; }
         location /e { limit_req zone=perkey burst=2 nodelay; error_page 503 =429 /sorry; proxy_pass http://be; }
         location = /check { internal; proxy_pass http://be/?ms=25; }
         location = /page.html { }
         location = /sorry { return 200 sorry; }`,
      )}`,
    files: { 'page.html': 'a page' },
    requests: steady(dice, 45, LAST_MS, (d, i) => ({
      path: path(d, i, d.pick(['/page', '/a', '/e'])),
      headers: { 'x-api-key': d.pick(KEYS) },
    })),
  };
}

function oddRequests(seed: number): Scenario {
  const dice = new Dice(seed);
  const odd = [
    'GET /x?k=alpha HTTP/1.0\r\n\r\n',
    'GET http://test.example/x?k=beta HTTP/1.1\r\nHost: test.example\r\nConnection: close\r\n\r\n',
    'GET /%78/../x?k=alpha HTTP/1.1\r\nHost: test.example\r\nConnection: close\r\n\r\n',
    'GET //x?k=gamma&a=%22b HTTP/1.1\r\nHost: test.example\r\nConnection: close\r\n\r\n',
    'GET /x?k=gamma",+client:+9.9.9.9 HTTP/1.1\r\nHost: test.example\r\nConnection: close\r\n\r\n',
    'BROKEN\r\n\r\n',
    'GET /x HTTP/1.1\r\n\r\n',
    'GET /x?k=al\xff HTTP/1.1\r\nHost: test.example\r\nConnection: close\r\n\r\n',
    'GET /x?k=beta HTTP/9.9\r\n\r\n',
    'GET /x?K=beta HTTP/1.1\r\nHost: TEST.example:80\r\nConnection: close\r\n\r\n',
    'GET /x?k=beta',
  ];
  return {
    name: 'odd request lines',
    http: ([port]) =>
      `${byArg('6r/s')} ${server(port, 'client_header_timeout 1s; location / { return 404; } location /x { limit_req zone=perkey burst=3 delay=1; proxy_pass http://be; }')}`,
    requests: steady(dice, 40, LAST_MS, (d) => ({
      path: '',
      raw: d.pick(odd),
      abortAfterMs: 1500,
    })),
  };
}

/** All scenarios. @param seed the same for the same schedules */
export function scenarios(seed: number): Scenario[] {
  return [
    delayWithBursts(seed),
    sameRequestLine(seed + 1),
    pipelined(seed + 2),
    keepAliveIdle(seed + 3),
    ssi(seed + 4),
    errorPage(seed + 5),
    internalRedirects(seed + 6),
    reloads(seed + 7),
    severalServers(seed + 8),
    otherAddresses(seed + 9),
    highRate(seed + 10),
    lowRates(seed + 11),
    noBurst(seed + 12),
    fourZones(seed + 13),
    oneZoneManyLocations(seed + 14),
    connDelay(seed + 15),
    aborts(seed + 16),
    mixedKeyLengths(seed + 17),
    manyWorkers(seed + 18),
    slowHeaders(seed + 19, 1),
    slowHeaders(seed + 20, 2),
    bodies(seed + 21),
    downloads(seed + 22),
    staticTies(seed + 23),
    dryRun(seed + 24),
    starvation(seed + 25),
    upstreamErrors(seed + 26),
    buffered(seed + 27),
    realIp(seed + 28),
    subrequests(seed + 29),
    oddRequests(seed + 30),
    answeredElsewhere(seed + 31),
  ];
}
