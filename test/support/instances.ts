/**
 * Imports in this process, each nginx of a test as an instance of one store: many small imports in
 * the time that one start of the command takes.
 */
import { readConfs } from '../../src/pipeline/confs.js';
import { importLogs, type ImportResult } from '../../src/pipeline/import-logs.js';
import { openLogs, type LogPaths } from '../../src/pipeline/open-logs.js';
import { makeReport } from '../../src/report/report.js';
import type { Store } from '../../src/store/store.js';
import { sums } from './imports.js';

const LATENESS_MS = 60_000;
const KEYS = 10;

export class Instance {
  readonly name: string;
  readonly #store: Store;
  readonly #conf: string;

  constructor(store: Store, conf: string, name: string) {
    this.#store = store;
    this.#conf = conf;
    this.name = name;
  }

  /** As the command does it. @throws InputError as importLogs() */
  async add(
    files: readonly string[],
    errorLogs: readonly string[] = [],
  ): Promise<ImportResult & { readonly said: readonly string[] }> {
    const generations = readConfs([this.#conf]);
    const paths: LogPaths = { files, errorLogs };
    const confs = generations.map(({ conf }) => conf);
    const logs = await openLogs(paths, confs, {}, () => Promise.reject(new Error('no input')));
    const said: string[] = [];
    const result = await importLogs(logs, this.#store, {
      instance: this.name,
      generations,
      latenessMs: LATENESS_MS,
      onNote: (note) => said.push(note),
    });
    return { ...result, said };
  }

  /** What was counted of requests, under no name of an instance. */
  async counted(): Promise<object> {
    const report = await makeReport(this.#store, { keys: KEYS, instance: this.name });
    const zones = report.zones.map((zone) => ({ ...zone, instance: '' }));
    // Which lines were read is another question than what was counted.
    return sums({ ...report, zones, lines: [] });
  }
}
