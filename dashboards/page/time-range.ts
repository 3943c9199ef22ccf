/**
 * The times that can be chosen, and what each looks like. Pure: knows no page.
 *
 * A time is as in the address: `now-1h`, `first`, epoch milliseconds. Units: milliseconds.
 */
export interface Preset {
  readonly from: string;
  readonly to: string;
  readonly text: string;
}

export const ALL_TIME: Preset = { from: 'first', to: 'last', text: 'All that is stored' };
const LAST_HOUR: Preset = { from: 'now-1h', to: 'now', text: 'Last hour' };

export const PRESETS: readonly Preset[] = [
  { from: 'now-15m', to: 'now', text: 'Last 15 minutes' },
  LAST_HOUR,
  { from: 'now-6h', to: 'now', text: 'Last 6 hours' },
  { from: 'now-24h', to: 'now', text: 'Last 24 hours' },
  { from: 'now-7d', to: 'now', text: 'Last 7 days' },
  { from: 'now-30d', to: 'now', text: 'Last 30 days' },
  ALL_TIME,
];

const HOUR_MS = 3_600_000;
const LEAST_MS = 60_000;

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The last hour of a store that is being filled; all of one with old logs. */
export function defaultRange(span: Span | null, nowMs: number): Preset {
  return span !== null && span.toMs < nowMs - HOUR_MS ? ALL_TIME : LAST_HOUR;
}

/** What a time means now; undefined for one that is none. */
export function resolve(text: string, span: Span | null, nowMs: number): number | undefined {
  const ago = /^now(?:-(\d+)([smhd]))?$/.exec(text);
  const unitMs = { s: 1000, m: 60_000, h: HOUR_MS, d: 24 * HOUR_MS }[ago?.[2] ?? 's'] ?? 0;
  if (ago !== null) return nowMs - Number(ago[1] ?? 0) * unitMs;
  if (text === 'first') return span?.fromMs ?? nowMs - HOUR_MS;
  if (text === 'last') return span?.toMs ?? nowMs;
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** What two times mean now; one that is none is now. */
export function spanOf(
  { from, to }: { readonly from: string | null; readonly to: string | null },
  span: Span | null,
  nowMs: number,
): Span {
  const [fromMs, toMs] = [from, to].map((text) => resolve(text ?? '', span, nowMs) ?? nowMs);
  return { fromMs: fromMs!, toMs: toMs! };
}

/** The same length, earlier (-1) or later (1) by half of it; or twice as long (0). */
export function moved({ fromMs, toMs }: Span, direction: -1 | 0 | 1): Span {
  const halfMs = Math.max(LEAST_MS, toMs - fromMs) / 2;
  const by = (ms: number) => Math.round(ms);
  if (direction === 0) return { fromMs: by(fromMs - halfMs), toMs: by(toMs + halfMs) };
  return { fromMs: by(fromMs + direction * halfMs), toMs: by(toMs + direction * halfMs) };
}

/** As it stands in an input: UTC, to the second, as logs are read. */
export function inputTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
}

/** Of `2026-03-02`, `2026-03-02 10:00`, with seconds, with `T` and `Z` or without; undefined of others. */
export function timeOfInput(text: string): number | undefined {
  const found = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?Z?$/.exec(text.trim());
  const ms = found === null ? NaN : Date.parse(`${found[1]}T${found[2] ?? '00:00'}Z`);
  return Number.isNaN(ms) ? undefined : ms;
}
