/**
 * What `limitlens tail` serves: `/metrics` for Prometheus, `/healthz` (the process runs), `/readyz`
 * (the last state has been taken up, and the store takes what is sent); the page over its store, and
 * its store to others.
 *
 * Not here: the server itself (../http), what the metrics are (../metrics).
 */
import type { Route } from '../http/route.js';
import { HttpServer, type HttpChoice } from '../http/server.js';
import { readAccess } from '../http/access.js';
import { parseListen } from '../http/listen-address.js';
import { readTls } from '../http/tls-files.js';
import { pageRoutes } from '../serve/page-routes.js';
import type { Store } from '../store/store.js';
import { readVersion } from '../version.js';
import { checkOfferChoice, OfferedStore, type OfferChoice } from './offered-store.js';

export interface TailHttpChoice extends HttpChoice, OfferChoice {}

export interface TailHttpParts {
  /** Of an embedded store. */
  readonly folder: string;
  readonly isReady: () => boolean;
  readonly metrics: () => Promise<{ readonly type: string; readonly text: string }>;
  readonly log: {
    info(message: string, fields?: Readonly<Record<string, unknown>>): void;
    warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
    error(message: string, fields?: Readonly<Record<string, unknown>>): void;
  };
}

/** Everything that can be wrong without listening. @throws InputError 64, 66, 78 */
export function checkHttpChoice(
  choice: TailHttpChoice,
  env: NodeJS.ProcessEnv = process.env,
): void {
  parseListen(choice.listen);
  readAccess(choice, env);
  readTls(choice);
  checkOfferChoice(choice, env);
}

export class TailHttp {
  readonly server: HttpServer;
  readonly #choice: TailHttpChoice;
  readonly #parts: TailHttpParts;
  #offered: OfferedStore | undefined;

  private constructor(server: HttpServer, choice: TailHttpChoice, parts: TailHttpParts) {
    this.server = server;
    this.#choice = choice;
    this.#parts = parts;
  }

  /**
   * Metrics and health at first; serve() or offer() brings the page.
   *
   * @throws InputError as checkHttpChoice(), 74 when an address cannot be listened on
   */
  static async open(choice: TailHttpChoice, parts: TailHttpParts): Promise<TailHttp> {
    const onError = errorTeller(parts);
    const server = await HttpServer.start({ ...choice, routes: routesOf(parts), onError });
    const http = new TailHttp(server, choice, parts);
    // An embedded store is offered before anybody is told.
    if (choice.clickhouse !== undefined) http.#tellAddress();
    return http;
  }

  /** The page over a store that stays open. */
  serve(store: Store): void {
    this.server.add(...pageRoutes(store, { version: readVersion() }));
  }

  /** The page over an embedded store, and the store itself. @throws InputError as OfferedStore.open() */
  async offer(store: Store): Promise<void> {
    this.serve(store);
    const { folder } = this.#parts;
    const onError = errorTeller(this.#parts);
    this.#offered = await OfferedStore.open(this.#choice, { store, folder, onError });
    this.#tellAddress();
  }

  /**
   * Takes up changed files of logins and TLS.
   *
   * @param choice other files than before, of the same addresses
   * @throws InputError, and all stays as it was
   */
  reload(choice: TailHttpChoice): void {
    checkHttpChoice(choice);
    const { httpTokenFile, httpBasicFile, tlsCert, tlsKey } = choice;
    this.server.reload({
      ...(httpTokenFile === undefined ? {} : { httpTokenFile }),
      ...(httpBasicFile === undefined ? {} : { httpBasicFile }),
      ...(tlsCert === undefined ? {} : { tlsCert }),
      ...(tlsKey === undefined ? {} : { tlsKey }),
    });
    this.#offered?.reload(choice);
    this.#warnIfOpen();
  }

  /** Before the store is closed. */
  async close(): Promise<void> {
    await Promise.all([this.server.close(), this.#offered?.close()]);
  }

  #tellAddress(): void {
    const { address, port } = this.server.address;
    const clickhouse = this.#offered?.clickhouseUrl;
    this.#parts.log.info('listens', {
      ...{ address, port, url: this.server.url },
      ...(clickhouse === undefined ? {} : { clickhouse }),
    });
    this.#warnIfOpen();
  }

  #warnIfOpen(): void {
    if (!this.server.isOpenToNetwork) return;
    this.#parts.log.warn(
      'everybody who reaches this address can read it: --http-token-file asks for a login',
      { address: this.server.address.address },
    );
  }
}

function errorTeller({ log }: TailHttpParts): (path: string, error: unknown) => void {
  return (path, error) => {
    log.error('a request failed', { path, error: String((error as Error).message) });
  };
}

function routesOf({ isReady, metrics }: TailHttpParts): Route[] {
  return [
    { path: '/healthz', isOpen: true, handle: () => ({ body: 'ok\n' }) },
    {
      path: '/readyz',
      isOpen: true,
      handle: () => (isReady() ? { body: 'ready\n' } : { status: 503, body: 'not ready\n' }),
    },
    {
      path: '/metrics',
      handle: async () => {
        const { type, text } = await metrics();
        return { type, body: text };
      },
    },
  ];
}
