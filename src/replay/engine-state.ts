/**
 * A replay stopped between two lines, as plain JSON, requests that wait for their decision included.
 *
 * A session that takes it up, in whatever process, decides everything that comes later as the one
 * that was stopped would have. Waiting requests are numbered anew: first the window in decision
 * order, then the calendar in order of time; events and parked requests (parked.ts) each among
 * themselves. Their fields are stored by column, since most columns hold one value, and the rest
 * packs well.
 *
 * Hundreds of thousands of requests can wait, and nothing is read while a state is made: loops here
 * are plain ones over typed arrays.
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
import type { Waiting } from './engine.js';
import type { ReplaySession } from './session.js';
import { restoreZone, snapshotZone, type ZoneState } from './session-state.js';
import type { EarlyCharge, ZoneCounts, ZoneReplay } from './zone-replay.js';

/** Raised when EngineState means something else than before: a daemon takes up no other form. */
export const STATE_FORM = 2;

/** A number, as JSON has it or in words: `NaN`, `-Infinity`. */
export type PackedNumber = number | string;

/** One field of all events: one value for all, or base64 of 32-bit integers or of doubles. */
type Column = { readonly all: PackedNumber } | { readonly i32: string } | { readonly f64: string };

interface WaitingZone extends ZoneState {
  readonly counts: ZoneCounts;
  readonly warm: readonly PackedNumber[];
  /** By key, slots in the numbering of the state. */
  readonly openSlots: readonly (readonly [number, readonly number[]])[];
  /** By key. */
  readonly earlyCharges?: readonly (readonly [number, readonly EarlyCharge[]])[];
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
  readonly hasSettled: boolean;
  /** Requests that wait, and how many of them in the window; the others are in the calendar. */
  readonly waiting: number;
  readonly inWindow: number;
  /** Where each waits, as the distance from the one before; the first from `firstMs`. */
  readonly firstMs: number;
  readonly steps: Column;
  /** Which of them are events, in 32-bit integers; the others are parked. */
  readonly eventsAt: string;
  readonly columns: readonly Column[];
  readonly parkedColumns: readonly Column[];
  readonly details: readonly (readonly [number, RequestDetails])[];
  readonly seeks: readonly (readonly [number, PendingSeek])[];
}

export function snapshotEngine(session: ReplaySession): EngineState {
  const { engine, generations } = session;
  const { pool } = engine;
  const waiting = engine.waiting();
  const { window, calendar } = waiting;
  const members = joined(Int32Array, window.members, calendar.members);
  const [eventsAt, parkedAt] = kindsOf(members);
  const events = eventsAt.map((at) => members[at]!);
  const parked = parkedAt.map((at) => members[at]!);
  const times = joined(Float64Array, window.ms, calendar.ms);
  const numbers = numbersOf(pool, events);
  const refs = waitingRefs(session, events, parked);
  return {
    cursorMs: engine.cursorMs,
    place: Object.fromEntries(
      Object.entries(session.place).map(([name, value]) => [name, pack(Number(value))]),
    ),
    zones: generations.zones.map((zone) => waitingZone(pool, zone, refs.get(zone)!, numbers)),
    generations: generations.snapshot(),
    join: session.join.snapshot(),
    errorFeed: session.errorFeed.snapshot(),
    lineOrder: toBase64(engine.lineOrder.entriesFrom(leastRank(session, events) - NEIGHBOURS)),
    hasSettled: waiting.hasSettled,
    waiting: members.length,
    inWindow: window.members.length,
    firstMs: times[0] ?? 0,
    steps: columnOf(stepsOf(times)),
    eventsAt: toBase64(eventsAt),
    columns: columnsOf(pool, events),
    parkedColumns: engine.parked.columns(parked).map(integerColumn),
    details: byNumber(pool, session.detailsOf, numbers),
    seeks: byNumber(pool, session.seeks, numbers),
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
    for (const [key, charges] of old.earlyCharges ?? []) zone.earlyCharges.set(key, [...charges]);
  }
  generations.restore(state.generations);
  session.join.restore(state.join);
  session.errorFeed.restore(state.errorFeed);
  engine.lineOrder.restore(fromBase64(state.lineOrder));
  engine.startAt(state.cursorMs);
  engine.resume(takeWaiting(session, state, events));
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
    slowHeaders: Number(place['slowHeaders'] ?? 0),
  };
}

