/**
 * Which requests that charge a zone the given logs cannot show.
 *
 * nginx counts a request in its zone whether or not it is logged. Where a limit is in force under
 * `access_log off`, under a log with `if=`, or writes to a log that was not given, a replay sees
 * fewer keys than nginx did: occupancy and evictions are then lower bounds.
 *
 * Not here: subrequests, which nginx charges and never logs unless log_subrequest is on; which
 * file is which log (src/pipeline/log-files.ts).
 */
import type { AccessLogTarget, ConfWhere, NginxConf, RuleSet } from '../../parsers/conf/model.js';

export interface LowerBound {
  readonly file: string;
  readonly line: number;
  readonly why: string;
}

/** Whether the log at this path, as the configuration writes it, is among those that were read. */
export type IsGiven = (path: string) => boolean;

/**
 * The reasons, by name of the zone; a zone without any is in no entry.
 *
 * @param confs configurations that were in force, in any order
 * @param kind of the zones
 */
export function lowerBounds(
  confs: readonly NginxConf[],
  isGiven: IsGiven,
  kind: 'limit_req' | 'limit_conn' = 'limit_req',
): ReadonlyMap<string, readonly LowerBound[]> {
  const byZone = new Map<string, Map<string, LowerBound>>();
  for (const rules of confs.flatMap((conf) => conf.ruleSets)) {
    // Neither a client's request nor a redirect reaches the limit behind a `return`.
    const limits = kind === 'limit_req' ? rules.limits : rules.connLimits;
    if (limits.length === 0 || rules.returnWhere !== undefined) continue;
    const reason = reasonOf(rules, isGiven);
    if (reason === null) continue;
    for (const { zone } of limits) {
      const known = byZone.get(zone) ?? new Map<string, LowerBound>();
      byZone.set(zone, known);
      const key = JSON.stringify([reason.file, reason.line, reason.why]);
      if (!known.has(key)) known.set(key, reason);
    }
  }
  return new Map(Array.from(byZone, ([zone, reasons]) => [zone, [...reasons.values()]]));
}

function reasonOf(rules: RuleSet, isGiven: IsGiven): LowerBound | null {
  const { accessLogs, accessLogOffWhere } = rules;
  if (accessLogOffWhere !== undefined) {
    return at(accessLogOffWhere, `access_log off: requests of ${placeOf(rules)} are in no log`);
  }
  if (accessLogs.length === 0) return null;
  const given = accessLogs.filter((log) => isGiven(log.path));
  if (given.some((log) => log.condition === undefined)) return null;
  const conditional = given[0];
  return conditional === undefined
    ? notGiven(accessLogs[0]!, rules)
    : at(
        conditional.where,
        `if=${conditional.condition ?? ''}: the log leaves out requests of ${placeOf(rules)}`,
      );
}

function notGiven(log: AccessLogTarget, rules: RuleSet): LowerBound {
  return at(log.where, `${log.path} was not given: it holds the requests of ${placeOf(rules)}`);
}

function at({ path, line }: ConfWhere, why: string): LowerBound {
  return { file: path, line, why };
}

function placeOf({ serverName, location }: RuleSet): string {
  const server = serverName === '' ? 'the server without a name' : `server ${serverName}`;
  return location === '' ? server : `location ${location} of ${server}`;
}
