/**
 * The terminal while `limitlens top` has it: the alternate screen, keys as they are pressed, its size
 * as it changes; given back as it was, whatever ends the process short of SIGKILL.
 *
 * Sequences are those of ECMA-48 and xterm that every terminal of the last decades knows. A frame is
 * written over the one before, line by line, so that nothing flickers.
 */
import type { ReadStream, WriteStream } from 'node:tty';

const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[0m\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const TO_END_OF_LINE = '\u001b[K';
const TO_END_OF_SCREEN = '\u001b[J';
const CTRL_Z = '\u001a';
/** By then a process that can be stopped is; its clocks go on when it does. */
const STOPPED_WITHIN_MS = 200;
const UNKNOWN_SIZE = { columns: 80, rows: 24 } as const;

export interface ScreenEvents {
  /** A key, as the terminal sends it. */
  onKey(key: string): void;
  /** The frame has to be drawn again: another size, or back from a pause by Ctrl-Z. */
  onRedraw(): void;
  /** The terminal is gone, or the process was told to end. */
  onEnd(): void;
}

export class Screen {
  readonly #input: ReadStream;
  readonly #output: WriteStream;
  readonly #events: ScreenEvents;
  #isOpen = false;
  #isOver = false;

  constructor(input: ReadStream, output: WriteStream, events: ScreenEvents) {
    this.#input = input;
    this.#output = output;
    this.#events = events;
  }

  get size(): { readonly columns: number; readonly rows: number } {
    const { columns, rows } = this.#output;
    return columns > 0 && rows > 0 ? { columns, rows } : UNKNOWN_SIZE;
  }

  open(): void {
    this.#enter();
    this.#output.on('resize', this.#redraw);
    this.#output.on('error', this.#end);
    if (this.#input.isTTY) {
      this.#input.setEncoding('utf8');
      this.#input.on('data', this.#read);
      this.#input.on('error', this.#end);
      this.#input.on('end', this.#end);
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, this.#end);
    process.on('exit', this.#leave);
  }

  /** Gives the terminal back. */
  close(): void {
    this.#isOver = true;
    this.#leave();
    this.#output.off('resize', this.#redraw);
    this.#input.off('data', this.#read);
    this.#input.off('error', this.#end);
    this.#input.off('end', this.#end);
    this.#input.pause();
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, this.#end);
    process.off('exit', this.#leave);
  }

  /** @param lines no wider than the screen, and no more than its rows */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const text = lines.map((line) => line + TO_END_OF_LINE).join('\r\n');
    this.#output.write(HOME + text + TO_END_OF_SCREEN);
  }

  #enter(): void {
    this.#isOpen = true;
    if (this.#input.isTTY) this.#input.setRawMode(true);
    this.#output.write(ENTER);
  }

  readonly #leave = (): void => {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    // A terminal that is gone has nothing to be given back.
    try {
      if (this.#input.isTTY) this.#input.setRawMode(false);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    }
    this.#output.write(LEAVE);
  };

  readonly #redraw = (): void => {
    this.#events.onRedraw();
  };

  readonly #end = (): void => {
    this.#events.onEnd();
  };

  readonly #read = (text: string): void => {
    for (const key of text) {
      if (key === CTRL_Z) this.#goBehind();
      else this.#events.onKey(key);
    }
  };

  /**
   * In raw mode the terminal sends no SIGTSTP: the shell gets its terminal back by our hand. Where
   * there is no shell to go back to, the kernel does not stop the process, and it comes back at once.
   */
  #goBehind(): void {
    this.#leave();
    process.kill(process.pid, 'SIGTSTP');
    setTimeout(() => {
      if (this.#isOver || this.#isOpen) return;
      this.#enter();
      this.#events.onRedraw();
    }, STOPPED_WITHIN_MS);
  }
}
