/**
 * One daemon per spool: a file with the process that has it.
 *
 * A process is known by its id and, on Linux, by the tick of its start, so that a number given out
 * again after a crash or in a new container does not look like the old process.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT, InputError } from '../errors.js';

const NAME = 'lock';

/** @returns a function that lets go. @throws InputError (io) while another process has it */
export function lockSpool(folder: string): () => void {
  const path = join(folder, NAME);
  const holder = `${process.pid} ${startTick(process.pid) ?? ''}`.trim();
  for (;;) {
    try {
      writeFileSync(path, holder, { flag: 'wx' });
      return () => rmSync(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      refuseLiving(folder, readFileSync(path, 'utf8'));
      rmSync(path, { force: true });
    }
  }
}

function refuseLiving(folder: string, holder: string): void {
  const [pid = '', tick] = holder.split(' ');
  const isOurs = Number(pid) === process.pid;
  if (isOurs ? tick !== startTick(process.pid) : !isAlive(Number(pid), tick)) return;
  throw new InputError(
    `--spool ${folder}: expected a free spool, found it in use by process ${pid}\n` +
      '  Stop that daemon, or give each nginx its own --instance.',
    EXIT.io,
  );
}

function isAlive(pid: number, tick: string | undefined): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  if (tick !== undefined) return startTick(pid) === tick;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Field 22 of /proc/PID/stat; undefined where there is none. */
function startTick(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name in parentheses may hold spaces and parentheses.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
