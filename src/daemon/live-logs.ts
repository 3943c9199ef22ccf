/**
 * Standard input and nginx's syslog as logs: their lines told apart and put into queues.
 *
 * One stream can hold an error log and access logs of several formats. Error lines and each format
 * have a queue of their own, so that each is read as a file of it would be. Prefixes of containers
 * are taken off. Lines come once: what was taken since the last commit is gone with a process that
 * is killed, so a line is handed on only by a step after the one that stored it (line-queue.ts).
 *
 * Not here: receiving (../input/live-lines.ts, ../input/syslog.ts).
 */
import type { LineScanner } from '../../parsers/access/line-scanner.js';
import type { NginxConf } from '../../parsers/conf/model.js';
import { PrefixStripper } from '../../parsers/prefix.js';
import type { LiveInput } from '../input/live-lines.js';
import { candidateFormats, isErrorLine, type AccessFile } from '../pipeline/log-files.js';
import { formatsInUse } from './log-teller.js';
import { accessLog, type AccessLog, type ErrorLog, type TailLog } from './tail-log.js';

const SYSLOG = /^syslog:server=([^,]+)/;

/** What is expected through one live input, before any line has come. */
export interface LivePlan {
  /** `stdin`, `syslog:127.0.0.1:5514`. */
  readonly name: string;
  readonly errors: ErrorLog;
  readonly access: readonly AccessLog[];
  /** The configuration sends an error log there. */
  readonly hasErrorLog: boolean;
  readonly input: LiveRequest;
}

export type LiveRequest =
  { readonly kind: 'stdin' } | { readonly kind: 'syslog'; readonly text: string };

/** The formats that a configuration's access logs are sent in, to syslog or anywhere. */
export function planLive(
  input: LiveRequest,
  conf: NginxConf,
  forced: LineScanner | undefined,
): LivePlan {
  const name = input.kind === 'stdin' ? 'stdin' : `syslog:${input.text}`;
  const isSent = ({ path }: { readonly path: string }): boolean => SYSLOG.test(path);
  const sent = input.kind === 'syslog' ? formatsInUse(conf, isSent) : [];
  const inUse = sent.length > 0 ? sent : formatsInUse(conf, () => true);
  const files = forced === undefined ? inUse : [{ scanner: forced, servers: null, target: null }];
  return {
    name,
    errors: { kind: 'error', path: `${name} error`, isPrefixed: false },
    access: files.map((file) => liveAccess(name, file)),
    hasErrorLog: input.kind === 'syslog' && conf.errorLogs.some(isSent),
    input,
  };
}

function liveAccess(
  name: string,
  file: Pick<AccessFile, 'scanner' | 'servers' | 'target'>,
): AccessLog {
  return accessLog(`${name} ${file.scanner.format.name}`, false, file);
}

/** Where a configuration sends logs by syslog: `127.0.0.1:514`, `unix:/run/x.sock`. */
export function syslogServers(conf: NginxConf): string[] {
  const paths = [...conf.accessLogs, ...conf.errorLogs].map(({ path }) => path);
  return [...new Set(paths.flatMap((path) => SYSLOG.exec(path)?.[1] ?? []))];
}

export interface LiveCallbacks {
  /** A log of a format that was not expected; false when it is not to be read. */
  readonly onLog: (log: AccessLog) => boolean;
  readonly onLine: (log: TailLog, bytes: Uint8Array, start: number, end: number) => void;
}

interface Channel {
  readonly scanner: LineScanner;
  /** null where another log holds the same requests. */
  readonly log: AccessLog | null;
}

export class LiveLogs {
  readonly plan: LivePlan;
  readonly input: LiveInput;
  readonly #callbacks: LiveCallbacks;
  readonly #stripper = new PrefixStripper();
  readonly #others: readonly LineScanner[];
  readonly #access: Channel[];

  /** @param leftOut those of the plan whose requests another log holds */
  constructor(
    plan: LivePlan,
    input: LiveInput,
    confs: readonly NginxConf[],
    leftOut: readonly AccessLog[],
    callbacks: LiveCallbacks,
  ) {
    this.plan = plan;
    this.input = input;
    this.#callbacks = callbacks;
    this.#others = candidateFormats(confs);
    this.#access = plan.access.map((log) => ({
      scanner: log.file.scanner,
      log: leftOut.includes(log) ? null : log,
    }));
  }

  /** Puts what has been received into queues. @returns how many lines */
  take(): number {
    let lines = 0;
    this.input.take((bytes, start, end) => {
      const text = Buffer.from(bytes.subarray(start, end)).toString('latin1');
      const bare = this.#stripper.push(text);
      if (bare === undefined || bare === '') return;
      lines++;
      if (bare === text) this.#route(bytes, start, end);
      else this.#route(Buffer.from(bare, 'latin1'), 0, bare.length);
    });
    return lines;
  }

  #route(bytes: Uint8Array, start: number, end: number): void {
    const { onLine } = this.#callbacks;
    if (isErrorLine(bytes, start)) {
      onLine(this.plan.errors, bytes, start, end);
      return;
    }
    const found =
      this.#access.find(({ scanner }) => scanner.scan(bytes, start, end) < 0) ??
      this.#unexpected(bytes, start, end);
    // What fits nothing is counted where it is nearest.
    const log = found === undefined ? (this.#access[0]?.log ?? this.plan.errors) : found.log;
    if (log !== null) onLine(log, bytes, start, end);
  }

  #unexpected(bytes: Uint8Array, start: number, end: number): Channel | undefined {
    const scanner = this.#others.find((other) => other.scan(bytes, start, end) < 0);
    if (scanner === undefined) return undefined;
    const log = liveAccess(this.plan.name, { scanner, servers: null, target: null });
    const entry = { scanner, log: this.#callbacks.onLog(log) ? log : null };
    this.#access.push(entry);
    return entry;
  }
}
