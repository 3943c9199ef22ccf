/**
 * `limitlens check`: what is wrong, or easily misread, in the limits of an nginx configuration.
 *
 * nginx -t says whether nginx would start; this says whether the limits then do what they look
 * like. Pure: reads no file and no log, only what parsers/conf made of the configuration and, by
 * option, what a report saw of its zones.
 *
 * Not here: output (findings-text.ts).
 */
import type { NginxConf } from '../../parsers/conf/model.js';
import { type Finding, finding, SEVERITIES } from './finding.js';
import { checkKeys } from './key-checks.js';
import { checkLogs } from './log-checks.js';
import { checkRealIp } from './real-ip-checks.js';
import { checkRules } from './rule-checks.js';
import { type CheckOptions, type Survey, surveyConf } from './survey.js';
import { checkZones } from './zone-checks.js';

/**
 * @param options patienceMs: longest wait that clients put up with, 5000 by default; keysSeen:
 *   distinct keys by name of the zone, and how long they are, from a report
 * @returns findings, the most severe first, then by file and line
 */
export function checkConf(conf: NginxConf, options: CheckOptions = {}): readonly Finding[] {
  const survey = surveyConf(conf, options);
  const found = [
    ...checkKeys(survey),
    ...checkZones(survey),
    ...checkRules(survey),
    ...checkRealIp(survey),
    ...checkLogs(survey),
    ...notes(survey),
  ];
  return found.map(asText).sort(byWeight);
}

function notes({ conf }: Survey): readonly Finding[] {
  return conf.notes
    .filter(({ code }) => code !== 'conditional-access-log')
    .map(({ code, message, where }) =>
      finding('not-evaluated', { severity: 'info', where, message: `${message} (${code})` }),
    );
}

function byWeight(a: Finding, b: Finding): number {
  const severity = SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity);
  if (severity !== 0) return severity;
  const path = compare(a.where?.path ?? '', b.where?.path ?? '');
  if (path !== 0) return path;
  return (a.where?.line ?? 0) - (b.where?.line ?? 0) || compare(a.code, b.code);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A configuration is read as bytes, one character each; people and JSON want its characters. */
function asText(found: Finding): Finding {
  return {
    ...found,
    message: readable(found.message),
    why: readable(found.why),
    fix: found.fix === null ? null : readable(found.fix),
  };
}

function readable(text: string): string {
  // Where our own words have characters beyond a byte, the text is decoded already or plain.
  if (!/[\x80-\xff]/.test(text) || /[^\0-\xff]/.test(text)) return text;
  try {
    return utf8.decode(Buffer.from(text, 'latin1'));
  } catch {
    return text;
  }
}
