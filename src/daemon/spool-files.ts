/**
 * Files that are there whole or not at all, whatever kills the process or the machine.
 *
 * Not here: what is in them (spool.ts).
 */
import { mkdir, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { EXIT, InputError } from '../errors.js';

const UNFINISHED = '.tmp';

/** A folder of such files; made where it is missing. */
export class DurableFolder {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** @throws InputError (io) for a folder that cannot be made or written */
  static async open(path: string): Promise<DurableFolder> {
    const folder = new DurableFolder(path);
    try {
      await mkdir(path, { recursive: true, mode: 0o750 });
      await folder.#sync();
    } catch (error) {
      throw new InputError(
        `--spool ${path}: expected a folder to write to, found ${codeOf(error)}\n` +
          '  Name another one, or let the user that runs limitlens write there.',
        EXIT.io,
        { cause: error },
      );
    }
    return folder;
  }

  /** Names with their sizes in bytes; what was never finished is removed. */
  async list(): Promise<ReadonlyMap<string, number>> {
    const sizes = new Map<string, number>();
    for (const name of (await readdir(this.path)).sort()) {
      if (name.endsWith(UNFINISHED)) await this.remove(name);
      else sizes.set(name, (await stat(join(this.path, name))).size);
    }
    return sizes;
  }

  /** Returns when the file would survive a loss of power. @returns its size in bytes */
  async write(name: string, bytes: Buffer): Promise<number> {
    const unfinished = join(this.path, `${name}${UNFINISHED}`);
    const file = await open(unfinished, 'w', 0o640);
    try {
      await file.writeFile(bytes);
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(unfinished, join(this.path, name));
    await this.#sync();
    return bytes.length;
  }

  /** @throws InputError (io) when it cannot be read */
  async read(name: string): Promise<Buffer> {
    const path = join(this.path, name);
    try {
      return await readFile(path);
    } catch (error) {
      throw unreadable(path, codeOf(error), error);
    }
  }

  /** A file that is gone already is no error. */
  async remove(name: string): Promise<void> {
    try {
      await unlink(join(this.path, name));
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
    }
  }

  /** A name is on disk when its folder is. */
  async #sync(): Promise<void> {
    const folder = await open(this.path, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}

export function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}

/** A file of the spool that does not hold what it should. */
export function unreadable(path: string, found: string, cause?: unknown): InputError {
  return new InputError(
    `${path}: expected a whole file of the spool, found ${found}\n` +
      '  Remove its folder to go on from what the store knows: lines that are still in the logs are read again.',
    EXIT.io,
    { cause },
  );
}
