/**
 * `limitlens check`: what is wrong, or easily misread, in a configuration's limits.
 */
import { ZoneRows } from '../analysis/zone-rows.js';
import { analyseZones } from '../analysis/zones.js';
import { checkConf } from '../check/check-conf.js';
import { findingsJson, findingsText } from '../check/findings-text.js';
import type { KeysSeen } from '../check/survey.js';
import { EXIT } from '../errors.js';
import { readConfs } from '../pipeline/confs.js';
import type { Output } from './output.js';
import { replayRows, type LogsChoice } from './replayed-rows.js';

export interface CheckCommandOptions extends LogsChoice {
  readonly patienceMs: number;
  readonly format: 'text' | 'json';
}

/** As linters do: 1 when there is something to change, which no exit code of sysexits.h says. */
const FOUND = 1;

/**
 * Logs, where given, tell how many keys each zone has to remember.
 *
 * @returns 1 when there are errors or warnings, 0 when there is nothing, or only remarks
 */
export async function checkCommand(
  files: readonly string[],
  options: CheckCommandOptions,
  output: Output,
): Promise<number> {
  const { patienceMs } = options;
  const keysSeen = await keysOf(files, options, output);
  const confs = readConfs(options.conf);
  const findings = confs.flatMap(({ conf }) => checkConf(conf, { patienceMs, keysSeen }));
  await output.write(options.format === 'json' ? findingsJson(findings) : findingsText(findings));
  return findings.some(({ severity }) => severity !== 'info') ? FOUND : EXIT.ok;
}

async function keysOf(
  files: readonly string[],
  options: CheckCommandOptions,
  output: Output,
): Promise<ReadonlyMap<string, KeysSeen>> {
  if (files.length + options.errorLog.length === 0) return new Map();
  const rows = new ZoneRows();
  await replayRows(files, options, 'default', rows, output);
  return new Map(
    analyseZones(rows.inputs(), null)
      .filter(({ keysCreated }) => keysCreated > 0)
      .map(({ zone, nodesMax, sufficient }) => [zone, { keys: sufficient?.nodes ?? nodesMax }]),
  );
}
