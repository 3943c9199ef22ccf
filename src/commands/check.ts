/**
 * `limitlens check`: what is wrong, or easily misread, in a configuration's limits.
 */
import { checkConf } from '../check/check-conf.js';
import { findingsJson, findingsText } from '../check/findings-text.js';
import { readConfs } from '../pipeline/confs.js';
import { EXIT } from '../errors.js';
import type { Output } from './output.js';

export interface CheckCommandOptions {
  readonly conf: readonly string[];
  readonly patienceMs: number;
  readonly format: 'text' | 'json';
}

/** As linters do: 1 when there is something to change, which no exit code of sysexits.h says. */
const FOUND = 1;

/** @returns 1 when there are errors or warnings, 0 when there is nothing, or only remarks */
export async function checkCommand(options: CheckCommandOptions, output: Output): Promise<number> {
  const { patienceMs } = options;
  const confs = readConfs(options.conf);
  const findings = confs.flatMap(({ conf }) => checkConf(conf, { patienceMs }));
  await output.write(options.format === 'json' ? findingsJson(findings) : findingsText(findings));
  return findings.some(({ severity }) => severity !== 'info') ? FOUND : EXIT.ok;
}
