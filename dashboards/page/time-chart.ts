/**
 * Lines, or bars that add up, over time, with a legend whose entries switch series on and off.
 */
import type { Unit } from '../catalogue/panel.js';
import { ChartFrame, type TooltipLine, type UPlot } from './chart-frame.js';
import { colourName, cssColour, isLevel, stateColourName } from './colours.js';
import { element } from './elements.js';
import { stacked, type Series, type SeriesData } from './series-data.js';
import { formatNumber, formatTick, unitLabelOf } from './units.js';
import { visible } from './visible-text.js';
import type { Mark, PanelInfo } from './wire.js';

const MOST_TOOLTIP_LINES = 12;
/** More bars leave no room for gaps between them. */
const MOST_BARS_APART = 60;

export interface TimeChartOptions {
  readonly host: HTMLElement;
  readonly panel: PanelInfo;
  readonly data: SeriesData;
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
  readonly marks: readonly Mark[];
  /** Names of series that are switched off; changed here, and kept by the caller. */
  readonly hidden: Set<string>;
  /** Where a series leads, if anywhere: an address of this page. */
  readonly linkOf: (series: Series) => string | null;
  readonly onZoom: (fromMs: number, toMs: number) => void;
  /** A click on a series, at a time of the grid in seconds. */
  readonly onPick: (series: Series, seconds: number) => void;
}

export class TimeChart {
  readonly #options: TimeChartOptions;
  readonly #frame: ChartFrame;
  readonly #colours: readonly string[];

