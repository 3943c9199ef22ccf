/**
 * `limitlens report`: who was limited, where and why, from the store, or from logs.
 */
import { readDryRunInputs } from '../analysis/dry-run-inputs.js';
import { analyseDryRun, DEFAULT_THRESHOLDS } from '../analysis/dry-run.js';
import { writeWhole } from '../report/html-file.js';
import { readTimeline } from '../report/html-timeline.js';
import { reportHtml, zonesToDraw } from '../report/html.js';
import { makeReport } from '../report/report.js';
import { reportText } from '../report/report-text.js';
import type { Filter } from '../store/filter.js';
import type { Store } from '../store/store.js';
import { readVersion } from '../version.js';
import { askStore } from './asked-store.js';
import { emptyRange } from './empty-range.js';
import type { Output } from './output.js';
import { askOfLogs } from './passing-store.js';
import type { LogsChoice } from './replayed-logs.js';
import type { StoreChoice } from './store-choice.js';
import { filterOf, type FilterChoice } from './store-filter.js';

export interface ReportCommandOptions extends StoreChoice, FilterChoice, LogsChoice {
  readonly top: number;
  readonly format: 'text' | 'json';
  /** Where the page is to be written; - is standard output. */
  readonly html?: string;
}

/**
 * Files are taken into a store for this one report; without any the store is asked.
 *
 * @throws InputError as openStore() and askOfLogs(); io (74) when the page cannot be written
 */
export async function reportCommand(
  files: readonly string[],
  options: ReportCommandOptions,
  output: Output,
): Promise<void> {
  const filter = filterOf(options);
  const ask = (choice: StoreChoice): Promise<string> =>
    askStore(choice, (store) =>
      options.html === undefined ? print(store, filter, options) : page(store, filter, options.top),
    );
  const hasLogs = files.length + options.errorLog.length > 0;
  const text = await (hasLogs ? askOfLogs(files, options, ask) : ask(options));
  if (options.html === undefined || options.html === '-') {
    await output.write(text);
    return;
  }
  writeWhole(options.html, text);
  output.note(`${options.html}: ${Math.ceil(Buffer.byteLength(text) / 1024)} KiB written`);
}

async function print(
  store: Store,
  filter: Filter,
  { top, format }: ReportCommandOptions,
): Promise<string> {
  const report = await makeReport(store, { keys: top, ...filter });
  if (format === 'json') return `${JSON.stringify(report)}\n`;
  return reportText(report, await emptyRange(store, filter));
}

async function page(store: Store, filter: Filter, keys: number): Promise<string> {
  const report = await makeReport(store, { keys, ...filter });
  const drawn = zonesToDraw(report.zones);
  const { spans } = report;
  const span = {
    fromMs: Math.min(...spans.map(({ fromMs }) => fromMs)),
    toMs: Math.max(...spans.map(({ toMs }) => toMs)),
  };
  const inputs = await readDryRunInputs(store, filter, keys);
  return reportHtml({
    report,
    drawn,
    timeline: spans.length === 0 ? null : await readTimeline(store, filter, span, drawn),
    dryRun: analyseDryRun(inputs, DEFAULT_THRESHOLDS),
    version: readVersion(),
    madeMs: Date.now(),
  });
}
