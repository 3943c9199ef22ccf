/**
 * Charts as inline SVG that need no script: bars that add up, and lines, over steps of time.
 *
 * Colours come from classes of the page's style (html-style.ts), `s-NAME` for each series. Every
 * step has a title with its numbers, which browsers show under the pointer. Times are epoch
 * milliseconds, shown in UTC.
 */
import { markup, NOTHING, shown, type Markup } from './html-markup.js';

export interface Series {
  readonly name: string;
  /** Of the style: `s-rejected`. */
  readonly style: string;
  /** One for each step; null where nothing is known. */
  readonly values: readonly (number | null)[];
}

export interface Chart {
  readonly title: string;
  /** What its numbers are: `requests per second`. */
  readonly unit: string;
  readonly fromMs: number;
  readonly stepMs: number;
  readonly steps: number;
  readonly bars?: readonly Series[];
  readonly lines?: readonly Series[];
  /** Horizontal lines: the burst, the capacity. */
  readonly levels?: readonly {
    readonly name: string;
    readonly style: string;
    readonly value: number;
  }[];
  /** Vertical lines: a reload. */
  readonly marks?: readonly { readonly timeMs: number; readonly text: string }[];
  readonly format: (value: number) => string;
}

const WIDTH = 760;
const HEIGHT = 190;
const LEFT = 64;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;
const PLOT_WIDTH = WIDTH - LEFT - RIGHT;
const PLOT_HEIGHT = HEIGHT - TOP - BOTTOM;
const TIME_LABELS = 5;
const DAY_MS = 86_400_000;

/** The chart with its legend, and its numbers as a table to open. */
export function chart(chart: Chart): Markup {
  const bars = (chart.bars ?? []).filter(hasNumbers);
  const lines = (chart.lines ?? []).filter(hasNumbers);
  if (bars.length + lines.length === 0) return NOTHING;
  const top = niceCeiling(highest(chart, bars, lines));
  const y = (value: number): number => round(TOP + PLOT_HEIGHT * (1 - value / top));
  return markup`<figure>
    <figcaption>${chart.title} <span class="unit">${chart.unit}</span></figcaption>
    <svg
      viewBox="0 0 ${WIDTH} ${HEIGHT}"
      role="img"
      aria-label="${`${chart.title}, ${chart.unit}; the numbers are in the table below`}"
    >
      ${axes(chart, top, y)} ${stackedBars(chart, bars, y)}
      ${lines.map((series) => line(chart, series, y))}
      ${(chart.levels ?? []).map((level) => markup`<path class="level ${level.style}" d="M${LEFT} ${y(level.value)}H${WIDTH - RIGHT}" />`)}
      ${(chart.marks ?? []).map((mark) => markLine(chart, mark))}
      ${pointerTitles(chart, [...bars, ...lines])}
    </svg>
    ${legend(chart, bars, lines)} ${numbers(chart, [...bars, ...lines])}
  </figure>`;
}

function hasNumbers(series: Series): boolean {
  return series.values.some((value) => value !== null && value !== 0);
}

function highest(chart: Chart, bars: readonly Series[], lines: readonly Series[]): number {
  let most = Math.max(0, ...(chart.levels ?? []).map(({ value }) => value));
  for (let i = 0; i < chart.steps; i++) {
    const stacked = bars.reduce((sum, { values }) => sum + (values[i] ?? 0), 0);
    most = Math.max(most, stacked, ...lines.map(({ values }) => values[i] ?? 0));
  }
  return most;
}

/** The next of 1, 2, 2.5 and 5 times a power of ten. */
export function niceCeiling(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 2.5, 5, 10].find((n) => n * power >= value * (1 - 1e-9)) ?? 10;
  return factor * power;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function xOf(chart: Chart, step: number): number {
  return round(LEFT + (PLOT_WIDTH * step) / chart.steps);
}

function axes(chart: Chart, top: number, y: (value: number) => number): Markup {
  const values = [0, top / 2, top];
  const every = Math.max(1, Math.ceil(chart.steps / TIME_LABELS));
  const steps = Array.from({ length: Math.ceil(chart.steps / every) }, (_, i) => i * every);
  return markup`${values.map((value) => markup`<path class="grid" d="M${LEFT} ${y(value)}H${WIDTH - RIGHT}" /><text class="y" x="${LEFT - 6}" y="${y(value) + 4}">${chart.format(value)}</text>`)}
  ${steps.map((step) => markup`<text class="x" x="${xOf(chart, step)}" y="${HEIGHT - 6}">${timeLabel(chart, step)}</text>`)}`;
}

