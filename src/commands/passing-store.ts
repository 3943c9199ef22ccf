/**
 * Logs in an embedded store that is there for one answer, and gone behind it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { EXIT, InputError } from '../errors.js';
import { importCommand } from './import.js';
import { Output } from './output.js';
import type { LogsChoice } from './replayed-logs.js';
import type { StoreChoice } from './store-choice.js';

/** Larger logs are read in a thread of their own, as an import does. */
const THREADS = 2;
/** As shells have it: 128 and the number of the signal. */
const EXIT_OF = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Imports the files, and asks what is made of them; what an import has to say goes to standard error.
 *
 * @param ask is given the choice of the store that holds them
 * @throws InputError 64 for a store beside logs; as importCommand() does
 */
export async function askOfLogs<T>(
  files: readonly string[],
  options: LogsChoice & StoreChoice & { readonly instance?: string },
  ask: (store: StoreChoice) => Promise<T>,
): Promise<T> {
  if (options.store !== undefined || options.clickhouse !== undefined) {
    throw new InputError(
      'give either logs or a store, not both: `limitlens import` takes logs into a store',
      EXIT.usage,
    );
  }
  const folder = mkdtempSync(join(tmpdir(), 'limitlens-'));
  const remove = (): void => {
    rmSync(folder, { recursive: true, force: true });
  };
  const end = (signal: keyof typeof EXIT_OF): void => {
    remove();
    process.exit(EXIT_OF[signal]);
  };
  const signals = Object.keys(EXIT_OF) as (keyof typeof EXIT_OF)[];
  for (const signal of signals) process.once(signal, end);
  try {
    const store = join(folder, 'store');
    const asImport = { threads: THREADS, strict: false, format: 'json' } as const;
    await importCommand(
      files,
      { ...options, ...asImport, store, instance: options.instance ?? 'default' },
      new Output(nowhere(), process.stderr),
    );
    return await ask({ store });
  } finally {
    for (const signal of signals) process.off(signal, end);
    remove();
  }
}

/** What an import prints is not what was asked for. */
function nowhere(): Writable {
  return new Writable({
    write(_chunk, _encoding, done): void {
      done();
    },
  });
}
