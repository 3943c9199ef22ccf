/**
 * The times of lines as they are read, before any is handed on; and the zone that they show.
 */
import { LogClock } from '../../parsers/time.js';
import { PrefixStripper } from '../../parsers/prefix.js';
import { AccessFields } from '../replay/access-fields.js';
import type { ZoneFinder } from './log-zone.js';
import type { TailLog } from './tail-log.js';

export class LineTimes {
  readonly #isPrefixed: boolean;
  readonly #zone: ZoneFinder;
  /** undefined for an error log. */
  readonly #fields: AccessFields | undefined;
  #clock: LogClock | undefined;

  constructor(log: TailLog, zone: ZoneFinder) {
    this.#isPrefixed = log.isPrefixed;
    this.#fields = log.kind === 'access' ? new AccessFields(log.file.scanner) : undefined;
    this.#zone = zone;
  }

  /** Looks at a line for the zone that access logs show; costs nothing once that is known. */
  see(bytes: Uint8Array, start: number, end: number): void {
    if (this.#zone.zone !== undefined || this.#fields === undefined) return;
    const line = this.#bare(bytes.subarray(start, end));
    const { scanner } = this.#fields;
    const isRead = line !== undefined && scanner.scan(line, 0, line.length) < 0;
    if (isRead) this.#zone.see(this.#fields, line);
    else this.#zone.pass();
  }

  /** The time of a line; NaN where it shows none, or its zone is not known yet. */
  of(raw: Uint8Array): number {
    const line = this.#bare(raw);
    if (line === undefined) return NaN;
    const fields = this.#fields;
    if (fields !== undefined && fields.scanner.scan(line, 0, line.length) < 0) {
      this.#zone.compare(fields, line);
      return fields.endMs(line);
    }
    // Error lines stand among a container's access lines.
    const { zone } = this.#zone;
    if (zone === undefined) return NaN;
    this.#clock ??= new LogClock(zone);
    return this.#clock.toEpochMs(Buffer.from(line.subarray(0, 19)).toString('latin1'));
  }

  #bare(line: Uint8Array): Uint8Array | undefined {
    if (!this.#isPrefixed) return line;
    const bare = new PrefixStripper().push(Buffer.from(line).toString('latin1'));
    return bare === undefined ? undefined : Buffer.from(bare, 'latin1');
  }
}
