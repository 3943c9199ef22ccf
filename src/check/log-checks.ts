/**
 * Checks of what the logs tell about limits: access logs, their formats, and error logs.
 */
import type {
  AccessLogTarget,
  ConfWhere,
  ErrorLogTarget,
  LogLevel,
  RuleSet,
} from '../../parsers/conf/model.js';
import { beside, inHttp, insteadOf, placeText, word } from './conf-lines.js';
import { type Finding, finding } from './finding.js';
import {
  type LogUse,
  type MissingField,
  ReplayFields,
  type ReplayFormat,
  variablesOfFormat,
} from './replay-fields.js';
import { groupBy, type Level, levelsText, type Survey } from './survey.js';

export function checkLogs(survey: Survey): readonly Finding[] {
  if (survey.limitedLevels.length === 0) return [];
  const fields = new ReplayFields(survey);
  const format = fields.complete();
  return [
    ...lacking(survey, fields, format),
    ...withoutConnStatus(survey, format),
    ...logOff(survey, format),
    ...conditional(survey),
    ...errorLevel(survey),
    ...untellable(format),
  ];
}

/** An access log with what its format lacks for one level. */
interface Judged {
  readonly level: Level;
  /** null where no access_log is written: nginx then uses its own file, as combined. */
  readonly log: AccessLogTarget | null;
  readonly missing: readonly MissingField[];
}

function lacking(
  survey: Survey,
  replayFields: ReplayFields,
  format: ReplayFormat,
): readonly Finding[] {
  const { conf, limitedLevels } = survey;
  const judged = limitedLevels.flatMap((level): Judged[] => {
    if (level.rules.accessLogOffWhere !== undefined) return [];
    const best = bestLog(survey, replayFields, level);
    return best.missing.length === 0 ? [] : [best];
  });
  return groupBy(judged, ({ log }) => (log === null ? '' : placeText(log.where))).map((group) => {
    const { log, level } = group[0]!;
    const byName = new Map(
      group.flatMap((each) => each.missing).map((field) => [field.name, field]),
    );
    const fields = [...byName.values()];
    const name = log === null ? 'combined' : conf.logFormats.get(log.format)!.name;
    const what = log === null ? "nginx's own access log" : `access_log ${log.path}`;
    return finding('log-format-lacks-fields', {
      severity: fields.some((field) => field.isEssential) ? 'warning' : 'info',
      where: log?.where ?? firstLimitWhere(level.rules),
      message: `${what} (log_format ${name}) lacks ${fields.map((f) => `$${f.name}`).join(', ')} for a replay`,
      details: `${fields.map((field) => field.cost).join('; ')}.`,
      fix: logLines(format, log),
    });
  });
}

/** Of the logs that a request is written to, the one with the fewest fields missing. */
function bestLog(survey: Survey, replayFields: ReplayFields, level: Level): Judged {
  const { conf } = survey;
  const logs = level.rules.accessLogs.length === 0 ? [null] : level.rules.accessLogs;
  const judged = logs.map((log): Judged => {
    const use: LogUse = { level, writers: writersOf(survey, log) };
    const format = conf.logFormats.get(log?.format ?? 'combined')!;
    return { level, log, missing: replayFields.missing(use, format) };
  });
  const weight = ({ missing }: Judged): number =>
    missing.reduce((sum, { isEssential }) => sum + (isEssential ? 100 : 1), 0);
  return judged.reduce((best, other) => (weight(other) < weight(best) ? other : best));
}

function writersOf({ conf, levels }: Survey, log: AccessLogTarget | null): LogUse['writers'] {
  const writing = levels.filter(({ rules }) =>
    log === null
      ? rules.accessLogs.length === 0 && rules.accessLogOffWhere === undefined
      : rules.accessLogs.some(({ path }) => path === log.path),
  );
  const servers = new Set(writing.map(({ server }) => server));
  return conf.servers.filter((server) => servers.has(server));
}

/** The log_format, and an access_log that writes it beside what there is. */
function logLines(format: ReplayFormat, log: AccessLogTarget | null): readonly string[] {
  const path = logPath(log?.path ?? '');
  const line = `access_log ${word(path)} ${word(format.name)};`;
  return [
    ...(format.line === null ? [] : [inHttp(format.line)]),
    log === null ? inHttp(line) : beside(log.where, line),
  ];
}

/** A file beside the log there is; nginx's usual folder when that is none, or varies. */
function logPath(path: string): string {
  const slash = path.lastIndexOf('/');
  const folder = path.slice(0, slash + 1);
  const isFile = path !== '' && !path.startsWith('syslog:') && !folder.includes('$');
  return `${isFile ? folder : '/var/log/nginx/'}limitlens.log`;
}

function withoutConnStatus(survey: Survey, format: ReplayFormat): readonly Finding[] {
  const { conf, limitedLevels } = survey;
  const silent = limitedLevels.filter(({ rules }) => {
    if (rules.connLimits.length === 0 || rules.accessLogOffWhere !== undefined) return false;
    return !rules.accessLogs.some(({ format: name }) =>
      variablesOfFormat(conf.logFormats.get(name)!).includes('limit_conn_status'),
    );
  });
  return groupBy(silent, ({ rules }) => placeText(rules.connLimits[0]!.where)).map((levels) => {
    const { rules } = levels[0]!;
    return finding('limit-conn-without-status-log', {
      severity: 'warning',
      where: rules.connLimits[0]!.where,
      message: `limit_conn holds in ${levelsText(levels)}, but no access log there has $limit_conn_status`,
      fix: logLines(format, rules.accessLogs[0] ?? null),
    });
  });
}

