/**
 * How the page looks and what it says when something is missing, in real Chromium: contrast, room,
 * long names, failures of one panel, times that are typed, empty stores, paper.
 *
 * Not here: what is drawn (page.test.ts).
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, test } from 'node:test';
import {
  launchBrowser,
  openPage,
  waitForPanels,
  type Browser,
  type OpenedPage,
  type Page,
} from './support/browser.js';
import { mustRun } from './support/cli.js';
import { makeTempDir } from './support/temp-dir.js';
import { fillHostile, PageStores, servePage, T0_MS } from './support/page-stores.js';

const FILLED = `from=${T0_MS}&to=${T0_MS + 120_000}`;

const cleanups: (() => void | Promise<void>)[] = [];
const file = { after: (fn: () => void | Promise<void>) => void cleanups.push(fn) };
let browser: Browser;
/** The samples' `report --html`. */
let reportFile: string;
let urls: Record<'samples' | 'hostile' | 'empty', string>;

before(async () => {
  const stores = new PageStores(file);
  const files = { access: 'samples/access.log', errors: 'samples/error.log' };
  await stores.import('samples', 'samples', files);
  const hostile = await stores.open('hostile');
  await fillHostile(hostile);
  urls = {
    samples: (await servePage(file, await stores.open('samples'))).url,
    hostile: (await servePage(file, hostile)).url,
    empty: (await servePage(file, await stores.open('empty'))).url,
  };
  browser = await launchBrowser(file);
  const folder = makeTempDir(file);
  const store = join(folder, 'store');
  const conf = ['--conf', 'samples/nginx.conf', '--store', store];
  await mustRun(['import', ...conf, 'samples/access.log', 'samples/error.log']);
  reportFile = join(folder, 'report.html');
  await mustRun(['report', '--store', store, '--html', reportFile]);
});

after(async () => {
  for (const clean of cleanups.toReversed()) await clean();
});

/** @param run gets a window that has not been anywhere yet */
function part(
  title: string,
  run: (page: Page, opened: OpenedPage) => Promise<void>,
  options: Parameters<typeof openPage>[2] = {},
): void {
  test(title, async () => {
    // An address of the origin without a page, so that routes can be laid first.
    const opened = await openPage(browser, `${urls.samples}/favicon.svg`, options);
    try {
      await run(opened.page, opened);
    } finally {
      await opened.context.close();
    }
  });
}

/** Of text and of what is drawn, on the cards they stand on. */
const CONTRASTS = `(() => {
  const style = getComputedStyle(document.documentElement);
  const light = (name) => {
    const hex = style.getPropertyValue('--' + name).trim().slice(1);
    const wide = hex.length === 3 ? [...hex].map((digit) => digit + digit).join('') : hex;
    const [r, g, b] = [0, 2, 4].map((at) => {
      const part = parseInt(wide.slice(at, at + 2), 16) / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const between = (a, b) => {
    const [high, low] = [light(a), light(b)].sort((one, other) => other - one);
    return (high + 0.05) / (low + 0.05);
  };
  const names = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
    .filter((rule) => rule.selectorText === ':root')
    .flatMap((rule) => [...rule.style])
    .filter((name) => name.startsWith('--')).map((name) => name.slice(2));
  return names.map((name) => [name, between(name, 'card'), between(name, 'page')]);
})()`;
const TEXT = ['text', 'muted', 'accent', 'focus'];
/** Lines of a table and a grid carry no meaning; shades and bands lie behind what does. */
const QUIET = ['page', 'card', 'line', 'grid', 'shade', 'band', 'bound'];

for (const colorScheme of ['light', 'dark'] as const) {
  part(
    `everything can be told from what it stands on, ${colorScheme}`,
    async (page) => {
      await page.goto(`${urls.samples}/overview`);
      await waitForPanels(page);
      const all = await page.evaluate<[string, number, number][]>(CONTRASTS);
      assert.ok(all.length > 30, String(all.length));
      for (const [name, onCard, onPage] of all) {
        if (QUIET.includes(name)) continue;
        const [found, least] = TEXT.includes(name) ? [Math.min(onCard, onPage), 4.5] : [onCard, 3];
        assert.ok(found >= least, `${name}: ${found.toFixed(2)} of ${least}`);
      }
    },
    { colorScheme },
  );
}

