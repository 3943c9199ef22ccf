/**
 * The daemon's port: `/metrics` for Prometheus, `/healthz` (the process runs), `/readyz` (the last
 * state has been taken up, and the store takes what is sent).
 */
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { EXIT, InputError } from '../errors.js';

export interface Served {
  readonly metrics: () => Promise<{ readonly type: string; readonly text: string }>;
  readonly isReady: () => boolean;
}

/** `127.0.0.1:9545`, `[::1]:9545`, `:9545` for every address. @throws InputError 64 */
export function parseListen(text: string): { readonly host: string | undefined; port: number } {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new InputError(
      `--listen ${text}: expected an address and port like 127.0.0.1:9545`,
      EXIT.usage,
    );
  }
  const host = match[1] ?? match[2];
  return { host: host === '' ? undefined : host, port };
}

/** @throws InputError (io) when the address cannot be listened on */
export async function serve(
  listen: string,
  served: Served,
): Promise<{ readonly server: Server; readonly address: AddressInfo }> {
  const { host, port } = parseListen(listen);
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0];
    const answer = (status: number, text: string, type = 'text/plain; charset=utf-8'): void => {
      response.writeHead(status, { 'content-type': type });
      response.end(request.method === 'HEAD' ? undefined : text);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') answer(405, 'GET only\n');
    else if (path === '/healthz') answer(200, 'ok\n');
    else if (path === '/readyz')
      answer(served.isReady() ? 200 : 503, served.isReady() ? 'ready\n' : 'not ready\n');
    else if (path === '/metrics') {
      served.metrics().then(
        ({ type, text }) => answer(200, text, type),
        () => answer(500, 'no metrics\n'),
      );
    } else answer(404, 'expected /metrics, /healthz or /readyz\n');
  });
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new InputError(`--listen ${listen}: ${(error as Error).message}`, EXIT.io, {
      cause: error,
    });
  }
  return { server, address: server.address() as AddressInfo };
}
