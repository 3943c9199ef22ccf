/**
 * The zones and rules of a configuration that a log line is about.
 *
 * Server and location are found as nginx finds them (ngx_http_find_virtual_server(),
 * ngx_http_core_find_location(), through parsers/conf). Where a line does not tell them, every
 * rule of the zone comes into question, and none is said to be the one.
 *
 * Not here: judging whether rule and line fit each other (explain-check.ts).
 */
import { findRules, normalizeUri } from '../../parsers/conf/location.js';
import type {
  ConfWhere,
  ConnLimit,
  Limit,
  LimitConnZone,
  LimitReqZone,
  NginxConf,
  RuleSet,
  ServerConf,
} from '../../parsers/conf/model.js';
import { selectServer } from '../../parsers/conf/select-server.js';
import { formatWhere } from '../errors.js';
import { limitConnCapacityNodes, limitReqCapacityNodes } from '../limit-req/capacity.js';
import { readable } from './explain-request.js';
import { rateText } from './explain-sums.js';
import type { ExplainedRule, ExplainedZone } from './explanation.js';

/** $binary_remote_addr of IPv6: what most zones have for a key. */
const ADDRESS_KEY_BYTES = 16;

/** What a line tells about where its request went; latin1, null where it does not tell. */
export interface RequestPlace {
  /** $server_name, possibly empty. */
  readonly serverName: string | null;
  readonly host: string | null;
  readonly port: number | null;
  readonly path: string | null;
  /** The path is a subrequest's or $uri: decoded and normalised already. */
  readonly isNormalized: boolean;
}

/** The rules that a request met first, where limits are charged; undefined when that is open. */
export function findRuleSet(conf: NginxConf, place: RequestPlace): RuleSet | undefined {
  const server = findServer(conf, place);
  if (server === undefined) return undefined;
  if (server.locations.length === 0) return server.rules;
  if (place.path === null) return undefined;
  const uri = place.isNormalized ? place.path : normalizeUri(place.path, server.mergeSlashes);
  return uri === undefined ? undefined : findRules(server, uri);
}

function findServer(conf: NginxConf, place: RequestPlace): ServerConf | undefined {
  if (conf.servers.length <= 1) return conf.servers[0];
  const byHost =
    place.host === null ? undefined : selectServer(conf, place.host, place.port ?? undefined);
  if (place.serverName === null) return byHost;
  const named = conf.servers.filter((server) => (server.names[0] ?? '') === place.serverName);
  if (named.length <= 1) return named[0];
  return named.find((server) => server === byHost);
}

/** One `limit_req` or `limit_conn` line, with a rule set in which it is in force. */
export interface RuleUse<L> {
  readonly limit: L;
  readonly rules: RuleSet;
  readonly places: number;
  readonly isOfThisRequest: boolean | null;
}

export type ReqUse = RuleUse<Limit>;
export type ConnUse = RuleUse<ConnLimit>;

/** The limit_req lines of a zone; the request's own first. */
export function usesOfReqZone(conf: NginxConf, zone: string, own: RuleSet | undefined): ReqUse[] {
  const settings = (rules: RuleSet): string =>
    `${rules.limitReqStatus} ${rules.limitReqDryRun} ${rules.limitReqLogLevel}`;
  return collect(conf, zone, own, (rules) => rules.limits, settings);
}

/** The limit_conn lines of a zone; the request's own first. */
export function usesOfConnZone(conf: NginxConf, zone: string, own: RuleSet | undefined): ConnUse[] {
  const settings = (rules: RuleSet): string =>
    `${rules.limitConnStatus} ${rules.limitConnDryRun} ${rules.limitConnLogLevel}`;
  return collect(conf, zone, own, (rules) => rules.connLimits, settings);
}

