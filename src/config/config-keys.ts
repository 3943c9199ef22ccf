/**
 * The whole shape of limitlens.yaml: every key, and the option of `limitlens tail` that it sets.
 *
 * The one place to add a key to. The JSON schema, the reader and the sample are made from it or
 * held against it by a test; a value is taken by its option's own parser, so that file and command
 * line mean the same. Not here: reading (read-config.ts), what the options do (../cli).
 */

/** What may stand at a key. */
export type ConfigKind =
  | 'text'
  /** A file or folder: relative to the folder of limitlens.yaml, not to where the process runs. */
  | 'path'
  /** One path or a list of them. */
  | 'paths'
  /** One text or a list of them. */
  | 'texts'
  /** `5s`, `500ms`, `2m`, `1h`; a number is of seconds. */
  | 'duration'
  /** `512MiB`, `2GiB`; a number is of bytes. */
  | 'size'
  | 'count'
  | 'flag'
  /** Names with values: the option gets NAME=VALUE for each. */
  | 'values';

export interface ConfigKey {
  /** Sections and name, with dots between. */
  readonly path: string;
  /** Long name of the option, or `files` for the logs that are given without an option. */
  readonly option: string;
  readonly kind: ConfigKind;
  readonly description: string;
  /** Where they are the only ones. */
  readonly choices?: readonly string[];
  /** Options that, given on the command line, stand in place of this key as well. */
  readonly insteadOf?: readonly string[];
  /** Pattern of a text or of each value, and what it says in words. */
  readonly pattern?: readonly [source: string, words: string];
}

/** A password in a URL would be readable to whoever reads the file. */
const URL_WITHOUT_PASSWORD = [
  '^https?://[^/?#@]*(?:/[^?#]*)?$',
  'a URL like http://host:8123, without user and password (those go into store.user and store.password_file)',
] as const;

