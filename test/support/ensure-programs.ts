/**
 * Makes sure that the Debian programs the tests need are installed.
 *
 * As root on a machine with apt-get it installs what is missing; elsewhere it prints the line to
 * type and exits 1. A policy-rc.d that forbids services to start is no obstacle: tests start
 * their own nginx.
 */
import { spawnSync } from 'node:child_process';
import { findProgram, installArguments, installLine, missingPrograms, PROGRAMS } from './debian.js';

function aptGet(path: string, args: readonly string[]): boolean {
  // stdin is closed, so that no package can ask a question and wait for ever.
  const { status } = spawnSync(path, args, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  return status === 0;
}

function installMissing(): void {
  const missing = missingPrograms(PROGRAMS);
  const path = findProgram('apt-get');
  if (missing.length === 0 || path === undefined || process.getuid?.() !== 0) return;
  if (aptGet(path, ['update'])) aptGet(path, installArguments(missing));
}

installMissing();
const stillMissing = missingPrograms(PROGRAMS);
if (stillMissing.length > 0) {
  const names = stillMissing.map((p) => p.program).join(', ');
  console.error(
    `The tests need programs that are not installed: ${names}\n  ${installLine(stillMissing)}`,
  );
  process.exitCode = 1;
}
