/**
 * `limitlens report`: who was limited, where and why, from the store.
 */
import { EXIT, InputError } from '../errors.js';
import { makeReport } from '../report/report.js';
import { reportText } from '../report/report-text.js';
import { openStore } from '../store/store.js';
import type { Output } from './output.js';
import { storeOptions, type StoreChoice } from './store-choice.js';

export interface ReportCommandOptions extends StoreChoice {
  readonly instance?: string;
  readonly since?: string;
  readonly until?: string;
  readonly top: number;
  readonly format: 'text' | 'json';
}

export async function reportCommand(options: ReportCommandOptions, output: Output): Promise<void> {
  const sinceMs = timeOf('--since', options.since);
  const untilMs = timeOf('--until', options.until);
  const store = await openStore({
    ...storeOptions(options),
    createIfMissing: false,
    readOnly: true,
  });
  try {
    const report = await makeReport(store, {
      keys: options.top,
      ...(options.instance === undefined ? {} : { instance: options.instance }),
      ...(sinceMs === undefined ? {} : { sinceMs }),
      ...(untilMs === undefined ? {} : { untilMs }),
    });
    await output.write(
      options.format === 'json' ? `${JSON.stringify(report)}\n` : reportText(report),
    );
  } finally {
    await store.close();
  }
}

const AGO = /^(\d+)(s|m|h|d)$/;
const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** An ISO 8601 time, or how long ago: `2h`. */
function timeOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ago = AGO.exec(text);
  if (ago !== null) return Date.now() - Number(ago[1]) * UNIT_MS[ago[2]!]!;
  const ms = Date.parse(text);
  if (!Number.isNaN(ms)) return ms;
  throw new InputError(
    `${option} ${text}: expected a time like 2026-03-02T10:00:00Z, or 2h for two hours ago`,
    EXIT.usage,
  );
}
