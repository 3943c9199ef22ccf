/**
 * Why one kept request was limited, in the words of `limitlens explain`.
 *
 * What the error log would have said of it is put together from what the store keeps, and so is the
 * part of the configuration that it is about; the explanation itself is that of ../report.
 */
import type { LogLevel, NginxConf, RuleSet } from '../../parsers/conf/model.js';
import type { LimitLine } from '../../parsers/error/error-line.js';
import { explainLimitLine } from '../report/explain-limits.js';
import { explanationText } from '../report/explain-text.js';
import type { Explanation } from '../report/explanation.js';
import type { FoundExample, StoredRule, StoredZone } from './examples.js';

const LEVEL: LogLevel = 'error';

/** Plain text of several lines; hostile characters are escaped. */
export function explainExample({ example, zone }: FoundExample): string {
  const { source } = example;
  if (source === 'limit_req' && example.excessMilli > 0) return explainLine('limiting_requests');
  if (source === 'limit_conn') return explainLine('limiting_connections');
  return `${OTHER[source] ?? 'What turned this request away is not known.'}\n`;

  function explainLine(kind: LimitLine['kind']): string {
    const conf = zone === undefined ? undefined : confOf(zone, example);
    return explanationText(asStored(explainLimitLine(lineOf(kind, example), conf, false)));
  }
}

/** Without what is made up here: a line's level, and where its zone is written. */
function asStored(explanation: Explanation): Explanation {
  const { configuration } = explanation;
  const known =
    configuration === null
      ? null
      : {
          ...configuration,
          path: 'as it was stored',
          zones: configuration.zones.map((zone) => ({ ...zone, where: 'zone' })),
        };
  return { ...explanation, level: null, pid: null, configuration: known };
}

const OTHER: Readonly<Record<string, string>> = {
  limit_req:
    'limit_req rejected this request. Its excess is not known: the log does not tell it, and the replay could not.',
  limit_req_zone_exhausted:
    'The memory of the zone was exhausted: nginx found no node for the key and refused the request, whatever its rate.',
  limit_conn_zone_exhausted:
    'The memory of the limit_conn zone was exhausted: nginx found no node for the key and refused the request.',
  upstream: 'The upstream said so; no limit of nginx had a part in it.',
  nginx: 'nginx itself said so, by a `return` or an error of its own; no limit had a part in it.',
  unknown:
    'The log does not tell who said so. `limitlens check` names the fields that log_format lacks.',
};

function lineOf(kind: LimitLine['kind'], example: FoundExample['example']): LimitLine {
  const { method, path, server, zone, excessMilli } = example;
  const isRequest = kind !== 'limiting_connections';
  return {
    kind,
    timeText: '',
    level: LEVEL,
    pid: 0,
    tid: 0,
    connection: null,
    truncated: false,
    status: 'REJECTED',
    dryRun: false,
    excessMilliReq: isRequest ? excessMilli : null,
    zone: latin1(zone),
    client: null,
    server: latin1(server),
    request: requestOf(latin1(method), latin1(path)),
    subrequest: null,
    upstream: null,
    host: null,
    referrer: null,
    ambiguous: false,
  };
}

function requestOf(method: string, path: string): LimitLine['request'] {
  return {
    raw: `${method} ${path}`,
    method: method === '' ? null : method,
    target: path,
    path,
    // They are not kept.
    args: null,
    protocol: null,
  };
}

/** Texts of the store are decoded; explanations start from bytes. */
function latin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/**
 * The part of the configuration that the store has: one zone and its rules. The server is made up
 * around the rule of the example's own place, so that this one is found.
 */
function confOf(
  zone: StoredZone,
  { zone: name, server, location }: FoundExample['example'],
): NginxConf {
  const ruleSets = zone.rules.map((rule, id) => ruleSetOf(rule, id, latin1(name)));
  const own = zone.rules.findIndex((rule) => rule.server === server && rule.location === location);
  const where = { path: 'store', line: 1 };
  const rules = ruleSets[own];
  return {
    path: where.path,
    reqZones: new Map([[latin1(name), { name: latin1(name), ...zone, where }]]),
    connZones: new Map(),
    servers:
      rules === undefined
        ? []
        : [{ ...EMPTY_SERVER, names: [latin1(server)], rules, where: rules.where }],
    ruleSets,
    ...{ logFormats: new Map(), maps: new Map(), geos: new Map() },
    ...{ accessLogs: [], errorLogs: [], notes: [] },
  };
}

const EMPTY_SERVER = {
  id: 0,
  listens: [],
  mergeSlashes: true,
  realIp: null,
  locations: [],
} as const;

function ruleSetOf(rule: StoredRule, id: number, zone: string): RuleSet {
  const [, path = rule.where, line = '1'] = /^(.*):(\d+)$/s.exec(rule.where) ?? [];
  const where = { path: latin1(path), line: Number(line) };
  const delayMilliReq = rule.delay === 'nodelay' ? Infinity : rule.delay * 1000;
  return {
    id,
    serverName: latin1(rule.server),
    location: latin1(rule.location),
    limits: [{ zone, burstMilliReq: rule.burst * 1000, delayMilliReq, where }],
    limitReqStatus: rule.status,
    limitReqDryRun: rule.dryRun,
    limitReqLogLevel: LEVEL,
    connLimits: [],
    limitConnStatus: 503,
    limitConnDryRun: false,
    limitConnLogLevel: LEVEL,
    accessLogs: [],
    errorLogs: [],
    where,
  };
}
