/**
 * Colours of series and states, from the style sheet's variables, so that light and dark differ in
 * one place. What has a meaning has its colour on every chart; others take turns.
 */
import type { Colour } from '../catalogue/panel.js';

const MEANT: Readonly<Record<string, string>> = {
  passed: 'passed',
  'let through': 'passed',
  delayed: 'delayed',
  delays: 'delayed',
  rejected: 'rejected',
  rejections: 'rejected',
  'keys rejected': 'rejected',
  'keys delayed': 'delayed',
  'keys rejected, dry run': 'rejected-dry',
  'zone exhausted': 'exhausted',
  'delayed, dry run': 'delayed-dry',
  'delays, dry run': 'delayed-dry',
  'rejected, dry run': 'rejected-dry',
  'rejections, dry run': 'rejected-dry',
  limit_req: 'rejected',
  'limit_req, zone exhausted': 'exhausted',
  limit_req_zone_exhausted: 'exhausted',
  limit_conn: 'conn',
  'limit_conn, zone exhausted': 'conn-exhausted',
  limit_conn_zone_exhausted: 'conn-exhausted',
  upstream: 'upstream',
  nginx: 'nginx',
  unknown: 'unknown',
  unparsable: 'rejected',
  'at least': 'bound',
  'at most': 'bound',
  burst: 'rejected',
  delay: 'delayed',
};

const TURNS = 10;

/** Name of the style sheet's variable for a series. @param at its place among those drawn */
export function colourName(name: string, at: number): string {
  const meant = Object.hasOwn(MEANT, name) ? MEANT[name] : undefined;
  return meant === undefined ? `--series-${at % TURNS}` : `--${meant}`;
}

/** Columns that are a limit's setting beside what is measured: drawn dashed. */
const LEVELS = new Set(['burst', 'delay', 'capacity']);

export function isLevel(column: string): boolean {
  return LEVELS.has(column);
}

export function stateColourName(colour: Colour): string {
  return `--state-${colour}`;
}

/** A variable's value as it is now; a canvas can't use variables. */
export function cssColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
