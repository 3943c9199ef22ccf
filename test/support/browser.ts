/**
 * Debian's Chromium, driven by playwright-core; nothing is ever downloaded.
 */
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { requireProgram } from './debian.js';
import type { Cleanup } from './temp-dir.js';

export type { Browser, Page };

/** All panels are in view, and load at once. */
const TALL = { width: 1280, height: 3600 };
/** Long enough for a loaded machine. */
const PATIENCE_MS = 60_000;

export async function launchBrowser(t: Cleanup): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: requireProgram('chromium'),
    timeout: PATIENCE_MS,
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
      '--disable-dev-shm-usage',
    ],
  });
  t.after(() => browser.close());
  return browser;
}

export interface OpenedPage {
  readonly page: Page;
  /** What the console said beyond notes, errors nobody caught, and requests to another origin. */
  readonly complaints: string[];
}

/** A new window at an address, with nothing remembered. */
export async function openPage(
  browser: Browser,
  address: string,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<OpenedPage & { readonly context: BrowserContext }> {
  const context = await browser.newContext({ viewport: TALL, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  const { origin } = new URL(address);
  page.on('console', (message) => {
    // A canvas that is read often says so: the test reads it.
    if (/getImageData/.test(message.text())) return;
    if (message.type() !== 'log') complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) complaints.push(`asked ${request.url()}`);
  });
  await page.goto(address);
  return { page, complaints, context };
}

/** Waits until the page has taken up its address and every panel has drawn what it asked for. */
export async function waitForPanels(page: Page): Promise<void> {
  await page.locator('main[aria-busy="false"]').waitFor();
  await page.locator('section.panel').first().waitFor();
  const unfinished = page.locator('section.panel:not([aria-busy="false"])');
  // Those in view finish by themselves; the others when they have been looked at.
  for (;;) {
    const ids = await unfinished.evaluateAll((nodes) =>
      nodes.map((node) => (node as unknown as { id: string }).id),
    );
    if (ids.length === 0) return;
    const panel = page.locator(`#${ids[0]}`);
    await panel.scrollIntoViewIfNeeded();
    await panel.and(page.locator('[aria-busy="false"]')).waitFor();
  }
}

/** What this needs of a canvas; the compiler knows no browser here. */
interface Canvas {
  readonly width: number;
  readonly height: number;
  getContext(kind: '2d'): {
    getImageData(x: number, y: number, width: number, height: number): { data: Uint8ClampedArray };
  };
}

/** How many pixels a panel's chart has of each colour, as `rgb(r, g, b)`; clear ones left out. */
export async function pixelsOf(page: Page, panelId: string): Promise<Map<string, number>> {
  const counts = await page.locator(`#${panelId} canvas`).evaluate((node) => {
    const canvas = node as unknown as Canvas;
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const found: Record<string, number> = {};
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3]! < 255) continue;
      const colour = `rgb(${data[at]}, ${data[at + 1]}, ${data[at + 2]})`;
      found[colour] = (found[colour] ?? 0) + 1;
    }
    return found;
  });
  return new Map(Object.entries(counts));
}
