/**
 * Puts the pieces of a key together: variables, maps and geos, and the maps behind those.
 *
 * A map or geo is evaluated from its sources where the log has them all; its own variable, if
 * logged, serves where it has not, since that may hold an address as raw bytes. `$name` of a
 * regular expression is known in the value beside it; elsewhere it must be logged, as nginx keeps
 * what the last match of any expression with that name has set.
 *
 * Not here: variables that are logged, or parts of what is logged (logged-variables.ts).
 */
import type { GeoBlock, MapBlock, NginxConf } from '../../parsers/conf/model.js';
import { compilePcre } from '../../parsers/conf/pcre.js';
import { parseExpression, type Segment } from './expression.js';
import { type GeoProxies, GeoValue } from './geo-value.js';
import { type LogContext, LoggedVariables } from './logged-variables.js';
import { type MapPattern, type MapRegex, MapValue } from './map-value.js';
import { type Network, Networks, parseNetwork, parseRange } from './networks.js';
import {
  AddressValue,
  Captures,
  CaptureValue,
  Fallback,
  Literal,
  RangeValue,
  RawAddressValue,
  Sequence,
  type ValueNode,
} from './value-node.js';

export interface KeyContext extends LogContext {
  readonly conf: Pick<NginxConf, 'maps' | 'geos'>;
  /** Named in `why`. */
  readonly zone?: string;
}

/** Why a value cannot be had. */
export interface Missing {
  /** Variables to log, without the dollar. */
  readonly fields: readonly string[];
  /** What else there is to say, as clauses. */
  readonly reasons: readonly string[];
}

export type Planned = ValueNode | Missing;

export function isMissing(planned: Planned): planned is Missing {
  return 'fields' in planned;
}

/** What `$1` and `$name` mean in the value beside a map's regular expression. */
interface Scope {
  readonly captures?: Captures;
  readonly names: ReadonlySet<string>;
  /** Clause for a `$1` that no group of this map stands behind. */
  readonly where: string;
}

const NO_SCOPE: Scope = { names: new Set(), where: 'the key' };

export class VariablePlanner {
  private readonly log: LoggedVariables;
  private readonly maps: ReadonlyMap<string, MapBlock>;
  private readonly geos: ReadonlyMap<string, GeoBlock>;
  private readonly planned = new Map<string, Planned>();

  constructor(context: KeyContext) {
    this.log = new LoggedVariables(context);
    this.maps = byLowerCase(context.conf.maps);
    this.geos = byLowerCase(context.conf.geos);
  }

  plan(expression: string): Planned {
    return this.planExpression(expression, NO_SCOPE);
  }

  private planExpression(expression: string, scope: Scope): Planned {
    const parts = parseExpression(expression).map((segment) => this.planSegment(segment, scope));
    const missing = parts.filter(isMissing);
    if (missing.length > 0) return joined(missing);
    const nodes = parts as readonly ValueNode[];
    return nodes.length === 1 ? nodes[0]! : new Sequence(nodes);
  }

  private planSegment(segment: Segment, scope: Scope): Planned {
    if (segment.kind === 'literal') return new Literal(segment.text);
    if (segment.kind === 'variable') {
      return scope.captures !== undefined && scope.names.has(segment.name)
        ? new CaptureValue(scope.captures, segment.name)
        : this.planVariable(segment.name);
    }
    if (scope.captures !== undefined) return new CaptureValue(scope.captures, segment.group);
    return because(`$${segment.group} in ${scope.where} is of a regular expression elsewhere`);
  }

  private planVariable(name: string): Planned {
    const known = this.planned.get(name);
    if (known !== undefined) return known;
    // Until it is planned; only a cycle, which nginx gives up on at run time, can see it.
    this.planned.set(name, because(`$${name} is defined by itself`));
    const planned = this.planNew(name);
    this.planned.set(name, planned);
    return planned;
  }

  private planNew(name: string): Planned {
    const map = this.maps.get(name);
    const geo = this.geos.get(name);
    if (map !== undefined || geo !== undefined) {
      const derived = map !== undefined ? this.planMap(map) : this.planGeo(geo!);
      const field = this.log.field(name);
      if (field === undefined) return derived;
      const asLogged = new RangeValue(field);
      return isMissing(derived) ? asLogged : new Fallback(derived, asLogged);
    }
    if (name === 'binary_remote_addr') return this.planAddress();
    const range = this.log.find(name);
    return range === undefined ? { fields: [name], reasons: [] } : new RangeValue(range);
  }

