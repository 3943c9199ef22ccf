/**
 * The embedded store over ClickHouse's HTTP protocol: what clients and Grafana ask for, and what
 * nobody may.
 */
import assert from 'node:assert/strict';
import { ClickHouseLogLevel, createClient } from '@clickhouse/client';
import fc from 'fast-check';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ANNOTATIONS } from '../dashboards/catalogue/annotations.js';
import { DASHBOARDS } from '../dashboards/catalogue/dashboards.js';
import { VARIABLES } from '../dashboards/catalogue/variables.js';
import { ALL, expand } from '../dashboards/expand.js';
import { HttpServer } from '../src/http/server.js';
import { clickHouseRoutes } from '../src/store-http/clickhouse-routes.js';
import { DEFAULT_GUARDED_LIMITS, type GuardedQueries } from '../src/store/guarded-queries.js';
import { openStore, type Store } from '../src/store/store.js';
import { makeTempDir, type Cleanup } from './support/temp-dir.js';

const LOGIN = { user: 'lens', password: 'p:w/d % ö' };
const LIMITS = { ...DEFAULT_GUARDED_LIMITS, maxSeconds: 60, maxResultRows: 20_000 };

const cleanups: (() => void | Promise<void>)[] = [];
const cleanup: Cleanup = { after: (fn) => cleanups.push(fn) };
let folder: string;
let store: Store;
let queries: GuardedQueries;
let server: HttpServer;

before(async () => {
  folder = makeTempDir(cleanup);
  writeFileSync(join(folder, 'secret.txt'), 'a secret of the machine\n');
  store = await openStore({ path: join(folder, 'store'), createIfMissing: true });
  const columns = ['instance', 'time', 'mark', 'details'];
  const rows = Array.from({ length: 50 }, (_, i) => [
    'edge',
    1_794_000_000_000 + i,
    'reload',
    `n${i}`,
  ]);
  await store.insertBlock({ table: 'marks', columns, rows }, 'marks');
  queries = store.guardedQueries(LIMITS)!;
  const allows = ({ user, password }: typeof LOGIN): boolean =>
    user === LOGIN.user && password === LOGIN.password;
  server = await HttpServer.start({
    listen: '127.0.0.1:0',
    routes: clickHouseRoutes({ queries, database: 'limitlens', allows }),
    onError: (_, error) => assert.fail(String(error)),
    env: {},
  });
});

after(async () => {
  await server.close();
  await queries.close();
  await store.close();
  for (const fn of cleanups.reverse()) await fn();
});

