/**
 * The configuration as the checks need it: which limit is in force where, and what is above what.
 *
 * NginxConf gives each server and location what is in force there, inherited or not. Here the way
 * back is found: lists of limits are shared by reference down to the levels that inherit them.
 */
import type {
  ConfWhere,
  ConnLimit,
  Limit,
  LimitConnZone,
  LimitReqZone,
  LocationNode,
  NginxConf,
  RuleSet,
  ServerConf,
} from '../../parsers/conf/model.js';
import { keyTraits, type Traits } from './key-traits.js';

/** What a report or a store knows of the keys of a zone. */
export interface KeysSeen {
  /** Distinct keys that were in use within the time the zone should remember. */
  readonly keys: number;
  readonly shortestKeyBytes?: number;
  readonly longestKeyBytes?: number;
}

export interface CheckOptions {
  /** The longest wait that clients put up with; 5000 by default. */
  readonly patienceMs?: number;
  /** By name of the zone. */
  readonly keysSeen?: ReadonlyMap<string, KeysSeen>;
}

/** A server or location in its place. */
export interface Level {
  readonly rules: RuleSet;
  readonly server: ServerConf;
  /** The rules one level up; undefined for a server. */
  readonly outer: RuleSet | undefined;
}

/** One line of limit_req (or limit_conn) and the levels that it is in force at. */
export interface Use<L extends Limit | ConnLimit> {
  readonly limit: L;
  readonly levels: readonly Level[];
}

export interface ZoneUse {
  readonly kind: 'limit_req' | 'limit_conn';
  readonly zone: LimitReqZone | LimitConnZone;
  readonly uses: readonly Use<Limit | ConnLimit>[];
  /** Of its key, under the servers that it is used in. */
  readonly traits: Traits;
}

export interface Survey {
  readonly conf: NginxConf;
  readonly patienceMs: number;
  readonly keysSeen: ReadonlyMap<string, KeysSeen>;
  readonly levels: readonly Level[];
  /** Levels where limit_req or limit_conn is in force. */
  readonly limitedLevels: readonly Level[];
  /** Lines of limit_req in force somewhere, in order of appearance. */
  readonly reqUses: readonly Use<Limit>[];
  readonly connUses: readonly Use<ConnLimit>[];
  readonly zones: readonly ZoneUse[];
}

const PATIENCE_MS = 5000;

export function surveyConf(conf: NginxConf, options: CheckOptions): Survey {
  const levels = conf.servers.flatMap((server) => [
    { rules: server.rules, server, outer: undefined },
    ...levelsOf(server, server.rules, server.locations),
  ]);
  const reqUses = usesOf(levels, (rules) => rules.limits);
  const connUses = usesOf(levels, (rules) => rules.connLimits);
  const zones: ZoneUse[] = [
    ...[...conf.reqZones.values()].map((zone) => zoneUse(conf, 'limit_req', zone, reqUses)),
    ...[...conf.connZones.values()].map((zone) => zoneUse(conf, 'limit_conn', zone, connUses)),
  ];
  return {
    conf,
    patienceMs: options.patienceMs ?? PATIENCE_MS,
    keysSeen: options.keysSeen ?? new Map(),
    levels,
    limitedLevels: levels.filter(
      ({ rules }) => rules.limits.length > 0 || rules.connLimits.length > 0,
    ),
    reqUses,
    connUses,
    zones,
  };
}

function levelsOf(
  server: ServerConf,
  outer: RuleSet,
  locations: readonly LocationNode[],
): readonly Level[] {
  return locations.flatMap(({ rules, children }) => [
    { rules, server, outer },
    ...levelsOf(server, rules, children),
  ]);
}

function usesOf<L extends Limit | ConnLimit>(
  levels: readonly Level[],
  listOf: (rules: RuleSet) => readonly L[],
): readonly Use<L>[] {
  const byLimit = new Map<L, Level[]>();
  for (const level of levels) {
    for (const limit of listOf(level.rules)) {
      const known = byLimit.get(limit);
      if (known === undefined) byLimit.set(limit, [level]);
      else known.push(level);
    }
  }
  return [...byLimit].map(([limit, at]) => ({ limit, levels: at }));
}

function zoneUse(
  conf: NginxConf,
  kind: ZoneUse['kind'],
  zone: ZoneUse['zone'],
  allUses: readonly Use<Limit | ConnLimit>[],
): ZoneUse {
  const uses = allUses.filter(({ limit }) => limit.zone === zone.name);
  const isNameless = uses.some(({ levels }) => levels.some(({ rules }) => rules.serverName === ''));
  return { kind, zone, uses, traits: keyTraits(zone.keyExpression, conf, isNameless) };
}

/** Lists of one kind; both are inherited in the same way. */
export type ListName = 'limits' | 'connLimits';

/**
 * The list that stands in `http`, as far as it can be told.
 *
 * It is one that two servers share, or one whose lines lie outside of the server that they are in
 * force for. Where every server has its own list, no rules hold http's, and it stays unknown.
 */
export function httpList(conf: NginxConf, name: ListName): readonly (Limit | ConnLimit)[] {
  for (const server of conf.servers) {
    const list = server.rules[name];
    const first = list[0];
    if (first === undefined) continue;
    const isShared = conf.servers.some((other) => other !== server && other.rules[name] === list);
    if (isShared || isOutside(conf, first.where, server)) return list;
  }
  return [];
}

function isOutside(conf: NginxConf, where: ConfWhere, server: ServerConf): boolean {
  if (where.path !== server.where.path) {
    // Zones stand in http only, so a file that has one is not included by a server.
    const zones = [...conf.reqZones.values(), ...conf.connZones.values()];
    return zones.some((zone) => zone.where.path === where.path);
  }
  if (where.line < server.where.line) return true;
  return conf.servers.some(
    (other) =>
      other.where.path === where.path &&
      other.where.line > server.where.line &&
      other.where.line <= where.line,
  );
}

/** The list that a level would inherit if it had none of its own. */
export function outerList(
  conf: NginxConf,
  level: Level,
  name: ListName,
): readonly (Limit | ConnLimit)[] {
  return level.outer === undefined ? httpList(conf, name) : level.outer[name];
}

/** For people: `location /api/ of server "a.example"`. */
export function levelText({ rules, server }: Level): string {
  const name = rules.serverName === '' ? `at line ${server.where.line}` : `"${rules.serverName}"`;
  return rules.location === '' ? `server ${name}` : `location ${rules.location} of server ${name}`;
}

/** Up to three levels by name, and how many more there are. */
export function levelsText(levels: readonly Level[]): string {
  const named = levels.slice(0, 3).map(levelText).join(', ');
  return levels.length > 3 ? `${named} and ${levels.length - 3} more` : named;
}

/** Groups in order of first appearance. */
export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): readonly T[][] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}
