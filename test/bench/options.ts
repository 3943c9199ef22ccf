/**
 * The benchmark's command line.
 */
import { parseArgs } from 'node:util';
import { EXIT, InputError } from '../../src/errors.js';
import { CONTENDER_NAMES } from './contenders.js';

export const USAGE = `npm run bench -- [--lines N] [--seed S] [--runs N] [--only NAMES] [--keep] [--profile]
  --lines N     lines of the corpus, 2000000; memory is compared at half and twice as many
  --seed S      seed of the corpus, 1
  --runs N      rounds, of which the median counts, 3
  --only NAMES  some of import,mawk,goaccess,memory
  --keep        keep the stores and reports of the last round (corpora are always kept)
  --profile     instead of all that: the import under node --cpu-prof, and where its time went`;

export interface BenchOptions {
  readonly lines: number;
  readonly seed: number;
  readonly runs: number;
  readonly only: ReadonlySet<string>;
  readonly isKeeping: boolean;
  readonly isProfiling: boolean;
  readonly isHelp: boolean;
}

const ALL_PARTS: readonly string[] = [...CONTENDER_NAMES, 'memory'];
/** Half of it must still be a corpus. */
const FEWEST_LINES = 1000;

/** @throws InputError exit 64 for what it does not understand */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseOrRefuse(args);
  return {
    lines: readCount('--lines', values.lines, FEWEST_LINES),
    seed: readCount('--seed', values.seed, 0),
    runs: readCount('--runs', values.runs, 1),
    only: readParts(values.only),
    isKeeping: values.keep,
    isProfiling: values.profile,
    isHelp: values.help,
  };
}

function parseOrRefuse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        lines: { type: 'string', default: '2000000' },
        seed: { type: 'string', default: '1' },
        runs: { type: 'string', default: '3' },
        only: { type: 'string', default: ALL_PARTS.join(',') },
        keep: { type: 'boolean', default: false },
        profile: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new InputError(`${reason}\n${USAGE}`, EXIT.usage, { cause: error });
  }
}

function readCount(option: string, text: string, least: number): number {
  const count = Number(text.replaceAll('_', ''));
  if (/^[\d_]+$/.test(text) && Number.isSafeInteger(count) && count >= least) return count;
  throw new InputError(
    `${option}: expected a whole number from ${least}, found "${text}"\n${USAGE}`,
    EXIT.usage,
  );
}

function readParts(text: string): ReadonlySet<string> {
  const parts = text.split(',');
  const unknown = parts.find((part) => !ALL_PARTS.includes(part));
  if (unknown === undefined) return new Set(parts);
  throw new InputError(
    `--only: expected some of ${ALL_PARTS.join(',')}, found "${unknown}"\n${USAGE}`,
    EXIT.usage,
  );
}