const KEYS = {
  'X-ClickHouse-User': LOGIN.user,
  'X-ClickHouse-Key': Buffer.from(LOGIN.password).toString('latin1'),
};
const BASIC = {
  Authorization: `Basic ${Buffer.from(`${LOGIN.user}:${LOGIN.password}`).toString('base64')}`,
};

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function ask(
  sql: string | undefined,
  params: Record<string, string> = {},
  init: RequestInit = {},
): Promise<Answer> {
  const url = `${server.url}/?${new URLSearchParams(params)}`;
  const headers = { ...BASIC, ...(init.headers as Record<string, string> | undefined) };
  const sent: RequestInit = { method: 'POST', ...init, headers };
  const answer = await fetch(url, sql === undefined ? sent : { ...sent, body: sql });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

test('a statement in the URL, the body, or both; formats by clause, parameter and header', async () => {
  assert.equal((await ask('SELECT 1, 2')).text, '1\t2\n');
  const get = await ask(undefined, { query: 'SELECT 1' }, { method: 'GET' });
  assert.equal(get.text, '1\n');
  assert.equal((await ask('+ 1', { query: 'SELECT 1' })).text, '2\n');
  assert.equal((await ask(undefined, {}, { method: 'GET' })).text, 'Ok.\n');
  const json = await ask('SELECT 1 AS a', { default_format: 'JSONEachRow' });
  assert.equal(json.text, '{"a":1}\n');
  assert.match(json.headers.get('content-type')!, /^application\/x-ndjson/);
  assert.equal(json.headers.get('x-clickhouse-format'), 'JSONEachRow');
  const clause = await ask('SELECT 1 AS a FORMAT CSVWithNames', { default_format: 'JSON' });
  assert.equal(clause.text, '"a"\n1\n');
  assert.equal(clause.headers.get('x-clickhouse-format'), 'CSVWithNames');
  const header = await ask('SELECT 1 AS a', {}, { headers: { 'X-ClickHouse-Format': 'CSV' } });
  assert.equal(header.text, '1\n');
  assert.equal((await fetch(`${server.url}/ping`)).status, 200);
});

test('logins: by header, Basic, URL; none and wrong ones are told as ClickHouse does', async () => {
  const bare = async (headers: Record<string, string>, query = ''): Promise<Answer> => {
    const answer = await fetch(`${server.url}/${query}`, {
      method: 'POST',
      body: 'SELECT 1',
      headers,
    });
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  };
  const inUrl = `?${new URLSearchParams(LOGIN)}`;
  assert.equal((await bare(BASIC)).status, 200);
  assert.equal((await bare(KEYS)).status, 200);
  assert.equal((await bare({}, inUrl)).status, 200);
  for (const headers of [
    {},
    { ...KEYS, 'X-ClickHouse-Key': 'x' },
    { Authorization: 'Basic eA==' },
  ]) {
    const refused = await bare(headers);
    assert.equal(refused.status, 403);
    assert.equal(refused.headers.get('x-clickhouse-exception-code'), '516');
    assert.match(refused.text, /^Code: 516\. DB::Exception: .*\(AUTHENTICATION_FAILED\)\n$/);
  }
});

test('@clickhouse/client: rows, parameters of every kind, compression, errors, ping', async () => {
  const client = createClient({
    url: server.url,
    username: LOGIN.user,
    password: LOGIN.password,
    database: 'limitlens',
    compression: { request: true, response: true },
    log: { level: ClickHouseLogLevel.OFF },
  });
  try {
    assert.equal((await client.ping()).success, true);
    assert.equal((await client.ping({ select: true })).success, true);
    const marks = await client.query({
      query: 'SELECT details FROM marks WHERE mark = {mark:String} ORDER BY time LIMIT {n:UInt8}',
      query_params: { mark: 'reload', n: 2 },
      format: 'JSONEachRow',
      clickhouse_settings: { max_execution_time: 30, output_format_json_quote_64bit_integers: 0 },
    });
    assert.deepEqual(await marks.json(), [{ details: 'n0' }, { details: 'n1' }]);
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme' }), fc.array(fc.string()), async (s, list) => {
        const result = await client.query({
          query: 'SELECT {s:String} AS s, {list:Array(String)} AS list',
          query_params: { s, list },
          format: 'JSONEachRow',
        });
        const [row] = await result.json<{ s: string; list: string[] }>();
        assert.deepEqual(row, { s, list });
      }),
      { numRuns: 25, seed: 1 },
    );
    const multipart = await client.query({
      query: 'SELECT {s:String} AS s',
      query_params: { s: 'ä\n\'"\\' },
      format: 'JSONEachRow',
      use_multipart_params: true,
    });
    assert.deepEqual(await multipart.json(), [{ s: 'ä\n\'"\\' }]);
    await assert.rejects(client.query({ query: 'SELECT no_such', format: 'JSON' }), {
      code: '47',
      type: 'UNKNOWN_IDENTIFIER',
    });
    await assert.rejects(client.query({ query: 'SELECT (1', format: 'JSON' }), {
      code: '62',
      type: 'SYNTAX_ERROR',
    });
    await assert.rejects(client.command({ query: 'DROP TABLE marks' }), { code: '497' });
    await assert.rejects(client.insert({ table: 'marks', values: [{}], format: 'JSONEachRow' }), {
      code: '497',
    });
  } finally {
    await client.close();
  }
});

test('literals, comments and text of every kind pass the formatter unchanged', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme' }), async (text) => {
      const written = text.replace(/[\\']/g, '\\$&');
      const sql = `SELECT '${written}' AS "a b" /* '; DROP */ -- "`;
      const { text: said } = await ask(sql, { default_format: 'JSONCompactEachRow' });
      assert.deepEqual(JSON.parse(said), [text]);
    }),
    { numRuns: 60, seed: 1 },
  );
});

