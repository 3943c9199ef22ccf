/**
 * The bar above the panels: time and variables. Every change is a new address.
 */
import { byId, element } from './elements.js';
import { inputTime, moved, PRESETS, resolve, timeOfInput, type Span } from './time-range.js';
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

const WRONG_ID = 'wrong-time';
const WRONG =
  'Expected times in UTC like 2026-03-02 10:00:00, or now-15m, the first before the second.';

export class Filters {
  readonly #navigate: (state: ViewState) => void;
  readonly #preset: HTMLSelectElement;
  readonly #from = timeInput();
  readonly #to = timeInput();
  readonly #wrong = element('p', { class: 'wrong', id: WRONG_ID, role: 'alert' });
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
        this.#wrong,
      ]),
      ...[...this.#pickers.values()].map(({ node }) => node),
    );
  }

  /** Makes room for these variables, before what can be chosen is known. */
  lay(variables: readonly string[]): void {
    for (const [name, { node }] of this.#pickers) node.hidden = !variables.includes(name);
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
    this.#sayWrong(false);
    for (const [input, ms] of inputs) {
      if (document.activeElement !== input) input.value = inputTime(ms);
    }
    this.lay(variables);
    for (const [name, picker] of this.#pickers) {
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
    const [from, to] = [timeText(this.#from.value), timeText(this.#to.value)];
    const nowMs = Date.now();
    const isRange = resolve(from ?? '', null, nowMs)! < resolve(to ?? '', null, nowMs)!;
    this.#sayWrong(!isRange);
    if (isRange) this.#navigate({ ...this.#shown!.state, from: from!, to: to! });
  }

  #sayWrong(isWrong: boolean): void {
    this.#wrong.hidden = !isWrong;
    // Filled when it appears, so that it is read out then.
    this.#wrong.textContent = isWrong ? WRONG : '';
    for (const input of [this.#from, this.#to]) input.setAttribute('aria-invalid', String(isWrong));
  }

  #go({ fromMs, toMs }: Span): void {
    const { state } = this.#shown!;
    this.#navigate({ ...state, from: String(fromMs), to: String(toMs) });
  }
}

function timeInput(): HTMLInputElement {
  return element('input', {
    ...{ type: 'text', size: 17, maxlength: 40, autocomplete: 'off', spellcheck: 'false' },
    ...{ placeholder: 'now-15m', 'aria-describedby': WRONG_ID },
  });
}

/** What was typed, as the address has it; undefined for what is no time. */
function timeText(typed: string): string | undefined {
  const text = typed.trim();
  if (/^now(?:-\d{1,6}[smhd])?$/.test(text)) return text;
  const ms = timeOfInput(text);
  return ms === undefined ? undefined : String(ms);
}
