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
import {
  alterRetention,
  alterTable,
  createTable,
  DEFAULT_RETENTION,
  type DdlTarget,
  type Retention,
} from './ddl.js';
import type { Engine } from './engine.js';
import { ADDED_COLUMNS, ALL_TABLE_NAMES, TABLES, type TableDefinition } from './tables.js';

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
  {
    version: 2,
    what: "bounds of a key's largest excess, and distinct keys of a minute",
    statements: (target) => addedColumns(2, target),
  },
];

function addedColumns(version: number, target: DdlTarget): string[] {
  return ADDED_COLUMNS.filter((column) => column.version === version).flatMap(
    ({ table, name, type, after }) =>
      alterTable(table, `ADD COLUMN IF NOT EXISTS ${name} ${type} AFTER ${after}`, target),
  );
}

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

export interface SchemaWishes {
  /** Make the tables where there are none. */
  readonly create: boolean;
  /** Change nothing. */
  readonly readOnly: boolean;
  /** Applied when given. */
  readonly retention: Retention | undefined;
}

/**
 * Makes sure that a store has the newest schema, as far as it may be changed.
 *
 * @throws InputError configuration: it is newer than this program, or older and not to be changed;
 * noInput: it has no tables, and they are not to be made
 */
export async function prepareSchema(
  engine: Engine,
  target: DdlTarget,
  wishes: SchemaWishes,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const version = await schemaVersion(engine, target.database);
  const latest = latestVersion(migrations);
  if (version === undefined && !wishes.create) {
    throw new InputError(
      `${engine.where}: expected a limitlens store, found one without tables\n` +
        '  Fill it with `limitlens import`, or name the right one.',
      EXIT.noInput,
    );
  }
  if (wishes.readOnly && version !== undefined && version < latest) {
    throw new InputError(
      `${engine.where}: expected a store of schema version ${latest}, found version ${version}\n` +
        '  The next `limitlens import` brings it up to date.',
      EXIT.configuration,
    );
  }
  const retention = wishes.retention ?? DEFAULT_RETENTION;
  if (version !== latest) await migrate(engine, version, target, retention, migrations);
  if (wishes.retention !== undefined && !wishes.readOnly) {
    await applyRetention(engine, target, wishes.retention);
  }
}

async function applyRetention(
  engine: Engine,
  target: DdlTarget,
  retention: Retention,
): Promise<void> {
  const rows = await engine.rows<{ name: string; ttl: string }>(
    `SELECT name, extract(engine_full, ' TTL (.+?) SETTINGS') AS ttl
     FROM system.tables WHERE database = {database:String}`,
    { database: target.database },
  );
  const current = new Map(rows.map(({ name, ttl }) => [name, ttl === '' ? null : ttl]));
  for (const statement of alterRetention(current, target, retention)) {
    await engine.command(statement);
  }
}

function refuseNewer(
  engine: Engine,
  version: number | undefined,
  migrations: readonly Migration[],
): void {
  const latest = latestVersion(migrations);
  if (version === undefined || version <= latest) return;
  throw new InputError(
    `${engine.where}: expected a store of schema version ${latest} or older, found version ${version}\n` +
      '  A newer limitlens wrote it: install that one, or use another store.',
    EXIT.configuration,
  );
}

function latestVersion(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.version ?? 0;
}
