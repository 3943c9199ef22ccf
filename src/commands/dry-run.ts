/**
 * `limitlens dry-run`: whether the rules under dry run are safe to enforce.
 */
import { readDryRunInputs } from '../analysis/dry-run-inputs.js';
import { dryRunText } from '../analysis/dry-run-text.js';
import { analyseDryRun, type DryRunThresholds, type DryRunVerdict } from '../analysis/dry-run.js';
import { askStore } from './asked-store.js';
import { emptyRange } from './empty-range.js';
import type { Output } from './output.js';
import type { StoreChoice } from './store-choice.js';
import { filterOf, type FilterChoice } from './store-filter.js';

export interface DryRunOptions extends StoreChoice, FilterChoice, DryRunThresholds {
  /** Worst keys per zone. */
  readonly top: number;
  readonly format: 'text' | 'json';
}

/** Answers, not errors: so none of the codes of sysexits.h. */
const EXIT_OF: Readonly<Record<DryRunVerdict, number>> = {
  safe: 0,
  not_safe: 1,
  not_enough_data: 3,
};

/** @returns 0 safe, 1 not safe, 3 not enough data, or no rule under dry run */
export async function dryRunCommand(options: DryRunOptions, output: Output): Promise<number> {
  const filter = filterOf(options);
  const { inputs, nothing } = await askStore(options, async (store) => ({
    inputs: await readDryRunInputs(store, filter, options.top),
    nothing: await emptyRange(store, filter),
  }));
  const analysis = analyseDryRun(inputs, options);
  await output.write(
    options.format === 'json'
      ? `${JSON.stringify(analysis)}\n`
      : nothing === undefined
        ? dryRunText(analysis)
        : `${nothing}\n`,
  );
  return EXIT_OF[analysis.verdict];
}
