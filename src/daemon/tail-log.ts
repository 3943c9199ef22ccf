/**
 * How the lines of one log are read, and the list of all logs that a daemon reads.
 *
 * What a log is, once it was told by its content, is kept in the state: what it holds later must not
 * make it another one. Not here: telling (log-teller.ts), following (tail-reader.ts).
 */
import type { LogFormat } from '../../parsers/access/format-text.js';
import { compileLogFormat } from '../../parsers/access/line-scanner.js';
import type { AccessFile } from '../pipeline/log-files.js';

export interface ErrorLog {
  readonly kind: 'error';
  /** Of a file; else the name of standard input or a socket, with what comes through it. */
  readonly path: string;
  readonly isPrefixed: boolean;
}

export interface AccessLog {
  readonly kind: 'access';
  readonly path: string;
  readonly isPrefixed: boolean;
  readonly file: AccessFile;
}

export type TailLog = ErrorLog | AccessLog;

/** A log as plain JSON. */
export interface ToldLog {
  readonly path: string;
  readonly isPrefixed: boolean;
  /** null for an error log. */
  readonly format: LogFormat | null;
  readonly servers: readonly string[] | null;
  readonly target: string | null;
}

export function accessLog(
  path: string,
  isPrefixed: boolean,
  file: Pick<AccessFile, 'scanner' | 'servers' | 'target'>,
): AccessLog {
  const { scanner, servers, target } = file;
  const head = { path, isGzip: false, sizeBytes: 0, sample: new Uint8Array(0) };
  const common = { kind: 'access', isPrefixed } as const;
  return { ...common, path, file: { ...common, head, scanner, servers, target } };
}

export function toldOf(log: TailLog): ToldLog {
  const { path, isPrefixed } = log;
  if (log.kind === 'error') {
    return { path, isPrefixed, format: null, servers: null, target: null };
  }
  const { scanner, servers, target } = log.file;
  const { name, escape, text } = scanner.format;
  return { path, isPrefixed, format: { name, escape, text }, servers, target };
}

export function logOf(told: ToldLog): TailLog {
  const { path, isPrefixed, format, servers, target } = told;
  if (format === null) return { kind: 'error', path, isPrefixed };
  return accessLog(path, isPrefixed, { scanner: compileLogFormat(format), servers, target });
}

/** All logs that lines have come or may come from. */
export class LogList {
  readonly #logs = new Map<string, { readonly log: TailLog; readonly number: number }>();
  /** How many were there from the start, in the order of the configuration. */
  readonly #firstCount: number;
  #nextNumber = 0;

  constructor(first: readonly TailLog[]) {
    for (const log of first) this.add(log);
    this.#firstCount = this.#logs.size;
  }

  get(path: string): TailLog | undefined {
    return this.#logs.get(path)?.log;
  }

  /** Tells the logs apart, for copies of one line. */
  numberOf(path: string): number {
    return this.#logs.get(path)?.number ?? -1;
  }

  add(log: TailLog): void {
    if (!this.#logs.has(log.path)) this.#logs.set(log.path, { log, number: this.#nextNumber++ });
  }

  remove(path: string): void {
    this.#logs.delete(path);
  }

  get all(): readonly TailLog[] {
    return [...this.#logs.values()].map(({ log }) => log);
  }

  /** Error logs first; those that came later by their names, so that when they came is no matter. */
  get inOrder(): readonly TailLog[] {
    const rank = (number: number): number => Math.min(number, this.#firstCount);
    return [...this.#logs.values()]
      .sort(
        (a, b) =>
          Number(a.log.kind === 'access') - Number(b.log.kind === 'access') ||
          rank(a.number) - rank(b.number) ||
          (a.log.path < b.log.path ? -1 : 1),
      )
      .map(({ log }) => log);
  }
}
