/**
 * The panels of one dashboard, in one time, with one choice of values; and what moves them on: the
 * address, news of the store, panels that come into view.
 */
import { ask, ApiError } from './api-client.js';
import { DrillDowns } from './drill-down.js';
import { byId, element } from './elements.js';
import { exampleView } from './example-view.js';
import { failure } from './failure.js';
import { Filters } from './filters.js';
import { PanelView, type PanelContext } from './panel-view.js';
import { defaultRange, spanOf, type Span } from './time-range.js';
import { formatTime } from './units.js';
import { HOME, queryOf, withValues, type ViewState } from './url-state.js';
import { hintOf, showHint, showMarks } from './view-notes.js';
import type {
  AnnotationsAnswer,
  CatalogueAnswer,
  DashboardInfo,
  Mark,
  PanelInfo,
  SpanAnswer,
  VariablesAnswer,
} from './wire.js';

/** Panels that are about to come into view load already. */
const MARGIN = '200px';

/** What the catalogue has for the overview alone, here for the key that is chosen. */
const EXAMPLES: PanelInfo = {
  id: 'keys-examples',
  title: 'Examples',
  question: 'What do such requests look like, and why were they limited?',
  why: 'A few are kept of each place and minute. Choose a time to have one explained.',
  kind: 'table',
  unit: 'requests',
  units: { status: 'count' },
  width: 24,
};

/** A state's times, as they are now. */
interface Times {
  readonly state: ViewState;
  readonly span: Span | null;
  readonly nowMs: number;
  /** For the API. */
  readonly query: URLSearchParams;
}

export class View {
  readonly #catalogue: CatalogueAnswer;
  readonly #navigate: (address: string) => void;
  readonly #go: (state: ViewState) => void;
  readonly #filters: Filters;
  readonly #observer: IntersectionObserver;
  readonly #byNode = new Map<Element, PanelView>();
  #panels: readonly PanelView[] = [];
  #page: string | undefined;
  #state: ViewState | undefined;
  /** Counts what is shown: what comes back for an older one is dropped. */
  #turn = 0;

