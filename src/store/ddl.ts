/**
 * The SQL that makes and changes tables, for one server (or the embedded engine) and for a cluster.
 *
 * On a cluster every table NAME is a Distributed table over NAME_local, a Replicated…MergeTree on
 * each shard, so that queries and inserts use the same names everywhere. Rows go to a shard by
 * cityHash64 of the instance and, where a table has one, the zone: a zone of nginx lives in one
 * instance, and so all of its rows meet on one shard.
 *
 * Every statement may be run twice. Not here: which statements a version needs (migrations.ts).
 */
import { EXIT, InputError, quote } from '../errors.js';
import { ALL_TABLE_NAMES, TABLES, type TableDefinition, type Tier } from './tables.js';

export interface DdlTarget {
  readonly database: string;
  readonly cluster?: string;
}

/** Days that rows live after they were last stored; null keeps them for ever. */
export interface Retention {
  readonly bucketDays: number | null;
  readonly keyDays: number | null;
  readonly sampleDays: number | null;
}

export const DEFAULT_RETENTION: Retention = { bucketDays: 400, keyDays: 90, sampleDays: 90 };

/**
 * How many blocks per table the engine remembers by their token. A crash replays the blocks of one
 * intent, so this bounds the blocks of one intent, with a wide margin.
 */
export const DEDUPLICATION_BLOCKS = 10_000;
const DEDUPLICATION_SECONDS = 30 * 24 * 3600;

/**
 * A database or cluster name, which statements hold unquoted.
 *
 * @throws InputError (usage) for a name with other than letters, digits and underscores (and `-`
 * or `.` in a cluster's)
 */
export function checkName(what: 'database' | 'cluster', name: string): string {
  const pattern = what === 'database' ? /^[A-Za-z_]\w{0,127}$/ : /^[A-Za-z_][\w.-]{0,127}$/;
  if (pattern.test(name)) return name;
  throw new InputError(
    `--${what}: expected a name of letters, digits and underscores, found ${quote(name)}`,
    EXIT.usage,
  );
}

function onCluster(target: DdlTarget): string {
  return target.cluster === undefined ? '' : ` ON CLUSTER '${target.cluster}'`;
}

export function createDatabase(target: DdlTarget): string {
  return `CREATE DATABASE IF NOT EXISTS ${target.database}${onCluster(target)}`;
}

function retentionDays(tier: Tier, retention: Retention): number | null {
  const days = { bucket: 'bucketDays', key: 'keyDays', sample: 'sampleDays' } as const;
  return retention[days[tier]];
}

/**
 * Rows live from when they were last stored, not from the time in the log: an import of last
 * year's log must not be gone while its reader is still looking.
 */
export function ttlExpression(tier: Tier, retention: Retention): string | null {
  const days = retentionDays(tier, retention);
  return days === null ? null : `stored + toIntervalDay(${days})`;
}

function columnList(table: TableDefinition): string {
  const lines = table.columns.map(([name, type]) => `  \`${name}\` ${type}`);
  if (table.tier !== undefined) {
    const type = table.engine.startsWith('Aggregating')
      ? "SimpleAggregateFunction(max, DateTime('UTC'))"
      : "DateTime('UTC')";
    lines.push(`  \`stored\` ${type} DEFAULT now()`);
  }
  return lines.join(',\n');
}

function engineClause(table: TableDefinition, target: DdlTarget): string {
  if (target.cluster === undefined) return table.engine;
  const [, family, versionColumn] = /^(\w+)(?:\((\w+)\))?$/.exec(table.engine) ?? [];
  const version = versionColumn === undefined ? '' : `, ${versionColumn}`;
  return `Replicated${family}('/clickhouse/tables/{shard}/{database}/{table}', '{replica}'${version})`;
}

function settingsClause(target: DdlTarget): string {
  return target.cluster === undefined
    ? `non_replicated_deduplication_window = ${DEDUPLICATION_BLOCKS}`
    : `replicated_deduplication_window = ${DEDUPLICATION_BLOCKS}, ` +
        `replicated_deduplication_window_seconds = ${DEDUPLICATION_SECONDS}`;
}

/**
 * CREATE TABLE of one table: one statement, on a cluster two (local, then distributed).
 *
 * @param name without the database
 */
export function createTable(
  name: string,
  table: TableDefinition,
  target: DdlTarget,
  retention: Retention,
): string[] {
  const local = target.cluster === undefined ? name : `${name}_local`;
  const ttl = table.tier === undefined ? null : ttlExpression(table.tier, retention);
  const create = [
    `CREATE TABLE IF NOT EXISTS ${target.database}.${local}${onCluster(target)}`,
    `(\n${columnList(table)}\n)`,
    `ENGINE = ${engineClause(table, target)}`,
    ...(table.monthOf === undefined ? [] : [`PARTITION BY toYYYYMM(${table.monthOf})`]),
    `ORDER BY (${table.orderBy.map((column) => `\`${column}\``).join(', ')})`,
    ...(ttl === null ? [] : [`TTL ${ttl}`]),
    `SETTINGS ${settingsClause(target)}`,
  ].join('\n');
  if (target.cluster === undefined) return [create];
  return [
    create,
    `CREATE TABLE IF NOT EXISTS ${target.database}.${name}${onCluster(target)}\n` +
      `AS ${target.database}.${local}\n` +
      `ENGINE = Distributed('${target.cluster}', '${target.database}', '${local}', ` +
      `cityHash64(${table.shardBy.join(', ')}))`,
  ];
}

/** ALTER TABLE of one table; on a cluster of the local and the distributed one. */
export function alterTable(name: string, action: string, target: DdlTarget): string[] {
  const names = target.cluster === undefined ? [name] : [`${name}_local`, name];
  return names.map(
    (table) => `ALTER TABLE ${target.database}.${table}${onCluster(target)} ${action}`,
  );
}

/**
 * The statements that give every table the retention wanted.
 *
 * @param current the TTL expression in force by table, null for none
 */
export function alterRetention(
  current: ReadonlyMap<string, string | null>,
  target: DdlTarget,
  retention: Retention,
): string[] {
  return ALL_TABLE_NAMES.flatMap((name) => {
    const { tier } = TABLES[name];
    const local = target.cluster === undefined ? name : `${name}_local`;
    const found = current.get(local);
    if (tier === undefined || found === undefined) return [];
    const wanted = ttlExpression(tier, retention);
    if (wanted === found) return [];
    const action = wanted === null ? 'REMOVE TTL' : `MODIFY TTL ${wanted}`;
    return [`ALTER TABLE ${target.database}.${local}${onCluster(target)} ${action}`];
  });
}