function logOff(survey: Survey, format: ReplayFormat): readonly Finding[] {
  const off = survey.limitedLevels.flatMap((level) => {
    const where = level.rules.accessLogOffWhere;
    return where === undefined ? [] : [{ level, where }];
  });
  return groupBy(off, ({ where }) => placeText(where)).map((group) => {
    const { where } = group[0]!;
    const line = `access_log /var/log/nginx/limitlens.log ${word(format.name)};`;
    return finding('access-log-off-under-limit', {
      severity: 'warning',
      where,
      message: `access_log off, though ${levelsText(group.map(({ level }) => level))} is limited`,
      fix: [...(format.line === null ? [] : [inHttp(format.line)]), insteadOf(where, line)],
    });
  });
}

function conditional({ conf, limitedLevels }: Survey): readonly Finding[] {
  const levels = limitedLevels.filter(({ rules: { accessLogs } }) => {
    return accessLogs.length > 0 && accessLogs.every(({ condition }) => condition !== undefined);
  });
  const byCondition = levels.map((level) => ({ level, log: level.rules.accessLogs[0]! }));
  const found = groupBy(byCondition, ({ log }) => placeText(log.where)).map((group) => {
    const { log } = group[0]!;
    const line = `access_log ${word(log.path)} ${word(log.format)};`;
    return finding('conditional-access-log', {
      severity: 'warning',
      where: log.where,
      message: `requests under a limit are logged only if=${log.condition ?? ''} in ${levelsText(group.map(({ level }) => level))}`,
      fix: [insteadOf(log.where, line)],
    });
  });
  const inIf = conf.notes.filter(({ code }) => code === 'conditional-access-log');
  return [
    ...found,
    ...inIf.map(({ message, where }) => {
      return finding('conditional-access-log', { severity: 'info', where, message });
    }),
  ];
}

/** From the lowest on; a line is written when its level is not below the log's. */
const LEVELS = ['debug', 'info', 'notice', 'warn', 'error', 'crit', 'alert', 'emerg'];

/** ngx_http_limit_req_handler(): a delay is logged one level below a rejection. */
const DELAY_LEVEL: Readonly<Record<LogLevel, LogLevel>> = {
  error: 'warn',
  warn: 'notice',
  notice: 'info',
  info: 'info',
};

interface Hidden {
  readonly level: Level;
  readonly log: ErrorLogTarget | null;
  readonly lines: 'rejections' | 'delays';
  readonly needed: LogLevel;
}

function errorLevel({ limitedLevels }: Survey): readonly Finding[] {
  const hidden = limitedLevels.flatMap((level): Hidden[] => {
    const { rules } = level;
    const log = mostVerbose(rules.errorLogs);
    const has = rank(log?.level ?? 'error');
    const rejections = [
      ...(rules.limits.length > 0 ? [rules.limitReqLogLevel] : []),
      ...(rules.connLimits.length > 0 ? [rules.limitConnLogLevel] : []),
    ].filter((needed) => rank(needed) < has);
    const canDelay = rules.limits.some((limit) => limit.burstMilliReq > limit.delayMilliReq);
    const delay = DELAY_LEVEL[rules.limitReqLogLevel];
    if (rejections.length > 0) {
      const needed = lowest(canDelay ? [...rejections, delay] : rejections);
      return [{ level, log, lines: 'rejections', needed }];
    }
    return canDelay && rank(delay) < has ? [{ level, log, lines: 'delays', needed: delay }] : [];
  });
  const keyOf = ({ log, lines }: Hidden): string =>
    `${log === null ? '' : placeText(log.where)} ${lines}`;
  return groupBy(hidden, keyOf).map((group) => {
    const { level, log, lines } = group[0]!;
    const needed = lowest(group.map((each) => each.needed));
    const line = `error_log ${word(log?.path ?? '/var/log/nginx/error.log')} ${needed};`;
    const says =
      log === null
        ? 'no error_log is written, so its level is error'
        : `error_log has level ${log.level}`;
    return finding('error-log-level-hides', {
      severity: lines === 'rejections' ? 'warning' : 'info',
      where: log?.where ?? firstLimitWhere(level.rules),
      message: `${says}: ${lines} of ${levelsText(group.map((each) => each.level))} leave no line`,
      fix: [log === null ? inHttp(line) : insteadOf(log.where, line)],
    });
  });
}

function mostVerbose(logs: readonly ErrorLogTarget[]): ErrorLogTarget | null {
  return logs.reduce<ErrorLogTarget | null>(
    (best, log) => (best === null || rank(log.level) < rank(best.level) ? log : best),
    null,
  );
}

/** `debug_http` and its kin log all that debug does of their part. */
function rank(level: string): number {
  return Math.max(0, LEVELS.indexOf(level));
}

function lowest(levels: readonly LogLevel[]): LogLevel {
  return levels.reduce((low, level) => (rank(level) < rank(low) ? level : low));
}

function firstLimitWhere({ limits, connLimits }: RuleSet): ConfWhere {
  return (limits[0] ?? connLimits[0])!.where;
}

/** Keys that even the full format does not tell. */
function untellable(format: ReplayFormat): readonly Finding[] {
  return format.untellable.map(({ zone, why }) => {
    return finding('not-evaluated', { severity: 'info', where: zone.where, message: why });
  });
}
