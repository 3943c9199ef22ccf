/**
 * `npm run bench`: the whole import beside mawk and GoAccess, on one seeded corpus.
 *
 * Every round runs each program once, one after the other, so that a noisy neighbour disturbs all
 * of them alike; the medians count, and their ratios more than they. Exit 0 when all targets that
 * could be checked are met, 1 when one is missed, else as in src/errors.ts.
 */
import { spawnSync } from 'node:child_process';
import {
  createReadStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { EXIT, InputError } from '../../src/errors.js';
import {
  chooseContenders,
  type Contender,
  type ContenderName,
  importArguments,
} from './contenders.js';
import { benchFolder, type Corpus, provideCorpus } from './corpus-cache.js';
import { type CpuProfile, formatSelfTimes, selfTimes, selfTimesByFile } from './cpu-profile.js';
import { type Measured, peakSource, runMeasured } from './measured-run.js';
import { type BenchOptions, readOptions, USAGE } from './options.js';
import {
  formatResult,
  formatTarget,
  memoryTarget,
  type Result,
  speedTargets,
  summarize,
  type Target,
} from './results.js';

const PROFILE_ROWS = 25;
const EXIT_TARGET_MISSED = 1;

/** One folder for all that the programs write, and what happens to it at the end. */
function makeRunFolder(isKeeping: boolean): string {
  const folder = mkdtempSync(join(benchFolder(), 'run-'));
  process.once('SIGINT', () => process.exit(130));
  process.once('exit', () => {
    if (isKeeping) console.log(`kept: ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** Makes or finds the corpus, and reads it once: all programs are to find it in the page cache. */
async function prepare(lines: number, seed: number): Promise<Corpus> {
  const corpus = provideCorpus({ lines, seed }, () => {
    console.log(`making a corpus of ${count(lines)} lines, seed ${seed} …`);
  });
  for await (const chunk of createReadStream(corpus.accessLog)) void chunk;
  return corpus;
}

async function runOnce(contender: Contender, corpus: Corpus, folder: string): Promise<Measured> {
  const own = join(folder, `${contender.name}-${corpus.summary.lines}`);
  rmSync(own, { recursive: true, force: true });
  mkdirSync(own);
  const measured = await runMeasured(contender.command(corpus, own));
  contender.verify(corpus, own, measured.stdout);
  return measured;
}

/** @returns the medians, in the order of `entries` */
async function runRounds(
  entries: readonly { readonly contender: Contender; readonly corpus: Corpus }[],
  options: BenchOptions,
  folder: string,
): Promise<readonly Result[]> {
  const rounds = entries.map(() => [] as Measured[]);
  for (let round = 1; round <= options.runs; round++) {
    const shown: string[] = [];
    for (const [i, { contender, corpus }] of entries.entries()) {
      const measured = await runOnce(contender, corpus, folder);
      rounds[i]!.push(measured);
      shown.push(`${contender.name} ${(measured.wallMs / 1000).toFixed(2)} s`);
    }
    console.log(`round ${round} of ${options.runs}: ${shown.join(' · ')}`);
  }
  return rounds.map(summarize);
}

async function compareSpeeds(options: BenchOptions, folder: string): Promise<readonly Target[]> {
  const contenders = chooseContenders(options.only);
  if (contenders.length === 0) return [];
  const corpus = await prepare(options.lines, options.seed);
  console.log(describeCorpus(corpus));
  const entries = contenders.map((contender) => ({ contender, corpus }));
  const medians = await runRounds(entries, options, folder);
  const results = new Map<ContenderName, Result>();
  for (const [i, { name, title }] of contenders.entries()) {
    results.set(name, medians[i]!);
    console.log(formatResult(title, options.lines, medians[i]!));
  }
  return speedTargets(results);
}

async function compareMemory(options: BenchOptions, folder: string): Promise<readonly Target[]> {
  if (!options.only.has('memory')) return [];
  const [contender] = chooseContenders(new Set(['import']));
  const small = await prepare(Math.floor(options.lines / 2), options.seed);
  const large = await prepare(options.lines * 2, options.seed);
  const entries = [small, large].map((corpus) => ({ contender: contender!, corpus }));
  const [ofSmall, ofLarge] = await runRounds(entries, options, folder);
  for (const [corpus, result] of [
    [small, ofSmall!],
    [large, ofLarge!],
  ] as const) {
    const { lines } = corpus.summary;
    console.log(formatResult(`import of ${count(lines)} lines`, lines, result));
  }
  return [memoryTarget(ofSmall!, ofLarge!)];
}

async function profileImport(options: BenchOptions, folder: string): Promise<void> {
  chooseContenders(new Set(['import']));
  const corpus = await prepare(options.lines, options.seed);
  const profiles = join(folder, 'profiles');
  const args = ['--cpu-prof', '--cpu-prof-dir', profiles, ...importArguments(corpus, folder)];
  const { status, stderr } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    maxBuffer: Infinity,
  });
  if (status !== 0) throw new InputError(`the import failed:\n${stderr}`, EXIT.software);
  for (const name of readdirSync(profiles)) {
    const profile = JSON.parse(readFileSync(join(profiles, name), 'utf8')) as CpuProfile;
    const times = selfTimes(profile);
    console.log(`${name}\n${formatSelfTimes(times, PROFILE_ROWS)}`);
    console.log(formatSelfTimes(selfTimesByFile(times), PROFILE_ROWS));
  }
}

function describeCorpus({ summary }: Corpus): string {
  const share = (part: number): string => `${((100 * part) / summary.lines).toFixed(1)} %`;
  const { lines, bytes, clients, passed, delayed, rejected } = summary;
  return (
    `corpus: ${count(lines)} lines of ${(bytes / lines).toFixed(0)} bytes, ${count(clients)} clients, ` +
    `${share(passed)} PASSED, ${share(delayed)} DELAYED, ${share(rejected)} REJECTED`
  );
}

function describeMachine(): string {
  const processors = cpus();
  const load = loadavg()[0]!.toFixed(1);
  const cpu = `${processors.length} × ${processors[0]?.model.trim() ?? 'unknown processor'}`;
  return `machine: ${cpu}, load ${load}, Node ${process.version}; peak RSS: ${peakSource}`;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (options.isHelp) {
    console.log(USAGE);
    return EXIT.ok;
  }
  console.log(describeMachine());
  const folder = makeRunFolder(options.isKeeping);
  if (options.isProfiling) {
    await profileImport(options, folder);
    return EXIT.ok;
  }
  const targets = [
    ...(await compareSpeeds(options, folder)),
    ...(await compareMemory(options, folder)),
  ];
  for (const target of targets) console.log(formatTarget(target));
  return targets.every(({ isMet }) => isMet) ? EXIT.ok : EXIT_TARGET_MISSED;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof InputError)) throw error;
  console.error(error.message);
  process.exitCode = error.exitCode;
}
