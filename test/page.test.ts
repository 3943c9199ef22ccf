/**
 * The page in real Chromium: what is drawn is what the store says, names stay text, and everything
 * can be reached by address and by keyboard.
 *
 * One browser for all; each part has a window of its own, and none may have complained at its end:
 * no error, nothing that the Content-Security-Policy stopped, no request to another origin.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { DASHBOARDS } from '../dashboards/catalogue/dashboards.js';
import { visible } from '../dashboards/page/visible-text.js';
import { topKeys, zoneTotals } from '../src/store/queries.js';
import type { Store } from '../src/store/store.js';
import {
  launchBrowser,
  openPage,
  pixelsOf,
  waitForPanels,
  type Browser,
  type OpenedPage,
  type Page,
} from './support/browser.js';
import {
  fillHostile,
  fillZones,
  HOSTILE,
  PageStores,
  servePage,
  T0_MS,
} from './support/page-stores.js';
import { makeTempDir } from './support/temp-dir.js';

/** Names in addresses. */
const PAGES = DASHBOARDS.map(({ id }) => id.replace('limitlens-', ''));
const FILLED = `from=${T0_MS}&to=${T0_MS + 120_000}`;

const cleanups: (() => void | Promise<void>)[] = [];
const file = { after: (fn: () => void | Promise<void>) => void cleanups.push(fn) };

let stores: PageStores;
let browser: Browser;
let samples: Store;
/** Addresses of the page over each database. */
let urls: Record<'samples' | 'hostile' | 'many' | 'empty', string>;
const failures: unknown[] = [];

before(async () => {
  stores = new PageStores(file);
  await stores.import('samples', 'samples', {
    access: 'samples/access.log',
    errors: 'samples/error.log',
  });
  samples = await stores.open('samples');
  const hostile = await stores.open('hostile');
  const many = await stores.open('many');
  await fillHostile(hostile);
  await fillZones(many, 200);
  const served = async (store: Store): Promise<string> => {
    const { url, errors } = await servePage(file, store);
    failures.push(errors);
    return url;
  };
  urls = {
    samples: await served(samples),
    hostile: await served(hostile),
    many: await served(many),
    empty: await served(await stores.open('empty')),
  };
  browser = await launchBrowser(file);
});

after(async () => {
  for (const clean of cleanups.toReversed()) await clean();
});

/** A part of the test with a window of its own. */
function part(
  title: string,
  address: () => string,
  run: (opened: OpenedPage) => Promise<void>,
  options: Parameters<typeof openPage>[2] = {},
): void {
  test(title, async () => {
    const opened = await openPage(browser, address(), options);
    try {
      await run(opened);
      assert.deepEqual(opened.complaints, []);
    } finally {
      await opened.context.close();
    }
    for (const errors of failures) assert.deepEqual(errors, []);
  });
}

async function goTo(page: Page, name: string): Promise<void> {
  await page.locator(`nav a[data-page="${name}"]`).click();
  await page.locator(`nav a[data-page="${name}"][aria-current="page"]`).waitFor();
  await waitForPanels(page);
}

/** What this needs of an element; the compiler knows no browser here. */
interface Drawn {
  readonly innerText: string;
  readonly style: { readonly background: string };
  querySelectorAll(selector: string): Iterable<Drawn>;
}

/** Texts of a panel's table, row by row. */
async function cells(page: Page, panelId: string): Promise<string[][]> {
  return page
    .locator(`#${panelId} tbody tr`)
    .evaluateAll((rows) =>
      (rows as unknown as Drawn[]).map((row) =>
        [...row.querySelectorAll('td')].map((cell) => cell.innerText),
      ),
    );
}

/** Names in a panel's legend, and their colours. */
async function swatches(page: Page, panelId: string): Promise<Map<string, string>> {
  const entries = await page.locator(`#${panelId} .legend li`).evaluateAll((items) =>
    (items as unknown as Drawn[]).map((item): [string, string] => {
      const [swatch] = item.querySelectorAll('.swatch');
      return [item.innerText.replace(/\s*→$/, '').trim(), swatch!.style.background];
    }),
  );
  return new Map(entries);
}

