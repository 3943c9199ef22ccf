/**
 * What is said where the times asked for hold no request, though the store does.
 */
import { count } from '../report/table.js';
import type { Filter } from '../store/filter.js';
import { timeSpan } from '../store/queries.js';
import type { Store } from '../store/store.js';

/** @returns undefined when there are requests in the range, or none in the store at all */
export async function emptyRange(store: Store, filter: Filter): Promise<string | undefined> {
  const { sinceMs, untilMs, ...whole } = filter;
  if (sinceMs === undefined && untilMs === undefined) return undefined;
  if ((await timeSpan(store, filter)).length > 0) return undefined;
  const spans = await timeSpan(store, whole);
  if (spans.length === 0) return undefined;
  const requests = spans.reduce((sum, span) => sum + span.requests, 0);
  const fromMs = Math.min(...spans.map((span) => span.fromMs));
  const toMs = Math.max(...spans.map((span) => span.toMs));
  const asked = [
    ...(sinceMs === undefined ? [] : [`since ${time(sinceMs)}`]),
    ...(untilMs === undefined ? [] : [`until ${time(untilMs)}`]),
  ];
  return (
    `No requests ${asked.join(' ')}: the store holds ${count(requests)}, ` +
    `${time(fromMs)} to ${time(toMs)}.`
  );
}

function time(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms) : `${date.toISOString().slice(0, 19)}Z`;
}
