/**
 * limitlens.yaml: read, checked against the schema, and told as options with their places.
 *
 * Every problem of a file is told at once, each with file:line:column and the key's path. YAML 1.2;
 * one document, no aliases that multiply, no tags. The only importer of yaml and ajv.
 *
 * Not here: what an option takes (its parser in ../cli).
 */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import {
  isMap,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type Node,
} from 'yaml';
import { EXIT, formatWhere, InputError, quote, type Where } from '../errors.js';
import { CONFIG_KEYS, type ConfigKey } from './config-keys.js';
import { configSchema, expectedAt, namesIn } from './config-schema.js';

/** What the file says of one option. */
export interface ConfigOption {
  readonly key: ConfigKey;
  /** As they would stand on the command line. A flag that is off gives `false`. */
  readonly values: readonly string[];
  readonly where: Where;
}

interface Problem {
  readonly where: Where;
  readonly text: string;
}

/** More than this is no configuration. */
const MOST_BYTES = 1 << 20;

const validate = new Ajv2020({ allErrors: true, allowUnionTypes: true, verbose: true }).compile(
  configSchema(),
);

/**
 * Reads the file at `path`.
 *
 * @throws InputError 66 when it cannot be read, 78 with every problem in it
 */
export function readConfig(path: string): ConfigOption[] {
  const text = readText(path);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, stringKeys: true });
  const file = new ConfigFile(path, document, lines);
  const problems = file.syntaxProblems();
  if (problems.length === 0) problems.push(...file.schemaProblems());
  if (problems.length > 0) throw refused(problems);
  return file.options();
}

class ConfigFile {
  readonly #path: string;
  readonly #document: Document.Parsed;
  readonly #lines: LineCounter;

  constructor(path: string, document: Document.Parsed, lines: LineCounter) {
    this.#path = path;
    this.#document = document;
    this.#lines = lines;
  }

