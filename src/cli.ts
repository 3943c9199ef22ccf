#!/usr/bin/env node
/**
 * The command line: options to commands, errors to exit codes. The only importer of commander.
 *
 * Every option has an environment variable of the same name, LIMITLENS_….
 */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import {
  alertRulesCommand,
  alertsCommand,
  type AlertsOptions,
  type RulesChoice,
} from './commands/alerts.js';
import { checkCommand, checkConfigCommand } from './commands/check.js';
import { applyConfig } from './commands/config-options.js';
import { concurrencyCommand } from './commands/concurrency.js';
import { dryRunCommand } from './commands/dry-run.js';
import { explainCommand } from './commands/explain.js';
import { importCommand } from './commands/import.js';
import { DEFAULT_CLICKHOUSE_HTTP_USER } from './commands/offered-store.js';
import { Output } from './commands/output.js';
import type { PrivacyChoice } from './commands/privacy-options.js';
import { replay } from './commands/replay.js';
import { reportCommand } from './commands/report.js';
import { retriesCommand } from './commands/retries.js';
import { sourcesCommand } from './commands/sources.js';
import { serveCommand } from './commands/serve.js';
import { DEFAULT_STORE } from './commands/store-choice.js';
import { tailCommand, type TailSettings } from './commands/tail.js';
import { topCommand } from './commands/top.js';
import { zonesCommand, zoneSizeCommand } from './commands/zones.js';
import { EXIT, InputError } from './errors.js';
import { readVersion } from './version.js';

const output = new Output(process.stdout, process.stderr);

function collect(value: string, previous: readonly string[]): string[] {
  return [...previous, value];
}

function duration(value: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(value);
  if (match === null) throw new InvalidArgumentError('Expected a duration like 60s, 500ms or 2m.');
  const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
  return Math.round(Number(match[1]) * units[match[2] ?? 's']!);
}

function byteSize(value: string): number {
  const match = /^(\d+(?:\.\d+)?)(B|KiB|MiB|GiB)?$/.exec(value);
  if (match === null) throw new InvalidArgumentError('Expected a size like 512MiB or 2GiB.');
  const units: Record<string, number> = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
  return Math.round(Number(match[1]) * units[match[2] ?? 'B']!);
}

function wholeNumber(value: string): number {
  if (!/^\d{1,12}$/.test(value)) throw new InvalidArgumentError('Expected a whole number.');
  return Number(value);
}

/** An option with its environment variable: `--log-format` is LIMITLENS_LOG_FORMAT. */
function option(flags: string, description: string): Option {
  const name = /--([a-z0-9-]+)/.exec(flags)![1]!;
  return new Option(flags, description).env(`LIMITLENS_${name.replaceAll('-', '_').toUpperCase()}`);
}

function repeatable(flags: string, description: string): Option {
  return new Option(flags, description).argParser(collect).default([] as string[], 'none');
}

