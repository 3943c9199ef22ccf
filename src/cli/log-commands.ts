/**
 * Commands that read logs. What a command needs is loaded when it runs.
 */
import type { Command } from 'commander';
import type { PrivacyChoice } from '../commands/privacy-options.js';
import {
  type LogOptions,
  readLogOptions,
  requireLogs,
  type StoreOptions,
  withLogOptions,
  withPrivacyOptions,
  withStoreOptions,
} from './option-groups.js';
import { format, option, wholeNumber } from './option-values.js';
import { output } from './terminal.js';

export function addImport(limitlens: Command): void {
  const command = limitlens.command('import').description('logs into the store, each line once');
  withPrivacyOptions(withStoreOptions(withLogOptions(command)))
    .addOption(option('--instance <name>', 'which nginx these logs are from').default('default'))
    .addOption(
      option('--threads <n>', '1 reads logs in the same thread that replays them')
        .argParser(wholeNumber)
        .default(2),
    )
    .addOption(option('--dead-letter <file>', 'write unusable lines there, as NDJSON'))
    .option('--strict', 'exit with 65 when a line was unusable', false)
    .option(
      '--abandon-interrupted',
      'end an interrupted import whose logs are gone: what it stored stays, the rest is not counted',
      false,
    )
    .addOption(format('text', 'json'))
    .action(
      async (
        files: string[],
        options: LogOptions &
          StoreOptions &
          PrivacyChoice & {
            instance: string;
            threads: number;
            deadLetter?: string;
            strict: boolean;
            abandonInterrupted: boolean;
            format: 'text' | 'json';
          },
      ) => {
        if (!options.abandonInterrupted) requireLogs(files, options.errorLog);
        const { importCommand } = await import('../commands/import.js');
        process.exitCode = await importCommand(files, readLogOptions(options), output);
      },
    );
}

export function addReplay(limitlens: Command): void {
  withLogOptions(
    limitlens
      .command('replay')
      .description('every request with its excess and what the limiter said'),
  )
    .option('--audit', 'use neither logged outcomes nor error-log lines', false)
    .addOption(format('jsonl', 'json', 'text'))
    .action(
      async (
        files: string[],
        options: LogOptions & { audit: boolean; format: 'jsonl' | 'json' | 'text' },
      ) => {
        requireLogs(files, options.errorLog);
        const { replay } = await import('../commands/replay.js');
        await replay(files, readLogOptions(options), output);
      },
    );
}

export function addExplain(limitlens: Command): void {
  limitlens
    .command('explain')
    .description('what one line of an access or error log means')
    .argument('[line...]', 'the line, quoted; without one, or with -, each line of standard input')
    .addOption(option('--conf <file>', 'nginx configuration, for rates and bursts'))
    .option('--show-args', 'show arguments of requests; they can hold secrets', false)
    .addOption(format('text', 'json'))
    .action(
      async (
        line: string[],
        options: { conf?: string; showArgs: boolean; format: 'text' | 'json' },
      ) => {
        const { explainCommand } = await import('../commands/explain.js');
        const isInput = line.length === 0 || (line.length === 1 && line[0] === '-');
        await explainCommand(isInput ? undefined : line.join(' '), options, output);
      },
    );
}

export function addRetries(limitlens: Command): void {
  withLogOptions(
    limitlens
      .command('retries')
      .description('how soon clients come back after a refusal, and storms of retries: from logs'),
  )
    .addOption(option('--top <n>', 'worst keys per zone').argParser(wholeNumber).default(10))
    .addOption(
      option('--min-storm-rejects <n>', 'fewer refusals in a minute are no storm')
        .argParser(wholeNumber)
        .default(10),
    )
    .addOption(format('text', 'json'))
    .action(
      async (
        files: string[],
        options: LogOptions & { top: number; minStormRejects: number; format: 'text' | 'json' },
      ) => {
        requireLogs(files, options.errorLog);
        const { retriesCommand } = await import('../commands/retries.js');
        await retriesCommand(files, readLogOptions(options), output);
      },
    );
}

export function addConcurrency(limitlens: Command): void {
  withLogOptions(
    limitlens
      .command('concurrency')
      .description(
        'requests under way at one time, and what limit_conn would do: from access logs',
      ),
  )
    .addOption(
      option(
        '--key <expression>',
        "count by this key instead of the configuration's limit_conn zones",
      ),
    )
    .addOption(
      option(
        '--limit-conn <n>',
        'what limit_conn would have done with this many, instead of several',
      ).argParser(wholeNumber),
    )
    .addOption(option('--top <n>', 'worst keys per zone').argParser(wholeNumber).default(10))
    .addOption(format('text', 'json'))
    .action(
      async (
        files: string[],
        options: LogOptions & {
          key?: string;
          limitConn?: number;
          top: number;
          format: 'text' | 'json';
        },
      ) => {
        requireLogs(files, options.errorLog);
        const { concurrencyCommand } = await import('../commands/concurrency.js');
        await concurrencyCommand(files, readLogOptions(options), output);
      },
    );
}
