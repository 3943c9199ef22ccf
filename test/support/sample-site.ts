/**
 * The small shop that samples/ is recorded from: its nginx configuration and a day's worth of
 * trouble in 75 seconds.
 *
 * All addresses are from the documentation ranges (RFC 5737, RFC 3849) and arrive by
 * X-Forwarded-For from a balancer on the same host; names end in .example.
 *
 * Not here: running it (make-samples.ts).
 */
import type { ScheduledRequest } from './traffic.js';

/** Where the site listens, and where its application does. */
export const SITE_PORT = 8080;
export const APP_PORT = 8081;

const DURATION_MS = 75_000;

/** The inside of the sample's `http` block. */
export const SITE_HTTP = `
  # Who is limited is decided by the client's address, not by the balancer's.
  set_real_ip_from 127.0.0.1;
  real_ip_header X-Forwarded-For;

  log_format limits '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
                    '"$http_referer" "$http_user_agent" '
                    'msec=$msec rt=$request_time us="$upstream_status" urt="$upstream_response_time" '
                    'lr=$limit_req_status lc=$limit_conn_status server=$server_name '
                    'key="$http_x_api_key" conn=$connection/$connection_requests pid=$pid id=$request_id';
  access_log /var/log/nginx/access.log limits;
  error_log /var/log/nginx/error.log warn;

  limit_req_zone  $binary_remote_addr zone=login:1m     rate=10r/m;
  limit_req_zone  $http_x_api_key     zone=apikey:1m    rate=20r/s;
  limit_req_zone  $binary_remote_addr zone=pages:32k    rate=5r/s;
  limit_conn_zone $binary_remote_addr zone=downloads:1m;

  upstream app {
    server 127.0.0.1:${APP_PORT};
    keepalive 16;
  }
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_set_header Host $host;

  server {
    listen ${SITE_PORT};
    server_name shop.example;
    root /var/www/shop;

    # On trial: how many would be turned away? Its zone is smaller than its crowd.
    limit_req zone=pages burst=10 nodelay;
    limit_req_dry_run on;

    location = /login {
      limit_req zone=login burst=5 nodelay;
      limit_req_dry_run off;
      limit_req_status 429;
      proxy_pass http://app;
    }
    location /downloads/ {
      limit_conn downloads 2;
      limit_rate 100k;
    }
    location /old-shop/ {
      return 503;
    }
  }

  server {
    listen ${SITE_PORT};
    server_name api.example;

    location /v1/ {
      limit_req zone=apikey burst=30 delay=10;
      limit_req_status 429;
      proxy_pass http://app;
    }
  }
`;

/** What a line of the format `limits` says about limits. */
export const LIMIT_FIELDS =
  /" (?<status>\d{3}) \d+ ".* lr=(?<limitReq>\S+) lc=(?<limitConn>\S+) server=(?<server>\S+) /;

export interface SiteOutcome {
  readonly server: string;
  readonly limitReq: string;
  readonly limitConn: string;
  readonly status: string;
}

/** The whole samples/nginx.conf. */
export const SITE_CONF = `# The front of a small shop. Recorded with it: access.log and error.log (see README.md).
user www-data;
worker_processes 2;
pid /run/nginx.pid;
events { worker_connections 768; }
http {${SITE_HTTP}}
`;

/** Numbers in [0, 1) that are the same in every run (a 32-bit linear congruential generator). */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  next(): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#state / 2 ** 32;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }
}

/** Everything that arrives, in order of time. */
export function siteSchedule(seed = 7): readonly ScheduledRequest[] {
  const dice = new Dice(seed);
  const all = [
    ...visitors(dice),
    ...crawlers(dice),
    ...logins(dice),
    ...passwordGuessers(dice),
    ...apiClients(dice),
    ...downloads(),
    ...strays(),
  ];
  return all.sort((a, b) => a.atMs - b.atMs);
}

function from(address: string, host: string, agent: string): Record<string, string> {
  return { host, 'x-forwarded-for': address, 'user-agent': agent };
}

/** People: a page and then all that it shows at once, over one connection. */
function visitors(dice: Dice): readonly ScheduledRequest[] {
  return Array.from({ length: 110 }, (_, person) => {
    const address = person % 4 === 0 ? `2001:db8:1::${person + 16}` : `198.51.100.${person + 1}`;
    const headers = from(address, 'shop.example', 'Mozilla/5.0 (X11; Linux x86_64)');
    const keepAlive = `visitor ${person}`;
    const startMs = dice.below(DURATION_MS - 6_000);
    const assets = 4 + dice.below(12);
    const page = {
      atMs: startMs,
      path: `/products/${1 + dice.below(40)}.html`,
      headers,
      keepAlive,
    };
    const shown = Array.from({ length: assets }, (_asset, i) => ({
      atMs: startMs + 60 + dice.below(90),
      path: `/static/${i + 1}.png`,
      headers: { ...headers, referer: `https://shop.example${page.path}` },
      keepAlive: `${keepAlive}, ${i % 3}`,
    }));
    return [page, ...shown];
  }).flat();
}

