/**
 * Who answered 429 or 503 (and limits that answered with another code): by place, over time, with
 * examples and what there is to look at.
 *
 * Not here: how an answer is attributed (src/attribution/source.ts).
 */
import type { Filter } from '../store/filter.js';
import { findings, limits, type StoredFinding, type StoredLimits } from '../store/queries.js';
import {
  examplesByPlace,
  placeTotals,
  refusalsByHour,
  type PlaceExample,
  type PlaceTotal,
  type ResponseStep,
} from '../store/queries-analysis.js';
import type { Store } from '../store/store.js';

export interface SourcesInputs {
  readonly hours: readonly ResponseStep[];
  readonly examples: readonly PlaceExample[];
  readonly places: readonly PlaceTotal[];
  readonly limits: readonly StoredLimits[];
  readonly findings: readonly StoredFinding[];
}

export interface SourceRow {
  readonly instance: string;
  readonly server: string;
  readonly location: string;
  readonly status: number;
  /** limit_req, limit_req_zone_exhausted, limit_conn, limit_conn_zone_exhausted, upstream, nginx, unknown. */
  readonly source: string;
  /** $limit_req_status; empty where it is. */
  readonly limitReqStatus: string;
  readonly requests: number;
  readonly hours: readonly { timeMs: number; requests: number }[];
  /** The newest; paths without arguments. */
  readonly examples: readonly SourceExample[];
}

export interface SourceExample {
  readonly timeMs: number;
  readonly method: string;
  readonly path: string;
  readonly zone: string;
  readonly key: string;
  /** In requests; that of the limit which refused. */
  readonly excess: number;
}

export interface SourceFinding {
  readonly code: SourceFindingCode;
  readonly instance: string;
  readonly subject: string;
  readonly message: string;
}

export type SourceFindingCode =
  | 'single_private_key'
  | 'many_user_agents'
  | 'return_before_limit'
  | 'refusal_with_other_status'
  | 'source_unknown';

export interface SourcesAnalysis {
  readonly totals: readonly { instance: string; source: string; requests: number }[];
  readonly sources: readonly SourceRow[];
  readonly findings: readonly SourceFinding[];
  /** What the store cannot tell, and what would. */
  readonly unknowns: readonly string[];
}

const WHETHER_NAT = 'Whether one key is many clients behind one address (a NAT): ';
/** Whether logs were looked at for user agents, and had them. */
const UNKNOWN_AGENTS = {
  none: 'user agents are not stored. Give the access logs as well, with --conf: many agents on one address are many people.',
  lacking: 'a log that was given has no user agents. Log $http_user_agent.',
} as const;

/** What was found in logs beside the store. */
export interface AgentFindings {
  readonly findings: readonly SourceFinding[];
  /** Some log carries no user agents. */
  readonly isIncomplete: boolean;
}

/** @param examples per place, status and source */
export async function readSourcesInputs(
  store: Store,
  filter: Filter,
  examples: number,
): Promise<SourcesInputs> {
  return {
    hours: await refusalsByHour(store, filter),
    examples: await examplesByPlace(store, examples, filter),
    places: await placeTotals(store, filter),
    limits: await limits(store, filter),
    findings: await findings(store, filter),
  };
}

/** @param agents null where no logs were given */
export function analyseSources(
  inputs: SourcesInputs,
  agents: AgentFindings | null = null,
): SourcesAnalysis {
  const sources = rowsOf(inputs);
  const totals = new Map<string, { instance: string; source: string; requests: number }>();
  for (const { instance, source, requests } of sources) {
    const key = JSON.stringify([instance, source]);
    const known = totals.get(key) ?? { instance, source, requests: 0 };
    known.requests += requests;
    totals.set(key, known);
  }
  return {
    totals: [...totals.values()].sort((a, b) => b.requests - a.requests),
    sources,
    findings: [
      ...singlePrivateKeys(inputs.findings),
      ...(agents?.findings ?? []),
      ...returnsBeforeLimit(sources, inputs),
      ...otherStatuses(sources, inputs.limits),
      ...unknownSources(sources),
    ],
    unknowns:
      agents === null
        ? [WHETHER_NAT + UNKNOWN_AGENTS.none]
        : agents.isIncomplete
          ? [WHETHER_NAT + UNKNOWN_AGENTS.lacking]
          : [],
  };
}

