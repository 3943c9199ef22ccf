/**
 * What `--help` and a wrong command line print.
 *
 * A command's own options come first, those it shares with others behind them under headings of
 * their own. Defaults that say nothing (false, no value) are left out.
 */
import type { Command, Help, Option } from 'commander';

const OWN_OPTIONS = 'Options:';

/** For the whole program; commands made after it inherit it. */
export function configureHelp(program: Command): void {
  program.configureHelp({ optionDescription, groupItems, minWidthToWrap: 20 });
  program.configureOutput({
    outputError: (text, write) => {
      write(text.replace(/^error: /, 'limitlens: '));
    },
  });
}

/** The last line of an error leads to the help of the command that was meant. */
export function leadToHelp(command: Command, name: string): void {
  command.showHelpAfterError(`  \`${name} --help\` tells more.`);
  for (const inner of command.commands) leadToHelp(inner, `${name} ${inner.name()}`);
}

/** Options that `add` gives a command stand under a heading of their own. */
export function underHeading(
  heading: string,
  command: Command,
  add: (command: Command) => Command,
): Command {
  command.optionsGroup(heading);
  add(command);
  return command.optionsGroup(OWN_OPTIONS);
}

function optionDescription(option: Option): string {
  const { argChoices, defaultValueDescription, envVar } = option;
  const defaultValue: unknown = option.defaultValue;
  const extra: string[] = [];
  if (argChoices !== undefined) extra.push(argChoices.join(', '));
  if (hasValue(defaultValue)) extra.push(`default: ${defaultValueDescription ?? defaultValue}`);
  if (envVar !== undefined) extra.push(`env: ${envVar}`);
  return extra.length === 0 ? option.description : `${option.description} (${extra.join('; ')})`;
}

function hasValue(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

/** By heading, the command's own first. */
const groupItems: Help['groupItems'] = (_all, visible, headingOf) => {
  const groups = new Map<string, typeof visible>([[OWN_OPTIONS, []]]);
  for (const item of visible) {
    const heading = headingOf(item);
    groups.set(heading, [...(groups.get(heading) ?? []), item]);
  }
  if (groups.get(OWN_OPTIONS)!.length === 0) groups.delete(OWN_OPTIONS);
  return groups;
};