part(
  'a long name takes three lines at most, and is told whole',
  async (page) => {
    for (const name of ['overview', 'zones', 'keys']) {
      await page.goto(`${urls.hostile}/${name}?${FILLED}`);
      await waitForPanels(page);
      const tall = await page.evaluate(`[...document.querySelectorAll(
        'td bdi, .legend .name, .bars bdi')].filter((node) => node.offsetHeight > 66)
        .map((node) => node.textContent.slice(0, 40))`);
      assert.deepEqual(tall, [], name);
      const wide = await page.evaluate(`[...document.querySelectorAll(
        '.panel, .legend, .bars, #filters > *, header > *, h1, #lead')]
        .filter((node) => node.getBoundingClientRect().right > innerWidth)
        .map((node) => node.id || node.className)`);
      assert.deepEqual(wide, [], name);
    }
    const cell = page.locator('#keys-top-by-rejections td[title*="nowhere-to-break"]').first();
    assert.equal(await cell.getAttribute('title'), await cell.locator('bdi').textContent());
    // What leads somewhere is told by more than its colour.
    const line = await page.evaluate(
      `getComputedStyle(document.querySelector('#keys-top-by-rejections td a bdi')).textDecorationLine`,
    );
    assert.equal(line, 'underline');
    assert.match(
      await page.locator('#marks summary').innerText(),
      /^\d+ marks on the time line:\s*reloads and restarts\s*findings$/,
    );
  },
  { viewport: { width: 390, height: 8000 } },
);

part('a panel that fails says so and can be tried again; the others stand', async (page) => {
  let isDown = true;
  const fail = { status: 503, contentType: 'application/json' };
  for (const path of ['panel/overview-decisions', 'annotations']) {
    await page.route(`**/api/${path}*`, (route) =>
      isDown
        ? route.fulfill({ ...fail, body: JSON.stringify({ error: 'the store is busy' }) })
        : route.continue(),
    );
  }
  await page.goto(`${urls.samples}/overview`);
  await waitForPanels(page);
  const failed = page.locator('section.panel .failure');
  assert.equal(await failed.count(), 1);
  assert.equal(await failed.getByRole('alert').innerText(), 'the store is busy');
  assert.equal(await page.locator('#overview-429-503-by-source canvas').count(), 1);
  const hint = page.locator('#hint');
  assert.match(await hint.innerText(), /^Lists or marks are missing: the store is busy/);
  isDown = false;
  await failed.getByRole('button', { name: 'Try again' }).click();
  await page.locator('#overview-decisions canvas').waitFor();
  await hint.getByRole('button', { name: 'Try again' }).click();
  await hint.waitFor({ state: 'detached' });
  assert.equal(await page.locator('.failure').count(), 0);
});

part('times are typed as logs have them', async (page) => {
  await page.goto(`${urls.samples}/overview`);
  await waitForPanels(page);
  const [from, to] = [
    page.getByLabel('From', { exact: true }),
    page.getByLabel('To', { exact: true }),
  ];
  assert.match(await from.inputValue(), /^2026-\d\d-\d\d \d\d:\d\d:\d\d$/);
  const address = page.url();
  await from.fill('yesterday');
  await from.press('Enter');
  const wrong = page.locator('#wrong-time');
  await wrong.waitFor();
  assert.match(await wrong.innerText(), /^Expected times in UTC like 2026-03-02 10:00:00/);
  assert.equal(await from.getAttribute('aria-invalid'), 'true');
  assert.equal(page.url(), address);
  await from.fill('2026-03-02 10:00');
  await to.fill('now-15m');
  await to.press('Enter');
  await page.waitForURL(/from=1772445600000&to=now-15m/);
  await wrong.waitFor({ state: 'hidden' });
});

