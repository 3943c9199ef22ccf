/**
 * Cells over time: a heat map (a row per column of the panel) or states (a row per series).
 */
import type { Unit } from '../catalogue/panel.js';
import { ChartFrame, FONT, type TooltipLine, type UPlot } from './chart-frame.js';
import { cssColour, stateColourName } from './colours.js';
import { element } from './elements.js';
import { formatNumber } from './units.js';
import type { Mark, PanelInfo } from './wire.js';
import type { Series, SeriesData } from './series-data.js';
import { visible } from './visible-text.js';

export interface CellChartOptions {
  readonly host: HTMLElement;
  readonly panel: PanelInfo;
  readonly data: SeriesData;
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
  readonly marks: readonly Mark[];
  readonly onZoom: (fromMs: number, toMs: number) => void;
  readonly onPick: (series: Series, seconds: number) => void;
}

const LONGEST_NAME = 26;
const ROW_PX = 13;
const AROUND_PX = 50;
const LEAST_HEIGHT_PX = 220;
const MOST_HEIGHT_PX = 620;
/** Cells that are lower touch: a gap would be as high as they are. */
const LEAST_APART_PX = 6;

export class CellChart {
  readonly #options: CellChartOptions;
  readonly #frame: ChartFrame;
  readonly #most: number;

  constructor(options: CellChartOptions) {
    // Percentages grow upwards; a list of names is read from its top.
    const { host, panel } = options;
    const isList = panel.kind === 'state';
    const series = isList ? options.data.series.toReversed() : options.data.series;
    const data = { ...options.data, series };
    this.#options = { ...options, data };
    this.#most = Math.max(1, ...data.series.flatMap(({ values }) => values.map(Number)));
    const canvas = element('div', { class: 'canvas' });
    host.append(canvas, this.#legend());
    const wantedPx = AROUND_PX + ROW_PX * series.length;
    const heightPx = Math.min(MOST_HEIGHT_PX, Math.max(LEAST_HEIGHT_PX, wantedPx));
    this.#frame = new ChartFrame({
      host: canvas,
      heightPx,
      stepMs: options.stepMs,
      fromMs: Math.min(options.fromMs, (data.times[0] ?? Infinity) * 1000),
      toMs: options.toMs,
      marks: options.marks,
      series: [{ show: false }],
      data: [[...data.times], data.times.map(() => null)],
      y: rowAxis(
        data.series.map(({ column, group }) => group ?? column),
        (heightPx - AROUND_PX) / ROW_PX,
      ),
      draw: (chart) => this.#drawCells(chart),
      tooltip: (at, y) => this.#tooltip(at, y),
      onZoom: options.onZoom,
      onPick: (at, y) => {
        const series = data.series[Math.floor(y)];
        const time = data.times[at];
        if (series !== undefined && time !== undefined) options.onPick(series, time);
      },
    });
  }

  destroy(): void {
    this.#frame.destroy();
  }

  #drawCells(chart: UPlot): void {
    const { data, stepMs } = this.#options;
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const [row, { values }] of data.series.entries()) {
      const top = chart.valToPos(row + 1, 'y', true);
      const height = chart.valToPos(row, 'y', true) - top;
      const gap = height < LEAST_APART_PX ? 0 : 1;
      for (const [at, value] of values.entries()) {
        const colour = value === null ? null : this.#colourOf(value);
        if (colour === null) continue;
        const left = chart.valToPos(data.times[at]!, 'x', true);
        const right = chart.valToPos(data.times[at]! + stepMs / 1000, 'x', true);
        ctx.globalAlpha = colour.alpha;
        ctx.fillStyle = colour.css;
        ctx.fillRect(left, top + gap, Math.max(1, right - left), height - 2 * gap);
      }
    }
    ctx.restore();
  }

  #colourOf(value: number): { css: string; alpha: number } | null {
    const { states } = this.#options.panel;
    if (states === undefined) {
      // By the square root: few requests at the edge are what one looks for.
      if (value === 0) return null;
      return { css: cssColour('--heat'), alpha: 0.15 + 0.85 * Math.sqrt(value / this.#most) };
    }
    const state = states.findLast((one) => value >= one.value);
    return state === undefined ? null : { css: cssColour(stateColourName(state.colour)), alpha: 1 };
  }

  #tooltip(at: number, y: number): TooltipLine[] {
    const { data, panel } = this.#options;
    const series = data.series[Math.floor(y)];
    const value = series?.values[at];
    if (series === undefined || value == null) return [];
    const said = stateText(panel, value) ?? formatNumber(value, panel.unit);
    const colour = this.#colourOf(value)?.css ?? 'transparent';
    return [{ colour, name: series.group ?? series.column, value: said }];
  }

  #legend(): HTMLElement {
    const { panel } = this.#options;
    const entries =
      panel.states === undefined
        ? [['--heat', `up to ${heatText(this.#most, panel.unit)} in a step`] as const]
        : panel.states.map(({ colour, text }) => [stateColourName(colour), text] as const);
    return element(
      'ul',
      { class: 'legend' },
      entries.map(([name, text]) => {
        const swatch = element('span', { class: 'swatch' });
        swatch.style.background = cssColour(name);
        return element('li', {}, [swatch, text]);
      }),
    );
  }
}

function heatText(most: number, unit: Unit): string {
  return `${formatNumber(most, unit)} ${unit}`;
}

/** What a number stands for in a panel of states. */
export function stateText(panel: PanelInfo, value: number): string | undefined {
  return panel.states?.findLast((state) => value >= state.value)?.text;
}

/**
 * One unit of height for each row, its name in the middle.
 *
 * @param mostNames that there is room for; with more rows, some have a name
 */
function rowAxis(
  names: readonly string[],
  mostNames: number,
): { scale: UPlot.Scale; axis: UPlot.Axis } {
  const every = Math.ceil(names.length / Math.max(1, Math.floor(mostNames)));
  return {
    scale: { range: () => [0, Math.max(1, names.length)] },
    axis: {
      size: (chart, labels) => widthOf(chart, labels ?? []),
      splits: () => names.flatMap((_, row) => (row % every === 0 ? [row + 0.5] : [])),
      values: (_, splits) => splits.map((at) => shortName(names[Math.floor(at)] ?? '')),
      grid: { show: false },
      ticks: { show: false },
    },
  };
}

/** Room for the longest name, and no more. */
function widthOf({ ctx }: UPlot, labels: readonly string[]): number {
  ctx.save();
  ctx.font = FONT;
  const widths = labels.map((label) => ctx.measureText(label).width);
  ctx.restore();
  return Math.ceil(Math.max(24, ...widths) + 14);
}

/** Names of one place begin alike, and those of one zone end alike: the middle is left out. */
function shortName(name: string): string {
  const text = visible(name) || '(empty)';
  const half = LONGEST_NAME / 2;
  return text.length <= LONGEST_NAME ? text : `${text.slice(0, half - 2)}…${text.slice(-half - 1)}`;
}