/** Three hundred addresses, two pages each: more than a 32k zone can remember. */
function crawlers(dice: Dice): readonly ScheduledRequest[] {
  return Array.from({ length: 300 }, (_, i) => {
    const address = i < 250 ? `203.0.113.${i + 1}` : `2001:db8:c::${i}`;
    const headers = from(address, 'shop.example', 'ExampleBot/2.1 (+https://bot.example/)');
    const startMs = 10_000 + dice.below(50_000);
    return [0, 1].map((n) => ({
      atMs: startMs + n * (4_000 + dice.below(8_000)),
      path: `/products/${1 + dice.below(40)}.html?sort=price&page=${n + 1}`,
      headers,
    }));
  }).flat();
}

/** Ordinary logins; some people mistype twice. */
function logins(dice: Dice): readonly ScheduledRequest[] {
  return Array.from({ length: 30 }, (_, i) => {
    const headers = from(`198.51.100.${i + 130}`, 'shop.example', 'Mozilla/5.0 (Macintosh)');
    const startMs = dice.below(DURATION_MS - 15_000);
    return Array.from({ length: 1 + dice.below(3) }, (_try, n) => ({
      atMs: startMs + n * 4_000,
      path: '/login',
      method: 'POST',
      body: `user=user${i}&password=example`,
      headers,
    }));
  }).flat();
}

/** Three addresses that try one password after another; one keeps knocking to the end. */
function passwordGuessers(dice: Dice): readonly ScheduledRequest[] {
  const guessers = [
    { address: '192.0.2.66', startMs: 5_000, everyMs: 350, times: 180 },
    { address: '192.0.2.67', startMs: 20_000, everyMs: 500, times: 60 },
    { address: '2001:db8:bad::1', startMs: 32_000, everyMs: 900, times: 30 },
  ];
  return guessers.flatMap(({ address, startMs, everyMs, times }) =>
    Array.from({ length: times }, (_, i) => ({
      atMs: startMs + i * everyMs + dice.below(60),
      path: '/login',
      method: 'POST',
      body: `user=admin&password=guess${i}`,
      headers: from(address, 'shop.example', 'python-requests/2.31'),
    })),
  );
}

/** A steady client, a batch job that fires all at once, and a partner above its rate. */
function apiClients(dice: Dice): readonly ScheduledRequest[] {
  const call = (atMs: number, key: string, address: string, path: string): ScheduledRequest => ({
    atMs,
    path,
    headers: { ...from(address, 'api.example', `${key}/1.4`), 'x-api-key': `demo-${key}` },
  });
  const mobile = Array.from({ length: 560 }, (_, i) =>
    call(i * 130 + dice.below(90), 'mobile', '198.51.100.200', `/v1/orders/${dice.below(900)}`),
  );
  const batch = [12_000, 27_000, 42_000, 57_000].flatMap((startMs) =>
    Array.from({ length: 55 }, (_, i) =>
      call(startMs + i * 4, 'batch', '198.51.100.201', `/v1/report?part=${i}`),
    ),
  );
  const partner = Array.from({ length: 500 }, (_, i) =>
    call(30_000 + i * 38 + dice.below(20), 'partner', '198.51.100.202', `/v1/stock/${i % 60}`),
  );
  // The application has a quota and a maintenance of its own: not nginx's doing.
  const quota = Array.from({ length: 25 }, (_, i) =>
    call(8_000 + i * 1_500, 'trial', '198.51.100.203', '/v1/search?q=lamp'),
  );
  const maintenance = Array.from({ length: 15 }, (_, i) =>
    call(50_000 + i * 700, 'mobile', '198.51.100.200', '/v1/export'),
  );
  const keyless = Array.from({ length: 20 }, (_, i) => ({
    atMs: 15_000 + i * 50,
    path: '/v1/status',
    headers: from('198.51.100.204', 'api.example', 'curl/7.88.1'),
  }));
  return [...mobile, ...batch, ...partner, ...quota, ...maintenance, ...keyless];
}

/** Download managers open four connections where two are allowed. */
function downloads(): readonly ScheduledRequest[] {
  return ['198.51.100.210', '198.51.100.211', '2001:db8:d::5'].flatMap((address, client) =>
    Array.from({ length: 12 }, (_, i) => ({
      atMs: 18_000 + client * 9_000 + Math.floor(i / 4) * 5_000 + (i % 4) * 15,
      path: `/downloads/catalogue-${1 + (i % 4)}.pdf`,
      headers: from(address, 'shop.example', 'ExampleGet/5.0'),
    })),
  );
}

/** Old bookmarks, a TLS client on the wrong port, headers that trickle in. */
function strays(): readonly ScheduledRequest[] {
  const bookmarks = Array.from({ length: 12 }, (_, i) => ({
    atMs: 3_000 + i * 5_500,
    path: `/old-shop/item?id=${i}`,
    headers: from(`198.51.100.${220 + (i % 3)}`, 'shop.example', 'Mozilla/5.0 (Windows NT 10.0)'),
  }));
  const trickling = Array.from({ length: 8 }, (_, i) => ({
    atMs: 6_000 + i * 8_000,
    path: `/products/${i + 1}.html`,
    slowHeaderMs: 250,
    headers: from('198.51.100.230', 'shop.example', 'Mozilla/5.0 (Linux; Android 14)'),
  }));
  const tls = { atMs: 33_000, path: '/', method: '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03' };
  return [...bookmarks, ...trickling, tls];
}
