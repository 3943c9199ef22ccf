/**
 * A command in a real terminal of the kernel (a pty, by script(1)), and what that terminal shows.
 *
 * Only the sequences that `limitlens top` may use are understood: any other, or a character outside
 * of the screen, is an error. Not here: what the sequences are for (src/top/screen.ts).
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { columnsOf } from '../../src/top/terminal-text.js';
import { requireProgram } from './debian.js';

const SEQUENCE = /^\u001b\[(\??)(\d*)(?:;\d+)*([A-Za-z])/;

/** What has been written, line by line, on the normal screen and on the alternate one. */
export class Shown {
  isAlternate = false;
  /** How often the alternate screen was asked for. */
  alternated = 0;
  hasCursor = true;
  wraps = true;
  /** All that was written to the normal screen. */
  normal = '';
  lines: string[] = [];
  #row = 0;
  #rest = '';

  write(text: string): void {
    let rest = this.#rest + text;
    this.#rest = '';
    while (rest !== '') {
      if (rest.startsWith('\u001b')) {
        const match = SEQUENCE.exec(rest);
        if (match === null) {
          // The end may still be on its way.
          if (rest.length > 20) throw new Error(`unknown: ${JSON.stringify(rest.slice(0, 20))}`);
          this.#rest = rest;
          return;
        }
        this.#act(match[1]! + match[2]! + match[3]!);
        rest = rest.slice(match[0].length);
        continue;
      }
      const end = /[\u001b\n]/.exec(rest)?.index ?? rest.length;
      this.#put(rest.slice(0, end));
      rest = rest.slice(end);
      if (rest.startsWith('\n')) {
        this.#put('\n');
        rest = rest.slice(1);
      }
    }
  }

  #put(text: string): void {
    if (!this.isAlternate) {
      this.normal += text;
    } else if (text === '\n') {
      this.#row++;
      this.lines[this.#row] = '';
    } else {
      this.lines[this.#row] = (this.lines[this.#row] ?? '') + text.replaceAll('\r', '');
    }
  }

  #act(sequence: string): void {
    if (/^\d*m$/.test(sequence)) return;
    if (sequence === '?1049h') {
      this.isAlternate = true;
      this.alternated++;
    } else if (sequence === '?1049l') this.isAlternate = false;
    else if (sequence === '?25h') this.hasCursor = true;
    else if (sequence === '?25l') this.hasCursor = false;
    else if (sequence === '?7h') this.wraps = true;
    else if (sequence === '?7l') this.wraps = false;
    else if (sequence === 'H') {
      this.#row = 0;
      this.lines[0] = '';
    } else if (sequence === 'J') this.lines.length = this.#row + 1;
    else if (sequence !== 'K') throw new Error(`unknown sequence ${sequence}`);
  }
}

export class Terminal {
  readonly shown = new Shown();
  readonly #child: ChildProcess;
  readonly #written = new EventEmitter();
  readonly ended: Promise<number | null>;

  /** @param command for sh, in a terminal of that size */
  constructor(command: string, rows: number, columns: number, env: NodeJS.ProcessEnv) {
    const sized = `tty; stty rows ${rows} cols ${columns}; ${command}`;
    this.#child = spawn(requireProgram('script'), ['-qfec', sized, '/dev/null'], {
      stdio: 'pipe',
      env: { ...process.env, SHELL: '/bin/sh', ...env },
    });
    this.#child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.shown.write(text);
      this.#written.emit('written');
    });
    this.ended = once(this.#child, 'close').then(([code]) => code as number | null);
  }

  /** Waits until the terminal shows what is wanted; a test's own time-out ends it otherwise. */
  async until(isWanted: (shown: Shown) => boolean): Promise<void> {
    while (!isWanted(this.shown)) await once(this.#written, 'written');
  }

  type(keys: string): void {
    this.#child.stdin!.write(keys);
  }

  /** Ends what is left of it, when a test has failed. */
  kill(): void {
    if (this.#child.exitCode === null) this.#child.kill('SIGHUP');
  }

  /** As a window does that is dragged: the kernel tells the process. */
  resize(rows: number, columns: number): void {
    const device = /\/dev\/pts\/\d+/.exec(this.shown.normal)![0];
    const args = ['-F', device, 'rows', String(rows), 'cols', String(columns)];
    const { status, stderr } = spawnSync('stty', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
  }

  /** Whether what it shows is within so many rows and columns. */
  fits(rows: number, columns: number): boolean {
    const { lines } = this.shown;
    return lines.length <= rows && lines.every((line) => columnsOf(line) <= columns);
  }
}