/** As pixelsOf() names it. */
const BAND_COLOUR = `(() => {
  const probe = document.createElement('i');
  probe.style.color = 'var(--band)';
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
})()`;

async function assertNoFailure(page: Page): Promise<void> {
  assert.deepEqual(await page.locator('.failure').allInnerTexts(), []);
}

const number = new Intl.NumberFormat('en');

part(
  'the overview draws the samples',
  () => `${urls.samples}/`,
  async ({ page }) => {
    await waitForPanels(page);
    assert.equal(await page.title(), 'Overview – limitlens');
    const totals = await zoneTotals(samples);
    const rejected = new Map(
      totals
        .filter(({ outcome }) => outcome === 'rejected')
        .map(({ zone, requests }) => [zone, requests]),
    );
    assert.equal(rejected.size, 3);
    const rows = await cells(page, 'overview-who-limits-whom');
    for (const [zone, requests] of rejected) {
      const sum = rows
        .filter((row) => row[1] === zone)
        .reduce((total, row) => total + Number(row[7]!.replaceAll(',', '')), 0);
      assert.equal(sum, requests, zone);
    }
    const stats = await page.locator('#overview-totals dd').allInnerTexts();
    assert.equal(stats[0], '3,474');

    // What is in the legend is on the canvas, by more than the width of a line.
    const colours = await swatches(page, 'overview-decisions');
    assert.deepEqual([...colours.keys()], ['passed', 'delayed', 'rejected', 'rejected, dry run']);
    const pixels = await pixelsOf(page, 'overview-decisions');
    for (const [name, colour] of colours) assert.ok((pixels.get(colour) ?? 0) > 300, name);

    const bars = page.locator('#overview-refused-by-place .bars li');
    assert.deepEqual(await bars.locator('.sum').allInnerTexts(), ['234', '170', '18']);
    const widths = await bars
      .locator('.bar span:first-child')
      .evaluateAll((nodes) =>
        nodes.map((node) => (node as unknown as { offsetWidth: number }).offsetWidth),
      );
    assert.ok(widths[0]! > widths[1]! && widths[1]! > 50, String(widths));
    await assertNoFailure(page);
  },
);

part(
  'a series that is switched off is gone from the canvas',
  () => `${urls.samples}/overview`,
  async ({ page }) => {
    await waitForPanels(page);
    const colour = (await swatches(page, 'overview-decisions')).get('passed')!;
    assert.ok((await pixelsOf(page, 'overview-decisions')).has(colour));
    const entry = page.locator('#overview-decisions .legend button', { hasText: /^passed$/ });
    await entry.click();
    assert.equal(await entry.getAttribute('aria-pressed'), 'false');
    assert.ok(!(await pixelsOf(page, 'overview-decisions')).has(colour));
  },
);

part(
  'zones, keys, dry run and pipeline health draw the samples',
  () => `${urls.samples}/zones`,
  async ({ page }) => {
    await waitForPanels(page);
    for (const id of [
      'zones-occupancy',
      'zones-keys-created',
      'zones-distinct-keys',
      'zones-refused-share',
    ]) {
      const pixels = await pixelsOf(page, id);
      const colours = [...(await swatches(page, id)).values()];
      assert.ok(colours.length >= 3, id);
      assert.ok(
        colours.some((colour) => (pixels.get(colour) ?? 0) > 100),
        id,
      );
    }
    const state = await pixelsOf(page, 'zones-state');
    const colours = await swatches(page, 'zones-state');
    assert.ok((state.get(colours.get('forgets nothing')!) ?? 0) > 1000);
    assert.ok((state.get(colours.get('forgets idle keys')!) ?? 0) > 1000);
    const heat = (await swatches(page, 'zones-excess-of-burst')).values().next().value!;
    assert.ok((await pixelsOf(page, 'zones-excess-of-burst')).size > 5, heat);
    const pages = (await cells(page, 'zones-headroom')).find((row) => row[1] === 'pages')!;
    assert.deepEqual(pages.slice(2, 10), [
      ...['$binary_remote_addr', '32 KiB', '5 r/s', '191', '191', '191', '0', '223'],
    ]);

    await goTo(page, 'keys');
    const [first] = await topKeys(samples, 'login', 1);
    const top = (await cells(page, 'keys-top-by-rejections'))[0]!;
    assert.deepEqual(top.slice(0, 4), [
      ...[first!.key, 'login', 'default', number.format(first!.rejected)],
    ]);
    assert.equal(await page.locator('[data-variable="key"] input').inputValue(), first!.key);
    assert.ok((await swatches(page, 'keys-one-excess')).has('default login: burst'));

    await goTo(page, 'dry-run');
    const safe = await cells(page, 'dry-run-safe-to-enforce');
    assert.ok(safe.length > 0 && safe.every((row) => row[1] === 'pages'));

    await goTo(page, 'pipeline-health');
    const read = await page.locator('#health-totals dd').first().innerText();
    assert.equal(read, '4,490');
    assert.ok((await page.locator('#health-sources').innerText()).includes('samples/access.log'));
    await assertNoFailure(page);
  },
);

