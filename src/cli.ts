#!/usr/bin/env node
/**
 * The command line: options to commands, errors to exit codes. The only importer of commander.
 */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { Output } from './commands/output.js';
import { replay, type ReplayOptions } from './commands/replay.js';
import { EXIT, InputError } from './errors.js';

const output = new Output(process.stdout, process.stderr);

function collect(value: string, previous: readonly string[]): string[] {
  return [...previous, value];
}

function seconds(value: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(value);
  if (match === null) throw new InvalidArgumentError('expected a duration like 60s, 500ms or 2m');
  const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
  return Math.round(Number(match[1]) * units[match[2] ?? 's']!);
}

function wholeNumber(value: string): number {
  if (!/^\d+$/.test(value)) throw new InvalidArgumentError('expected a whole number');
  return Number(value);
}

function confOption(): Option {
  return new Option(
    '--conf <file[@time]>',
    'nginx configuration or output of nginx -T; repeat for later ones',
  )
    .argParser(collect)
    .default([], '');
}

function errorLogOption(): Option {
  return new Option('--error-log <file>', 'an error log; repeatable')
    .argParser(collect)
    .default([], '');
}

function withLogOptions(command: Command): Command {
  return command
    .addOption(confOption())
    .addOption(errorLogOption())
    .addOption(
      new Option('--log-format <name or format>', "the access logs' format").env(
        'LIMITLENS_LOG_FORMAT',
      ),
    )
    .addOption(
      new Option('--timezone <zone>', "IANA zone of the error logs' times").env(
        'LIMITLENS_TIMEZONE',
      ),
    )
    .addOption(
      new Option('--lateness <duration>', 'how long after its decision a request may be logged')
        .argParser(seconds)
        .default(60_000, '60s'),
    )
    .option('--all-logs', 'read access logs even where they hold the same requests', false)
    .addOption(new Option('--chunk-bytes <n>', 'bytes per read').argParser(wholeNumber).hideHelp());
}

interface LogOptions {
  readonly conf: string[];
  readonly errorLog: string[];
  readonly logFormat?: string;
  readonly timezone?: string;
  readonly lateness: number;
  readonly allLogs: boolean;
  readonly chunkBytes?: number;
}

function requireConf(options: LogOptions): void {
  if (options.conf.length > 0) return;
  throw new InputError('expected --conf FILE: the nginx configuration of these logs', EXIT.usage);
}

function program(): Command {
  const limitlens = new Command('limitlens')
    .description("what nginx's limit_req did, to whom and why")
    .version('0.1.0')
    .exitOverride()
    .configureOutput({ writeErr: (text) => process.stderr.write(text) });

  withLogOptions(limitlens.command('replay'))
    .description('every request with its excess, and what the limiter said, as JSON lines')
    .argument('[files...]', 'access and error logs, plain or gzipped; - is standard input')
    .option('--audit', 'use neither logged outcomes nor error-log lines', false)
    .addOption(
      new Option('--format <format>', 'output').choices(['jsonl', 'json', 'text']).default('jsonl'),
    )
    .action(async (files: string[], options: LogOptions & { audit: boolean }) => {
      requireConf(options);
      const { lateness, ...rest } = options;
      const replayOptions: ReplayOptions = { ...rest, latenessMs: lateness };
      await replay(files, replayOptions, output);
    });
  return limitlens;
}

async function main(): Promise<number> {
  try {
    await program().parseAsync();
    return EXIT.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (error instanceof InputError) {
      output.note(`limitlens: ${error.message}`);
      return error.exitCode;
    }
    output.note(`limitlens: a bug, please report it\n${(error as Error).stack ?? String(error)}`);
    return EXIT.software;
  }
}

process.exitCode = await main();
