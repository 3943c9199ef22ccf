/**
 * The value of a `map` variable.
 *
 * Follows ngx_http_map_find(): an exact string without regard to case, the longest `*.domain`,
 * the longest `domain.*`, then regular expressions in order (never for an empty source), then the
 * default. A map is a function of its source, so what was chosen for a source is remembered, up
 * to a bound; a `volatile` map is asked anew each time, as nginx does.
 *
 * Not here: reading the block (parsers/conf), and which variables it may use (variables.ts).
 */
import type { Line } from './byte-range.js';
import { KeyTable } from './key-table.js';
import { KeyWriter } from './key-writer.js';
import type { Captures, ValueNode } from './value-node.js';

export interface MapPattern {
  /** Exact text, or a host name with a wildcard: `*.x`, `.x`, `x.*`. Lower case. */
  readonly text: string;
  readonly choice: number;
}

export interface MapRegex {
  readonly regex: RegExp;
  readonly choice: number;
  /** Takes what the groups matched, for this choice's value. */
  readonly captures: Captures;
}

export interface MapPlan {
  readonly source: ValueNode;
  readonly hostnames: boolean;
  readonly isVolatile: boolean;
  readonly patterns: readonly MapPattern[];
  readonly regexes: readonly MapRegex[];
  /** One value per choice; the first is the default. */
  readonly values: readonly ValueNode[];
}

const DEFAULT_CHOICE = 0;
const DOT = 0x2e;
const MAX_REMEMBERED = 1 << 14;
const MAX_REMEMBERED_BYTES = 1 << 23;

interface Match {
  readonly choice: number;
  readonly captures?: { readonly of: Captures; readonly groups: Captures['current'] };
}

const NO_MATCH: Match = { choice: DEFAULT_CHOICE };

export class MapValue implements ValueNode {
  private readonly plan: MapPlan;
  private readonly source = new KeyWriter('raw');
  private readonly exact = new KeyTable();
  private readonly exactChoices: number[] = [];
  private readonly heads: readonly MapPattern[];
  private readonly tails: readonly MapPattern[];
  private readonly onlyExact: boolean;
  private lowered = new Uint8Array(64);
  private readonly remembered = new KeyTable();
  private readonly matches: Match[] = [];

  constructor(plan: MapPlan) {
    this.plan = plan;
    const isHead = ({ text }: MapPattern) => plan.hostnames && /^\*?\../.test(text);
    const isTail = ({ text }: MapPattern) => plan.hostnames && text.endsWith('.*');
    this.heads = longestFirst(plan.patterns.filter(isHead));
    this.tails = longestFirst(plan.patterns.filter(isTail));
    this.onlyExact = this.heads.length + this.tails.length + plan.regexes.length === 0;
    for (const pattern of plan.patterns) {
      if (!isHead(pattern) && !isTail(pattern)) this.addExact(pattern);
    }
  }

  write(line: Line, out: KeyWriter): boolean {
    const { plan, source } = this;
    source.reset();
    if (!plan.source.write(line, source)) return false;
    let length = source.length;
    if (plan.hostnames && length > 0 && source.bytes[length - 1] === DOT) length--;
    return plan.values[this.choose(source.bytes, length)]!.write(line, out);
  }

  private addExact({ text, choice }: MapPattern): void {
    const bytes = Buffer.from(text, 'latin1');
    const id = this.exact.intern(bytes, 0, bytes.length);
    this.exactChoices[id] ??= choice;
  }

  private choose(bytes: Uint8Array, length: number): number {
    if (this.lowered.length < length) this.lowered = new Uint8Array(length * 2);
    const { lowered } = this;
    for (let i = 0; i < length; i++) {
      const byte = bytes[i]!;
      lowered[i] = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
    }
    const id = this.exact.find(lowered, 0, length);
    if (id !== -1) return this.exactChoices[id]!;
    if (this.onlyExact || length === 0) return DEFAULT_CHOICE;
    const match = this.plan.isVolatile ? this.search(bytes, length) : this.recall(bytes, length);
    if (match.captures !== undefined) match.captures.of.current = match.captures.groups;
    return match.choice;
  }

  private recall(bytes: Uint8Array, length: number): Match {
    const { remembered, matches } = this;
    const known = remembered.find(bytes, 0, length);
    if (known !== -1) return matches[known]!;
    const match = this.search(bytes, length);
    if (remembered.size >= MAX_REMEMBERED || remembered.memoryBytes > MAX_REMEMBERED_BYTES) {
      remembered.clear();
      matches.length = 0;
    }
    matches[remembered.intern(bytes, 0, length)] = match;
    return match;
  }

  private search(bytes: Uint8Array, length: number): Match {
    const lower = Buffer.from(this.lowered.buffer, 0, length).toString('latin1');
    for (const { text, choice } of this.heads) {
      const isSelf = text.startsWith('.') && lower === text.slice(1);
      if (isSelf || lower.endsWith(text.slice(text.indexOf('.')))) return { choice };
    }
    for (const { text, choice } of this.tails) {
      if (lower.startsWith(text.slice(0, -1))) return { choice };
    }
    const source = Buffer.from(bytes.buffer, bytes.byteOffset, length).toString('latin1');
    for (const { regex, choice, captures } of this.plan.regexes) {
      const found = regex.exec(source);
      if (found !== null) return { choice, captures: { of: captures, groups: groupsOf(found) } };
    }
    return NO_MATCH;
  }
}

function longestFirst(patterns: readonly MapPattern[]): readonly MapPattern[] {
  const length = ({ text }: MapPattern) => text.replace(/^\*/, '').length;
  return [...patterns].sort((a, b) => length(b) - length(a));
}

/** A group that took no part is empty, as in nginx. */
function groupsOf(found: RegExpExecArray): Captures['current'] {
  const groups = new Map<number | string, Uint8Array>();
  const add = (group: number | string, text: string | undefined) =>
    groups.set(group, Buffer.from(text ?? '', 'latin1'));
  for (let group = 1; group < found.length; group++) add(group, found[group]);
  for (const [name, text] of Object.entries(found.groups ?? {})) add(name.toLowerCase(), text);
  return groups;
}
