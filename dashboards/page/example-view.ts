/**
 * Why one request was limited: what is kept of it, the sums, and the way back to its key.
 */
import { ask, ApiError } from './api-client.js';
import { element } from './elements.js';
import { formatTime } from './units.js';
import { addressOf, valueOf, type ViewState } from './url-state.js';
import { visible } from './visible-text.js';
import type { ExampleAnswer, ExampleInfo } from './wire.js';

const AROUND_MS = 10 * 60_000;
const MINUTE_MS = 60_000;

/** @throws ApiError never: what went wrong is shown */
export async function exampleView(state: ViewState): Promise<HTMLElement> {
  const query = new URLSearchParams();
  for (const [name, [value]] of Object.entries(state.values)) query.set(name, value ?? '');
  try {
    const { example, explanation } = await ask<ExampleAnswer>('example', query);
    return element('section', { class: 'panel w24', 'aria-labelledby': 'example-title' }, [
      element('h2', { id: 'example-title' }, [titleOf(example)]),
      element('dl', { class: 'fields' }, fields(example).flatMap(fieldNodes)),
      element('h3', {}, ['Explanation']),
      element('pre', { tabindex: 0, role: 'region', 'aria-label': 'Explanation' }, [explanation]),
      example.zone === ''
        ? null
        : element('p', {}, [
            element('a', { href: keyAddress(example) }, ['This key in the minutes around']),
          ]),
    ]);
  } catch (error) {
    const text = error instanceof ApiError ? error.message : 'This could not be drawn.';
    return element('p', { class: 'failure', role: 'alert' }, [text]);
  }
}

function titleOf({ status, method, path }: ExampleInfo): string {
  return visible(`${status} to ${method} ${path}`);
}

function fields(example: ExampleInfo): [string, string][] {
  const { source, zone, key, excessMilli } = example;
  return [
    ['Time', `${formatTime(example.timeMs)} UTC`],
    ['Answered by', source],
    ['Instance', example.instance],
    ['Server', example.server],
    ['Location', example.location],
    ...(zone === ''
      ? []
      : ([['Zone', zone] as const, ['Key', key] as const] as [string, string][])),
    ...(excessMilli === 0 ? [] : [['Excess', (excessMilli / 1000).toFixed(3)] as [string, string]]),
  ];
}

function fieldNodes([name, value]: [string, string]): HTMLElement[] {
  return [
    element('dt', {}, [name]),
    element('dd', {}, [element('bdi', {}, [visible(value) || '(empty)'])]),
  ];
}

function keyAddress({ instance, zone, key, timeMs }: ExampleInfo): string {
  const minuteMs = Math.floor(timeMs / MINUTE_MS) * MINUTE_MS;
  return addressOf({
    page: 'keys',
    from: String(minuteMs - AROUND_MS),
    to: String(minuteMs + AROUND_MS),
    values: { instance: [valueOf(instance)], zone: [valueOf(zone)], key: [valueOf(key)] },
  });
}
