/**
 * An access line in words: who answered, and what the fields leave open.
 *
 * Follows nginx's phases: limit_req, its delay, limit_conn, then the content, of an upstream or of
 * nginx itself. error_page can change an answer afterwards.
 */
import { parseThousandths, sumSecondsMs } from '../../parsers/bytes.js';
import { clientFindings } from './explain-client.js';
import { type AccessValues } from './explain-values.js';
import { type Explanation, type Finding, finding } from './explanation.js';

/** What became of the request. */
export function answerSummary(known: Explanation, values: AccessValues): string {
  const got = known.httpStatus === null ? 'an answer' : String(known.httpStatus);
  if (known.request === null || known.request.method === null) {
    return `Not a limit event: what came in was no HTTP request. nginx logged ${got}.`;
  }
  switch (known.source) {
    case 'limit_req':
      return `limit_req rejected this request. ${changedAnswer(known, 'limit_req')}`;
    case 'limit_conn': {
      const delayed = known.status === 'DELAYED' ? ', after limit_req had delayed it' : '';
      return `limit_conn rejected this request${delayed}. ${changedAnswer(known, 'limit_conn')}`;
    }
    case 'upstream':
      return `The upstream answered ${got}, and nginx passed it on. No limit rejected the request.`;
    case 'nginx':
      return known.status === null && known.limitConnStatus === null
        ? `nginx itself answered ${got}: no limit took a decision, no upstream answered. A return, a deny or a maintenance page does so.`
        : `nginx itself answered ${got}. The limits had let the request through, and no upstream answered.`;
    case 'unknown':
      return `The client got ${got}. The line does not tell who said so.`;
    default:
      return letThrough(known, values, got);
  }
}

function changedAnswer(known: Explanation, module: 'limit_req' | 'limit_conn'): string {
  const { httpStatus } = known;
  const rule = known.configuration?.rules.find((candidate) => candidate.module === module);
  const got = `The client got ${httpStatus ?? 'an answer'}`;
  if (rule !== undefined) {
    return rule.httpStatus === httpStatus
      ? `${got}, as ${module}_status says.`
      : `${got} instead of ${rule.httpStatus} (${module}_status): an error_page changed the answer.`;
  }
  if (httpStatus === 429 || httpStatus === 503) return `${got}.`;
  return `${got}: ${module}_status says so, or an error_page changed the answer.`;
}

function letThrough(known: Explanation, values: AccessValues, got: string): string {
  const { status, limitConnStatus } = known;
  if (status === 'DELAYED' && known.httpStatus === 499) {
    return 'The client left (499) while limit_req delayed the request, or soon after. The request stays charged.';
  }
  if (status === 'DELAYED') return `limit_req delayed this request. The client then got ${got}.`;
  if (status === 'REJECTED_DRY_RUN' || status === 'DELAYED_DRY_RUN') {
    const verb = status === 'REJECTED_DRY_RUN' ? 'rejected' : 'delayed';
    return `Dry run: limit_req would have ${verb} this request. The client got its normal answer, ${got}.`;
  }
  if (limitConnStatus === 'REJECTED_DRY_RUN') {
    return `Dry run: limit_conn would have rejected this request. The client got its normal answer, ${got}.`;
  }
  if (status === 'PASSED') return `limit_req let this request pass. The client got ${got}.`;
  if (limitConnStatus === 'PASSED')
    return `limit_conn let this request pass. The client got ${got}.`;
  return values.has('limit_req_status')
    ? `No limit took a decision on this request. The client got ${got}.`
    : `The client got ${got}. The line does not say what the limits decided.`;
}

/** The wait as the times of a delayed, proxied request leave it. */
export function delayEstimate(known: Explanation, values: AccessValues): string[] {
  if (known.status !== 'DELAYED') return [];
  const totalMs = millisecondsOf(values.get('request_time'), parseThousandths);
  const upstreamMs = millisecondsOf(values.get('upstream_response_time'), sumSecondsMs);
  if (totalMs < 0 || upstreamMs < 0) {
    return ['The delay is part of $request_time, not of $upstream_response_time.'];
  }
  return [
    `$request_time less $upstream_response_time: ${totalMs} − ${upstreamMs} = ${totalMs - upstreamMs} ms, nearly all of it the delay.`,
  ];
}

