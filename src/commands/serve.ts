/**
 * `limitlens serve`: the page over a store, until SIGTERM or SIGINT.
 */
import { EXIT, type ExitCode } from '../errors.js';
import { HttpServer, type HttpChoice } from '../http/server.js';
import { pageRoutes } from '../serve/page-routes.js';
import { openStore } from '../store/store.js';
import type { Output } from './output.js';
import { storeOptions, type StoreChoice } from './store-choice.js';

export interface ServeCommandOptions extends StoreChoice, HttpChoice {
  readonly version: string;
}

/** @returns 0 when it was told to end */
export async function serveCommand(
  options: ServeCommandOptions,
  output: Output,
): Promise<ExitCode> {
  const ended = endSignal();
  const store = await openStore({
    ...storeOptions(options),
    createIfMissing: false,
    readOnly: true,
  });
  try {
    const server = await HttpServer.start({
      ...options,
      routes: pageRoutes(store, { version: options.version }),
      onError: (path, error) => {
        output.note(`${path}: ${error instanceof Error ? error.message : String(error)}`);
      },
    });
    if (server.isOpenToNetwork) {
      output.note(
        'everybody who reaches this address can read it: --http-token-file asks for a login',
      );
    }
    await output.write(`${server.url}/\n`);
    await ended;
    await server.close();
  } finally {
    await store.close();
  }
  return EXIT.ok;
}

/** A second signal ends at once, as it does by default. */
function endSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
  });
}
