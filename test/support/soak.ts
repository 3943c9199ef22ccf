/**
 * A long run of the daemon on a log that grows at a steady rate: whether its memory and its lag stay
 * bounded, and whether it counted every line.
 *
 * `soak.js --minutes 30 --rate 5000` starts a process that writes the log (rotating it as logrotate
 * would) and `limitlens tail` on it with an embedded store, asks the daemon for its metrics all the
 * time, ends it with SIGTERM and asks the store. Exits 1 when a bound is missed.
 *
 * The daemon gets node's own options: `node --cpu-prof … soak.js` shows where its time goes.
 *
 * Lag is the age of the newest line that the replay has taken, read from the daemon's own metric.
 */
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
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openStore } from '../../src/store/store.js';
import { makeCorpus } from '../bench/corpus.js';
import { NGINX_CONF } from '../bench/corpus-site.js';

const OWN = fileURLToPath(import.meta.url);
const CLI = join(dirname(OWN), '../../src/cli.js');
const LOG = 'access.log';
/** As `size 200M, rotate 2` would. */
const ROTATE_BYTES = 200_000_000;
const KEPT = 2;
const SAMPLE_MS = 250;
/** Until then the daemon starts and takes its first state. */
const WARM_UP_MS = 10_000;
const REFERENCE_MINUTE = 5;
/** Of samples around a moment; memory moves with garbage collection. */
const WINDOW_MS = 30_000;
const MOST_GROWTH = 1.1;
const MOST_LAG_P99_S = 2;

interface Sample {
  readonly atMs: number;
  readonly rssBytes: number;
  /** NaN while the daemon does not tell. */
  readonly lagS: number;
  readonly spoolBytes: number;
}

/** Writes the log as time passes. @returns lines written */
async function generate(folder: string, minutes: number, rateRps: number): Promise<number> {
  const path = join(folder, LOG);
  const lines = Math.round(minutes * 60 * rateRps);
  let bytes = 0;
  for (const chunk of makeCorpus({ lines, seed: 1, rateRps, firstMs: Date.now() })) {
    const lastLine = chunk.subarray(chunk.lastIndexOf(0x0a, chunk.length - 2) + 1).toString();
    const endMs = Math.round(Number(/" (\d+\.\d{3}) /.exec(lastLine)?.[1]) * 1000);
    await pause(Math.max(0, endMs - Date.now()));
    appendFileSync(path, chunk);
    bytes += chunk.length;
    if (bytes < ROTATE_BYTES) continue;
    bytes = 0;
    rotate(path);
  }
  return lines;
}

function rotate(path: string): void {
  rmSync(`${path}.${KEPT}`, { force: true });
  for (let n = KEPT - 1; n >= 1; n--) {
    if (existsSync(`${path}.${n}`)) renameSync(`${path}.${n}`, `${path}.${n + 1}`);
  }
  renameSync(path, `${path}.1`);
  writeFileSync(path, '');
}

interface Daemon {
  readonly child: ChildProcess;
  readonly port: number;
}

async function startDaemon(folder: string): Promise<Daemon> {
  writeFileSync(join(folder, 'nginx.conf'), NGINX_CONF);
  writeFileSync(join(folder, LOG), '');
  const args = [
    ...['tail', '--conf', join(folder, 'nginx.conf'), '--store', join(folder, 'store')],
    ...['--listen', '127.0.0.1:0', '--timezone', 'UTC', '--log-format', 'timed'],
    join(folder, LOG),
  ];
  const child = spawn(process.execPath, [...process.execArgv, CLI, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', (code) => {
      reject(new Error(`the daemon ended with ${code}`));
    });
    createInterface({ input: child.stderr }).on('line', (line) => {
      console.log(line);
      const said = /"port":(\d+)/.exec(line)?.[1];
      if (said !== undefined) resolve(Number(said));
    });
  });
  return { child, port };
}

