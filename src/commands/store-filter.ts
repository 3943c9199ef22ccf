/**
 * Which part of the store a command is about: --instance, --since, --until.
 */
import { EXIT, InputError } from '../errors.js';
import type { Filter } from '../store/filter.js';

export interface FilterChoice {
  readonly instance?: string;
  readonly since?: string;
  readonly until?: string;
}

/** @throws InputError 64 for a time that is none */
export function filterOf({ instance, since, until }: FilterChoice, nowMs = Date.now()): Filter {
  const sinceMs = timeOf('--since', since, nowMs);
  const untilMs = timeOf('--until', until, nowMs);
  return {
    ...(instance === undefined ? {} : { instance }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
    ...(untilMs === undefined ? {} : { untilMs }),
  };
}

const DATE = /^\d{4}-\d\d-\d\d/;
const AGO = /^(\d+)(s|m|h|d)$/;
const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** An ISO 8601 time, or how long ago: `2h`. @throws InputError 64 */
export function timeOf(
  option: string,
  text: string | undefined,
  nowMs: number,
): number | undefined {
  if (text === undefined) return undefined;
  const ago = AGO.exec(text);
  if (ago !== null) return nowMs - Number(ago[1]) * UNIT_MS[ago[2]!]!;
  // Date.parse() alone takes "99" for a year.
  const ms = DATE.test(text) ? Date.parse(text) : NaN;
  if (!Number.isNaN(ms)) return ms;
  throw new InputError(
    `${option} ${text}: expected a time like 2026-03-02T10:00:00Z, or 2h for two hours ago`,
    EXIT.usage,
  );
}
