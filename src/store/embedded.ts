/**
 * The embedded store: a folder with a marker of ours and the engine's data in `chdb/`.
 *
 * chDB is an optional package of some 500 MB, so it is loaded here, when a folder is opened, and
 * nowhere else. It allows one data folder per process and one process per data folder; the second
 * process is recognised before chDB is asked, which would write to stderr by itself.
 *
 * Not here: schema, and anything that a server does as well.
 */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { devNull } from 'node:os';
import { join } from 'node:path';
import { EXIT, InputError } from '../errors.js';
import { makeEmbeddedClient } from './client.js';
import { readAddress, type DaemonAddress } from './daemon-address.js';
import type { EngineParts } from './engine.js';
import type { RawConnection } from './guarded-queries.js';
import { forgetLostBlocks } from './lost-blocks.js';

const MARKER = 'limitlens-store.json';
const LAYOUT = 1;

type CreateConnection = (options: { path: string }) => object;

/** The clients of an embedded store, with the database in use. */
export interface EmbeddedParts extends Pick<EngineParts, 'where' | 'writer' | 'reader'> {
  /** One more connection to the same data. */
  readonly connect: () => RawConnection;
  /** The folder was made just now. */
  readonly isNew: boolean;
  /** Tables with a block that a killed process had noted and not made; see lost-blocks.ts. */
  readonly lostBlocksOf: readonly string[];
}

/**
 * Opens (and where wanted makes) a store folder and the database in it.
 *
 * @throws InputError noInput: missing, or not a store; io: in use, or no permission;
 * configuration: chDB is not installed, or the folder is of a newer layout
 */
export async function openEmbedded(
  path: string,
  database: string,
  createIfMissing: boolean,
): Promise<EmbeddedParts> {
  const isNew = prepareFolder(path, createIfMissing);
  const dataPath = join(path, 'chdb');
  const holder = lockHolder(dataPath);
  if (holder !== undefined && holder !== process.pid) throw inUse(path, holder);
  const createConnection = await loadChdb();
  const connectAnew = () => connectTo(createConnection, path, dataPath);
  const client = () => makeEmbeddedClient(connectAnew());
  const writer = client();
  await writer.command({ query: `CREATE DATABASE IF NOT EXISTS ${database}` });
  await writer.command({ query: `USE ${database}` });
  // A new folder has no tables yet.
  const scratch = join(path, 'deduplication-log.tmp');
  const lostBlocksOf = isNew ? [] : await forgetLostBlocks(writer, database, scratch);
  const reader = client();
  await reader.command({ query: `USE ${database}` });
  const connect = (): RawConnection => connectAnew() as RawConnection;
  return { where: path, writer, reader, connect, isNew, lostBlocksOf };
}

/** The daemon that has the folder open and can be asked, if there is one; see daemon-address.ts. */
export function daemonOf(path: string): DaemonAddress | undefined {
  const address = readAddress(path);
  if (address === undefined || address.pid === process.pid) return undefined;
  // Where locks can't be seen, a process of that number has to do.
  const holder = process.platform === 'linux' ? lockHolder(join(path, 'chdb')) : address.pid;
  return holder === address.pid && isAlive(address.pid) ? address : undefined;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * Tells a store from other folders by its marker, and makes a new one where that is wanted.
 *
 * @returns whether it did
 */
function prepareFolder(path: string, createIfMissing: boolean): boolean {
  const entries = listFolder(path);
  if (entries?.includes(MARKER) === true) {
    checkLayout(path);
    checkWritable(path);
    return false;
  }
  // Stores may lie in one folder, and that be a store as well: each keeps to its own names.
  const inner = (entries ?? []).filter((name) => isStore(join(path, name)));
  if (entries !== undefined && entries.length > inner.length) {
    throw new InputError(
      `${path}: expected a limitlens store, found a folder without ${MARKER}\n` +
        '  Name a folder that does not exist yet, or the right one.',
      EXIT.noInput,
    );
  }
  if (!createIfMissing) throw noStore(path, entries, inner);
  try {
    mkdirSync(path, { recursive: true });
    // Complete or absent, never half: a crash here must not leave a folder that nothing accepts.
    writeFileSync(join(path, `${MARKER}.tmp`), `${JSON.stringify({ layout: LAYOUT })}\n`);
    renameSync(join(path, `${MARKER}.tmp`), join(path, MARKER));
  } catch (error) {
    throw folderError(path, error);
  }
  return true;
}

function isStore(path: string): boolean {
  return existsSync(join(path, MARKER));
}

function noStore(
  path: string,
  entries: readonly string[] | undefined,
  inner: readonly string[],
): InputError {
  const found =
    entries === undefined ? 'nothing' : inner.length > 0 ? 'other stores in it' : 'an empty folder';
  const hint =
    inner.length > 0
      ? `Name the right one: ${inner.map((name) => `--store ${join(path, name)}`).join(', ')}.`
      : 'Make one with `limitlens import`, or name the right folder with --store.';
  return new InputError(
    `${path}: expected a limitlens store, found ${found}\n  ${hint}`,
    EXIT.noInput,
  );
}

/** The names in a folder, undefined when there is none. A marker that was not finished is nothing. */
function listFolder(path: string): string[] | undefined {
  try {
    return readdirSync(path).filter((name) => name !== `${MARKER}.tmp`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw folderError(path, error);
  }
}

function checkLayout(path: string): void {
  let layout: unknown;
  try {
    layout = (JSON.parse(readFileSync(join(path, MARKER), 'utf8')) as { layout?: unknown }).layout;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== undefined) throw folderError(path, error);
    layout = 'unreadable';
  }
  if (layout === LAYOUT) return;
  throw new InputError(
    `${join(path, MARKER)}: expected layout ${LAYOUT}, found ${JSON.stringify(layout)}\n` +
      '  A newer limitlens wrote it: install that one, or use another store.',
    EXIT.configuration,
  );
}

function checkWritable(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw folderError(path, error);
  }
}

