/**
 * A strict reader of the pages that are made here: every element closed, every attribute quoted,
 * no `<` or bare `&` in text. It reads what XML and HTML understand alike, and throws on the rest.
 */
const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
};

export class Element {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly nodes: (Element | string)[] = [];

  constructor(name: string, attributes: ReadonlyMap<string, string>) {
    this.name = name;
    this.attributes = attributes;
  }

  get children(): Element[] {
    return this.nodes.filter((node) => typeof node !== 'string');
  }

  attribute(name: string): string | undefined {
    return this.attributes.get(name);
  }

  /** All that it holds, in the order of the page. */
  all(): Element[] {
    return this.children.flatMap((child) => [child, ...child.all()]);
  }

  named(name: string): Element[] {
    return this.all().filter((element) => element.name === name);
  }

  /** Its text and that of all it holds. */
  text(): string {
    return this.nodes.map((node) => (typeof node === 'string' ? node : node.text())).join('');
  }
}

const TAG = /<(\/?)([a-z][a-z0-9:-]*)((?:\s+[a-zA-Z:-]+="[^"<]*")*)\s*(\/?)>/y;
const ATTRIBUTE = /([a-zA-Z:-]+)="([^"]*)"/g;

/** @throws Error with the place of what cannot be read */
export function readMarkup(page: string): Element {
  const doctype = '<!DOCTYPE html>\n';
  if (!page.startsWith(doctype)) throw new Error('the page does not begin with its doctype');
  const root = new Element('#page', new Map());
  const open: Element[] = [root];
  let at = doctype.length;
  while (at < page.length) {
    const tagAt = page.indexOf('<', at);
    const end = tagAt < 0 ? page.length : tagAt;
    if (end > at) open.at(-1)!.nodes.push(decoded(page.slice(at, end)));
    if (tagAt < 0) break;
    TAG.lastIndex = tagAt;
    const match = TAG.exec(page);
    if (match === null) throw new Error(`no tag at: ${page.slice(tagAt, tagAt + 80)}`);
    readTag(match, open);
    at = TAG.lastIndex;
  }
  if (open.length > 1) throw new Error(`<${open.at(-1)!.name}> is not closed`);
  return root;
}

function readTag([, slash, name, attributes, isEmpty]: RegExpExecArray, open: Element[]): void {
  if (slash === '/') {
    const last = open.pop();
    if (last?.name !== name || open.length === 0) throw new Error(`</${name}> in <${last?.name}>`);
    return;
  }
  const values = Array.from(
    attributes!.matchAll(ATTRIBUTE),
    ([, key, value]) => [key!, decoded(value!)] as const,
  );
  const element = new Element(name!, new Map(values));
  if (element.attributes.size !== values.length) throw new Error(`<${name}> says a thing twice`);
  open.at(-1)!.nodes.push(element);
  if (isEmpty !== '/') open.push(element);
}

function decoded(text: string): string {
  return text.replace(/&(?:[a-z]+|#\d+)?;?/g, (entity) => {
    const character = ENTITIES[entity];
    if (character === undefined) throw new Error(`a bare & in: ${text.slice(0, 80)}`);
    return character;
  });
}