/** Forgets the keys that nobody holds; after everybody's restore. */
export function discardUnheldKeys(session: ReplaySession, state: EngineState): void {
  for (const [i, { keys }] of state.zones.entries()) {
    for (const id of keys.ids) session.generations.zones[i]!.keys.discard(id);
  }
}

function waitingZone(
  pool: EventPool,
  zone: ZoneReplay,
  refs: Int32Array,
  numbers: Int32Array,
): WaitingZone {
  const state = snapshotZone(zone, '');
  for (const key of state.memory.table.keyIds) refs[key]!++;
  for (const [key] of state.shadows) refs[key]!++;
  for (const ghost of state.ghosts) refs[ghost.keyId]!++;
  return {
    ...state,
    keys: { ...state.keys, refs: state.keys.ids.map((id) => refs[id]!) },
    counts: { ...zone.counts },
    warm: [zone.warmSinceMs, zone.warmUntilMs, zone.warmHighMilliReq].map(pack),
    openSlots: [...zone.openSlots].map(([key, slots]) => [
      key,
      slots.map((slot) => {
        const event = pool.eventOf(slot);
        return numbers[event / pool.recordLength]! * pool.recordLength + (slot - event);
      }),
    ]),
    earlyCharges: [...zone.earlyCharges],
  };
}

/**
 * References to keys that waiting requests hold, by zone and keyId; with those of the zone itself
 * they are all that the state restores, those of others (the aggregates) are not ours.
 */
function waitingRefs(
  session: ReplaySession,
  events: Int32Array,
  parked: Int32Array,
): ReadonlyMap<ZoneReplay, Int32Array> {
  const { pool, rules, parked: records } = session.engine;
  const refs = new Map(
    session.generations.zones.map((zone) => [zone, new Int32Array(zone.keys.idLimit)]),
  );
  const refsOf = rules.map((rule) => rule.limits.map((limit) => refs.get(limit.zone)!));
  for (let n = 0; n < events.length; n++) {
    const event = events[n]!;
    const limits = refsOf[pool.rules[event]!] ?? [];
    for (let i = 0; i < limits.length; i++) {
      const key = pool.keyId[event + i]!;
      if (key >= 0) limits[i]![key]!++;
    }
  }
  for (let n = 0; n < parked.length; n++) {
    const limits = refsOf[records.rulesOf(parked[n]!)]!;
    for (let i = 0; i < limits.length; i++) {
      const key = records.keyOf(parked[n]!, i);
      if (key >= 0) limits[i]![key]!++;
    }
  }
  return refs;
}

