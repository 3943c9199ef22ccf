/**
 * What can be said of a zone's key without a request: who chooses it, can it be empty, how long.
 *
 * Follows a key expression through maps and geos down to nginx's own variables. Lengths are bytes
 * as nginx counts them.
 *
 * Not here: the key of one logged request (src/keys).
 */
import type { ConfWhere, GeoBlock, MapBlock, NginxConf } from '../../parsers/conf/model.js';
import { parseExpression, type Segment } from '../keys/expression.js';
import { placeText } from './conf-lines.js';
import { traitsOfVariable } from './variable-traits.js';

export interface Traits {
  /** Variables that the client fills with whatever it likes, and that are part of the value. */
  readonly free: ReadonlySet<string>;
  /** Variables of the client that choose between values which the configuration fixes. */
  readonly choice: ReadonlySet<string>;
  /** Places of a map where a client's own value chooses the empty one. */
  readonly emptyByChoice: readonly string[];
  /** When the value is empty, as clauses; none when it never is. */
  readonly empty: readonly string[];
  /** Follows from the client's address. */
  readonly isByAddress: boolean;
  readonly longestBytes: number;
  /** Values of very different lengths are to be expected. */
  readonly isMixed: boolean;
}

export const NO_TRAITS: Traits = {
  free: new Set(),
  choice: new Set(),
  emptyByChoice: [],
  empty: [],
  isByAddress: false,
  longestBytes: 0,
  isMixed: false,
};

/** Keys up to this length take a limit_req zone's smallest slot. */
export const SHORT_KEY_BYTES = 48;

/**
 * @param expression as in the configuration
 * @param hasNamelessServer whether a server without server_name is limited by this key
 */
export function keyTraits(
  expression: string,
  conf: Pick<NginxConf, 'maps' | 'geos'>,
  hasNamelessServer: boolean,
): Traits {
  return new KeyReader(conf, hasNamelessServer).expression(expression, undefined);
}

/** The map entry that an expression stands in: what its source is, and which names it sets. */
interface Scope {
  readonly source: Traits;
  readonly names: ReadonlySet<string>;
}

class KeyReader {
  readonly #maps: ReadonlyMap<string, MapBlock>;
  readonly #geos: ReadonlyMap<string, GeoBlock>;
  readonly #hasNamelessServer: boolean;
  /** Maps being read: nginx gives up on a cycle at run time. */
  readonly #open = new Set<string>();

  constructor(conf: Pick<NginxConf, 'maps' | 'geos'>, hasNamelessServer: boolean) {
    this.#maps = byLowerCase(conf.maps);
    this.#geos = byLowerCase(conf.geos);
    this.#hasNamelessServer = hasNamelessServer;
  }

  expression(text: string, scope: Scope | undefined): Traits {
    return joined(parseExpression(text).map((segment) => this.#segment(segment, scope)));
  }

  #segment(segment: Segment, scope: Scope | undefined): Traits {
    if (segment.kind === 'literal') return { ...NO_TRAITS, longestBytes: segment.text.length };
    if (segment.kind === 'capture') return captured(scope?.source);
    if (scope?.names.has(segment.name) === true) return captured(scope.source);
    return this.#variable(segment.name);
  }

  #variable(name: string): Traits {
    const map = this.#maps.get(name);
    const geo = this.#geos.get(name);
    if (map === undefined && geo === undefined) {
      return traitsOfVariable(name, this.#hasNamelessServer);
    }
    if (this.#open.has(name)) return NO_TRAITS;
    this.#open.add(name);
    const traits = map === undefined ? this.#geo(geo!) : this.#map(map);
    this.#open.delete(name);
    return traits;
  }

  #map(map: MapBlock): Traits {
    const source = this.expression(map.source, undefined);
    const guardsEmpty = map.entries.some(({ pattern, value }) => pattern === '' && value !== '');
    const valueOf = (value: string, scope: Scope | undefined): Traits => {
      const traits = this.expression(value, scope);
      // The source again is not empty here: that case has a line of its own.
      return guardsEmpty && sameExpression(value, map.source) ? { ...traits, empty: [] } : traits;
    };
    return chosen(source, [
      { value: map.defaultValue, where: map.where, traits: valueOf(map.defaultValue, undefined) },
      ...map.entries.map(({ pattern, isLiteral, value, where }) => {
        const isRegex = isLiteral !== true && pattern.startsWith('~');
        const scope = isRegex ? scopeOf(pattern, source) : undefined;
        return { value, where, traits: valueOf(value, scope) };
      }),
    ]);
  }

  #geo(geo: GeoBlock): Traits {
    const source = this.#variable(geo.source.toLowerCase());
    const all = [{ value: geo.defaultValue, where: geo.where }, ...geo.entries];
    const values = all.map(({ value, where }) => {
      return { value, where, traits: { ...NO_TRAITS, longestBytes: value.length } };
    });
    return chosen(source, values);
  }
}

