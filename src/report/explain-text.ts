/**
 * An explanation for a terminal: plain text, no colours, 80 columns where the words allow.
 *
 * Log content is hostile: whatever could drive a terminal or turn text around is escaped, in every
 * line, whichever field it came in with.
 */
import { quote } from '../errors.js';
import type { ExplainedRequest, ExplainedRule, ExplainedZone, Explanation } from './explanation.js';

const WIDTH = 80;
const LABEL_WIDTH = 12;
/** Longer than any value that is read with profit; the JSON output has all of it. */
const LONGEST_VALUE = 160;

/** What explainLine() gave, as text that ends with a newline. */
export function explanationText(explanation: Explanation): string {
  const { configuration } = explanation;
  const sections = [
    wrap(explanation.summary, '', ''),
    fieldLines(explanation),
    listSection('How it comes about', explanation.arithmetic),
    configuration === null ? [] : configurationLines(configuration),
    listSection(
      'Worth a look',
      explanation.findings.map(({ message, where }) =>
        where === null ? message : `${message} (${where})`,
      ),
    ),
  ].filter((lines) => lines.length > 0);
  return `${sections.map((lines) => lines.map(escapeLine).join('\n')).join('\n\n')}\n`;
}

function fieldLines(explanation: Explanation): string[] {
  const fields: readonly (readonly [string, string | number | null])[] = [
    ['kind', kindText(explanation)],
    ['status', statusText(explanation)],
    ['zone', quoted(explanation.zone)],
    ['excess', explanation.excess === null ? null : explanation.excess.toFixed(3)],
    ['burst', burstText(explanation)],
    ['delay', delayMsText(explanation)],
    ['retry after', retryText(explanation)],
    ['client', explanation.client],
    ['request', explanation.request === null ? null : requestText(explanation.request)],
    ['subrequest', quoted(explanation.subrequest)],
    ['server', serverText(explanation)],
    ['host', quoted(explanation.host)],
    ['upstream', upstreamText(explanation)],
    ['referrer', quoted(explanation.referrer)],
    ['answered by', explanation.source],
    ['logged', loggedText(explanation)],
    ['message', quoted(explanation.message)],
  ];
  return fields
    .filter(([, value]) => value !== null)
    .map(([label, value]) => `  ${label.padEnd(LABEL_WIDTH)}${value}`);
}

function kindText({ kind, format, mark, truncated }: Explanation): string {
  const detail = [
    format === null ? null : `log_format ${format}`,
    mark,
    truncated ? 'truncated' : null,
  ].filter((part) => part !== null);
  return detail.length === 0 ? kind : `${kind} (${detail.join(', ')})`;
}

