/**
 * Programs from Debian that the tests drive, and how to get those that are missing.
 *
 * Nothing is downloaded here: this says what is missing and which line installs it;
 * ensure-programs.ts runs that line where it may.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** A program and the Debian package that carries it. */
export interface DebianProgram {
  readonly program: string;
  readonly package: string;
}

/** Everything `npm test` needs beside Node and npm. */
export const PROGRAMS: readonly DebianProgram[] = [
  { program: 'nginx', package: 'nginx' },
  { program: 'chromium', package: 'chromium' },
  { program: 'promtool', package: 'prometheus' },
  { program: 'prometheus-alertmanager', package: 'prometheus-alertmanager' },
  { program: 'logrotate', package: 'logrotate' },
  { program: 'perl', package: 'perl-base' },
  { program: 'script', package: 'bsdutils' },
  { program: 'openssl', package: 'openssl' },
];

/** Daemons live where an ordinary user's PATH does not look. */
const SYSTEM_DIRS = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** The full path of a program, or undefined when it is not installed. */
export function findProgram(
  program: string,
  pathVariable = process.env['PATH'] ?? '',
): string | undefined {
  const dirs = [...pathVariable.split(delimiter), ...SYSTEM_DIRS];
  return dirs
    .filter((dir) => dir !== '')
    .map((dir) => join(dir, program))
    .find(isExecutableFile);
}

function isExecutableFile(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Those of `programs` that are not installed. */
export function missingPrograms(
  programs: readonly DebianProgram[],
  find: (program: string) => string | undefined = findProgram,
): readonly DebianProgram[] {
  return programs.filter(({ program }) => find(program) === undefined);
}

/** The arguments of the apt-get call that installs the packages of `programs`, each once. */
export function installArguments(programs: readonly DebianProgram[]): readonly string[] {
  const packages = [...new Set(programs.map((p) => p.package))];
  return ['install', '-y', '--no-install-recommends', ...packages];
}

/** The line to type for a person who may not, or does not want to, let the tests install. */
export function installLine(programs: readonly DebianProgram[]): string {
  return `sudo apt-get update && sudo apt-get ${installArguments(programs).join(' ')}`;
}

/** The full path of a program that a test cannot do without. */
export function requireProgram(program: string): string {
  const path = findProgram(program);
  if (path === undefined) {
    const known = PROGRAMS.filter((p) => p.program === program);
    const hint = known.length > 0 ? `; install it: ${installLine(known)}` : '';
    throw new Error(`${program} is not installed${hint}`);
  }
  return path;
}
