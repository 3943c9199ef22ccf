/**
 * Kills the daemon at random instants while logs grow and rotate, restarts it, and compares what it
 * stored in the end with one import of the same bytes.
 *
 * `kill-rounds.js --rounds 50 --seed 1` runs it alone; prints a line per round.
 */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { ROW_COLUMNS, type RowTable } from '../../src/aggregate/rows.js';
import { rotationStem } from '../../src/pipeline/log-files.js';
import { openStore } from '../../src/store/store.js';
import { traceDir } from './truth.js';

const CLI = join(dirname(fileURLToPath(import.meta.url)), '../../src/cli.js');
/** Copies of the capture, one after another in time. */
const COPIES = 4;
const COPY_MS = 30_000;
const LINES_PER_WRITE = 25;

export interface KillRounds {
  readonly rounds: number;
  readonly seed: number;
  readonly folder: string;
  readonly onRound?: (line: string) => void;
}

interface LogLine {
  readonly name: 'access.log' | 'error.log';
  readonly ms: number;
  readonly text: string;
}

/**
 * @returns how many of the kills fell into a step, which the next start had to finish
 * @throws AssertionError where the stores differ
 */
export async function runKillRounds(options: KillRounds): Promise<number> {
  const { rounds, folder } = options;
  const random = randomFrom(options.seed);
  const site = new Site(folder, random);
  const lines = captureLines();
  const share = Math.ceil(lines.length / (rounds + 1));
  site.write(lines.slice(0, share));
  await site.firstStep();
  for (let round = 1; round <= rounds; round++) {
    const part = lines.slice(round * share, (round + 1) * share);
    const said = await site.killUnderLoad(part);
    options.onRound?.(`round ${round}: ${said}`);
  }
  await site.killDraining();
  await site.drain();
  await site.compare();
  return site.interrupted;
}

class Site {
  readonly #folder: string;
  readonly #random: () => number;
  readonly #conf: string;
  readonly #rotated = { 'access.log': 0, 'error.log': 0 };
  #mayRotate = false;
  #said = '';

  constructor(folder: string, random: () => number) {
    this.#folder = folder;
    this.#random = random;
    this.#conf = join(traceDir('g_mixed_2workers'), 'nginx.conf');
  }

  /** Steps that a start found begun and not committed. */
  get interrupted(): number {
    return this.#said.split('finishes the step that was interrupted').length - 1;
  }

