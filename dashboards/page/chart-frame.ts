/**
 * What all charts over time share: uPlot, its axes and colours, marks on the time line, a tooltip, and
 * a drag that chooses a time. The one place that knows the library.
 *
 * Not here: what is drawn in it (time-chart.ts, cell-chart.ts).
 */
import type UPlot from 'uplot';
import { cssColour } from './colours.js';
import { element } from './elements.js';
import { formatTime } from './units.js';
import { visible } from './visible-text.js';
import type { Mark } from './wire.js';

export type { UPlot };

declare global {
  interface Window {
    /** From static/uPlot.js, which is no module. */
    readonly uPlot: typeof UPlot;
  }
}

const HEIGHT_PX = 220;
export const FONT = '12px system-ui, sans-serif';
/** So near to a mark, the pointer is on it. */
const MARK_REACH_PX = 5;
const MOST_MARKS_TOLD = 4;
const DAY = '\n{YYYY}-{MM}-{DD}';
const MINUTE = `${DAY} {HH}:{mm}`;
/**
 * Least step in seconds, its label, and what is added where a year, month, day, hour, minute begins:
 * uPlot's own table, with days and hours as logs write them.
 */
const TIME_LABELS: UPlot.Axis.Values = [
  [31_536_000, '{YYYY}', null, null, null, null, null, null, 1],
  [2_419_200, '{YYYY}-{MM}', null, null, null, null, null, null, 1],
  [86_400, '{MM}-{DD}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', DAY, null, DAY, null, null, null, 1],
  [1, ':{ss}', MINUTE, null, MINUTE, null, '\n{HH}:{mm}', null, 1],
  [0.001, ':{ss}.{fff}', MINUTE, null, MINUTE, null, '\n{HH}:{mm}', null, 1],
];

/** A shorter drag was meant as a click. */
const LEAST_DRAG_PX = 6;

export interface TooltipLine {
  readonly colour: string;
  readonly name: string;
  readonly value: string;
}

export interface FrameOptions {
  readonly host: HTMLElement;
  readonly fromMs: number;
  readonly toMs: number;
  /** How long what is drawn at a place of the grid lasts. */
  readonly stepMs: number;
  readonly heightPx?: number;
  readonly marks: readonly Mark[];
  readonly series: readonly UPlot.Series[];
  readonly data: UPlot.AlignedData;
  readonly y: { readonly scale: UPlot.Scale; readonly axis: UPlot.Axis };
  readonly draw?: (chart: UPlot) => void;
  /** What the tooltip says at a place of the grid, or over a height of the chart. */
  readonly tooltip: (at: number, y: number) => readonly TooltipLine[];
  readonly onZoom: (fromMs: number, toMs: number) => void;
  /** A click at a place of the grid; `y` in the chart's own values. */
  readonly onPick: (at: number, y: number) => void;
}

export class ChartFrame {
  readonly #chart: UPlot;
  readonly #resize: ResizeObserver;
  readonly #tooltip = element('div', { class: 'tooltip', hidden: true });
  readonly #options: FrameOptions;