  private planAddress(): Planned {
    const text = this.log.find('remote_addr');
    if (text !== undefined) return new AddressValue(text);
    const raw = this.log.field('binary_remote_addr');
    return raw === undefined ? { fields: ['remote_addr'], reasons: [] } : new RawAddressValue(raw);
  }

  private planMap(map: MapBlock): Planned {
    const values: Planned[] = [
      this.planExpression(map.defaultValue, { ...NO_SCOPE, where: placeOf(map) }),
    ];
    const patterns: MapPattern[] = [];
    const regexes: MapRegex[] = [];
    for (const entry of map.entries) {
      const choice = values.length;
      if (entry.isLiteral !== true && entry.pattern.startsWith('~')) {
        const nocase = entry.pattern.startsWith('~*');
        const regex = compilePcre(entry.pattern.slice(nocase ? 2 : 1), { nocase });
        if (!(regex instanceof RegExp)) {
          return because(
            `"${entry.pattern}" of ${placeOf(entry, map)} has ${regex.unsupported}`,
            map.variable,
          );
        }
        const captures = new Captures();
        const scope = { captures, names: namesOf(regex), where: placeOf(entry, map) };
        values.push(this.planExpression(entry.value, scope));
        regexes.push({ regex, choice, captures });
      } else {
        values.push(this.planExpression(entry.value, { ...NO_SCOPE, where: placeOf(entry, map) }));
        patterns.push({ text: lowerAscii(entry.pattern), choice });
      }
    }
    const source = this.planExpression(map.source, { ...NO_SCOPE, where: placeOf(map) });
    const missing = [source, ...values].filter(isMissing);
    if (missing.length > 0) return joined(missing);
    return new MapValue({
      source: source as ValueNode,
      hostnames: map.hostnames,
      isVolatile: map.isVolatile,
      patterns,
      regexes,
      values: values as readonly ValueNode[],
    });
  }

  private planGeo(geo: GeoBlock): Planned {
    const source = this.planVariable(geo.source.toLowerCase());
    if (isMissing(source)) return source;
    const networks: Network[] = [];
    for (const [choice, { network }] of geo.entries.entries()) {
      const range = parseRange(network);
      const cidr = parseNetwork(network);
      if (geo.ranges && range !== undefined) {
        networks.push({ family: 4, ...range, rank: 0, choice });
      } else if (!geo.ranges && cidr !== undefined) {
        networks.push({ ...cidr, rank: cidr.prefix, choice });
      }
    }
    const proxies = this.planProxies(geo);
    if (proxies !== undefined && 'fields' in proxies) return proxies;
    return new GeoValue({
      source,
      networks: new Networks(networks),
      values: geo.entries.map(({ value }) => new Literal(value)),
      defaultValue: new Literal(geo.defaultValue),
      ...(proxies === undefined ? {} : { proxies }),
    });
  }

  private planProxies(geo: GeoBlock): GeoProxies | Missing | undefined {
    if (geo.proxies.length === 0) return undefined;
    const forwardedFor = this.log.find('http_x_forwarded_for');
    if (forwardedFor === undefined) return { fields: ['http_x_forwarded_for'], reasons: [] };
    const networks = geo.proxies.flatMap((text) => {
      const cidr = parseNetwork(text);
      return cidr === undefined ? [] : [{ ...cidr, rank: cidr.prefix, choice: 0 }];
    });
    return {
      networks: new Networks(networks),
      isRecursive: geo.proxyRecursive === true,
      forwardedFor,
    };
  }
}

function because(reason: string, ...fields: readonly string[]): Missing {
  return { fields, reasons: [reason] };
}

function joined(all: readonly Missing[]): Missing {
  return {
    fields: [...new Set(all.flatMap(({ fields }) => fields))],
    reasons: [...new Set(all.flatMap(({ reasons }) => reasons))],
  };
}

function placeOf({ where }: Pick<MapBlock, 'where'>, map?: MapBlock): string {
  const place = `${where.path}:${where.line}`;
  return map === undefined ? `the map at ${place}` : `map $${map.variable} at ${place}`;
}

/** Named groups are variables to nginx, whose names have no case. */
function namesOf(regex: RegExp): ReadonlySet<string> {
  const anything = new RegExp(`${regex.source}|`).exec('');
  return new Set(Object.keys(anything?.groups ?? {}).map((name) => name.toLowerCase()));
}

function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function byLowerCase<T>(entries: Iterable<readonly [string, T]>): ReadonlyMap<string, T> {
  return new Map([...entries].map(([name, value]) => [name.toLowerCase(), value]));
}