function millisecondsOf(
  text: string | null,
  parse: (bytes: Uint8Array, start: number, end: number) => number,
): number {
  const bytes = Buffer.from(text ?? '', 'latin1');
  return parse(bytes, 0, bytes.length);
}

/** What deserves a second look, and which field would tell more. */
export function answerFindings(
  known: Explanation,
  values: AccessValues,
  isRuleKnown: boolean,
  ambiguities: readonly string[],
): Finding[] {
  return [
    ...missingFields(known, values),
    ...rejectFindings(known),
    ...upstreamFindings(known),
    ...ruleFindings(known, isRuleKnown),
    ...ambiguities.map((text) => finding('ambiguous_format', `In this log_format ${text}.`)),
  ];
}

function missingFields(known: Explanation, values: AccessValues): Finding[] {
  const fields = ['limit_req_status', 'limit_conn_status', 'upstream_status'];
  const missing = fields.filter((name) => !values.has(name)).map((name) => `$${name}`);
  if (missing.length === 0 || known.request?.method == null) return [];
  if (known.source === 'unknown') {
    const message = `Log ${missing.join(', ')} to know who answered.`;
    return [finding('field_not_logged', message)];
  }
  if (values.has('limit_req_status')) return [];
  return [finding('field_not_logged', 'Log $limit_req_status to know what limit_req decided.')];
}

function rejectFindings(known: Explanation): Finding[] {
  const { status, limitConnStatus } = known;
  const found: Finding[] = [];
  if (status === 'REJECTED' || status === 'REJECTED_DRY_RUN') {
    const message =
      'An excess above burst and an exhausted zone are logged alike here. The error log tells them apart: ' +
      '"limiting requests", or "could not allocate node" in the same second.';
    found.push(finding('see_error_log', message));
  }
  const isLimited = (status !== null && status !== 'PASSED') || limitConnStatus === 'REJECTED';
  return isLimited ? [...found, ...clientFindings(known.client)] : found;
}

function upstreamFindings(known: Explanation): Finding[] {
  const { upstreamStatus, httpStatus, source } = known;
  if (upstreamStatus === null) return [];
  const answers = upstreamStatus.split(/[,:\s]+/).filter((part) => part !== '');
  const last = answers.at(-1)!;
  if (answers.length > 1) {
    const message = `nginx asked ${answers.length} upstream servers in turn: ${answers.join(', then ')}.`;
    return [finding('upstream_retried', message)];
  }
  if ((httpStatus === 502 || httpStatus === 504) && last === String(httpStatus)) {
    const message = `nginx writes ${httpStatus} into $upstream_status itself when an upstream fails: the field does not tell who said it.`;
    return [finding('gateway_error', message)];
  }
  if (source === 'limit_req' || source === 'limit_conn') {
    const message = `An upstream answered ${last} all the same: error_page led to a proxied location, or an internal redirect came before the limit.`;
    return [finding('redirected', message)];
  }
  return [];
}

function ruleFindings(known: Explanation, isRuleKnown: boolean): Finding[] {
  const { configuration, status } = known;
  if (configuration === null || known.request?.method == null) return [];
  if (!isRuleKnown) {
    const message =
      'The line does not tell which server and location answered: $server_name and $request would.';
    return [finding('rule_unknown', message)];
  }
  const hasLimit = configuration.rules.some((rule) => rule.module === 'limit_req');
  if (status === null || hasLimit) return [];
  const message =
    'limit_req took a decision, and no limit_req is found for this request in the configuration: a redirect led elsewhere, or the configuration is of another time.';
  return [finding('rule_not_found', message, configuration.path)];
}
