/**
 * `limitlens tail` as a process: what it says on standard error, awaited line by line.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { startCli, type CliOptions } from './cli.js';
import type { Cleanup } from './temp-dir.js';

export interface Said {
  readonly level: string;
  readonly message: string;
  readonly port?: number;
  readonly url?: string;
  readonly clickhouse?: string;
}

export class Daemon {
  readonly child: ChildProcess;
  readonly said: Said[] = [];
  readonly #exit: Promise<unknown[]>;

  /** Listens on a free port, and is killed when the test ends. */
  constructor(t: Cleanup, args: readonly string[], options: CliOptions = {}) {
    const common = ['tail', '--listen', '127.0.0.1:0', '--commit-interval', '50ms'];
    this.child = startCli([...common, ...args], options);
    this.#exit = once(this.child, 'exit');
    t.after(() => void this.child.kill('SIGKILL'));
    createInterface({ input: this.child.stderr! }).on('line', (line) => {
      this.said.push(toSaid(line));
      this.child.emit('said');
    });
    this.child.once('exit', () => this.child.emit('said'));
  }

  /** The first line with this message. @throws Error when it ends without having said it */
  async hears(message: string): Promise<Said> {
    for (;;) {
      const found = this.said.find((said) => said.message === message);
      if (found !== undefined) return found;
      if (this.child.exitCode !== null || this.child.signalCode !== null) {
        throw new Error(`the daemon ended; it said ${JSON.stringify(this.said)}`);
      }
      await once(this.child, 'said');
    }
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<unknown> {
    this.child.kill(signal);
    return (await this.#exit)[0];
  }
}

/** Errors that end it are no JSON. */
function toSaid(line: string): Said {
  try {
    const { msg, ...rest } = JSON.parse(line) as Said & { msg?: string };
    return msg === undefined ? rest : { ...rest, message: msg };
  } catch {
    return { level: 'text', message: line };
  }
}
