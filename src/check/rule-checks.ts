/**
 * Checks of the limits themselves: thresholds, inheritance, status, and what comes before them.
 */
import type { ConfWhere, ConnLimit, Limit } from '../../parsers/conf/model.js';
import {
  beside,
  connLimitLine,
  inHttp,
  insteadOf,
  limitLine,
  placeText,
  secondsText,
} from './conf-lines.js';
import { type Finding, finding, type FindingParts } from './finding.js';
import {
  groupBy,
  type Level,
  levelsText,
  type ListName,
  outerList,
  type Survey,
} from './survey.js';

export function checkRules(survey: Survey): readonly Finding[] {
  return [
    ...spacing(survey),
    ...longDelays(survey),
    ...notInherited(survey, 'limits'),
    ...notInherited(survey, 'connLimits'),
    ...returnFirst(survey),
    ...status503(survey),
    ...dryRun(survey),
  ];
}

/** A burst for a page with its images, or for a second's worth of requests if that is more. */
const USUAL_BURST = 5;

function spacing({ conf, reqUses }: Survey): readonly Finding[] {
  return reqUses.flatMap(({ limit }) => {
    if (limit.burstMilliReq > 0) return [];
    const { rateMilliRps } = conf.reqZones.get(limit.zone)!;
    const burstMilliReq = 1000 * Math.max(USUAL_BURST, Math.ceil(rateMilliRps / 1000));
    const gap = secondsText(Math.ceil(1_000_000 / rateMilliRps));
    const isNodelay = limit.delayMilliReq > 0;
    const what = Number.isFinite(limit.delayMilliReq) ? 'delay' : 'nodelay';
    const message = isNodelay
      ? `limit_req of zone "${limit.zone}" has ${what} but no burst: it refuses a second request within ${gap}`
      : `limit_req of zone "${limit.zone}" has no burst: it refuses a second request within ${gap}`;
    const parts: FindingParts = {
      severity: 'warning',
      where: limit.where,
      message,
      fix: [
        insteadOf(limit.where, limitLine({ ...limit, burstMilliReq, delayMilliReq: Infinity })),
      ],
    };
    return [finding(isNodelay ? 'nodelay-without-burst' : 'burst-zero', parts)];
  });
}

function longDelays({ conf, reqUses, patienceMs }: Survey): readonly Finding[] {
  return reqUses.flatMap(({ limit }) => {
    const { rateMilliRps } = conf.reqZones.get(limit.zone)!;
    const heldMilliReq = limit.burstMilliReq - limit.delayMilliReq;
    const longestMs = heldMilliReq > 0 ? Math.trunc((heldMilliReq * 1000) / rateMilliRps) : 0;
    if (longestMs <= patienceMs) return [];
    // The fewest requests to let pass at once, so that the last one waits no longer than that.
    const patientMilliReq = (patienceMs * rateMilliRps) / 1000;
    const delay = Math.ceil((limit.burstMilliReq - patientMilliReq) / 1000);
    const delayMilliReq = delay * 1000 >= limit.burstMilliReq ? Infinity : delay * 1000;
    const message =
      `limit_req of zone "${limit.zone}" can hold a request back for ${secondsText(longestMs)}, ` +
      `longer than ${secondsText(patienceMs)}`;
    return [
      finding('delay-longer-than-patience', {
        severity: 'warning',
        where: limit.where,
        message,
        fix: [insteadOf(limit.where, limitLine({ ...limit, delayMilliReq }))],
      }),
    ];
  });
}

function notInherited({ conf, levels }: Survey, name: ListName): readonly Finding[] {
  return levels.flatMap((level) => {
    const own = level.rules[name];
    const outer = outerList(conf, level, name);
    const first = own[0];
    if (first === undefined || own === outer) return [];
    // A list that has the zone again, with other thresholds, was written with the outer one in mind.
    const hidden = outer.filter(({ zone }) => own.every((limit) => limit.zone !== zone));
    if (hidden.length === 0) return [];
    const lines = hidden.map((limit) => `zone "${limit.zone}" (${placeText(limit.where)})`);
    const directive = name === 'limits' ? 'limit_req' : 'limit_conn';
    return [
      finding('limits-not-inherited', {
        severity: 'warning',
        where: first.where,
        message: `${levelsText([level])} has ${directive} lines of its own, so those of ${lines.join(', ')} do not hold there`,
        fix: hidden.map((limit) => beside(first.where, lineOf(limit))),
      }),
    ];
  });
}

function lineOf(limit: Limit | ConnLimit): string {
  return 'connections' in limit ? connLimitLine(limit) : limitLine(limit);
}

function returnFirst({ conf, limitedLevels }: Survey): readonly Finding[] {
  const answering = limitedLevels.flatMap((level) => {
    const where = level.rules.returnWhere;
    return where === undefined ? [] : [{ level, where }];
  });
  return groupBy(answering, ({ where }) => placeText(where)).map((group) => {
    const { where } = group[0]!;
    const ownLimits = group.filter(({ level }) => hasOwnLimits(conf, level));
    const levels = (ownLimits.length > 0 ? ownLimits : group).map(({ level }) => level);
    return finding('return-before-limit', {
      severity: ownLimits.length > 0 ? 'warning' : 'info',
      where,
      message: `this return answers before the limits of ${levelsText(levels)} are asked`,
    });
  });
}

function hasOwnLimits(conf: Survey['conf'], level: Level): boolean {
  return (['limits', 'connLimits'] as const).some((name) => {
    const list = level.rules[name];
    return list.length > 0 && list !== outerList(conf, level, name);
  });
}

interface Setting {
  readonly directive: string;
  readonly list: ListName;
}

const KINDS: readonly Setting[] = [
  { directive: 'limit_req', list: 'limits' },
  { directive: 'limit_conn', list: 'connLimits' },
];

function status503({ limitedLevels }: Survey): readonly Finding[] {
  return KINDS.flatMap(({ directive, list }) => {
    const levels = limitedLevels.filter(({ rules }) => {
      const isReq = list === 'limits';
      const status = isReq ? rules.limitReqStatus : rules.limitConnStatus;
      const isDryRun = isReq ? rules.limitReqDryRun : rules.limitConnDryRun;
      return rules[list].length > 0 && status === 503 && !isDryRun;
    });
    const where = levels[0]?.rules[list][0]?.where;
    if (where === undefined) return [];
    return [
      finding('default-status-503', {
        severity: 'info',
        where,
        message: `${directive} answers with 503 in ${levelsText(levels)}`,
        details: `Where a ${directive}_status 503 is written, change that line.`,
        fix: [inHttp(`${directive}_status 429;`)],
      }),
    ];
  });
}

function dryRun({ limitedLevels }: Survey): readonly Finding[] {
  return KINDS.flatMap(({ directive, list }) => {
    const levels = limitedLevels.filter(({ rules }) => {
      const isDryRun = list === 'limits' ? rules.limitReqDryRun : rules.limitConnDryRun;
      return rules[list].length > 0 && isDryRun;
    });
    return groupBy(levels, ({ rules }) => placeText(firstWhere(rules[list]))).map((group) => {
      const where = firstWhere(group[0]!.rules[list]);
      return finding('dry-run-on', {
        severity: 'info',
        where,
        message: `${directive} is under dry run in ${levelsText(group)}: it limits nothing`,
        fix: [`${directive}_dry_run off;  # instead of ${directive}_dry_run on`],
      });
    });
  });
}

function firstWhere(list: readonly (Limit | ConnLimit)[]): ConfWhere {
  return list[0]!.where;
}
