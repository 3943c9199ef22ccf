/**
 * The programs that are measured side by side, and the proof that each has read the whole corpus.
 *
 * mawk counts statuses: about the least that a program can do with every line. GoAccess makes the
 * report that operators know. The import parses, replays, attributes, aggregates and stores.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EXIT, InputError } from '../../src/errors.js';
import {
  type DebianProgram,
  findProgram,
  installLine,
  missingPrograms,
} from '../support/debian.js';
import type { Corpus } from './corpus-cache.js';
import type { CorpusSummary } from './corpus.js';
import { GOACCESS_FORMAT, ZONE } from './corpus-site.js';
import type { Command } from './measured-run.js';

export const CONTENDER_NAMES = ['import', 'mawk', 'goaccess'] as const;

export type ContenderName = (typeof CONTENDER_NAMES)[number];

export interface Contender {
  readonly name: ContenderName;
  readonly title: string;
  /** @param folder for what the program writes; empty at the start of each run */
  command(corpus: Corpus, folder: string): Command;
  /** @throws InputError when the program did not find in the corpus what is in it */
  verify(corpus: Corpus, folder: string, stdout: string): void;
}

const CLI = fileURLToPath(new URL('../../src/cli.js', import.meta.url));

/** The import, as one would type it; also for the profile. */
export function importArguments(corpus: Corpus, folder: string): readonly string[] {
  const store = join(folder, 'store');
  const options = ['--conf', corpus.nginxConf, '--store', store, '--format', 'json'];
  return [CLI, 'import', ...options, corpus.accessLog];
}

const importer: Contender = {
  name: 'import',
  title: 'limitlens import',
  command: (corpus, folder) => ({
    file: process.execPath,
    args: importArguments(corpus, folder),
  }),
  verify({ summary }, folder) {
    const args = [CLI, 'report', '--store', join(folder, 'store'), '--format', 'json'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      encoding: 'utf8',
      maxBuffer: Infinity,
    });
    if (status !== 0) throw new InputError(`limitlens report failed:\n${stderr}`, EXIT.software);
    expectSame('limitlens report', countsOf(summary), importedCounts(stdout));
  },
};

const mawk: Contender = {
  name: 'mawk',
  title: "mawk '{c[$9]++}'",
  command: (corpus) => ({
    file: findProgram('mawk') ?? 'mawk',
    args: ['{c[$9]++} END {for (s in c) print s, c[s]}', corpus.accessLog],
  }),
  verify({ summary }, _folder, stdout) {
    const counts = new Map<string, number>();
    for (const line of stdout.trim().split('\n')) {
      const [status = '', count] = line.split(' ');
      counts.set(status, Number(count));
    }
    const lines = [...counts.values()].reduce((sum, count) => sum + count, 0);
    const found = { lines, rejected: counts.get('429') ?? 0 };
    expectSame('mawk', { lines: summary.lines, rejected: summary.rejected }, found);
  },
};

const goaccess: Contender = {
  name: 'goaccess',
  title: 'goaccess -o json',
  command: (corpus, folder) => ({
    file: findProgram('goaccess') ?? 'goaccess',
    args: [
      corpus.accessLog,
      '--no-global-config',
      '--no-progress',
      `--log-format=${GOACCESS_FORMAT}`,
      '--date-format=%d/%b/%Y',
      '--time-format=%T',
      `--output=${join(folder, 'goaccess.json')}`,
    ],
  }),
  verify({ summary }, folder) {
    const { general } = JSON.parse(readFileSync(join(folder, 'goaccess.json'), 'utf8')) as {
      general: { valid_requests: number; failed_requests: number };
    };
    const found = { lines: general.valid_requests, failed: general.failed_requests };
    expectSame('goaccess', { lines: summary.lines, failed: 0 }, found);
  },
};

const CONTENDERS: readonly Contender[] = [importer, mawk, goaccess];

/** What the peers need beside Node; `npm test` needs neither, so they are not in its list. */
const PEER_PROGRAMS: readonly DebianProgram[] = [
  { program: 'mawk', package: 'mawk' },
  { program: 'goaccess', package: 'goaccess' },
];

/**
 * The contenders of these names, in their fixed order.
 *
 * @throws InputError when one is not installed or not built, with the line to type
 */
export function chooseContenders(names: ReadonlySet<string>): readonly Contender[] {
  const missing = missingPrograms(PEER_PROGRAMS.filter(({ program }) => names.has(program)));
  if (missing.length > 0) {
    const programs = missing.map((p) => p.program).join(', ');
    throw new InputError(`not installed: ${programs}\n  ${installLine(missing)}`, EXIT.noInput);
  }
  if (names.has('import') && !existsSync(CLI)) {
    throw new InputError(`${CLI}: not built\n  npm run build`, EXIT.noInput);
  }
  return CONTENDERS.filter(({ name }) => names.has(name));
}

type Counts = Readonly<Record<string, number>>;

function countsOf({ passed, delayed, rejected }: CorpusSummary): Counts {
  return { passed, delayed, rejected };
}

/** The zone's counts out of what `report --format json` prints. */
function importedCounts(report: string): Counts {
  const { zones } = JSON.parse(report) as {
    zones: readonly { zone: string; passed: number; delayed: number; rejected: number }[];
  };
  const zone = zones.find(({ zone: name }) => name === ZONE.name);
  return {
    passed: zone?.passed ?? 0,
    delayed: zone?.delayed ?? 0,
    rejected: zone?.rejected ?? 0,
  };
}

function expectSame(program: string, expected: Counts, found: Counts): void {
  for (const [what, count] of Object.entries(expected)) {
    if (found[what] === count) continue;
    throw new InputError(
      `${program}: expected ${count} ${what}, found ${found[what]}\n  Its time says nothing then.`,
      EXIT.software,
    );
  }
}
