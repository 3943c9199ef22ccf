/**
 * What a request to the API chooses: a time, values of variables, the width of a chart.
 *
 * Times are epoch milliseconds, `now`, `now-15m` (s, m, h, d), `first` or `last`: the begin and end of
 * what the store holds. Without any it is all that the store holds.
 */
import { VARIABLES } from '../../dashboards/catalogue/variables.js';
import type { TimeRange } from '../../dashboards/expand.js';
import { HttpError } from '../http/route.js';
import { BUCKET_SECONDS, MINUTE_SECONDS } from '../store/filter.js';
import type { Choice } from './panel-statement.js';

/** Longer lists of values than anybody picks by hand. */
const MOST_VALUES = 200;
const MOST_POINTS = 1000;
const DEFAULT_POINTS = 240;
/** nginx was first released later than that. */
const EARLIEST_MS = Date.UTC(2000, 0);
const LATEST_MS = Date.UTC(2100, 0);

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Steps that fall on whole minutes, hours and days. */
const STEPS_SECONDS = [
  ...[1, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1200, 1800],
  ...[3600, 7200, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000, 31_536_000],
];

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Refuses names that nobody asks for: a misspelt one would be All without a word. @throws HttpError 400 */
export function checkNames(query: URLSearchParams, known: readonly string[]): void {
  for (const name of new Set(query.keys())) {
    if (known.includes(name)) continue;
    throw new HttpError(400, `expected parameters among ${known.join(', ')}`);
  }
}

/**
 * The time asked for.
 *
 * @param readSpan what the store holds, undefined when it is empty; only asked where it matters
 * @throws HttpError 400
 */
export async function chooseTime(
  query: URLSearchParams,
  nowMs: number,
  readSpan: () => Promise<Span | undefined>,
): Promise<Span> {
  const from = query.get('from') ?? 'first';
  const to = query.get('to') ?? 'last';
  const needsSpan = from === 'first' || to === 'last';
  const span = needsSpan ? await readSpan() : undefined;
  const fromMs = from === 'first' ? (span?.fromMs ?? nowMs - UNIT_MS['h']!) : timeOf(from, nowMs);
  const toMs = to === 'last' ? (span?.toMs ?? nowMs) : timeOf(to, nowMs);
  if (fromMs < toMs) return { fromMs, toMs };
  if (needsSpan) return { fromMs, toMs: fromMs + 1000 };
  throw new HttpError(400, 'expected from to be earlier than to');
}

function timeOf(text: string, nowMs: number): number {
  const ago = /^now(?:-(\d{1,6})([smhd]))?$/.exec(text);
  if (ago !== null) return nowMs - (ago[1] === undefined ? 0 : Number(ago[1]) * UNIT_MS[ago[2]!]!);
  const ms = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (ms >= EARLIEST_MS && ms <= LATEST_MS) return ms;
  throw new HttpError(
    400,
    'expected from and to as epoch milliseconds, now, now-15m, first or last',
  );
}

/** How long the rows of a statement are: buckets, or minutes. */
export function rowSecondsOf(sql: string, leastSeconds = 0): number {
  const isByMinute = sql.includes('$__timeFilter(minute)');
  return Math.max(leastSeconds, isByMinute ? MINUTE_SECONDS : BUCKET_SECONDS);
}

/**
 * A time in whole rows, as everywhere in limitlens: the row in which it begins is in, one that begins
 * with its end is not. The catalogue's conditions take both ends in.
 */
export function wholeRows({ fromMs, toMs }: Span, rowSeconds: number, stepMs: number): TimeRange {
  const rowMs = rowSeconds * 1000;
  return { fromMs: Math.floor(fromMs / rowMs) * rowMs, toMs: toMs - 1, intervalMs: stepMs };
}

/** Values of all variables of the catalogue. @throws HttpError 400 */
export function chooseValues(query: URLSearchParams): Choice {
  const values = VARIABLES.map(({ name, isMulti }) => {
    const given = query.getAll(name).filter((value) => isMulti || value !== '');
    if (given.length > (isMulti ? MOST_VALUES : 1)) {
      throw new HttpError(400, `expected at most ${isMulti ? MOST_VALUES : 1} values of ${name}`);
    }
    return [name, given] as const;
  });
  return Object.fromEntries(values);
}

/**
 * The step of a chart: long enough for the rows that the panel has, and for the points that fit.
 *
 * @param leastSeconds of the panel's rows
 * @throws HttpError 400
 */
export function chooseStep(query: URLSearchParams, span: Span, leastSeconds: number): number {
  const asked = query.get('points');
  const points = asked === null ? DEFAULT_POINTS : /^\d{1,4}$/.test(asked) ? Number(asked) : 0;
  if (points < 1 || points > MOST_POINTS) {
    throw new HttpError(400, `expected points between 1 and ${MOST_POINTS}`);
  }
  const wanted = Math.max(leastSeconds, (span.toMs - span.fromMs) / 1000 / points);
  const step = STEPS_SECONDS.find((seconds) => seconds >= wanted) ?? STEPS_SECONDS.at(-1)!;
  return step * 1000;
}
