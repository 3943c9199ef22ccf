/**
 * What a path answers: the small interface between the server and those who have something to serve.
 */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';

export interface HttpRequest {
  /** HEAD is asked as GET; the server leaves the body out. */
  readonly method: 'GET' | 'POST';
  /** Without the query, as sent. */
  readonly path: string;
  /** What stands in the place of the route's `*`, decoded; '' for an exact route. */
  readonly rest: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Aborts when the client goes away. */
  readonly gone: AbortSignal;
  /** Aborts when the server ends: for answers that would not end by themselves. */
  readonly closing: AbortSignal;
  /** @throws HttpError 413 beyond the route's bodyBytes */
  body(): Promise<Buffer>;
}

export interface Reply {
  /** 200 by default. */
  readonly status?: number;
  /** Content-Type; text/plain by default. */
  readonly type?: string;
  readonly body: string | Uint8Array;
  /** On top of the server's own, and in place of them: Content-Security-Policy, Cache-Control. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers by a reply, or writes to `response` itself (a stream of events) and gives undefined. */
export type Handler = (
  request: HttpRequest,
  response: ServerResponse,
) => Reply | undefined | Promise<Reply | undefined>;

export interface Route {
  /** Exact, or with `/*` at its end for one more segment. */
  readonly path: string;
  /** ['GET'] by default; HEAD comes with GET. */
  readonly methods?: readonly ('GET' | 'POST')[];
  /** Answers without a login, though one is set. */
  readonly isOpen?: boolean;
  /** Checks its own login, in place of the server's. */
  readonly checksLogin?: boolean;
  /** Largest body in bytes; 0 by default. */
  readonly bodyBytes?: number;
  readonly handle: Handler;
}

/** An answer other than 200, thrown from wherever it becomes clear. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  /** @param message for the client: without secrets and without its own words in it */
  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

export function json(value: unknown, status = 200): Reply {
  return { status, type: 'application/json; charset=utf-8', body: `${JSON.stringify(value)}\n` };
}

export interface Found {
  readonly route: Route;
  readonly rest: string;
}

/** The route of a path. @throws HttpError 400 for a segment that is not encoded well */
export function findRoute(routes: readonly Route[], path: string): Found | undefined {
  const exact = routes.find((route) => route.path === path && !route.path.endsWith('/*'));
  if (exact !== undefined) return { route: exact, rest: '' };
  for (const route of routes) {
    if (!route.path.endsWith('/*')) continue;
    const prefix = route.path.slice(0, -1);
    const segment = path.slice(prefix.length);
    if (!path.startsWith(prefix) || segment === '' || segment.includes('/')) continue;
    return { route, rest: decode(segment) };
  }
  return undefined;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new HttpError(400, 'expected a path that is percent-encoded as UTF-8');
  }
}