function format(...choices: string[]): Option {
  return new Option('--format <format>', 'what to print').choices(choices).default(choices[0]);
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

function withLogOptions(command: Command): Command {
  return command
    .argument(
      '[files...]',
      'access and error logs, plain or gzipped, told apart by content; - is standard input',
    )
    .addOption(
      repeatable(
        '--conf <file[@time]>',
        'nginx configuration, or output of nginx -T; repeat for later ones',
      ),
    )
    .addOption(repeatable('--error-log <file>', 'an error log; repeat for more'))
    .addOption(
      option('--log-format <name|format>', "the access logs' format, where it can't be told"),
    )
    .addOption(option('--timezone <zone>', "IANA zone of the error logs' times"))
    .addOption(
      option('--lateness <duration>', 'how long after its decision a request may be logged')
        .argParser(duration)
        .default(60_000, '60s'),
    )
    .option('--all-logs', 'read access logs even where they hold the same requests', false)
    .addOption(new Option('--chunk-bytes <n>', 'bytes per read').argParser(wholeNumber).hideHelp());
}

/** What the log options say, with units in the names; the configuration is not optional. */
function readLogOptions<T extends LogOptions>(
  options: T,
): Omit<T, 'lateness'> & { latenessMs: number } {
  const fromEnvironment = process.env['LIMITLENS_CONF'];
  const conf = options.conf.length > 0 || !fromEnvironment ? options.conf : [fromEnvironment];
  if (conf.length === 0) {
    throw new InputError('expected --conf FILE: the nginx configuration of these logs', EXIT.usage);
  }
  const { lateness, ...rest } = options;
  return { ...rest, conf, latenessMs: lateness };
}

function requireLogs(files: readonly string[], errorLogs: readonly string[]): void {
  if (files.length + errorLogs.length > 0) return;
  throw new InputError('expected a log to read: FILES, or --error-log FILE', EXIT.usage);
}

interface StoreOptions {
  readonly store?: string;
  readonly clickhouse?: string;
  readonly clickhouseUser?: string;
  readonly clickhousePasswordFile?: string;
  readonly cluster?: string;
  readonly database?: string;
}

function withStoreOptions(command: Command): Command {
  return command
    .addOption(option('--store <folder>', `embedded store (default: ${DEFAULT_STORE})`))
    .addOption(
      option('--clickhouse <url>', 'ClickHouse server instead: http://user:password@host:8123'),
    )
    .addOption(option('--clickhouse-user <name>', 'user of that server, where the URL has none'))
    .addOption(option('--clickhouse-password-file <file>', 'file that holds the password'))
    .addOption(option('--cluster <name>', 'cluster of that server'))
    .addOption(option('--database <name>', 'database (default: limitlens)'));
}

function withPrivacyOptions(command: Command): Command {
  return command
    .addOption(
      option('--privacy <how>', 'what is stored of addresses')
        .choices(['keep', 'truncate', 'hash'])
        .default('keep'),
    )
    .addOption(
      option('--privacy-keys <which>', 'all hashes every key, not the addresses in them alone')
        .choices(['addresses', 'all'])
        .default('addresses'),
    )
    .addOption(
      option('--privacy-ipv4-prefix <bits>', 'kept when truncating')
        .argParser(wholeNumber)
        .default(24),
    )
    .addOption(
      option('--privacy-ipv6-prefix <bits>', 'kept when truncating')
        .argParser(wholeNumber)
        .default(48),
    )
    .addOption(
      option('--privacy-key-file <file>', 'secret of the hash, and of the state between two steps'),
    );
}

function addImport(limitlens: Command): void {
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
            format: 'text' | 'json';
          },
      ) => {
        requireLogs(files, options.errorLog);
        process.exitCode = await importCommand(files, readLogOptions(options), output);
      },
    );
}

interface TailOptions extends LogOptions, StoreOptions, PrivacyChoice {
  readonly config?: string;
  readonly instance: string;
  readonly syslog: string[];
  readonly poll: boolean;
  readonly listen: string;
  readonly commitInterval: number;
  readonly spool?: string;
  readonly spoolMax: number;
  readonly alertInterval: number;
  readonly alertmanager: string[];
  readonly alertmanagerLoginFile?: string;
  readonly alertWebhook?: string;
  readonly alertWebhookSecretFile?: string;
  readonly alertThreshold: string[];
  readonly runbooksUrl?: string;
  readonly externalUrl?: string;
  readonly retention: string[];
}

function addTail(limitlens: Command): Command {
  const command = limitlens.command('tail').description('logs into the store as they grow');
  return withOfferOptions(
    withLoginOptions(withPrivacyOptions(withStoreOptions(withLogOptions(command)))),
  )
    .addOption(option('--config <file>', 'limitlens.yaml: what is not given here'))
    .addOption(option('--instance <name>', 'which nginx these logs are from').default('default'))
    .addOption(
      repeatable(
        '--syslog <address>',
        'receive what nginx sends by syslog: udp://127.0.0.1:5514 or unix:/run/limitlens/syslog.sock',
      ),
    )
    .option('--poll', 'look for new lines at a steady pace: for NFS and the like', false)
    .addOption(
      option('--listen <address:port>', 'where metrics and health are served').default(
        '127.0.0.1:9545',
      ),
    )
    .addOption(
      option('--commit-interval <duration>', 'how often to store what has come')
        .argParser(duration)
        .default(5000, '5s'),
    )
    .addOption(
      option(
        '--spool <folder>',
        'keeps what the store does not have yet (default: in the --store folder, or ./limitlens-spool)',
      ),
    )
    .addOption(
      option('--spool-max <size>', 'how much of that before reading stops')
        .argParser(byteSize)
        .default(512 * 2 ** 20, '512MiB'),
    )
    .addOption(
      option('--alert-interval <duration>', 'how often to evaluate the alerts; 0 for never')
        .argParser(duration)
        .default(30_000, '30s'),
    )
    .addOption(repeatable('--alertmanager <url>', 'an Alertmanager to tell; repeat for all'))
    .addOption(
      option('--alertmanager-login-file <file>', 'file that holds user:password for those'),
    )
    .addOption(option('--alert-webhook <url>', 'is told what begins to fire and what is resolved'))
    .addOption(
      option(
        '--alert-webhook-secret-file <file>',
        'signs what it is told; LIMITLENS_ALERT_WEBHOOK_SECRET holds one too',
      ),
    )
    .addOption(
      repeatable(
        '--alert-threshold <name=value>',
        'of an alert: NAME=5%, NAME.for=10m, NAME.window=1h, NAME.least=600, NAME=off',
      ),
    )
    .addOption(option('--runbooks-url <url>', 'where the pages of alerts/runbooks can be read'))
    .addOption(option('--external-url <url>', 'where people reach this daemon, for links'))
    .addOption(
      repeatable('--retention <what=days>', 'aggregates=400d, keys=90d, samples=90d; or forever'),
    )
    .action(async (files: string[], { config }: TailOptions, tail: Command) => {
      const settings = tailSettings(files, tail);
      // The command line is what it was, so it still beats the file.
      const args = process.argv.slice(process.argv.indexOf(tail.name()) + 1);
      const again = config === undefined ? {} : { reread: () => tailSettingsOf(args) };
      process.exitCode = await tailCommand(settings.files, { ...settings.options, ...again });
    });
}

