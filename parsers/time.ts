/**
 * nginx's ways to write a time, as milliseconds since the epoch.
 *
 * The access log has zones or none needed ($time_local, $time_iso8601, $msec). The error log
 * writes local time without one (ngx_cached_err_log_time), so a LogClock must be told which zone
 * that is, and finds out by the order of the lines which of two equal hours is meant when clocks
 * are set back.
 *
 * Units: milliseconds and minutes, in the names. NaN for what is no such time; nothing throws.
 * The byte functions allocate nothing.
 */
import { IANAZone, SystemZone, type Zone } from 'luxon';

const ZERO = 0x30;
const MS_PER_MINUTE = 60_000;
const MS_PER_DAY = 86_400_000;

/** $msec, `1796022103.711`. */
export function parseMsec(bytes: Uint8Array, start: number, end: number): number {
  const dot = end - 4;
  if (dot <= start || bytes[dot] !== 0x2e) return Number.NaN;
  const seconds = digits(bytes, start, dot);
  const milliseconds = digits(bytes, dot + 1, end);
  return seconds < 0 || milliseconds < 0 ? Number.NaN : seconds * 1000 + milliseconds;
}

/** $request_time, `0.020`, in milliseconds. The same shape as $msec, and an interval. */
export function parseSecondsMs(bytes: Uint8Array, start: number, end: number): number {
  return parseMsec(bytes, start, end);
}