interface Alternative {
  readonly value: string;
  readonly where: ConfWhere;
  readonly traits: Traits;
}

/** A value that is one of several, by a source. */
function chosen(source: Traits, values: readonly Alternative[]): Traits {
  const all = values.map(({ traits }) => traits);
  const isChoice = new Set(values.map(({ value }) => value)).size > 1;
  const byClient = isChoice ? [source.free, source.choice] : [];
  const literallyEmpty = values.filter(({ value }) => value === '');
  const isClients = byClient.some((variables) => variables.size > 0);
  const lengths = all.filter(({ longestBytes }) => longestBytes > 0);
  const hasShort = lengths.some(({ longestBytes }) => longestBytes <= SHORT_KEY_BYTES);
  return {
    free: union(all.map(({ free }) => free)),
    choice: union([...byClient, ...all.map(({ choice }) => choice)]),
    emptyByChoice: [
      ...(isClients ? literallyEmpty.map(({ where }) => placeText(where)) : []),
      ...all.flatMap(({ emptyByChoice }) => emptyByChoice),
    ],
    empty: unique([
      ...literallyEmpty.map(({ where }) => `${placeText(where)} gives ""`),
      ...all.flatMap(({ empty }) => empty),
    ]),
    isByAddress: (isChoice && source.isByAddress) || all.some((traits) => traits.isByAddress),
    // Not Math.max(...): a geo can have more networks than a call can have arguments.
    longestBytes: all.reduce((most, { longestBytes }) => Math.max(most, longestBytes), 0),
    isMixed:
      all.some((traits) => traits.isMixed) ||
      (hasShort && lengths.some(({ longestBytes }) => !Number.isFinite(longestBytes))),
  };
}

/** Parts one behind the other: empty only when all are. */
function joined(parts: readonly Traits[]): Traits {
  const canBeEmpty = parts.every(
    ({ empty, longestBytes }) => empty.length > 0 || longestBytes === 0,
  );
  return {
    free: union(parts.map(({ free }) => free)),
    choice: union(parts.map(({ choice }) => choice)),
    emptyByChoice: canBeEmpty ? parts.flatMap(({ emptyByChoice }) => emptyByChoice) : [],
    empty: canBeEmpty ? unique(parts.flatMap(({ empty }) => empty)) : [],
    isByAddress: parts.some(({ isByAddress }) => isByAddress),
    longestBytes: parts.reduce((sum, { longestBytes }) => sum + longestBytes, 0),
    isMixed: parts.some(({ isMixed }) => isMixed),
  };
}

/** A part of the source, by a group of a regular expression; taken not to be empty. */
function captured(source: Traits | undefined): Traits {
  if (source === undefined) return { ...NO_TRAITS, longestBytes: SHORT_KEY_BYTES };
  return { ...source, empty: [], emptyByChoice: [] };
}

/** `(.{1,48})` at the start: the way to cut a key. */
const CUT = /^~\*?\^(?:\(\?s\))?\((?:\?P?<\w+>)?\.\{\d*,(\d+)\}\)$/;

function scopeOf(pattern: string, source: Traits): Scope {
  const groups = pattern.matchAll(/\(\?(?:P?<|')([A-Za-z_]\w*)[>']/g);
  const names = new Set([...groups].map(([, name]) => name!.toLowerCase()));
  const cutBytes = CUT.exec(pattern)?.[1];
  if (cutBytes === undefined) return { source, names };
  const longestBytes = Math.min(source.longestBytes, Number(cutBytes));
  return { source: { ...source, longestBytes, isMixed: false }, names };
}

function sameExpression(a: string, b: string): boolean {
  return JSON.stringify(parseExpression(a)) === JSON.stringify(parseExpression(b));
}

function union(sets: readonly ReadonlySet<string>[]): ReadonlySet<string> {
  return new Set(sets.flatMap((set) => [...set]));
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}

function byLowerCase<T>(entries: Iterable<readonly [string, T]>): ReadonlyMap<string, T> {
  return new Map([...entries].map(([name, value]) => [name.toLowerCase(), value]));
}
