/**
 * Where the page begins: the address decides what is shown; links, filters and the browser's own
 * back and forward change the address.
 */
import { ask } from './api-client.js';
import { byId, element } from './elements.js';
import { listen } from './live-feed.js';
import { currentTheme, nextTheme, onPrint, onSystemChange } from './theme.js';
import { addressOf, parseState, type ViewState } from './url-state.js';
import { View } from './view.js';
import type { CatalogueAnswer } from './wire.js';

/** Someone who listens need not hear of every step of the store. */
const LEAST_ANNOUNCED_MS = 60_000;

async function start(): Promise<void> {
  const catalogue = await ask<CatalogueAnswer>('dashboards');
  const view = new View(catalogue, (state) => go(addressOf(state)), go);
  showNavigation(catalogue);
  showTheme(view);

  function show(): void {
    const state = parseState(location.pathname, location.search);
    keepTimeInNavigation(state);
    void view.show(state);
  }

  function go(address: string): void {
    const target = new URL(address, location.href);
    if (target.href === location.href) return;
    const isOther = target.pathname !== location.pathname;
    history.pushState(null, '', address);
    // Another dashboard is read from its begin; another time of the same one where one was.
    if (isOther) scrollTo(0, 0);
    show();
  }

  addEventListener('popstate', show);
  document.addEventListener('click', (event) => {
    const link = (event.target as Element).closest('a');
    if (link === null || !isOwn(link, event, catalogue)) return;
    event.preventDefault();
    go(link.href);
  });
  show();
  follow(view);
}

/** Whether a click on a link stays on this page. */
function isOwn(link: HTMLAnchorElement, event: MouseEvent, catalogue: CatalogueAnswer): boolean {
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (!isPlain || link.origin !== location.origin || link.hasAttribute('download')) return false;
  const { page } = parseState(link.pathname, '');
  const isPage = page === 'example' || catalogue.dashboards.some(({ name }) => name === page);
  return isPage && link.hash === '';
}

function showNavigation({ dashboards }: CatalogueAnswer): void {
  const links = dashboards.map(({ name, title }) =>
    element('li', {}, [element('a', { href: `./${name}`, 'data-page': name }, [title])]),
  );
  byId('dashboards').replaceChildren(element('ul', {}, links));
}

/** Another dashboard is about the same time and values. */
function keepTimeInNavigation(state: ViewState): void {
  if (state.page === 'example') return;
  for (const link of byId('dashboards').querySelectorAll('a')) {
    link.href = addressOf({ ...state, page: link.dataset['page']! });
  }
}

function showTheme(view: View): void {
  const button = byId('theme');
  button.textContent = `Theme: ${currentTheme()}`;
  button.addEventListener('click', () => {
    button.textContent = `Theme: ${nextTheme()}`;
    view.redraw();
  });
  onSystemChange(() => view.redraw());
  onPrint(() => view.redraw());
}

function follow(view: View): void {
  let known: string | undefined;
  let announcedMs = 0;
  let wasLost = false;
  listen({
    onConnection: (isConnected) => {
      byId('freshness').dataset['live'] = String(isConnected);
      byId('freshness').title = isConnected ? 'New data is shown as it comes' : 'Not connected';
      if (isConnected && wasLost) void view.refresh();
      wasLost = !isConnected;
    },
    onVersion: (version) => {
      if (known !== undefined && known !== version) {
        void view.refresh();
        if (Date.now() - announcedMs > LEAST_ANNOUNCED_MS) {
          announcedMs = Date.now();
          const time = new Date().toISOString().slice(11, 19);
          byId('announcement').textContent = `New data at ${time} UTC`;
        }
      }
      known = version;
    },
  });
}

function fail(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  byId('view').replaceChildren(element('p', { class: 'failure', role: 'alert' }, [text]));
}

start().catch(fail);
