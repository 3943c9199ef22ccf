/**
 * Where a running daemon can be asked about its store: a file in the store's folder, for the engine
 * locks the folder and lets no second process in.
 *
 * Readable by the owner alone, like the data beside it. It holds the key of this run where the daemon
 * has no token of its own; else whoever asks has to know that token.
 *
 * Not here: the protocol, which is ClickHouse's over HTTP (../store-http).
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT, InputError } from '../errors.js';

const FILE = 'daemon.json';

export interface DaemonAddress {
  readonly pid: number;
  readonly url: string;
  /** Absent where a token is asked for. */
  readonly key?: string;
}

/** @returns removes the file, unless another process has written its own */
export function leaveAddress(storeFolder: string, address: DaemonAddress): () => void {
  const path = join(storeFolder, FILE);
  try {
    writeFileSync(`${path}.tmp`, `${JSON.stringify(address)}\n`, { mode: 0o600 });
    renameSync(`${path}.tmp`, path);
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException;
    throw new InputError(`${path}: the address could not be written (${code})`, EXIT.io, { cause });
  }
  return () => {
    if (readAddress(storeFolder)?.pid === address.pid) rmSync(path, { force: true });
  };
}

/** @returns undefined where there is none that makes sense, or none that may be read */
export function readAddress(storeFolder: string): DaemonAddress | undefined {
  try {
    const found = JSON.parse(
      readFileSync(join(storeFolder, FILE), 'utf8'),
    ) as Partial<DaemonAddress>;
    const { pid, url, key } = found;
    if (!Number.isInteger(pid) || typeof url !== 'string' || !URL.canParse(url)) return undefined;
    return { pid: pid!, url, ...(typeof key === 'string' ? { key } : {}) };
  } catch {
    return undefined;
  }
}