part(
  'one key’s excess lies in the band between its bounds, beside burst and delay',
  () => `${urls.many}/keys?${FILLED}&zone=zone100&key=key100`,
  async ({ page }) => {
    await waitForPanels(page);
    const id = 'keys-one-excess';
    const legend = await swatches(page, id);
    const columns = ['at least', 'at most', 'excess', 'burst', 'delay'];
    assert.deepEqual(
      [...legend.keys()],
      columns.map((column) => `edge zone100: ${column}`),
    );
    const band = await page.evaluate<string>(BAND_COLOUR);
    const pixels = await pixelsOf(page, id);
    for (const [name, colour] of legend) assert.ok((pixels.get(colour) ?? 0) > 100, name);
    // 90 to 100.5 of a chart that ends a little above that, over its whole width: a tenth of it.
    const drawn = [...pixels.values()].reduce((sum, count) => sum + count, 0);
    assert.ok((pixels.get(band) ?? 0) > 3000, `${pixels.get(band)} of ${drawn}`);
    await page.locator(`#${id} .legend button`, { hasText: /at most$/ }).click();
    const without = await pixelsOf(page, id);
    assert.equal(without.get(band), undefined);
    assert.ok((without.get(legend.get('edge zone100: excess')!) ?? 0) > 100);
    await assertNoFailure(page);
  },
);

part(
  'an empty store is told in words',
  () => `${urls.empty}/`,
  async ({ page }) => {
    for (const name of PAGES) {
      await goTo(page, name);
      await assertNoFailure(page);
      for (const panel of await page.locator('section.panel').all()) {
        const text = await panel.locator('.content').innerText();
        assert.match(text, /Nothing in this time\.|^[^\d]+\n[0–]/);
      }
    }
    assert.equal(await page.locator('#freshness').innerText(), 'The store is empty.');
  },
);

part(
  'names of all kinds stay text, and within a narrow screen',
  () => `${urls.hostile}/?${FILLED}`,
  async ({ page }) => {
    for (const name of PAGES) {
      await goTo(page, name);
      await assertNoFailure(page);
      const details = page.locator('details.as-table summary');
      for (const summary of await details.all()) await summary.click();
      const made = 'img, iframe, [onerror], main script, main style';
      assert.equal(await page.locator(made).count(), 0, name);
      const width = await page
        .locator('html')
        .evaluate((node) => (node as unknown as { scrollWidth: number }).scrollWidth);
      assert.ok(width <= 390, `${name} is ${width} wide`);
      assert.match(await page.title(), / – limitlens$/);
    }
    await goTo(page, 'keys');
    const keys = (await cells(page, 'keys-top-by-rejections')).map(([key]) => key);
    const expected = HOSTILE.map((key) => visible(key) || '(empty)');
    assert.deepEqual(new Set(keys), new Set(expected));
    // Each leads to itself, whatever it is encoded to.
    for (const key of [HOSTILE[0], HOSTILE[6]]) {
      const link = page.locator('#keys-top-by-rejections td a', { hasText: key }).first();
      await link.click();
      await page.waitForURL(/[?&]key=/);
      await waitForPanels(page);
      assert.equal(await page.locator('[data-variable="key"] input').inputValue(), key);
      const examples = await cells(page, 'keys-examples');
      assert.deepEqual(
        examples.map((row) => row[9]),
        [key],
      );
      await page.goBack();
      await page.waitForURL((address) => !address.searchParams.has('key'));
      await waitForPanels(page);
    }
  },
  { viewport: { width: 390, height: 8000 } },
);