  write(lines: readonly LogLine[]): void {
    for (const { name, text } of lines) appendFileSync(join(this.#folder, name), `${text}\n`);
  }

  /** In pieces, with rotations in between; a piece can end within a line. */
  async writeSlowly(lines: readonly LogLine[]): Promise<void> {
    for (let at = 0; at < lines.length; at += LINES_PER_WRITE) {
      const piece = lines.slice(at, at + LINES_PER_WRITE);
      const last = piece[piece.length - 1]!;
      this.write(piece.slice(0, -1));
      const cut = Math.floor(this.#random() * last.text.length);
      appendFileSync(join(this.#folder, last.name), last.text.slice(0, cut));
      await pause(this.#random() * 30);
      appendFileSync(join(this.#folder, last.name), `${last.text.slice(cut)}\n`);
      if (this.#mayRotate && this.#random() < 0.05) this.#rotate();
    }
  }

  /** Most kills fall into the time in which steps follow one another, some into the start. */
  async killUnderLoad(lines: readonly LogLine[]): Promise<string> {
    const daemon = this.start();
    const isEarly = this.#random() < 0.2;
    if (!isEarly) await this.#until(daemon, 'follows');
    const killMs = this.#random() * (isEarly ? 1500 : 600);
    const exit = once(daemon, 'exit');
    const timer = setTimeout(() => daemon.kill('SIGKILL'), killMs);
    await this.writeSlowly(lines);
    const [code, signal] = (await exit) as [number | null, string | null];
    clearTimeout(timer);
    assert.equal(signal, 'SIGKILL', `the daemon ended by itself with ${code}: ${this.#said}`);
    return `killed ${Math.round(killMs)} ms after ${isEarly ? 'its start' : 'it began to follow'}`;
  }

  /** A drain that does not come to its end is ended by the next start. */
  async killDraining(): Promise<void> {
    const daemon = this.start();
    await this.#until(daemon, 'follows');
    const exit = once(daemon, 'exit');
    daemon.kill('SIGTERM');
    await pause(this.#random() * 300);
    daemon.kill('SIGKILL');
    await exit;
  }

  start(): ChildProcess {
    const child = spawn(
      process.execPath,
      [
        ...[CLI, 'tail', '--conf', this.#conf, '--store', join(this.#folder, 'tail-store')],
        ...['--error-log', this.#path('error.log'), '--timezone', 'UTC', '--lateness', '5s'],
        ...['--listen', '127.0.0.1:0', '--commit-interval', '1ms', '--chunk-bytes', '60000'],
        this.#path('access.log'),
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    createInterface({ input: child.stderr }).on('line', (line) => {
      this.#said += `${line}\n`;
      child.emit('said', line);
    });
    return child;
  }

  /** Runs the daemon until it has stored something, and ends it. */
  async firstStep(): Promise<void> {
    const daemon = this.start();
    await this.#until(daemon, 'follows');
    await this.#end(daemon, 'SIGKILL');
    // The first start can have been killed before its first step; from here on the log is known.
    const again = this.start();
    await this.#until(again, '"message":"stored"');
    await this.#end(again, 'SIGKILL');
    this.#mayRotate = true;
  }

  async drain(): Promise<void> {
    const daemon = this.start();
    await this.#until(daemon, 'follows');
    assert.equal(await this.#end(daemon, 'SIGTERM'), 0, this.#said);
    assert.ok(!this.#said.includes('"lost"'), this.#said);
  }

  /** The rows of an import of the same files, oldest first. */
  async compare(): Promise<void> {
    const store = join(this.#folder, 'import-store');
    const child = spawn(
      process.execPath,
      [
        ...[CLI, 'import', '--conf', this.#conf, '--store', store, '--timezone', 'UTC'],
        ...['--lateness', '5s', '--threads', '1'],
        ...this.#files('error.log').flatMap((path) => ['--error-log', path]),
        ...this.#files('access.log'),
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    assert.deepEqual(await once(child, 'exit'), [0, null]);
    const expected = await storedRows(store);
    const found = await storedRows(join(this.#folder, 'tail-store'));
    for (const table of Object.keys(expected)) {
      assert.ok(table !== 'zone_outcomes' || expected[table]!.length > 10);
      const missing = expected[table]!.filter((row) => !found[table]!.includes(row));
      const extra = found[table]!.filter((row) => !expected[table]!.includes(row));
      assert.deepEqual(
        { table, missing: missing.slice(0, 5), extra: extra.slice(0, 5) },
        { table, missing: [], extra: [] },
      );
      assert.equal(found[table]!.length, expected[table]!.length, table);
    }
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }

  #files(name: LogLine['name']): string[] {
    const numbers = Array.from({ length: this.#rotated[name] }, (_, i) => this.#rotated[name] - i);
    return [...numbers.map((n) => this.#path(`${name}.${n}`)), this.#path(name)];
  }

  #rotate(): void {
    const name = this.#random() < 0.5 ? 'access.log' : 'error.log';
    if (!existsSync(this.#path(name))) return;
    for (let n = this.#rotated[name]; n >= 1; n--) {
      renameSync(this.#path(`${name}.${n}`), this.#path(`${name}.${n + 1}`));
    }
    renameSync(this.#path(name), this.#path(`${name}.1`));
    writeFileSync(this.#path(name), '');
    this.#rotated[name]++;
  }

  async #until(daemon: ChildProcess, text: string): Promise<void> {
    const from = this.#said.length;
    await new Promise<void>((resolve, reject) => {
      daemon.on('said', () => {
        if (this.#said.slice(from).includes(text)) resolve();
      });
      daemon.once('exit', () => {
        reject(new Error(`the daemon ended before it said ${text}: ${this.#said}`));
      });
    });
  }

  async #end(daemon: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
    const exit = once(daemon, 'exit');
    daemon.kill(signal);
    return ((await exit) as [number | null])[0];
  }
}

/** All rows of all tables, merged as the engine would; sources of line counts without rotation. */
async function storedRows(path: string): Promise<Record<string, string[]>> {
  const store = await openStore({ path, createIfMissing: false, readOnly: true });
  try {
    const all: Record<string, string[]> = {};
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
  } finally {
    await store.close();
  }
}

function withoutRotation(rows: readonly Record<string, unknown>[]): Record<string, unknown>[] {
  const sums = new Map<string, number>();
  for (const { lines, source, ...row } of rows) {
    const key = JSON.stringify({ ...row, source: rotationStem(String(source)) });
    sums.set(key, (sums.get(key) ?? 0) + Number(lines));
  }
  return [...sums].map(([key, lines]) => ({ key, lines }));
}

/** Both logs of the capture, several times over, in order of time. */
function captureLines(): LogLine[] {
  const folder = traceDir('g_mixed_2workers');
  const access = readFileSync(join(folder, 'access.log'), 'latin1').trimEnd().split('\n');
  const errors = readFileSync(join(folder, 'error.log'), 'latin1').trimEnd().split('\n');
  const lines: LogLine[] = [];
  for (let copy = 0; copy < COPIES; copy++) {
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

/** Mulberry32: the same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '50' },
      seed: { type: 'string', default: '1' },
    },
  });
  const folder = mkdtempSync(join(tmpdir(), 'limitlens-kill-'));
  const rounds = Number(values.rounds);
  const onRound = (line: string): void => console.log(line);
  const interrupted = await runKillRounds({ rounds, seed: Number(values.seed), folder, onRound });
  console.log(`killed ${rounds} times, ${interrupted} within a step: the stores are equal`);
  rmSync(folder, { recursive: true, force: true });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
