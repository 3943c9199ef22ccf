/**
 * The schema's versions, forward only.
 *
 * A migration is a list of statements that may be run twice, so that a crash in the middle is mended
 * by the next start; its row in schema_version is written last. What a version did is never edited
 * after its release: the next change is the next number.
 *
 * Not here: the SQL text of a table (ddl.ts).
 */
import { EXIT, InputError } from '../errors.js';
import { createTable, type DdlTarget, type Retention } from './ddl.js';
import type { Engine } from './engine.js';
import { ALL_TABLE_NAMES, TABLES, type TableDefinition } from './tables.js';

export interface Migration {
  readonly version: number;
  readonly what: string;
  readonly statements: (target: DdlTarget, retention: Retention) => string[];
}

const SCHEMA_VERSION: TableDefinition = {
  columns: [
    ['version', 'UInt32'],
    ['what', 'String'],
    ['applied', "DateTime('UTC') DEFAULT now()"],
  ],
  engine: 'ReplacingMergeTree',
  orderBy: ['version'],
  shardBy: ['version'],
};

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    what: 'the first tables',
    statements: (target, retention) =>
      ALL_TABLE_NAMES.flatMap((name) => createTable(name, TABLES[name], target, retention)),
  },
];

/** The version a store has, or undefined where schema_version is missing or empty. */
export async function schemaVersion(engine: Engine, database: string): Promise<number | undefined> {
  const tables = await engine.rows<{ name: string }>(
    "SELECT name FROM system.tables WHERE database = {database:String} AND name = 'schema_version'",
    { database },
  );
  if (tables.length === 0) return undefined;
  const [row] = await engine.rows<{ version: number }>(
    `SELECT max(version) AS version FROM ${database}.schema_version`,
  );
  return row === undefined || row.version === 0 ? undefined : row.version;
}

/**
 * Brings a store from `from` to the last of `migrations`, one version after the other.
 *
 * @throws InputError (configuration) when the store is newer than that
 */
export async function migrate(
  engine: Engine,
  from: number | undefined,
  target: DdlTarget,
  retention: Retention,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  refuseNewer(engine, from, migrations);
  for (const statement of createTable('schema_version', SCHEMA_VERSION, target, retention)) {
    await engine.command(statement);
  }
  for (const migration of migrations) {
    if (migration.version <= (from ?? 0)) continue;
    for (const statement of migration.statements(target, retention)) {
      await engine.command(statement);
    }
    await engine.insert(
      'schema_version',
      ['version', 'what'],
      [[migration.version, migration.what]],
      `schema_version/${migration.version}`,
    );
  }
}

/** @throws InputError (configuration) when a store has a version that is not known here */
export function refuseNewer(
  engine: Engine,
  version: number | undefined,
  migrations: readonly Migration[] = MIGRATIONS,
): void {
  const latest = latestVersion(migrations);
  if (version === undefined || version <= latest) return;
  throw new InputError(
    `${engine.where}: expected a store of schema version ${latest} or older, found version ${version}\n` +
      '  A newer limitlens wrote it: install that one, or use another store.',
    EXIT.configuration,
  );
}

export function latestVersion(migrations: readonly Migration[] = MIGRATIONS): number {
  return migrations.at(-1)?.version ?? 0;
}
