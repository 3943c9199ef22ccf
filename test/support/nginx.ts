/**
 * A real nginx for one test: started in a directory of its own, watched through its own notices.
 *
 * nginx also logs its notices to standard error, which is a pipe to this process: "start worker
 * process" comes after the sockets listen, "reopening logs" before a worker's next request,
 * "exited with code 0" when an old worker has gone. Waiting for those lines needs no sleep.
 *
 * Not here: sending requests (traffic.ts) and reading the debug log (debug-truth.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { requireProgram } from './debian.js';
import { pickPorts } from './ports.js';
import { type Cleanup, makeTempDir } from './temp-dir.js';

export interface NginxOptions {
  /** How many free loopback ports the configuration needs, or which; one free port by default. */
  readonly ports?: number | readonly number[];
  /** 1 by default. */
  readonly workers?: number;
  /**
   * The inside of `http { … }`. `dir` is nginx's prefix, so that `access_log access.log fmt;` and
   * `root html;` name files in it.
   */
  readonly http: (ports: readonly number[], dir: string) => string;
}

export interface ReloadResult {
  /** False when nginx refused the new configuration and went on with the old one. */
  readonly ok: boolean;
  /** The [emerg] line, when refused. */
  readonly reason: string;
}

interface Watch {
  readonly seen: Promise<string>;
  readonly stop: () => void;
}

const START_ATTEMPTS = 5;

/**
 * Starts nginx and waits until it listens; stops it when the test ends.
 *
 * Files in `dir`: nginx.conf, error.log (notice), debug.log (debug), and whatever the
 * configuration logs to.
 *
 * @throws Error with nginx's own words when it refuses the configuration
 */
export async function startNginx(t: Cleanup, options: NginxOptions): Promise<Nginx> {
  const dir = makeTempDir(t);
  mkdirSync(join(dir, 'html'));
  for (let attempt = 1; ; attempt += 1) {
    const wanted = options.ports ?? 1;
    const ports = typeof wanted === 'number' ? await pickPorts(wanted) : wanted;
    const workers = options.workers ?? 1;
    writeFileSync(join(dir, 'nginx.conf'), completeConf(options.http(ports, dir), workers));
    const nginx = new Nginx(dir, ports, workers);
    const refusal = await nginx.untilListening();
    if (refusal === '') {
      t.after(() => nginx.stop());
      return nginx;
    }
    // Another process may have taken a port since it was picked.
    if (!refusal.includes('Address already in use') || attempt === START_ATTEMPTS) {
      throw new Error(`nginx did not start: ${refusal}`);
    }
  }
}

/** The whole nginx.conf around the inside of an http block. Paths are relative to the prefix. */
export function completeConf(http: string, workers: number): string {
  // Started by root, workers would become "nobody" and could not enter the test's directory.
  const user = process.getuid?.() === 0 ? 'user root;\n' : '';
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `  ${name}_temp_path temp_${name};`)
    .join('\n');
  return `${user}daemon off;
worker_processes ${workers};
pid nginx.pid;
error_log error.log notice;
error_log debug.log debug;
error_log stderr notice;
events { worker_connections 512; accept_mutex off; }
http {
${temp}
${http}
}
`;
}

/** A running nginx. Made by startNginx(). */
export class Nginx {
  readonly dir: string;
  readonly ports: readonly number[];
  readonly #workers: number;
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  readonly #watching = new Set<(line: string) => void>();
  readonly #killAtExit = (): void => void this.#child.kill('SIGTERM');

  constructor(dir: string, ports: readonly number[], workers: number) {
    this.dir = dir;
    this.ports = ports;
    this.#workers = workers;
    // -e: without it nginx complains that it cannot write to /var/log before it reads error_log.
    const args = ['-p', dir, '-c', 'nginx.conf', '-e', 'error.log'];
    const child = spawn(requireProgram('nginx'), args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    // close, not exit: only then has everything been read that nginx said.
    this.#closed = once(child, 'close');
    process.once('exit', this.#killAtExit);
    createInterface({ input: child.stderr }).on('line', (line) => {
      for (const seen of [...this.#watching]) seen(line);
    });
  }

  /** The first port, which is the only one by default. */
  get port(): number {
    return this.ports[0]!;
  }

  /** The path of a file in nginx's directory. */
  path(name: string): string {
    return join(this.dir, name);
  }

  /** Resolves to '' when all workers have been started, else to the reason why nginx gave up. */
  async untilListening(): Promise<string> {
    const refused = this.#watch('[emerg]', 1);
    const started = this.#watch('start worker process ', this.#workers);
    let reason = 'no reason given';
    void refused.seen.then((line) => (reason = line));
    const refusal = await Promise.race([
      started.seen.then(() => ''),
      this.#closed.then(() => reason),
    ]);
    refused.stop();
    started.stop();
    return refusal;
  }

  /**
   * Reloads nginx.conf (SIGHUP), replaced by `http` when given, and waits until new workers serve
   * and the old ones have gone, or until nginx has refused it.
   */
  async reload(http?: string): Promise<ReloadResult> {
    if (http !== undefined) {
      writeFileSync(this.path('nginx.conf'), completeConf(http, this.#workers));
    }
    const refused = this.#watch('[emerg]', 1);
    const started = this.#watch('start worker process ', this.#workers);
    const oldGone = this.#watch('exited with code 0', this.#workers);
    this.#child.kill('SIGHUP');
    const result = await Promise.race([
      refused.seen.then((line) => ({ ok: false, reason: line })),
      Promise.all([started.seen, oldGone.seen]).then(() => ({ ok: true, reason: '' })),
    ]);
    for (const watch of [refused, started, oldGone]) watch.stop();
    return result;
  }

  /** Reopens the log files (SIGUSR1); the master and each worker say so before they go on. */
  async reopen(): Promise<void> {
    const reopened = this.#watch('reopening logs', 1 + this.#workers);
    this.#child.kill('SIGUSR1');
    await reopened.seen;
  }

  /** Lets running requests finish (SIGQUIT) and waits for the end. Twice does no harm. */
  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGQUIT');
    }
    await this.#closed;
    process.removeListener('exit', this.#killAtExit);
  }

  /** Waits for `count` lines from now on that contain `text`; `seen` resolves to the last. */
  #watch(text: string, count: number): Watch {
    let onLine: (line: string) => void = () => undefined;
    const stop = (): void => void this.#watching.delete(onLine);
    const seen = new Promise<string>((resolve) => {
      let left = count;
      onLine = (line) => {
        if (!line.includes(text)) return;
        left -= 1;
        if (left > 0) return;
        stop();
        resolve(line);
      };
    });
    this.#watching.add(onLine);
    return { seen, stop };
  }
}
