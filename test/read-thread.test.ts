/**
 * Logs read in a thread of their own count as those read beside the replay: the same rows, for every
 * trace, with and without the error log, whatever the size of the chunks.
 */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Aggregator } from '../src/aggregate/aggregator.js';
import { loadConf } from '../src/input/conf-files.js';
import { countingSink } from '../src/pipeline/counting-sink.js';
import { runLanes } from '../src/pipeline/lanes.js';
import { makeLanes, openLogs, type LogPaths } from '../src/pipeline/open-logs.js';
import { AccessFields } from '../src/replay/access-fields.js';
import { ReplaySession } from '../src/replay/session.js';
import { linesOf } from './support/captures.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir, TRACES, type TraceName } from './support/truth.js';

interface Reading {
  readonly isApart: boolean;
  readonly chunkBytes: number;
}

function confOf(trace: TraceName): string {
  return join(traceDir(trace), trace === 'p_reload' ? 'nginx.conf.1' : 'nginx.conf');
}

/** All rows of the logs, sorted, and how many requests took the short way. */
async function rowsOf(confPath: string, paths: LogPaths, reading: Reading): Promise<string[]> {
  const conf = loadConf(confPath);
  const logs = await openLogs(paths, [conf], {}, () => assert.fail('nothing comes from a pipe'));
  const hasErrorLog = logs.errors.length > 0;
  const session = new ReplaySession({
    generations: [{ conf, sinceMs: null }],
    isAudit: false,
    latenessMs: 2000,
    usesConnection: logs.access.every((file) => new AccessFields(file.scanner).hasConnection),
    hasErrorLog,
    errorLogCount: logs.errors.length,
    details: 'refused',
    onDecision: (event) => void aggregator.decide(event),
    onPlain: (plain) => void aggregator.decidePlain(plain),
    onUnmatchedLine: (line) => void aggregator.unmatchedLine(line),
    onMark: (mark, ms) => void aggregator.mark(mark, ms, ''),
    onNote: (note) => void rows.push(note),
  });
  const rows: string[] = [];
  const sink = {
    row: (table: string, row: readonly unknown[]) =>
      void rows.push(JSON.stringify([table, ...row])),
  };
  const aggregator = new Aggregator(session, { instance: 'test', sink, keysPerMinute: 1e6 });
  const { isApart, chunkBytes } = reading;
  const apart = { leastBytes: 0, conf, details: 'refused', hasErrorLog, threads: [] } as const;
  const counting = countingSink(aggregator, () => undefined);
  const lanes = await makeLanes(logs, session, counting, {
    zone: { offsetMinutes: 0 },
    chunkBytes,
    ...(isApart ? { reading: { ...apart, threads: [] } } : {}),
  });
  for (const lane of lanes) await lane.begin();
  await runLanes(lanes, () => undefined);
  session.finish();
  aggregator.flush();
  for (const lane of lanes) lane.reader.close();
  return rows.sort();
}

async function assertSame(confPath: string, paths: LogPaths, chunkBytes: number): Promise<void> {
  const beside = await rowsOf(confPath, paths, { isApart: false, chunkBytes: 1 << 18 });
  const apart = await rowsOf(confPath, paths, { isApart: true, chunkBytes });
  assert.ok(beside.length > 0);
  for (const [i, row] of beside.entries()) assert.equal(apart[i], row);
  assert.equal(apart.length, beside.length);
}

for (const trace of TRACES) {
  test(`${trace}: read in a thread, in chunks of any size, the log counts the same`, async () => {
    const access = join(traceDir(trace), 'access.log');
    const errorLogs = [join(traceDir(trace), 'error.log')];
    await assertSame(confOf(trace), { files: [access], errorLogs: [] }, 4099);
    await assertSame(confOf(trace), { files: [access], errorLogs }, 1 << 20);
  });
}

/** More buffers than there are, with lines in between that are none, or far too long. */
function writeLongLog(t: TestContext): string {
  const directory = makeTempDir(t);
  mkdirSync(directory, { recursive: true });
  const path = join(directory, 'access.log');
  const lines = linesOf(join(traceDir('g_mixed_2workers'), 'access.log'));
  const bad = [Buffer.from('no line of this format'), Buffer.alloc(300_000, 0x61), Buffer.of(0)];
  const copies = Array.from({ length: 8 }, (_, i) => [...lines, bad[i % bad.length]!]).flat();
  writeFileSync(path, Buffer.concat(copies.flatMap((line) => [line, Buffer.from('\n')])));
  return path;
}

test('a long log with lines that do not parse counts the same in a thread', async (t) => {
  const paths = { files: [writeLongLog(t)], errorLogs: [] };
  await assertSame(confOf('g_mixed_2workers'), paths, 65_536);
});
