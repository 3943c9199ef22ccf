/**
 * Rows of a panel to what a chart over time draws: one grid of times, and a list of values for each
 * series. Pure: knows no page.
 *
 * Times are in seconds, as uPlot wants them; a step without a row is null.
 */
import type { Cell, PanelAnswer, PanelInfo } from './wire.js';

export interface Series {
  readonly name: string;
  /** The cell of the column `series`; undefined where there is none. */
  readonly group: string | undefined;
  readonly column: string;
  readonly values: readonly (number | null)[];
  readonly total: number;
}

export interface SeriesData {
  readonly times: readonly number[];
  readonly series: readonly Series[];
}

/** A chart with more can't be read. */
export const MOST_SERIES = 20;

export function seriesOf(answer: PanelAnswer, panel: PanelInfo): SeriesData {
  const times = gridOf(answer);
  const places = new Map(times.map((time, at) => [time, at]));
  const groupAt = answer.columns.findIndex(({ name }) => name === 'series');
  const numbers = [...answer.columns.entries()].filter(
    ([at, { type }]) => at !== groupAt && type === 'number',
  );
  const found = new Map<string, Series & { values: (number | null)[]; total: number }>();
  for (const row of answer.rows) {
    const place = places.get(Number(row[0]) / 1000)!;
    const group = groupAt < 0 ? undefined : textOf(row[groupAt]);
    for (const [at, { name: column }] of numbers) {
      const key = JSON.stringify([group, column]);
      const known = found.get(key);
      const entry = known ?? {
        name: nameOf(group, column, panel),
        ...{ group, column, total: 0 },
        values: new Array<number | null>(times.length).fill(null),
      };
      if (known === undefined) found.set(key, entry);
      const value = row[at] ?? null;
      entry.values[place] = value === null ? null : Number(value);
      entry.total += Number(value);
    }
  }
  const series = [...found.values()];
  return { times, series: panel.kind === 'timeseries' ? series.filter(isWorthDrawing) : series };

  /** Columns that stay empty, such as a delay that no limit has, would only fill the legend. */
  function isWorthDrawing({ values }: Series): boolean {
    const isLine = panel.draw === 'lines';
    return values.some((value) => value !== null && (isLine || value !== 0));
  }
}

function nameOf(group: string | undefined, column: string, panel: PanelInfo): string {
  if (group === undefined) return column;
  return panel.isNamedBySeries === true ? group : `${group}: ${column}`;
}

function textOf(cell: Cell | undefined): string {
  return String(cell ?? '');
}

/** Every step of the range, and whatever other times the rows have. */
function gridOf({ rows, fromMs, toMs, stepMs }: PanelAnswer): number[] {
  const times = new Set(rows.map((row) => Number(row[0]) / 1000));
  for (let ms = Math.ceil(fromMs / stepMs) * stepMs; ms < toMs; ms += stepMs) times.add(ms / 1000);
  return [...times].sort((a, b) => a - b);
}

/** Most rows of a chart of cells. */
export const MOST_CELL_ROWS = 60;

/**
 * The largest series in their order, and how many were left out. Where values add up, the rest
 * becomes one series more, so that sums stay true.
 */
export function largest(
  { times, series }: SeriesData,
  most: number,
  isStacked: boolean,
): SeriesData & { readonly leftOut: number } {
  if (series.length <= most) return { times, series, leftOut: 0 };
  const byTotal = series.toSorted((a, b) => b.total - a.total);
  const kept = new Set(byTotal.slice(0, most));
  const rest = byTotal.slice(most);
  const drawn = series.filter((one) => kept.has(one));
  if (!isStacked) return { times, series: drawn, leftOut: rest.length };
  const values = times.map((_, at) => rest.reduce((sum, one) => sum + (one.values[at] ?? 0), 0));
  const total = rest.reduce((sum, one) => sum + one.total, 0);
  const others = { name: `${rest.length} others`, group: undefined, column: '', values, total };
  return { times, series: [...drawn, others], leftOut: rest.length };
}

/** Each series on top of those before it; nothing counts as 0. */
export function stacked(
  series: readonly Series[],
  isShown: (at: number) => boolean,
): (number | null)[][] {
  const sums: number[] = [];
  return series.map(({ values }, which) =>
    values.map((value, at) => {
      if (!isShown(which)) return null;
      sums[at] = (sums[at] ?? 0) + (value ?? 0);
      return sums[at];
    }),
  );
}
