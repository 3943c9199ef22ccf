/**
 * The schema: version 1 as released, the way from one version to the next, and clusters.
 *
 * No cluster can run here (Replicated tables and ON CLUSTER need a keeper): its statements are made
 * and parsed, not executed.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { EXIT, InputError, type ExitCode } from '../src/errors.js';
import {
  alterRetention,
  alterTable,
  checkName,
  createDatabase,
  DEFAULT_RETENTION,
  type DdlTarget,
} from '../src/store/ddl.js';
import { openEmbedded } from '../src/store/embedded.js';
import { Engine } from '../src/store/engine.js';
import {
  migrate,
  MIGRATIONS,
  prepareSchema,
  schemaVersion,
  type Migration,
} from '../src/store/migrations.js';
import { DEFAULT_RETRY } from '../src/store/retry.js';
import { ADDED_COLUMNS, ALL_TABLE_NAMES, columnsOf, TABLES } from '../src/store/tables.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';

const TARGET: DdlTarget = { database: 'limitlens' };
const CLUSTER: DdlTarget = { database: 'limitlens', cluster: 'main-1' };
const [FIRST] = MIGRATIONS;
const LATEST = MIGRATIONS.length;

async function openEngine(t: Cleanup, path = join(makeTempDir(t), 'store')): Promise<Engine> {
  const parts = await openEmbedded(path, 'limitlens', true);
  const rest = { isEmbedded: true, isCluster: false, retryPolicy: DEFAULT_RETRY };
  return Engine.over({ ...parts, ...rest });
}

function inputError(exitCode: ExitCode, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof InputError, String(error));
    assert.equal(error.exitCode, exitCode);
    assert.match(error.message, message);
    return true;
  };
}

function versionOne(): string[] {
  assert.ok(FIRST !== undefined);
  return FIRST.statements(TARGET, DEFAULT_RETENTION);
}

function goldenOf(version: number): string {
  return `test/golden/store/schema-v${version}.sql`;
}

/** Statements of a golden file; none of them holds a semicolon. */
function goldenStatements(version: number): string[] {
  return readFileSync(goldenOf(version), 'utf8')
    .split(';\n')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

for (const { version, statements } of MIGRATIONS) {
  test(`version ${version} is what it was when it was released`, () => {
    const text = statements(TARGET, DEFAULT_RETENTION)
      .map((statement) => `${statement};\n`)
      .join('\n');
    if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(goldenOf(version), text);
    assert.equal(text, readFileSync(goldenOf(version), 'utf8'));
  });
}

test('every table is ordered by instance first, and then by what its questions name', () => {
  for (const name of ALL_TABLE_NAMES) {
    const { columns, orderBy } = TABLES[name];
    assert.equal(orderBy[0], 'instance', name);
    const names: string[] = columns.map(([column]) => column);
    for (const column of orderBy) assert.ok(names.includes(column), `${name}.${column}`);
  }
});

test('aggregates keep every column that is no key in a form that adds up', () => {
  for (const name of ALL_TABLE_NAMES) {
    const { columns, engine, orderBy } = TABLES[name];
    if (engine !== 'AggregatingMergeTree') continue;
    for (const [column, type] of columns) {
      const isKey = orderBy.includes(column);
      assert.equal(type.startsWith('SimpleAggregateFunction'), !isKey, `${name}.${column}`);
    }
  }
  for (const { table, name, type } of ADDED_COLUMNS) {
    if (TABLES[table].engine !== 'AggregatingMergeTree') continue;
    assert.match(type, /^SimpleAggregateFunction\(\w+, Nullable\(/, `${table}.${name}`);
  }
});

test('a store of version 1 goes on to later versions with its rows', async (t) => {
  const engine = await openEngine(t);
  t.after(() => engine.close());
  for (const statement of goldenStatements(1)) await engine.command(statement);
  const row = ['edge-1', 'rz', 1_700_000_040, 'agree', 7];
  const columns = ['instance', 'zone', 'bucket', 'class', 'requests'];
  await engine.insert('agreement', columns, [row], 'one');

  assert.equal(await schemaVersion(engine, 'limitlens'), undefined);
  const next: Migration = {
    version: LATEST + 1,
    what: 'a column more',
    statements: (target) => alterTable('agreement', 'ADD COLUMN IF NOT EXISTS note String', target),
  };
  await migrate(engine, 1, TARGET, DEFAULT_RETENTION, [...MIGRATIONS, next]);
  assert.equal(await schemaVersion(engine, 'limitlens'), LATEST + 1);
  assert.deepEqual(await engine.rows('SELECT class, requests, note FROM agreement'), [
    { class: 'agree', requests: 7, note: '' },
  ]);
});

test('what a row of version 1 does not have is not known, and a later row of its key adds to it', async (t) => {
  const engine = await openEngine(t);
  t.after(() => engine.close());
  for (const statement of goldenStatements(1)) await engine.command(statement);
  const old = TABLES.key_minutes.columns.map(([name]) => name);
  const rowOf = (key: string, excess: number, ...rest: (number | null)[]): unknown[] => [
    ...['edge-1', 'rz', key, 1_700_000_040, 5, 0, 0, 0, 0, 0, excess],
    ...rest,
  ];
  await engine.insert('key_minutes', old, [rowOf('old', 900), rowOf('both', 900)], 'one');
  await migrate(engine, 1, TARGET, DEFAULT_RETENTION);
  const rows = [rowOf('both', 700, 600, 1000), rowOf('new', 700, 600, null)];
  await engine.insert('key_minutes', columnsOf('key_minutes'), rows, 'two');
  for (const isMerged of [false, true]) {
    if (isMerged) await engine.command('OPTIMIZE TABLE key_minutes FINAL');
    const found = await engine.rows(
      `SELECT key, sum(key_minutes.passed) AS passed, max(excess_max_milli) AS excess,
         max(excess_low_max_milli) AS low, max(excess_high_max_milli) AS high
       FROM key_minutes GROUP BY key ORDER BY key`,
    );
    assert.deepEqual(found, [
      { key: 'both', passed: 10, excess: 900, low: 600, high: 1000 },
      { key: 'new', passed: 5, excess: 700, low: 600, high: null },
      { key: 'old', passed: 5, excess: 900, low: null, high: null },
    ]);
  }
});

test('a migration that stops in the middle is done again from its start', async (t) => {
  const engine = await openEngine(t);
  t.after(() => engine.close());
  const statements = versionOne();
  const broken: Migration = {
    version: 1,
    what: 'stops',
    statements: () => [...statements.slice(0, 3), 'CREATE TABLE broken ('],
  };
  await assert.rejects(
    migrate(engine, undefined, TARGET, DEFAULT_RETENTION, [broken]),
    /Syntax error/,
  );
  assert.equal(await schemaVersion(engine, 'limitlens'), undefined);
  await migrate(engine, undefined, TARGET, DEFAULT_RETENTION);
  assert.equal(await schemaVersion(engine, 'limitlens'), LATEST);
  const tables = await engine.rows<{ name: string }>(
    "SELECT name FROM system.tables WHERE database = 'limitlens' ORDER BY name",
  );
  assert.deepEqual(
    tables.map(({ name }) => name),
    [...ALL_TABLE_NAMES, 'schema_version'].sort(),
  );
});

test('an older store opened to read is refused, and brought up to date otherwise', async (t) => {
  const engine = await openEngine(t);
  t.after(() => engine.close());
  const open = (readOnly: boolean, migrations: readonly Migration[]) =>
    prepareSchema(
      engine,
      TARGET,
      { create: !readOnly, readOnly, retention: undefined },
      migrations,
    );
  await assert.rejects(
    open(true, MIGRATIONS),
    inputError(EXIT.noInput, /found one without tables/),
  );
  await open(false, MIGRATIONS);
  await open(true, MIGRATIONS);
  const next = LATEST + 1;
  const later = [...MIGRATIONS, { version: next, what: 'nothing', statements: () => [] }];
  await assert.rejects(
    open(true, later),
    inputError(
      EXIT.configuration,
      new RegExp(`expected a store of schema version ${next}, found version ${LATEST}`),
    ),
  );
  await open(false, later);
  await open(true, later);
  await assert.rejects(
    open(false, MIGRATIONS),
    inputError(
      EXIT.configuration,
      new RegExp(`schema version ${LATEST} or older, found version ${next}`),
    ),
  );
});

test('migrations are numbered without gaps', () => {
  assert.deepEqual(
    MIGRATIONS.map(({ version }) => version),
    MIGRATIONS.map((_, index) => index + 1),
  );
});

test('every statement for a cluster parses, and says what a cluster needs', async (t) => {
  const engine = await openEngine(t);
  t.after(() => engine.close());
  assert.ok(FIRST !== undefined);
  const tables = FIRST.statements(CLUSTER, DEFAULT_RETENTION);
  const current = new Map(ALL_TABLE_NAMES.map((name) => [`${name}_local`, null]));
  const ttls = alterRetention(current, CLUSTER, DEFAULT_RETENTION);
  const statements = [
    createDatabase(CLUSTER),
    ...tables,
    ...MIGRATIONS.slice(1).flatMap((later) => later.statements(CLUSTER, DEFAULT_RETENTION)),
    ...alterTable('agreement', 'ADD COLUMN IF NOT EXISTS note String', CLUSTER),
    ...ttls,
  ];
  for (const statement of statements) {
    const [row] = await engine.rows<{ text: string }>('SELECT formatQuery({sql:String}) AS text', {
      sql: statement,
    });
    assert.match(row?.text ?? '', /ON CLUSTER `main-1`/, statement);
  }
  assert.equal(tables.length, 2 * ALL_TABLE_NAMES.length);
  const locals = tables.filter((statement) => /_local ON CLUSTER/.test(statement));
  for (const local of locals) {
    assert.match(local, /Replicated\w*MergeTree\('\/clickhouse\/tables\/\{shard\}\/\{database\}/);
    assert.match(local, /replicated_deduplication_window = 10000/);
  }
  const zones = tables.find((statement) => / limitlens\.zone_outcomes ON/.test(statement));
  assert.match(zones ?? '', /Distributed\('main-1', .*, cityHash64\(instance, zone\)\)$/);
  assert.ok(ttls.length > 0);
});

test('the sharding columns of a table are among those it is ordered by', () => {
  for (const name of ALL_TABLE_NAMES) {
    const { shardBy, orderBy } = TABLES[name];
    for (const column of shardBy) assert.ok(orderBy.includes(column), `${name}.${column}`);
  }
});

test('names that would need quotes are refused', () => {
  assert.equal(checkName('database', 'limit_lens2'), 'limit_lens2');
  assert.equal(checkName('cluster', 'my-cluster.1'), 'my-cluster.1');
  for (const name of ['', '1x', 'a b', "a'b", 'a`b', 'a;b', 'ä', 'x'.repeat(129)]) {
    assert.throws(() => checkName('database', name), InputError, name);
    assert.throws(() => checkName('cluster', name), InputError, name);
  }
  assert.throws(() => checkName('database', 'a-b'), InputError);
});