  constructor(options: TimeChartOptions) {
    this.#options = options;
    const { panel, data, host } = options;
    this.#colours = data.series.map(({ name, column }, at) => {
      // All others together are no series of their own.
      if (column === '') return cssColour('--unknown');
      return cssColour(colourName(panel.isNamedBySeries === true ? name : column, at));
    });
    const canvas = element('div', { class: 'canvas' });
    host.append(
      ...[unitLabel(panel.unit), canvas, this.#legend(), this.#thresholdList()].filter(
        (part) => part !== null,
      ),
    );
    this.#frame = new ChartFrame({
      host: canvas,
      stepMs: options.stepMs,
      fromMs: Math.min(options.fromMs, (data.times[0] ?? Infinity) * 1000),
      toMs: options.toMs,
      marks: options.marks,
      series: this.#series(),
      data: this.#data(),
      y: valueAxis(panel.unit),
      draw: (chart) => {
        this.#drawBands(chart);
        this.#drawThresholds(chart);
      },
      tooltip: (at) => this.#tooltip(at),
      onZoom: options.onZoom,
      onPick: (at, y) => this.#pick(at, y),
    });
  }

  destroy(): void {
    this.#frame.destroy();
  }

  #isShown(at: number): boolean {
    return !this.#options.hidden.has(this.#options.data.series[at]!.name);
  }

  get #isStacked(): boolean {
    return this.#options.panel.draw === 'stacked bars';
  }

  /** uPlot draws in order: the tallest pile first, so that those within it stay to be seen. */
  #series(): UPlot.Series[] {
    const { data, stepMs } = this.#options;
    const isDense = data.times.length > MOST_BARS_APART;
    const made = this.#colours.map((colour, at): UPlot.Series => {
      const points = { show: false };
      if (!this.#isStacked) {
        const dash = isLevel(data.series[at]!.column) ? { dash: [6, 4] } : {};
        const width = this.#isBound(data.series[at]!.column) ? 1 : 2;
        return { stroke: colour, width, points, paths: stepPaths(stepMs / 1000), ...dash };
      }
      const gap = isDense ? 0 : 1;
      const paths = window.uPlot.paths.bars!({ align: 1, size: [1, Infinity], gap });
      return { fill: colour, width: 0, paths, points, label: String(at) };
    });
    return this.#isStacked ? made.reverse() : made;
  }

  #data(): UPlot.AlignedData {
    const { times, series } = this.#options.data;
    const isShown = (at: number) => this.#isShown(at);
    const values = this.#isStacked
      ? stacked(series, isShown).reverse()
      : series.map((one, at) => (isShown(at) ? [...one.values] : one.values.map(() => null)));
    return [[...times], ...values];
  }

  #legend(): HTMLElement {
    const { data, linkOf } = this.#options;
    const entries = data.series.map((series, at) => {
      const swatch = element('span', { class: 'swatch' });
      swatch.style.background = this.#colours[at]!;
      const button = element(
        'button',
        {
          ...{ type: 'button', 'aria-pressed': String(this.#isShown(at)) },
          title: `Show or hide ${visible(series.name)}`,
        },
        [swatch, element('bdi', { class: 'name' }, [visible(series.name) || '(empty)'])],
        { click: () => this.#toggle(at, button) },
      );
      const link = linkOf(series);
      const name = visible(series.name);
      return element('li', {}, [
        button,
        link === null
          ? null
          : element('a', { href: link, 'aria-label': `Keys of ${name}`, title: 'Keys' }, ['→']),
      ]);
    });
    return element('ul', { class: 'legend' }, entries);
  }

  #toggle(at: number, button: HTMLElement): void {
    const { data, hidden } = this.#options;
    const { name } = data.series[at]!;
    if (!hidden.delete(name)) hidden.add(name);
    button.setAttribute('aria-pressed', String(this.#isShown(at)));
    this.#frame.setData(this.#data());
  }

  #tooltip(at: number): TooltipLine[] {
    const { data, panel } = this.#options;
    const lines = data.series.flatMap(({ name, values }, which) => {
      const value = values[at];
      if (value == null || !this.#isShown(which)) return [];
      if (value === 0 && this.#isStacked) return [];
      return [{ colour: this.#colours[which]!, name, number: value }];
    });
    return lines
      .toSorted((a, b) => b.number - a.number)
      .slice(0, MOST_TOOLTIP_LINES)
      .map(({ number, ...line }) => ({ ...line, value: formatNumber(number, panel.unit) }));
  }

  /** The series that was clicked on: the one at this height of a pile, or the nearest line. */
  #pick(at: number, y: number): void {
    const { data, onPick } = this.#options;
    const time = data.times[at];
    const values = this.#isStacked
      ? stacked(data.series, (which) => this.#isShown(which)).map((list) => list[at] ?? null)
      : data.series.map((one) => one.values[at] ?? null);
    const candidates = values.flatMap((value, which) => {
      const own = data.series[which]!.values[at] ?? 0;
      if (value === null || !this.#isShown(which) || own === 0) return [];
      const isHit = !this.#isStacked || y <= value;
      return isHit ? [{ which, distance: Math.abs(value - y) }] : [];
    });
    const [best] = candidates.toSorted((a, b) => a.distance - b.distance);
    if (best !== undefined && time !== undefined) onPick(data.series[best.which]!, time);
  }

  #thresholdList(): HTMLElement | null {
    const { thresholds = [], unit } = this.#options.panel;
    if (thresholds.length === 0) return null;
    const items = thresholds.map(({ value, colour, why }) => {
      const line = element('span', { class: 'rule' });
      line.style.background = cssColour(stateColourName(colour));
      return element('li', { title: why }, [line, `from ${formatNumber(value, unit)}`]);
    });
    return element('ul', { class: 'thresholds' }, items);
  }

  #isBound(column: string): boolean {
    return this.#options.panel.band?.includes(column) === true;
  }

  /** What lies between the two bounds of a group, step by step, beneath the lines. */
  #drawBands(chart: UPlot): void {
    const { data, panel, stepMs } = this.#options;
    if (panel.band === undefined) return;
    const [low, high] = panel.band;
    chart.ctx.fillStyle = cssColour('--band');
    for (const [at, lower] of data.series.entries()) {
      if (lower.column !== low || !this.#isShown(at)) continue;
      const to = data.series.findIndex(
        ({ group, column }) => column === high && group === lower.group,
      );
      if (to < 0 || !this.#isShown(to)) continue;
      fillSteps(chart, lower.values, data.series[to]!.values, stepMs / 1000);
    }
  }

  #drawThresholds(chart: UPlot): void {
    const { ctx, bbox } = chart;
    for (const { value, colour } of this.#options.panel.thresholds ?? []) {
      const y = Math.round(chart.valToPos(value, 'y', true));
      if (y < bbox.top || y > bbox.top + bbox.height) continue;
      ctx.fillStyle = cssColour(stateColourName(colour));
      ctx.fillRect(bbox.left, y, bbox.width, 2);
    }
  }
}

/** Fills from one value to the other, each for its whole step; cut off at the chart's edges. */
function fillSteps(
  chart: UPlot,
  lows: Series['values'],
  highs: Series['values'],
  stepSeconds: number,
): void {
  const { ctx, bbox } = chart;
  const [times] = chart.data;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const [at, time] of times.entries()) {
    const [low, high] = [lows[at], highs[at]];
    if (low == null || high == null) continue;
    const end = Math.min(times[at + 1] ?? Infinity, time + stepSeconds);
    const [left, right] = [time, end].map((t) => Math.round(chart.valToPos(t, 'x', true)));
    const [top, bottom] = [high, low].map((value) => Math.round(chart.valToPos(value, 'y', true)));
    ctx.fillRect(left!, top!, right! - left!, bottom! - top!);
  }
  ctx.restore();
}

/** A value holds for its whole step, so that one that stands alone is seen as well. */
function stepPaths(stepSeconds: number): UPlot.Series.PathBuilder {
  return (chart, which, first, last) => {
    const stroke = new Path2D();
    const [times] = chart.data;
    const values = chart.data[which]!;
    let isDrawing = false;
    for (let at = first; at <= last; at++) {
      const value = values[at];
      if (value == null) {
        isDrawing = false;
        continue;
      }
      const y = Math.round(chart.valToPos(value, 'y', true));
      const end = Math.min(times[at + 1] ?? Infinity, times[at]! + stepSeconds);
      const left = chart.valToPos(times[at]!, 'x', true);
      if (isDrawing) stroke.lineTo(left, y);
      else stroke.moveTo(left, y);
      stroke.lineTo(chart.valToPos(end, 'x', true), y);
      isDrawing = true;
    }
    return { stroke };
  };
}

/** What the axis counts, where its numbers do not say so themselves. */
function unitLabel(unit: Unit): HTMLElement | null {
  const text = unitLabelOf(unit);
  return text === null ? null : element('p', { class: 'unit' }, [text]);
}

/** From 0 to what fits; a chart of nothing but zeros has some height all the same. */
function valueAxis(unit: Unit): { scale: UPlot.Scale; axis: UPlot.Axis } {
  return {
    scale: {
      range: (_, __, most) => {
        const high = Number.isFinite(most) && most > 0 ? most : 1;
        return [0, high * 1.05];
      },
    },
    axis: {
      size: 64,
      values: (_, ticks) => ticks.map((tick) => formatTick(tick, unit)),
    },
  };
}
