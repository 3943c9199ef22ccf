/**
 * One panel: its frame, when it loads, and which form its rows take.
 *
 * A panel loads when it comes into view, and again when the view changes or there is something new.
 * What was asked for before is dropped.
 */
import { ask, ApiError } from './api-client.js';
import { barList } from './bar-list.js';
import { CellChart } from './cell-chart.js';
import { dataTable, type Row, type Sorting } from './data-table.js';
import type { DrillDowns } from './drill-down.js';
import { element } from './elements.js';
import { failure } from './failure.js';
import { largest, MOST_CELL_ROWS, MOST_SERIES, seriesOf, type Series } from './series-data.js';
import { statList } from './stat-list.js';
import { TimeChart } from './time-chart.js';
import { formatNumber, formatTime } from './units.js';
import type { Column, Mark, PanelAnswer, PanelInfo } from './wire.js';

/** What a panel is about at the moment. */
export interface PanelContext {
  /** Time and variables, for the API. */
  readonly query: URLSearchParams;
  readonly marks: readonly Mark[];
  readonly drill: DrillDowns;
  readonly navigate: (address: string) => void;
  readonly zoom: (fromMs: number, toMs: number) => void;
}

interface Drawn {
  readonly node: HTMLElement;
  readonly destroy: () => void;
}

const CHARTS = new Set(['timeseries', 'state', 'heatmap']);

export class PanelView {
  readonly node: HTMLElement;
  readonly #panel: PanelInfo;
  /** Path of the API that has its rows. */
  readonly #path: string;
  readonly #content: HTMLElement;
  readonly #note = element('p', { class: 'note' });
  readonly #downloads = element('p', { class: 'downloads' });
  readonly #tableHost = element('div');
  readonly #asTable: HTMLDetailsElement | null;
  readonly #sorting: Sorting = { column: null, isDescending: false };
  readonly #hidden = new Set<string>();
  #context: PanelContext | undefined;
  #answer: PanelAnswer | undefined;
  #drawn: Drawn | undefined;
  #asking: AbortController | undefined;
  #isInView = false;
  #isStale = false;