  /** @param go to a state, by its address */
  constructor(
    catalogue: CatalogueAnswer,
    go: (state: ViewState) => void,
    navigate: (address: string) => void,
  ) {
    this.#catalogue = catalogue;
    this.#go = go;
    this.#navigate = navigate;
    this.#filters = new Filters(catalogue, go);
    this.#observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          this.#byNode.get(target)?.setInView(isIntersecting);
        }
      },
      { rootMargin: MARGIN },
    );
  }

  /** Shows what an address says, or why it can't. */
  async show(state: ViewState): Promise<void> {
    const turn = ++this.#turn;
    this.#state = state;
    byId('panels').setAttribute('aria-busy', 'true');
    byId('filters').hidden = state.page === 'example';
    try {
      if (state.page === 'example') await this.#showExample(state, turn);
      else await this.#showDashboard(state, turn);
    } catch (error) {
      if (turn === this.#turn) this.#fail(error);
    }
    if (turn === this.#turn) byId('panels').setAttribute('aria-busy', 'false');
  }

  /** There are new rows in the store, or it answers again. */
  async refresh(): Promise<void> {
    const state = this.#state;
    if (state === undefined || state.page === 'example') return;
    if (this.#page === undefined) {
      await this.show(state);
      return;
    }
    const turn = ++this.#turn;
    // What stands there is still right as far as it goes.
    const times = await this.#times(state, turn).catch(() => undefined);
    if (times === undefined) return;
    const context = await this.#lists(times, this.#dashboardOf(state.page), turn);
    if (context === undefined) return;
    for (const panel of this.#panels) panel.refresh(context);
  }

  /** Draws again with other colours. */
  redraw(): void {
    for (const panel of this.#panels) panel.redraw();
  }

  #dashboardOf(page: string): DashboardInfo {
    const { dashboards } = this.#catalogue;
    return (
      dashboards.find(({ name }) => name === page) ?? dashboards.find(({ name }) => name === HOME)!
    );
  }

  #lay({ name, title, question, panels, variables }: DashboardInfo): void {
    this.#clear();
    this.#filters.lay(variables);
    this.#head(name, title, question);
    this.#panels = panels.map((panel) => new PanelView(panel));
    if (name === 'keys') this.#panels = [...this.#panels, new PanelView(EXAMPLES, 'examples')];
    const grid = element(
      'div',
      { class: 'grid' },
      this.#panels.map(({ node }) => node),
    );
    byId('view').replaceChildren(grid);
    for (const panel of this.#panels) {
      this.#byNode.set(panel.node, panel);
      this.#observer.observe(panel.node);
    }
  }

  #clear(): void {
    this.#observer.disconnect();
    this.#byNode.clear();
    for (const panel of this.#panels) panel.destroy();
    this.#panels = [];
  }

  #head(page: string, title: string, question: string): void {
    const isFirst = this.#page === undefined;
    this.#page = page;
    const text = `${title.charAt(0).toUpperCase()}${title.slice(1)}`;
    document.title = `${text} – limitlens`;
    byId('title').textContent = text;
    byId('question').textContent = question;
    for (const link of byId('dashboards').querySelectorAll('a')) {
      if (link.dataset['page'] === page) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    // A reader of the screen is told where it is now.
    if (!isFirst) byId('title').focus({ preventScroll: true });
  }

  async #showDashboard(state: ViewState, turn: number): Promise<void> {
    const dashboard = this.#dashboardOf(state.page);
    if (this.#page !== dashboard.name) this.#lay(dashboard);
    const times = await this.#times(state, turn);
    if (times === undefined) return;
    // A key that nobody chose is the first of its list; else panels need not wait for lists.
    const isWaiting = dashboard.variables.includes('key') && state.values['key'] === undefined;
    const first = isWaiting ? undefined : this.#context(times.state, times.query, {}, []);
    if (first !== undefined) for (const panel of this.#panels) panel.show(first);
    const context = await this.#lists(times, dashboard, turn);
    if (context === undefined) return;
    for (const panel of this.#panels) {
      if (isWaiting) panel.show(context);
      else panel.amend(context);
    }
  }

  #fail(error: unknown): void {
    this.#clear();
    this.#page = undefined;
    byId('view').replaceChildren(failure(error, () => void this.show(this.#state!)));
    if (!(error instanceof ApiError)) throw error;
  }

  async #showExample(state: ViewState, turn: number): Promise<void> {
    this.#clear();
    showHint(null, [], () => undefined);
    showMarks([]);
    this.#head('example', 'why this request was limited', '');
    const view = await exampleView(state);
    if (turn === this.#turn)
      byId('view').replaceChildren(element('div', { class: 'grid' }, [view]));
  }

  /** What the times of a state mean; undefined when the view has moved on. */
  async #times(given: ViewState, turn: number): Promise<Times | undefined> {
    const { span, nowMs } = await ask<SpanAnswer>('span');
    if (turn !== this.#turn) return undefined;
    const state = { ...given, ...rangeOf(given, span, nowMs) };
    this.#showFreshness(span);
    return { state, span, nowMs, query: this.#queryOf(state, span) };
  }

  /** Lists of values and marks, which all panels share; undefined when the view has moved on. */
  async #lists(
    times: Times,
    dashboard: DashboardInfo,
    turn: number,
  ): Promise<PanelContext | undefined> {
    const { state, span, nowMs, query } = times;
    const names = dashboard.variables.map((name) => ['name', name]);
    const asked = new URLSearchParams([...query, ...names]);
    // Panels have answers of their own, also where these fail.
    const [found, marked] = await Promise.allSettled([
      ask<VariablesAnswer>('variables', asked),
      ask<AnnotationsAnswer>('annotations', query),
    ]);
    if (turn !== this.#turn) return undefined;
    const options = found.status === 'fulfilled' ? found.value.options : {};
    const marks = marked.status === 'fulfilled' ? marked.value.marks : [];
    const chosen = this.#withKey(state, dashboard, options);
    showHint(hintOf(state, span, nowMs), [found, marked], () => void this.show(state));
    showMarks(marks);
    this.#filters.show({
      state: chosen,
      ...{ variables: dashboard.variables, options },
      span: spanOf(chosen, span, nowMs),
    });
    return this.#context(chosen, query, options, marks);
  }

  #context(
    state: ViewState,
    query: URLSearchParams,
    options: VariablesAnswer['options'],
    marks: readonly Mark[],
  ): PanelContext {
    const all = new URLSearchParams(query);
    all.delete('key');
    for (const value of state.values['key'] ?? []) all.append('key', value);
    return {
      query: all,
      marks,
      drill: new DrillDowns(this.#catalogue, state, options),
      navigate: this.#navigate,
      zoom: (fromMs, toMs) => this.#go({ ...state, from: String(fromMs), to: String(toMs) }),
    };
  }

  /** For the API, which need not look up again what the store holds. */
  #queryOf(state: ViewState, span: Span | null): URLSearchParams {
    const known = [...queryOf(state)].filter(([name]) => this.#isVariable(name));
    const query = new URLSearchParams(known);
    if (span !== null && state.from === 'first') query.set('from', String(span.fromMs));
    if (span !== null && state.to === 'last') query.set('to', String(span.toMs));
    return query;
  }

  #isVariable(name: string): boolean {
    const isTime = name === 'from' || name === 'to';
    return isTime || this.#catalogue.variables.some((variable) => variable.name === name);
  }

  /** A variable of one value has the first of its options until one is chosen. */
  #withKey(
    state: ViewState,
    { variables }: DashboardInfo,
    options: VariablesAnswer['options'],
  ): ViewState {
    const first = options['key']?.[0]?.value;
    const isOpen = variables.includes('key') && state.values['key'] === undefined;
    return isOpen && first !== undefined ? withValues(state, { key: [first] }) : state;
  }

  #showFreshness(span: Span | null): void {
    const text = span === null ? 'The store is empty.' : `Data until ${formatTime(span.toMs)} UTC`;
    byId('freshness').textContent = text;
  }
}

function rangeOf(state: ViewState, span: Span | null, nowMs: number): { from: string; to: string } {
  const preset = defaultRange(span, nowMs);
  return { from: state.from ?? preset.from, to: state.to ?? preset.to };
}
