/**
 * The report: who was limited, where and why, from the store's aggregates.
 *
 * Plain data, the same for `--format json`, the terminal and other views. Excess is in requests
 * with three decimals, times are epoch milliseconds, counts are requests.
 */
import {
  AGREEMENT_MEANINGS,
  EXPLAINED,
  type AgreementWord,
} from '../aggregate/agreement-classes.js';
import type { Filter } from '../store/filter.js';
import {
  agreementByZone,
  examples,
  findings,
  limits,
  lineTotals,
  sources429503,
  timeSpan,
  topKeys,
  unparsableSamples,
  zoneStateLatest,
  zoneTotals,
  type StoredExample,
  type StoredFinding,
  type ZoneTotal,
} from '../store/queries.js';
import type { Store } from '../store/store.js';

export interface ZoneReport {
  readonly instance: string;
  readonly zone: string;
  readonly kind: 'limit_req' | 'limit_conn';
  readonly keyExpression: string | null;
  readonly rateMilliRps: number | null;
  readonly sizeBytes: number | null;
  readonly passed: number;
  readonly delayed: number;
  readonly rejected: number;
  readonly delayedDryRun: number;
  readonly rejectedDryRun: number;
  readonly exhausted: number;
  readonly exhaustedDryRun: number;
  readonly skipped: number;
  readonly notReached: number;
  /** Let through with an excess of at least four fifths of the burst. */
  readonly nearLimit: number;
  readonly excessMax: number;
  /** Mean wait of the delayed ones. */
  readonly delayMeanMs: number;
  readonly nodes: number;
  readonly capacityNodes: number;
  readonly evictions: number;
  readonly evictionsInDebt: number;
  readonly admittedByEviction: number;
  readonly allocationFailures: number;
  readonly agreement: AgreementReport | null;
  readonly topKeys: readonly KeyReport[];
}

export interface AgreementReport {
  /** Requests whose outcome is logged. */
  readonly compared: number;
  readonly agree: number;
  readonly explained: number;
  /** Requests by class of disagreement, the most frequent first. */
  readonly classes: readonly {
    readonly class: string;
    readonly requests: number;
    readonly meaning: string;
  }[];
}

export interface KeyReport {
  readonly key: string;
  readonly passed: number;
  readonly delayed: number;
  readonly rejected: number;
  readonly delayedDryRun: number;
  readonly rejectedDryRun: number;
  readonly exhausted: number;
  readonly excessMax: number;
}

export interface SourceReport {
  readonly instance: string;
  readonly server: string;
  readonly location: string;
  readonly status: number;
  readonly source: string;
  readonly limitReqStatus: string;
  readonly requests: number;
}

export interface Report {
  readonly spans: readonly { instance: string; fromMs: number; toMs: number; requests: number }[];
  readonly zones: readonly ZoneReport[];
  readonly sources: readonly SourceReport[];
  readonly findings: readonly StoredFinding[];
  readonly examples: readonly StoredExample[];
  readonly lines: readonly { source: string; kind: string; reason: string; lines: number }[];
  readonly unparsable: readonly { source: string; offset: number; reason: string; raw: string }[];
}

export interface ReportOptions extends Filter {
  readonly keys: number;
}

