/**
 * Cells over time: a heat map (a row per column of the panel) or states (a row per series).
 */
import type { Unit } from '../catalogue/panel.js';
import { ChartFrame, type TooltipLine, type UPlot } from './chart-frame.js';
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

const LONGEST_NAME = 18;

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
    this.#frame = new ChartFrame({
      host: canvas,
      fromMs: Math.min(options.fromMs, (data.times[0] ?? Infinity) * 1000),
      toMs: options.toMs,
      marks: options.marks,
      series: [{ show: false }],
      data: [[...data.times], data.times.map(() => null)],
      y: rowAxis(data.series.map(({ column, group }) => group ?? column)),
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
      for (const [at, value] of values.entries()) {
        const colour = value === null ? null : this.#colourOf(value);
        if (colour === null) continue;
        const left = chart.valToPos(data.times[at]!, 'x', true);
        const right = chart.valToPos(data.times[at]! + stepMs / 1000, 'x', true);
        ctx.globalAlpha = colour.alpha;
        ctx.fillStyle = colour.css;
        ctx.fillRect(left, top + 1, Math.max(1, right - left), Math.max(1, height - 2));
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
    return [{ colour, text: `${series.group ?? series.column}: ${said}` }];
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

/** One unit of height for each row, its name in the middle; where there are many, some names. */
function rowAxis(names: readonly string[]): { scale: UPlot.Scale; axis: UPlot.Axis } {
  const every = Math.ceil(names.length / 12);
  return {
    scale: { range: () => [0, Math.max(1, names.length)] },
    axis: {
      size: 110,
      splits: () => names.flatMap((_, row) => (row % every === 0 ? [row + 0.5] : [])),
      values: (_, splits) => splits.map((at) => shortName(names[Math.floor(at)] ?? '')),
      grid: { show: false },
      ticks: { show: false },
    },
  };
}

function shortName(name: string): string {
  const text = visible(name);
  return text.length <= LONGEST_NAME ? text : `${text.slice(0, LONGEST_NAME - 1)}…`;
}
