/**
 * The files of dashboards/grafana: their names and their text.
 */
import { DASHBOARDS } from './catalogue/dashboards.js';
import { PROMETHEUS_DASHBOARD } from './catalogue/prometheus.js';
import { prometheusDashboard, storeDashboard } from './grafana-dashboard.js';

/** Where the links to runbooks lead when nothing else is said: from the root of the repository. */
export const RUNBOOKS = 'alerts/runbooks';

/** File name to text; see storeDashboard() for the argument. */
export function grafanaFiles(runbooksUrl: string = RUNBOOKS): ReadonlyMap<string, string> {
  const dashboards = [
    ...DASHBOARDS.map((source) => [source.id, storeDashboard(source, runbooksUrl)] as const),
    [PROMETHEUS_DASHBOARD.id, prometheusDashboard(runbooksUrl)] as const,
  ];
  return new Map(
    dashboards.map(([id, json]) => [`${id}.json`, `${render(plain(json), '', 0, 0)}\n`]),
  );
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Without what JSON has no word for. */
function plain(value: unknown): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}

const LINE_WIDTH = 100;

/**
 * JSON as Prettier leaves it: a list of plain values stands on one line where that is wide enough.
 *
 * @param before characters on the line before the value, indentation included
 * @param after characters that follow it there
 */
function render(value: Json, indent: string, before: number, after: number): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const isList = Array.isArray(value);
  const [open, close] = isList ? '[]' : '{}';
  const entries: [string, Json][] = Object.entries(value);
  if (entries.length === 0) return `${open}${close}`;
  if (isList && entries.every(([, one]) => one === null || typeof one !== 'object')) {
    const line = `[${entries.map(([, one]) => JSON.stringify(one)).join(', ')}]`;
    if (before + line.length + after <= LINE_WIDTH) return line;
  }
  const inner = `${indent}  `;
  const parts = entries.map(([name, one], n) => {
    const label = isList ? '' : `${JSON.stringify(name)}: `;
    const comma = n === entries.length - 1 ? 0 : 1;
    return inner + label + render(one, inner, inner.length + label.length, comma);
  });
  return `${open}\n${parts.join(',\n')}\n${indent}${close}`;
}
