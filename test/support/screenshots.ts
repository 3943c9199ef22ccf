/**
 * `npm run screenshots`: the page over the samples, as pictures for the README.
 *
 * Imports samples/ into a store of its own, opens the page in Debian's Chromium and writes
 * dashboards/screenshots/. Small enough to be in a repository: one window each, no more.
 */
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { launchBrowser, openPage, waitForPanels } from './browser.js';
import { PageStores, servePage } from './page-stores.js';

const FOLDER = 'dashboards/screenshots';
const MOST_BYTES = 200_000;
const KEY = 'demo-partner';

const SHOTS = [
  { name: 'overview-light', page: 'overview', scheme: 'light', height: 900 },
  { name: 'keys-dark', page: `keys?zone=apikey&key=${KEY}`, scheme: 'dark', height: 1340 },
] as const;

const cleanups: (() => void | Promise<void>)[] = [];
const cleanup = { after: (fn: () => void | Promise<void>) => void cleanups.push(fn) };

try {
  const stores = new PageStores(cleanup);
  await stores.import('samples', 'samples', {
    access: 'samples/access.log',
    errors: 'samples/error.log',
    instance: 'shop',
  });
  const { url } = await servePage(cleanup, await stores.open('samples'));
  const browser = await launchBrowser(cleanup);
  mkdirSync(FOLDER, { recursive: true });
  for (const { name, page: address, scheme, height } of SHOTS) {
    const { page, context } = await openPage(browser, `${url}/${address}`, {
      viewport: { width: 1280, height },
      colorScheme: scheme,
    });
    await waitForPanels(page);
    await page.locator('header').scrollIntoViewIfNeeded();
    const path = join(FOLDER, `${name}.png`);
    await page.screenshot({ path, animations: 'disabled' });
    const bytes = statSync(path).size;
    if (bytes > MOST_BYTES) throw new Error(`${path} has ${bytes} bytes, more than ${MOST_BYTES}`);
    process.stdout.write(`${path} ${bytes}\n`);
    await context.close();
  }
} finally {
  for (const clean of cleanups.toReversed()) await clean();
}
