/**
 * `limitlens sources`: who answered 429 and 503, where, and over time.
 */
import { sourcesText } from '../analysis/sources-text.js';
import { analyseSources, readSourcesInputs, type AgentFindings } from '../analysis/sources.js';
import { UserAgents } from '../analysis/user-agents.js';
import { askStore } from './asked-store.js';
import { emptyRange } from './empty-range.js';
import type { Output } from './output.js';
import { replayLogs, type LogsChoice } from './replayed-logs.js';
import type { StoreChoice } from './store-choice.js';
import { filterOf, type FilterChoice } from './store-filter.js';

export interface SourcesOptions extends StoreChoice, FilterChoice {
  /** Examples per place, status and source. */
  readonly examples: number;
  readonly format: 'text' | 'json';
  /** Logs to look for user agents in, which the store does not have. */
  readonly logs?: LogsChoice & { readonly files: readonly string[] };
}

export async function sourcesCommand(options: SourcesOptions, output: Output): Promise<void> {
  const filter = filterOf(options);
  const agents = options.logs === undefined ? null : await agentsIn(options.logs, options, output);
  const { inputs, nothing } = await askStore(options, async (store) => ({
    inputs: await readSourcesInputs(store, filter, options.examples),
    nothing: await emptyRange(store, filter),
  }));
  const analysis = analyseSources(inputs, agents);
  await output.write(
    options.format === 'json'
      ? `${JSON.stringify(analysis)}\n`
      : nothing === undefined
        ? sourcesText(analysis)
        : `${nothing}\n`,
  );
}

async function agentsIn(
  logs: LogsChoice & { readonly files: readonly string[] },
  { instance }: SourcesOptions,
  output: Output,
): Promise<AgentFindings> {
  const run: { agents?: UserAgents } = {};
  await replayLogs(logs.files, logs, output, (session) => {
    const agents = new UserAgents(session);
    run.agents = agents;
    return {
      onSubmit: (event, line, fields) => agents.submit(event, line, fields),
      onDecision: (event) => agents.decide(event),
    };
  });
  const { isIncomplete } = run.agents!;
  return { findings: run.agents!.findings(instance ?? 'default'), isIncomplete };
}
