/**
 * A folder with logs, a configuration that names them, and a daemon beside an import of the same
 * requests: for tests of the ways that lines reach the daemon.
 *
 * Not here: rotation, kills, and stores that are away (tail-site.ts).
 */
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { openStore } from '../../src/store/store.js';
import type { FakeServer } from './clickhouse-http.js';
import { storedRows, TailProcess, type StoredRows } from './tail-site.js';
import { makeTempDir } from './temp-dir.js';

/** The fields that a replay needs, as the captures log them. */
export const RICH =
  `escape=json '{"msec":$msec,"request_time":$request_time,"time":"$time_iso8601",` +
  `"status":$status,"limit_req_status":"$limit_req_status",` +
  `"limit_conn_status":"$limit_conn_status","upstream_status":"$upstream_status",` +
  `"upstream_response_time":"$upstream_response_time","remote_addr":"$remote_addr",` +
  `"realip_remote_addr":"$realip_remote_addr","key":"$arg_k","server_name":"$server_name",` +
  `"method":"$request_method","uri":"$uri","args":"$args","request_id":"$request_id",` +
  `"connection":$connection,"connection_requests":$connection_requests,"pid":$pid,` +
  `"request_length":$request_length}'`;

/** The site of the capture g_mixed_2workers, with logs of its own. */
export function siteConf(logs: string): string {
  return `events {}
http {
  log_format rich ${RICH};
  log_format plain '$remote_addr - $remote_user [$time_local] "$request" $status';
  ${logs}
  limit_req_zone $arg_k zone=perkey:1m rate=2r/s;
  server {
    listen 127.0.0.1:18107;
    server_name a.example;
    location / { limit_req zone=perkey burst=4 delay=2; proxy_pass http://127.0.0.1:18090; }
  }
}
`;
}

let scenes = 0;

export class TailScene {
  readonly folder: string;
  readonly #server: FakeServer;
  readonly #t: TestContext;
  readonly #database = `scene_${++scenes}`;
  #imports = 0;

  constructor(t: TestContext, server: FakeServer) {
    this.#t = t;
    this.#server = server;
    this.folder = makeTempDir(t);
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  conf(text: string, name = 'nginx.conf'): string {
    writeFileSync(this.path(name), text);
    return this.path(name);
  }

  append(name: string, lines: readonly string[]): void {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    appendFileSync(this.path(name), lines.map((line) => `${line}\n`).join(''));
  }

  /** Starts the daemon; it is killed when the test ends. */
  tail(conf: string, ...args: readonly string[]): TailProcess {
    const daemon = new TailProcess(
      [
        ...['tail', '--conf', conf, '--clickhouse', this.#server.url, '--database', this.#database],
        ...['--spool', this.path('spool'), '--lateness', '5s', '--listen', '127.0.0.1:0'],
        ...['--commit-interval', '20ms', ...args],
      ],
      'pipe',
    );
    this.#t.after(() => daemon.child.kill('SIGKILL'));
    return daemon;
  }

  /** What the daemon has stored. */
  rows(): Promise<StoredRows> {
    return this.#rowsOf(this.#database);
  }

  /** What an import of these logs stores. */
  async imported(conf: string, ...args: readonly string[]): Promise<StoredRows> {
    const database = `${this.#database}_imported_${++this.#imports}`;
    const importing = new TailProcess([
      ...['import', '--conf', conf, '--clickhouse', this.#server.url, '--database', database],
      ...['--lateness', '5s', '--threads', '1', ...args],
    ]);
    assert.deepEqual(await importing.exit, [0, null], importing.said);
    return this.#rowsOf(database);
  }

  /** Compares but for the names that logs have. */
  async assertStored(expected: StoredRows): Promise<void> {
    const found = withoutNames(await this.rows());
    assert.ok(found['zone_outcomes']!.length > 0);
    for (const [table, rows] of Object.entries(withoutNames(expected))) {
      const extra = found[table]!.filter((row) => !rows.includes(row));
      const missing = rows.filter((row) => !found[table]!.includes(row));
      assert.deepEqual({ table, extra, missing }, { table, extra: [], missing: [] });
      assert.equal(found[table]!.length, rows.length, table);
    }
  }

  async #rowsOf(database: string): Promise<StoredRows> {
    const store = await openStore({ url: this.#server.url, database, createIfMissing: false });
    const rows = await storedRows(store);
    await store.close();
    return rows;
  }
}

/** A log is named by its path, standard input and sockets by names of their own. */
function withoutNames(rows: StoredRows): StoredRows {
  const sums = new Map<string, number>();
  for (const row of rows['line_counts'] ?? []) {
    const { key, lines } = JSON.parse(row) as { key: string; lines: number };
    const anonymous = JSON.stringify({ ...(JSON.parse(key) as object), source: '' });
    sums.set(anonymous, (sums.get(anonymous) ?? 0) + lines);
  }
  const counts = [...sums].map(([key, lines]) => JSON.stringify({ key, lines }));
  return { ...rows, line_counts: counts.sort() };
}
