/**
 * Chooses values of a variable: several from a list that can be searched, or one that may be typed.
 */
import { element } from './elements.js';
import { nameOf, valueOf } from './url-state.js';
import { visible } from './visible-text.js';
import type { VariableInfo, VariableOption } from './wire.js';

type Choose = (values: readonly string[]) => void;

/** A longer list is searched. */
const MANY_OPTIONS = 8;

export interface Picker {
  readonly node: HTMLElement;
  /** Shows these options and what is chosen of them. */
  show(options: readonly VariableOption[], chosen: readonly string[]): void;
}

export function pickerOf(variable: VariableInfo, choose: Choose): Picker {
  return variable.isMulti ? listPicker(variable, choose) : textPicker(variable, choose);
}

function listPicker({ name, label }: VariableInfo, choose: Choose): Picker {
  const summary = element('summary');
  const search = element('input', {
    type: 'search',
    'aria-label': `Search in ${label.toLowerCase()}s`,
    placeholder: 'Search',
  });
  const list = element('div', { class: 'options' });
  const all = element('button', { type: 'button' }, ['All'], { click: () => choose([]) });
  const popup = element('fieldset', {}, [element('legend', {}, [label]), search, all, list]);
  const node = element('details', { class: 'picker', 'data-variable': name }, [summary, popup]);
  search.addEventListener('input', () => {
    const wanted = search.value.toLowerCase();
    for (const option of list.children) {
      (option as HTMLElement).hidden = !option.textContent.toLowerCase().includes(wanted);
    }
  });
  closeWhenLeft(node, summary);
  const show: Picker['show'] = (options, chosen) => {
    const known = new Set(options.map(({ value }) => value));
    const missing = chosen.filter((value) => !known.has(value));
    const shown = [...missing.map((value) => ({ value, text: nameOf(value) })), ...options];
    const texts = shown.filter(({ value }) => chosen.includes(value)).map(({ text }) => text);
    summary.replaceChildren(`${label}: `, element('bdi', {}, [summaryOf(texts)]));
    search.hidden = shown.length <= MANY_OPTIONS;
    // The box that was just changed keeps the focus while others come and go.
    const focused = (document.activeElement as HTMLInputElement | null)?.value;
    const hadFocus = list.contains(document.activeElement);
    list.replaceChildren(
      ...shown.map(({ value, text }) => {
        const box = element('input', { type: 'checkbox', value });
        box.checked = chosen.includes(value);
        box.addEventListener('change', () => {
          choose(box.checked ? [...chosen, value] : chosen.filter((one) => one !== value));
        });
        return element('label', {}, [box, element('bdi', {}, [visible(text) || '(empty)'])]);
      }),
    );
    search.dispatchEvent(new Event('input'));
    if (hadFocus) {
      const boxes = [...list.querySelectorAll('input')];
      boxes.find((box) => box.value === focused)?.focus();
    }
  };
  return { node, show };
}

function summaryOf(texts: readonly string[]): string {
  const [first] = texts;
  if (first === undefined) return 'All';
  return texts.length > 1 ? `${texts.length} chosen` : visible(first) || '(empty)';
}

/** Escape and a click elsewhere close it. */
function closeWhenLeft(details: HTMLDetailsElement, summary: HTMLElement): void {
  details.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    details.open = false;
    summary.focus();
  });
  document.addEventListener('click', (event) => {
    if (!event.composedPath().includes(details)) details.open = false;
  });
}

function textPicker({ name, label }: VariableInfo, choose: Choose): Picker {
  const listId = `options-${name}`;
  const input = element('input', { type: 'text', list: listId, autocomplete: 'off', size: 24 });
  const list = element('datalist', { id: listId });
  const node = element('label', { class: 'picker', 'data-variable': name }, [label, input, list]);
  let known: readonly VariableOption[] = [];
  input.addEventListener('change', () => {
    const { value: text } = input;
    const option = known.find((one) => visible(one.text) === text);
    choose(text === '' ? [] : [option?.value ?? valueOf(text)]);
  });
  return {
    node,
    show: (options, [chosen]) => {
      known = options;
      list.replaceChildren(
        ...options.map(({ text }) => element('option', { value: visible(text) })),
      );
      const option = options.find(({ value }) => value === chosen);
      const text = chosen === undefined ? '' : (option?.text ?? nameOf(chosen));
      if (document.activeElement !== input) input.value = visible(text);
    },
  };
}