/** Statements that harm, or read what is not the store's; FILE and OUT stand for paths. */
const HOSTILE = [
  "INSERT INTO marks (instance) VALUES ('x')",
  'INSERT INTO marks SELECT * FROM marks',
  'CREATE TABLE evil (a UInt8) ENGINE = Memory',
  'CREATE TEMPORARY TABLE evil (a UInt8)',
  'CREATE DATABASE evil',
  'CREATE FUNCTION evil AS x -> file(x)',
  'DROP TABLE marks',
  'DROP DATABASE limitlens',
  'TRUNCATE TABLE marks',
  'ALTER TABLE marks DELETE WHERE 1',
  'DELETE FROM marks WHERE 1',
  'OPTIMIZE TABLE marks',
  'RENAME TABLE marks TO evil',
  'DETACH TABLE marks',
  'ATTACH TABLE marks',
  'SYSTEM SHUTDOWN',
  'SYSTEM STOP MERGES',
  'KILL QUERY WHERE 1',
  'SET readonly = 0',
  'USE system',
  'GRANT ALL ON *.* TO default',
  'CREATE USER evil',
  'EXECUTE AS default SELECT 1',
  'BEGIN TRANSACTION',
  "BACKUP TABLE marks TO File('OUT')",
  'WATCH marks',
  'CHECK TABLE marks',
  "SELECT 1 INTO OUTFILE 'OUT'",
  "SELECT 1 INTO/**/OUTFILE 'OUT' APPEND FORMAT CSV",
  "SELECT 1 INTO OUTFILE 'OUT' AND STDOUT",
  "(SELECT 1) UNION ALL (SELECT 2) INTO OUTFILE 'OUT'",
  "INSERT INTO FUNCTION file('OUT', 'CSV', 'a UInt8') VALUES (1)",
  "SELECT file('FILE')",
  "SELECT FiLe('FILE')",
  "SELECT `file`('FILE')",
  'SELECT "file"/* */(\'FILE\')',
  "SELECT 'FILE' APPLY file",
  "SELECT * APPLY(file) FROM (SELECT 'FILE')",
  "SELECT arrayMap(x -> file(x), ['FILE'])",
  "SELECT arrayMap(file, ['FILE'])",
  "SELECT arrayMap(`file`, ['FILE'])",
  "WITH file('FILE') AS a SELECT a",
  "WITH a AS (SELECT file('FILE')) SELECT * FROM a",
  "SELECT 1 WHERE file('FILE') != ''",
  "SELECT 1 LIMIT length(file('FILE'))",
  "EXPLAIN SELECT file('FILE')",
  "EXPLAIN SYNTAX SELECT file('FILE')",
  "DESCRIBE (SELECT file('FILE'))",
  "SELECT * FROM file('FILE', 'LineAsString')",
  "SELECT * FROM view(SELECT * FROM file('FILE', 'LineAsString'))",
  "DESCRIBE TABLE file('FILE')",
  "SELECT * FROM fileCluster('default', 'FILE')",
  "SELECT * FROM filesystem('/')",
  "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
  "SELECT * FROM s3('http://127.0.0.1:1/bucket/x', 'LineAsString')",
  "SELECT * FROM remote('127.0.0.1:1', system.one)",
  "SELECT * FROM remoteSecure('127.0.0.1:1', system.one)",
  "SELECT * FROM cluster('default', system.one)",
  "SELECT * FROM mysql('127.0.0.1:1', 'd', 't', 'u', 'p')",
  "SELECT * FROM postgresql('127.0.0.1:1', 'd', 't', 'u', 'p')",
  "SELECT * FROM mongodb('127.0.0.1:1', 'd', 't', 'u', 'p', 'a UInt8')",
  "SELECT * FROM redis('127.0.0.1:1', 'k', 'k String')",
  "SELECT * FROM sqlite('FILE', 't')",
  "SELECT * FROM executable('FILE', 'TSV', 'a String')",
  "SELECT * FROM jdbc('jdbc:x', 't')",
  "SELECT * FROM hdfs('hdfs://127.0.0.1:1/x', 'TSV', 'a String')",
  "SELECT * FROM iceberg('http://127.0.0.1:1/x')",
  "SELECT * FROM input('a UInt8')",
  "SELECT * FROM merge('system', 'processes')",
  "SELECT * FROM merge(REGEXP('.*'), 'processes')",
  'SELECT * FROM loop(system.processes)',
  "SELECT * FROM eval('SELECT 1')",
  "SELECT * FROM dictionary('d')",
  'SELECT * FROM generateRandom()',
  'SELECT * FROM system.processes',
  'SELECT * FROM `system`.processes',
  'SELECT * FROM "system"."users"',
  'SELECT * FROM system.`settings`',
  'SELECT * FROM system . /* */ server_settings',
  'SELECT 1 IN system.settings',
  'SELECT 1 AS a JOIN system.events ON 1',
  'SELECT system.macros.macro FROM system.macros',
  'SELECT * FROM INFORMATION_SCHEMA.TABLES',
  'SELECT * FROM information_schema.columns',
  'SELECT * FROM {t:Identifier}',
  'SHOW PROCESSLIST',
  'SHOW GRANTS',
  'SHOW USERS',
  'SHOW ACCESS',
  'SHOW CREATE USER default',
  "SHOW SETTINGS LIKE '%'",
  'SHOW TABLES FROM system',
  'SHOW CREATE TABLE system.users',
  'SHOW COLUMNS FROM users FROM system',
  'DESCRIBE TABLE system.processes',
  'EXISTS TABLE system.users',
  'EXISTS USER default',
  'EXPLAIN INSERT INTO marks SELECT * FROM marks',
  'EXPLAIN indexes = 1 INSERT INTO marks SELECT * FROM marks',
  "EXPLAIN TABLE OVERRIDE mysql('127.0.0.1:1', 'd', 't', 'u', 'p') PARTITION BY a",
  'SELECT sleep(3)',
  'SELECT sleepEachRow(1) FROM numbers(100)',
  "SELECT dictGet('d', 'a', 1)",
  "SELECT joinGet('j', 'a', 1)",
  "SELECT aiGenerate('x')",
  "SELECT catboostEvaluate('FILE', 1)",
  'SELECT hostName()',
  'SELECT FQDN()',
  "SELECT getServerSetting('path')",
  "SELECT getSetting('max_threads')",
  'SELECT @@version',
  "SELECT getMacro('x')",
  'SELECT serverUUID()',
  "SELECT logTrace('x')",
  'SELECT generateSerialID(1)',
  'SELECT filesystemCapacity()',
  "SELECT hasColumnInTable('system', 'users', 'name')",
  'SELECT addressToLine(0)',
  "SELECT chdb('SELECT 1')",
  'SELECT uptime()',
  'SELECT 1 SETTINGS max_execution_time = 0',
  'SELECT 1 SETTINGS readonly = 0',
  'SELECT * FROM marks SETTINGS max_result_rows = 0, max_memory_usage = 0',
  'SELECT * FROM (SELECT 1 SETTINGS allow_ddl = 1)',
  'SELECT 1; SELECT 2',
  'SELECT 1; DROP TABLE marks',
  "SELECT 1 /* '*/; DROP TABLE marks",
  'SELECT 1; SET readonly = 0; DROP TABLE marks',
];