function rowsOf({ hours, examples }: SourcesInputs): SourceRow[] {
  const groups = new Map<string, ResponseStep[]>();
  for (const step of hours) {
    const key = JSON.stringify([answerOf(step), step.limitReqStatus]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [step]);
    else group.push(step);
  }
  const rows = Array.from(groups.values(), (group): SourceRow => {
    const [{ instance, server, location, status, source, limitReqStatus }] = group as [
      ResponseStep,
    ];
    return {
      instance,
      server,
      location,
      status,
      source,
      limitReqStatus,
      requests: group.reduce((sum, step) => sum + step.requests, 0),
      hours: group.map(({ timeMs, requests }) => ({ timeMs, requests })),
      examples: examples
        .filter((example) => answerOf(example) === answerOf(group[0]!))
        .map(({ timeMs, requestMethod, path, zone, key, excessMilli }) => ({
          timeMs,
          method: requestMethod,
          path,
          zone,
          key,
          excess: excessMilli / 1000,
        })),
    };
  });
  return rows.sort((a, b) => b.requests - a.requests);
}

function answerOf(row: Omit<ResponseStep, 'limitReqStatus' | 'timeMs' | 'requests'>): string {
  return JSON.stringify([row.instance, row.server, row.location, row.status, row.source]);
}

function singlePrivateKeys(stored: readonly StoredFinding[]): SourceFinding[] {
  return stored
    .filter(({ code }) => code === 'single_private_key')
    .map(({ instance, subject, message }) => ({
      code: 'single_private_key',
      instance,
      subject,
      message,
    }));
}

interface PlacedRule {
  readonly server: string;
  readonly location: string;
  readonly status: number;
  readonly where: string;
}

/** The rules at a place, of each zone's newest configuration. */
function rulesAt(
  limits: readonly StoredLimits[],
  row: { instance: string; server: string; location: string },
): PlacedRule[] {
  const newest = new Map(
    limits.map((limit) => [JSON.stringify([limit.instance, limit.zone]), limit]),
  );
  return [...newest.values()]
    .filter(({ instance }) => instance === row.instance)
    .flatMap(({ rules }) => JSON.parse(rules) as PlacedRule[])
    .filter(({ server, location }) => server === row.server && location === row.location);
}

/** nginx answered by itself where a limit is in force, and no request ever got a limit's word. */
function returnsBeforeLimit(
  sources: readonly SourceRow[],
  { places, limits }: SourcesInputs,
): SourceFinding[] {
  return sources.flatMap((row): SourceFinding[] => {
    if (row.source !== 'nginx') return [];
    const [rule] = rulesAt(limits, row);
    const place = places.find(
      (total) =>
        total.instance === row.instance &&
        total.server === row.server &&
        total.location === row.location,
    );
    if (rule === undefined || place?.withoutStatus !== place?.requests) return [];
    return [
      {
        code: 'return_before_limit',
        instance: row.instance,
        subject: placeOf(row),
        message:
          `${placeOf(row)} answered ${row.status} ${row.requests} times, and its limit (${rule.where}) was never ` +
          'asked: a return comes before the limit, and such requests are not limited at all',
      },
    ];
  });
}

/** A refusal that ended with another code than limit_req_status: error_page, or a subrequest. */
function otherStatuses(
  sources: readonly SourceRow[],
  limits: readonly StoredLimits[],
): SourceFinding[] {
  return sources.flatMap((row): SourceFinding[] => {
    if (!row.source.startsWith('limit_req')) return [];
    const statuses = rulesAt(limits, row).map(({ status }) => status);
    const isOwn = statuses.length === 0 ? row.status >= 400 : statuses.includes(row.status);
    if (isOwn) return [];
    const expected = statuses.length === 0 ? '429 or 503' : [...new Set(statuses)].join(' or ');
    return [
      {
        code: 'refusal_with_other_status',
        instance: row.instance,
        subject: placeOf(row),
        message:
          `${row.requests} requests of ${placeOf(row)} were REJECTED and logged with ${row.status} instead of ` +
          `${expected}: error_page changed it, or a subrequest was refused. By status alone they look let through`,
      },
    ];
  });
}

function unknownSources(sources: readonly SourceRow[]): SourceFinding[] {
  return sources
    .filter(({ source }) => source === 'unknown')
    .map((row) => ({
      code: 'source_unknown',
      instance: row.instance,
      subject: placeOf(row),
      message:
        `who answered ${row.status} ${row.requests} times at ${placeOf(row)} is not in the log: ` +
        'log $limit_req_status, $limit_conn_status and $upstream_status',
    }));
}

function placeOf({ server, location }: { server: string; location: string }): string {
  return `${server === '' ? '(no name)' : server} ${location}`.trimEnd();
}
