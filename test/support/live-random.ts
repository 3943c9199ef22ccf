/**
 * Sites at random: each seed is a configuration nobody thought of, and traffic for it.
 *
 * What is drawn: workers; one to four zones with keys of every kind, rates from 20r/m to 1000r/s;
 * locations with one to all of the zones, bursts, delays, dry runs, statuses; what stands behind a
 * limit (an upstream, a file, a return, an error page, a subrequest); limit_conn beside it; slow
 * headers and bodies, pipelining, HTTP/2, clients that leave; reloads with other rates.
 *
 * Times are milliseconds from the start.
 */
import type { Scenario } from './live-scenario.js';
import { bursts, conversations, Dice, steady } from './live-schedule.js';
import type { LiveRequest } from './live-traffic.js';

const LAST_MS = 7000;
const RATES = ['20r/m', '100r/m', '1r/s', '3r/s', '7r/s', '10r/s', '25r/s', '60r/s', '1000r/s'];
const KEYS: readonly string[] = [
  '$arg_k',
  '$binary_remote_addr',
  '$remote_addr',
  '$http_x_api_key',
  '$server_name',
  '$arg_k$remote_addr',
  '$uri',
  '$mapped',
  '$geoed',
  '$request_method',
];

interface Site {
  readonly zones: readonly string[];
  readonly rates: readonly string[];
  readonly sizes: readonly string[];
  readonly keys: readonly string[];
  readonly locations: readonly string[];
  readonly paths: readonly string[];
  readonly hasConn: boolean;
}

/** What a seed's traffic is like. */
interface Habits {
  readonly perSecond: number;
  readonly keys: number;
  readonly clients: number;
  readonly slowHeaders: boolean;
  readonly bodies: boolean;
  readonly aborts: boolean;
  readonly http2: boolean;
  readonly upstreamMs: number;
}

/** @param seed the same for the same site and schedule */
export function randomScenario(seed: number): Scenario {
  const dice = new Dice(seed * 7919 + 17);
  for (let i = 0; i < 8; i++) dice.roll();
  const workers = dice.pick([1, 1, 2, 4]);
  const site = drawSite(dice);
  const habits = drawHabits(dice);
  const isReloaded = dice.below(5) === 0;
  const rates = isReloaded ? site.zones.map(() => dice.pick(RATES)) : site.rates;
  const { name, traffic } = describe(seed, workers, site, habits, isReloaded);
  return {
    name: `${name}; ${traffic}`,
    workers,
    ports: 2,
    http: (ports) => httpOf(site, site.rates, ports),
    ...(isReloaded
      ? { reloads: [{ atMs: LAST_MS / 2, http: (ports) => httpOf(site, rates, ports) }] }
      : {}),
    files: { 'page.html': 'x'.repeat(400), big: 'B'.repeat(600_000) },
    requests: drawRequests(dice, site, habits),
  };
}

function describe(
  seed: number,
  workers: number,
  site: Site,
  habits: Habits,
  isReloaded: boolean,
): { name: string; traffic: string } {
  const zones = site.zones.map((_, i) => `${site.keys[i]} ${site.rates[i]} ${site.sizes[i]}`);
  const flags = [
    habits.slowHeaders ? 'slow headers' : '',
    habits.bodies ? 'bodies' : '',
    habits.aborts ? 'aborts' : '',
    habits.http2 ? 'HTTP/2' : '',
    site.hasConn ? 'limit_conn' : '',
    isReloaded ? 'reload' : '',
  ].filter((flag) => flag !== '');
  return {
    name: `seed ${seed}: ${workers} workers; ${zones.join(', ')}`,
    traffic: `${habits.perSecond}/s ${flags.join(' ')}`,
  };
}

function drawSite(dice: Dice): Site {
  const count = 1 + dice.below(4);
  const zones = Array.from({ length: count }, (_, i) => `z${i}`);
  const keys = zones.map((_, i) => (i === 0 ? dice.pick(KEYS.slice(0, 4)) : dice.pick(KEYS)));
  const sizes = zones.map(() => dice.pick(['1m', '1m', '1m', '32k']));
  const rates = zones.map(() => dice.pick(RATES));
  const hasConn = dice.below(4) === 0;
  const locations: string[] = [];
  const paths: string[] = [];
  const places = 2 + dice.below(4);
  for (let i = 0; i < places; i++) {
    const { text, path } = drawLocation(dice, i, zones, hasConn);
    locations.push(text);
    paths.push(path);
  }
  return { zones, rates, sizes, keys, locations, paths, hasConn };
}

