/**
 * A replay stopped between two lines, as plain JSON, requests that wait for their decision included.
 *
 * A session that takes it up, in whatever process, decides everything that comes later as the one
 * that was stopped would have. Waiting requests are renumbered: first the window in decision order,
 * then the calendar in order of time. Their fields are stored by column, since most columns hold one
 * value, and the rest packs well.
 *
 * Not here: zones between two imports, where nothing waits (session-state.ts); the aggregates.
 */
import type { PendingSeek } from './access-feed.js';
import type { RequestDetails } from './line-details.js';
import type { ErrorFeedSnapshot } from './error-feed.js';
import type { EventPool } from './event-pool.js';
import type { GenerationsSnapshot } from './generations.js';
import type { LineJoinSnapshot } from './line-join.js';
import { NEIGHBOURS } from './line-order.js';
import type { ReplaySession } from './session.js';
import { restoreZone, snapshotZone, type ZoneState } from './session-state.js';
import type { ZoneCounts, ZoneReplay } from './zone-replay.js';

/** A number, as JSON has it or in words: `NaN`, `-Infinity`. */
export type PackedNumber = number | string;

/** One field of all events: one value for all, or base64 of 32-bit integers or of doubles. */
type Column = { readonly all: PackedNumber } | { readonly i32: string } | { readonly f64: string };

interface WaitingZone extends ZoneState {
  readonly counts: ZoneCounts;
  readonly warm: readonly PackedNumber[];
  /** By key, slots in the numbering of the state. */
  readonly openSlots: readonly (readonly [number, readonly number[]])[];
}

export interface EngineState {
  readonly cursorMs: number;
  readonly place: Readonly<Record<string, PackedNumber>>;
  readonly zones: readonly WaitingZone[];
  readonly generations: GenerationsSnapshot;
  readonly join: LineJoinSnapshot;
  readonly errorFeed: ErrorFeedSnapshot;
  /** LineOrder.entriesFrom(), base64. */
  readonly lineOrder: string;
  /** Events in the window; the others are in the calendar, at these milliseconds. */
  readonly inWindow: number;
  readonly calendarMs: string;
  readonly columns: readonly Column[];
  readonly details: readonly (readonly [number, RequestDetails])[];
  readonly seeks: readonly (readonly [number, PendingSeek])[];
}

export function snapshotEngine(session: ReplaySession): EngineState {
  const { engine, generations } = session;
  const { pool } = engine;
  const { window, calendar } = engine.waiting();
  const events = [...window, ...calendar.map(({ event }) => event)];
  const numbers = new Map(events.map((event, i) => [event, i]));
  return {
    cursorMs: engine.cursorMs,
    place: Object.fromEntries(
      Object.entries(session.place).map(([name, value]) => [name, pack(Number(value))]),
    ),
    zones: generations.zones.map((zone) => waitingZone(session, zone, events, numbers)),
    generations: generations.snapshot(),
    join: session.join.snapshot(),
    errorFeed: session.errorFeed.snapshot(),
    lineOrder: toBase64(engine.lineOrder.entriesFrom(leastRank(session, events) - NEIGHBOURS)),
    inWindow: window.length,
    calendarMs: toBase64(Float64Array.from(calendar, ({ ms }) => ms)),
    columns: columnsOf(pool, events),
    details: byNumber(session.detailsOf, numbers),
    seeks: byNumber(session.seeks, numbers),
  };
}

/**
 * Puts the state into a session of the same configurations, or of these and later ones, that has
 * seen no line yet.
 *
 * Keys that somebody else held (the aggregates) keep their ids without references; when those have
 * retained them again, discardUnheldKeys() drops the rest.
 */
export function restoreEngine(session: ReplaySession, state: EngineState): void {
  const { engine, generations } = session;
  const events = takeEvents(engine.pool, state);
  // Later configurations can have rules of more limits.
  const length = state.columns.length;
  for (const [i, old] of state.zones.entries()) {
    const zone = generations.zones[i]!;
    restoreZone(zone, old, old.memory.rateMilliRps);
    Object.assign(zone.counts, old.counts);
    [zone.warmSinceMs, zone.warmUntilMs, zone.warmHighMilliReq] = old.warm.map(Number) as [
      number,
      number,
      number,
    ];
    for (const [key, slots] of old.openSlots) {
      const moved = slots.map((slot) => events[Math.floor(slot / length)]! + (slot % length));
      zone.openSlots.set(key, moved);
    }
  }
  generations.restore(state.generations);
  session.join.restore(state.join);
  session.errorFeed.restore(state.errorFeed);
  engine.lineOrder.restore(fromBase64(state.lineOrder));
  engine.startAt(state.cursorMs);
  const times = fromBase64(state.calendarMs);
  engine.resume(
    events.slice(0, state.inWindow),
    events.slice(state.inWindow).map((event, i) => ({ event, ms: times[i]! })),
  );
  for (const [number, details] of state.details) session.detailsOf.set(events[number]!, details);
  for (const [number, seek] of state.seeks) session.seeks.set(events[number]!, seek);
  const { place } = state;
  session.place = {
    latestMs: Number(place['latestMs']),
    steppedMs: Number(place['steppedMs']),
    startMs: Number(place['startMs']),
    masterPid: Number(place['masterPid']),
    hasBegun: Number(place['hasBegun']) === 1,
    errorEvents: Number(place['errorEvents']),
  };
}

