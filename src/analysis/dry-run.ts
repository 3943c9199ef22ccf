/**
 * Whether the rules under dry run are safe to enforce: what they would have delayed and rejected.
 *
 * Counts are nginx's own words ($limit_req_status, error log) where they were logged, else the
 * replay's. A rule is one line of limit_req, wherever it is in force under dry run.
 *
 * Too little data is a finding of its own. That nobody would be rejected needs a sample: among n
 * requests without a reject the true share is below 3/n with 95 % confidence, so a limit of 0.1 %
 * needs 3000; never fewer than 1000, and an hour at least, since traffic comes in waves. That
 * clients would be rejected needs no more than to be seen: ten of them, above the limit, are enough.
 */
import { count } from '../report/table.js';
import type { DryRunKeys, KeysStep, OutcomeStep, RuleSpan } from '../store/queries-analysis.js';
import type { KeyTotal, StoredLimits } from '../store/queries.js';

export interface DryRunInputs {
  /** By hour. */
  readonly outcomes: readonly OutcomeStep[];
  readonly spans: readonly RuleSpan[];
  readonly keys: readonly DryRunKeys[];
  readonly keysByHour: readonly KeysStep[];
  readonly worstKeys: readonly KeyTotal[];
  readonly limits: readonly StoredLimits[];
  /** Requests by zone whose outcome no log told. */
  readonly notLogged?: readonly { instance: string; zone: string; requests: number }[];
}

export interface DryRunThresholds {
  /** 0.001 is 0.1 %. */
  readonly maxRejectedShare: number;
  /** Keys that may see a reject; Infinity for any number. */
  readonly maxKeys: number;
  readonly minRequests: number;
  readonly minSpanMs: number;
}

export const DEFAULT_THRESHOLDS: DryRunThresholds = {
  maxRejectedShare: 0.001,
  maxKeys: Infinity,
  minRequests: 1000,
  minSpanMs: 3_600_000,
};

export type DryRunVerdict = 'safe' | 'not_safe' | 'not_enough_data';

export interface DryRunRule {
  readonly instance: string;
  readonly zone: string;
  /** Where the rule holds and was asked. */
  readonly places: readonly { server: string; location: string }[];
  readonly keyExpression: string | null;
  /** `FILE:LINE` of its limit_req; null when the configuration in the store has none there. */
  readonly where: string | null;
  /** The newest configuration has the rule under dry run still. */
  readonly isInForce: boolean;
  /** First and last decision, to the bucket; null for none. */
  readonly fromMs: number | null;
  readonly toMs: number | null;
  /** Decisions under dry run; those of hours in which the rule was enforced are left out. */
  readonly requests: number;
  readonly wouldDelay: number;
  readonly wouldReject: number;
  readonly delayedShare: number;
  readonly rejectedShare: number;
  /** Of the whole zone, which other rules may share. */
  readonly keys: DryRunKeyCounts;
  readonly worstKeys: readonly { key: string; passed: number; delayed: number; rejected: number }[];
  readonly hours: readonly DryRunHour[];
  /** Requests of the zone whose outcome is the replay's word: $limit_req_status is not logged. */
  readonly notLogged: number;
  readonly verdict: DryRunVerdict;
  /** Why, in whole sentences. */
  readonly reasons: readonly string[];
}

export interface DryRunKeyCounts {
  /** At least so many: per minute the limited and the most frequent are kept. */
  readonly seen: number;
  readonly delayed: number;
  readonly rejected: number;
  /** At most this share, for the same reason. */
  readonly rejectedShare: number;
}

export interface DryRunHour {
  readonly timeMs: number;
  readonly requests: number;
  readonly wouldDelay: number;
  readonly wouldReject: number;
  readonly rejectedShare: number;
  /** Of the zone. */
  readonly keysRejected: number;
}

export interface DryRunAnalysis {
  readonly verdict: DryRunVerdict;
  readonly rules: readonly DryRunRule[];
  readonly differences: readonly string[];
}

/** What a dry run cannot show, for the reader to weigh. */
export const DIFFERENCES: readonly string[] = [
  'Retries: a client that is rejected comes again, often at once. Under dry run it got its answer ' +
    'and did not, so enforcement sees more requests than were counted.',
  'A delayed request is not delayed under dry run: the requests behind it came as if it had been ' +
    'answered at once, and clients that would not wait did not leave.',
  'What would have been rejected reached the backend, and its load and answer times include it.',
  'A rejected request raises no debt in either mode, so the counts themselves carry over.',
];

/** Rejects from which on a share is no accident of a single client's burst. */
const TELLING_REJECTS = 10;
const CONFIDENCE_FACTOR = 3;

