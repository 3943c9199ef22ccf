/**
 * A table that can be sorted by each of its columns, with links where a row leads somewhere.
 */
import { element } from './elements.js';
import { stateText } from './cell-chart.js';
import { formatCell, unitLabelOf, unitOf } from './units.js';
import { visible } from './visible-text.js';
import type { Cell, Column, PanelAnswer, PanelInfo } from './wire.js';

export type Row = readonly Cell[];

/** How a table is sorted; kept by the caller, so that it stays when rows are new. */
export interface Sorting {
  column: string | null;
  isDescending: boolean;
}

export interface TableOptions {
  readonly panel: PanelInfo;
  readonly answer: PanelAnswer;
  readonly sorting: Sorting;
  /** Where a cell leads: an address of this page, and what that is. */
  readonly linkOf: (column: Column, row: Row) => { href: string; label: string | null } | null;
}

/** Of a longer text, the style sheet may cut the end off. */
const LONGEST_SHORT_TEXT = 60;
/** More rows are shown when asked for. */
const MOST_ROWS = 100;

export function dataTable(options: TableOptions): HTMLElement {
  const { panel, answer, sorting } = options;
  const host = element('div', {
    class: 'table',
    role: 'region',
    tabindex: 0,
    'aria-label': `${panel.title}: table`,
  });
  let most = MOST_ROWS;
  const draw = (): void => {
    const rows = sorted(answer, sorting);
    const rest = rows.length - most;
    const more = element(
      'button',
      { type: 'button', class: 'more' },
      [`Show all ${rows.length} rows`],
      {
        click: () => {
          most = rows.length;
          draw();
        },
      },
    );
    const table = element('table', {}, [
      element('caption', { class: 'unseen' }, [panel.question]),
      head(options, draw),
      element('tbody', {}, bodyRows(options, rows.slice(0, most))),
    ]);
    host.replaceChildren(table, ...(rest > 0 ? [more] : []));
  };
  draw();
  return host;
}

function shownColumns({ panel, answer }: TableOptions): [number, Column][] {
  return [...answer.columns.entries()].filter(([, { name }]) => !panel.hidden?.includes(name));
}

function head(options: TableOptions, redraw: () => void): HTMLElement {
  const { sorting } = options;
  const cells = shownColumns(options).map(([, { name, type }]) => {
    const isSorted = sorting.column === name;
    const direction = sorting.isDescending ? 'descending' : 'ascending';
    const sort = (): void => {
      // Numbers are looked at from the largest.
      sorting.isDescending = isSorted ? !sorting.isDescending : type === 'number';
      sorting.column = name;
      redraw();
      const buttons = document.querySelectorAll<HTMLElement>('th button');
      [...buttons].find((button) => button.dataset['sorts'] === id)?.focus();
    };
    const id = `${options.panel.id} ${name}`;
    const unit = type === 'number' ? unitLabelOf(unitOf(options.panel, name)) : null;
    const title = unit === null ? null : `in ${unit}`;
    const attributes = { type: 'button', 'data-sorts': id, title };
    const button = element('button', attributes, [name], { click: sort });
    const state = isSorted ? direction : 'none';
    return element('th', { scope: 'col', class: type, 'aria-sort': state }, [button]);
  });
  return element('thead', {}, [element('tr', {}, cells)]);
}

function bodyRows(options: TableOptions, rows: readonly Row[]): HTMLElement[] {
  const columns = shownColumns(options);
  return rows.map((row) =>
    element(
      'tr',
      {},
      columns.map(([at, column]) => {
        const text = cellText(options.panel, column, row[at] ?? null);
        const link = options.linkOf(column, row);
        // A name that turns the direction of text must not turn its neighbours'.
        const content = column.type === 'text' ? element('bdi', {}, [text]) : text;
        const attributes = { href: link?.href ?? '', 'aria-label': link?.label ?? null };
        const title = text.length > LONGEST_SHORT_TEXT ? text : null;
        return element('td', { class: column.type, title }, [
          link === null ? content : element('a', attributes, [content]),
        ]);
      }),
    ),
  );
}

function cellText(panel: PanelInfo, column: Column, value: Cell): string {
  if (column.name === 'state' && panel.states !== undefined) {
    return stateText(panel, Number(value)) ?? '';
  }
  const text = visible(formatCell(value, column, unitOf(panel, column.name)));
  return text === '' ? '(empty)' : text;
}

function sorted({ columns, rows }: PanelAnswer, { column, isDescending }: Sorting): readonly Row[] {
  const at = columns.findIndex(({ name }) => name === column);
  if (at < 0) return rows;
  const order = isDescending ? -1 : 1;
  return rows.toSorted((a, b) => order * compare(a[at] ?? null, b[at] ?? null));
}

function compare(a: Cell, b: Cell): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a ?? '').localeCompare(String(b ?? ''), 'en');
}