function drawLocation(
  dice: Dice,
  index: number,
  zones: readonly string[],
  hasConn: boolean,
): { text: string; path: string } {
  const path = `/l${index}`;
  const start = dice.below(zones.length);
  const most = 1 + dice.below(zones.length);
  const limits: string[] = [];
  for (let i = 0; i < most; i++) {
    const zone = zones[(start + i) % zones.length]!;
    const burst = dice.pick([0, 1, 2, 4, 8, 20, 50]);
    const how =
      burst === 0 ? '' : dice.pick(['', ' nodelay', ' nodelay', ` delay=${1 + dice.below(burst)}`]);
    limits.push(`limit_req zone=${zone}${burst === 0 ? '' : ` burst=${burst}`}${how};`);
  }
  const extras = [
    dice.below(5) === 0 ? 'limit_req_dry_run on;' : '',
    dice.pick(['', '', 'limit_req_status 429;', 'limit_req_status 599;']),
    dice.pick(['', '', '', 'limit_req_log_level warn;']),
    hasConn && dice.below(2) === 0 ? `limit_conn conn ${1 + dice.below(3)};` : '',
  ];
  const body = dice.pick([
    'proxy_pass http://be;',
    'proxy_pass http://be;',
    'proxy_pass http://be;',
    'empty_gif;',
    'root html; try_files /page.html =404;',
    'return 204;',
    'error_page 429 503 /sorry; proxy_pass http://be;',
    'auth_request /check; proxy_pass http://be;',
    'mirror /copy; proxy_pass http://be;',
    'proxy_pass http://dead;',
    'root html; try_files /big =404;',
    `rewrite ^ /l0 last;`,
    'deny 127.0.0.3; proxy_pass http://be;',
  ]);
  const where = dice.pick([`location ${path}`, `location ^~ ${path}`, `location ~ ^${path}`]);
  return {
    text: `${where} { ${limits.join(' ')} ${extras.join(' ')} ${index === 0 ? 'proxy_pass http://be;' : body} }`,
    path,
  };
}

function httpOf(site: Site, rates: readonly string[], ports: readonly number[]): string {
  const zones = site.zones.map(
    (zone, i) => `limit_req_zone ${site.keys[i]} zone=${zone}:${site.sizes[i]} rate=${rates[i]};`,
  );
  const inside = `root html; ${site.locations.join('\n')}
    location = /check { internal; proxy_pass http://be; }
    location = /copy { internal; proxy_pass http://be; }
    location = /sorry { return 200 sorry; }`;
  return `upstream dead { server 127.0.0.1:1; }
    map $arg_k $mapped { ~^a $arg_k; b1 ""; default other; }
    geo $geoed { default ""; 127.0.0.2 two; 127.0.0.4/30 four; }
    ${zones.join('\n')}
    ${site.hasConn ? 'limit_conn_zone $arg_k zone=conn:1m;' : ''}
    server { listen 127.0.0.1:${ports[0]}; listen 127.0.0.1:${ports[1]} http2; server_name one.example; ${inside} }
    server { listen 127.0.0.1:${ports[0]}; listen 127.0.0.1:${ports[1]} http2; server_name two.example; ${inside} }`;
}

function drawHabits(dice: Dice): Habits {
  return {
    perSecond: dice.pick([60, 120, 250, 400]),
    keys: dice.pick([3, 10, 60, 700]),
    clients: dice.pick([1, 3, 8]),
    slowHeaders: dice.below(4) === 0,
    bodies: dice.below(4) === 0,
    aborts: dice.below(5) === 0,
    http2: dice.below(4) === 0,
    upstreamMs: dice.pick([0, 5, 40, 300]),
  };
}

function drawRequests(dice: Dice, site: Site, habits: Habits): LiveRequest[] {
  const calm = steady(dice, habits.perSecond * 0.5, LAST_MS, (d, i) =>
    drawRequest(d, site, habits, `s${i}`),
  );
  const size = Math.ceil(habits.perSecond * 0.25);
  const rushed = bursts(
    dice,
    { everyMs: 400, size, spreadMs: 1 + dice.below(40), lastsMs: LAST_MS },
    (d, i) => drawRequest(d, site, habits, `b${i}`),
  );
  const talk = conversations(dice, { count: 12, gapMs: 150, lastsMs: LAST_MS }, (d, i) => {
    const { slowBodyMs, abortAfterMs, pauseMs, http2, ...rest } = drawRequest(
      d,
      site,
      habits,
      `c${i}`,
    );
    void [slowBodyMs, abortAfterMs, pauseMs, http2];
    // Several on one connection, and pipelined where they overlap; from one address.
    return { ...rest, localAddress: '127.0.0.1' };
  });
  return [...calm, ...rushed, ...talk].sort((a, b) => a.atMs - b.atMs);
}

function drawRequest(
  dice: Dice,
  site: Site,
  habits: Habits,
  name: string,
): Omit<LiveRequest, 'atMs'> {
  const key = dice.zipf(habits.keys);
  const args = [`k=${dice.pick(['a', 'b'])}${key}`, `ms=${dice.below(habits.upstreamMs + 1)}`];
  if (dice.below(20) === 0) args.shift();
  if (dice.below(12) === 0) args.push(`status=${dice.pick([404, 429, 500, 503])}`);
  const headers: Record<string, string> = { host: dice.pick(['one.example', 'two.example']) };
  if (dice.below(4) > 0) headers['x-api-key'] = `key-${dice.zipf(habits.keys)}`;
  const request = {
    path: `${dice.pick(site.paths)}${dice.pick(['', '', '/x'])}?${args.join('&')}&n=${name}`,
    headers,
    localAddress: `127.0.0.${1 + dice.below(habits.clients)}`,
  };
  if (habits.http2 && dice.below(2) === 0) {
    return { ...request, http2: `h${dice.below(6)}`, localAddress: '127.0.0.1' };
  }
  if (habits.bodies && dice.below(3) === 0) {
    const body = { method: 'POST', body: 'b'.repeat(1 + dice.below(20_000)) };
    const slow = dice.below(2) === 0 ? { slowBodyMs: 10 + dice.below(500) } : {};
    return { ...request, ...body, ...slow };
  }
  if (habits.slowHeaders && dice.below(3) === 0) {
    return { ...request, slowHeaderMs: 1 + dice.below(400) };
  }
  if (habits.aborts && dice.below(4) === 0) {
    return { ...request, abortAfterMs: 1 + dice.below(300) };
  }
  return request;
}
