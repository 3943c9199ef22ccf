/**
 * Markup from templates in which every value is text unless it was made by a template itself.
 *
 * What clients sent (keys, paths, servers) reaches the page only through here. Elements without
 * content end in `/>`, so that the page is well-formed as XML, too.
 */
import { quote } from '../errors.js';

/** Text that is markup already; only html`` makes it. */
export interface Markup {
  readonly markup: string;
}

type Value = string | number | Markup | readonly Markup[];

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** A template: strings and numbers are escaped, markup and lists of it are put in as they are. */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Markup {
  const parts = strings.map((string, i) => string + (i < values.length ? put(values[i]!) : ''));
  return { markup: parts.join('') };
}

/** Text for a place that markup is put in, where there is none. */
export const NOTHING: Markup = { markup: '' };

function put(value: Value): string {
  if (typeof value === 'string' || typeof value === 'number') return escaped(String(value));
  if ('markup' in value) return value.markup;
  return value.map(({ markup }) => markup).join('\n');
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (c) => ENTITIES[c]!);
}

const LONGEST = 300;

/**
 * Text of unknown origin, to be put into a template: control characters and signs that change what
 * is seen are shown as `\u202e`, and what is longer than anybody reads is cut.
 */
export function shown(text: string, longest = LONGEST): string {
  const harmless = quote(text, Infinity)
    .slice(1, -1)
    .replaceAll('\\"', '"')
    .replaceAll('\\\\', '\\');
  if (harmless.length <= longest) return harmless;
  // Never in the middle of a surrogate pair.
  return `${harmless.slice(0, longest - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
