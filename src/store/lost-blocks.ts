/**
 * Blocks that the embedded engine has noted as inserted and never made, as it was killed in between.
 *
 * MergeTreeSink writes a block's token into the table's deduplication log, and then gives the block's
 * part its name. A process that is killed after the first leaves a token without rows: sent again,
 * the block would be dropped as one that is there, and its rows would be lost for good. So before
 * anything is sent, tokens whose part does not exist are taken out of the log.
 *
 * Parts are numbered in the order in which they are noted, so such a token has a higher number than
 * every part of its table; the next insert would give that number away again. Names of parts follow
 * MergeTreePartInfo, lines of the log MergeTreeDeduplicationLog: operation, part, token.
 *
 * Not here: a server's tables, whose files are its own; that it is killed is not for us to mend.
 */
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from './client.js';

const LOG = /^deduplication_log_\d+\.txt$/;
/** Partition, first and last number, level, and where it was changed, the number of that. */
const PART = /^[^_]+_(\d+)_(\d+)_\d+(?:_\d+)?$/;

/**
 * Mends the tables of a database before anything is inserted.
 *
 * @param scratch path of a file to write before it takes its place: the engine reads whatever is in
 *   the folder of its logs
 * @returns the tables that had such a token
 */
export async function forgetLostBlocks(
  client: Client,
  database: string,
  scratch: string,
): Promise<string[]> {
  const result = await client.query({
    query: `SELECT name, arrayJoin(data_paths) AS path FROM system.tables
            WHERE database = {database:String} AND engine LIKE '%MergeTree' ORDER BY name`,
    query_params: { database },
    format: 'JSONEachRow',
  });
  const mended: string[] = [];
  for (const { name, path } of await result.json<{ name: string; path: string }>()) {
    const logs = logsWithout(path);
    if (logs.size === 0) continue;
    // The engine has its log open, and what it says in memory.
    await client.command({ query: `DETACH TABLE ${database}.${name} SYNC` });
    for (const [file, text] of logs) {
      writeFileSync(scratch, text);
      renameSync(scratch, file);
    }
    await client.command({ query: `ATTACH TABLE ${database}.${name}` });
    mended.push(name);
  }
  return mended;
}

/** @returns by file, the logs that name such tokens as they should be */
function logsWithout(tablePath: string): ReadonlyMap<string, string> {
  const changed = new Map<string, string>();
  const folder = join(tablePath, 'deduplication_logs');
  const lastNumber = lastPartNumber(tablePath);
  for (const name of namesIn(folder)) {
    if (!LOG.test(name)) continue;
    const file = join(folder, name);
    const lines = readFileSync(file, 'utf8').split('\n');
    const kept = lines.filter((line) => {
      const [, first] = PART.exec(line.split('\t')[1] ?? '') ?? [];
      return first === undefined || Number(first) <= lastNumber;
    });
    if (kept.length < lines.length) changed.set(file, kept.join('\n'));
  }
  return changed;
}

/** Of the parts that have their names; 0 where there are none. */
function lastPartNumber(tablePath: string): number {
  let last = 0;
  for (const name of namesIn(tablePath)) {
    const [, , number] = PART.exec(name) ?? [];
    if (number !== undefined) last = Math.max(last, Number(number));
  }
  return last;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
