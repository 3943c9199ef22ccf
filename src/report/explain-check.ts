/**
 * Does the line fit the configuration? With old logs the two are often not of one time.
 *
 * Each check speaks only when no rule that comes into question allows the line.
 */
import type { LogLevel } from '../../parsers/conf/model.js';
import type { LimitLine } from '../../parsers/error/error-line.js';
import { formatWhere } from '../errors.js';
import { readable } from './explain-request.js';
import { type ReqUse, type RuleUse, candidates } from './explain-rules.js';
import { burstBelow, requests, thousandths } from './explain-sums.js';
import { type BurstCheck, type Finding, type ImpliedBurst, finding } from './explanation.js';

/** A delay is logged one level below limit_req_log_level, info being the lowest. */
const DELAY_LEVEL: Readonly<Record<LogLevel, LogLevel>> = {
  error: 'warn',
  warn: 'notice',
  notice: 'info',
  info: 'info',
};

/** Rules under which nginx could have rejected this excess, other rules' debts included. */
export function usesThatReject(uses: readonly ReqUse[], excessMilliReq: number): ReqUse[] {
  const highest = Math.max(...uses.map((use) => use.limit.burstMilliReq));
  return candidates(uses).filter(
    ({ limit }) => limit.burstMilliReq < excessMilliReq && excessMilliReq <= highest + 1000,
  );
}

/** Compares the configured burst with the implied one; null where no rule uses the zone. */
export function checkBurst(
  uses: readonly ReqUse[],
  excessMilliReq: number,
  implied: ImpliedBurst,
): { check: BurstCheck; findings: Finding[] } | null {
  const open = candidates(uses);
  const bursts = new Set(open.map((use) => use.limit.burstMilliReq));
  const [first] = open;
  if (first === undefined) return null;
  const configured = bursts.size === 1 ? first.limit.burstMilliReq / 1000 : null;
  const fitting = usesThatReject(uses, excessMilliReq);
  const check = { configured, implied, agrees: fitting.length > 0 };
  const impliedText = String(burstBelow(excessMilliReq));
  if (fitting.length === 0) {
    const said = [...bursts].map(requests).join(' or ');
    return {
      check,
      findings: [
        finding(
          'burst_differs',
          `The configuration says burst=${said}, the line says ${impliedText}. ` +
            'It is not the configuration of that time, or not of that server.',
          readable(formatWhere(first.limit.where)),
        ),
      ],
    };
  }
  const isOwn = fitting.some(({ limit }) => requests(limit.burstMilliReq) === impliedText);
  return { check, findings: isOwn ? [] : [sharedZoneFinding(fitting[0]!)] };
}

function sharedZoneFinding(use: ReqUse): Finding {
  return finding(
    'zone_has_several_bursts',
    `This rule has burst=${requests(use.limit.burstMilliReq)}; the debt in the zone was built ` +
      'up under a rule with a larger one. They share the zone, so they share the debt.',
    readable(formatWhere(use.limit.where)),
  );
}

/** Whether a delayed excess fits between delay= and burst. */
export function checkDelay(uses: readonly ReqUse[], excessMilliReq: number): Finding[] {
  const open = candidates(uses);
  const excess = thousandths(excessMilliReq);
  const found: Finding[] = [];
  const [first] = open;
  if (first === undefined) return found;
  const where = readable(formatWhere(first.limit.where));
  if (open.every(({ limit }) => limit.burstMilliReq < excessMilliReq)) {
    const said = requests(Math.max(...open.map(({ limit }) => limit.burstMilliReq)));
    const least = Math.ceil(excessMilliReq / 1000);
    const message = `The configuration says burst=${said}, under which ${excess} is rejected. The line says delayed: burst was ${least} or more.`;
    found.push(finding('burst_differs', message, where));
  }
  if (open.every(({ limit }) => limit.delayMilliReq >= excessMilliReq)) {
    const { delayMilliReq } = first.limit;
    const said = Number.isFinite(delayMilliReq) ? `delay=${requests(delayMilliReq)}` : 'nodelay';
    const message = `The configuration says ${said}, under which an excess of ${excess} is not delayed.`;
    found.push(finding('delay_differs', message, where));
  }
  return found;
}

/** Dry run and log level, as the line shows them, against the rules. */
export function checkSettings(line: LimitLine, uses: readonly RuleUse<unknown>[]): Finding[] {
  const open = candidates(uses);
  const isConn = line.kind === 'limiting_connections';
  const found: Finding[] = [];
  if (open.length === 0) return found;
  const isDryRun = (use: RuleUse<unknown>): boolean =>
    isConn ? use.rules.limitConnDryRun : use.rules.limitReqDryRun;
  if (open.every((use) => isDryRun(use) !== line.dryRun)) {
    const message = `The line is ${line.dryRun ? '' : 'not '}of a dry run, the configuration says ${line.dryRun ? 'none' : 'dry run'}.`;
    found.push(finding('dry_run_differs', message));
  }
  const levels = [...new Set(open.map((use) => levelOf(line, use)))];
  if (!levels.includes(line.level as LogLevel)) {
    const message = `The line has level ${line.level}, the configuration would give ${levels.join(' or ')}.`;
    found.push(finding('log_level_differs', message));
  }
  return found;
}

function levelOf(line: LimitLine, use: RuleUse<unknown>): LogLevel {
  if (line.kind === 'limiting_connections') return use.rules.limitConnLogLevel;
  const level = use.rules.limitReqLogLevel;
  return line.kind === 'delaying_request' ? DELAY_LEVEL[level] : level;
}
