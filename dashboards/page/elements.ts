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
