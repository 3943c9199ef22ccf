/**
 * One frame of `limitlens top`: a snapshot as lines that fit the terminal, in height as in width.
 *
 * Pure: the same snapshot and look give the same lines. Colours are the only control sequences in it.
 */
import {
  fittedTable,
  styled,
  type Cell,
  type FittedColumn,
  type Look,
  type Style,
} from './fitted-table.js';
import type { KeyOrder, TopKey, TopSnapshot, TopZone } from './snapshot.js';
import { columnsOf, cutText, harmlessText } from './terminal-text.js';

export interface FrameLook extends Look {
  /** Infinity for as many as there are. */
  readonly rows: number;
}

export interface FrameState {
  /** What the store is called, or the logs. */
  readonly where: string;
  /** `the store`, or `the logs`. */
  readonly waitsFor: string;
  readonly nowMs: number;
  readonly order: KeyOrder;
  /** Why the numbers are old; empty when they are not. */
  readonly trouble: string;
  /** Whether keys can be pressed. */
  readonly isLive: boolean;
  readonly isPaused: boolean;
}

const HEAD_ROWS = 2;
const FULL_BAR_COLUMNS = 10;

/** Lines without their line feeds, at most as many as the look has rows. */
export function frame(snapshot: TopSnapshot | null, state: FrameState, look: FrameLook): string[] {
  const head = headLines(snapshot, state, look);
  const foot = state.isLive ? [footLine(state, look)] : [];
  if (snapshot === null) return [...head, ...foot].slice(0, look.rows);
  const sources = sourceLines(snapshot, look);
  const free = Math.max(0, look.rows - head.length - sources.length - foot.length - 2);
  const zones = zoneLines(snapshot.zones, look);
  const keys = keyLines(snapshot, state, look);
  // Keys get at least a third of the screen; zones, what they need of the rest.
  const forZones = Math.min(zones.length, Math.max(free - keys.length, Math.ceil((2 * free) / 3)));
  const body = [
    ...(forZones > 1 ? ['', ...shortened(zones, forZones, 'zones', look)] : []),
    ...(free - forZones > 1 ? ['', ...shortened(keys, free - forZones, 'keys', look)] : []),
  ];
  return [...[...head, ...sources, ...body].slice(0, look.rows - foot.length), ...foot];
}

/** At most so many lines; the last one says how many are missing. */
function shortened(lines: string[], most: number, what: string, look: Look): string[] {
  if (lines.length <= most) return lines;
  const missing = lines.length - most + 1;
  const text = cutText(`  and ${missing} more ${what}`, look.columns, look.isUtf8);
  return [...lines.slice(0, most - 1), styled(text, 'soft', look)];
}

function headLines(snapshot: TopSnapshot | null, state: FrameState, look: FrameLook): string[] {
  const where = harmlessText(state.where, look.isUtf8);
  const lines = [line(`limitlens top   ${where}`, 'title', look)];
  if (snapshot === null) lines.push(line(`waiting for ${state.waitsFor}`, undefined, look));
  else if (snapshot.atMs === null)
    lines.push(line(`In ${state.waitsFor} there are no requests yet.`, undefined, look));
  else {
    const { atMs, windowMs, requestsPerSecond } = snapshot;
    const isOld = state.nowMs - atMs > windowMs + 60_000;
    const text =
      `${rateText(requestsPerSecond)} requests/s in the ${windowMs / 1000} s to ${clock(atMs)}, ` +
      `which is ${ago(state.nowMs - atMs)} ago`;
    lines.push(line(text, isOld ? 'warn' : undefined, look));
  }
  if (state.trouble !== '') {
    lines.push(line(harmlessText(state.trouble, look.isUtf8), 'bad', look));
  }
  return lines.slice(0, HEAD_ROWS + 1);
}

function line(text: string, style: Style | undefined, look: Look): string {
  return styled(cutText(text, look.columns, look.isUtf8), style, look);
}

function footLine({ order, isPaused }: FrameState, look: Look): string {
  const sort = order === 'rejected' ? 'excess' : 'rejects';
  return line(`q quit   s keys by ${sort}   space ${isPaused ? 'go on' : 'pause'}`, 'soft', look);
}

/** Who answered 429 and 503, as many as fit in one line. */
function sourceLines({ sources, atMs }: TopSnapshot, look: Look): string[] {
  if (atMs === null) return [];
  let text = '429 and 503/s:';
  if (sources.length === 0) text += ' none';
  for (const { status, source, perSecond } of sources) {
    const next = `${text}   ${status} ${harmlessText(source, look.isUtf8)} ${rateText(perSecond)}`;
    if (columnsOf(next) > look.columns) break;
    text = next;
  }
  return [line(text, sources.length > 0 ? 'warn' : undefined, look)];
}

