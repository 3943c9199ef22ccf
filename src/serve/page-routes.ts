/**
 * All that the page needs, for whoever has a store and a server: `limitlens serve` and the daemon.
 */
import type { Route } from '../http/route.js';
import type { Store } from '../store/store.js';
import { PageApi, type ApiOptions } from './api.js';
import { assetRoutes } from './assets.js';

/**
 * The page at `/` and its API at `/api/…`, read-only. The server closes what is open.
 *
 * @param store is only asked; it must stay open until the server has closed
 */
export function pageRoutes(store: Store, options: ApiOptions): Route[] {
  return [...assetRoutes(), ...new PageApi(store, options).routes()];
}
