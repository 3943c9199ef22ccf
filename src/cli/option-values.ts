/**
 * One option of the command line: its flags, its environment variable, and what its value can be.
 *
 * Every option has an environment variable of the same name, LIMITLENS_….
 */
import { InvalidArgumentError, Option } from 'commander';

function collect(value: string, previous: readonly string[]): string[] {
  return [...previous, value];
}

export function duration(value: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(value);
  if (match === null) throw new InvalidArgumentError('Expected a duration like 60s, 500ms or 2m.');
  const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
  return Math.round(Number(match[1]) * units[match[2] ?? 's']!);
}

export function byteSize(value: string): number {
  const match = /^(\d+(?:\.\d+)?)(B|KiB|MiB|GiB)?$/.exec(value);
  if (match === null) throw new InvalidArgumentError('Expected a size like 512MiB or 2GiB.');
  const units: Record<string, number> = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
  return Math.round(Number(match[1]) * units[match[2] ?? 'B']!);
}

export function wholeNumber(value: string): number {
  if (!/^\d{1,12}$/.test(value)) throw new InvalidArgumentError('Expected a whole number.');
  return Number(value);
}

/** `0.1%`, or the same as 0.001. */
export function shareOf(value: string): number {
  const match = /^(\d+(?:\.\d+)?)(%?)$/.exec(value);
  const share = match === null ? NaN : Number(match[1]) / (match[2] === '%' ? 100 : 1);
  if (share >= 0 && share <= 1) return share;
  throw new InvalidArgumentError('Expected a share of all requests like 0.1% or 0.001.');
}

/** An option with its environment variable: `--log-format` is LIMITLENS_LOG_FORMAT. */
export function option(flags: string, description: string): Option {
  const name = /--([a-z0-9-]+)/.exec(flags)![1]!;
  return new Option(flags, description).env(`LIMITLENS_${name.replaceAll('-', '_').toUpperCase()}`);
}

export function repeatable(flags: string, description: string): Option {
  return new Option(flags, description).argParser(collect).default([] as string[], 'none');
}

export function format(...choices: string[]): Option {
  return new Option('--format <format>', 'what to print').choices(choices).default(choices[0]);
}
