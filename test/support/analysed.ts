/**
 * Logs into a store and answers out of it, as the commands do; for tests of the analyses.
 */
import { PassThrough } from 'node:stream';
import { join } from 'node:path';
import { importCommand } from '../../src/commands/import.js';
import { Output } from '../../src/commands/output.js';
import { makeTempDir, type Cleanup } from './temp-dir.js';

export const LOG_OPTIONS = { errorLog: [], latenessMs: 60_000, allLogs: false } as const;

/** What a command wrote, and what it gave back. */
export async function outputOf<T>(
  run: (output: Output) => Promise<T>,
): Promise<{ text: string; notes: string; result: T }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const [text, notes] = [stdout, stderr].map((stream) => {
    const chunks: string[] = [];
    stream.setEncoding('utf8').on('data', (chunk: string) => chunks.push(chunk));
    return chunks;
  }) as [string[], string[]];
  const result = await run(new Output(stdout, stderr));
  return { text: text.join(''), notes: notes.join(''), result };
}

/** A new store with the access.log and error.log of a directory. @returns its folder */
export async function storeOf(t: Cleanup, directory: string): Promise<string> {
  const store = join(makeTempDir(t), 'store');
  await outputOf((output) =>
    importCommand(
      [join(directory, 'access.log')],
      {
        ...LOG_OPTIONS,
        conf: [join(directory, 'nginx.conf')],
        errorLog: [join(directory, 'error.log')],
        instance: 'default',
        threads: 1,
        strict: false,
        format: 'json',
        store,
      },
      output,
    ),
  );
  return store;
}
