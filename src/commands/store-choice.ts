/**
 * Which store a command works on: a folder (embedded) or a ClickHouse server.
 */
import { EXIT, InputError } from '../errors.js';
import { parseServerUrl } from '../store/server.js';
import type { StoreOptions } from '../store/store.js';
import { DEFAULT_STORE } from './defaults.js';
import { readSecretFile } from './secret-file.js';

export interface StoreChoice {
  readonly store?: string;
  readonly clickhouse?: string;
  readonly cluster?: string;
  readonly database?: string;
  readonly clickhouseUser?: string;
  /** The password is never an option: it would stand in the list of processes. */
  readonly clickhousePasswordFile?: string;
}

/** @throws InputError 64 when both are given, 78 for a password file that cannot be read */
export function storeOptions(choice: StoreChoice): Omit<StoreOptions, 'createIfMissing'> {
  if (choice.store !== undefined && choice.clickhouse !== undefined) {
    throw new InputError('give either --store or --clickhouse, not both', EXIT.usage);
  }
  if (choice.cluster !== undefined && choice.clickhouse === undefined) {
    throw new InputError('--cluster needs --clickhouse URL', EXIT.usage);
  }
  const common = choice.database === undefined ? {} : { database: choice.database };
  if (choice.clickhouse === undefined) return { ...common, path: choice.store ?? DEFAULT_STORE };
  const cluster = choice.cluster === undefined ? {} : { cluster: choice.cluster };
  return { ...common, ...cluster, url: choice.clickhouse, env: environmentOf(choice) };
}

/** User and password as the store looks them up, where the URL has none. */
function environmentOf(choice: StoreChoice): NodeJS.ProcessEnv {
  const { clickhouseUser, clickhousePasswordFile } = choice;
  const env = { ...process.env };
  if (clickhouseUser !== undefined) env['CLICKHOUSE_USER'] = clickhouseUser;
  if (clickhousePasswordFile !== undefined) {
    env['CLICKHOUSE_PASSWORD'] = readSecretFile(
      clickhousePasswordFile,
      '--clickhouse-password-file',
    );
  }
  return env;
}

/** What can be wrong before anything is opened. @throws InputError as storeOptions() does */
export function checkStoreChoice(choice: StoreChoice): void {
  const { url, env = process.env } = storeOptions(choice);
  if (url !== undefined) parseServerUrl(url, env);
}
