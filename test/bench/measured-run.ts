/**
 * Runs a program to its end, and says how long it took, on the clock and on processors, and how
 * much memory it had at most.
 *
 * Processor time and peak memory (ru_maxrss) are the kernel's, as GNU time prints them. Where GNU
 * time is not installed, VmHWM of /proc/PID/status is read while the program runs: the same peak, but
 * for what was touched in the last milliseconds. Units: ms, bytes.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { EXIT, InputError } from '../../src/errors.js';
import { findProgram } from '../support/debian.js';

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

export interface Measured {
  readonly wallMs: number;
  /** Of all threads, user and system; NaN without GNU time. */
  readonly cpuMs: number;
  /** NaN where neither GNU time nor /proc is to be had. */
  readonly peakRssBytes: number;
  readonly stdout: string;
}

const POLL_MS = 10;
const ERROR_CHARACTERS = 2000;
const gnuTime = findGnuTime();

/** How peak memory is found on this machine, for a reader of the numbers. */
export const peakSource = gnuTime === undefined ? 'VmHWM, read every 10 ms' : 'ru_maxrss';

/** @throws InputError when the program fails, with the end of what it said */
export async function runMeasured(command: Command): Promise<Measured> {
  if (gnuTime === undefined) {
    return runChild(command, (pid) => new PeakPoller(pid));
  }
  const folder = mkdtempSync(join(tmpdir(), 'limitlens-time-'));
  try {
    const out = join(folder, 'usage');
    const args = ['-f', '%U %S %M', '-o', out, command.file, ...command.args];
    return await runChild({ file: gnuTime, args }, () => ({ finish: () => readUsage(out) }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The last line of GNU time's output; one about the exit status may stand before it. */
function readUsage(path: string): Usage {
  const line = readFileSync(path, 'utf8').trim().split('\n').at(-1) ?? '';
  const [userSeconds = NaN, systemSeconds = NaN, peakKib = NaN] = line.split(' ').map(Number);
  return { cpuMs: (userSeconds + systemSeconds) * 1000, peakRssBytes: peakKib * 1024 };
}

type Usage = Pick<Measured, 'cpuMs' | 'peakRssBytes'>;

interface UsageReader {
  finish(): Usage;
}

async function runChild(
  { file, args }: Command,
  watch: (pid: number) => UsageReader,
): Promise<Measured> {
  const startMs = performance.now();
  // One locale for all: names of months, and no time spent on multi-byte characters.
  const child = spawn(file, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, LC_ALL: 'C' },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-ERROR_CHARACTERS);
  });
  const reader = child.pid === undefined ? undefined : watch(child.pid);
  const code = await new Promise<number | string>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status, signal) => {
      resolve(status ?? signal ?? 'unknown');
    });
  });
  const wallMs = performance.now() - startMs;
  const usage = reader?.finish() ?? { cpuMs: NaN, peakRssBytes: NaN };
  if (code !== 0) {
    const line = [file, ...args].join(' ');
    throw new InputError(`${line}: expected exit 0, found ${code}\n${stderr}`, EXIT.software);
  }
  return { wallMs, ...usage, stdout };
}

class PeakPoller implements UsageReader {
  readonly #path: string;
  readonly #timer: NodeJS.Timeout;
  #peakBytes = NaN;

  constructor(pid: number) {
    this.#path = `/proc/${pid}/status`;
    this.#timer = setInterval(() => {
      this.#poll();
    }, POLL_MS);
    this.#poll();
  }

  finish(): Usage {
    clearInterval(this.#timer);
    return { cpuMs: NaN, peakRssBytes: this.#peakBytes };
  }

  #poll(): void {
    try {
      const match = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(this.#path, 'latin1'));
      if (match !== null) this.#peakBytes = Number(match[1]) * 1024;
    } catch {
      // No /proc on this system, or the program has just ended: what was read last stands.
    }
  }
}

/** BusyBox and BSD have other programs of this name, with other options. */
function findGnuTime(): string | undefined {
  const path = findProgram('time');
  if (path === undefined || basename(path) !== 'time') return undefined;
  return /GNU time/i.test(spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout)
    ? path
    : undefined;
}
