/**
 * The one HTTP server of limitlens: routes, logins, TLS, limits, and how it ends.
 *
 * Reads slowly sent headers and bodies only for so long, sends headers that keep a browser from doing
 * more with an answer than show it, and tells a client nothing about errors of ours. Where it listens
 * on loopback without a login, it takes only host names of this machine, so that no web page reaches
 * it under a name of its own (DNS rebinding).
 *
 * Not here: what the paths answer.
 */
import { once } from 'node:events';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import { isIP, type AddressInfo } from 'node:net';
import { EXIT, InputError } from '../errors.js';
import { readAccess, type Access, type AccessChoice } from './access.js';
import { isLoopback, parseListen, urlOf } from './listen-address.js';
import { readBody } from './request-body.js';
import { errorReply, send } from './reply.js';
import { findRoute, HttpError, type HttpRequest, type Reply, type Route } from './route.js';
import { readTls, type TlsChoice, type TlsPair } from './tls-files.js';

const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
const MOST_HEADER_BYTES = 16 * 1024;
const MOST_CONNECTIONS = 256;
/** What running answers are given when the server ends. */
const CLOSE_MS = 2000;

/** The options of everything that listens, as the command line names them. */
export interface HttpChoice extends AccessChoice, TlsChoice {
  readonly listen: string;
}

export interface HttpServerOptions extends HttpChoice {
  readonly routes: readonly Route[];
  /** A handler failed, and it is no fault of the client. */
  readonly onError: (path: string, error: unknown) => void;
  /** How a message names `listen`. */
  readonly listenOption?: string;
  /** Where LIMITLENS_TOKEN is looked up; process.env by default. */
  readonly env?: NodeJS.ProcessEnv;
}

export class HttpServer {
  /** Where it can be asked from this machine, without a slash at the end. */
  readonly url: string;
  readonly address: AddressInfo;
  readonly #server: Server | HttpsServer;
  readonly #options: HttpServerOptions;
  readonly #routes: Route[];
  readonly #closing = new AbortController();
  readonly #isLoopback: boolean;
  readonly #isTls: boolean;
  /** Of logins and TLS. */
  #files: AccessChoice & TlsChoice;
  #access: Access;

  private constructor(
    server: Server | HttpsServer,
    options: HttpServerOptions,
    access: Access,
    isTls: boolean,
  ) {
    this.#server = server;
    this.#options = options;
    this.#files = options;
    this.#routes = [...options.routes];
    this.#access = access;
    this.#isTls = isTls;
    this.address = server.address() as AddressInfo;
    this.url = urlOf(isTls ? 'https' : 'http', this.address.address, this.address.port);
    this.#isLoopback = isLoopback(this.address.address);
    server.on('request', (request, response) => void this.#answer(request, response));
  }

  /**
   * @throws InputError 74 when the address cannot be listened on; as readAccess() and readTls()
   */
  static async start(options: HttpServerOptions): Promise<HttpServer> {
    const { host, port } = parseListen(options.listen, options.listenOption);
    const access = readAccess(options, options.env ?? process.env);
    const tls = readTls(options);
    const server = makeServer(tls);
    server.listen(port, host);
    try {
      await once(server, 'listening');
    } catch (cause) {
      const { message } = cause as Error;
      const option = options.listenOption ?? '--listen';
      throw new InputError(`${option} ${options.listen}: ${message}`, EXIT.io, { cause });
    }
    return new HttpServer(server, options, access, tls !== undefined);
  }

  /** Whether other machines reach it and nobody has to log in. */
  get isOpenToNetwork(): boolean {
    return !this.#isLoopback && !this.#access.isNeeded;
  }

  get access(): Access {
    return this.#access;
  }

  /** Serves more. */
  add(...routes: Route[]): void {
    this.#routes.push(...routes);
  }

  /**
   * Takes up changed files of logins and TLS.
   *
   * @param choice other files than before; whether it speaks TLS at all can't change
   * @throws InputError, and all stays as it was
   */
  reload(choice: AccessChoice & TlsChoice = this.#files): void {
    const access = readAccess(choice, this.#options.env ?? process.env);
    const tls = readTls(choice);
    if (this.#isTls && tls !== undefined) (this.#server as HttpsServer).setSecureContext(tls);
    this.#files = choice;
    this.#access = access;
  }

  /** Takes no more requests, and gives those that run a moment to end. */
  async close(): Promise<void> {
    this.#closing.abort();
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeIdleConnections();
    const bound = setTimeout(() => this.#server.closeAllConnections(), CLOSE_MS);
    await closed;
    clearTimeout(bound);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A client that resets is of no interest.
    response.on('error', () => undefined);
    let reply: Reply | undefined;
    try {
      reply = await this.#handle(request, response);
    } catch (error) {
      if (!(error instanceof HttpError) || error.status >= 500) {
        this.#options.onError(pathOf(request), error);
      }
      if (response.headersSent) {
        response.destroy();
        return;
      }
      reply = errorReply(error, request);
    }
    if (reply !== undefined) await send(request, response, reply);
    if (this.#closing.signal.aborted) request.socket.end();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<Reply | undefined> {
    const path = pathOf(request);
    this.#checkHost(request);
    const found = findRoute(this.#routes, path);
    const isFree = found?.route.isOpen === true || found?.route.checksLogin === true;
    // Before 404: who may not ask does not learn what there is.
    if (!isFree && !this.#access.allows(request.headers.authorization)) throw unauthorized();
    if (found === undefined) throw new HttpError(404, 'nothing is served here');
    const { route, rest } = found;
    const methods = route.methods ?? ['GET'];
    const asked = request.method === 'HEAD' ? 'GET' : request.method;
    const method = methods.find((known) => known === asked);
    if (method === undefined) {
      const allow = methods.flatMap((known) => (known === 'GET' ? ['GET', 'HEAD'] : [known]));
      throw new HttpError(405, `expected ${allow.join(' or ')}`, { Allow: allow.join(', ') });
    }
    const gone = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) gone.abort();
    });
    const asking: HttpRequest = {
      ...{ method, path, rest, gone: gone.signal, closing: this.#closing.signal },
      query: new URLSearchParams(/\?(.*)$/s.exec(request.url ?? '')?.[1] ?? ''),
      headers: request.headers,
      body: () => readBody(request, route.bodyBytes ?? 0),
    };
    return route.handle(asking, response);
  }

  #checkHost(request: IncomingMessage): void {
    if (!this.#isLoopback || this.#access.isNeeded) return;
    const host = /^(?:\[(.*)\]|([^:]*))(?::\d+)?$/.exec(request.headers.host ?? '');
    const name = host?.[1] ?? host?.[2] ?? '';
    if (name === '' || name === 'localhost' || isIP(name) !== 0) return;
    throw new HttpError(421, 'expected localhost or an address as host; other names need a login');
  }
}

function makeServer(tls: TlsPair | undefined): Server | HttpsServer {
  const limits = {
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    maxHeaderSize: MOST_HEADER_BYTES,
    connectionsCheckingInterval: 5000,
  };
  const server =
    tls === undefined
      ? createHttpServer(limits)
      : createHttpsServer({ ...limits, ...tls, minVersion: 'TLSv1.2' });
  server.maxConnections = MOST_CONNECTIONS;
  return server;
}

/** Only the path form of a target is taken; a proxy's full URLs find nothing. */
function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?', 1)[0]!;
}

function unauthorized(): HttpError {
  return new HttpError(401, 'expected a token or a login', {
    'WWW-Authenticate': 'Basic realm="limitlens", charset="UTF-8"',
  });
}
