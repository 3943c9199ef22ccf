/**
 * Imports by the built command into a store of one test, and what its report then says.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ImportResult } from '../../src/pipeline/import-logs.js';
import type { Report } from '../../src/report/report.js';
import { mustRun, runCli, type CliOptions, type CliRun } from './cli.js';
import { traceDir, type TraceName } from './truth.js';

export type { Report } from '../../src/report/report.js';

export class Imports {
  readonly store: string;
  readonly #conf: readonly string[];

  /** @param dir a folder of the test; the store is made in it @param conf files for --conf */
  constructor(dir: string, conf: readonly string[], name = 'store') {
    this.store = join(dir, name);
    this.#conf = conf.flatMap((file) => ['--conf', file]);
  }

  get exists(): boolean {
    return existsSync(this.store);
  }

  arguments(args: readonly string[]): string[] {
    return ['import', ...this.#conf, '--store', this.store, ...args];
  }

  /** Imports, with whatever comes of it. */
  try(args: readonly string[], options: CliOptions = {}): Promise<CliRun> {
    return runCli(this.arguments(args), options);
  }

  /** Imports what can be imported. @returns what it says, and its notes on standard error */
  async add(
    args: readonly string[],
    options: CliOptions = {},
  ): Promise<ImportResult & { stderr: string }> {
    const run = await mustRun(this.arguments([...args, '--format', 'json']), options);
    return { ...(JSON.parse(run.stdout) as ImportResult), stderr: run.stderr };
  }

  async report(args: readonly string[] = []): Promise<Report> {
    const run = await mustRun(['report', '--store', this.store, '--format', 'json', ...args]);
    return JSON.parse(run.stdout) as Report;
  }
}

/** What was counted, without where it was read and how the replay fared. */
export function sums(report: Report): object {
  const lines: Record<string, number> = {};
  for (const { kind, lines: n } of report.lines) lines[kind] = (lines[kind] ?? 0) + n;
  return {
    requests: report.spans.reduce((sum, span) => sum + span.requests, 0),
    zones: report.zones.map((zone) => ({
      instance: zone.instance,
      zone: zone.zone,
      passed: zone.passed,
      delayed: zone.delayed,
      rejected: zone.rejected,
      delayedDryRun: zone.delayedDryRun,
      rejectedDryRun: zone.rejectedDryRun,
      exhausted: zone.exhausted,
      skipped: zone.skipped,
    })),
    sources: report.sources.map(({ status, source, requests }) => ({ status, source, requests })),
    lines,
  };
}

export function confOf(trace: TraceName): string {
  return join(traceDir(trace), 'nginx.conf');
}
