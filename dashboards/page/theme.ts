/**
 * Light, dark, or as the system has it. Runs before the page is drawn, so that nothing flashes.
 *
 * The choice stands in `data-theme` of the root, what comes of it in `data-scheme`.
 */
const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const NAME = 'limitlens-theme';

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');

export function currentTheme(): Theme {
  const theme = document.documentElement.dataset['theme'];
  return THEMES.find((known) => known === theme) ?? 'system';
}

/** The next of the three, remembered in this browser. */
export function nextTheme(): Theme {
  const theme = THEMES[(THEMES.indexOf(currentTheme()) + 1) % THEMES.length]!;
  apply(theme);
  try {
    localStorage.setItem(NAME, theme);
  } catch {
    // Storage can be off; then the choice lasts as long as the page.
  }
  return theme;
}

/** Calls when the system changes between light and dark, and the page follows it. */
export function onSystemChange(changed: () => void): void {
  systemIsDark.addEventListener('change', () => {
    apply(currentTheme());
    changed();
  });
}

/** Paper is white. Calls when the scheme has changed for it, and when it is as before. */
export function onPrint(changed: () => void): void {
  addEventListener('beforeprint', () => {
    document.documentElement.dataset['scheme'] = 'light';
    changed();
  });
  addEventListener('afterprint', () => {
    apply(currentTheme());
    changed();
  });
}

function apply(theme: Theme): void {
  const isDark = theme === 'dark' || (theme === 'system' && systemIsDark.matches);
  const { dataset } = document.documentElement;
  dataset['theme'] = theme;
  dataset['scheme'] = isDark ? 'dark' : 'light';
}

function remembered(): string | null {
  try {
    return localStorage.getItem(NAME);
  } catch {
    return null;
  }
}

apply(THEMES.find((theme) => theme === remembered()) ?? 'system');