/** The least rank whose neighbours may be asked for yet. */
function leastRank(session: ReplaySession, events: Int32Array): number {
  const { pool } = session.engine;
  let least = session.errorFeed.snapshot().rank;
  for (let i = 0; i < events.length; i++) {
    const rank = pool.errorRank[events[i]!]!;
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

function columnsOf(pool: EventPool, events: Int32Array): Column[] {
  // The first field is a view of the whole memory.
  const memory = pool.loMs;
  const judged = new Set(judgedFields(pool).map(placeOf));
  const links = new Set([placeOf(pool.next)]);
  for (let slot = 0; slot < pool.slots; slot++) links.add(placeOf(pool.nextInKey) + slot);
  const values = new Float64Array(events.length);
  return Array.from({ length: pool.recordLength }, (_, place): Column => {
    if (links.has(place)) return { all: -1 };
    for (let i = 0; i < events.length; i++) values[i] = memory[events[i]! + place]!;
    for (let slot = 0; slot < pool.slots; slot++) {
      if (!judged.has(place - slot)) continue;
      for (let i = 0; i < events.length; i++) {
        if (pool.slotState[events[i]! + slot] === 0) values[i] = 0;
      }
    }
    return columnOf(values);
  });
}

function columnOf(values: Float64Array): Column {
  const first = values[0] ?? 0;
  let isOne = true;
  let isWhole = true;
  for (let i = 0; i < values.length && (isOne || isWhole); i++) {
    const value = values[i]!;
    isOne &&= Object.is(value, first);
    isWhole &&= Object.is(value, value | 0);
  }
  if (isOne) return { all: pack(first) };
  return isWhole ? { i32: toBase64(Int32Array.from(values)) } : { f64: toBase64(values) };
}

function integerColumn(values: Int32Array): Column {
  const first = values[0] ?? 0;
  for (let i = 0; i < values.length; i++) {
    if (values[i] !== first) return { i32: toBase64(values) };
  }
  return { all: first };
}

/** @returns `count` values */
function valuesOf(column: Column, count: number): Float64Array | Int32Array {
  if ('i32' in column) return new Int32Array(bytesOf(column.i32));
  if ('f64' in column) return fromBase64(column.f64);
  return new Float64Array(count).fill(Number(column.all));
}

/** Distances between neighbours, the first one's 0. */
function stepsOf(times: Float64Array): Float64Array {
  const steps = new Float64Array(times.length);
  for (let i = 1; i < times.length; i++) steps[i] = times[i]! - times[i - 1]!;
  return steps;
}

/** @returns the events, in the order of the state */
function takeEvents(pool: EventPool, state: EngineState): Int32Array {
  const events = new Int32Array(bytesOf(state.eventsAt)).map(() => pool.take());
  const memory = pool.loMs;
  for (const [place, column] of state.columns.entries()) {
    const values = valuesOf(column, events.length);
    const own = pool.placeIn(state.columns.length, place);
    for (let i = 0; i < events.length; i++) memory[events[i]! + own] = values[i]!;
  }
  return events;
}

/** What the engine resumes, parked requests parked again. */
function takeWaiting(session: ReplaySession, state: EngineState, events: Int32Array): Waiting {
  const { waiting: count, inWindow } = state;
  const eventsAt = new Int32Array(bytesOf(state.eventsAt));
  const columns = state.parkedColumns.map((column) =>
    Int32Array.from(valuesOf(column, count - events.length)),
  );
  const parked = session.engine.parked.restore(columns, count - events.length);
  const members = new Int32Array(count);
  const times = new Float64Array(count);
  const steps = valuesOf(state.steps, count);
  let ms = state.firstMs;
  let event = 0;
  for (let i = 0; i < count; i++) {
    ms += steps[i]!;
    times[i] = ms;
    members[i] = eventsAt[event] === i ? events[event++]! : parked[i - event]!;
  }
  return {
    window: { members: members.subarray(0, inWindow), ms: times.subarray(0, inWindow) },
    calendar: { members: members.subarray(inWindow), ms: times.subarray(inWindow) },
    hasSettled: state.hasSettled,
  };
}

/** @returns the places of events, and those of parked requests */
function kindsOf(members: Int32Array): readonly [Int32Array, Int32Array] {
  const eventsAt = new Int32Array(members.length);
  const parkedAt = new Int32Array(members.length);
  let events = 0;
  for (let i = 0; i < members.length; i++) {
    if (members[i]! >= 0) eventsAt[events++] = i;
    else parkedAt[i - events] = i;
  }
  return [eventsAt.slice(0, events), parkedAt.slice(0, members.length - events)];
}

/** Each event's number, by its record. */
function numbersOf(pool: EventPool, events: Int32Array): Int32Array {
  const numbers = new Int32Array(pool.capacity).fill(-1);
  for (let i = 0; i < events.length; i++) numbers[events[i]! / pool.recordLength] = i;
  return numbers;
}

function byNumber<T>(
  pool: EventPool,
  map: ReadonlyMap<number, T>,
  numbers: Int32Array,
): (readonly [number, T])[] {
  return [...map].map(([event, value]) => [numbers[event / pool.recordLength]!, value]);
}

function pack(value: number): PackedNumber {
  return Number.isFinite(value) ? value : String(value);
}

function joined<T extends Int32Array | Float64Array>(
  kind: new (length: number) => T,
  first: T,
  second: T,
): T {
  const all = new kind(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
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
