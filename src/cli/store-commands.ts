/**
 * Commands that ask a store. What a command needs is loaded when it runs.
 */
import { type Command, Option } from 'commander';
import type { AlertsOptions, RulesChoice } from '../commands/alerts.js';
import { readVersion } from '../version.js';
import {
  confOrNone,
  type FilterOptions,
  type LogOptions,
  readLogOptions,
  type StoreOptions,
  withFilterOptions,
  withLogOptions,
  withLoginOptions,
  withOfferOptions,
  withStoreOptions,
} from './option-groups.js';
import { duration, format, option, repeatable, shareOf, wholeNumber } from './option-values.js';
import { output } from './terminal.js';

export function addReport(limitlens: Command): void {
  const command = limitlens
    .command('report')
    .description('who was limited, where and why: from the store, or from logs');
  withFilterOptions(withStoreOptions(withLogOptions(command)))
    .addOption(option('--top <n>', 'keys per zone').argParser(wholeNumber).default(10))
    .addOption(
      new Option('--html <file>', 'write a page to send instead; - is standard output').conflicts(
        'format',
      ),
    )
    .addOption(format('text', 'json'))
    .action(
      async (
        files: string[],
        options: LogOptions &
          StoreOptions &
          FilterOptions & { top: number; html?: string; format: 'text' | 'json' },
      ) => {
        const hasLogs = files.length + options.errorLog.length > 0;
        const logOptions = hasLogs
          ? readLogOptions(options)
          : { ...options, latenessMs: options.lateness };
        const { reportCommand } = await import('../commands/report.js');
        await reportCommand(files, logOptions, output);
      },
    );
}

/** Now is worth more here than the few requests that take longer: they count as late. */
const TOP_LATENESS_SECONDS = 10;

export function addTop(limitlens: Command): void {
  const command = limitlens
    .command('top')
    .description(
      'what the limits do now, in a terminal: of logs as they grow, with --conf, or of a store',
    );
  withStoreOptions(withLogOptions(command, TOP_LATENESS_SECONDS))
    .addOption(option('--instance <name>', 'only this nginx'))
    .addOption(
      option('--interval <duration>', 'how often to look').argParser(duration).default(5000, '5s'),
    )
    .addOption(
      option('--window <duration>', 'of time that rates are of')
        .argParser(duration)
        .default(60_000, '60s'),
    )
    .addOption(option('--top <n>', 'keys, with --once or JSON').argParser(wholeNumber).default(10))
    .addOption(
      new Option('--sort <order>', 'of keys').choices(['rejected', 'excess']).default('rejected'),
    )
    .option('--once', 'print one frame, for a pipe', false)
    .option('--ascii', 'no other characters, whatever the locale', false)
    .addOption(format('text', 'json'))
    .action(
      async (
        files: string[],
        options: LogOptions &
          StoreOptions & {
            instance?: string;
            interval: number;
            window: number;
            top: number;
            sort: 'rejected' | 'excess';
            once: boolean;
            ascii: boolean;
            format: 'text' | 'json';
          },
      ) => {
        const hasLogs = files.length + options.errorLog.length > 0;
        const { interval, window, lateness, ...rest } = options;
        const conf = hasLogs ? readLogOptions(options).conf : options.conf;
        const times = { intervalMs: interval, windowMs: window, latenessMs: lateness };
        const { topCommand } = await import('../commands/top.js');
        await topCommand(files, { ...rest, ...times, conf }, output);
      },
    );
}

export function addZones(limitlens: Command): void {
  const command = limitlens
    .command('zones')
    .description('how full each zone is, and what it forgot: from the store, or from logs')
    .enablePositionalOptions();
  withFilterOptions(withStoreOptions(withLogOptions(command)))
    .addOption(format('text', 'json'))
    .action(
      async (
        files: string[],
        options: LogOptions & StoreOptions & FilterOptions & { format: 'text' | 'json' },
      ) => {
        const hasLogs = files.length + options.errorLog.length > 0;
        const logOptions = hasLogs
          ? readLogOptions(options)
          : { ...options, conf: confOrNone(options.conf), latenessMs: options.lateness };
        const { zonesCommand } = await import('../commands/zones.js');
        await zonesCommand(files, logOptions, output);
      },
    );
  command
    .command('size')
    .description('how large a zone has to be')
    .requiredOption('--keys <n>', 'keys to remember at one time', wholeNumber)
    .requiredOption(
      '--key-length <bytes>',
      'length of a key: $binary_remote_addr has 4, or 16 for IPv6',
      wholeNumber,
    )
    .addOption(
      new Option('--kind <kind>', 'of zone')
        .choices(['limit_req', 'limit_conn'])
        .default('limit_req'),
    )
    .addOption(format('text', 'json'))
    .action(
      async (options: {
        keys: number;
        keyLength: number;
        kind: 'limit_req' | 'limit_conn';
        format: 'text' | 'json';
      }) => {
        const { zoneSizeCommand } = await import('../commands/zones.js');
        await zoneSizeCommand(options, output);
      },
    );
}

