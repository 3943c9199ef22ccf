/**
 * A log that rotation cut into pieces, wherever, is imported as the whole would be: to the row.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { openStore } from '../src/store/store.js';
import { Imports } from './support/imports.js';
import { assertSameRows, storedRows, type StoredRows } from './support/tail-site.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

const TRACE = 'g_mixed_2workers';
const PIECES = 10;

async function rowsOf(imports: Imports): Promise<StoredRows> {
  const store = await openStore({ path: imports.store, createIfMissing: false });
  const rows = await storedRows(store);
  await store.close();
  return rows;
}

interface Log {
  readonly name: string;
  readonly conf: string;
  readonly lines: readonly string[];
}

/** @param without cut out of the log's lines and of its format */
function logOf(name: string, without: readonly [lines: RegExp, format: string]): Log {
  const dir = traceDir(TRACE);
  const [pattern, format] = without;
  const text = readFileSync(join(dir, name), 'latin1').trimEnd();
  const conf = readFileSync(join(dir, 'nginx.conf'), 'latin1');
  assert.ok(conf.includes(format));
  return {
    name,
    conf: conf.replace(format, ''),
    lines: text.split('\n').map((line) => line.replace(pattern, '')),
  };
}

// Without connections nothing but their place in the log orders requests of one millisecond.
const LOGS = [
  logOf('access.log', [
    /,"connection":\d+,"connection_requests":\d+/,
    ',"connection":$connection,"connection_requests":$connection_requests',
  ]),
  logOf('combined.log', [/^$/, '']),
];

for (const { name, conf, lines } of LOGS) {
  test(`${name}, cut into pieces anywhere: the rows are those of the whole`, async (t) => {
    const dir = makeTempDir(t);
    const error = join(traceDir(TRACE), 'error.log');
    mkdirSync(join(dir, 'logs'));
    const write = (file: string, text: string): string => {
      writeFileSync(join(dir, file), text, 'latin1');
      return join(dir, file);
    };
    const writeLog = (file: string, of: readonly string[]): string =>
      write(join('logs', file), of.map((line) => `${line}\n`).join(''));
    const confs = [write('nginx.conf', conf)];
    const whole = new Imports(dir, confs, 'whole');
    await whole.add([writeLog(name, lines), error]);
    const expected = await rowsOf(whole);
    // Lines of one moment stand on both sides of these cuts.
    const ties = tiesOf(lines);
    assert.ok(ties.length > PIECES, `${ties.length} neighbours of one moment`);
    const place = fc.oneof(fc.constantFrom(...ties), fc.integer({ min: 1, max: lines.length - 1 }));
    const cuts = fc.uniqueArray(place, { minLength: PIECES - 1, maxLength: PIECES - 1 });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(cuts, async (unsorted) => {
        const at = [0, ...unsorted.sort((a, b) => a - b), lines.length];
        const files = at.slice(0, -1).map((from, i) => {
          const file = i === PIECES - 1 ? name : `${name}.${PIECES - 1 - i}`;
          return writeLog(file, lines.slice(from, at[i + 1]));
        });
        const imports = new Imports(dir, confs, `pieces${run++}`);
        await imports.add([...files, error]);
        assertSameRows(await rowsOf(imports), expected);
      }),
      { seed: 1, numRuns: 3, endOnFailure: true },
    );
  });
}

/** Places before which a line has the time of the line before. */
function tiesOf(lines: readonly string[]): number[] {
  const times = lines.map((line) => /\b\d{10}\.\d{3}\b|\[.*?\]/.exec(line)?.[0]);
  return times.flatMap((time, i) => (i > 0 && time === times[i - 1] ? [i] : []));
}
