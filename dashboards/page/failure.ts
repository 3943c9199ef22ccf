/**
 * What went wrong, where it was to be drawn, with a way to try again.
 */
import { ApiError } from './api-client.js';
import { element } from './elements.js';

/** @param missing what is not there because of it */
export function failure(error: unknown, again: () => void, missing = ''): HTMLElement {
  const text = error instanceof ApiError ? error.message : 'This could not be drawn.';
  return element('div', { class: 'failure' }, [
    element('span', { role: 'alert' }, [missing + text]),
    element('button', { type: 'button', class: 'retry' }, ['Try again'], { click: again }),
  ]);
}