const ZONE_COLUMNS: readonly FittedColumn[] = [
  { title: 'ZONE', rank: 0 },
  { title: 'RATE', isNumber: true, rank: 4 },
  { title: 'PASSED/s', isNumber: true, rank: 1 },
  { title: 'DELAYED/s', isNumber: true, rank: 1 },
  { title: 'REJECTED/s', isNumber: true, rank: 0 },
  { title: 'DRY RUN/s', isNumber: true, rank: 2 },
  { title: 'EXCESS', isNumber: true, rank: 5 },
  { title: 'FULL', isNumber: true, rank: 3 },
  { title: 'HEADROOM', isNumber: true, rank: 6 },
  { title: 'IN DEBT/h', isNumber: true, rank: 7 },
  { title: '', rank: 8 },
];

function zoneLines(zones: readonly TopZone[], look: Look): string[] {
  if (zones.length === 0) return [];
  const hasMany = new Set(zones.map(({ instance }) => instance)).size > 1;
  return fittedTable(
    ZONE_COLUMNS,
    zones.map((zone) => zoneCells(zone, hasMany, look)),
    look,
  );
}

function zoneCells(zone: TopZone, hasInstance: boolean, look: Look): Cell[] {
  const { nodes, capacityNodes, evictionsInDebt } = zone;
  const name = `${hasInstance ? `${zone.instance} ` : ''}${zone.zone}`;
  const full = nodes === null || !capacityNodes ? null : Math.min(1, nodes / capacityNodes);
  return [
    { text: harmlessText(name + (zone.kind === 'limit_conn' ? ' (conn)' : ''), look.isUtf8) },
    { text: zone.rateMilliRps === null ? '-' : `${zone.rateMilliRps / 1000}r/s`, style: 'soft' },
    { text: rateText(zone.passedPerSecond) },
    rated(zone.delayedPerSecond, 'warn'),
    rated(zone.rejectedPerSecond, 'bad'),
    rated(zone.dryRunPerSecond, 'soft'),
    { text: zone.kind === 'limit_conn' ? '-' : zone.excessMax.toFixed(3) },
    full === null
      ? { text: '-' }
      : { text: `${Math.round(full * 100)} %`, ...(full >= 0.98 ? { style: 'warn' } : {}) },
    { text: full === null ? '-' : count(Math.max(0, capacityNodes! - nodes!)) },
    { text: count(evictionsInDebt), ...(evictionsInDebt > 0 ? { style: 'bad' } : {}) },
    { text: full === null ? '' : bar(full, look.isUtf8), style: 'soft' },
  ];
}

function rated(perSecond: number, style: Style): Cell {
  return { text: rateText(perSecond), ...(perSecond > 0 ? { style } : {}) };
}

function bar(share: number, isUtf8: boolean): string {
  const on = Math.round(share * FULL_BAR_COLUMNS);
  const [full, empty] = isUtf8 ? ['█', '░'] : ['#', '.'];
  return full.repeat(on) + empty.repeat(FULL_BAR_COLUMNS - on);
}

/** Keys come last in their lines: what a client sent cannot move what stands before it. */
const KEY_COLUMNS: readonly FittedColumn[] = [
  { title: 'REJECTED', isNumber: true, rank: 0 },
  { title: 'DELAYED', isNumber: true, rank: 1 },
  { title: 'DRY RUN', isNumber: true, rank: 2 },
  { title: 'PASSED', isNumber: true, rank: 3 },
  { title: 'EXCESS', isNumber: true, rank: 1 },
  { title: 'ZONE', rank: 1 },
  { title: 'KEY', rank: 0 },
];

function keyLines({ keys, keysSinceMs }: TopSnapshot, state: FrameState, look: Look): string[] {
  if (keys.length === 0 || keysSinceMs === null) return [];
  const title = `KEY, since ${clock(keysSinceMs)}, by ${state.order === 'excess' ? 'excess' : 'rejects'}`;
  const columns = KEY_COLUMNS.map((column) =>
    column.title === 'KEY' ? { ...column, title } : column,
  );
  return fittedTable(
    columns,
    keys.map((key) => keyCells(key, look)),
    look,
  );
}

function keyCells(key: TopKey, { isUtf8 }: Look): Cell[] {
  return [
    { text: count(key.rejected), ...(key.rejected > 0 ? { style: 'bad' } : {}) },
    { text: count(key.delayed), ...(key.delayed > 0 ? { style: 'warn' } : {}) },
    { text: count(key.dryRun), style: 'soft' },
    { text: count(key.passed) },
    { text: key.excessMax.toFixed(3) },
    { text: harmlessText(key.zone, isUtf8) },
    { text: harmlessText(key.key, isUtf8) },
  ];
}

/** Two decimals below a hundred, none above. */
function rateText(perSecond: number): string {
  return perSecond < 100 ? perSecond.toFixed(2) : count(Math.round(perSecond));
}

/** 1234567 as `1,234,567`, as the other commands write it. */
function count(value: number): string {
  return value.toLocaleString('en-US');
}

function clock(ms: number): string {
  return `${new Date(ms).toISOString().slice(11, 19)}Z`;
}

function ago(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800
    ? `${Math.round(seconds / 3600)} h`
    : `${Math.round(seconds / 86_400)} d`;
}