function stackedBars(
  chart: Chart,
  bars: readonly Series[],
  y: (value: number) => number,
): readonly Markup[] {
  const width = round((PLOT_WIDTH / chart.steps) * 0.85);
  const below = new Array<number>(chart.steps).fill(0);
  return bars.map(({ style, values }) => {
    const parts: string[] = [];
    for (let i = 0; i < chart.steps; i++) {
      const value = values[i] ?? 0;
      if (value === 0) continue;
      const bottom = y(below[i]!);
      below[i]! += value;
      parts.push(`M${xOf(chart, i)} ${bottom}V${y(below[i]!)}h${width}V${bottom}z`);
    }
    return markup`<path class="bar ${style}" d="${parts.join('')}" />`;
  });
}

function line(chart: Chart, { style, values }: Series, y: (value: number) => number): Markup {
  let path = '';
  let isDrawing = false;
  for (let i = 0; i < chart.steps; i++) {
    const value = values[i] ?? null;
    if (value === null) {
      isDrawing = false;
      continue;
    }
    const at = y(value);
    // A lone step is drawn as long as it lasts.
    path += isDrawing ? `L${xOf(chart, i)} ${at}` : `M${xOf(chart, i)} ${at}`;
    path += `H${xOf(chart, i + 1)}`;
    isDrawing = true;
  }
  return markup`<path class="line ${style}" d="${path}" />`;
}

function markLine(chart: Chart, mark: { timeMs: number; text: string }): Markup {
  const step = (mark.timeMs - chart.fromMs) / chart.stepMs;
  if (step < 0 || step > chart.steps) return NOTHING;
  const x = xOf(chart, step);
  return markup`<path class="mark" d="M${x} ${TOP}V${TOP + PLOT_HEIGHT}"
    ><title>${`${isoTime(mark.timeMs)} ${shown(mark.text)}`}</title></path
  >`;
}

function pointerTitles(chart: Chart, series: readonly Series[]): readonly Markup[] {
  const width = round(PLOT_WIDTH / chart.steps);
  return Array.from({ length: chart.steps }, (_, i) => {
    const said = series.filter(({ values }) => (values[i] ?? 0) !== 0);
    if (said.length === 0) return NOTHING;
    const text = said.map(({ name, values }) => `${name} ${chart.format(values[i]!)}`).join(', ');
    const title = `${isoTime(chart.fromMs + i * chart.stepMs)} ${text}`;
    return markup`<rect
      class="hit"
      x="${xOf(chart, i)}"
      y="${TOP}"
      width="${width}"
      height="${PLOT_HEIGHT}"
      ><title>${title}</title></rect
    >`;
  }).filter(({ source }) => source !== '');
}

function legend(chart: Chart, bars: readonly Series[], lines: readonly Series[]): Markup {
  const entries = [
    ...bars.map(({ name, style }) => ({ name, style, shape: 'bar' })),
    ...lines.map(({ name, style }) => ({ name, style, shape: 'line' })),
    ...(chart.levels ?? []).map(({ name, style, value }) => ({
      name: `${name} ${chart.format(value)}`,
      style,
      shape: 'level',
    })),
  ];
  return markup`<ul class="legend">
    ${entries.map(({ name, style, shape }) => markup`<li><svg viewBox="0 0 14 10" aria-hidden="true">${shape === 'bar' ? markup`<path class="bar ${style}" d="M0 0H14V10H0z" />` : markup`<path class="${shape} ${style}" d="M0 5H14" />`}</svg> ${name}</li>`)}
  </ul>`;
}

function numbers(chart: Chart, series: readonly Series[]): Markup {
  const rows = Array.from({ length: chart.steps }, (_, i) => i).filter((i) =>
    series.some(({ values }) => (values[i] ?? 0) !== 0),
  );
  return markup`<details>
    <summary>Numbers</summary>
    <div class="wide">
      <table>
        <caption>
          ${chart.title}, ${chart.unit}, in steps of ${stepText(chart.stepMs)}
        </caption>
        <thead>
          <tr>
            <th scope="col">time (UTC)</th>
            ${series.map(({ name }) => markup`<th scope="col" class="n">${name}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            (i) =>
              markup`<tr>
                <th scope="row">${isoTime(chart.fromMs + i * chart.stepMs)}</th>
                ${series.map(({ values }) => markup`<td class="n">${values[i] === null || values[i] === undefined ? '-' : chart.format(values[i])}</td>`)}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </details>`;
}

function timeLabel(chart: Chart, step: number): string {
  const iso = new Date(chart.fromMs + step * chart.stepMs).toISOString();
  if (chart.steps * chart.stepMs > 2 * DAY_MS) return `${iso.slice(5, 10)} ${iso.slice(11, 16)}`;
  return chart.stepMs < 60_000 ? iso.slice(11, 19) : iso.slice(11, 16);
}

/** 60000 as `1 min`. */
export function stepText(stepMs: number): string {
  const units = [
    [DAY_MS, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1000, 's'],
  ] as const;
  const [unitMs, name] = units.find(([ms]) => stepMs % ms === 0) ?? [1, 'ms'];
  return `${stepMs / unitMs} ${name}`;
}

/** To the second. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
