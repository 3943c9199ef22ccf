/**
 * What a configuration knows about the zone of a limit line: the zone itself, the rules that use
 * it, and which of them the request was under.
 */
import type { LimitConnZone, LimitReqZone, NginxConf, RuleSet } from '../../parsers/conf/model.js';
import type { LimitLine } from '../../parsers/error/error-line.js';
import { formatWhere, quote } from '../errors.js';
import { delayMs } from '../limit-req/arithmetic.js';
import { readable } from './explain-request.js';
import {
  type ConnUse,
  type ReqUse,
  type RequestPlace,
  explainConnUse,
  explainConnZone,
  explainReqUse,
  explainReqZone,
  findRuleSet,
  usesOfConnZone,
  usesOfReqZone,
} from './explain-rules.js';
import {
  type ExplainedRule,
  type ExplainedZone,
  type Finding,
  type LimitModule,
  finding,
} from './explanation.js';

/** What the configuration says about the zone of a line. */
export interface Lookup<Z, U> {
  readonly conf: NginxConf;
  readonly zone: Z | undefined;
  readonly uses: readonly U[];
  readonly zones: readonly ExplainedZone[];
  readonly rules: readonly ExplainedRule[];
  readonly findings: readonly Finding[];
}

/** Zone and rules of a limit_req line. */
export function lookUpReqZone(conf: NginxConf, line: LimitLine): Lookup<LimitReqZone, ReqUse> {
  const zone = conf.reqZones.get(line.zone);
  if (zone === undefined) return nothingFound(conf, line, 'limit_req');
  if (zone.rateMilliRps <= 0) {
    const message = 'The rate overflows when nginx multiplies it by 1000: no time can be computed.';
    const findings = [finding('rate_overflows', message, readable(formatWhere(zone.where)))];
    return { conf, zone: undefined, uses: [], zones: [], rules: [], findings };
  }
  const own = findRuleSet(conf, placeOf(line));
  const uses = usesOfReqZone(conf, line.zone, own);
  const isDelay = line.kind === 'delaying_request';
  const rules = uses.map((use) => {
    const excess = line.excessMilliReq ?? 0;
    const waitMs = delayMs(excess, use.limit.delayMilliReq, zone.rateMilliRps);
    return explainReqUse(use, isDelay ? waitMs : null);
  });
  const findings = useFindings(line, own, uses);
  return { conf, zone, uses, zones: [explainReqZone(zone)], rules, findings };
}

/** Zone and rules of a limit_conn line. */
export function lookUpConnZone(conf: NginxConf, line: LimitLine): Lookup<LimitConnZone, ConnUse> {
  const zone = conf.connZones.get(line.zone);
  if (zone === undefined) return nothingFound(conf, line, 'limit_conn');
  const own = findRuleSet(conf, placeOf(line));
  const uses = usesOfConnZone(conf, line.zone, own);
  const findings = useFindings(line, own, uses);
  return {
    conf,
    zone,
    uses,
    zones: [explainConnZone(zone)],
    rules: uses.map(explainConnUse),
    findings,
  };
}

function nothingFound(conf: NginxConf, line: LimitLine, module: LimitModule): Lookup<never, never> {
  const message =
    `The configuration has no ${module}_zone ${quote(readable(line.zone))}. ` +
    'It is not the configuration of that time, or not of that server.';
  const findings = [finding('zone_unknown', message, readable(conf.path))];
  return { conf, zone: undefined, uses: [], zones: [], rules: [], findings };
}

function useFindings(
  line: LimitLine,
  own: RuleSet | undefined,
  uses: readonly { readonly isOfThisRequest: boolean | null }[],
): Finding[] {
  if (uses.length === 0) {
    const message = `No limit of the configuration uses zone ${quote(readable(line.zone))}.`;
    return [finding('zone_unused', message)];
  }
  if (own === undefined || uses.some((use) => use.isOfThisRequest === true)) return [];
  const message =
    "The request's own location does not use this zone: an internal redirect led to another one, or the configuration is of another time.";
  return [finding('rule_not_found', message)];
}

/** After X-Accel-Redirect or an intercepted error the limit was met in another location. */
function placeOf(line: LimitLine): RequestPlace {
  const { request, subrequest, truncated } = line;
  const isPathOpen =
    line.upstream !== null || line.ambiguous || (truncated && request?.protocol == null);
  const path = request?.method == null || isPathOpen ? null : request.path;
  return {
    serverName: line.server,
    host: line.host,
    port: null,
    path: subrequest ?? path,
    isNormalized: subrequest !== null,
  };
}