function digits(bytes: Uint8Array, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - ZERO;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

const TIME_LOCAL_BYTES = 26;
const TIME_ISO8601_BYTES = 25;
/** The last $time_local and what it meant: thousands of lines share a second. */
const cachedText = new Uint8Array(TIME_LOCAL_BYTES);
let cachedMs = Number.NaN;

/** $time_local, `02/Mar/2026:10:00:00 +0000`. */
export function parseTimeLocalMs(bytes: Uint8Array, start: number, end: number): number {
  if (end - start !== TIME_LOCAL_BYTES) return Number.NaN;
  let same = 0;
  while (same < TIME_LOCAL_BYTES && bytes[start + same] === cachedText[same]) same++;
  if (same === TIME_LOCAL_BYTES) return cachedMs;
  cachedMs = computeTimeLocalMs(bytes, start);
  for (let i = 0; i < TIME_LOCAL_BYTES; i++) cachedText[i] = bytes[start + i]!;
  return cachedMs;
}

function computeTimeLocalMs(bytes: Uint8Array, start: number): number {
  const day = digits(bytes, start, start + 2);
  const month = monthAt(bytes, start + 3);
  const year = digits(bytes, start + 7, start + 11);
  const offsetMinutes = offsetAt(bytes, start + 21, start + 24);
  return wallMs(bytes, start + 12, year, month, day) - offsetMinutes * MS_PER_MINUTE;
}

/** The offset in a $time_local, `+0130` being 90 minutes. */
export function offsetOfTimeLocalMinutes(bytes: Uint8Array, start: number, end: number): number {
  return end - start === TIME_LOCAL_BYTES ? offsetAt(bytes, start + 21, start + 24) : Number.NaN;
}

/** $time_iso8601, `2026-03-02T10:00:00+00:00`. */
export function parseIso8601Ms(bytes: Uint8Array, start: number, end: number): number {
  if (end - start !== TIME_ISO8601_BYTES) return Number.NaN;
  const year = digits(bytes, start, start + 4);
  const month = digits(bytes, start + 5, start + 7);
  const day = digits(bytes, start + 8, start + 10);
  const offsetMinutes = offsetAt(bytes, start + 19, start + 23);
  return wallMs(bytes, start + 11, year, month, day) - offsetMinutes * MS_PER_MINUTE;
}

/** A sign and hours at `at`, minutes at `minutesAt`. */
function offsetAt(bytes: Uint8Array, at: number, minutesAt: number): number {
  const sign = bytes[at] === 0x2b ? 1 : bytes[at] === 0x2d ? -1 : Number.NaN;
  const hours = digits(bytes, at + 1, at + 3);
  const minutes = digits(bytes, minutesAt, minutesAt + 2);
  return hours < 0 || minutes < 0 ? Number.NaN : sign * (hours * 60 + minutes);
}

const MONTHS = 'janfebmaraprmayjunjulaugsepoctnovdec';

/** 1 to 12, or -1. */
function monthAt(bytes: Uint8Array, at: number): number {
  for (let month = 0; month < 12; month++) {
    let i = 0;
    while (i < 3 && (bytes[at + i]! | 0x20) === MONTHS.charCodeAt(month * 3 + i)) i++;
    if (i === 3) return month + 1;
  }
  return -1;
}

/** The date with the `hh:mm:ss` at `at`, as if in UTC. */
function wallMs(bytes: Uint8Array, at: number, year: number, month: number, day: number): number {
  const hour = digits(bytes, at, at + 2);
  const minute = digits(bytes, at + 3, at + 5);
  const second = digits(bytes, at + 6, at + 8);
  const isDate = year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
  const isTime =
    hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second <= 60;
  return isDate && isTime ? Date.UTC(year, month - 1, day, hour, minute, second) : Number.NaN;
}

/** The zone in which an error log was written. */
export type LogZone = { readonly iana: string } | { readonly offsetMinutes: number } | 'system';

/** Whether this machine knows an IANA zone, `Europe/Berlin`. */
export function isKnownZone(name: string): boolean {
  return IANAZone.isValidZone(name);
}

/**
 * Lines of several workers come out of order by a second or so. A step back of more than this,
 * in an hour that happens twice, is the second time.
 */
const DISORDER_MS = 60_000;

const ERROR_TIME = /^(\d{4})\/(\d\d)\/(\d\d) (\d\d):(\d\d):(\d\d)$/;

/** Reads the times of one error log, in the order of its lines. */
export class LogClock {
  readonly #zone: Zone | number;
  #minuteText = '';
  #minuteMs = Number.NaN;
  #lastMs = Number.NaN;

  /** A zone that isKnownZone() refuses gives NaN for every time. */
  constructor(zone: LogZone) {
    if (zone === 'system') this.#zone = SystemZone.instance;
    else this.#zone = 'iana' in zone ? IANAZone.create(zone.iana) : zone.offsetMinutes;
  }

  /**
   * @param timeText `2026/03/02 10:00:00`
   * @returns milliseconds since the epoch; NaN when it is no such time. An hour that clocks skip,
   * which a log of this zone can't show, counts on from before the change
   */
  toEpochMs(timeText: string): number {
    const minuteText = timeText.slice(0, 16);
    const seconds = Number(timeText.slice(17));
    if (minuteText !== this.#minuteText || timeText.length !== 19 || !(seconds >= 0)) {
      const match = ERROR_TIME.exec(timeText);
      if (match === null) return Number.NaN;
      this.#minuteMs = this.#resolve(wallMinuteMs(match), seconds * 1000);
      this.#minuteText = minuteText;
    }
    const epochMs = this.#minuteMs + seconds * 1000;
    if (!Number.isNaN(epochMs)) this.#lastMs = epochMs;
    return epochMs;
  }

  /** Turns a wall time into an epoch time; the seconds only tell which of two hours it is. */
  #resolve(wallMs: number, secondsMs: number): number {
    const zone = this.#zone;
    if (typeof zone === 'number') return wallMs - zone * MS_PER_MINUTE;
    // A day to either side is past any change of the clocks that could concern this minute.
    const beforeMinutes = zone.offset(wallMs - MS_PER_DAY);
    const afterMinutes = zone.offset(wallMs + MS_PER_DAY);
    const firstMs = wallMs - beforeMinutes * MS_PER_MINUTE;
    if (beforeMinutes === afterMinutes) return firstMs;
    const secondMs = wallMs - afterMinutes * MS_PER_MINUTE;
    const mayBeFirst = zone.offset(firstMs) === beforeMinutes;
    const mayBeSecond = zone.offset(secondMs) === afterMinutes;
    if (mayBeFirst && mayBeSecond) {
      return firstMs + secondsMs < this.#lastMs - DISORDER_MS ? secondMs : firstMs;
    }
    return mayBeSecond ? secondMs : firstMs;
  }
}

/** NaN for a date that does not exist; the seconds are left out. */
function wallMinuteMs(match: RegExpExecArray): number {
  const [year, month, day, hour, minute] = match.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    number,
  ];
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59) return Number.NaN;
  return Date.UTC(year, month - 1, day, hour, minute);
}
