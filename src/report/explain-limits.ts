/**
 * Lines of limit_req and limit_conn about one request: rejected, delayed, in dry run or not.
 *
 * Sentences of ngx_http_limit_req_handler(), ngx_http_limit_conn_handler() and of the stream
 * module's limit_conn, which says the same without a request.
 */
import type { NginxConf } from '../../parsers/conf/model.js';
import type { LimitLine } from '../../parsers/error/error-line.js';
import { SOURCE, SOURCE_WORDS } from '../attribution/source.js';
import { quote } from '../errors.js';
import { delayMs } from '../limit-req/arithmetic.js';
import { checkBurst, checkDelay, checkSettings, usesThatReject } from './explain-check.js';
import { clientFindings } from './explain-client.js';
import { explainRequest, readable, readableOrNull, redact } from './explain-request.js';
import { type Lookup, lookUpConnZone, lookUpReqZone } from './explain-lookup.js';
import { type ReqUse, candidates } from './explain-rules.js';
import {
  burstBelow,
  burstSentence,
  delayExamples,
  delayFormula,
  delaySentence,
  excessSentence,
  impliedBurst,
  retryAfterSeconds,
  retryExamples,
  retryFormula,
  retrySentence,
  thousandths,
} from './explain-sums.js';
import { type BurstCheck, type Explanation, type Finding, blank, finding } from './explanation.js';

/** Explains a limit line, with what the configuration knows about it. */
export function explainLimitLine(
  line: LimitLine,
  conf: NginxConf | undefined,
  showArgs: boolean,
): Explanation {
  const fields = fieldsOf(line, showArgs);
  if (line.kind === 'limiting_connections') return explainConnections(line, fields, conf);
  const excess = line.excessMilliReq ?? 0;
  if (excess <= 0 || !Number.isSafeInteger(excess)) return explainForged(fields);
  return line.kind === 'limiting_requests'
    ? explainReject(line, fields, excess, conf)
    : explainDelay(line, fields, excess, conf);
}

function fieldsOf(line: LimitLine, showArgs: boolean): Explanation {
  return {
    ...blank(line.kind, ''),
    zone: readable(line.zone),
    client: readableOrNull(line.client),
    server: readableOrNull(line.server),
    host: readableOrNull(line.host),
    request: explainRequest(line.request, showArgs),
    subrequest: line.subrequest === null ? null : redact(line.subrequest, showArgs),
    upstream: line.upstream === null ? null : redact(line.upstream, showArgs),
    referrer: line.referrer === null ? null : redact(line.referrer, showArgs),
    status: line.status,
    excess: line.excessMilliReq === null ? null : line.excessMilliReq / 1000,
    findings: lineFindings(line),
  };
}

/** nginx never logs such an excess: it neither rejects nor delays a key without debt. */
function explainForged(fields: Explanation): Explanation {
  const summary = "A line in the form of limit_req, with an excess that nginx can't have written.";
  const message = 'nginx logs an excess above 0.000, and of 64 bits at most.';
  const findings = [...fields.findings, finding('impossible_excess', message)];
  return { ...fields, summary, excess: null, findings };
}

function lineFindings(line: LimitLine): Finding[] {
  const found: Finding[] = [];
  if (line.truncated) {
    const message =
      'nginx cuts lines at 2047 bytes, anywhere and unmarked. What stands before the cut is valid.';
    found.push(finding('truncated', message));
  }
  if (line.ambiguous) {
    const message =
      'The request can be read in more ways than one: error.log escapes nothing. ' +
      'Zone, client and server stand before it and are safe.';
    found.push(finding('ambiguous_request', message));
  }
  if (line.subrequest !== null) {
    const message = `The limit was met by the subrequest ${quote(redact(line.subrequest, false))}, not by the request itself.`;
    found.push(finding('subrequest', message));
  }
  return [...found, ...clientFindings(line.client)];
}

/** Sentences name a client only where the line does. */
function ofClient(line: LimitLine): string {
  return line.client === null ? 'a request' : `a request of ${readable(line.client)}`;
}

function explainReject(
  line: LimitLine,
  fields: Explanation,
  excess: number,
  conf: NginxConf | undefined,
): Explanation {
  const zone = quote(readable(line.zone));
  const above = `excess ${thousandths(excess)} in zone ${zone} is above burst`;
  const summary = line.dryRun
    ? `Dry run: limit_req would have rejected ${ofClient(line)}: ${above}. The client got its normal answer.`
    : `limit_req rejected ${ofClient(line)}: ${above}.`;
  const implied = impliedBurst(excess);
  const known: Explanation = {
    ...fields,
    summary,
    source: SOURCE_WORDS[line.dryRun ? SOURCE.none : SOURCE.limitReq] ?? null,
    impliedBurst: implied,
  };
  const facts = [
    excessSentence(excess),
    burstSentence(excess),
    'A rejected request is not charged: more of them do not put off the time to wait.',
  ];
  const over = excess - burstBelow(excess) * 1000;
  const withoutConf = {
    ...known,
    retryAfterFormula: retryFormula(over),
    arithmetic: [...facts, retryExamples(over)],
  };
  if (conf === undefined) return withoutConf;
  const found = lookUpReqZone(conf, line);
  if (found.zone === undefined) return withConf(withoutConf, found, null);
  const { uses } = found;
  const burst = burstInForce(uses, excess);
  const { rateMilliRps } = found.zone;
  const checked = checkBurst(uses, excess, implied);
  const explained: Explanation = {
    ...known,
    httpStatus: line.dryRun ? null : only(candidates(uses).map((use) => use.rules.limitReqStatus)),
    retryAfterSeconds: retryAfterSeconds(excess - burst, rateMilliRps),
    retryAfterFormula: retryFormula(excess - burst),
    arithmetic: [...facts, retrySentence(excess, burst, rateMilliRps)],
    findings: [...known.findings, ...(checked?.findings ?? []), ...checkSettings(line, uses)],
  };
  return withAnswer(withConf(explained, found, checked?.check ?? null), 'limit_req_status');
}

