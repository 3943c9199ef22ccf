/**
 * One scenario of live traffic: a real nginx, its logs in several formats at once, and what its
 * debug log says it decided.
 *
 * Every request is logged in each format under a $request_id, so that a replay from any of them
 * can be held against the same truth. The id plays no part in a replay.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { readDebugTruth, type TruthRequest } from './debug-truth.js';
import { sendLive, type LiveRequest } from './live-traffic.js';
import { startNginx, type Nginx } from './nginx.js';
import type { Cleanup } from './temp-dir.js';

/** All that a replay can use, as the captures have it. */
const RICH =
  '"msec":$msec,"request_time":$request_time,"time":"$time_iso8601","status":$status,' +
  '"limit_req_status":"$limit_req_status","limit_conn_status":"$limit_conn_status",' +
  '"upstream_status":"$upstream_status","upstream_response_time":"$upstream_response_time",' +
  '"remote_addr":"$remote_addr","key":"$arg_k","server_name":"$server_name",' +
  '"method":"$request_method","hdr":"$http_x_api_key","uri":"$uri","args":"$args","request_id":"$request_id"';
const COMBINED =
  '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent ' +
  '"$http_referer" "$http_user_agent"';

/** Formats by the name of their log; each holds what its comment says. */
export const FORMATS = {
  /** Every field. */
  rich: `escape=json '{${RICH},"connection":$connection,"connection_requests":$connection_requests,"pid":$pid}'`,
  /** Without what identifies a connection; the request line tells lines apart. */
  anonymous: `escape=json '{${RICH},"request":"$request"}'`,
  /** As in samples/nginx.conf. */
  limits: `'${COMBINED} msec=$msec rt=$request_time us="$upstream_status" urt="$upstream_response_time" lr=$limit_req_status lc=$limit_conn_status server=$server_name conn=$connection/$connection_requests pid=$pid id=$request_id'`,
  /** Whole seconds and the status variables. */
  combined_status: `'${COMBINED} $limit_req_status $limit_conn_status $server_name $request_id'`,
  /** What most people have. */
  combined_bare: `'${COMBINED} $request_id'`,
} as const;

export type FormatName = keyof typeof FORMATS;
export const FORMAT_NAMES = Object.keys(FORMATS) as FormatName[];

export interface Scenario {
  readonly name: string;
  readonly workers?: number;
  readonly ports?: number;
  /** What follows the log formats inside `http { … }`. `be` is an upstream that waits `?ms=`. */
  readonly http: (ports: readonly number[], dir: string) => string;
  readonly requests: readonly LiveRequest[];
  /** Reloads with another configuration, so long after the start. */
  readonly reloads?: readonly {
    readonly atMs: number;
    readonly http: (ports: readonly number[], dir: string) => string;
  }[];
  /** Parameters of the access_log directives. */
  readonly logOptions?: string;
  /** Files below html/, by name. */
  readonly files?: Readonly<Record<string, string>>;
}

export interface Capture {
  readonly name: string;
  readonly dir: string;
  /** Configurations in order of time; `format` names the one access_log that a replay reads. */
  readonly confs: readonly string[];
  /** By $request_id: what the debug log knows, and what nginx logged. */
  readonly truth: ReadonlyMap<string, Truth>;
}

export interface Truth {
  readonly id: string;
  readonly limitReqStatus: string;
  readonly status: number;
  readonly line: string;
  /** undefined where no limiter looked at the request. */
  readonly decided: TruthRequest | undefined;
}