part(
  'two hundred zones',
  () => `${urls.many}/zones?${FILLED}`,
  async ({ page }) => {
    await waitForPanels(page);
    const note = await page.locator('#zones-occupancy .note').innerText();
    assert.equal(note, 'The 20 largest of 200 are drawn; the table has all.');
    assert.equal(await page.locator('#zones-occupancy .legend li').count(), 20);
    const pile = await page.locator('#zones-keys-created .legend li').last().innerText();
    assert.equal(pile, '180 others');
    assert.equal(await page.locator('#zones-headroom tbody tr').count(), 100);
    await page.locator('#zones-headroom .more').click();
    assert.equal(await page.locator('#zones-headroom tbody tr').count(), 200);

    const picker = page.locator('[data-variable="zone"]');
    await picker.locator('summary').click();
    assert.equal(await picker.locator('.options label').count(), 200);
    await picker.locator('input[type=search]').fill('zone19');
    assert.equal(await picker.locator('.options label:visible').count(), 10);
    await picker.locator('label', { hasText: 'zone195' }).click();
    await page.waitForURL(/zone=zone195/);
    await waitForPanels(page);
    assert.equal(await page.locator('#zones-headroom tbody tr').count(), 1);
    assert.equal(await picker.locator('summary').innerText(), 'Zone: zone195');
  },
);

part(
  'the address holds time and values; back and forward work',
  () => `${urls.samples}/overview`,
  async ({ page }) => {
    await waitForPanels(page);
    const picker = page.locator('[data-variable="zone"]');
    const zones = async (): Promise<Set<string>> => {
      await waitForPanels(page);
      return new Set((await cells(page, 'overview-who-limits-whom')).map((row) => row[1]!));
    };
    const all = new Set(['login', 'apikey', 'downloads', 'pages']);
    assert.deepEqual(await zones(), all);
    await picker.locator('summary').click();
    await picker.locator('label', { hasText: 'login' }).click();
    await page.waitForURL(/\/overview\?.*zone=login/);
    assert.deepEqual(await zones(), new Set(['login']));
    // The list is still open, and takes a second one.
    await picker.locator('label', { hasText: 'pages' }).click();
    await page.waitForURL(/zone=login&zone=pages/);
    assert.deepEqual(await zones(), new Set(['login', 'pages']));
    await page.goBack();
    await page.waitForURL((address) => !address.href.includes('pages'));
    assert.deepEqual(await zones(), new Set(['login']));
    await page.goBack();
    await page.waitForURL((address) => !address.href.includes('zone'));
    assert.deepEqual(await zones(), all);
    await page.goForward();
    await page.waitForURL(/zone=login/);
    assert.deepEqual(await zones(), new Set(['login']));
    await page.reload();
    assert.deepEqual(await zones(), new Set(['login']));
    await goTo(page, 'zones');
    assert.match(page.url(), /\/zones\?.*zone=login/);

    await page.locator('.times select').selectOption({ label: 'Last 15 minutes' });
    await page.waitForURL(/from=now-15m&to=now/);
    await page.locator('.times select').selectOption({ label: 'All that is stored' });
    await page.waitForURL(/from=first&to=last/);
    await waitForPanels(page);
    // A drag over a chart chooses the time.
    const over = page.locator('#zones-occupancy .u-over');
    const box = (await over.boundingBox())!;
    await page.mouse.move(box.x + 0.25 * box.width, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + 0.75 * box.width, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/from=\d{13}&to=\d{13}/);
    const query = new URL(page.url()).searchParams;
    const spanMs = Number(query.get('to')) - Number(query.get('from'));
    assert.ok(spanMs > 30_000 && spanMs < 50_000, String(spanMs));
  },
);

