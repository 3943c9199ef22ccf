/**
 * Horizontal bars, one for each name, of parts that add up.
 */
import { colourName, cssColour } from './colours.js';
import { element } from './elements.js';
import { formatNumber, unitOf } from './units.js';
import { visible } from './visible-text.js';
import type { PanelAnswer, PanelInfo } from './wire.js';

export interface BarListOptions {
  readonly panel: PanelInfo;
  readonly answer: PanelAnswer;
  /** Where a name leads, if anywhere. */
  readonly linkOf: (name: string) => string | null;
}

export function barList({ panel, answer, linkOf }: BarListOptions): HTMLElement {
  const parts = answer.columns.slice(1).map(({ name }, at) => ({
    ...{ name, at: at + 1, unit: unitOf(panel, name) },
    colour: cssColour(colourName(name, at)),
    total: answer.rows.reduce((sum, row) => sum + Number(row[at + 1]), 0),
  }));
  const drawn = parts.filter(({ total }) => total > 0);
  const sums = answer.rows.map((row) => parts.reduce((sum, { at }) => sum + Number(row[at]), 0));
  const most = Math.max(...sums, 1);
  const bars = answer.rows.map((row, n) => {
    const name = String(row[0]);
    const link = linkOf(name);
    const label = element('bdi', { title: visible(name) }, [visible(name) || '(empty)']);
    const segments = drawn.map(({ name: part, at, colour, unit }) => {
      const value = Number(row[at]);
      const segment = element('span', { title: `${part}: ${formatNumber(value, unit)}` });
      segment.style.background = colour;
      segment.style.width = `${(100 * value) / most}%`;
      return segment;
    });
    return element('li', {}, [
      link === null ? label : element('a', { href: link }, [label]),
      element('span', { class: 'bar', 'aria-hidden': 'true' }, segments),
      element('span', { class: 'sum' }, [formatNumber(sums[n]!, panel.unit)]),
    ]);
  });
  const legend = drawn.map(({ name, colour }) => {
    const swatch = element('span', { class: 'swatch' });
    swatch.style.background = colour;
    return element('li', {}, [swatch, name]);
  });
  return element('div', {}, [
    element('ul', { class: 'bars' }, bars),
    element('ul', { class: 'legend' }, legend),
  ]);
}