/** The burst of the one rule that fits, else the one that the line implies. */
function burstInForce(uses: readonly ReqUse[], excess: number): number {
  const fitting = usesThatReject(uses, excess).map((use) => use.limit.burstMilliReq);
  return only(fitting) ?? burstBelow(excess) * 1000;
}

function explainDelay(
  line: LimitLine,
  fields: Explanation,
  excess: number,
  conf: NginxConf | undefined,
): Explanation {
  const zone = quote(readable(line.zone));
  const within = `excess ${thousandths(excess)} in zone ${zone} is above delay and within burst`;
  const summary = line.dryRun
    ? `Dry run: limit_req would have delayed ${ofClient(line)}: ${within}. The client got its normal answer, at once.`
    : `limit_req delayed ${ofClient(line)}: ${within}. It was not rejected.`;
  const known = { ...fields, summary, delayFormula: delayFormula(excess) };
  const facts = [
    excessSentence(excess),
    `It was charged. Burst was ${Math.ceil(excess / 1000)} or more, delay below ${thousandths(excess)}.`,
  ];
  const waiting = line.dryRun
    ? []
    : ['The delay is part of $request_time, not of $upstream_response_time.'];
  const withoutConf = { ...known, arithmetic: [...facts, delayExamples(excess), ...waiting] };
  if (conf === undefined) return withoutConf;
  const found = lookUpReqZone(conf, line);
  if (found.zone === undefined) return withConf(withoutConf, found, null);
  const { uses } = found;
  const { rateMilliRps } = found.zone;
  const delays = candidates(uses).map((use) => use.limit.delayMilliReq);
  const delay = only(delays.filter((threshold) => threshold < excess));
  const explained: Explanation = {
    ...known,
    delayMs: delay === null ? null : delayMs(excess, delay, rateMilliRps),
    arithmetic: [
      ...facts,
      delay === null ? delayExamples(excess) : delaySentence(excess, delay, rateMilliRps),
      ...waiting,
    ],
    findings: [...known.findings, ...checkDelay(uses, excess), ...checkSettings(line, uses)],
  };
  return withConf(explained, found, null);
}

function explainConnections(
  line: LimitLine,
  fields: Explanation,
  conf: NginxConf | undefined,
): Explanation {
  const zone = quote(readable(line.zone));
  const full = `its key had all the connections that the limit on zone ${zone} allows`;
  const summary = line.dryRun
    ? `Dry run: limit_conn would have rejected ${ofClient(line)}: ${full}. The client got its normal answer.`
    : `limit_conn rejected ${ofClient(line)}: ${full}.`;
  const known: Explanation = {
    ...fields,
    summary,
    limitConnStatus: line.status,
    source: SOURCE_WORDS[line.dryRun ? SOURCE.none : SOURCE.limitConn] ?? null,
    arithmetic: [
      'A connection limit has no excess, no rate and no Retry-After to compute: room comes when one of the requests in progress ends.',
    ],
    findings: [...fields.findings, ...streamFindings(line)],
  };
  if (conf === undefined) return known;
  const found = lookUpConnZone(conf, line);
  const open = candidates(found.uses);
  const count = only(open.map((use) => use.limit.connections));
  const explained: Explanation = {
    ...known,
    httpStatus: line.dryRun ? null : only(open.map((use) => use.rules.limitConnStatus)),
    arithmetic:
      count === null
        ? known.arithmetic
        : [
            `limit_conn allows ${count}; this request would have been one more.`,
            ...known.arithmetic,
          ],
    findings: [...known.findings, ...checkSettings(line, found.uses)],
  };
  return withAnswer(withConf(explained, found, null), 'limit_conn_status');
}

function streamFindings(line: LimitLine): Finding[] {
  if (line.request !== null || line.truncated || line.client === null) return [];
  const message = 'There is no request in the line: it is of a stream server, not of http.';
  return [finding('stream_module', message)];
}

function withConf(
  explained: Explanation,
  found: Lookup<unknown, unknown>,
  burst: BurstCheck | null,
): Explanation {
  const { conf, zones, rules } = found;
  return {
    ...explained,
    findings: [...explained.findings, ...found.findings],
    configuration: { path: readable(conf.path), zones, rules, burst },
  };
}

function withAnswer(explained: Explanation, directive: string): Explanation {
  if (explained.httpStatus === null) return explained;
  const answer = `The client got ${explained.httpStatus} (${directive}), unless an error_page changed it.`;
  return { ...explained, summary: `${explained.summary} ${answer}` };
}

/** The value when all are the same. */
function only(values: readonly number[]): number | null {
  const [first] = values;
  return first !== undefined && values.every((value) => value === first) ? first : null;
}
