/**
 * Lines of an access log: what the limits decided, and who answered.
 *
 * The decision is in $limit_req_status and $limit_conn_status, the answer in $status and
 * $upstream_status; src/attribution says what they mean together. An access line names no zone and
 * no excess: these are in the error log, or come out of a replay.
 *
 * Not here: which format a line has (explain.ts).
 */
import type { LineScanner } from '../../parsers/access/line-scanner.js';
import { lastStatus } from '../../parsers/bytes.js';
import type { NginxConf, RuleSet } from '../../parsers/conf/model.js';
import { splitRequest } from '../../parsers/error/request-context.js';
import { SOURCE_WORDS, attribute } from '../attribution/source.js';
import { answerFindings, answerSummary, delayEstimate } from './explain-answer.js';
import { AccessValues } from './explain-values.js';
import { explainRequest, readable, readableOrNull, redact } from './explain-request.js';
import {
  explainConnUse,
  explainConnZone,
  explainReqUse,
  explainReqZone,
  findRuleSet,
} from './explain-rules.js';
import {
  type ExplainedConfiguration,
  type ExplainedRequest,
  type Explanation,
  type StatusWord,
  blank,
} from './explanation.js';

const WORDS: ReadonlySet<string> = new Set<StatusWord>([
  'PASSED',
  'DELAYED',
  'REJECTED',
  'DELAYED_DRY_RUN',
  'REJECTED_DRY_RUN',
]);

/** Explains a line that `scanner` has just fitted. */
export function explainAccessLine(
  scanner: LineScanner,
  bytes: Uint8Array,
  conf: NginxConf | undefined,
  showArgs: boolean,
): Explanation {
  const values = new AccessValues(scanner, bytes);
  const own = conf === undefined ? undefined : findOwnRules(conf, values);
  const known: Explanation = {
    ...blank('access', ''),
    ...fieldsOf(values, showArgs),
    format: readable(scanner.format.name),
    source: sourceOf(values, own),
    configuration: conf === undefined ? null : configurationOf(conf, own),
  };
  return {
    ...known,
    zone: zoneOf(known),
    summary: answerSummary(known, values),
    arithmetic: delayEstimate(known, values),
    findings: answerFindings(known, values, own !== undefined, scanner.ambiguities),
  };
}

function fieldsOf(values: AccessValues, showArgs: boolean): Partial<Explanation> {
  const referrer = values.get('http_referer');
  return {
    time: values.get('time_local', 'time_iso8601', 'msec'),
    pid: numberOf(values.get('pid')),
    connection: numberOf(values.get('connection')),
    client: readableOrNull(values.get('remote_addr')),
    server: readableOrNull(values.get('server_name')),
    host: readableOrNull(values.get('host', 'http_host')),
    request: requestOf(values, showArgs),
    referrer: referrer === null ? null : redact(referrer, showArgs),
    status: wordOf(values.get('limit_req_status')),
    limitConnStatus: wordOf(values.get('limit_conn_status')),
    upstreamStatus: values.get('upstream_status'),
    httpStatus: numberOf(values.get('status')),
  };
}

function numberOf(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function wordOf(text: string | null): StatusWord | null {
  return text !== null && WORDS.has(text) ? (text as StatusWord) : null;
}

/** From $request, or put together from the variables that hold its parts. */
function requestOf(values: AccessValues, showArgs: boolean): ExplainedRequest | null {
  const whole = values.get('request');
  if (whole !== null) return explainRequest(splitRequest(whole), showArgs);
  const target = values.get('request_uri', 'uri', 'document_uri');
  const method = values.get('request_method');
  if (target === null) return null;
  const protocol = values.get('server_protocol');
  const line = `${method ?? 'GET'} ${target}${protocol === null ? '' : ` ${protocol}`}`;
  const request = explainRequest(splitRequest(line), showArgs);
  return request === null ? null : { ...request, method };
}

function findOwnRules(conf: NginxConf, values: AccessValues): RuleSet | undefined {
  return findRuleSet(conf, {
    serverName: values.has('server_name') ? (values.get('server_name') ?? '') : null,
    host: values.get('host', 'http_host'),
    port: numberOf(values.get('server_port')),
    ...pathOf(values),
  });
}

/** $uri only where there is nothing better: error_page and other redirects change it. */
function pathOf(values: AccessValues): { path: string | null; isNormalized: boolean } {
  const uri = values.get('request_uri');
  if (!values.has('request') && uri === null) {
    return { path: values.get('uri', 'document_uri'), isNormalized: true };
  }
  const request = splitRequest(
    values.has('request') ? (values.get('request') ?? '') : `GET ${uri}`,
  );
  return { path: request.method === null ? null : request.path, isNormalized: false };
}

function sourceOf(values: AccessValues, own: RuleSet | undefined): Explanation['source'] {
  const upstream = values.get('upstream_status');
  const code = attribute({
    httpStatus: numberOf(values.get('status')) ?? 0,
    isLimitReqRejected: values.get('limit_req_status') === 'REJECTED',
    isLimitReqKnown: values.has('limit_req_status'),
    isZoneExhausted: false,
    isLimitConnRejected: values.get('limit_conn_status') === 'REJECTED',
    isLimitConnKnown: values.has('limit_conn_status'),
    isConnZoneExhausted: false,
    mayBeLimitReq: own === undefined || own.limits.length > 0,
    mayBeLimitConn: own === undefined || own.connLimits.length > 0,
    upstreamStatus: values.has('upstream_status') ? lastUpstreamStatus(upstream) : -1,
  });
  return SOURCE_WORDS[code] ?? null;
}

/** 0 when no upstream answered. */
function lastUpstreamStatus(text: string | null): number {
  const bytes = Buffer.from(text ?? '', 'latin1');
  return Math.max(0, lastStatus(bytes, 0, bytes.length));
}

function configurationOf(conf: NginxConf, own: RuleSet | undefined): ExplainedConfiguration {
  const path = readable(conf.path);
  if (own === undefined) return { path, zones: [], rules: [], burst: null };
  const use = { rules: own, places: 1, isOfThisRequest: true };
  const reqZones = own.limits.flatMap((limit) => conf.reqZones.get(limit.zone) ?? []);
  const connZones = own.connLimits.flatMap((limit) => conf.connZones.get(limit.zone) ?? []);
  return {
    path,
    zones: [...reqZones.map(explainReqZone), ...connZones.map(explainConnZone)],
    rules: [
      ...own.limits.map((limit) => explainReqUse({ ...use, limit }, null)),
      ...own.connLimits.map((limit) => explainConnUse({ ...use, limit })),
    ],
    burst: null,
  };
}

/** The zone that decided, where the location has but one of that kind. */
function zoneOf(known: Explanation): string | null {
  const module = known.limitConnStatus?.startsWith('REJECTED') ? 'limit_conn' : 'limit_req';
  const decided = module === 'limit_conn' ? known.limitConnStatus : known.status;
  const zones = known.configuration?.zones.filter((zone) => zone.module === module) ?? [];
  return decided !== null && zones.length === 1 ? zones[0]!.name : null;
}
