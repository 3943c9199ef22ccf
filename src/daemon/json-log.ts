/**
 * What the daemon has to say, as JSON lines on standard error, for journald and collectors.
 *
 * JSON escapes control characters, so log content can't break a terminal or a line.
 */
export type LogLevel = 'info' | 'warn' | 'error';

export class JsonLog {
  readonly #stream: NodeJS.WritableStream;

  constructor(stream: NodeJS.WritableStream) {
    this.#stream = stream;
  }

  info(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#write('info', message, fields);
  }

  warn(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#write('warn', message, fields);
  }

  error(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#write('error', message, fields);
  }

  #write(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>): void {
    const line = { time: new Date().toISOString(), level, message, pid: process.pid, ...fields };
    this.#stream.write(`${JSON.stringify(line)}\n`);
  }
}