for (const sql of HOSTILE) {
  test(`refused: ${sql}`, async () => {
    const out = join(folder, 'out.txt');
    const real = sql.replaceAll('FILE', join(folder, 'secret.txt')).replaceAll('OUT', out);
    const { status, headers, text } = await ask(real, { param_t: 'system.processes' });
    assert.ok(status >= 400 && status < 600, `${status}: ${text}`);
    assert.match(headers.get('x-clickhouse-exception-code') ?? '', /^(?:497|62|164)$/, text);
    // What a statement itself says may come back; what the file says may not.
    assert.doesNotMatch(text, /a secret of the machine/);
    assert.equal(existsSync(out), false);
    assert.equal(existsSync('out.txt'), false);
    assert.equal((await ask('SELECT count() FROM marks')).text, '50\n');
  });
}

test('names, formats and settings can carry nothing in', async () => {
  const out = join(folder, 'out.txt');
  const cases: readonly [Record<string, string>, number][] = [
    [{ 'param_a = 1; DROP TABLE marks; SET param_b': '1' }, 400],
    [{ default_format: `CSV INTO OUTFILE '${out}'` }, 400],
    [{ default_format: 'NoSuchFormat' }, 400],
    [{ default_format: 'MySQLWire' }, 400],
    [{ 'max_threads = 1; DROP TABLE marks; SET max_threads': '1' }, 403],
    [{ limit: "1'; DROP TABLE marks; --" }, 400],
    [{ allow_ddl: '1' }, 403],
    [{ format_template_row: join(folder, 'secret.txt') }, 403],
    [{ output_format_template_x: '1' }, 403],
    [{ allow_introspection_functions: '1' }, 403],
    [{ database: 'system' }, 404],
    [{ compress: '1' }, 501],
  ];
  for (const [params, status] of cases) {
    const answer = await ask('SELECT 1', params);
    assert.equal(answer.status, status, `${JSON.stringify(params)}: ${answer.text}`);
  }
  for (const format of ['Template', 'PostgreSQLWire', 'ODBCDriver2', 'SQLInsert']) {
    assert.match((await ask(`SELECT 1 FORMAT ${format}`)).text, /^Code: 73\./, format);
  }
  const escaped = await ask('SELECT {a:String}', { param_a: "'; DROP TABLE marks; --" });
  assert.equal(escaped.text, "\\'; DROP TABLE marks; --\n");
  assert.equal(existsSync(out), false);
  assert.equal((await ask('SELECT count() FROM marks')).text, '50\n');
  const loosened = {
    max_execution_time: '0',
    max_result_rows: '0',
    max_memory_usage: '99999999999999',
    readonly: '0',
  };
  const many = await ask('SELECT number FROM numbers(20001)', loosened);
  assert.match(many.text, /^Code: 396\./);
});

