/**
 * Which store a command works on: a folder (embedded) or a ClickHouse server.
 */
import { EXIT, InputError } from '../errors.js';
import type { StoreOptions } from '../store/store.js';

export interface StoreChoice {
  readonly store?: string;
  readonly clickhouse?: string;
  readonly cluster?: string;
  readonly database?: string;
}

export const DEFAULT_STORE = './limitlens-data';

/** @throws InputError 64 when both are given */
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
  return { ...common, ...cluster, url: choice.clickhouse };
}
