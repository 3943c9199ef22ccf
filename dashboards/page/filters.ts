/**
 * The bar above the panels: time and variables. Every change is a new address.
 */
import { byId, element } from './elements.js';
import { inputTime, moved, PRESETS, timeOfInput, type Span } from './time-range.js';
import { withValues, type ViewState } from './url-state.js';
import { pickerOf, type Picker } from './value-picker.js';
import type { CatalogueAnswer, VariablesAnswer } from './wire.js';

export interface FiltersShown {
  readonly state: ViewState;
  /** What the state's times mean now. */
  readonly span: Span;
  readonly variables: readonly string[];
  readonly options: VariablesAnswer['options'];
}

export class Filters {
  readonly #navigate: (state: ViewState) => void;
  readonly #preset: HTMLSelectElement;
  readonly #from = element('input', { type: 'datetime-local', step: 1 });
  readonly #to = element('input', { type: 'datetime-local', step: 1 });
  readonly #pickers: ReadonlyMap<string, Picker>;
  #shown: FiltersShown | undefined;

  constructor(catalogue: CatalogueAnswer, navigate: (state: ViewState) => void) {
    this.#navigate = navigate;
    const options = PRESETS.map(({ text }, at) => element('option', { value: at }, [text]));
    this.#preset = element('select', {}, [
      ...options,
      element('option', { value: 'own' }, ['From … to …']),
    ]);
    this.#preset.addEventListener('change', () => this.#choosePreset());
    for (const input of [this.#from, this.#to]) {
      input.addEventListener('change', () => this.#chooseOwn());
    }
    this.#pickers = new Map(
      catalogue.variables.map((variable) => [
        variable.name,
        pickerOf(variable, (values) => {
          if (this.#shown === undefined) return;
          this.#navigate(withValues(this.#shown.state, { [variable.name]: values }));
        }),
      ]),
    );
    const form = byId('filters');
    form.addEventListener('submit', (event) => event.preventDefault());
    form.replaceChildren(
      element('fieldset', { class: 'times' }, [
        element('legend', { class: 'unseen' }, ['Time (UTC)']),
        element('label', {}, ['Time ', this.#preset]),
        this.#mover('Earlier', '←', -1),
        this.#mover('Later', '→', 1),
        this.#mover('Zoom out', '−', 0),
        element('label', {}, ['From ', this.#from]),
        element('label', {}, ['To ', this.#to]),
        element('span', { class: 'zone-note' }, ['UTC']),
      ]),
      ...[...this.#pickers.values()].map(({ node }) => node),
    );
  }

  show(shown: FiltersShown): void {
    this.#shown = shown;
    const { state, span, variables, options } = shown;
    const preset = PRESETS.findIndex(({ from, to }) => from === state.from && to === state.to);
    this.#preset.value = preset < 0 ? 'own' : String(preset);
    const inputs = [
      [this.#from, span.fromMs],
      [this.#to, span.toMs],
    ] as const;
    for (const [input, ms] of inputs) {
      if (document.activeElement !== input) input.value = inputTime(ms);
    }
    for (const [name, picker] of this.#pickers) {
      picker.node.hidden = !variables.includes(name);
      picker.show(options[name] ?? [], state.values[name] ?? []);
    }
  }

  #mover(label: string, sign: string, direction: -1 | 0 | 1): HTMLElement {
    const attributes = { type: 'button', 'aria-label': label, title: label };
    return element('button', attributes, [sign], {
      click: () => {
        if (this.#shown !== undefined) this.#go(moved(this.#shown.span, direction));
      },
    });
  }

  #choosePreset(): void {
    const preset = PRESETS[Number(this.#preset.value)];
    if (this.#shown === undefined) return;
    if (preset === undefined) this.#go(this.#shown.span);
    else this.#navigate({ ...this.#shown.state, from: preset.from, to: preset.to });
  }

  #chooseOwn(): void {
    const fromMs = timeOfInput(this.#from.value);
    const toMs = timeOfInput(this.#to.value);
    const isRange = fromMs !== undefined && toMs !== undefined && fromMs < toMs;
    this.#to.setCustomValidity(isRange ? '' : 'Expected a time after the begin.');
    if (isRange) this.#go({ fromMs, toMs });
  }

  #go({ fromMs, toMs }: Span): void {
    const { state } = this.#shown!;
    this.#navigate({ ...state, from: String(fromMs), to: String(toMs) });
  }
}