test('what a person or a tool looks around with', async () => {
  const statements = [
    'SHOW TABLES',
    'SHOW DATABASES',
    "SHOW TABLES FROM limitlens LIKE 'm%'",
    'SHOW COLUMNS FROM marks',
    'SHOW CREATE TABLE marks',
    'DESC TABLE "limitlens"."marks"',
    'DESCRIBE (SELECT 1 AS a)',
    'EXISTS TABLE marks',
    'EXPLAIN SELECT * FROM marks',
    "EXPLAIN indexes = 1 SELECT count() FROM marks WHERE instance = 'edge'",
    'EXPLAIN PIPELINE SELECT 1',
    'SELECT name FROM system.databases',
    'SELECT database, name FROM system.tables ORDER BY database, name',
    "SELECT name, type FROM system.columns WHERE (database, table) IN (('limitlens', 'marks'))",
    'SELECT currentDatabase(), version(), timezone(), currentUser()',
    'SELECT m.details, limitlens.marks.mark FROM limitlens.marks AS m LIMIT 1',
    'WITH t AS (SELECT * FROM marks) SELECT count() FROM t',
    'SELECT uniqIf(details, mark = 1), sumOrNull(1), quantilesTDigestIf(0.5)(1, 1) FROM marks',
    'SELECT arrayMap((x, y) -> x + y, [1], [2]), arraySum(x -> x * 2, [1, 2]), [1][1], (1, 2).1',
    'SELECT toStartOfInterval(time, INTERVAL 10 SECOND) AS t, count() OVER (ORDER BY t) FROM marks',
    "SELECT CASE WHEN 1 THEN 'a' ELSE 'b' END, 1 BETWEEN 0 AND 2, '1'::UInt8, NOT (1), -1 - -1",
    'SELECT * EXCEPT (time) REPLACE (upper(mark) AS mark) FROM marks LIMIT 1 BY mark',
    'SELECT t FROM (SELECT 1 AS t) ORDER BY t WITH FILL FROM 0 TO 3 STEP 1 INTERPOLATE',
    'SELECT DISTINCT details FROM marks ORDER BY details LIMIT 3',
    'SELECT count() FROM marks GROUP BY ROLLUP(mark)',
  ];
  for (const sql of statements) {
    const { status, text } = await ask(sql.replace('mark = 1', "mark = 'reload'"));
    assert.equal(status, 200, `${sql}: ${text}`);
  }
});