async function sampleOf({ child, port }: Daemon): Promise<Sample> {
  // A connection that is kept may be closed by the daemon just when it is used again.
  const headers = { connection: 'close' };
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`, { headers });
  const text = await answer.text();
  const atMs = Date.now();
  const valueOf = (name: string): number =>
    Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'm').exec(text)?.[1] ?? NaN);
  const status = readFileSync(`/proc/${child.pid}/status`, 'latin1');
  return {
    atMs,
    rssBytes: Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024,
    lagS: atMs / 1000 - valueOf('limitlens_last_event_timestamp_seconds'),
    spoolBytes: valueOf('limitlens_store_pending_bytes'),
  };
}

/** The value below which a share of them lies. */
function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

function rssAt(samples: readonly Sample[], atMs: number): number {
  const near = samples.filter((sample) => sample.atMs > atMs - WINDOW_MS && sample.atMs <= atMs);
  return quantile(
    near.map(({ rssBytes }) => rssBytes),
    0.5,
  );
}

async function storedLines(folder: string): Promise<number> {
  const store = await openStore({ path: join(folder, 'store'), createIfMissing: false });
  const [row] = await store.query<{ lines: number }>(
    "SELECT sum(lines) AS lines FROM line_counts WHERE kind = 'access'",
  );
  await store.close();
  return row!.lines;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`;
}

/** @returns whether all bounds held */
async function soak(folder: string, minutes: number, rate: number): Promise<boolean> {
  const daemon = await startDaemon(folder);
  process.once('exit', () => daemon.child.kill('SIGKILL'));
  const beganMs = Date.now();
  const writer = spawn(
    process.execPath,
    [OWN, '--generate', folder, '--minutes', String(minutes), '--rate', String(rate)],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
  process.once('exit', () => writer.kill('SIGKILL'));
  const written = once(writer, 'exit');
  const samples: Sample[] = [];
  for (let shown = 1; writer.exitCode === null && writer.signalCode === null;) {
    await pause(SAMPLE_MS);
    const sample = await sampleOf(daemon);
    samples.push(sample);
    if (sample.atMs - beganMs < shown * 60_000) continue;
    const { rssBytes, lagS, spoolBytes } = sample;
    console.log(
      `minute ${shown++}: RSS ${mebibytes(rssBytes)}, lag ${lagS.toFixed(2)} s, spool ${spoolBytes} bytes`,
    );
  }
  const [writerCode] = (await written) as [number | null];
  const endedMs = Date.now();
  const exit = once(daemon.child, 'exit');
  daemon.child.kill('SIGTERM');
  const [code] = (await exit) as [number | null];
  const drainS = (Date.now() - endedMs) / 1000;
  const referenceMs = beganMs + Math.min(REFERENCE_MINUTE, minutes / 2) * 60_000;
  const [before, after] = [rssAt(samples, referenceMs), rssAt(samples, endedMs)];
  const lags = samples
    .filter(({ atMs, lagS }) => atMs > beganMs + WARM_UP_MS && !Number.isNaN(lagS))
    .map(({ lagS }) => lagS);
  const lines = Math.round(minutes * 60 * rate);
  const stored = await storedLines(folder);
  const [p50, p99] = [quantile(lags, 0.5), quantile(lags, 0.99)];
  const checks: readonly [string, boolean][] = [
    [
      `RSS at the end ${mebibytes(after)}, at minute ${Math.min(REFERENCE_MINUTE, minutes / 2)} ` +
        `${mebibytes(before)}: ${(after / before).toFixed(2)} times (at most ${MOST_GROWTH})`,
      after <= MOST_GROWTH * before,
    ],
    [
      `lag p50 ${p50.toFixed(2)} s, p99 ${p99.toFixed(2)} s, most ${quantile(lags, 1).toFixed(2)} s ` +
        `(p99 below ${MOST_LAG_P99_S} s)`,
      p99 < MOST_LAG_P99_S,
    ],
    [`${stored} of ${lines} lines stored`, stored === lines],
    [`drained in ${drainS.toFixed(1)} s with exit ${code}`, code === 0 && writerCode === 0],
  ];
  for (const [text, isMet] of checks) console.log(`${isMet ? 'met   ' : 'MISSED'} ${text}`);
  return checks.every(([, isMet]) => isMet);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '30' },
      rate: { type: 'string', default: '5000' },
      generate: { type: 'string' },
    },
  });
  const [minutes, rate] = [Number(values.minutes), Number(values.rate)];
  if (values.generate !== undefined) {
    await generate(values.generate, minutes, rate);
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), 'limitlens-soak-'));
  const isMet = await soak(folder, minutes, rate);
  rmSync(folder, { recursive: true, force: true });
  if (!isMet) process.exitCode = 1;
}

await main();