/** What command line, environment and limitlens.yaml say together. */
function tailSettings(files: readonly string[], tail: Command): TailSettings {
  const { config } = tail.opts<TailOptions>();
  const logs = config === undefined ? files : applyConfig(tail, config, files);
  const { commitInterval, spoolMax, alertInterval, ...rest } = readLogOptions(
    tail.opts<TailOptions>(),
  );
  const own = {
    commitIntervalMs: commitInterval,
    spoolMaxBytes: spoolMax,
    alertIntervalMs: alertInterval,
    version: readVersion(),
  };
  return { files: logs, options: { ...rest, ...own } };
}

/** What `limitlens tail` would go by with these arguments, in the environment of this process. */
async function tailSettingsOf(args: readonly string[]): Promise<TailSettings> {
  let settings: TailSettings | undefined;
  const tail = addTail(new Command()).exitOverride();
  tail.action((given: string[], _options: TailOptions, command: Command) => {
    settings = tailSettings(given, command);
  });
  await tail.parseAsync(args, { from: 'user' });
  return settings!;
}

function addReplay(limitlens: Command): void {
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
        await replay(files, readLogOptions(options), output);
      },
    );
}

function addReport(limitlens: Command): void {
  const command = limitlens.command('report').description('who was limited, where and why');
  withFilterOptions(withStoreOptions(command))
    .addOption(option('--top <n>', 'keys per zone').argParser(wholeNumber).default(10))
    .addOption(
      new Option('--html <file>', 'write a page to send instead; - is standard output').conflicts(
        'format',
      ),
    )
    .addOption(format('text', 'json'))
    .action(
      async (
        options: StoreOptions &
          FilterOptions & { top: number; html?: string; format: 'text' | 'json' },
      ) => {
        await reportCommand(options, output);
      },
    );
}

function addTop(limitlens: Command): void {
  const command = limitlens.command('top').description('what the limits do now, in a terminal');
  withStoreOptions(command)
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
        options: StoreOptions & {
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
        const { interval, window, ...rest } = options;
        await topCommand({ ...rest, intervalMs: interval, windowMs: window }, output);
      },
    );
}

function addExplain(limitlens: Command): void {
  limitlens
    .command('explain')
    .description('what one line of an access or error log means')
    .argument('<line...>', 'the line; quote it')
    .addOption(option('--conf <file>', 'nginx configuration, for rates and bursts'))
    .option('--show-args', 'show arguments of requests; they can hold secrets', false)
    .addOption(format('text', 'json'))
    .action(
      async (
        line: string[],
        options: { conf?: string; showArgs: boolean; format: 'text' | 'json' },
      ) => {
        await explainCommand(line.join(' '), options, output);
      },
    );
}

function withFilterOptions(command: Command): Command {
  return command
    .addOption(option('--instance <name>', 'only this nginx'))
    .addOption(option('--since <time>', 'from this time on: ISO 8601, or 2h ago as 2h'))
    .addOption(option('--until <time>', 'until this time'));
}

interface FilterOptions {
  readonly instance?: string;
  readonly since?: string;
  readonly until?: string;
}

/** For commands that do without a configuration: LIMITLENS_CONF where none is given. */
function confOrNone(conf: readonly string[]): readonly string[] {
  const fromEnvironment = process.env['LIMITLENS_CONF'];
  return conf.length > 0 || !fromEnvironment ? conf : [fromEnvironment];
}

function addZones(limitlens: Command): void {
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
        await zoneSizeCommand(options, output);
      },
    );
}

/** `0.1%`, or the same as 0.001. */
function shareOf(value: string): number {
  const match = /^(\d+(?:\.\d+)?)(%?)$/.exec(value);
  const share = match === null ? NaN : Number(match[1]) / (match[2] === '%' ? 100 : 1);
  if (share >= 0 && share <= 1) return share;
  throw new InvalidArgumentError('Expected a share of all requests like 0.1% or 0.001.');
}

