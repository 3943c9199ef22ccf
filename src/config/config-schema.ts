/**
 * The JSON schema (draft 2020-12) of limitlens.yaml, made from its keys.
 *
 * What editors complete and check with (samples/limitlens.schema.json), and what the reader
 * validates with: one and the same. A section without anything in it may stand there empty.
 */
import { CONFIG_KEYS, type ConfigKey } from './config-keys.js';

export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

const TEXT = { type: 'string', minLength: 1 };
const ONE_OR_MORE = { anyOf: [TEXT, { type: 'array', minItems: 1, items: TEXT }] };

/** By kind, and what it expects in words, for messages. */
const KINDS: Record<ConfigKey['kind'], { readonly schema: JsonSchema; readonly words: string }> = {
  text: { schema: TEXT, words: 'a text' },
  path: { schema: TEXT, words: 'a path' },
  paths: { schema: ONE_OR_MORE, words: 'a path, or a list of paths' },
  texts: { schema: ONE_OR_MORE, words: 'a text, or a list of texts' },
  duration: {
    schema: {
      anyOf: [
        { type: 'string', pattern: '^\\d+(?:\\.\\d+)?(?:ms|s|m|h)?$' },
        { type: 'number', minimum: 0 },
      ],
    },
    words: 'a duration like 60s, 500ms or 2m',
  },
  size: {
    schema: {
      anyOf: [
        { type: 'string', pattern: '^\\d+(?:\\.\\d+)?(?:B|KiB|MiB|GiB)?$' },
        { type: 'integer', minimum: 0 },
      ],
    },
    words: 'a size like 512MiB or 2GiB',
  },
  count: { schema: { type: 'integer', minimum: 0 }, words: 'a whole number' },
  flag: { schema: { type: 'boolean' }, words: 'true or false' },
  values: {
    schema: { type: ['string', 'number'], minLength: 1 },
    words: 'a value',
  },
};

/** The schema as a plain object; its keys come in the order of CONFIG_KEYS. */
export function configSchema(): JsonSchema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'limitlens.yaml',
    description: 'What limitlens tail follows, where it stores, and what it serves.',
    ...sectionSchema(''),
  };
}

/** What a key or section expects, for a person. */
export function expectedAt(path: string): string {
  const key = CONFIG_KEYS.find((known) => known.path === path);
  if (key === undefined) {
    const parent = CONFIG_KEYS.find((known) => known.path === path.slice(0, path.lastIndexOf('.')));
    if (parent?.kind === 'values') return parent.pattern?.[1] ?? KINDS.values.words;
    return `a section with ${namesIn(path).join(', ')}`;
  }
  if (key.kind === 'values') {
    const names = key.choices === undefined ? '' : `, of ${key.choices.join(', ')}`;
    return `names with values${names}`;
  }
  if (key.pattern !== undefined) return key.pattern[1];
  return key.choices === undefined ? KINDS[key.kind].words : `one of ${key.choices.join(', ')}`;
}

/** The names that may stand in a section ('' is the file itself), or in a key of values. */
export function namesIn(path: string): readonly string[] {
  const key = CONFIG_KEYS.find((known) => known.path === path);
  if (key !== undefined) return key.choices ?? [];
  const prefix = path === '' ? '' : `${path}.`;
  const inside = CONFIG_KEYS.filter((known) => known.path.startsWith(prefix));
  return [...new Set(inside.map((known) => known.path.slice(prefix.length).split('.')[0]!))];
}

function sectionSchema(path: string): JsonSchema {
  const properties = namesIn(path).map((name): [string, JsonSchema] => {
    const inside = path === '' ? name : `${path}.${name}`;
    const key = CONFIG_KEYS.find((known) => known.path === inside);
    return [name, key === undefined ? sectionSchema(inside) : keySchema(key)];
  });
  return {
    type: ['object', 'null'],
    additionalProperties: false,
    properties: Object.fromEntries(properties),
  };
}

function keySchema(key: ConfigKey): JsonSchema {
  const { description, pattern } = key;
  const schema =
    pattern === undefined ? KINDS[key.kind].schema : { type: 'string', pattern: pattern[0] };
  if (key.kind === 'values') {
    if (key.choices === undefined) {
      return { description, type: ['object', 'null'], additionalProperties: schema };
    }
    const properties = Object.fromEntries(key.choices.map((name) => [name, schema]));
    return { description, type: ['object', 'null'], additionalProperties: false, properties };
  }
  if (key.choices !== undefined) return { description, enum: key.choices };
  return { description, ...schema };
}
