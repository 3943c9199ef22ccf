/**
 * A site whose logs a daemon follows: a capture several times over, written piece by piece and
 * rotated, the daemon as a process, and what a store holds in the end beside what one import stores.
 */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ROW_COLUMNS, type RowTable } from '../../src/aggregate/rows.js';
import { rotationStem } from '../../src/pipeline/log-files.js';
import type { Store } from '../../src/store/store.js';
import { traceDir } from './truth.js';

const CLI = join(dirname(fileURLToPath(import.meta.url)), '../../src/cli.js');
const CAPTURE = 'g_mixed_2workers';
const COPY_MS = 30_000;

export interface LogLine {
  readonly name: 'access.log' | 'error.log';
  readonly ms: number;
  readonly text: string;
}

export type StoredRows = Record<string, string[]>;

export class TailSite {
  readonly folder: string;
  readonly #conf = join(traceDir(CAPTURE), 'nginx.conf');
  readonly #rotated = { 'access.log': 0, 'error.log': 0 };

  constructor(folder: string) {
    this.folder = folder;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  write(lines: readonly LogLine[]): void {
    for (const { name, text } of lines) appendFileSync(this.path(name), `${text}\n`);
  }

  rotate(name: LogLine['name']): void {
    if (!existsSync(this.path(name))) return;
    for (let n = this.#rotated[name]; n >= 1; n--) {
      renameSync(this.path(`${name}.${n}`), this.path(`${name}.${n + 1}`));
    }
    renameSync(this.path(name), this.path(`${name}.1`));
    writeFileSync(this.path(name), '');
    this.#rotated[name]++;
  }

  /** @param store options that name the store */
  tail(store: readonly string[], ...more: readonly string[]): TailProcess {
    return new TailProcess([
      ...['tail', '--conf', this.#conf, ...store, '--error-log', this.path('error.log')],
      ...['--timezone', 'UTC', '--lateness', '5s', '--listen', '127.0.0.1:0'],
      ...['--commit-interval', '1ms', '--chunk-bytes', '60000', ...more, this.path('access.log')],
    ]);
  }

  /** Imports the same logs, each as if it had never been rotated. */
  async import(store: readonly string[]): Promise<void> {
    const { code, said } = await this.tryImport(store);
    assert.equal(code, 0, said);
  }

  /** @returns what it said on standard error, and its exit code */
  async tryImport(store: readonly string[]): Promise<{ code: number | null; said: string }> {
    const args = [
      ...['import', '--conf', this.#conf, ...store, '--timezone', 'UTC'],
      ...['--lateness', '5s', '--threads', '1'],
      ...['--error-log', this.#whole('error.log'), this.#whole('access.log')],
    ];
    const child = spawn(process.execPath, [CLI, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (data) => (said += String(data)));
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, said };
  }

  /** A copy of a log before its rotations. */
  #whole(name: LogLine['name']): string {
    const numbers = Array.from({ length: this.#rotated[name] }, (_, i) => this.#rotated[name] - i);
    const paths = [...numbers.map((n) => this.path(`${name}.${n}`)), this.path(name)];
    mkdirSync(this.path('whole'), { recursive: true });
    const whole = join(this.path('whole'), name);
    writeFileSync(whole, Buffer.concat(paths.map((path) => readFileSync(path))));
    return whole;
  }
}

export class TailProcess {
  readonly child: ChildProcess;
  readonly exit: Promise<readonly [number | null, string | null]>;
  /** All that it has said. */
  said = '';
  #isOver = false;

  constructor(args: readonly string[], stdin: 'ignore' | 'pipe' = 'ignore') {
    this.child = spawn(process.execPath, [CLI, ...args], { stdio: [stdin, 'ignore', 'pipe'] });
    this.exit = once(this.child, 'close').then((ended) => {
      this.#isOver = true;
      this.child.emit('said');
      return ended as [number | null, string | null];
    });
    createInterface({ input: this.child.stderr! }).on('line', (line) => {
      this.said += `${line}\n`;
      this.child.emit('said');
    });
  }

  /** Waits until it has said something, after the first so many characters. */
  async until(text: string, after = 0): Promise<void> {
    while (!this.said.includes(text, after)) {
      if (this.#isOver) throw new Error(`the daemon ended before it said ${text}:\n${this.said}`);
      await once(this.child, 'said');
    }
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.child.kill(signal);
    return (await this.exit)[0];
  }

  async get(path: string): Promise<Response> {
    await this.until('"listens"');
    const port = /"port":(\d+)[^\n]*"listens"/.exec(this.said)![1]!;
    return fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } });
  }

  /** The value of a metric without labels of its own. */
  async metric(name: string): Promise<number> {
    const text = await (await this.get('/metrics')).text();
    return Number(new RegExp(`^${name}(?:{.*})? (\\S+)$`, 'm').exec(text)?.[1] ?? NaN);
  }
}

/** All rows of all tables, merged as the engine would; sources of line counts by their first names. */
export async function storedRows(store: Store): Promise<StoredRows> {
  const all: StoredRows = {};
  for (const table of Object.keys(ROW_COLUMNS) as RowTable[]) {
    const columns = ROW_COLUMNS[table].map((column) => `\`${column}\``).join(', ');
    const isMerged = !['examples', 'unparsable_samples', 'marks'].includes(table);
    const sql = `SELECT ${columns} FROM ${table} ${isMerged ? 'FINAL' : ''}`;
    const rows = await store.query<Record<string, unknown>>(sql);
    all[table] = (table === 'line_counts' ? withoutRotation(rows) : rows)
      .map((row) => JSON.stringify(row))
      .sort();
  }
  return all;
}

function withoutRotation(rows: readonly Record<string, unknown>[]): Record<string, unknown>[] {
  const sums = new Map<string, number>();
  for (const { lines, source, ...row } of rows) {
    const key = JSON.stringify({ ...row, source: basename(rotationStem(String(source))) });
    sums.set(key, (sums.get(key) ?? 0) + Number(lines));
  }
  return [...sums].map(([key, lines]) => ({ key, lines }));
}

/** @throws AssertionError with the first rows that differ */
export function assertSameRows(found: StoredRows, expected: StoredRows): void {
  for (const [table, rows] of Object.entries(expected)) {
    assert.ok(table !== 'zone_outcomes' || rows.length > 4);
    const [has, wanted] = [new Set(found[table]), new Set(rows)];
    const missing = rows.filter((row) => !has.has(row));
    const extra = found[table]!.filter((row) => !wanted.has(row));
    assert.deepEqual(
      { table, missing: missing.slice(0, 5), extra: extra.slice(0, 5) },
      { table, missing: [], extra: [] },
    );
    assert.equal(found[table]!.length, rows.length, table);
  }
}

/** Both logs of the capture, several times over, in order of time. */
export function captureLines(copies: number): LogLine[] {
  const folder = traceDir(CAPTURE);
  const access = readFileSync(join(folder, 'access.log'), 'latin1').trimEnd().split('\n');
  const errors = readFileSync(join(folder, 'error.log'), 'latin1').trimEnd().split('\n');
  const lines: LogLine[] = [];
  for (let copy = 0; copy < copies; copy++) {
    for (const text of errors) {
      const ms = Date.parse(`${text.slice(0, 19).replaceAll('/', '-').replace(' ', 'T')}Z`);
      const at = new Date(ms + copy * COPY_MS).toISOString();
      const time = `${at.slice(0, 10).replaceAll('-', '/')} ${at.slice(11, 19)}`;
      const moved = text.slice(19).replace(/\*(\d+)/, (_, n) => `*${Number(n) + copy * 100_000}`);
      lines.push({ name: 'error.log', ms: Date.parse(`${at.slice(0, 19)}Z`), text: time + moved });
    }
    for (const text of access) {
      const ms = Math.round(Number(/"msec":([\d.]+)/.exec(text)![1]) * 1000) + copy * COPY_MS;
      const moved = text
        .replace(/"msec":[\d.]+/, `"msec":${(ms / 1000).toFixed(3)}`)
        .replace(/"connection":(\d+)/, (_, n) => `"connection":${Number(n) + copy * 100_000}`);
      lines.push({ name: 'access.log', ms, text: moved });
    }
  }
  return lines.sort((a, b) => a.ms - b.ms);
}
