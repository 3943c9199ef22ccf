/**
 * Numbers and times as people read them. Times are UTC, as everywhere in limitlens.
 */
import type { Unit } from '../catalogue/panel.js';
import type { Cell, Column, PanelInfo } from './wire.js';

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const EXACT = new Intl.NumberFormat('en', { maximumFractionDigits: 3 });
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

const SUFFIX: Readonly<Partial<Record<Unit, string>>> = {
  'lines per second': '/s',
  milliseconds: ' ms',
  'nodes per second': '/s',
  'requests per second': ' r/s',
};

const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
const SECONDS_PER = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
] as const;

/** A number with its unit, as exact as a table needs it. */
export function formatNumber(value: number, unit: Unit): string {
  switch (unit) {
    case 'ratio':
      return `${SHORT.format(value * 100)} %`;
    case 'bytes':
      return formatBytes(value);
    case 'seconds':
      return formatSeconds(value);
    default:
      return `${Number.isInteger(value) ? WHOLE.format(value) : EXACT.format(value)}${SUFFIX[unit] ?? ''}`;
  }
}

/** The same for an axis, where there is little room. */
export function formatTick(value: number, unit: Unit): string {
  if (unit === 'ratio' || unit === 'bytes' || unit === 'seconds') return formatNumber(value, unit);
  return `${Math.abs(value) >= 10_000 ? COMPACT.format(value) : EXACT.format(value)}${SUFFIX[unit] ?? ''}`;
}

/** For numbers that stand without a unit; null where they have one, or where it says nothing. */
export function unitLabelOf(unit: Unit): string | null {
  return unit === 'requests' || unit === 'nodes' ? unit : null;
}

function formatBytes(value: number): string {
  const power = value < 1 ? 0 : Math.min(BINARY.length - 1, Math.floor(Math.log2(value) / 10));
  return `${SHORT.format(value / 1024 ** power)} ${BINARY[power]!}`;
}

function formatSeconds(value: number): string {
  const [name, seconds] = SECONDS_PER.find(([, least]) => Math.abs(value) >= least) ?? ['s', 1];
  return `${SHORT.format(value / seconds)} ${name}`;
}

/** `2026-03-02 10:00:00`, with milliseconds where there are any. */
export function formatTime(ms: number): string {
  const text = new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
  return text.endsWith('.000') ? text.slice(0, -4) : text;
}

export function unitOf(panel: PanelInfo, column: string): Unit {
  return panel.units?.[column] ?? panel.unit;
}

/** A cell of a table as text; null is a dash. */
export function formatCell(value: Cell, column: Column, unit: Unit): string {
  if (value === null) return '–';
  if (column.type === 'time') return formatTime(Number(value));
  return column.type === 'number' ? formatNumber(Number(value), unit) : String(value);
}