  syntaxProblems(): Problem[] {
    const said = [...this.#document.errors, ...this.#document.warnings].map((error): Problem => {
      // The message goes on with an excerpt and a caret; the first line says it.
      const text = error.message.split('\n')[0]!.replace(/ at line \d+, column \d+:?$/, '');
      return { where: this.#at(error.pos[0]), text: `not YAML: ${text}` };
    });
    visit(this.#document, {
      Alias: (_key, node) => {
        said.push({ where: this.#of(node), text: 'aliases are not taken: write the value again' });
      },
    });
    return said;
  }

  schemaProblems(): Problem[] {
    if (validate(this.#value())) return [];
    const problems = (validate.errors ?? []).map((error) => this.#problem(error));
    // Of the branches of one anyOf each complains; one sentence for the place is enough, and the
    // item of a list says more than the list.
    const bySubject = new Map<string, Problem & { depth: number }>();
    for (const problem of problems) {
      const known = bySubject.get(problem.subject);
      if (known === undefined || known.depth < problem.depth) {
        bySubject.set(problem.subject, problem);
      }
    }
    return [...bySubject.values()];
  }

  /** Of a file without problems. */
  options(): ConfigOption[] {
    const found: ConfigOption[] = [];
    for (const key of CONFIG_KEYS) {
      const names = key.path.split('.');
      const node = this.#document.getIn(names, true);
      if (!isNode(node)) continue;
      const value: unknown = node.toJS(this.#document);
      if (value === null) continue;
      found.push({ key, values: this.#valuesOf(key, value), where: this.#of(node) });
    }
    return found;
  }

  #value(): unknown {
    return this.#document.toJS({ maxAliasCount: 0 }) as unknown;
  }

  #valuesOf(key: ConfigKey, value: unknown): string[] {
    if (key.kind === 'values') {
      return Object.entries(value as Record<string, unknown>).map(
        ([name, given]) => `${name}=${String(given)}`,
      );
    }
    const all = (Array.isArray(value) ? value : [value]).map(String);
    if (key.kind !== 'path' && key.kind !== 'paths') return all;
    return all.map((text) => (text === '-' ? text : resolve(dirname(this.#path), text)));
  }

  #problem(error: ErrorObject): Problem & { subject: string; depth: number } {
    const names = error.instancePath
      .split('/')
      .slice(1)
      .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
    const path = names.join('.');
    if (error.keyword === 'additionalProperties') {
      const { additionalProperty } = error.params as { additionalProperty: string };
      const full = path === '' ? additionalProperty : `${path}.${additionalProperty}`;
      return {
        where: this.#whereOfKey(names, additionalProperty),
        text: `${/^[\w.-]+$/.test(full) ? full : quote(full)}: unknown key; ${expectedNames(path, additionalProperty)}`,
        subject: full,
        depth: names.length,
      };
    }
    // An item of a list is told of as the list.
    const keyPath = CONFIG_KEYS.find((key) => path.startsWith(`${key.path}.`))?.path;
    const isItem = keyPath !== undefined && namesIn(keyPath).length === 0;
    const at = isItem ? keyPath : path;
    const subject = at === '' ? 'the file' : at;
    return {
      where: this.#whereOf(names),
      text: `${subject}: expected ${expectedAt(at)}, found ${shown(error.data)}`,
      subject,
      depth: names.length,
    };
  }

  #whereOf(names: readonly string[]): Where {
    for (let length = names.length; length >= 0; length--) {
      const node =
        length === 0
          ? this.#document.contents
          : this.#document.getIn(
              names.slice(0, length).map((name) => (/^\d+$/.test(name) ? Number(name) : name)),
              true,
            );
      if (isNode(node) && node.range != null) return this.#of(node);
    }
    return this.#at(0);
  }

  #whereOfKey(names: readonly string[], name: string): Where {
    const node = names.length === 0 ? this.#document.contents : this.#document.getIn(names, true);
    const pair = isMap(node)
      ? node.items.find(({ key }) => isScalar(key) && String(key.value) === name)
      : undefined;
    return isNode(pair?.key) ? this.#of(pair.key) : this.#whereOf(names);
  }

  #of(node: Node): Where {
    return this.#at(node.range?.[0] ?? 0);
  }

  #at(offset: number): Where {
    const { line, col } = this.#lines.linePos(offset);
    return { path: this.#path, line: Math.max(1, line), column: Math.max(1, col) };
  }
}

/** A value as JSON; never the password of a URL. */
function shown(value: unknown): string {
  const text = JSON.stringify(value).replaceAll(/\/\/[^@/"]*@/g, '//…@');
  const quoted = quote(text);
  return quoted === JSON.stringify(text) ? text : quoted;
}

function readText(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw new InputError(
      `--config ${path}: cannot be read (${code})\n  Expected limitlens.yaml; samples/service has one.`,
      EXIT.noInput,
      { cause: error },
    );
  }
  if (bytes.length <= MOST_BYTES) return bytes.toString('utf8');
  throw new InputError(
    `--config ${path}: expected at most ${MOST_BYTES} bytes, found ${bytes.length}`,
    EXIT.configuration,
  );
}

function refused(problems: readonly Problem[]): InputError {
  const sorted = [...problems].sort(
    (a, b) => a.where.line - b.where.line || (a.where.column ?? 0) - (b.where.column ?? 0),
  );
  const lines = sorted.map(({ where, text }) => `${formatWhere(where)}: ${text}`);
  return new InputError(lines.join('\n'), EXIT.configuration);
}

/** The names that may stand there, the likely one first. */
function expectedNames(path: string, found: string): string {
  const names = namesIn(path);
  const [nearest] = [...names].sort((a, b) => distance(a, found) - distance(b, found));
  const section = path === '' ? 'the file' : path;
  const all = `${section} has ${names.join(', ')}`;
  return nearest !== undefined && distance(nearest, found) <= Math.max(1, found.length / 3)
    ? `did you mean ${nearest}? ${all}`
    : all;
}

/** Levenshtein's: letters to change, add or take away. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