/** Forgets the keys that nobody holds; after everybody's restore. */
export function discardUnheldKeys(session: ReplaySession, state: EngineState): void {
  for (const [i, { keys }] of state.zones.entries()) {
    for (const id of keys.ids) session.generations.zones[i]!.keys.discard(id);
  }
}

function waitingZone(
  session: ReplaySession,
  zone: ZoneReplay,
  events: readonly number[],
  numbers: ReadonlyMap<number, number>,
): WaitingZone {
  const { pool } = session.engine;
  const state = snapshotZone(zone, '');
  return {
    ...state,
    keys: { ...state.keys, refs: ownRefs(session, zone, state, events) },
    counts: { ...zone.counts },
    warm: [zone.warmSinceMs, zone.warmUntilMs, zone.warmHighMilliReq].map(pack),
    openSlots: [...zone.openSlots].map(([key, slots]) => [
      key,
      slots.map((slot) => {
        const event = pool.eventOf(slot);
        return numbers.get(event)! * pool.recordLength + (slot - event);
      }),
    ]),
  };
}

/** References that zone and waiting events hold; those of others are not ours to restore. */
function ownRefs(
  session: ReplaySession,
  zone: ZoneReplay,
  state: ZoneState,
  events: readonly number[],
): number[] {
  const refs = new Map<number, number>();
  const count = (key: number): void => {
    refs.set(key, (refs.get(key) ?? 0) + 1);
  };
  for (const key of state.memory.table.keyIds) count(key);
  for (const [key] of state.shadows) count(key);
  for (const ghost of state.ghosts) count(ghost.keyId);
  const { pool, rules } = session.engine;
  for (const event of events) {
    const rule = rules[pool.rules[event]!];
    for (const [i, limit] of (rule?.limits ?? []).entries()) {
      if (limit.zone === zone && pool.keyId[event + i]! >= 0) count(pool.keyId[event + i]!);
    }
  }
  return state.keys.ids.map((id) => refs.get(id) ?? 0);
}

/** The least rank whose neighbours may be asked for yet. */
function leastRank(session: ReplaySession, events: readonly number[]): number {
  const { pool } = session.engine;
  let least = session.errorFeed.snapshot().rank;
  for (const event of events) {
    const rank = pool.errorRank[event]!;
    if (rank >= 0) least = Math.min(least, rank);
  }
  for (const line of session.join.pending()) least = Math.min(least, line.rank);
  return least;
}

/** Fields of slots that hold nothing before the slot is judged. */
function judgedFields(pool: EventPool): readonly Float64Array[] {
  return [
    pool.excessMilliReq,
    pool.lowMilliReq,
    pool.highMilliReq,
    pool.priorLowMilliReq,
    pool.priorHighMilliReq,
    pool.priorMilliReq,
  ];
}

function placeOf(field: Float64Array): number {
  return field.byteOffset / Float64Array.BYTES_PER_ELEMENT;
}

function columnsOf(pool: EventPool, events: readonly number[]): Column[] {
  // The first field is a view of the whole memory.
  const memory = pool.loMs;
  const judged = new Set(judgedFields(pool).map(placeOf));
  const links = new Set([placeOf(pool.next)]);
  for (let slot = 0; slot < pool.slots; slot++) links.add(placeOf(pool.nextInKey) + slot);
  return Array.from({ length: pool.recordLength }, (_, place): Column => {
    if (links.has(place)) return { all: -1 };
    const values = Float64Array.from(events, (event) => memory[event + place]!);
    for (let slot = 0; slot < pool.slots; slot++) {
      if (!judged.has(place - slot)) continue;
      for (const [i, event] of events.entries()) {
        if (pool.slotState[event + slot] === 0) values[i] = 0;
      }
    }
    return columnOf(values);
  });
}

function columnOf(values: Float64Array): Column {
  const first = values[0] ?? 0;
  if (values.every((value) => Object.is(value, first))) return { all: pack(first) };
  const integers = Int32Array.from(values);
  if (values.every((value, i) => Object.is(value, integers[i]))) return { i32: toBase64(integers) };
  return { f64: toBase64(values) };
}

/** @returns the events, in the order of the state */
function takeEvents(pool: EventPool, state: EngineState): number[] {
  const times = fromBase64(state.calendarMs);
  const events = Array.from({ length: state.inWindow + times.length }, () => pool.take());
  const memory = pool.loMs;
  for (const [place, column] of state.columns.entries()) {
    const all = 'all' in column ? Number(column.all) : NaN;
    const values =
      'i32' in column
        ? new Int32Array(bytesOf(column.i32))
        : 'f64' in column
          ? fromBase64(column.f64)
          : undefined;
    const own = pool.placeIn(state.columns.length, place);
    for (const [i, event] of events.entries()) memory[event + own] = values?.[i] ?? all;
  }
  return events;
}

function byNumber<T>(
  map: ReadonlyMap<number, T>,
  numbers: ReadonlyMap<number, number>,
): (readonly [number, T])[] {
  return [...map].map(([event, value]) => [numbers.get(event)!, value]);
}

function pack(value: number): PackedNumber {
  return Number.isFinite(value) ? value : String(value);
}

function toBase64(values: Float64Array | Int32Array): string {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('base64');
}

/** A copy of its own, aligned as typed arrays need it. */
function bytesOf(text: string): ArrayBuffer {
  return Uint8Array.from(Buffer.from(text, 'base64')).buffer;
}

function fromBase64(text: string): Float64Array {
  return new Float64Array(bytesOf(text));
}
