/**
 * `limitlens import`: logs into the store, and what there was to say about them.
 */
import type { NginxConf } from '../../parsers/conf/model.js';
import { EXIT, type ExitCode } from '../errors.js';
import { checkTimezone, readConfs } from '../pipeline/confs.js';
import { DeadLetters } from '../pipeline/dead-letters.js';
import { importLogs, type ImportResult } from '../pipeline/import-logs.js';
import { missingFieldNotes } from '../pipeline/missing-fields.js';
import { openLogs, startReadThreads, type OpenedLogs } from '../pipeline/open-logs.js';
import type { ReadThread } from '../pipeline/read-thread.js';
import { openStdin, type Stdin } from '../pipeline/stdin.js';
import type { GenerationInput } from '../replay/generations.js';
import { importText } from './import-text.js';
import { openStore, type Store } from '../store/store.js';
import type { Output } from './output.js';
import { Progress } from './progress.js';
import { privacyOf, type PrivacyChoice } from './privacy-options.js';
import { storeOptions, type StoreChoice } from './store-choice.js';

export interface ImportCommandOptions extends StoreChoice, PrivacyChoice {
  readonly conf: readonly string[];
  readonly errorLog: readonly string[];
  readonly instance: string;
  readonly latenessMs: number;
  readonly timezone?: string;
  readonly logFormat?: string;
  readonly allLogs: boolean;
  readonly chunkBytes?: number;
  /** 1 reads and replays in one thread; otherwise large access logs are read in their own. */
  readonly threads: number;
  readonly deadLetter?: string;
  readonly strict: boolean;
  readonly abandonInterrupted?: boolean;
  readonly format: 'text' | 'json';
}

/** A smaller log is read before a thread has started. */
const READ_APART_BYTES = 8_000_000;

/** @returns 65 when lines were unusable under --strict, or a log was damaged; else 0 */
export async function importCommand(
  files: readonly string[],
  options: ImportCommandOptions,
  output: Output,
): Promise<ExitCode> {
  checkTimezone(options.timezone);
  const generations = readConfs(options.conf);
  const stdin = openStdin();
  try {
    return await importFrom(stdin, files, generations, options, output);
  } finally {
    stdin.reader.close();
  }
}

async function importFrom(
  stdin: Stdin,
  files: readonly string[],
  generations: readonly GenerationInput[],
  options: ImportCommandOptions,
  output: Output,
): Promise<ExitCode> {
  const confs = generations.map((input) => input.conf);
  const { privacy, seal } = privacyOf(options);
  const logs = await openLogs({ files, errorLogs: options.errorLog }, confs, options, () =>
    stdin.head(),
  );
  for (const { file, because } of logs.leftOut) {
    output.note(`${file.head.path} holds the same requests as ${because.head.path}: left out`);
  }
  for (const note of missingFieldNotes(logs.access)) output.note(note);
  const inputs = [...files, ...options.errorLog, ...options.conf];
  const deadLetters =
    options.deadLetter === undefined
      ? undefined
      : new DeadLetters(options.deadLetter, inputs, privacy);
  const progress = new Progress(output, totalBytes(logs));
  const isApart = options.threads !== 1 && generations.length === 1;
  const readThreads = isApart ? startReading(logs, confs[0]!, options.chunkBytes) : [];
  let store: Store | undefined;
  let result: ImportResult;
  try {
    store = await openStore({
      ...storeOptions(options),
      createIfMissing: true,
      tablesLater: true,
    });
    result = await importLogs(logs, store, {
      instance: options.instance,
      generations,
      latenessMs: options.latenessMs,
      ...(options.timezone === undefined ? {} : { timezone: options.timezone }),
      ...(options.chunkBytes === undefined ? {} : { chunkBytes: options.chunkBytes }),
      ...(isApart ? { readApartBytes: READ_APART_BYTES, readThreads } : {}),
      ...(deadLetters === undefined ? {} : { deadLetters }),
      privacy,
      seal,
      stdin: stdin.reader,
      abandonsInterrupted: options.abandonInterrupted === true,
      onNote: (note) => progress.note(note),
      onProgress: (doneBytes) => progress.show(doneBytes),
    });
  } finally {
    for (const thread of readThreads) thread.close();
    progress.end();
    deadLetters?.close();
    await store?.close();
  }
  const text =
    options.format === 'json'
      ? `${JSON.stringify(result)}\n`
      : importText(result, logs.leftOut.length);
  await output.write(text);
  const isDamaged = result.files.some((file) => file.damage !== null);
  const isUnclean = options.strict && result.summary.lines.unparsable > 0;
  return isDamaged || isUnclean ? EXIT.badLines : EXIT.ok;
}

/** Before the store is there: it takes a while, and nearly always the logs are new to it. */
function startReading(logs: OpenedLogs, conf: NginxConf, chunkBytes?: number): ReadThread[] {
  const hasErrorLog = logs.errors.length > 0;
  const reading = { leastBytes: READ_APART_BYTES, conf, details: 'refused', hasErrorLog } as const;
  return startReadThreads(logs, reading, chunkBytes);
}

/** Bytes on disk; of gzipped logs the content is longer, so the bar is a lower bound there. */
function totalBytes(logs: OpenedLogs): number {
  return [...logs.errors, ...logs.access].reduce((sum, file) => sum + file.head.sizeBytes, 0);
}