/** Inherited lines are in many rule sets; those with equal settings beside them are one use. */
function collect<L extends { readonly zone: string; readonly where: ConfWhere }>(
  conf: NginxConf,
  zone: string,
  own: RuleSet | undefined,
  limitsOf: (rules: RuleSet) => readonly L[],
  settingsOf: (rules: RuleSet) => string,
): RuleUse<L>[] {
  const groups = new Map<string, { limit: L; sets: RuleSet[] }>();
  for (const rules of conf.ruleSets) {
    const limit = limitsOf(rules).find((candidate) => candidate.zone === zone);
    if (limit === undefined) continue;
    const key = `${formatWhere(limit.where)} ${settingsOf(rules)}`;
    const group = groups.get(key) ?? { limit, sets: [] };
    group.sets.push(rules);
    groups.set(key, group);
  }
  const isKnown = own !== undefined && limitsOf(own).some((limit) => limit.zone === zone);
  const uses = [...groups.values()].map(({ limit, sets }) => {
    const isOwn = isKnown && sets.includes(own);
    return {
      limit,
      rules: isOwn ? own : sets[0]!,
      places: sets.length,
      isOfThisRequest: isKnown ? isOwn : groups.size === 1 ? true : null,
    };
  });
  return uses.sort((a, b) => Number(b.isOfThisRequest) - Number(a.isOfThisRequest));
}

/** Those of the request itself when they are known, else all that come into question. */
export function candidates<L>(uses: readonly RuleUse<L>[]): readonly RuleUse<L>[] {
  return uses.filter((use) => use.isOfThisRequest !== false);
}

export function explainReqUse(use: ReqUse, waitMs: number | null): ExplainedRule {
  const { limit, rules } = use;
  const isNodelay = limit.delayMilliReq === Number.POSITIVE_INFINITY;
  return {
    module: 'limit_req',
    ...placeOf(use),
    burst: limit.burstMilliReq / 1000,
    delay: isNodelay ? 'nodelay' : limit.delayMilliReq / 1000,
    connections: null,
    httpStatus: rules.limitReqStatus,
    dryRun: rules.limitReqDryRun,
    logLevel: rules.limitReqLogLevel,
    delayMs: waitMs,
  };
}

export function explainConnUse(use: ConnUse): ExplainedRule {
  const { limit, rules } = use;
  return {
    module: 'limit_conn',
    ...placeOf(use),
    burst: null,
    delay: null,
    connections: limit.connections,
    httpStatus: rules.limitConnStatus,
    dryRun: rules.limitConnDryRun,
    logLevel: rules.limitConnLogLevel,
    delayMs: null,
  };
}

function placeOf(
  use: RuleUse<Limit | ConnLimit>,
): Pick<ExplainedRule, 'zone' | 'where' | 'server' | 'location' | 'places' | 'isOfThisRequest'> {
  return {
    zone: readable(use.limit.zone),
    where: readable(formatWhere(use.limit.where)),
    server: readable(use.rules.serverName),
    location: readable(use.rules.location),
    places: use.places,
    isOfThisRequest: use.isOfThisRequest,
  };
}

export function explainReqZone(zone: LimitReqZone): ExplainedZone {
  return {
    module: 'limit_req',
    name: readable(zone.name),
    key: readable(zone.keyExpression),
    sizeBytes: zone.sizeBytes,
    capacityKeys: limitReqCapacityNodes(zone.sizeBytes, ADDRESS_KEY_BYTES, zone.name.length),
    rate: rateText(zone.rateMilliRps),
    rateMilliRps: zone.rateMilliRps,
    where: readable(formatWhere(zone.where)),
  };
}

export function explainConnZone(zone: LimitConnZone): ExplainedZone {
  return {
    module: 'limit_conn',
    name: readable(zone.name),
    key: readable(zone.keyExpression),
    sizeBytes: zone.sizeBytes,
    capacityKeys: limitConnCapacityNodes(zone.sizeBytes, ADDRESS_KEY_BYTES, zone.name.length),
    rate: null,
    rateMilliRps: null,
    where: readable(formatWhere(zone.where)),
  };
}