function folderError(path: string, cause: unknown): InputError {
  const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
  if (code === 'ENOTDIR' || code === 'EEXIST') {
    return new InputError(
      `${path}: expected a folder, found a file\n  Name a folder with --store.`,
      EXIT.noInput,
      { cause },
    );
  }
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    return new InputError(
      `${path}: expected a folder to write to, found no permission (${code})\n` +
        '  The engine locks its folder even to read: run as its owner, or use another store.',
      EXIT.io,
      { cause },
    );
  }
  return new InputError(`${path}: the store could not be opened (${code})`, EXIT.io, { cause });
}

function inUse(path: string, pid: number | undefined): InputError {
  const who = pid === undefined ? 'another process' : `another process (pid ${pid})`;
  return new InputError(
    `${path}: expected a free store, found it in use by ${who}\n` +
      '  One process at a time: wait for it, or stop it. What only reads asks a daemon by itself.',
    EXIT.io,
  );
}

/**
 * The process that holds chDB's lock, from the file that it locks and writes its pid to; Linux only,
 * elsewhere undefined, and chDB's own refusal is what remains.
 */
function lockHolder(dataPath: string): number | undefined {
  try {
    const statusPath = join(dataPath, 'status');
    const pid = Number(/^PID: (\d+)/m.exec(readFileSync(statusPath, 'utf8'))?.[1]);
    const inode = statSync(statusPath).ino;
    const isHeld = readFileSync('/proc/locks', 'utf8')
      .split('\n')
      .some((line) => {
        const fields = line.trim().split(/\s+/);
        return fields[4] === String(pid) && fields[5]?.endsWith(`:${inode}`);
      });
    return isHeld ? pid : undefined;
  } catch {
    return undefined;
  }
}

let hasLeftStdin = false;

/**
 * chDB adds what standard input holds to the rows of each insert, as clickhouse-local does. So the
 * engine gets an empty one; whoever wants to read the real one takes it before (pipeline/stdin.ts).
 */
function leaveStdin(): void {
  if (hasLeftStdin) return;
  hasLeftStdin = true;
  try {
    closeSync(0);
  } catch {
    // The process was started without a standard input.
  }
  openSync(devNull, 'r');
}

async function loadChdb(): Promise<CreateConnection> {
  leaveStdin();
  try {
    return (await import('chdb/connection')).createChdbConnection;
  } catch (cause) {
    throw new InputError(
      'expected the package chdb for the embedded store, found none that loads\n' +
        '  Run `npm install chdb` (some 500 MB), or use a server with --clickhouse URL.',
      EXIT.configuration,
      { cause },
    );
  }
}

function connectTo(create: CreateConnection, path: string, dataPath: string): object {
  try {
    return create({ path: dataPath });
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    if (!message.startsWith('Failed to create connection')) throw cause;
    // chDB says no more than this; its folder being locked is by far the likeliest reason.
    checkWritable(dataPath);
    throw inUse(path, undefined);
  }
}
