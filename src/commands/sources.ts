/**
 * `limitlens sources`: who answered 429 and 503, where, and over time.
 */
import { sourcesText } from '../analysis/sources-text.js';
import { analyseSources, readSourcesInputs, type SourcesInputs } from '../analysis/sources.js';
import { openStore } from '../store/store.js';
import type { Output } from './output.js';
import { storeOptions, type StoreChoice } from './store-choice.js';
import { filterOf, type FilterChoice } from './store-filter.js';

export interface SourcesOptions extends StoreChoice, FilterChoice {
  /** Examples per place, status and source. */
  readonly examples: number;
  readonly format: 'text' | 'json';
}

export async function sourcesCommand(options: SourcesOptions, output: Output): Promise<void> {
  const filter = filterOf(options);
  const store = await openStore({
    ...storeOptions(options),
    createIfMissing: false,
    readOnly: true,
  });
  let inputs: SourcesInputs;
  try {
    inputs = await readSourcesInputs(store, filter, options.examples);
  } finally {
    await store.close();
  }
  const analysis = analyseSources(inputs);
  await output.write(
    options.format === 'json' ? `${JSON.stringify(analysis)}\n` : sourcesText(analysis),
  );
}
