/**
 * What went wrong, where it was to be drawn, with a way to try again.
 */
import { ApiError } from './api-client.js';
import { element } from './elements.js';

export function failure(error: unknown, again: () => void): HTMLElement {
  const text = error instanceof ApiError ? error.message : 'This could not be drawn.';
  return element('div', { class: 'failure' }, [
    element('span', { role: 'alert' }, [text]),
    element('button', { type: 'button', class: 'retry' }, ['Try again'], { click: again }),
  ]);
}