  constructor(options: FrameOptions) {
    this.#options = options;
    const { host } = options;
    this.#chart = new window.uPlot(this.#uplotOptions(), options.data, host);
    this.#chart.over.append(this.#tooltip);
    this.#chart.over.addEventListener('mouseleave', () => (this.#tooltip.hidden = true));
    this.#resize = new ResizeObserver(() => {
      this.#chart.setSize({ width: Math.max(80, host.clientWidth), height: this.#heightPx });
    });
    this.#resize.observe(host);
  }

  get #heightPx(): number {
    return this.#options.heightPx ?? HEIGHT_PX;
  }

  setData(data: UPlot.AlignedData): void {
    this.#chart.setData(data, false);
    // Without new scales it is not drawn by itself.
    this.#chart.redraw(true, true);
  }

  destroy(): void {
    this.#resize.disconnect();
    this.#chart.destroy();
  }

  #uplotOptions(): UPlot.Options {
    const { host, fromMs, toMs, series, y, draw } = this.#options;
    const line = { stroke: cssColour('--grid'), width: 1 };
    const axis: UPlot.Axis = {
      stroke: cssColour('--muted'),
      font: FONT,
      grid: line,
      ticks: line,
    };
    return {
      width: Math.max(80, host.clientWidth),
      height: this.#heightPx,
      legend: { show: false },
      tzDate: (seconds) => window.uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      scales: { x: { time: true, range: () => [fromMs / 1000, toMs / 1000] }, y: y.scale },
      axes: [
        { ...axis, values: TIME_LABELS },
        { ...axis, ...y.axis },
      ],
      series: [{}, ...series],
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false, dist: LEAST_DRAG_PX },
        bind: { dblclick: () => () => null },
      },
      hooks: {
        drawAxes: [(chart) => draw?.(chart)],
        draw: [(chart) => this.#drawMarks(chart)],
        setCursor: [(chart) => this.#showTooltip(chart)],
        setSelect: [(chart) => this.#select(chart)],
        ready: [(chart) => this.#listenForClicks(chart)],
      },
    };
  }

  #drawMarks(chart: UPlot): void {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.setLineDash([4, 4]);
    ctx.lineWidth = 1;
    const drawn = new Set<string>();
    for (const { id, fromMs } of this.#options.marks) {
      const x = Math.round(chart.valToPos(fromMs / 1000, 'x', true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      const colour = markColourName(id);
      // Hundreds at one place are one line.
      if (drawn.has(`${colour} ${x}`)) continue;
      drawn.add(`${colour} ${x}`);
      ctx.strokeStyle = cssColour(colour);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  /** The place of the grid whose step lasts at this distance from the left; undefined beside all. */
  #placeAt(chart: UPlot, leftPx: number): number | undefined {
    const seconds = chart.posToVal(leftPx, 'x');
    const times = chart.data[0];
    const at = times.findLastIndex((time) => time <= seconds);
    const isIn = at >= 0 && seconds < times[at]! + this.#options.stepMs / 1000;
    return isIn ? at : undefined;
  }

  #showTooltip(chart: UPlot): void {
    const { left = -1, top = -1 } = chart.cursor;
    const isOver = left >= 0 && top >= 0;
    const at = isOver ? this.#placeAt(chart, left) : undefined;
    const lines = at === undefined ? [] : this.#options.tooltip(at, chart.posToVal(top, 'y'));
    const marks = isOver ? this.#marksAt(chart, left) : [];
    this.#tooltip.hidden = lines.length + marks.length === 0;
    if (this.#tooltip.hidden) return;
    const time = lines.length === 0 ? null : formatTime(chart.data[0][at!]! * 1000);
    this.#tooltip.replaceChildren(
      element('p', {}, [time]),
      ...lines.map(({ colour, name, value }) => {
        const swatch = element('span', { class: 'swatch' });
        swatch.style.background = colour;
        const label = element('bdi', { class: 'name' }, [visible(name) || '(empty)']);
        return element('p', {}, [swatch, label, element('b', {}, [value])]);
      }),
      ...marks.map((mark) => {
        const text = `${formatTime(mark.fromMs)} ${visible(mark.text)} (${visible(mark.tags)})`;
        return element('p', { class: 'mark' }, [element('bdi', {}, [text])]);
      }),
    );
    const isRight = left > chart.over.clientWidth / 2;
    this.#tooltip.style.left = isRight ? '' : `${left + 12}px`;
    this.#tooltip.style.right = isRight ? `${chart.over.clientWidth - left + 12}px` : '';
  }

  #marksAt(chart: UPlot, leftPx: number): readonly Mark[] {
    return this.#options.marks
      .filter(
        ({ fromMs }) => Math.abs(chart.valToPos(fromMs / 1000, 'x') - leftPx) <= MARK_REACH_PX,
      )
      .slice(0, MOST_MARKS_TOLD);
  }

  #select(chart: UPlot): void {
    const { left, width } = chart.select;
    if (width < LEAST_DRAG_PX) return;
    const fromMs = Math.floor(chart.posToVal(left, 'x') * 1000);
    const toMs = Math.ceil(chart.posToVal(left + width, 'x') * 1000);
    chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.#options.onZoom(fromMs, toMs);
  }

  #listenForClicks(chart: UPlot): void {
    let downAt = 0;
    let tapped: number | undefined;
    chart.over.addEventListener('mousedown', (event) => (downAt = event.clientX));
    chart.over.addEventListener('click', (event) => {
      const { left = -1, top = -1 } = chart.cursor;
      if (left < 0 || top < 0 || Math.abs(event.clientX - downAt) >= LEAST_DRAG_PX) return;
      const at = this.#placeAt(chart, left);
      // A finger can't point first: its first tap shows the numbers, the second leads on.
      const isFirstTap = event.pointerType === 'touch' && at !== tapped;
      tapped = at;
      if (at === undefined || isFirstTap) return;
      this.#options.onPick(at, chart.posToVal(top, 'y'));
    });
  }
}

/** Of the style sheet. @param id of the annotation */
export function markColourName(id: string): string {
  return id === 'findings' ? '--mark-finding' : '--mark';
}