export function analyseDryRun(inputs: DryRunInputs, thresholds: DryRunThresholds): DryRunAnalysis {
  const rules = linesUnderDryRun(inputs).map((line) => analyseRule(line, inputs, thresholds));
  return { verdict: overall(rules), rules, differences: DIFFERENCES };
}

/** One unsafe rule settles it; then one that is not known well enough; no rule is no data. */
function overall(rules: readonly DryRunRule[]): DryRunVerdict {
  if (rules.some(({ verdict }) => verdict === 'not_safe')) return 'not_safe';
  const isKnown = rules.length > 0 && rules.every(({ verdict }) => verdict === 'safe');
  return isKnown ? 'safe' : 'not_enough_data';
}

interface Place {
  readonly instance: string;
  readonly zone: string;
  readonly server: string;
  readonly location: string;
}

interface ConfiguredRule extends Place {
  readonly dryRun: boolean;
  readonly where: string;
}

/** Places that one line of limit_req holds for; without a known line, a place alone. */
interface RuleLine {
  readonly instance: string;
  readonly zone: string;
  readonly where: string | null;
  readonly isInForce: boolean;
  readonly places: readonly Place[];
}

function linesUnderDryRun({ outcomes, limits }: DryRunInputs): RuleLine[] {
  const configured = newest(limits);
  const asked = new Set(
    outcomes.filter(({ outcome }) => isDecision(outcome)).map((row) => nameOf(row)),
  );
  const seen = outcomes.filter(({ outcome }) => outcome.endsWith('_dry_run'));
  const places = new Map<string, Place>(
    [...configured.filter((rule) => rule.dryRun && asked.has(nameOf(rule))), ...seen].map(
      ({ instance, zone, server, location }) => {
        const place = { instance, zone, server, location };
        return [nameOf(place), place];
      },
    ),
  );
  const lines = new Map<string, RuleLine & { places: Place[] }>();
  for (const [name, place] of places) {
    const rule = configured.find((each) => nameOf(each) === name);
    const where = rule?.where ?? null;
    const isInForce = rule?.dryRun ?? false;
    const { instance, zone } = place;
    const key = JSON.stringify([instance, zone, where ?? name, isInForce]);
    const line = lines.get(key);
    if (line === undefined) lines.set(key, { instance, zone, where, isInForce, places: [place] });
    else line.places.push(place);
  }
  return [...lines.values()];
}

/** The rules of each zone's newest configuration. */
function newest(limits: readonly StoredLimits[]): ConfiguredRule[] {
  const byZone = new Map(limits.map((row) => [JSON.stringify([row.instance, row.zone]), row]));
  return [...byZone.values()].flatMap(({ instance, zone, rules }) =>
    (JSON.parse(rules) as Omit<ConfiguredRule, 'instance' | 'zone'>[]).map((rule) => ({
      ...rule,
      instance,
      zone,
    })),
  );
}

function analyseRule(
  { instance, zone, where, isInForce, places }: RuleLine,
  inputs: DryRunInputs,
  thresholds: DryRunThresholds,
): DryRunRule {
  const isOfZone = (row: { instance: string; zone: string }): boolean =>
    row.instance === instance && row.zone === zone;
  const names = new Set(places.map(nameOf));
  const rows = inputs.outcomes.filter((row) => names.has(nameOf(row)));
  const hours = hoursOf(rows, inputs.keysByHour.filter(isOfZone));
  const requests = sum(hours, (hour) => hour.requests);
  const wouldDelay = sum(hours, (hour) => hour.wouldDelay);
  const wouldReject = sum(hours, (hour) => hour.wouldReject);
  const spans = inputs.spans.filter((row) => names.has(nameOf(row)));
  const fromMs = Math.min(...spans.map((span) => span.fromMs));
  const toMs = Math.max(...spans.map((span) => span.toMs));
  const keys = keysOf(inputs.keys.find(isOfZone));
  const rejectedShare = ratio(wouldReject, requests);
  const spanMs = spans.length === 0 ? 0 : toMs - fromMs;
  const facts = { requests, wouldReject, rejectedShare, keysRejected: keys.rejected, spanMs };
  return {
    instance,
    zone,
    places: places.map(({ server, location }) => ({ server, location })),
    keyExpression: inputs.limits.findLast(isOfZone)?.keyExpression ?? null,
    where,
    isInForce,
    fromMs: spans.length === 0 ? null : fromMs,
    toMs: spans.length === 0 ? null : toMs,
    requests,
    wouldDelay,
    wouldReject,
    delayedShare: ratio(wouldDelay, requests),
    rejectedShare,
    keys,
    worstKeys: inputs.worstKeys.filter(isOfZone).map((row) => ({
      key: row.key,
      passed: row.passed,
      delayed: row.delayedDryRun,
      rejected: row.rejectedDryRun + row.exhausted,
    })),
    hours,
    notLogged: sum((inputs.notLogged ?? []).filter(isOfZone), (row) => row.requests),
    ...judge(facts, thresholds),
  };
}

