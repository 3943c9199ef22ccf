/**
 * Durations for a terminal.
 */
const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
];

/** Three digits at most, in the largest unit that leaves a whole: `850 ms`, `2.4 s`, `15 min`. */
export function durationText(ms: number): string {
  const unit = UNITS.find(([, size]) => ms >= size);
  if (unit === undefined) return `${Math.round(ms * 10) / 10} ms`;
  const value = ms / unit[1];
  return `${value < 10 ? Math.round(value * 10) / 10 : Math.round(value)} ${unit[0]}`;
}
