import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { lastStatus, parseInteger, parseThousandths, sumSecondsMs } from '../parsers/bytes.js';
import {
  LogClock,
  isKnownZone,
  offsetOfTimeLocalMinutes,
  parseIso8601Ms,
  parseMsec,
  parseSecondsMs,
  parseTimeLocalMs,
} from '../parsers/time.js';

type ByteParser = (bytes: Uint8Array, start: number, end: number) => number;

/** Applies a parser to text in the middle of a buffer. */
function apply(parser: ByteParser, text: string): number {
  const bytes = Buffer.from(`9${text}9`);
  return parser(bytes, 1, bytes.length - 1);
}

const byteCases: readonly (readonly [ByteParser, string, number])[] = [
  [parseMsec, '1796022103.711', 1_796_022_103_711],
  [parseMsec, '0.001', 1],
  [parseMsec, '1796022103.71', Number.NaN],
  [parseMsec, '1796022103', Number.NaN],
  [parseMsec, '.711', Number.NaN],
  [parseMsec, '-', Number.NaN],
  [parseMsec, '', Number.NaN],
  [parseMsec, '17x6022103.711', Number.NaN],
  [parseSecondsMs, '12.345', 12_345],
  [parseTimeLocalMs, '02/Mar/2026:10:00:00 +0000', Date.UTC(2026, 2, 2, 10)],
  [parseTimeLocalMs, '02/Mar/2026:10:00:00 +0130', Date.UTC(2026, 2, 2, 8, 30)],
  [parseTimeLocalMs, '31/Dec/2026:23:59:59 -0800', Date.UTC(2027, 0, 1, 7, 59, 59)],
  [parseTimeLocalMs, '02/Mar/2026:10:00:00 +000', Number.NaN],
  [parseTimeLocalMs, '02/Mrr/2026:10:00:00 +0000', Number.NaN],
  [parseTimeLocalMs, '00/Mar/2026:10:00:00 +0000', Number.NaN],
  [parseTimeLocalMs, '02/Mar/2026:24:00:00 +0000', Number.NaN],
  [parseTimeLocalMs, '02/Mar/2026:10:00:00 *0000', Number.NaN],
  [parseIso8601Ms, '2026-03-02T10:00:00+00:00', Date.UTC(2026, 2, 2, 10)],
  [parseIso8601Ms, '2026-03-02T10:00:00-03:30', Date.UTC(2026, 2, 2, 13, 30)],
  [parseIso8601Ms, '2026-13-02T10:00:00+00:00', Number.NaN],
  [parseIso8601Ms, '2026-03-02T10:00:00Z', Number.NaN],
  [offsetOfTimeLocalMinutes, '02/Mar/2026:10:00:00 +0130', 90],
  [offsetOfTimeLocalMinutes, '02/Mar/2026:10:00:00 -0800', -480],
  [offsetOfTimeLocalMinutes, '-', Number.NaN],
  [parseInteger, '0', 0],
  [parseInteger, '1234567890123', 1_234_567_890_123],
  [parseInteger, '-', -1],
  [parseInteger, '', -1],
  [parseInteger, '12a', -1],
  [parseThousandths, '0.020', 20],
  [parseThousandths, '3', 3000],
  [parseThousandths, '3.5', 3500],
  [parseThousandths, '3.12345', 3123],
  [parseThousandths, '3.', -1],
  [parseThousandths, '3.1x', -1],
  [parseThousandths, '3.123x', -1],
  [parseThousandths, '-', -1],
  [parseThousandths, '', -1],
  [lastStatus, '200', 200],
  [lastStatus, '502, 504 : 200', 200],
  [lastStatus, '502, -', -1],
  [lastStatus, '502 : ', -1],
  [lastStatus, '-', -1],
  [lastStatus, '', -1],
  [sumSecondsMs, '0.003', 3],
  [sumSecondsMs, '0.003, 0.021 : 1.000', 1024],
  [sumSecondsMs, '-, 0.021', 21],
  [sumSecondsMs, '0.002 : ', 2],
  [sumSecondsMs, '0.000', 0],
  [sumSecondsMs, '-, -', -1],
  [sumSecondsMs, '', -1],
];

describe('numbers and times in bytes', () => {
  for (const [parser, text, expected] of byteCases) {
    test(`${parser.name}: ${text}`, () => assert.equal(apply(parser, text), expected));
  }

  test('a repeated $time_local comes from the cache, a changed byte does not', () => {
    const text = '02/Mar/2026:10:00:00 +0000';
    const expected = Date.UTC(2026, 2, 2, 10);
    assert.equal(apply(parseTimeLocalMs, text), expected);
    assert.equal(apply(parseTimeLocalMs, text), expected);
    assert.equal(apply(parseTimeLocalMs, text.replace(':00 ', ':01 ')), expected + 1000);
    assert.ok(Number.isNaN(apply(parseTimeLocalMs, 'x'.repeat(26))));
    assert.ok(Number.isNaN(apply(parseTimeLocalMs, 'x'.repeat(26))));
  });

  test('every second of the two formats, in any zone', () => {
    const instant = fc.integer({ min: 0, max: 4_102_444_799 });
    const offset = fc.integer({ min: -14 * 60, max: 14 * 60 });
    fc.assert(
      fc.property(instant, offset, (seconds, offsetMinutes) => {
        const wall = new Date((seconds + offsetMinutes * 60) * 1000);
        const iso = wall.toISOString().slice(0, 19);
        const month = wall.toUTCString().slice(8, 11);
        const size = Math.abs(offsetMinutes);
        const sign = offsetMinutes < 0 ? '-' : '+';
        const hours = `${sign}${String(Math.floor(size / 60)).padStart(2, '0')}`;
        const minutes = String(size % 60).padStart(2, '0');
        const local = `${iso.slice(8, 10)}/${month}/${iso.slice(0, 4)}:${iso.slice(11)} ${hours}${minutes}`;
        assert.equal(apply(parseIso8601Ms, `${iso}${hours}:${minutes}`), seconds * 1000);
        assert.equal(apply(parseTimeLocalMs, local), seconds * 1000);
        assert.equal(apply(offsetOfTimeLocalMinutes, local), offsetMinutes);
      }),
    );
  });
});

