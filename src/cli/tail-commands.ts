/**
 * The daemon, and the check of what it is configured by. What a command needs is loaded when it runs.
 */
import { Command, Option } from 'commander';
import type { PrivacyChoice } from '../commands/privacy-options.js';
import type { TailSettings } from '../commands/tail.js';
import { readVersion } from '../version.js';
import {
  type LogOptions,
  readLogOptions,
  type StoreOptions,
  withLogOptions,
  withLoginOptions,
  withOfferOptions,
  withPrivacyOptions,
  withStoreOptions,
} from './option-groups.js';
import { byteSize, duration, format, option, repeatable } from './option-values.js';
import { output } from './terminal.js';

interface TailOptions extends LogOptions, StoreOptions, PrivacyChoice {
  readonly config?: string;
  readonly instance: string;
  readonly syslog: string[];
  readonly poll: boolean;
  readonly listen: string;
  readonly commitInterval: number;
  readonly spool?: string;
  readonly spoolMax: number;
  readonly storeTimeout: number;
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

export function addTail(limitlens: Command): Command {
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
        'keeps what the store does not have yet; in the --store folder, or ./limitlens-spool, if not given',
      ),
    )
    .addOption(
      option('--spool-max <size>', 'how much of that before reading stops')
        .argParser(byteSize)
        .default(512 * 2 ** 20, '512MiB'),
    )
    .addOption(
      option('--store-timeout <duration>', 'a server that sends nothing for so long is away')
        .argParser(duration)
        .default(20_000, '20s'),
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
      const settings = await tailSettings(files, tail);
      // The command line is what it was, so it still beats the file.
      const args = process.argv.slice(process.argv.indexOf(tail.name()) + 1);
      const again = config === undefined ? {} : { reread: () => tailSettingsOf(args) };
      const { tailCommand } = await import('../commands/tail.js');
      process.exitCode = await tailCommand(settings.files, { ...settings.options, ...again });
    });
}

/** What command line, environment and limitlens.yaml say together. */
async function tailSettings(files: readonly string[], tail: Command): Promise<TailSettings> {
  const { config } = tail.opts<TailOptions>();
  let logs = files;
  if (config !== undefined) {
    const { applyConfig } = await import('../commands/config-options.js');
    logs = applyConfig(tail, config, files);
  }
  const { commitInterval, spoolMax, storeTimeout, alertInterval, ...rest } = readLogOptions(
    tail.opts<TailOptions>(),
  );
  const own = {
    commitIntervalMs: commitInterval,
    spoolMaxBytes: spoolMax,
    storeTimeoutMs: storeTimeout,
    alertIntervalMs: alertInterval,
    version: readVersion(),
  };
  return { files: logs, options: { ...rest, ...own } };
}

/** What `limitlens tail` would go by with these arguments, in the environment of this process. */
async function tailSettingsOf(args: readonly string[]): Promise<TailSettings> {
  let settings: TailSettings | undefined;
  const tail = addTail(new Command()).exitOverride();
  tail.action(async (given: string[], _options: TailOptions, command: Command) => {
    settings = await tailSettings(given, command);
  });
  await tail.parseAsync(args, { from: 'user' });
  return settings!;
}

export function addCheck(limitlens: Command): void {
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
          const { checkConfigCommand } = await import('../commands/check.js');
          process.exitCode = await checkConfigCommand(
            config,
            () => tailSettingsOf(['--config', config, ...files]),
            output,
          );
          return;
        }
        const { patience, ...rest } = readLogOptions(options);
        const { checkCommand } = await import('../commands/check.js');
        process.exitCode = await checkCommand(files, { ...rest, patienceMs: patience }, output);
      },
    );
}
