/**
 * Sends a reply with the headers that every answer has, packed where the client takes it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { InputError } from '../errors.js';
import { HttpError, json, type Reply } from './route.js';

const pack = promisify(gzip);
/** Less is not worth the work. */
const LEAST_PACKED_BYTES = 1024;
const PACKABLE = /^(?:text\/|application\/(?:json|javascript|x-ndjson)|image\/svg)/;

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
};

export async function send(
  request: IncomingMessage,
  response: ServerResponse,
  reply: Reply,
): Promise<void> {
  const type = reply.type ?? 'text/plain; charset=utf-8';
  let body = Buffer.from(reply.body);
  const headers: Record<string, string> = {
    ...SECURITY_HEADERS,
    'Content-Type': type,
    ...reply.headers,
  };
  if (
    body.length >= LEAST_PACKED_BYTES &&
    PACKABLE.test(type) &&
    headers['Content-Encoding'] === undefined
  ) {
    headers['Vary'] = 'Accept-Encoding';
    if (takesGzip(request)) {
      body = await pack(body);
      headers['Content-Encoding'] = 'gzip';
    }
  }
  headers['Content-Length'] = String(body.length);
  response.writeHead(reply.status ?? 200, headers);
  response.end(request.method === 'HEAD' ? undefined : body);
}

export function takesGzip(request: IncomingMessage): boolean {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  return /(?:^|,)\s*(?:gzip|\*)\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[\d.]+\s*)?(?:,|$)/.test(
    accepted,
  );
}

/** What a client is told of an error: nothing of those that are bugs. */
export function errorReply(error: unknown, request: IncomingMessage): Reply {
  const isHttp = error instanceof HttpError;
  // What the store says is for people: it is down, or a query took too long.
  const status = isHttp ? error.status : error instanceof InputError ? 503 : 500;
  const text = isHttp || error instanceof InputError ? error.message : 'an error of limitlens';
  const headers = isHttp ? error.headers : {};
  const wantsJson =
    /\bapplication\/json\b/.test(request.headers.accept ?? '') ||
    (request.url ?? '').startsWith('/api/');
  return wantsJson
    ? { ...json({ error: text }, status), headers }
    : { status, body: `${text}\n`, headers };
}
