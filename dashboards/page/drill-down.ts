/**
 * Where a click leads: from zones to their keys, from places to their limits, from an example to its
 * explanation. Addresses of this page, with the time kept or narrowed.
 */
import type { Row } from './data-table.js';
import type { Series } from './series-data.js';
import { addressOf, valueOf, withValues, type ViewState } from './url-state.js';
import type { CatalogueAnswer, Column, PanelInfo, VariablesAnswer } from './wire.js';

const MINUTE_MS = 60_000;

type Options = VariablesAnswer['options'];
type Values = Readonly<Record<string, readonly string[]>>;

export class DrillDowns {
  readonly #catalogue: CatalogueAnswer;
  readonly #state: ViewState;
  /** `instance zone` and `server location`, as series and bars are named. */
  readonly #zones = new Map<string, Values>();
  readonly #places = new Map<string, Values>();

  constructor(catalogue: CatalogueAnswer, state: ViewState, options: Options) {
    this.#catalogue = catalogue;
    this.#state = state;
    pair(this.#zones, options, 'instance', 'zone');
    pair(this.#places, options, 'server', 'location');
  }

  /** Of a cell in a table. */
  ofCell(panel: PanelInfo, column: Column, columns: readonly Column[], row: Row): string | null {
    const drill = panel.drillDown?.find((one) => one.column === column.name);
    const target = this.#catalogue.dashboards.find(({ id }) => id === drill?.to);
    if (drill === undefined || target === undefined) return null;
    const values = Object.entries(drill.variables).map(([variable, from]) => {
      const text = String(row[columns.findIndex(({ name }) => name === from)] ?? '');
      // Columns for links alone hold values; others hold names.
      return [variable, [panel.hidden?.includes(from) === true ? text : valueOf(text)]] as const;
    });
    return addressOf({ ...withValues(this.#state, Object.fromEntries(values)), page: target.name });
  }

  /** Of an example: the page that explains it. */
  ofExample(columns: readonly Column[], row: Row): string | null {
    const at = (name: string) => String(row[columns.findIndex((c) => c.name === name)] ?? '');
    if (columns.every(({ name }) => name !== 'excess')) return null;
    const names = ['instance', 'server', 'location', 'time', 'zone', 'key', 'path'];
    const values = names.filter((name) => at(name) !== '').map((name) => [name, [at(name)]]);
    const { from, to } = this.#state;
    return addressOf({ page: 'example', from, to, values: Object.fromEntries(values) as Values });
  }

  /**
   * Of a series: the keys of its zone, or on the dashboard of keys that key.
   *
   * @param seconds begin of a step, with its length: the time is narrowed to it
   */
  ofSeries(
    panel: PanelInfo,
    series: Series,
    step?: { readonly seconds: number; readonly stepMs: number },
  ): string | null {
    const { page } = this.#state;
    const isOfKeys = page === 'keys' && panel.isNamedBySeries === true;
    const group = series.group ?? '';
    const values = isOfKeys ? { key: [valueOf(group)] } : this.#zones.get(group);
    const hasOwn = values !== undefined && series.group !== undefined;
    if (!hasOwn && (step === undefined || page === 'keys')) return null;
    return addressOf({
      ...withValues(this.#state, hasOwn ? values : {}),
      ...(step === undefined ? {} : minutesOf(step)),
      page: 'keys',
    });
  }

  /** Of a bar named after a server and a location. */
  ofPlace(name: string): string | null {
    const values = this.#places.get(name);
    return values === undefined ? null : addressOf(withValues(this.#state, values));
  }
}

function pair(into: Map<string, Values>, options: Options, first: string, second: string): void {
  for (const a of options[first] ?? []) {
    for (const b of options[second] ?? []) {
      into.set(`${a.text} ${b.text}`, { [first]: [a.value], [second]: [b.value] });
    }
  }
}

/** Keys are counted by the minute. */
function minutesOf(step: { seconds: number; stepMs: number }): { from: string; to: string } {
  const beginMs = step.seconds * 1000;
  const fromMs = Math.floor(beginMs / MINUTE_MS) * MINUTE_MS;
  const toMs = Math.ceil((beginMs + step.stepMs) / MINUTE_MS) * MINUTE_MS;
  return { from: String(fromMs), to: String(toMs) };
}