part(
  'from a bar to its keys, to one key, to the explanation of one reject',
  () => `${urls.samples}/overview`,
  async ({ page }) => {
    await waitForPanels(page);
    const over = page.locator('#overview-decisions .u-over');
    const box = (await over.boundingBox())!;
    await over.click({ position: { x: 0.4 * box.width, y: box.height - 10 } });
    await page.waitForURL(/\/keys\?from=\d+&to=\d+/);
    await waitForPanels(page);
    await page.goBack();
    await page.waitForURL(/overview/);
    await waitForPanels(page);

    const zone = page.locator('#overview-who-limits-whom td a', { hasText: 'login' });
    await zone.click();
    await page.waitForURL(/\/keys\?.*zone=login/);
    await waitForPanels(page);
    const rows = await cells(page, 'keys-top-by-rejections');
    assert.ok(rows.every((row) => row[1] === 'login'));
    const key = rows[1]![0]!;
    await page.locator('#keys-top-by-rejections td a', { hasText: key }).click();
    await page.waitForURL(/key=/);
    await waitForPanels(page);
    const examples = await cells(page, 'keys-examples');
    assert.ok(examples.length > 0 && examples.every((row) => row[9] === key));
    await page.locator('#keys-examples tbody a').first().click();
    await page.waitForURL(/\/example\?/);
    const text = await page.locator('pre').innerText();
    assert.match(text, /limit_req rejected a request: excess 5\.\d{3} in zone "login"/);
    assert.match(text, /burst +5, implied; the configuration agrees/);
    assert.match(text, /samples\/nginx\.conf:\d+: limit_req login burst=5 nodelay/);
    assert.ok((await page.locator('.fields').innerText()).includes(key));
    await page.locator('main a', { hasText: 'This key in the minutes around' }).click();
    await waitForPanels(page);
    assert.equal(await page.locator('[data-variable="key"] input').inputValue(), key);

    // A place on the overview narrows it to that place.
    await goTo(page, 'overview');
    await page.goto(`${urls.samples}/overview`);
    await waitForPanels(page);
    await page.locator('#overview-refused-by-place a', { hasText: '/v1/' }).click();
    await page.waitForURL(/server=api\.example/);
    await waitForPanels(page);
    const places = (await cells(page, 'overview-who-limits-whom')).map((row) => row[4]);
    assert.deepEqual(new Set(places), new Set(['/v1/']));
  },
);

part(
  'everything by keyboard, with names for who hears it',
  () => `${urls.samples}/overview`,
  async ({ page }) => {
    await waitForPanels(page);
    const focused = page.locator(':focus');
    await page.keyboard.press('Tab');
    assert.equal(await focused.innerText(), 'Skip to the panels');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    assert.equal(await focused.getAttribute('data-page'), 'zones');
    const outline = await focused.evaluate(
      (node) =>
        (
          globalThis as unknown as {
            getComputedStyle(of: unknown): { outlineStyle: string; outlineWidth: string };
          }
        ).getComputedStyle(node).outlineStyle,
    );
    assert.equal(outline, 'solid');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/zones/);
    await waitForPanels(page);
    assert.equal(await focused.innerText(), 'Zones');

    for (const [role, name] of [
      ['banner', ''],
      ['navigation', 'Dashboards'],
      ['main', ''],
      ['form', 'Time and variables'],
      ['heading', 'Zones'],
      ['region', 'Occupancy'],
    ] as const) {
      const found = page.getByRole(role, name === '' ? {} : { name, exact: true });
      assert.equal(await found.count(), 1, `${role} ${name}`);
    }
    const chart = page.getByRole('img', { name: /^Occupancy, 3 series, 2026-/ });
    assert.equal(await chart.count(), 1);

    // The table beside a chart, sorted by a key press.
    await page.locator('#zones-occupancy summary', { hasText: 'As a table' }).focus();
    await page.keyboard.press('Enter');
    await page.locator('#zones-occupancy th', { hasText: 'occupancy' }).locator('button').focus();
    await page.keyboard.press('Enter');
    const header = page.locator('#zones-occupancy th', { hasText: 'occupancy' });
    assert.equal(await header.getAttribute('aria-sort'), 'descending');
    assert.equal(await focused.innerText(), 'occupancy');
    const values = (await cells(page, 'zones-occupancy')).map((row) => row[2]);
    assert.equal(values[0], '100 %');

    // A list of values opens, takes one, and closes.
    const picker = page.locator('[data-variable="zone"]');
    await picker.locator('summary').focus();
    await page.keyboard.press('Enter');
    await picker.locator('input[type=checkbox]').first().focus();
    await page.keyboard.press('Space');
    await page.waitForURL(/zone=apikey/);
    await waitForPanels(page);
    await page.keyboard.press('Escape');
    assert.equal(await picker.getAttribute('open'), null);
  },
);

