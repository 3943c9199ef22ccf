/**
 * A few numbers, large.
 */
import { element } from './elements.js';
import { formatNumber, unitOf } from './units.js';
import type { PanelAnswer, PanelInfo } from './wire.js';

export function statList(panel: PanelInfo, { columns, rows }: PanelAnswer): HTMLElement {
  const [row = []] = rows;
  return element(
    'dl',
    { class: 'stats' },
    columns.map(({ name }, at) => {
      const value = row[at] ?? null;
      const text = value === null ? '–' : formatNumber(Number(value), unitOf(panel, name));
      const reached = panel.thresholds?.findLast((one) => Number(value) >= one.value);
      return element('div', {}, [
        element('dt', {}, [name]),
        element('dd', { 'data-state': reached?.colour ?? null }, [text]),
      ]);
    }),
  );
}
