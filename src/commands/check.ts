/**
 * `limitlens check`: what is wrong, or easily misread, in a configuration's limits.
 */
import { ZoneRows } from '../analysis/zone-rows.js';
import { analyseZones } from '../analysis/zones.js';
import { checkConf } from '../check/check-conf.js';
import { findingsJson, findingsText } from '../check/findings-text.js';
import type { KeysSeen } from '../check/survey.js';
import { EXIT, InputError } from '../errors.js';
import { readConfs } from '../pipeline/confs.js';
import type { Output } from './output.js';
import type { LogsChoice } from './replayed-logs.js';
import { replayRows } from './replayed-rows.js';
import { checkTailOptions, type TailSettings } from './tail.js';

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

/**
 * limitlens.yaml, and what it names: the nginx configuration, formats of logs, files of secrets.
 * Neither store nor port is opened, so it can run beside the daemon.
 *
 * @param settingsOf reads the file
 * @returns 0
 * @throws InputError 78 for whatever is wrong
 */
export async function checkConfigCommand(
  path: string,
  settingsOf: () => Promise<TailSettings>,
  output: Output,
): Promise<number> {
  try {
    const { files, options } = await settingsOf();
    await checkTailOptions(files, options);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new InputError(error.message, EXIT.configuration, { cause: error });
  }
  await output.write(`${path}: good\n`);
  return EXIT.ok;
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