export function addDryRun(limitlens: Command): void {
  const command = limitlens
    .command('dry-run')
    .description(
      'whether the rules under dry run are safe to enforce: exit 0 safe, 1 not, 3 unknown',
    );
  withFilterOptions(withStoreOptions(command))
    .addOption(
      option('--max-rejected-share <share>', 'of requests that may be rejected')
        .argParser(shareOf)
        .default(0.001, '0.1%'),
    )
    .addOption(
      option('--max-keys <n>', 'keys that may see a reject')
        .argParser(wholeNumber)
        .default(Infinity, 'any number'),
    )
    .addOption(
      option('--min-requests <n>', 'fewer tell nothing, nor do fewer than 3 / the share; 0 for any')
        .argParser(wholeNumber)
        .default(1000),
    )
    .addOption(
      option('--min-span <duration>', 'a shorter time tells nothing')
        .argParser(duration)
        .default(3_600_000, '1h'),
    )
    .addOption(option('--top <n>', 'worst keys per zone').argParser(wholeNumber).default(10))
    .addOption(format('text', 'json'))
    .action(
      async (
        options: StoreOptions &
          FilterOptions & {
            maxRejectedShare: number;
            maxKeys: number;
            minRequests: number;
            minSpan: number;
            top: number;
            format: 'text' | 'json';
          },
      ) => {
        const { minSpan, ...rest } = options;
        const { dryRunCommand } = await import('../commands/dry-run.js');
        process.exitCode = await dryRunCommand({ ...rest, minSpanMs: minSpan }, output);
      },
    );
}

export function addSources(limitlens: Command): void {
  const command = limitlens
    .command('sources')
    .description(
      'who answered 429 and 503: the limiter, limit_conn, the upstream or nginx itself; logs tell user agents',
    );
  withFilterOptions(withStoreOptions(withLogOptions(command)))
    .addOption(
      option('--examples <n>', 'of each place, status and source')
        .argParser(wholeNumber)
        .default(3),
    )
    .addOption(format('text', 'json'))
    .action(
      async (
        files: string[],
        options: LogOptions &
          StoreOptions &
          FilterOptions & { examples: number; format: 'text' | 'json' },
      ) => {
        const hasLogs = files.length + options.errorLog.length > 0;
        const logs = hasLogs ? { logs: { ...readLogOptions(options), files } } : {};
        const { sourcesCommand } = await import('../commands/sources.js');
        await sourcesCommand({ ...options, ...logs }, output);
      },
    );
}

export function addAlerts(limitlens: Command): void {
  const withNumbers = (command: Command): Command =>
    command
      .addOption(
        repeatable(
          '--threshold <name=value>',
          'of an alert: NAME=5%, NAME.for=10m, NAME.window=1h, NAME.least=600, NAME=off',
        ),
      )
      .addOption(option('--runbooks-url <url>', 'where the pages of alerts/runbooks can be read'));
  const command = limitlens
    .command('alerts')
    .description('which alerts fire, asked of the store once: exit 1 if one does')
    .enablePositionalOptions();
  withNumbers(withStoreOptions(command))
    .addOption(option('--instance <name>', 'only this nginx'))
    .addOption(
      option('--at <time>', 'at this time: ISO 8601, or 2h ago as 2h; else the newest stored'),
    )
    .addOption(format('text', 'json'))
    .action(async (options: AlertsOptions) => {
      const { alertsCommand } = await import('../commands/alerts.js');
      process.exitCode = await alertsCommand(options, output);
    });
  withNumbers(
    command.command('rules').description('the same alerts as rules of Prometheus'),
  ).action(async (options: RulesChoice) => {
    const { alertRulesCommand } = await import('../commands/alerts.js');
    await alertRulesCommand(options, output);
  });
}

export function addServe(limitlens: Command): void {
  const command = limitlens.command('serve').description('the dashboards as a page, over a store');
  withOfferOptions(withLoginOptions(withStoreOptions(command)))
    .addOption(
      option('--listen <address:port>', 'where the page is served').default('127.0.0.1:9546'),
    )
    .action(async (options: StoreOptions & { listen: string }) => {
      const { serveCommand } = await import('../commands/serve.js');
      process.exitCode = await serveCommand({ ...options, version: readVersion() }, output);
    });
}
