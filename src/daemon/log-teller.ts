/**
 * Tells what the logs are that a daemon is to follow: by the configuration, else by their content.
 *
 * A log can come with nothing in it, or with too little to tell; then it is looked at again when it
 * has grown. A file that is no log of nginx's, or holds the same requests as another one, is not
 * followed, and that is said once.
 *
 * Not here: looking for files, reading lines.
 */
import { compileLogFormat, type LineScanner } from '../../parsers/access/line-scanner.js';
import { matchesGlob } from '../../parsers/conf/glob.js';
import type { NginxConf } from '../../parsers/conf/model.js';
import { EXIT, InputError } from '../errors.js';
import { readHead, SAMPLE_BYTES, type LogHead } from '../input/head.js';
import {
  candidateFormats,
  identify,
  rotationStem,
  withoutTwins,
  type AccessFile,
} from '../pipeline/log-files.js';
import { AccessFields } from '../replay/access-fields.js';
import { accessLog, type AccessLog, type TailLog } from './tail-log.js';

/** Why a file is not followed. */
export interface LeftOutLog {
  readonly path: string;
  readonly reason: string;
}

export interface TellerOptions {
  readonly confs: readonly NginxConf[];
  /** --log-format. */
  readonly forced?: LineScanner | undefined;
  /** Logs that hold the same requests are followed all the same. */
  readonly allLogs: boolean;
  /** Paths and patterns of which the user said that they are error logs. */
  readonly errorPatterns: readonly string[];
}

export class LogTeller {
  readonly #options: TellerOptions;
  readonly #conf: NginxConf;
  readonly #candidates: readonly LineScanner[];
  readonly #leftOut = new Set<string>();
  /** Length of those that did not tell when they were looked at. */
  readonly #lookedAtBytes = new Map<string, number>();
  /** Told when a file is first found to be no log that can be read, and when that is final. */
  onLeftOut: (log: LeftOutLog) => void = () => undefined;

  constructor(options: TellerOptions) {
    this.#options = options;
    this.#conf = options.confs[options.confs.length - 1]!;
    this.#candidates = candidateFormats(options.confs);
  }