part(
  'dark as the system has it, or as chosen, and remembered',
  () => `${urls.samples}/overview`,
  async ({ page }) => {
    const background = (): Promise<string> =>
      page.locator('body').evaluate(
        (node) =>
          (
            globalThis as unknown as {
              getComputedStyle(of: unknown): { backgroundColor: string };
            }
          ).getComputedStyle(node).backgroundColor,
      );
    await waitForPanels(page);
    const dark = await background();
    assert.equal(dark, 'rgb(17, 22, 29)');
    const rejected = 'rgb(240, 101, 92)';
    assert.ok(((await pixelsOf(page, 'overview-decisions')).get(rejected) ?? 0) > 300);
    const button = page.locator('#theme');
    await button.click();
    assert.equal(await button.innerText(), 'Theme: light');
    assert.equal(await background(), 'rgb(244, 245, 247)');
    assert.ok(!(await pixelsOf(page, 'overview-decisions')).has(rejected));
    await page.reload();
    await waitForPanels(page);
    assert.equal(await background(), 'rgb(244, 245, 247)');
    assert.equal(await button.innerText(), 'Theme: light');
  },
  { colorScheme: 'dark' },
);

test('an import shows by itself on pages that are open', async (t) => {
  const dir = makeTempDir(t);
  const lines = readFileSync('samples/access.log', 'latin1').split('\n');
  const log = join(dir, 'access.log');
  writeFileSync(log, `${lines.slice(0, 2000).join('\n')}\n`, 'latin1');
  await stores.import('live', 'samples', { access: log });
  const { url, errors } = await servePage(file, await stores.open('live'), { pollMs: 300 });
  const { page, complaints, context } = await openPage(browser, `${url}/overview`);
  await waitForPanels(page);
  const count = page.locator('#overview-totals dd').first();
  assert.equal(await count.innerText(), '2,000');
  await page.locator('h1').scrollIntoViewIfNeeded();
  writeFileSync(log, lines.join('\n'), 'latin1');
  await stores.import('live', 'samples', { access: log });
  await page.locator('#overview-totals dd', { hasText: '3,474' }).waitFor();
  assert.match(await page.locator('#announcement').innerText(), /^New data at \d\d:\d\d:\d\d UTC$/);
  assert.deepEqual([complaints, errors], [[], []]);
  await context.close();
});

test('files to keep, from the links of a panel', async () => {
  const opened = await openPage(browser, `${urls.samples}/overview?from=first&to=last&zone=login`);
  const { page } = opened;
  await waitForPanels(page);
  const link = page.getByRole('link', { name: 'CSV of Who limits whom' });
  const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
  assert.equal(download.suggestedFilename(), 'overview-who-limits-whom.csv');
  const text = readFileSync(await download.path(), 'utf8');
  assert.match(text, /^instance,zone,kind,server,location,passed,/);
  assert.match(text, /\r\ndefault,login,limit_req,shop\.example,'= \/login,100,0,234,/);
  assert.deepEqual(opened.complaints, []);
  await opened.context.close();
});
