/**
 * The page into a file that is whole or as it was: never half, whatever stops the process.
 */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { EXIT, InputError } from '../errors.js';

/**
 * Writes beside the file, then puts it in its place. What is no regular file (a device, a pipe) is
 * written to as it is.
 *
 * @throws InputError io (74), naming the file
 */
export function writeWhole(path: string, text: string): void {
  try {
    if (isSpecial(path)) {
      write(path, 'w', text);
      return;
    }
    const beside = `${path}.${process.pid}.tmp`;
    try {
      write(beside, 'wx', text);
      renameSync(beside, path);
    } catch (error) {
      rmSync(beside, { force: true });
      throw error;
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new InputError(
      `${path}: expected a file that can be written, found ${message}\n` +
        '  Name a file in a folder that exists and is yours, or - for standard output.',
      EXIT.io,
      { cause: error },
    );
  }
}

function isSpecial(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && !found.isFile();
}

function write(path: string, flags: 'w' | 'wx', text: string): void {
  const file = openSync(path, flags);
  try {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
    if (flags === 'wx') fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
