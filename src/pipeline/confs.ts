/**
 * The configurations named on the command line: `--conf FILE`, several with `--conf FILE@TIME`.
 */
import { isKnownZone } from '../../parsers/time.js';
import { EXIT, InputError } from '../errors.js';
import { loadConf } from '../input/conf-files.js';
import type { GenerationInput } from '../replay/generations.js';

const WITH_TIME = /^(.+)@(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)?|\d{9,13}(?:\.\d+)?)$/;

/**
 * Reads the configurations in the order given, which must be that of their times.
 *
 * @param given `FILE`, or `FILE@TIME` with an ISO 8601 time or epoch seconds
 * @throws InputError 64 for a bad time, 66 or 78 from the configuration itself
 */
export function readConfs(given: readonly string[]): GenerationInput[] {
  let previousMs = -Infinity;
  return given.map((text) => {
    const match = WITH_TIME.exec(text);
    const path = match?.[1] ?? text;
    const sinceMs = match === null ? null : timeOf(match[2]!, text);
    if (sinceMs !== null && sinceMs < previousMs) {
      throw new InputError(
        `--conf ${text}: configurations come in the order of their times`,
        EXIT.usage,
      );
    }
    previousMs = sinceMs ?? previousMs;
    return { conf: loadConf(path), sinceMs };
  });
}

function timeOf(text: string, option: string): number {
  const ms = /^[\d.]+$/.test(text)
    ? Number(text) * (text.length > 11 && !text.includes('.') ? 1 : 1000)
    : Date.parse(text);
  if (!Number.isNaN(ms)) return ms;
  throw new InputError(
    `--conf ${option}: expected a time like 2026-03-02T10:00:00Z after the @`,
    EXIT.usage,
  );
}

/** @throws InputError 64 for a zone that this machine does not know */
export function checkTimezone(name: string | undefined): void {
  if (name === undefined || isKnownZone(name)) return;
  throw new InputError(
    `--timezone ${name}: no such time zone; expected an IANA name like Europe/Berlin or UTC`,
    EXIT.usage,
  );
}