test("Grafana's data source: connects, and every panel, variable and annotation runs", async () => {
  const client = {
    database: 'limitlens',
    default_format: 'Native',
    client_protocol_version: '54483',
    enable_http_compression: '1',
    max_execution_time: '65',
  };
  const init = { headers: { 'Accept-Encoding': 'gzip', 'X-Dashboard-Uid': 'x' } };
  const grafana = async (sql: string): Promise<Buffer> => {
    const answer = await fetch(`${server.url}/?${new URLSearchParams(client)}`, {
      method: 'POST',
      body: sql,
      headers: { ...init.headers, 'X-ClickHouse-User': LOGIN.user, ...BASIC },
    });
    const body = Buffer.from(await answer.arrayBuffer());
    assert.equal(answer.status, 200, `${sql}: ${body.toString()}`);
    assert.equal(answer.headers.get('content-encoding'), body.length === 0 ? null : 'gzip');
    return body;
  };
  const hello = await grafana('SELECT displayName(), version(), revision(), timezone()');
  const [header, columns, rows] = [hello.subarray(0, 8), hello[8], hello[9]];
  assert.deepEqual([...header], [1, 0, 2, 255, 255, 255, 255, 0]);
  assert.deepEqual([columns, rows], [4, 1]);
  assert.match(hello.toString('latin1'), /version\(\)\x06String\0\x08?.{0,3}\d+\.\d+/s);
  assert.match(hello.toString('latin1'), /revision\(\)\x06UInt32\0\0\0\0\0\x0atimezone\(\)/);
  // As revision 0 wants it: neither a header before the block nor a byte before a column.
  assert.deepEqual(
    [...(await grafana('SELECT 1'))],
    [1, 1, 1, '1'.charCodeAt(0), 5, ...Buffer.from('UInt8'), 1],
  );
  assert.equal((await grafana('SELECT details FROM marks WHERE 0')).length, 0);
  const range = { fromMs: 1_793_999_000_000, toMs: 1_794_000_100_000, intervalMs: 20_000 };
  const all = { instance: ALL, server: ALL, location: ALL, zone: ALL, key: 'k' };
  const one = { instance: ['edge'], server: ["s'1"], location: ['\\'], zone: ['z'], key: "k'" };
  const statements = [
    ...DASHBOARDS.flatMap(({ panels }) => panels.map(({ sql }) => sql)),
    ...VARIABLES.map(({ sql }) => sql),
    ...ANNOTATIONS.map(({ sql }) => sql),
  ];
  assert.ok(statements.length > 20);
  for (const sql of statements) {
    for (const choice of [all, one]) await grafana(expand(sql, range, choice));
  }
});

test('bounds: rows, memory, time, and how many at once', async () => {
  const codeOf = async (sql: string): Promise<string | null> =>
    (await ask(sql)).headers.get('x-clickhouse-exception-code');
  assert.equal(await codeOf('SELECT number FROM numbers(30000)'), '396');
  const narrow = store.guardedQueries({ ...LIMITS, maxSeconds: 1, concurrent: 1, waiting: 1 })!;
  const run = (sql: string, gone?: AbortSignal): Promise<unknown> =>
    narrow.run({
      sql,
      format: 'CSV',
      params: new Map(),
      settings: new Map(),
      ...(gone === undefined ? {} : { gone }),
    });
  const LONG = 'SELECT count() FROM numbers(10000000000000) WHERE sipHash64(number) = 0';
  const small = store.guardedQueries({ ...LIMITS, maxSeconds: 60, maxMemoryBytes: 50_000_000 })!;
  const large = 'SELECT length(groupArray(number)) FROM numbers(1000000000)';
  const none = { params: new Map<string, string>(), settings: new Map<string, string>() };
  await assert.rejects(small.run({ sql: large, format: 'CSV', ...none }), { code: '241' });
  await small.close();
  try {
    await run('SELECT 1');
    const all = await Promise.allSettled([LONG, LONG, LONG].map((sql) => run(sql)));
    const codes = all.map(
      (one) => one.status === 'rejected' && (one.reason as { code: string }).code,
    );
    assert.deepEqual(codes.toSorted(), ['159', '159', '202']);
  } finally {
    await narrow.close();
  }
});

test('a statement whose client goes away is killed, and one that waits does not begin', async () => {
  const patient = store.guardedQueries({ ...LIMITS, maxSeconds: 300, concurrent: 1 })!;
  const run = (sql: string, gone: AbortSignal): Promise<unknown> =>
    patient.run({ sql, format: 'CSV', params: new Map(), settings: new Map(), gone });
  const LONG = 'SELECT count() FROM numbers(10000000000000) WHERE sipHash64(number) = 1';
  try {
    const first = new AbortController();
    const second = new AbortController();
    const long = run(LONG, first.signal);
    const waits = run('SELECT 2', second.signal);
    const seen = "SELECT count() AS n FROM system.processes WHERE query LIKE '/* limitlens-%'";
    for (;;) {
      const [row] = await store.query<{ n: number }>(seen);
      if (row?.n === 1) break;
    }
    second.abort();
    await assert.rejects(waits, { code: '394' });
    first.abort();
    await assert.rejects(long, { code: '394', type: 'QUERY_WAS_CANCELLED' });
    assert.deepEqual(
      (
        await patient.run({
          sql: 'SELECT 3',
          format: 'CSV',
          params: new Map(),
          settings: new Map(),
        })
      ).bytes.toString(),
      '3\n',
    );
  } finally {
    await patient.close();
  }
});