/** Asks the store for everything a report shows. */
export async function makeReport(store: Store, options: ReportOptions): Promise<Report> {
  const { keys, ...filter } = options;
  const totals = await zoneTotals(store, filter);
  const agreement = await agreementByZone(store, filter);
  const states = await zoneStateLatest(store, filter);
  const inForce = await limits(store, filter);
  const zones: ZoneReport[] = [];
  for (const group of groupByZone(totals)) {
    const { instance, zone, kind } = group[0]!;
    const isOwn = (row: { instance: string; zone: string }): boolean =>
      row.instance === instance && row.zone === zone;
    const limit = kind === 'limit_req' ? inForce.filter(isOwn).at(-1) : undefined;
    const state = kind === 'limit_req' ? states.find(isOwn) : undefined;
    zones.push({
      instance,
      zone,
      kind,
      keyExpression: limit?.keyExpression ?? null,
      rateMilliRps: limit?.rateMilliRps ?? null,
      sizeBytes: limit?.sizeBytes ?? null,
      ...outcomesOf(group),
      nodes: state?.nodes ?? 0,
      capacityNodes: state?.capacityNodes ?? limit?.capacityNodes ?? 0,
      evictions: state?.evictions ?? 0,
      evictionsInDebt: state?.evictionsInDebt ?? 0,
      admittedByEviction: state?.admittedByEviction ?? 0,
      allocationFailures: state?.allocationFailures ?? 0,
      agreement: kind === 'limit_req' ? agreementOf(agreement.filter(isOwn)) : null,
      topKeys: kind === 'limit_req' ? await keysOf(store, zone, keys, { ...filter, instance }) : [],
    });
  }
  return {
    spans: await timeSpan(store, filter),
    zones,
    sources: await sources429503(store, filter),
    findings: await findings(store, filter),
    examples: await examples(store, 10, filter),
    lines: await lineTotals(store, filter),
    unparsable: await unparsableSamples(store, 5, filter),
  };
}

function groupByZone(totals: readonly ZoneTotal[]): ZoneTotal[][] {
  const groups = new Map<string, ZoneTotal[]>();
  for (const total of totals) {
    const name = JSON.stringify([total.instance, total.kind, total.zone]);
    groups.set(name, [...(groups.get(name) ?? []), total]);
  }
  return [...groups.values()];
}

function outcomesOf(
  group: readonly ZoneTotal[],
): Pick<
  ZoneReport,
  | 'passed'
  | 'delayed'
  | 'rejected'
  | 'delayedDryRun'
  | 'rejectedDryRun'
  | 'exhausted'
  | 'exhaustedDryRun'
  | 'skipped'
  | 'notReached'
  | 'nearLimit'
  | 'excessMax'
  | 'delayMeanMs'
> {
  const of = (outcome: string): number =>
    group.find((total) => total.outcome === outcome)?.requests ?? 0;
  const delayed = of('delayed');
  const delayMs = group.reduce((sum, total) => sum + total.delayMsSum, 0);
  return {
    passed: of('passed'),
    delayed,
    rejected: of('rejected'),
    delayedDryRun: of('delayed_dry_run'),
    rejectedDryRun: of('rejected_dry_run'),
    exhausted: of('exhausted'),
    exhaustedDryRun: of('exhausted_dry_run'),
    skipped: of('skipped'),
    notReached: of('not_reached'),
    nearLimit: group.reduce((sum, total) => sum + total.nearLimit, 0),
    excessMax: Math.max(...group.map((total) => total.excessMaxMilli)) / 1000,
    delayMeanMs: delayed === 0 ? 0 : Math.round(delayMs / delayed),
  };
}

function agreementOf(rows: readonly { class: string; requests: number }[]): AgreementReport | null {
  if (rows.length === 0) return null;
  const of = (word: AgreementWord): number => rows.find((row) => row.class === word)?.requests ?? 0;
  const classes = rows.filter((row) => row.class !== EXPLAINED);
  const all = classes.reduce((sum, row) => sum + row.requests, 0);
  return {
    compared: all - of('not_logged'),
    agree: of('agree'),
    explained: of('explained'),
    classes: classes
      .filter((row) => row.class !== 'agree')
      .map((row) => ({
        class: row.class,
        requests: row.requests,
        meaning: AGREEMENT_MEANINGS[row.class as AgreementWord] ?? '',
      })),
  };
}

async function keysOf(
  store: Store,
  zone: string,
  count: number,
  filter: Filter,
): Promise<KeyReport[]> {
  const rows = await topKeys(store, zone, count, filter);
  return rows.map(({ excessMaxMilli, ...row }) => ({
    key: row.key,
    passed: row.passed,
    delayed: row.delayed,
    rejected: row.rejected,
    delayedDryRun: row.delayedDryRun,
    rejectedDryRun: row.rejectedDryRun,
    exhausted: row.exhausted,
    excessMax: excessMaxMilli / 1000,
  }));
}