function instants(clock: LogClock, times: readonly string[]): string[] {
  return times.map((time) => new Date(clock.toEpochMs(time)).toISOString().slice(0, 19));
}

describe('error log times', () => {
  test('a fixed offset', () => {
    const clock = new LogClock({ offsetMinutes: 90 });
    assert.deepEqual(instants(clock, ['2026/03/02 10:00:00', '2026/03/02 10:00:59']), [
      '2026-03-02T08:30:00',
      '2026-03-02T08:30:59',
    ]);
  });

  test('a zone in summer and in winter', () => {
    const clock = new LogClock({ iana: 'Europe/Berlin' });
    assert.deepEqual(instants(clock, ['2026/03/02 10:00:00', '2026/07/02 10:00:00']), [
      '2026-03-02T09:00:00',
      '2026-07-02T08:00:00',
    ]);
  });

  test('the hour that comes twice is told by the order of the lines', () => {
    const clock = new LogClock({ iana: 'Europe/Berlin' });
    assert.deepEqual(
      instants(clock, [
        '2026/10/25 01:59:59',
        '2026/10/25 02:00:00',
        '2026/10/25 02:59:00',
        // Another worker, a second late: no reason to think that an hour has passed.
        '2026/10/25 02:58:59',
        '2026/10/25 02:00:01',
        '2026/10/25 02:30:00',
        '2026/10/25 02:59:59',
        '2026/10/25 03:00:00',
      ]),
      [
        '2026-10-24T23:59:59',
        '2026-10-25T00:00:00',
        '2026-10-25T00:59:00',
        '2026-10-25T00:58:59',
        '2026-10-25T01:00:01',
        '2026-10-25T01:30:00',
        '2026-10-25T01:59:59',
        '2026-10-25T02:00:00',
      ],
    );
  });

  test('a log that begins within the hour that comes twice is in the first', () => {
    const clock = new LogClock({ iana: 'America/New_York' });
    assert.deepEqual(instants(clock, ['2026/11/01 01:30:00']), ['2026-11-01T05:30:00']);
  });

  test('the hour that is skipped counts on from before', () => {
    const clock = new LogClock({ iana: 'Europe/Berlin' });
    assert.deepEqual(
      instants(clock, ['2026/03/29 01:59:59', '2026/03/29 02:30:00', '2026/03/29 03:00:00']),
      ['2026-03-29T00:59:59', '2026-03-29T01:30:00', '2026-03-29T01:00:00'],
    );
  });

  test("the system's zone agrees with Date", () => {
    const clock = new LogClock('system');
    assert.equal(clock.toEpochMs('2026/01/15 12:00:00'), new Date(2026, 0, 15, 12).getTime());
  });

  test('what is no time, and what is no zone', () => {
    const clock = new LogClock({ offsetMinutes: 0 });
    for (const text of ['', '2026/03/02', '2026/13/02 10:00:00', '2026/03/02 10:00:xx', '-']) {
      assert.ok(Number.isNaN(clock.toEpochMs(text)), text);
    }
    assert.equal(clock.toEpochMs('2026/03/02 10:00:00'), Date.UTC(2026, 2, 2, 10));
    assert.ok(Number.isNaN(clock.toEpochMs('2026/03/02 10:00:xx')));
    assert.equal(isKnownZone('Europe/Berlin'), true);
    assert.equal(isKnownZone('Europe/Atlantis'), false);
    assert.ok(
      Number.isNaN(new LogClock({ iana: 'Europe/Atlantis' }).toEpochMs('2026/03/02 10:00:00')),
    );
  });

  test('every time of a day is what the zone says', () => {
    const zones = ['UTC', 'Asia/Kolkata', 'Australia/Lord_Howe', 'America/St_Johns', 'Asia/Tokyo'];
    const hour = fc.integer({ min: 0, max: 24 * 365 });
    fc.assert(
      fc.property(fc.constantFrom(...zones), hour, (zone, hours) => {
        const epochMs = Date.UTC(2026, 0, 1) + hours * 3_600_000 + 61_000;
        const wall = new Intl.DateTimeFormat('sv-SE', {
          timeZone: zone,
          dateStyle: 'short',
          timeStyle: 'medium',
        }).format(epochMs);
        const clock = new LogClock({ iana: zone });
        const found = clock.toEpochMs(wall.replaceAll('-', '/'));
        // Alone, a time in an hour that comes twice is taken for the first one.
        assert.ok(found === epochMs || [30, 60].includes((epochMs - found) / 60_000), wall);
      }),
    );
  });
});