function isDecision(outcome: string): boolean {
  return outcome !== 'skipped' && outcome !== 'not_reached';
}

const ENFORCED = new Set(['delayed', 'rejected', 'exhausted']);

/** Hours in which the rule was enforced tell nothing of a dry run. */
function hoursOf(rows: readonly OutcomeStep[], keys: readonly KeysStep[]): DryRunHour[] {
  const byHour = new Map<number, OutcomeStep[]>();
  for (const row of rows) {
    if (!isDecision(row.outcome)) continue;
    const known = byHour.get(row.timeMs);
    if (known === undefined) byHour.set(row.timeMs, [row]);
    else known.push(row);
  }
  const enforced = [...byHour].filter(([, decisions]) =>
    decisions.some(({ outcome }) => ENFORCED.has(outcome)),
  );
  for (const [timeMs] of enforced) byHour.delete(timeMs);
  return Array.from(byHour, ([timeMs, decisions]) => {
    const of = (...outcomes: string[]): number =>
      sum(decisions, (row) => (outcomes.includes(row.outcome) ? row.requests : 0));
    const wouldReject = of('rejected_dry_run', 'exhausted_dry_run');
    const requests = sum(decisions, (row) => row.requests);
    return {
      timeMs,
      requests,
      wouldDelay: of('delayed_dry_run'),
      wouldReject,
      rejectedShare: ratio(wouldReject, requests),
      keysRejected: keys.find((row) => row.timeMs === timeMs)?.keysRejected ?? 0,
    };
  });
}

function keysOf(row: DryRunKeys | undefined): DryRunKeyCounts {
  const { keys: seen, keysDelayed: delayed, keysRejected: rejected } = row ?? NO_KEYS;
  return { seen, delayed, rejected, rejectedShare: ratio(rejected, seen) };
}

const NO_KEYS = { keys: 0, keysDelayed: 0, keysRejected: 0 };

interface Facts {
  readonly requests: number;
  readonly wouldReject: number;
  readonly rejectedShare: number;
  readonly keysRejected: number;
  readonly spanMs: number;
}

function judge(
  facts: Facts,
  thresholds: DryRunThresholds,
): Pick<DryRunRule, 'verdict' | 'reasons'> {
  const against = objections(facts, thresholds);
  const isTelling = facts.wouldReject >= TELLING_REJECTS;
  const lacking = gaps(facts, thresholds);
  if (against.length > 0 && (isTelling || lacking.length === 0)) {
    return { verdict: 'not_safe', reasons: against };
  }
  if (lacking.length > 0) return { verdict: 'not_enough_data', reasons: [...against, ...lacking] };
  return {
    verdict: 'safe',
    reasons: [
      `${count(facts.wouldReject)} of ${count(facts.requests)} requests would have been rejected (${percent(facts.rejectedShare)}), ` +
        `and ${percent(thresholds.maxRejectedShare)} are allowed.`,
    ],
  };
}

function objections(facts: Facts, { maxRejectedShare, maxKeys }: DryRunThresholds): string[] {
  const reasons: string[] = [];
  if (facts.rejectedShare > maxRejectedShare) {
    reasons.push(
      `${count(facts.wouldReject)} of ${count(facts.requests)} requests would have been rejected (${percent(facts.rejectedShare)}), ` +
        `more than the ${percent(maxRejectedShare)} allowed.`,
    );
  }
  if (facts.keysRejected > maxKeys) {
    reasons.push(
      `${facts.keysRejected} keys would have seen a reject, more than the ${maxKeys} allowed.`,
    );
  }
  return reasons;
}

function gaps(facts: Facts, thresholds: DryRunThresholds): string[] {
  const { maxRejectedShare, minRequests, minSpanMs } = thresholds;
  const forShare = maxRejectedShare > 0 ? Math.ceil(CONFIDENCE_FACTOR / maxRejectedShare) : 0;
  const needed = minRequests === 0 ? 0 : Math.max(minRequests, forShare);
  const reasons: string[] = [];
  if (facts.requests < needed) {
    reasons.push(
      `${facts.requests} requests are too few to tell ${percent(maxRejectedShare)} of them: ${needed} are needed.`,
    );
  }
  if (facts.spanMs < minSpanMs) {
    reasons.push(
      `They span ${Math.round(facts.spanMs / 60_000)} min, and traffic comes in waves: ` +
        `${Math.round(minSpanMs / 60_000)} min are needed.`,
    );
  }
  return reasons;
}

function nameOf({ instance, zone, server, location }: Place): string {
  return JSON.stringify([instance, zone, server, location]);
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

function sum<T>(items: readonly T[], valueOf: (item: T) => number): number {
  return items.reduce((total, item) => total + valueOf(item), 0);
}
