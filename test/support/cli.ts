/**
 * Runs the built command, as a person would, and reads what it prints.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { CLI } from './agreement.js';

export interface CliRun {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  /** Written to its standard input; none (an empty one) by default. */
  readonly stdin?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
  /** As whom to run, where the tests run as root. */
  readonly uid?: number;
}

/** The environment without the settings of whoever runs the tests. */
function cleanEnv(own: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const rest = Object.entries(process.env).filter(
    ([name]) => !/^(?:LIMITLENS_|CLICKHOUSE_|NODE_TEST_)/.test(name),
  );
  return { ...Object.fromEntries(rest), ...own };
}

export function startCli(args: readonly string[], options: CliOptions = {}): ChildProcess {
  return spawn(process.execPath, [CLI, ...args], {
    stdio: [options.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    env: cleanEnv(options.env),
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
}

/** Runs to the end, whatever that is. */
export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliRun> {
  const child = startCli(args, options);
  if (options.stdin !== undefined) {
    // It may end before it has read everything.
    child.stdin!.on('error', () => undefined);
    child.stdin!.end(options.stdin);
  }
  return finished(child);
}

/** Collects what a started command prints until it has ended. */
export function finished(child: ChildProcess): Promise<CliRun> {
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout!.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr!.on('data', (chunk: Buffer) => stderr.push(chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      resolve({
        code,
        signal,
        stdout: Buffer.concat(stdout).toString(),
        stderr: Buffer.concat(stderr).toString(),
      });
    });
  });
}

/** Runs a command that must do its work. @throws Error with what it said, when it does not */
export async function mustRun(args: readonly string[], options: CliOptions = {}): Promise<CliRun> {
  const run = await runCli(args, options);
  if (run.code === 0) return run;
  throw new Error(
    `limitlens ${args.join(' ')} ended with ${run.signal ?? run.code}: ${run.stderr}`,
  );
}