/** Runs a scenario to its end and reads its truth. */
export async function record(t: Cleanup, scenario: Scenario): Promise<Capture> {
  const backend = await startBackend();
  t.after(() => void backend.close());
  const { port } = backend.address() as AddressInfo;
  const around =
    (inner: Scenario['http']): Scenario['http'] =>
    (ports, dir) =>
      `${logging(scenario.logOptions ?? '')}
       upstream be { server 127.0.0.1:${port}; keepalive 16; }
       proxy_http_version 1.1; proxy_set_header Connection "";
       keepalive_requests 100000; large_client_header_buffers 8 128k;
       ${inner(ports, dir)}`;
  const nginx = await startNginx(t, {
    http: around(scenario.http),
    ...(scenario.ports === undefined ? {} : { ports: scenario.ports }),
    ...(scenario.workers === undefined ? {} : { workers: scenario.workers }),
  });
  for (const [name, text] of Object.entries(scenario.files ?? {})) {
    writeFileSync(nginx.path(join('html', name)), text);
  }
  const confs = [keepConf(nginx, 0)];
  await Promise.all([
    sendLive(nginx.port, scenario.requests, nginx.ports[1]),
    reloadAll(nginx, scenario, around, confs),
  ]);
  await nginx.stop();
  return { name: scenario.name, dir: nginx.dir, confs, truth: readTruth(nginx.dir) };
}

/** A capture that was kept. */
export function readCapture(dir: string): Capture {
  const names = readdirSync(dir).filter((name) => /^nginx\.conf\.\d$/.test(name));
  const confs = names.sort().map((name) => join(dir, name));
  return { name: basename(dir), dir, confs, truth: readTruth(dir) };
}

async function reloadAll(
  nginx: Nginx,
  scenario: Scenario,
  around: (inner: Scenario['http']) => Scenario['http'],
  confs: string[],
): Promise<void> {
  const startMs = performance.now();
  for (const { atMs, http } of scenario.reloads ?? []) {
    await new Promise((resolve) => {
      setTimeout(resolve, startMs + atMs - performance.now());
    });
    const result = await nginx.reload(around(http)(nginx.ports, nginx.dir));
    if (!result.ok) throw new Error(`${scenario.name}: reload refused: ${result.reason}`);
    confs.push(keepConf(nginx, confs.length));
  }
}

function keepConf(nginx: Nginx, number: number): string {
  const path = nginx.path(`nginx.conf.${number}`);
  writeFileSync(path, readFileSync(nginx.path('nginx.conf')));
  return path;
}

function logging(options: string): string {
  return FORMAT_NAMES.map(
    (name) => `log_format ${name} ${FORMATS[name]};\naccess_log ${name}.log ${name} ${options};`,
  ).join('\n');
}

/** Answers after `?ms=` milliseconds with `?status=` and `?bytes=` bytes, once the body is in. */
function startBackend(): Promise<Server> {
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? '/', 'http://be').searchParams;
    request.resume();
    request.on('end', () => {
      setTimeout(
        () => {
          const redirect = query.get('accel');
          if (redirect !== null) response.setHeader('X-Accel-Redirect', redirect);
          response.statusCode = Number.parseInt(query.get('status') ?? '200', 10);
          response.end('b'.repeat(Number.parseInt(query.get('bytes') ?? '2', 10)));
        },
        Number.parseInt(query.get('ms') ?? '0', 10),
      );
    });
  });
  server.keepAliveTimeout = 60_000;
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve(server);
    });
  });
}

function readTruth(dir: string): Map<string, Truth> {
  const decided = new Map(
    readDebugTruth(readFileSync(join(dir, 'debug.log'), 'latin1')).map((request) => [
      `${request.connection}/${request.connectionRequests}`,
      request,
    ]),
  );
  const truth = new Map<string, Truth>();
  for (const line of readFileSync(join(dir, 'rich.log'), 'latin1').split('\n')) {
    if (line === '') continue;
    const fields = JSON.parse(line) as Record<string, string | number>;
    const id = String(fields['request_id']);
    truth.set(id, {
      id,
      line,
      limitReqStatus: String(fields['limit_req_status']),
      status: Number(fields['status']),
      decided: decided.get(`${fields['connection']}/${fields['connection_requests']}`),
    });
  }
  return truth;
}

/** A directory of its own for copies of a capture's files. */
export function makeVariantDir(capture: Capture, name: string): string {
  const dir = join(capture.dir, `variant-${name}`);
  mkdirSync(dir, { recursive: true });
  return dir;
}
