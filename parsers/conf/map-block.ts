/**
 * The inside of `map`, as ngx_http_map() reads it, with the conflicts of ngx_hash_add_key().
 *
 * Not here: looking a value up.
 */
import { addNote, refuse, type Draft } from './level.js';
import type { Directive } from './lexer.js';
import type { MapBlock } from './model.js';
import { compilePcre } from './pcre.js';
import { checkVariables, definedVariable } from './variables.js';

type MapEntry = MapBlock['entries'][number];

export class MapReader {
  private readonly draft: Draft;
  private readonly head: Directive;
  private readonly variable: string;
  private readonly entries: MapEntry[] = [];
  private defaultValue: string | undefined;
  private hostnames = false;
  private isVolatile = false;
  private readonly exact = new Set<string>();
  private readonly leadingWildcards = new Set<string>();
  private readonly trailingWildcards = new Set<string>();

  /** @param head `map SOURCE $variable {` */
  constructor(draft: Draft, head: Directive) {
    checkVariables(head, head.words[1]!);
    this.draft = draft;
    this.head = head;
    this.variable = definedVariable(head, head.words[2]!);
  }

  /** One line of the block; `include` has been followed already. */
  read(line: Directive): void {
    const [pattern = '', value] = line.words;
    if (value === undefined && pattern === 'hostnames') this.hostnames = true;
    else if (value === undefined && pattern === 'volatile') this.isVolatile = true;
    else if (value === undefined || line.words.length !== 2) {
      refuse(line, 'invalid number of the map parameters');
    } else {
      checkVariables(line, value);
      this.readEntry(line, pattern, value);
    }
  }

  private readEntry(line: Directive, pattern: string, value: string): void {
    if (pattern === 'default') {
      if (this.defaultValue !== undefined) refuse(line, 'duplicate default map parameter');
      this.defaultValue = value;
      return;
    }
    if (pattern.startsWith('~')) {
      this.noteRegex(line, pattern);
      this.entries.push({ pattern, value, where: line.where });
      return;
    }
    const isEscaped = pattern.startsWith('\\');
    const text = isEscaped ? pattern.slice(1) : pattern;
    this.addKey(line, text.toLowerCase());
    this.entries.push({
      pattern: text,
      ...(isEscaped ? { isLiteral: true } : {}),
      value,
      where: line.where,
    });
  }

  private noteRegex(line: Directive, pattern: string): void {
    const nocase = pattern.startsWith('~*');
    const compiled = compilePcre(pattern.slice(nocase ? 2 : 1), { nocase });
    if (compiled instanceof RegExp) return;
    const message = `"${pattern}" in map $${this.variable} has ${compiled.unsupported}`;
    addNote(this.draft, 'regex-not-evaluated', message, line.where);
  }

  private addKey(line: Directive, key: string): void {
    const isFree = this.hostnames ? this.addHostname(line, key) : addTo(this.exact, key);
    if (!isFree) refuse(line, `conflicting parameter "${key}"`);
  }

  private addHostname(line: Directive, key: string): boolean {
    const stars = key.split('*').length - 1;
    const isInvalid = stars > 1 || key.includes('..') || key.includes('\0');
    if (!isInvalid && key.length > 1 && key.startsWith('.')) {
      const name = key.slice(1);
      return addTo(this.exact, name) && addTo(this.leadingWildcards, name);
    }
    if (!isInvalid && key.length > 2) {
      if (key.startsWith('*.')) return addTo(this.leadingWildcards, key.slice(2));
      if (key.endsWith('.*')) return addTo(this.trailingWildcards, key.slice(0, -2));
    }
    if (isInvalid || stars > 0) refuse(line, `invalid hostname or wildcard "${key}"`);
    return addTo(this.exact, key);
  }

  /** Puts the finished block into the draft; a later map of the same variable takes its place. */
  finish(): void {
    this.draft.geos.delete(this.variable);
    this.draft.maps.set(this.variable, {
      source: this.head.words[1]!,
      variable: this.variable,
      hostnames: this.hostnames,
      isVolatile: this.isVolatile,
      entries: this.entries,
      defaultValue: this.defaultValue ?? '',
      where: this.head.where,
    });
  }
}

/** @returns false when the key was there already */
function addTo(keys: Set<string>, key: string): boolean {
  if (keys.has(key)) return false;
  keys.add(key);
  return true;
}
