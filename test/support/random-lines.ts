/**
 * Lines of both logs for requests made up at random, in the formats of the capture
 * g_mixed_2workers. What they say need not be what a limiter would have done.
 */
import type { LogLine } from './tail-site.js';

export interface RandomRequest {
  /** Since the one before. */
  readonly afterMs: number;
  readonly tookMs: number;
  readonly key: number;
  readonly outcome: 'PASSED' | 'DELAYED' | 'REJECTED';
  /** As its line says, in thousandths of a request. */
  readonly excess: number;
  /** Whether the error log has a line of a request that was delayed or rejected. */
  readonly hasLine: boolean;
}

const BEGIN_MS = Date.UTC(2026, 10, 30, 7, 10);

/** @returns lines in the order in which they are written */
export function randomLines(requests: readonly RandomRequest[]): LogLine[] {
  let atMs = BEGIN_MS;
  const lines = requests.flatMap((request, i): LogLine[] => {
    atMs += request.afterMs;
    const access = accessLine(request, atMs, i + 1);
    const isSilent = request.outcome === 'PASSED' || !request.hasLine;
    return isSilent ? [access] : [errorLine(request, atMs, i + 1), access];
  });
  return lines.sort((a, b) => a.ms - b.ms);
}

function accessLine(request: RandomRequest, atMs: number, connection: number): LogLine {
  const { tookMs, key, outcome } = request;
  const isRejected = outcome === 'REJECTED';
  const ms = atMs + (isRejected ? 0 : tookMs);
  const second = `${new Date(ms).toISOString().slice(0, 19)}+00:00`;
  const upstream = isRejected
    ? '"upstream_status":"","upstream_response_time":""'
    : '"upstream_status":"200","upstream_response_time":"0.000"';
  const text =
    `{"msec":${(ms / 1000).toFixed(3)},"request_time":${((ms - atMs) / 1000).toFixed(3)},` +
    `"time":"${second}","status":${isRejected ? 503 : 200},"limit_req_status":"${outcome}",` +
    `"limit_conn_status":"",${upstream},"remote_addr":"127.0.0.1",` +
    `"realip_remote_addr":"127.0.0.1","key":"k${key}","server_name":"a.example","method":"GET",` +
    `"uri":"/x","args":"k=k${key}","request_id":"${connection}","connection":${connection},` +
    `"connection_requests":1,"pid":${18_438 + (connection % 2)},"request_length":68}`;
  return { name: 'access.log', ms, text };
}

function errorLine(request: RandomRequest, atMs: number, connection: number): LogLine {
  const { key, outcome, excess } = request;
  const second = new Date(atMs).toISOString().slice(0, 19).replaceAll('-', '/').replace('T', ' ');
  const sum = `excess: ${(excess / 1000).toFixed(3)}`;
  const [level, what] =
    outcome === 'REJECTED'
      ? ['error', `limiting requests, ${sum} by zone`]
      : ['warn', `delaying request, ${sum}, by zone`];
  const place = `${18_438 + (connection % 2)}#0: *${connection}`;
  return {
    name: 'error.log',
    ms: atMs,
    text:
      `${second} [${level}] ${place} ${what} "perkey", ` +
      `client: 127.0.0.1, server: a.example, request: "GET /x?k=k${key} HTTP/1.1", host: "a.example"`,
  };
}
