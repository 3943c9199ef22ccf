/**
 * limitlens.yaml as options of a command: the command line beats the environment, which beats the
 * file, which beats what an option is by default.
 *
 * Knows a command by its shape alone, since commander has its one door (../cli).
 */
import { readConfig, type ConfigOption } from '../config/read-config.js';
import { EXIT, formatWhere, InputError, quote } from '../errors.js';

interface OptionLike {
  readonly long?: string | undefined;
  readonly envVar?: string | undefined;
  readonly parseArg?: ((value: string, previous: never) => unknown) | undefined;
  attributeName(): string;
}

/** What of a commander's Command is needed here. */
export interface CommandLike {
  readonly options: readonly OptionLike[];
  getOptionValueSource(name: string): string | undefined;
  setOptionValueWithSource(name: string, value: unknown, source: string): unknown;
}

/**
 * Sets the options that the file names and nobody else has set.
 *
 * @param files logs given on the command line
 * @returns the logs to read: those of the command line, else of the file
 * @throws InputError 66 or 78 for the file, with the place of what is wrong
 */
export function applyConfig(
  command: CommandLike,
  path: string,
  files: readonly string[],
): readonly string[] {
  let logs = files;
  for (const found of readConfig(path)) {
    const { option, insteadOf = [] } = found.key;
    if ([option, ...insteadOf].some((name) => isSet(command, name))) continue;
    if (option === 'files') {
      if (files.length === 0) logs = found.values;
      continue;
    }
    const known = optionOf(command, option);
    const value = valueOf(known, found);
    command.setOptionValueWithSource(known.attributeName(), value, 'config');
  }
  return logs;
}

function optionOf(command: CommandLike, name: string): OptionLike {
  const known = command.options.find(({ long }) => long === `--${name}`);
  if (known === undefined) throw new Error(`limitlens.yaml names --${name}, which is no option`);
  return known;
}

/** On the command line, or in the environment. */
function isSet(command: CommandLike, name: string): boolean {
  if (name === 'files') return false;
  const known = optionOf(command, name);
  const source = command.getOptionValueSource(known.attributeName());
  if (source === 'cli' || source === 'env') return true;
  // Options that can be repeated have no variable that commander knows of.
  const variable = known.envVar ?? `LIMITLENS_${name.replaceAll('-', '_').toUpperCase()}`;
  return (process.env[variable] ?? '') !== '';
}

function valueOf(known: OptionLike, found: ConfigOption): unknown {
  const { key, values, where } = found;
  if (key.kind === 'flag') return values[0] === 'true';
  let value: unknown = key.kind === 'values' || known.parseArg !== undefined ? [] : undefined;
  for (const text of values) {
    try {
      value = known.parseArg === undefined ? text : known.parseArg(text, value as never);
    } catch (error) {
      throw new InputError(
        `${formatWhere(where)}: ${key.path}: ${(error as Error).message} Found ${quote(text)}`,
        error instanceof InputError ? error.exitCode : EXIT.configuration,
        { cause: error },
      );
    }
  }
  return value;
}
