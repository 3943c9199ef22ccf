/**
 * Markup from templates in which every value is text unless it was made by a template itself.
 *
 * What clients sent (keys, paths, servers) reaches the page only through here. Elements without
 * content end in `/>`, so that the page is well-formed as XML, too.
 */
import { quote } from '../errors.js';

/** Text that is markup already; only markup`` makes it. */
export interface Markup {
  readonly source: string;
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
export function markup(strings: TemplateStringsArray, ...values: readonly Value[]): Markup {
  const parts = tightened(strings).map((string, i) =>
    i < values.length ? string + put(values[i]!) : string,
  );
  return { source: parts.join('') };
}

const tight = new WeakMap<TemplateStringsArray, readonly string[]>();

/** The strings of a template without its indentation, which would make up half of a large page. */
function tightened(strings: TemplateStringsArray): readonly string[] {
  let known = tight.get(strings);
  if (known === undefined) {
    known = strings.map((string) => string.replace(/\s*\n\s*/g, '\n'));
    tight.set(strings, known);
  }
  return known;
}

/** Text for a place that markup is put in, where there is none. */
export const NOTHING: Markup = { source: '' };

function put(value: Value): string {
  if (typeof value === 'string' || typeof value === 'number') return escaped(String(value));
  if ('source' in value) return value.source;
  return value.map(({ source }) => source).join('\n');
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
