/**
 * Options that several commands have in common, and what they say.
 */
import { type Command, Option } from 'commander';
import { DEFAULT_CLICKHOUSE_HTTP_USER, DEFAULT_STORE } from '../commands/defaults.js';
import { EXIT, InputError } from '../errors.js';
import { underHeading } from './help.js';
import { duration, option, repeatable, wholeNumber } from './option-values.js';

export interface LogOptions {
  readonly conf: string[];
  readonly errorLog: string[];
  readonly logFormat?: string;
  readonly timezone?: string;
  readonly lateness: number;
  readonly allLogs: boolean;
  readonly chunkBytes?: number;
}

/** @param lateness what --lateness is where it is not given, in seconds */
export function withLogOptions(command: Command, lateness = 60): Command {
  return underHeading('Logs:', command, (to) =>
    to
      .argument(
        '[files...]',
        'access and error logs, plain or gzipped, told apart by content; - is standard input',
      )
      .addOption(
        repeatable(
          '--conf <file[@time]>',
          'nginx configuration, or output of nginx -T; repeat for later ones; LIMITLENS_CONF names one too',
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
          .default(lateness * 1000, `${lateness}s`),
      )
      .option('--all-logs', 'read access logs even where they hold the same requests', false)
      .addOption(
        new Option('--chunk-bytes <n>', 'bytes per read').argParser(wholeNumber).hideHelp(),
      ),
  );
}

/** What the log options say, with units in the names; the configuration is not optional. */
export function readLogOptions<T extends LogOptions>(
  options: T,
): Omit<T, 'lateness'> & { latenessMs: number } {
  const fromEnvironment = process.env['LIMITLENS_CONF'];
  const conf = options.conf.length > 0 || !fromEnvironment ? options.conf : [fromEnvironment];
  if (conf.length === 0) {
    throw new InputError(
      'expected --conf FILE: the nginx configuration\n' +
        '  Say --conf /etc/nginx/nginx.conf, or name it in LIMITLENS_CONF.',
      EXIT.usage,
    );
  }
  const { lateness, ...rest } = options;
  return { ...rest, conf, latenessMs: lateness };
}

export function requireLogs(files: readonly string[], errorLogs: readonly string[]): void {
  if (files.length + errorLogs.length > 0) return;
  throw new InputError('expected a log to read: FILES, or --error-log FILE', EXIT.usage);
}

/** For commands that do without a configuration: LIMITLENS_CONF where none is given. */
export function confOrNone(conf: readonly string[]): readonly string[] {
  const fromEnvironment = process.env['LIMITLENS_CONF'];
  return conf.length > 0 || !fromEnvironment ? conf : [fromEnvironment];
}

export interface StoreOptions {
  readonly store?: string;
  readonly clickhouse?: string;
  readonly clickhouseUser?: string;
  readonly clickhousePasswordFile?: string;
  readonly cluster?: string;
  readonly database?: string;
}

export function withStoreOptions(command: Command): Command {
  return underHeading('Store:', command, (to) =>
    to
      .addOption(option('--store <folder>', `embedded store; ${DEFAULT_STORE} if not given`))
      .addOption(
        option('--clickhouse <url>', 'ClickHouse server instead: http://user:password@host:8123'),
      )
      .addOption(option('--clickhouse-user <name>', 'user of that server, where the URL has none'))
      .addOption(option('--clickhouse-password-file <file>', 'file that holds the password'))
      .addOption(option('--cluster <name>', 'cluster of that server'))
      .addOption(option('--database <name>', 'database; limitlens if not given')),
  );
}

export interface FilterOptions {
  readonly instance?: string;
  readonly since?: string;
  readonly until?: string;
}

export function withFilterOptions(command: Command): Command {
  return underHeading('Part of the store:', command, (to) =>
    to
      .addOption(option('--instance <name>', 'only this nginx'))
      .addOption(option('--since <time>', 'from this time on: ISO 8601, or 2h ago as 2h'))
      .addOption(option('--until <time>', 'until this time')),
  );
}

export function withPrivacyOptions(command: Command): Command {
  return underHeading('Privacy:', command, (to) =>
    to
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
        option(
          '--privacy-key-file <file>',
          'secret of the hash, and of the state between two steps',
        ),
      ),
  );
}

/** Who may ask what listens, and how it is encrypted. */
export function withLoginOptions(command: Command): Command {
  return underHeading('Who may look:', command, (to) =>
    to
      .addOption(
        option('--http-token-file <file>', 'token to ask for; LIMITLENS_TOKEN holds one too'),
      )
      .addOption(option('--http-basic-file <file>', 'logins to ask for: user:password, one a line'))
      .addOption(option('--tls-cert <file>', 'certificate chain, PEM'))
      .addOption(option('--tls-key <file>', 'its key, PEM')),
  );
}

/** The embedded store for others; see commands/offered-store.ts. */
export function withOfferOptions(command: Command): Command {
  return underHeading('The store for others:', command, (to) =>
    to
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
      ),
  );
}
