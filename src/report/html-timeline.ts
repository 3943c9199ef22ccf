/**
 * What the page draws over time, asked of the store in steps that fit a chart.
 *
 * Steps are multiples of the store's buckets of 10 s; every list has one value for each step from
 * `fromMs` on. Rates are per second, excess in requests, nodes as they are. null is not known.
 */
import { BUCKET_SECONDS, inBuckets, type Filter } from '../store/filter.js';
import { limits, marks, type StoredMark } from '../store/queries.js';
import { zoneBuckets } from '../store/queries-analysis.js';
import type { Store } from '../store/store.js';
import type { ZoneReport } from './report.js';

export interface Timeline {
  readonly fromMs: number;
  readonly stepMs: number;
  readonly steps: number;
  /** Requests per second answered with 429, 503 or another refusal, by who gave it. */
  readonly sources: ReadonlyMap<string, readonly number[]>;
  /** By zoneName(); only zones that were asked for. */
  readonly zones: ReadonlyMap<string, ZoneTimeline>;
  readonly marks: readonly StoredMark[];
}

export interface ZoneTimeline {
  /** Requests per second by outcome. */
  readonly outcomes: ReadonlyMap<string, readonly number[]>;
  readonly excessMax: readonly (number | null)[];
  readonly nodes: readonly (number | null)[];
  readonly evictions: readonly number[];
  readonly evictionsInDebt: readonly number[];
  readonly rules: readonly TimelineRule[];
}

/** A limit_req line of the newest configuration. */
export interface TimelineRule {
  readonly server: string;
  readonly location: string;
  readonly burst: number;
  readonly delay: number | 'nodelay';
  readonly status: number;
  readonly dryRun: boolean;
  readonly where: string;
}

type ZoneOf = Pick<ZoneReport, 'instance' | 'zone' | 'kind'>;

const MOST_STEPS = 96;
const STEPS_S = [10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200];
const DAY_S = 86_400;

/** The shortest step by which a span makes a readable chart, in seconds. */
export function stepSeconds(spanMs: number): number {
  const least = spanMs / 1000 / MOST_STEPS;
  return STEPS_S.find((step) => step >= least) ?? Math.ceil(least / DAY_S) * DAY_S;
}

export function zoneName({ instance, zone, kind }: ZoneOf): string {
  return JSON.stringify([instance, kind, zone]);
}

/** @param span from the first bucket to the end of the last one @param zones those to be drawn */
export async function readTimeline(
  store: Store,
  filter: Filter,
  span: { readonly fromMs: number; readonly toMs: number },
  zones: readonly ZoneOf[],
): Promise<Timeline> {
  const stepS = stepSeconds(span.toMs - span.fromMs);
  const stepMs = stepS * 1000;
  const fromMs = Math.floor(span.fromMs / stepMs) * stepMs;
  const steps = Math.max(1, Math.ceil((span.toMs - fromMs) / stepMs));
  const grid: Grid = { fromMs, stepMs, steps };
  return {
    ...grid,
    sources: await sourceLines(store, filter, grid),
    zones: await zoneLines(store, filter, grid, zones),
    marks: await marks(store, filter),
  };
}

interface Grid {
  readonly fromMs: number;
  readonly stepMs: number;
  readonly steps: number;
}

/** The place of a time in the lists; outside of them for times that the grid does not have. */
function stepOf({ fromMs, stepMs }: Grid, timeMs: number): number {
  return Math.floor((timeMs - fromMs) / stepMs);
}

function zeros({ steps }: Grid): number[] {
  return new Array<number>(steps).fill(0);
}

function listOf(lists: Map<string, number[]>, name: string, grid: Grid): number[] {
  const known = lists.get(name);
  if (known !== undefined) return known;
  const list = zeros(grid);
  lists.set(name, list);
  return list;
}

