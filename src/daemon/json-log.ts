/**
 * What the daemon has to say, as JSON lines on standard error, for journald and collectors: `level`,
 * `time` (ISO 8601, UTC), `pid`, the fields, and `message`.
 *
 * Levels by consequence: `warn` is surprising and nothing is lost; `error` is data lost, or a person
 * is needed. Log content can't break a line or a terminal: what JSON leaves as it is and a terminal
 * would act on is escaped as well. The only importer of pino.
 */
import { pino, type Logger } from 'pino';

export type LogLevel = 'info' | 'warn' | 'error';

type Fields = Readonly<Record<string, unknown>>;

/** C1 controls, signs of direction and of no width: JSON strings may hold them, terminals obey. */
const ACTIVE = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export class JsonLog {
  readonly #logger: Logger;

  /** @param stream written to synchronously, so that the last line before an exit is there */
  constructor(stream: NodeJS.WritableStream, level: LogLevel = 'info') {
    const harmless = {
      write: (line: string): void => {
        stream.write(line.replace(ACTIVE, escaped));
      },
    };
    this.#logger = pino(
      {
        level,
        base: { pid: process.pid },
        messageKey: 'message',
        timestamp: pino.stdTimeFunctions.isoTime,
        formatters: { level: (label) => ({ level: label }) },
      },
      harmless,
    );
  }

  info(message: string, fields: Fields = {}): void {
    this.#logger.info(fields, message);
  }

  warn(message: string, fields: Fields = {}): void {
    this.#logger.warn(fields, message);
  }

  error(message: string, fields: Fields = {}): void {
    this.#logger.error(fields, message);
  }
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