export const CONFIG_KEYS: readonly ConfigKey[] = [
  {
    path: 'nginx.conf',
    option: 'conf',
    kind: 'paths',
    description: 'nginx configuration, or output of nginx -T; FILE@TIME for later ones',
  },
  {
    path: 'nginx.instance',
    option: 'instance',
    kind: 'text',
    description: 'which nginx these logs are from',
  },
  {
    path: 'logs.access',
    option: 'files',
    kind: 'paths',
    description: 'logs to follow; those of the nginx configuration when none are named',
  },
  {
    path: 'logs.error',
    option: 'error-log',
    kind: 'paths',
    description: 'error logs to follow',
  },
  {
    path: 'logs.format',
    option: 'log-format',
    kind: 'text',
    description: "the access logs' format, where it can't be told: a name or the format itself",
  },
  {
    path: 'logs.timezone',
    option: 'timezone',
    kind: 'text',
    description: "IANA zone of the error logs' times",
  },
  {
    path: 'logs.lateness',
    option: 'lateness',
    kind: 'duration',
    description: 'how long after its decision a request may be logged',
  },
  {
    path: 'logs.all',
    option: 'all-logs',
    kind: 'flag',
    description: 'follow access logs even where they hold the same requests',
  },
  {
    path: 'logs.syslog',
    option: 'syslog',
    kind: 'texts',
    description: 'receive what nginx sends by syslog: udp://127.0.0.1:5514 or unix:/PATH',
  },
  {
    path: 'logs.poll',
    option: 'poll',
    kind: 'flag',
    description: 'look for new lines at a steady pace: for NFS and the like',
  },
  {
    path: 'store.folder',
    option: 'store',
    kind: 'path',
    description: 'folder of the embedded store',
    insteadOf: ['clickhouse'],
  },
  {
    path: 'store.clickhouse',
    option: 'clickhouse',
    kind: 'text',
    description: 'ClickHouse server instead',
    insteadOf: ['store'],
    pattern: URL_WITHOUT_PASSWORD,
  },
  {
    path: 'store.cluster',
    option: 'cluster',
    kind: 'text',
    description: 'cluster of that server',
    insteadOf: ['store'],
  },
  {
    path: 'store.user',
    option: 'clickhouse-user',
    kind: 'text',
    description: 'user of that server',
  },
  {
    path: 'store.password_file',
    option: 'clickhouse-password-file',
    kind: 'path',
    description: 'file that holds the password of that user',
  },
  {
    path: 'store.database',
    option: 'database',
    kind: 'text',
    description: 'database',
  },
  {
    path: 'store.retention',
    option: 'retention',
    kind: 'values',
    choices: ['aggregates', 'keys', 'samples'],
    description: 'how long rows are kept: days like 90d, or forever',
    pattern: ['^(?:[1-9]\\d{0,4}d|forever)$', 'days like 90d, or forever'],
  },
  {
    path: 'store.commit_interval',
    option: 'commit-interval',
    kind: 'duration',
    description: 'how often to store what has come',
  },
  {
    path: 'store.timeout',
    option: 'store-timeout',
    kind: 'duration',
    description: 'a server that sends nothing for so long is away; 0 waits for each statement',
  },
  {
    path: 'store.spool',
    option: 'spool',
    kind: 'path',
    description: 'folder that keeps what the store does not have yet',
  },
  {
    path: 'store.spool_max',
    option: 'spool-max',
    kind: 'size',
    description: 'how much of that before reading stops',
  },
  {
    path: 'http.listen',
    option: 'listen',
    kind: 'text',
    description: 'address and port of metrics and health',
  },
  {
    path: 'http.token_file',
    option: 'http-token-file',
    kind: 'path',
    description: 'file that holds the token to ask for; LIMITLENS_TOKEN holds one too',
  },
  {
    path: 'http.basic_file',
    option: 'http-basic-file',
    kind: 'path',
    description: 'file of logins to ask for: user:password, one a line',
  },
  {
    path: 'http.tls_cert',
    option: 'tls-cert',
    kind: 'path',
    description: 'certificate chain, PEM',
  },
  {
    path: 'http.tls_key',
    option: 'tls-key',
    kind: 'path',
    description: 'its key, PEM',
  },
  {
    path: 'clickhouse_http.listen',
    option: 'clickhouse-http',
    kind: 'text',
    description: "address and port of the embedded store over ClickHouse's HTTP protocol",
  },
  {
    path: 'clickhouse_http.user',
    option: 'clickhouse-http-user',
    kind: 'text',
    description: 'who may ask there',
  },
  {
    path: 'clickhouse_http.password_file',
    option: 'clickhouse-http-password-file',
    kind: 'path',
    description: 'file that holds the password of that user',
  },
  {
    path: 'privacy.addresses',
    option: 'privacy',
    kind: 'text',
    choices: ['keep', 'truncate', 'hash'],
    description: 'what is stored of client addresses and keys',
  },
  {
    path: 'privacy.keys',
    option: 'privacy-keys',
    kind: 'text',
    choices: ['addresses', 'all'],
    description: 'all hashes every key, not the addresses in them alone',
  },
  {
    path: 'privacy.ipv4_prefix',
    option: 'privacy-ipv4-prefix',
    kind: 'count',
    description: 'bits of an IPv4 address that are kept when truncating',
  },
  {
    path: 'privacy.ipv6_prefix',
    option: 'privacy-ipv6-prefix',
    kind: 'count',
    description: 'bits of an IPv6 address that are kept when truncating',
  },
  {
    path: 'privacy.key_file',
    option: 'privacy-key-file',
    kind: 'path',
    description: 'file with the secret of the hash, and of the state that is kept between steps',
  },
  {
    path: 'alerts.interval',
    option: 'alert-interval',
    kind: 'duration',
    description: 'how often to evaluate the alerts; 0 for never',
  },
  {
    path: 'alerts.thresholds',
    option: 'alert-threshold',
    kind: 'values',
    description: 'by name of an alert: 5%, 10m or off; NAME.for, NAME.window and NAME.least too',
  },
  {
    path: 'alerts.alertmanagers',
    option: 'alertmanager',
    kind: 'texts',
    description: 'URLs of Alertmanagers to tell; all of a cluster',
  },
  {
    path: 'alerts.alertmanager_login_file',
    option: 'alertmanager-login-file',
    kind: 'path',
    description: 'file that holds user:password for them',
  },
  {
    path: 'alerts.webhook',
    option: 'alert-webhook',
    kind: 'text',
    description: 'is told what begins to fire and what is resolved',
  },
  {
    path: 'alerts.webhook_secret_file',
    option: 'alert-webhook-secret-file',
    kind: 'path',
    description: 'file with the secret that signs what it is told',
  },
  {
    path: 'alerts.runbooks_url',
    option: 'runbooks-url',
    kind: 'text',
    description: 'where the pages of alerts/runbooks can be read',
  },
  {
    path: 'alerts.external_url',
    option: 'external-url',
    kind: 'text',
    description: 'where people reach this daemon, for links',
  },
];