function statusText({ kind, status, limitConnStatus, httpStatus }: Explanation): string | null {
  const parts = [
    status === null || kind === 'limiting_connections' ? null : `limit_req ${status}`,
    limitConnStatus === null ? null : `limit_conn ${limitConnStatus}`,
    httpStatus === null ? null : `HTTP ${String(httpStatus).padStart(3, '0')}`,
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join(', ');
}

function burstText({ impliedBurst, configuration }: Explanation): string | null {
  if (impliedBurst === null) return null;
  const burst = typeof impliedBurst === 'number' ? impliedBurst : impliedBurst.low;
  const check = configuration?.burst ?? null;
  if (check === null) return `${burst}, implied`;
  return `${burst}, implied; the configuration ${check.agrees ? 'agrees' : 'does not agree'}`;
}

function delayMsText({ delayMs, status }: Explanation): string | null {
  if (delayMs === null) return null;
  return status === 'DELAYED' ? `${delayMs} ms` : `${delayMs} ms, had this not been a dry run`;
}

function retryText({ retryAfterSeconds, retryAfterFormula }: Explanation): string | null {
  if (retryAfterSeconds !== null) return `${retryAfterSeconds} s`;
  return retryAfterFormula === null ? null : `${retryAfterFormula} s`;
}

function requestText(request: ExplainedRequest): string {
  const args = request.hasArgs ? `?${request.args ?? '…'}` : '';
  const target = bare(`${request.target}${args}`);
  const words = [request.method, target, request.protocol].filter((word) => word !== null);
  return request.method === null ? quote(request.target, LONGEST_VALUE) : words.join(' ');
}

function serverText({ server }: Explanation): string | null {
  if (server === null) return null;
  return server === '' ? '(no server_name)' : bare(server);
}

function upstreamText({ upstream, upstreamStatus }: Explanation): string | null {
  if (upstream === null) return upstreamStatus === null ? null : `answered ${upstreamStatus}`;
  return quoted(upstream);
}

function loggedText({ time, level, pid, connection }: Explanation): string | null {
  const parts = [
    time,
    level === null ? null : `[${level}]`,
    pid === null ? null : `pid ${pid}`,
    connection === null ? null : `connection ${connection}`,
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join(' ');
}

function configurationLines({
  path,
  zones,
  rules,
}: NonNullable<Explanation['configuration']>): string[] {
  const lines = [...zones.map(zoneText), ...rules.map(ruleText)];
  return lines.length === 0 ? [] : listSection(`Configuration (${path})`, lines);
}

function zoneText(zone: ExplainedZone): string {
  const rate = zone.rate === null ? '' : `, rate ${zone.rate}`;
  return `${zone.where}: ${zone.module}_zone ${zone.name}, key ${zone.key}, ${sizeText(zone.sizeBytes)} (${zone.capacityKeys} keys at most)${rate}`;
}

function sizeText(bytes: number): string {
  if (bytes % (1 << 20) === 0) return `${bytes >> 20}m`;
  return bytes % 1024 === 0 ? `${bytes / 1024}k` : `${bytes} bytes`;
}

function ruleText(rule: ExplainedRule): string {
  const limit = `limit_req ${rule.zone} burst=${rule.burst} ${delayText(rule)}`;
  const what = rule.module === 'limit_req' ? limit : `limit_conn ${rule.zone} ${rule.connections}`;
  const others = rule.places > 1 ? ` and ${rule.places - 1} more` : '';
  const place = `server ${rule.server === '' ? '""' : rule.server} ${rule.location}`.trimEnd();
  const rest = [
    `status ${rule.httpStatus}`,
    rule.dryRun ? 'dry run' : null,
    rule.delayMs === null ? null : `waits ${rule.delayMs} ms`,
    rule.isOfThisRequest === true ? 'this request' : null,
  ].filter((part) => part !== null);
  return `${rule.where}: ${what}, in ${place}${others}, ${rest.join(', ')}`;
}

function delayText({ delay }: ExplainedRule): string {
  return delay === 'nodelay' ? 'nodelay' : `delay=${delay}`;
}

function listSection(title: string, sentences: readonly string[]): string[] {
  if (sentences.length === 0) return [];
  return [title, ...sentences.flatMap((sentence) => wrap(sentence, '  - ', '    '))];
}

/** Breaks at spaces; a word longer than a line stays whole, so that it can be copied. */
function wrap(sentence: string, first: string, next: string): string[] {
  const lines: string[] = [];
  let line = first;
  let isEmpty = true;
  for (const word of sentence.split(' ')) {
    if (!isEmpty && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = next;
      isEmpty = true;
    }
    line += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return [...lines, line];
}

function quoted(value: string | null): string | null {
  return value === null ? null : quote(value, LONGEST_VALUE);
}

/** A value without quotes around it, where nothing in it asks for them. */
function bare(value: string): string {
  return /^[^\s"]+$/.test(value) && value.length <= LONGEST_VALUE
    ? value
    : quote(value, LONGEST_VALUE);
}

/** Controls, line separators, and marks that change the direction of text or hide in it. */
function escapeLine(line: string): string {
  return line.replace(
    /[\0-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