  /**
   * What a log is.
   *
   * @param followed what it may hold the same requests as
   * @returns undefined when it is not followed, or not yet
   */
  async tell(path: string, followed: readonly TailLog[]): Promise<TailLog | undefined> {
    if (this.#leftOut.has(path)) return undefined;
    const told = this.byConfiguration(path) ?? (await this.#byContent(path));
    if (told?.kind !== 'access') return told;
    if (!new AccessFields(told.file.scanner).hasTime) {
      this.#leaveOut(path, `log_format "${told.file.scanner.format.name}" has no time: log $msec`);
      return undefined;
    }
    const twin = this.twinOf(told, followed);
    if (twin === undefined) return told;
    this.#leaveOut(path, `holds the same requests as ${twin.path}`);
    return undefined;
  }

  /** A followed log that holds the same requests, where the configuration writes one to several. */
  twinOf(log: AccessLog, followed: readonly TailLog[]): AccessLog | undefined {
    if (this.#options.allLogs) return undefined;
    return followed.find((other): other is AccessLog => {
      if (other.kind !== 'access' || other.path === log.path) return false;
      return withoutTwins([log.file, other.file], this.#options.confs).leftOut.length > 0;
    });
  }

  /** What the configuration tells of a path; undefined when it does not name it, or not clearly. */
  byConfiguration(path: string): TailLog | undefined {
    const conf = this.#conf;
    if (conf.errorLogs.some((target) => target.path === path)) {
      return { kind: 'error', path, isPrefixed: false };
    }
    const exact = conf.accessLogs.filter((target) => target.path === path);
    const stem = rotationStem(path);
    const alike = conf.accessLogs.filter((target) => rotationStem(target.path) === stem);
    const targets = exact.length > 0 ? exact : alike;
    const [target] = targets;
    if (target === undefined) return undefined;
    const format = conf.logFormats.get(target.format);
    const isOne = targets.every((t) => t.path === target.path && t.format === target.format);
    if (format === undefined || !isOne) return undefined;
    const scanner = this.#options.forced ?? compileLogFormat(format);
    return accessLog(path, false, { scanner, target: target.path, servers: this.#writers(target) });
  }

  async #byContent(path: string): Promise<TailLog | undefined> {
    const { confs, forced, errorPatterns } = this.#options;
    const isError = errorPatterns.some((pattern) => matchesGlob(pattern, path));
    const isFirst = !this.#lookedAtBytes.has(path);
    const head = await this.#headOf(path);
    if (isError) {
      const told = head && identify(head, confs, [], undefined, 'error');
      return { kind: 'error', path, isPrefixed: told?.kind === 'error' && told.isPrefixed };
    }
    if (head === undefined) return undefined;
    try {
      const told = identify(head, confs, this.#candidates, forced);
      if (told.kind === 'empty') return undefined;
      if (told.kind === 'access') return accessLog(path, told.isPrefixed, told);
      const mixed = told.isPrefixed ? this.#mixedFormat() : undefined;
      return mixed === undefined
        ? { kind: 'error', path, isPrefixed: told.isPrefixed }
        : accessLog(path, true, mixed);
    } catch (error) {
      if (!(error instanceof InputError) || error.exitCode !== EXIT.badLines) throw error;
      const isFinal = head.isGzip || head.sample.length >= SAMPLE_BYTES;
      if (isFinal) this.exclude(path);
      if (isFinal || isFirst) this.onLeftOut({ path, reason: error.message });
      return undefined;
    }
  }

  /** The beginning of a file, if it has one that was not looked at before. */
  async #headOf(path: string): Promise<LogHead | undefined> {
    const head = await readHead(path).catch((error: unknown) => {
      // Whoever follows it meets the same and tells of it.
      if (error instanceof InputError) return undefined;
      throw error;
    });
    if (head === undefined || head.sizeBytes === this.#lookedAtBytes.get(path)) return undefined;
    this.#lookedAtBytes.set(path, head.sizeBytes);
    return head.sizeBytes === 0 ? undefined : head;
  }

  /** A container's stream may begin with error lines: the format of the access lines to come. */
  #mixedFormat(): Pick<AccessFile, 'scanner' | 'servers' | 'target'> | undefined {
    const formats = formatsInUse(this.#conf, () => true);
    return this.#options.forced === undefined && formats.length === 1 ? formats[0] : undefined;
  }

  #writers(target: { readonly path: string }): string[] {
    return writersOf(this.#conf, ({ path }) => path === target.path);
  }

  /** Has been decided against already. */
  exclude(path: string): void {
    this.#leftOut.add(path);
  }

  #leaveOut(path: string, reason: string): void {
    this.#leftOut.add(path);
    this.onLeftOut({ path, reason });
  }
}

type Target = NginxConf['accessLogs'][number];

/** The primary names of the servers that write to some access logs. */
function writersOf(conf: NginxConf, isOne: (target: Target) => boolean): string[] {
  const writing = conf.ruleSets.filter((rules) => rules.accessLogs.some(isOne));
  return [...new Set(writing.map((rules) => rules.serverName))];
}

/** The formats that some access logs of a configuration are written in, each with its writers. */
export function formatsInUse(
  conf: NginxConf,
  isOne: (target: Target) => boolean,
): Pick<AccessFile, 'scanner' | 'servers' | 'target'>[] {
  const targets = new Map<string, Target[]>();
  for (const target of conf.accessLogs.filter(isOne)) {
    const format = conf.logFormats.get(target.format);
    if (format === undefined) continue;
    const key = `${format.escape}:${format.text}`;
    targets.set(key, [...(targets.get(key) ?? []), target]);
  }
  return [...targets.values()].map((alike) => {
    const paths = new Set(alike.map(({ path }) => path));
    return {
      scanner: compileLogFormat(conf.logFormats.get(alike[0]!.format)!),
      servers: writersOf(conf, ({ path }) => paths.has(path)),
      target: paths.size === 1 ? alike[0]!.path : null,
    };
  });
}
