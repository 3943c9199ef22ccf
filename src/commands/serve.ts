/**
 * `limitlens serve`: the page over a store, until SIGTERM or SIGINT; SIGHUP takes up changed files of
 * logins and TLS.
 *
 * A folder belongs to one process at a time: while this one has it, it answers for it, so that
 * `report` and the others ask here (offered-store.ts). Beside a daemon it is the daemon that is asked.
 */
import { EXIT, type ExitCode } from '../errors.js';
import { HttpServer, type HttpChoice } from '../http/server.js';
import { pageRoutes } from '../serve/page-routes.js';
import { openStore, type Store } from '../store/store.js';
import { checkOfferChoice, OfferedStore, type OfferChoice } from './offered-store.js';
import type { Output } from './output.js';
import { DEFAULT_STORE } from './defaults.js';
import { storeOptions, type StoreChoice } from './store-choice.js';

export interface ServeCommandOptions extends StoreChoice, HttpChoice, OfferChoice {
  readonly version: string;
}

/**
 * @returns 0 when it was told to end
 * @throws InputError as openStore(), HttpServer.start() and checkOfferChoice() do
 */
export async function serveCommand(
  options: ServeCommandOptions,
  output: Output,
): Promise<ExitCode> {
  checkOfferChoice(options);
  const signals = new Signals();
  try {
    const store = await openStore({
      ...storeOptions(options),
      createIfMissing: false,
      readOnly: true,
    });
    try {
      await serveUntil(signals, store, options, output);
    } finally {
      await store.close();
    }
  } finally {
    signals.close();
  }
  return EXIT.ok;
}

async function serveUntil(
  signals: Signals,
  store: Store,
  options: ServeCommandOptions,
  output: Output,
): Promise<void> {
  const onError = (path: string, error: unknown): void => {
    output.note(`${path}: ${error instanceof Error ? error.message : String(error)}`);
  };
  const routes = pageRoutes(store, { version: options.version });
  const server = await HttpServer.start({ ...options, routes, onError });
  try {
    const folder = options.store ?? DEFAULT_STORE;
    const offered = await OfferedStore.open(options, { store, folder, onError });
    try {
      signals.onReload = () => {
        server.reload();
        offered?.reload(options);
      };
      if (server.isOpenToNetwork) {
        output.note(
          'everybody who reaches this address can read it; --http-token-file asks for a login',
        );
      }
      const clickhouse = offered?.clickhouseUrl;
      await output.write(`${server.url}/\n${clickhouse === undefined ? '' : `${clickhouse}/\n`}`);
      await signals.ended;
    } finally {
      await offered?.close();
    }
  } finally {
    await server.close();
  }
}

/** A second signal to end ends at once. */
class Signals {
  readonly ended: Promise<void>;
  onReload: () => void = () => undefined;
  #end: () => void = () => undefined;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = () => {
        this.close();
        resolve();
      };
    });
    process.on('SIGTERM', this.#end);
    process.on('SIGINT', this.#end);
    process.on('SIGHUP', this.#reload);
  }

  close(): void {
    process.off('SIGTERM', this.#end);
    process.off('SIGINT', this.#end);
    process.off('SIGHUP', this.#reload);
  }

  readonly #reload = (): void => {
    try {
      this.onReload();
    } catch (error) {
      // What was in force stays.
      process.stderr.write(`limitlens: ${(error as Error).message}\n`);
    }
  };
}
