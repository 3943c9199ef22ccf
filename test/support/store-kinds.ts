/**
 * The two ways to a store, for suites that must hold for both: a folder, and a server's URL.
 */
import { join } from 'node:path';
import { openStore, type Store, type StoreOptions } from '../../src/store/store.js';
import { startFakeServer } from './clickhouse-http.js';
import { makeTempDir, type Cleanup } from './temp-dir.js';

export interface StorePlace {
  /** Opens it (again). Every store must be closed before the next is opened. */
  open(options?: Partial<StoreOptions>): Promise<Store>;
}

export interface StoreKind {
  readonly name: string;
  make(t: Cleanup): Promise<StorePlace>;
}

const NO_WAIT = { wait: () => Promise.resolve(), random: () => 0 };

export const STORE_KINDS: readonly StoreKind[] = [
  {
    name: 'embedded',
    make: (t) => {
      const path = join(makeTempDir(t), 'store');
      return Promise.resolve({
        open: (options) => openStore({ path, createIfMissing: true, ...options }),
      });
    },
  },
  {
    name: 'server',
    make: async (t) => {
      const login = { user: 'lens', password: 'p:w/d %' };
      const server = await startFakeServer({ dataPath: makeTempDir(t), ...login });
      t.after(() => server.close());
      const url = server.url.replace('//', `//lens:${encodeURIComponent(login.password)}@`);
      return {
        open: (options) =>
          openStore({ url, createIfMissing: true, retryPolicy: NO_WAIT, ...options }),
      };
    },
  },
];