function addDryRun(limitlens: Command): void {
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
        process.exitCode = await dryRunCommand({ ...rest, minSpanMs: minSpan }, output);
      },
    );
}

function addSources(limitlens: Command): void {
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
        await sourcesCommand({ ...options, ...logs }, output);
      },
    );
}

function addRetries(limitlens: Command): void {
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
        await retriesCommand(files, readLogOptions(options), output);
      },
    );
}

function addAlerts(limitlens: Command): void {
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
      process.exitCode = await alertsCommand(options, output);
    });
  withNumbers(
    command.command('rules').description('the same alerts as rules of Prometheus'),
  ).action(async (options: RulesChoice) => {
    await alertRulesCommand(options, output);
  });
}

/** Who may ask what listens, and how it is encrypted. */
function withLoginOptions(command: Command): Command {
  return command
    .addOption(
      option('--http-token-file <file>', 'token to ask for; LIMITLENS_TOKEN holds one too'),
    )
    .addOption(option('--http-basic-file <file>', 'logins to ask for: user:password, one a line'))
    .addOption(option('--tls-cert <file>', 'certificate chain, PEM'))
    .addOption(option('--tls-key <file>', 'its key, PEM'));
}

/** The embedded store for others; see commands/offered-store.ts. */
function withOfferOptions(command: Command): Command {
  return command
    .addOption(
      option(
        '--clickhouse-http <address:port>',
        "the embedded store, read only, over ClickHouse's HTTP protocol; needs a password",
      ),
    )
    .addOption(
      option('--clickhouse-http-user <name>', 'who may ask there').default(
        DEFAULT_CLICKHOUSE_HTTP_USER,
      ),
    )
    .addOption(
      option(
        '--clickhouse-http-password-file <file>',
        'its password; LIMITLENS_CLICKHOUSE_HTTP_PASSWORD holds one too',
      ),
    );
}

function addServe(limitlens: Command): void {
  const command = limitlens.command('serve').description('the dashboards as a page, over a store');
  withOfferOptions(withLoginOptions(withStoreOptions(command)))
    .addOption(
      option('--listen <address:port>', 'where the page is served').default('127.0.0.1:9546'),
    )
    .action(async (options: StoreOptions & { listen: string }) => {
      process.exitCode = await serveCommand({ ...options, version: readVersion() }, output);
    });
}

function addConcurrency(limitlens: Command): void {
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
        'what limit_conn would have done with this many (default: several)',
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
        await concurrencyCommand(files, readLogOptions(options), output);
      },
    );
}

function addCheck(limitlens: Command): void {
  withLogOptions(
    limitlens
      .command('check')
      .description("what is wrong, or easily misread, in a configuration's limits: exit 1 if any"),
  )
    .addOption(
      new Option('--config <file>', 'check limitlens.yaml instead, and what it names: exit 78'),
    )
    .addOption(
      option('--patience <duration>', 'the longest wait that clients put up with')
        .argParser(duration)
        .default(5000, '5s'),
    )
    .addOption(format('text', 'json'))
    .action(
      async (
        files: string[],
        options: LogOptions & { config?: string; patience: number; format: 'text' | 'json' },
      ) => {
        if (options.config !== undefined) {
          const { config } = options;
          process.exitCode = await checkConfigCommand(
            config,
            () => tailSettingsOf(['--config', config, ...files]),
            output,
          );
          return;
        }
        const { patience, ...rest } = readLogOptions(options);
        process.exitCode = await checkCommand(files, { ...rest, patienceMs: patience }, output);
      },
    );
}

function program(): Command {
  const limitlens = new Command('limitlens')
    .description("what nginx's limit_req did, to whom and why")
    .version(readVersion())
    // An option behind a subcommand is the subcommand's, also where its parent has one of that name.
    .enablePositionalOptions()
    .showHelpAfterError('(limitlens help COMMAND tells more)')
    .exitOverride();
  addImport(limitlens);
  addTail(limitlens);
  addReport(limitlens);
  addTop(limitlens);
  addReplay(limitlens);
  addExplain(limitlens);
  addZones(limitlens);
  addDryRun(limitlens);
  addSources(limitlens);
  addRetries(limitlens);
  addConcurrency(limitlens);
  addAlerts(limitlens);
  addServe(limitlens);
  addCheck(limitlens);
  return limitlens;
}

/** Runs the command given. @returns the exit code */
async function main(): Promise<void> {
  try {
    await program().parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    } else if (error instanceof InputError) {
      output.note(`limitlens: ${error.message}`);
      process.exitCode = error.exitCode;
    } else {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      output.note(`limitlens: this is a bug, please report it\n${text}`);
      process.exitCode = EXIT.software;
    }
  }
}

await main();