const STEP_MS_SQL =
  'toUnixTimestamp(toStartOfInterval(bucket, toIntervalSecond({step:UInt32}))) * 1000';

async function sourceLines(
  store: Store,
  filter: Filter,
  grid: Grid,
): Promise<Map<string, number[]>> {
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  const rows = await store.query<{ source: string; timeMs: number; requests: number }>(
    `SELECT if(source = '', 'unknown', source) AS source, ${STEP_MS_SQL} AS timeMs,
       sum(responses.requests) AS requests
     FROM responses WHERE ${sql} AND (status IN (429, 503) OR responses.source != '')
     GROUP BY source, timeMs ORDER BY source, timeMs`,
    { ...params, step: grid.stepMs / 1000 },
  );
  const lists = new Map<string, number[]>();
  for (const { source, timeMs, requests } of rows) {
    listOf(lists, source, grid)[stepOf(grid, timeMs)]! += (requests * 1000) / grid.stepMs;
  }
  return lists;
}

interface OutcomeRow extends ZoneOf {
  readonly outcome: string;
  readonly timeMs: number;
  readonly requests: number;
  readonly excessMaxMilli: number;
}

async function zoneLines(
  store: Store,
  filter: Filter,
  grid: Grid,
  zones: readonly ZoneOf[],
): Promise<Map<string, ZoneTimeline>> {
  const asked = new Map<string, MutableZone>(zones.map((zone) => [zoneName(zone), empty(grid)]));
  const names = [...new Set(zones.map(({ zone }) => zone))];
  if (names.length === 0) return asked;
  const { sql, params } = inBuckets(filter, 'bucket', BUCKET_SECONDS);
  const rows = await store.query<OutcomeRow>(
    `SELECT instance, zone, kind, outcome, ${STEP_MS_SQL} AS timeMs,
       sum(zone_outcomes.requests) AS requests, max(excess_max_milli) AS excessMaxMilli
     FROM zone_outcomes WHERE ${sql} AND zone IN {zones:Array(String)}
     GROUP BY instance, zone, kind, outcome, timeMs`,
    { ...params, step: grid.stepMs / 1000, zones: names },
  );
  for (const row of rows) addOutcome(asked.get(zoneName(row)), row, grid);
  for (const row of await zoneBuckets(store, grid.stepMs / 1000, filter)) {
    const zone = asked.get(zoneName({ ...row, kind: 'limit_req' }));
    if (zone === undefined) continue;
    const step = stepOf(grid, row.timeMs);
    zone.nodes[step] = row.nodes;
    zone.evictions[step] = row.evictions - row.evictionsInDebt;
    zone.evictionsInDebt[step] = row.evictionsInDebt;
  }
  for (const row of await limits(store, filter)) {
    const zone = asked.get(zoneName({ ...row, kind: 'limit_req' }));
    if (zone !== undefined) zone.rules = JSON.parse(row.rules) as TimelineRule[];
  }
  return asked;
}

interface MutableZone {
  outcomes: Map<string, number[]>;
  excessMax: (number | null)[];
  nodes: (number | null)[];
  evictions: number[];
  evictionsInDebt: number[];
  rules: TimelineRule[];
}

function empty(grid: Grid): MutableZone {
  return {
    outcomes: new Map(),
    excessMax: new Array<null>(grid.steps).fill(null),
    nodes: new Array<null>(grid.steps).fill(null),
    evictions: zeros(grid),
    evictionsInDebt: zeros(grid),
    rules: [],
  };
}

function addOutcome(zone: MutableZone | undefined, row: OutcomeRow, grid: Grid): void {
  if (zone === undefined) return;
  const step = stepOf(grid, row.timeMs);
  listOf(zone.outcomes, row.outcome, grid)[step]! += (row.requests * 1000) / grid.stepMs;
  const excess = row.excessMaxMilli / 1000;
  zone.excessMax[step] = Math.max(zone.excessMax[step] ?? 0, excess);
}
