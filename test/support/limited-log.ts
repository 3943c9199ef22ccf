/**
 * An access log as one nginx worker would have written it: a schedule, decided by one limit_req zone
 * of endless memory, with the outcome of every request and the wait that it deserved.
 *
 * A second implementation of the sums on purpose: what analyses are held against must not come from
 * the replay that they are made of. Times in milliseconds since the begin, excess in milliReq.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Sent {
  readonly atMs: number;
  readonly key: string;
  /** How long the answer takes, where the request is let through; 0 by default. */
  readonly tookMs?: number;
  readonly path?: string;
}

export interface Decided extends Sent {
  readonly isRejected: boolean;
  readonly excess: number;
}

export const BEGIN_MS = Date.UTC(2026, 2, 2, 10, 0, 0);

/** Decides the requests in their order. @param rate milliReq per second, burst in milliReq */
export function decide(sent: readonly Sent[], rate: number, burst: number): Decided[] {
  const keys = new Map<string, { excess: number; lastMs: number }>();
  return sent.map((request) => {
    const { key, atMs } = request;
    const known = keys.get(key);
    const drained = known === undefined ? 0 : Math.trunc((rate * (atMs - known.lastMs)) / 1000);
    const excess = known === undefined ? 0 : Math.max(0, known.excess - drained + 1000);
    const isRejected = excess > burst;
    if (!isRejected) keys.set(key, { excess, lastMs: atMs });
    return { ...request, isRejected, excess };
  });
}

export const RICH_FORMAT =
  '$msec $request_time $connection $connection_requests $status $limit_req_status "$request"';

/** Writes access.log in RICH_FORMAT, lines in the order in which requests ended. */
export function writeLog(dir: string, decided: readonly Decided[], name = 'access.log'): string {
  const lines = decided.map(({ atMs, key, tookMs = 0, path = '/', isRejected }, i) => {
    const endMs = BEGIN_MS + atMs + (isRejected ? 0 : tookMs);
    const requestS = ((isRejected ? 0 : tookMs) / 1000).toFixed(3);
    const outcome = isRejected ? '429 REJECTED' : '200 PASSED';
    const request = `GET ${path}?k=${key} HTTP/1.1`;
    const text = `${(endMs / 1000).toFixed(3)} ${requestS} ${i + 1} 1 ${outcome} "${request}"`;
    return { endMs, text };
  });
  lines.sort((a, b) => a.endMs - b.endMs);
  const path = join(dir, name);
  writeFileSync(path, lines.map(({ text }) => `${text}\n`).join(''));
  return path;
}

export interface ConfParts {
  readonly rate: string;
  /** What follows `zone=z` in limit_req. */
  readonly limit: string;
  readonly format?: string;
  /** Directives of the server beside these. */
  readonly server?: string;
  readonly http?: string;
}

/** Writes nginx.conf for such a log: one server with one limit, keyed by `?k=`. */
export function writeConf(dir: string, parts: ConfParts): string {
  const { rate, limit, format = RICH_FORMAT, server = '', http = '' } = parts;
  const path = join(dir, 'nginx.conf');
  writeFileSync(
    path,
    `events {}
http {
log_format fmt '${format}';
access_log access.log fmt;
limit_req_zone $arg_k zone=z:10m rate=${rate};
${http}
server { listen 80; server_name s;
limit_req_status 429;
limit_req zone=z ${limit};
${server}
}
}
`,
  );
  return path;
}