part('the whole of a bar is its step', async (page) => {
  await page.goto(`${urls.samples}/overview`);
  await waitForPanels(page);
  // Four steps of 20 s: the end of the second lies nearer to the begin of the third.
  const over = page.locator('#overview-decisions .u-over');
  const { width } = (await over.boundingBox())!;
  for (const [share, seconds] of [
    [0.27, 40],
    [0.47, 40],
    [0.53, 0],
  ] as const) {
    await over.hover({ position: { x: share * width, y: 40 } });
    const [time = ''] = (await over.locator('.tooltip').innerText()).split('\n');
    assert.match(time, new RegExp(`:${String(seconds).padStart(2, '0')}$`), String(share));
  }
});

part('where there is nothing, what to do', async (page) => {
  await page.goto(`${urls.empty}/`);
  await waitForPanels(page);
  assert.match(
    await page.locator('#hint').innerText(),
    /^Nothing is stored yet\. limitlens import /,
  );
  await page.goto(`${urls.samples}/?from=1700000000000&to=1700003600000`);
  await waitForPanels(page);
  const hint = page.locator('#hint');
  assert.match(
    await hint.innerText(),
    /^Nothing is stored of this time\. What is stored is of 2026-/,
  );
  await hint.getByRole('link', { name: 'Show all that is stored' }).click();
  await page.waitForURL(/from=first&to=last/);
  await hint.waitFor({ state: 'detached' });
});

part(
  'paper is white, and has no controls',
  async (page) => {
    await page.goto(`${urls.samples}/zones`);
    await waitForPanels(page);
    const scheme = () => page.evaluate('document.documentElement.dataset.scheme');
    assert.equal(await scheme(), 'dark');
    await page.emulateMedia({ media: 'print' });
    await page.evaluate('dispatchEvent(new Event("beforeprint"))');
    assert.equal(await scheme(), 'light');
    for (const hidden of ['header', '#filters', '.downloads']) {
      assert.equal(await page.locator(hidden).first().isVisible(), false, hidden);
    }
    assert.ok(await page.locator('#zones-headroom table').isVisible());
    await page.evaluate('dispatchEvent(new Event("afterprint"))');
    assert.equal(await scheme(), 'dark');
  },
  { colorScheme: 'dark' },
);

part('another dashboard is read from its begin', async (page) => {
  await page.setViewportSize({ width: 1024, height: 600 });
  await page.goto(`${urls.samples}/overview`);
  await waitForPanels(page);
  await page.locator('#overview-who-limits-whom td a', { hasText: 'login' }).click();
  await page.waitForURL(/\/keys\?/);
  await waitForPanels(page);
  await page.goto(`${urls.samples}/overview`);
  await waitForPanels(page);
  assert.ok(Number(await page.evaluate('scrollY')) > 0);
  await page.evaluate(`document.querySelector('nav a[data-page="zones"]').click()`);
  await page.locator('nav a[data-page="zones"][aria-current="page"]').waitFor();
  assert.equal(await page.evaluate('scrollY'), 0);
});

test('the report to send fits a phone and a sheet of paper, which is white', async () => {
  const context = await browser.newContext({ colorScheme: 'dark' });
  const page = await context.newPage();
  await page.goto(pathToFileURL(reportFile).href);
  const back = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
  assert.equal(await back(), 'rgb(22, 24, 28)');
  await page.setViewportSize({ width: 390, height: 800 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
  // Axes can be read, and a time stands in one line.
  assert.ok(Number(await page.evaluate(`document.querySelector('figure svg').clientWidth`)) > 600);
  const times = await page.evaluate(`[...document.querySelectorAll('td.t')]
    .map((cell) => cell.getClientRects()[0].height)`);
  assert.ok((times as number[]).length > 5);
  assert.ok((times as number[])[0]! < 40, String(times));
  // A4 within usual margins.
  await page.setViewportSize({ width: 720, height: 1000 });
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  assert.equal(await back(), 'rgb(255, 255, 255)');
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 720);
  await context.close();
});
