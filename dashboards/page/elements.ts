/**
 * Makes elements from data. Text goes in as text nodes, never as markup: keys and paths are whatever
 * a client sends.
 */
export type Child = Node | string | null;

type Handlers = {
  readonly [E in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[E]) => void;
};

/**
 * @param attributes plain names and values; false and null leave one out, true sets it empty
 */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string | number | boolean | null>> = {},
  children: readonly Child[] = [],
  handlers: Handlers = {},
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false) continue;
    made.setAttribute(name, value === true ? '' : String(value));
  }
  made.append(...children.filter((child) => child !== null));
  for (const [name, handle] of Object.entries(handlers)) {
    made.addEventListener(name, handle as EventListener);
  }
  return made;
}

/** The element of the page with this id. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element ${id}`);
  return found;
}

/**
 * Text with what can't be seen made visible: controls, separators of lines, and marks that hide or
 * turn text around, so that a key looks like what it is.
 */
export function visible(text: string): string {
  return text.replace(
    /[\0-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
