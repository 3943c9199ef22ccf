/**
 * What is said above the panels about all of them: where there is data when there is none here, what
 * could not be read, what the marks on the time line are.
 */
import { markColourName } from './chart-frame.js';
import { byId, element, type Child } from './elements.js';
import { failure } from './failure.js';
import { spanOf, type Span } from './time-range.js';
import { formatTime } from './units.js';
import { addressOf, type ViewState } from './url-state.js';
import { visible } from './visible-text.js';
import type { Mark } from './wire.js';

/** What to do where nothing can be seen; null where there is something. */
export function hintOf(
  state: ViewState,
  stored: Span | null,
  nowMs: number,
): readonly Child[] | null {
  if (stored === null) {
    const code = (text: string) => element('code', {}, [text]);
    return [
      'Nothing is stored yet. ',
      code('limitlens import --conf nginx.conf access.log error.log'),
      ' takes logs in, ',
      code('limitlens tail --conf nginx.conf'),
      ' follows them. This page shows what comes by itself.',
    ];
  }
  const { fromMs, toMs } = spanOf(state, stored, nowMs);
  if (fromMs < stored.toMs && toMs > stored.fromMs) return null;
  const all = addressOf({ ...state, from: 'first', to: 'last' });
  return [
    `Nothing is stored of this time. What is stored is of ${formatTime(stored.fromMs)} to `,
    `${formatTime(stored.toMs)} UTC. `,
    element('a', { href: all }, ['Show all that is stored']),
  ];
}

/**
 * @param asked of which the first that failed is told
 * @param again asks anew
 */
export function showHint(
  hint: readonly Child[] | null,
  asked: readonly PromiseSettledResult<unknown>[],
  again: () => void,
): void {
  const [failed] = asked.flatMap((one) =>
    one.status === 'rejected' ? [one.reason as unknown] : [],
  );
  const lines =
    failed === undefined ? [] : [failure(failed, again, 'Lists or marks are missing: ')];
  document.getElementById('hint')?.remove();
  if (hint === null && lines.length === 0) return;
  const said = hint === null ? null : element('p', {}, hint);
  byId('view').before(
    element('div', { id: 'hint', class: 'hint', role: 'note' }, [said, ...lines]),
  );
}

export function showMarks(marks: readonly Mark[]): void {
  const known = document.getElementById('marks') as HTMLDetailsElement | null;
  known?.remove();
  if (marks.length === 0) return;
  const kinds = new Map(marks.map(({ id, title }) => [id, title]));
  const legend = [...kinds].flatMap(([id, title]) => {
    const swatch = element('span', { class: 'swatch' });
    swatch.style.borderColor = `var(${markColourName(id)})`;
    return [swatch, title.toLowerCase()];
  });
  const items = marks.map(({ title, fromMs, text, tags }) =>
    element('li', {}, [
      `${formatTime(fromMs)} ${title}: `,
      element('bdi', {}, [visible(text)]),
      ` (${visible(tags)})`,
    ]),
  );
  const count = marks.length === 1 ? '1 mark' : `${marks.length} marks`;
  const summary = element('summary', {}, [`${count} on the time line:`, ...legend]);
  const list = element('ul', { tabindex: 0, 'aria-label': 'Marks' }, items);
  const details = element('details', { id: 'marks' }, [summary, list]);
  details.open = known?.open ?? false;
  byId('lead').append(details);
}
