/**
 * Kills the daemon at random instants while logs grow and rotate, restarts it, and compares what it
 * stored in the end with one import of the same bytes.
 *
 * `kill-rounds.js --rounds 50 --seed 1` runs it alone; prints a line per round. With `--server` the
 * store is behind HTTP, and in some rounds the server is away when the daemon is killed and started.
 */
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { openStore } from '../../src/store/store.js';
import { startFakeServer, type FakeServer } from './clickhouse-http.js';
import {
  assertSameRows,
  captureLines,
  storedRows,
  TailSite,
  type LogLine,
  type StoredRows,
  type TailProcess,
} from './tail-site.js';

/** Copies of the capture, one after another in time. */
const COPIES = 4;
const LINES_PER_WRITE = 25;
const OPTIONS = ['--commit-interval', '1ms'];
const AGAIN = 'reads again what was read after the last state';
const LOST_BLOCK = 'the store was killed in the middle of a block';
/** Of the rounds with a server: those in which it is away. */
const AWAY_SHARE = 0.3;

export interface KillRounds {
  readonly rounds: number;
  readonly seed: number;
  readonly folder: string;
  /** The store is a server; else it is embedded. */
  readonly server?: FakeServer;
  readonly onRound?: (line: string) => void;
}

export interface KillCounts {
  /** Starts that had to read again what a kill had cut off from its state. */
  readonly again: number;
  /** Starts that found a block that the engine had noted and not made (../../src/store/lost-blocks.ts). */
  readonly lostBlocks: number;
}

/** @throws AssertionError where the stores differ */
export async function runKillRounds(options: KillRounds): Promise<KillCounts> {
  const { rounds, folder } = options;
  const random = randomFrom(options.seed);
  const site = new KilledSite(folder, random, options.server);
  const lines = captureLines(COPIES);
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
  const { again, lostBlocks } = site;
  return { again, lostBlocks };
}

class KilledSite extends TailSite {
  /** Starts that read again what they had read. */
  again = 0;
  lostBlocks = 0;
  readonly #random: () => number;
  readonly #server: FakeServer | undefined;
  #mayRotate = false;

  constructor(folder: string, random: () => number, server: FakeServer | undefined) {
    super(folder);
    this.#random = random;
    this.#server = server;
  }

  /** In pieces, with rotations in between; a piece can end within a line. */
  async writeSlowly(lines: readonly LogLine[]): Promise<void> {
    for (let at = 0; at < lines.length; at += LINES_PER_WRITE) {
      const piece = lines.slice(at, at + LINES_PER_WRITE);
      const last = piece[piece.length - 1]!;
      this.write(piece.slice(0, -1));
      const cut = Math.floor(this.#random() * last.text.length);
      appendFileSync(this.path(last.name), last.text.slice(0, cut));
      await pause(this.#random() * 30);
      appendFileSync(this.path(last.name), `${last.text.slice(cut)}\n`);
      if (this.#mayRotate && this.#random() < 0.05) {
        this.rotate(this.#random() < 0.5 ? 'access.log' : 'error.log');
      }
    }
  }

  /** Most kills fall into the time in which steps follow one another, some into the start. */
  async killUnderLoad(lines: readonly LogLine[]): Promise<string> {
    const isAway = this.#server !== undefined && this.#random() < AWAY_SHARE;
    if (isAway) await this.#server.stop();
    const daemon = this.#start();
    const isEarly = this.#random() < 0.2;
    const isLate = !isAway && this.#random() < 0.6;
    // A step has something to read.
    this.write(lines.slice(0, LINES_PER_WRITE));
    if (!isEarly) await daemon.until(isLate ? '"stored"' : '"follows"');
    const killMs = this.#random() * (isEarly ? 1500 : 600);
    const timer = setTimeout(() => daemon.child.kill('SIGKILL'), killMs);
    await this.writeSlowly(lines.slice(LINES_PER_WRITE));
    const [code, signal] = await daemon.exit;
    clearTimeout(timer);
    if (isAway) await this.#server.start();
    assert.equal(signal, 'SIGKILL', `the daemon ended by itself with ${code}: ${daemon.said}`);
    if (daemon.said.includes(AGAIN)) this.again++;
    if (daemon.said.includes(LOST_BLOCK)) this.lostBlocks++;
    const where = isAway ? ', the server away' : '';
    return `killed ${Math.round(killMs)} ms after ${isEarly ? 'its start' : isLate ? 'it had stored' : 'it began to follow'}${where}`;
  }

  /** A drain that does not come to its end is ended by the next start. */
  async killDraining(): Promise<void> {
    const daemon = this.#start();
    await daemon.until('"follows"');
    daemon.child.kill('SIGTERM');
    await pause(this.#random() * 300);
    await daemon.end('SIGKILL');
  }

  /** Runs the daemon until it has stored something, and ends it. */
  async firstStep(): Promise<void> {
    const daemon = this.#start();
    await daemon.until('"follows"');
    await daemon.end('SIGKILL');
    // The first start can have been killed before its first step; from here on the log is known.
    const again = this.#start();
    await again.until('"stored"');
    await again.end('SIGKILL');
    this.#mayRotate = true;
  }

  async drain(): Promise<void> {
    const daemon = this.#start();
    await daemon.until('"follows"');
    assert.equal(await daemon.end('SIGTERM'), 0, daemon.said);
    assert.ok(!daemon.said.includes('"lost"'), daemon.said);
  }

  /** The rows of an import of the same files, oldest first. */
  async compare(): Promise<void> {
    await this.import(this.#storeOptions('imported'));
    assertSameRows(await this.#rowsOf('tail'), await this.#rowsOf('imported'));
  }

  #start(): TailProcess {
    const spool = ['--spool', this.path('spool')];
    return this.tail(this.#storeOptions('tail'), ...spool, ...OPTIONS);
  }

  #storeOptions(name: string): readonly string[] {
    if (this.#server === undefined) return ['--store', this.path(name)];
    return ['--clickhouse', this.#server.url, '--database', name];
  }

  async #rowsOf(name: string): Promise<StoredRows> {
    const place =
      this.#server === undefined
        ? { path: this.path(name) }
        : { url: this.#server.url, database: name };
    const store = await openStore({ ...place, createIfMissing: false, readOnly: true });
    const rows = await storedRows(store);
    await store.close();
    return rows;
  }
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
      server: { type: 'boolean', default: false },
    },
  });
  const folder = mkdtempSync(join(tmpdir(), 'limitlens-kill-'));
  const rounds = Number(values.rounds);
  const dataPath = join(folder, 'server');
  mkdirSync(dataPath);
  const server = values.server ? await startFakeServer({ dataPath }) : undefined;
  const { again, lostBlocks } = await runKillRounds({
    rounds,
    seed: Number(values.seed),
    folder,
    ...(server === undefined ? {} : { server }),
    onRound: (line) => {
      console.log(line);
    },
  });
  console.log(
    `killed ${rounds} times, ${again} starts read again what they had read, ` +
      `${lostBlocks} found a block that was noted and not made: the stores are equal`,
  );
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
