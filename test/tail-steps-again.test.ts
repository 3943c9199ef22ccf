/**
 * Steps done again from a state make the rows that they made the first time: record by record, table
 * by table. What a restart drops as stored already, and what the store drops by its token, is then
 * what it has.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import type { TableRows } from '../src/daemon/spool.js';
import { randomLines, type RandomRequest } from './support/random-lines.js';
import { SteppedDaemon } from './support/stepped-daemon.js';
import { captureLines, type LogLine } from './support/tail-site.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

const CONF = join(traceDir('g_mixed_2workers'), 'nginx.conf');

/** What happens between two looks at the logs. */
interface Turn {
  /** Lines that are written, and how much of the next one. */
  readonly lines: number;
  readonly cut: number;
  readonly rotates: 'access.log' | 'error.log' | null;
  readonly isWhole: boolean;
}

interface Life {
  readonly mostBytes: number;
  readonly turns: readonly Turn[];
  /** Which of the states are gone on from, and up to which record, as shares of all. */
  readonly restarts: readonly (readonly [from: number, to: number])[];
}

/** A life takes a second or so, and says what differs as it is: not made smaller. */
const REPORT = { endOnFailure: true, includeErrorInReport: true };

const SHARE = fc.double({ min: 0, max: 1, noNaN: true });

function lives(most: number): fc.Arbitrary<Life> {
  const turn = fc.record({
    lines: fc.nat({ max: most }),
    cut: SHARE,
    rotates: fc.oneof(
      { weight: 8, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.constantFrom('access.log' as const, 'error.log' as const) },
    ),
    isWhole: fc.boolean(),
  });
  return fc.record({
    mostBytes: fc.constantFrom(700, 3000, 20_000, 1 << 20),
    turns: fc.array(turn, { minLength: 4, maxLength: 16 }),
    restarts: fc.array(fc.tuple(SHARE, SHARE), { minLength: 2, maxLength: 4 }),
  });
}

/** Lives one life, then parts of it again. @returns records compared */
async function compare(folder: string, lines: readonly LogLine[], life: Life): Promise<number> {
  const { mostBytes, turns } = life;
  mkdirSync(folder);
  const daemon = new SteppedDaemon(folder, CONF, { mostBytes, latenessMs: 2000 });
  try {
    await live(daemon, lines, turns);
    const { records, states } = daemon;
    let compared = 0;
    for (const [fromShare, toShare] of life.restarts) {
      const from = states[Math.floor(fromShare * (states.length - 1))]!;
      // Pieces of a log are known as such once it has been read from: by the first record.
      const to = Math.max(1, from + Math.round(toShare * (records.size - from)));
      const again = await daemon.again(from, to);
      for (let sequence = from + 1; sequence <= to; sequence++) {
        const place = `record ${sequence}, from the state of ${from}`;
        assertSame(again.get(sequence)!, records.get(sequence)!, place);
        compared++;
      }
      const later = (sequence: number): boolean => sequence > from;
      assert.deepEqual(summed(again, later), summed(records, later), `all after ${from}, to ${to}`);
    }
    assert.ok(!/"level":"error"/.test(daemon.said), daemon.said);
    return compared;
  } finally {
    await daemon.close();
  }
}

async function live(
  daemon: SteppedDaemon,
  lines: readonly LogLine[],
  turns: readonly Turn[],
): Promise<void> {
  let at = 0;
  /** Of the line begun last. */
  let rest: LogLine | undefined;
  const end = (): void => {
    if (rest !== undefined) daemon.append(rest.name, `${rest.text}\n`);
    rest = undefined;
  };
  const write = (count: number): void => {
    for (const { name, text } of lines.slice(at, at + count)) daemon.append(name, `${text}\n`);
    at = Math.min(lines.length, at + count);
  };
  // A log is told by its content.
  write(1 + lines.findIndex(({ name }) => name === 'access.log'));
  write(1 + lines.slice(at).findIndex(({ name }) => name === 'error.log'));
  await daemon.step(true);
  for (const { lines: count, cut, rotates, isWhole } of turns) {
    end();
    write(count);
    if (rotates !== null) daemon.rotate(rotates);
    const next = lines[at];
    if (next !== undefined) {
      const length = Math.floor(cut * next.text.length);
      daemon.append(next.name, next.text.slice(0, length));
      rest = { ...next, text: next.text.slice(length) };
      at++;
    }
    await daemon.step(isWhole);
  }
  end();
  write(lines.length);
  await daemon.step(true);
  await daemon.step(false);
  await daemon.drain();
}

function assertSame(found: readonly TableRows[], expected: readonly TableRows[], at: string): void {
  const rowsOf = (tables: readonly TableRows[]): string[] =>
    tables.flatMap(({ table, rows }) => rows.map((row) => `${table} ${JSON.stringify(row)}`));
  const [has, wanted] = [new Set(rowsOf(found)), new Set(rowsOf(expected))];
  const missing = [...wanted].filter((row) => !has.has(row)).slice(0, 3);
  const extra = [...has].filter((row) => !wanted.has(row)).slice(0, 3);
  assert.deepEqual({ at, missing, extra }, { at, missing: [], extra: [] });
  // In the same order as well: the engine cuts large blocks at fixed places.
  assert.equal(JSON.stringify(found), JSON.stringify(expected), at);
}

/** Rows of many records, sorted; of lines read, which come in parts, the sums. */
function summed(
  records: ReadonlyMap<number, readonly TableRows[]>,
  isCounted: (sequence: number) => boolean,
): string[] {
  const rows: string[] = [];
  const lines = new Map<string, number>();
  for (const [sequence, tables] of records) {
    if (!isCounted(sequence)) continue;
    for (const { table, rows: found } of tables) {
      for (const row of found) {
        if (table !== 'line_counts') rows.push(`${table} ${JSON.stringify(row)}`);
        else {
          const key = JSON.stringify(row.slice(0, -1));
          lines.set(key, (lines.get(key) ?? 0) + Number(row[row.length - 1]));
        }
      }
    }
  }
  return [...rows, ...[...lines].map(([key, count]) => `${key} ${count}`)].sort();
}

test('a capture: steps done again from any state make the same records', async (t) => {
  const folder = makeTempDir(t);
  const lines = captureLines(2);
  let run = 0;
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(lives(400), async (life) => {
      compared += await compare(join(folder, `${++run}`), lines, life);
    }),
    { seed: 1, numRuns: 6, ...REPORT },
  );
  assert.ok(compared > 30, `${compared} records`);
});

test('random logs: steps done again from any state make the same records', async (t) => {
  const folder = makeTempDir(t);
  const request: fc.Arbitrary<RandomRequest> = fc.record({
    afterMs: fc.oneof(fc.nat({ max: 5 }), fc.nat({ max: 900 }), fc.nat({ max: 20_000 })),
    tookMs: fc.oneof(fc.constant(0), fc.nat({ max: 40 }), fc.nat({ max: 3000 })),
    key: fc.nat({ max: 6 }),
    outcome: fc.constantFrom('PASSED', 'PASSED', 'PASSED', 'DELAYED', 'REJECTED'),
    excess: fc.nat({ max: 6000 }),
    hasLine: fc.boolean(),
  });
  let run = 0;
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(request, { minLength: 40, maxLength: 150 }),
      lives(40),
      async (requests, life) => {
        compared += await compare(join(folder, `${++run}`), randomLines(requests), life);
      },
    ),
    { seed: 1, numRuns: 25, ...REPORT },
  );
  assert.ok(compared > 60, `${compared} records`);
});
