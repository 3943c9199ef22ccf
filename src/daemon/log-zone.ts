/**
 * The zone of the error logs' times, as the access logs show it: found once, by the first line that
 * shows an offset, and kept in the state.
 *
 * Until then nothing is handed on: an error line read with the wrong zone would lie hours away from
 * its request. Where this machine has the same offset at that time, its own zone is taken, which
 * knows when clocks are set.
 */
import type { LineScanner } from '../../parsers/access/line-scanner.js';
import { LogClock, type LogZone } from '../../parsers/time.js';
import type { AccessFields } from '../replay/access-fields.js';

/** Lines of access logs without an offset after which none is expected. */
const MOST_LINES = 10_000;

export class ZoneFinder {
  #zone: LogZone | undefined;
  #lines = 0;
  #isTold = false;
  readonly #onChanged: (offsetMinutes: number) => void;

  /** @param onChanged told once when access lines show another offset than the zone found has */
  constructor(zone: LogZone | undefined, onChanged: (offsetMinutes: number) => void) {
    this.#zone = zone;
    this.#onChanged = onChanged;
  }

  get zone(): LogZone | undefined {
    return this.#zone;
  }

  /** The zone that was found before, unless the user has named one. */
  resume(zone: LogZone | undefined): void {
    this.#zone ??= zone;
  }

  /** Takes this machine's zone if none has been found. */
  settle(): LogZone {
    return (this.#zone ??= 'system');
  }

  /** Looks at an access line that has just been scanned. */
  see(fields: AccessFields, bytes: Uint8Array): void {
    if (this.#zone !== undefined) return;
    const offsetMinutes = fields.offsetMinutes(bytes);
    if (!Number.isNaN(offsetMinutes)) {
      const isOurs = offsetAt('system', fields.endMs(bytes)) === offsetMinutes;
      this.#zone = isOurs ? 'system' : { offsetMinutes };
    } else this.pass();
  }

  /** A line that shows no offset. */
  pass(): void {
    if (this.#zone === undefined && ++this.#lines >= MOST_LINES) this.settle();
  }

  /** Compares a later access line with the zone found; clocks may have been set since. */
  compare(fields: AccessFields, bytes: Uint8Array): void {
    const zone = this.#zone;
    if (this.#isTold || zone === undefined) return;
    const offsetMinutes = fields.offsetMinutes(bytes);
    const ownMinutes = offsetAt(zone, fields.endMs(bytes));
    if (Number.isNaN(offsetMinutes) || ownMinutes === undefined) return;
    if (ownMinutes === offsetMinutes) return;
    this.#isTold = true;
    this.#onChanged(offsetMinutes);
  }
}

/** Whether lines of a format show their offset from UTC. */
export function showsZone(scanner: LineScanner): boolean {
  return scanner.indexOf('time_local') >= 0 || scanner.indexOf('time_iso8601') >= 0;
}

/** Minutes east of UTC at a moment; undefined for a zone that the user named. */
function offsetAt(zone: LogZone, ms: number): number | undefined {
  if (zone === 'system') return -new Date(ms).getTimezoneOffset();
  return 'offsetMinutes' in zone ? zone.offsetMinutes : undefined;
}

/** A log's clock whose zone is found out by the time that its first line is handed on. */
export class LateClock extends LogClock {
  readonly #finder: ZoneFinder;
  #clock: LogClock | undefined;

  constructor(finder: ZoneFinder) {
    super('system');
    this.#finder = finder;
  }

  override toEpochMs(timeText: string): number {
    this.#clock ??= new LogClock(this.#finder.settle());
    return this.#clock.toEpochMs(timeText);
  }
}