  constructor(panel: PanelInfo, path = `panel/${panel.id}`) {
    this.#panel = panel;
    this.#path = path;
    this.#content = element('div', { class: 'content', 'data-kind': panel.kind });
    const isChart = panel.kind !== 'table' && panel.kind !== 'stat';
    this.#asTable = isChart ? this.#tableDetails() : null;
    const why = [
      panel.why,
      ...(panel.thresholds ?? []).map(
        ({ value, why: reason }) => `From ${formatNumber(value, panel.unit)}: ${reason}.`,
      ),
    ];
    const titleId = `title-${panel.id}`;
    this.node = element(
      'section',
      { class: `panel w${panel.width}`, id: panel.id, 'aria-labelledby': titleId },
      [
        element('h2', { id: titleId }, [panel.title]),
        element('p', { class: 'question' }, [panel.question]),
        this.#content,
        this.#note,
        element('div', { class: 'foot' }, [
          this.#asTable,
          element('details', {}, [
            element('summary', {}, ['About']),
            ...why.map((text) => element('p', {}, [text])),
          ]),
          this.#downloads,
        ]),
      ],
      { focusout: () => queueMicrotask(() => this.#loadIfDue()) },
    );
  }

  /** Shows another time or other values: everything is asked for again. */
  show(context: PanelContext): void {
    this.#context = context;
    this.#asking?.abort();
    this.#isStale = true;
    // What stands there is of another time, seen or not.
    this.node.setAttribute('aria-busy', 'true');
    this.#showDownloads(context);
    if (this.#isInView) void this.#load();
  }

  /** What was shown last has more to it: marks, and where a click leads. Rows are the same. */
  amend(context: PanelContext): void {
    this.#context = context;
    this.redraw();
  }

  /** There may be new rows. Whoever is working in the panel is not disturbed. */
  refresh(context: PanelContext): void {
    this.#context = context;
    this.#isStale = true;
    this.#loadIfDue();
  }

  setInView(isInView: boolean): void {
    this.#isInView = isInView;
    this.#loadIfDue();
  }

  /** Draws again what is there: colours have changed. */
  redraw(): void {
    if (this.#answer !== undefined) this.#draw(this.#answer);
  }

  destroy(): void {
    this.#asking?.abort();
    this.#drawn?.destroy();
  }

  #loadIfDue(): void {
    if (!this.#isStale || !this.#isInView) return;
    if (this.#answer !== undefined && this.#content.contains(document.activeElement)) return;
    void this.#load();
  }

  async #load(): Promise<void> {
    const context = this.#context;
    if (context === undefined) return;
    this.#isStale = false;
    this.#asking?.abort();
    const asking = new AbortController();
    this.#asking = asking;
    this.node.setAttribute('aria-busy', 'true');
    try {
      const answer = await ask<PanelAnswer>(this.#path, context.query, asking.signal);
      this.#answer = answer;
      this.#draw(answer);
    } catch (error) {
      if (asking.signal.aborted) return;
      this.#answer = undefined;
      this.#tableHost.replaceChildren();
      this.#note.textContent = '';
      const node = failure(error, () => void this.#load());
      this.#replace({ node, destroy() {} });
      if (!(error instanceof ApiError)) throw error;
    } finally {
      if (!asking.signal.aborted) this.node.setAttribute('aria-busy', 'false');
    }
  }

  #draw(answer: PanelAnswer): void {
    this.#note.textContent = answer.isCut
      ? `Only the first ${answer.rows.length} rows; choose a shorter time or fewer zones for all.`
      : '';
    this.#drawTable();
    if (answer.rows.length === 0) {
      const text = element('p', { class: 'empty' }, ['Nothing in this time.']);
      this.#replace({ node: text, destroy() {} });
    } else if (CHARTS.has(this.#panel.kind)) {
      this.#replaceByChart(answer);
    } else {
      this.#replace({ node: this.#plain(answer), destroy() {} });
    }
  }

  #replace(drawn: Drawn): void {
    this.node.dataset['drawn'] = 'true';
    this.#drawn?.destroy();
    this.#drawn = drawn;
    this.#content.replaceChildren(drawn.node);
  }

  /** Forms without a canvas. */
  #plain(answer: PanelAnswer): HTMLElement {
    const panel = this.#panel;
    if (panel.kind === 'stat') return statList(panel, answer);
    if (panel.kind !== 'bar') return this.#table(answer);
    const isOfPlaces = answer.columns[0]?.name === 'place';
    const linkOf = (name: string) => (isOfPlaces ? this.#context!.drill.ofPlace(name) : null);
    return barList({ panel, answer, linkOf });
  }

  #replaceByChart(answer: PanelAnswer): void {
    const panel = this.#panel;
    const { drill, marks, navigate, zoom } = this.#context!;
    const { fromMs, toMs, stepMs } = answer;
    const isStacked = panel.draw === 'stacked bars';
    const most = panel.kind === 'timeseries' ? MOST_SERIES : MOST_CELL_ROWS;
    const data = largest(seriesOf(answer, panel), most, isStacked);
    if (data.series.length === 0) {
      const text = element('p', { class: 'empty' }, ['Nothing above 0 in this time.']);
      this.#replace({ node: text, destroy() {} });
      return;
    }
    if (data.leftOut > 0) {
      this.#note.textContent += ` The ${most} largest of ${most + data.leftOut} are drawn; the table has all.`;
    }
    const host = element('div', { class: 'chart' });
    // A chart takes its width from where it stands.
    this.#replace({ node: host, destroy() {} });
    const onPick = (series: Series, seconds: number): void => {
      const address = drill.ofSeries(panel, series, { seconds, stepMs });
      if (address !== null) navigate(address);
    };
    const common = { host, panel, data, fromMs, toMs, stepMs, marks, onPick, onZoom: zoom };
    const chart =
      panel.kind === 'timeseries'
        ? new TimeChart({
            ...common,
            hidden: this.#hidden,
            linkOf: (series) => drill.ofSeries(panel, series),
          })
        : new CellChart(common);
    const canvas = host.querySelector('.canvas');
    canvas?.setAttribute('role', 'img');
    const times = `${formatTime(fromMs)} to ${formatTime(toMs)} UTC`;
    const label = `${panel.title}, ${data.series.length} series, ${times}. Numbers: "As a table" below.`;
    canvas?.setAttribute('aria-label', label);
    this.#drawn = { node: host, destroy: () => chart.destroy() };
  }

  #tableDetails(): HTMLDetailsElement {
    return element(
      'details',
      { class: 'as-table' },
      [element('summary', {}, ['As a table']), this.#tableHost],
      { toggle: () => this.#drawTable() },
    );
  }

  /** Only made where it is looked at: it may have thousands of rows. */
  #drawTable(): void {
    if (this.#asTable?.open !== true || this.#answer === undefined) return;
    this.#tableHost.replaceChildren(this.#table(this.#answer));
  }

  #table(answer: PanelAnswer): HTMLElement {
    const panel = this.#panel;
    const { drill } = this.#context!;
    const linkOf = (column: Column, row: Row): { href: string; label: string | null } | null => {
      const href = drill.ofCell(panel, column, answer.columns, row);
      if (href !== null) return { href, label: null };
      if (column.name !== 'time' || panel.kind !== 'table') return null;
      const example = drill.ofExample(answer.columns, row);
      const label = `Explain the request of ${formatTime(Number(row[0]))}`;
      return example === null ? null : { href: example, label };
    };
    return dataTable({ panel, answer, sorting: this.#sorting, linkOf });
  }

  #showDownloads({ query }: PanelContext): void {
    const links = ['csv', 'json'].map((form) => {
      const all = new URLSearchParams([...query, ['download', form]]);
      return element(
        'a',
        {
          href: `./api/${this.#path}?${all.toString()}`,
          download: `${this.#panel.id}.${form}`,
          'aria-label': `${form.toUpperCase()} of ${this.#panel.title}`,
        },
        [form.toUpperCase()],
      );
    });
    this.#downloads.replaceChildren(...links);
  }
}
