/**
 * Runs every live scenario against a real nginx and prints how replays of its logs compare with
 * the debug log. By hand, after a build:
 *
 *   node dist/test/support/live-bench.js [--seed N] [--keep DIR] [--from DIR]
 *     [--only N] [--show N] [--random N] [NAME…]
 *
 * NAMEs are parts of scenarios' names; --keep leaves the captures in DIR, --from reads those kept
 * instead of starting nginx. --only compares the first N kinds of logs, --show prints N of the
 * requests that disagreed for each row; --random takes N sites made up from the seed instead.
 */
import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { compareLive, replayCapture, type Variant } from './live-compare.js';
import { readCapture, record, type Capture, type Scenario } from './live-scenario.js';
import { randomScenario } from './live-random.js';
import { scenarios } from './live-scenarios.js';

const VARIANTS: readonly Variant[] = [
  { format: 'rich', withErrorLog: true },
  { format: 'rich', withErrorLog: true, isAudit: true },
  { format: 'rich', withErrorLog: false },
  { format: 'anonymous', withErrorLog: true },
  { format: 'limits', withErrorLog: true },
  { format: 'combined_status', withErrorLog: true },
  { format: 'combined_status', withErrorLog: false },
  { format: 'combined_bare', withErrorLog: true },
  { format: 'combined_bare', withErrorLog: false },
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    keep: { type: 'string' },
    from: { type: 'string' },
    only: { type: 'string', default: '99' },
    show: { type: 'string', default: '0' },
    random: { type: 'string', default: '0' },
  },
});

function percent(part: number, whole: number): string {
  return whole === 0 ? '-' : ((100 * part) / whole).toFixed(2);
}

function row(cells: readonly (string | number)[]): void {
  console.log(`| ${cells.join(' | ')} |`);
}

function show(capture: Capture): void {
  for (const variant of VARIANTS.slice(0, Number(values.only))) {
    const found = compareLive(capture, replayCapture(capture, variant));
    row([
      capture.name,
      `${variant.format}${variant.withErrorLog ? '+err' : ''}${variant.isAudit ? ' audit' : ''}`,
      found.decided,
      percent(found.decided - found.wrong, found.decided),
      percent(found.decided - found.unexplained, found.decided),
      found.meanPossible.toFixed(3),
      found.zoneRows,
      percent(found.zoneRows - found.outside, found.zoneRows),
      found.medianWidthMs.toFixed(1),
      found.anchored,
      found.wrongAnchors,
    ]);
    for (const oddity of found.oddities.slice(0, Number(values.show))) console.log(`  ${oddity}`);
  }
}

async function run(scenario: Scenario): Promise<void> {
  const cleanups: (() => void | Promise<void>)[] = [];
  try {
    const capture = await record({ after: (fn) => cleanups.push(fn) }, scenario);
    if (values.keep !== undefined) {
      const to = join(values.keep, scenario.name.replace(/\W+/g, '-').slice(0, 60));
      mkdirSync(to, { recursive: true });
      cpSync(capture.dir, to, { recursive: true, filter: (path) => !path.endsWith('sock') });
    }
    show(capture);
  } catch (error) {
    console.log(`${scenario.name}: ${(error as Error).message}`);
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup();
  }
}

row([
  'scenario',
  'logs',
  'requests',
  'verdict = logged %',
  'explained %',
  'possible',
  'zone rows',
  'in bounds %',
  'width (ms·rate)',
  'anchored',
  'wrong anchors',
]);
function isWanted(name: string): boolean {
  return positionals.length === 0 || positionals.some((part) => name.includes(part));
}

const randomCount = Number(values.random);
if (randomCount > 0) {
  for (let i = 0; i < randomCount; i++) await run(randomScenario(Number(values.seed) + i));
} else if (values.from === undefined) {
  for (const scenario of scenarios(Number(values.seed))) {
    if (isWanted(scenario.name)) await run(scenario);
  }
} else {
  for (const name of readdirSync(values.from).filter(isWanted)) {
    show(readCapture(join(values.from, name)));
  }
}
