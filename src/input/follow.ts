/**
 * Follows one log through all that happens to log files.
 *
 * Each poll looks at what lies under the path, then reads every open source, the oldest first: so
 * lines come in the order in which they were written. A renamed or removed file is read on through
 * its descriptor until its successor has lines and it has been still for the grace period, for
 * nginx writes on into it until USR1. A file that was cut in place is a new source; the rest of the
 * old one is looked for in the copy that copytruncate made. After downtime, or several rotations
 * between two polls, the rotated files that are newer than the newest one known are read in order.
 *
 * What copytruncate loses is lost: lines written between its copy and its cut that no poll read.
 *
 * Units: bytes, epoch milliseconds. Not here: when to poll (watch.ts), patterns (follow-set.ts),
 * an `access_log … gzip`, which nginx compresses as it writes.
 */
import { realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { whyUnreadable } from './file-lines.js';
import { codeOf, openContent, type LogContent } from './follow-content.js';
import { KnownLogs, newestMs } from './follow-known.js';
import { remembered, SourceList } from './follow-list.js';
import { matchFiles, type FoundLog, type FoundLogs } from './follow-match.js';
import {
  isSameFile,
  noCounts,
  withNumber,
  type FollowCounters,
  type FilePlace,
  type FollowNotice,
  type LogProgress,
  type OnLine,
} from './follow-progress.js';
import type { FollowOptions, PollLimits } from './follow-options.js';
import { listRotated } from './follow-rotated.js';
import {
  FollowedSource,
  ReadBuffer,
  ReadError,
  type ReadAllowance,
  type ReadEnd,
} from './follow-source.js';

const DEFAULT_GRACE_MS = 30_000;

export class FollowedLog {
  readonly path: string;
  readonly counters: FollowCounters = noCounts();
  readonly #clock: () => number;
  readonly #graceMs: number;
  readonly #onNotice: (notice: FollowNotice) => void;
  readonly #buffer: ReadBuffer;
  readonly #withRotated: boolean;
  readonly #known: KnownLogs;
  readonly #sources = new SourceList();
  /** The source under the path, or the last that was there. */
  #current: FollowedSource | undefined;
  /** While nothing is known, rotated files that are no newer than this are not ours. */
  #sinceMs: number | undefined;
  #problem: string | undefined;
  #isMissing = false;
  #isUnderPath = false;
  #folder: string;

  constructor(path: string, options: FollowOptions = {}) {
    this.path = path;
    this.#clock = options.clock ?? Date.now;
    this.#graceMs = options.graceMs ?? DEFAULT_GRACE_MS;
    this.#onNotice = options.onNotice ?? (() => undefined);
    this.#buffer = options.buffer ?? new ReadBuffer();
    this.#withRotated = options.withRotated ?? false;
    this.#known = new KnownLogs(options.known ?? []);
    this.#folder = dirname(path);
  }

  /** Folders whose changes are worth a poll: the path's, and that which a symbolic link leads to. */
  get folders(): readonly string[] {
    return [...new Set([dirname(this.path), this.#folder])];
  }

  /** Why the log cannot be read at present; undefined when it can, or is merely not there. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Nothing is there, and nothing is held open any more. */
  get isGone(): boolean {
    return this.#isMissing && this.#sources.all.length === 0;
  }

  /** Bytes seen by the last poll and not given yet. */
  get lagBytes(): number {
    return this.#sources.lagBytes;
  }

  /** How far every source has been read; finished ones too, to be recognised later. */
  progress(): LogProgress[] {
    return [...this.#known.progress(), ...this.#sources.progress()];
  }

  /**
   * Gives the lines that are there. What the file system refuses is a notice and a problem, and
   * tried again at the next poll.
   *
   * @returns whether it gave any, or stopped at mostBytes: then poll again, else wait to be woken
   */
  async poll(onLine: OnLine, limits: PollLimits = {}): Promise<boolean> {
    const allowance: ReadAllowance = {
      bytes: limits.mostBytes ?? Infinity,
      upTo: limits.upTo ?? (() => Infinity),
    };
    await this.#findOut();
    // What lines have come from is read first: other files are compared with what it holds now.
    const begun = await this.#readAll(onLine, allowance, false);
    if (begun === 'spent') return true;
    await this.#lookAtPath();
    const all = await this.#readAll(onLine, allowance, true);
    if (all === 'spent') return true;
    await this.#closeDrained();
    return begun || all;
  }

  async close(): Promise<void> {
    for (const source of [...this.#sources.all]) await this.#drop(source);
    this.#current = undefined;
  }

  /** @returns whether there were lines; spent when the allowance did not do */
  async #readAll(
    onLine: OnLine,
    allowance: ReadAllowance,
    withNew: boolean,
  ): Promise<boolean | 'spent'> {
    let hasLines = false;
    const compared = new Set<FollowedSource>();
    await this.#lookAtSources();
    for (let i = 0; i < this.#sources.all.length; i++) {
      const source = this.#sources.all[i]!;
      if (!withNew && source.offset === 0) continue;
      if (this.#mayHideOthers(source) && !compared.has(source)) {
        compared.add(source);
        await this.#openBefore(source);
        i = -1;
        continue;
      }
      const before = source.offset;
      const end = await this.#read(source, allowance, onLine);
      if (source.offset > before) {
        hasLines = true;
        source.activeMs = this.#clock();
      }
      if (end === 'spent') return 'spent';
      if (end === 'truncated') await this.#beginAnew(source);
      // Other sources stand in the list now.
      if (end === 'truncated') i = -1;
      if (end === 'failed') i--;
    }
    return hasLines;
  }

  /** The newest first: a line seen in it was written after what is then seen in the older ones. */
  async #lookAtSources(): Promise<void> {
    for (const source of this.#sources.all.toReversed()) {
      await source.look().catch((error: unknown) => this.#fail(source, error));
    }
  }

  async #read(
    source: FollowedSource,
    allowance: ReadAllowance,
    onLine: OnLine,
  ): Promise<ReadEnd | 'failed'> {
    try {
      return await source.read(this.#buffer, allowance, onLine);
    } catch (error) {
      // What the receiver of the lines throws is none of ours.
      if (!(error instanceof ReadError)) throw error;
      await this.#fail(source, error.cause);
      return 'failed';
    }
  }

  /** Lets go of a source that cannot be read, to look for it again; damaged gzip stays as it is. */
  async #fail(source: FollowedSource, error: unknown): Promise<void> {
    const code = codeOf(error);
    this.counters.readErrors++;
    const known = source.progress();
    if (code.startsWith('Z_')) {
      this.counters.lostLogs++;
      this.#tell('lost', `the gzip data is damaged after ${source.offset} bytes of content`);
      if (known !== undefined) this.#known.finish(known);
    } else {
      this.#problem = whyUnreadable(error);
      this.#tell('unreadable', this.#problem);
      if (known !== undefined) this.#known.want(known);
    }
    await this.#drop(source);
  }

  async #drop(source: FollowedSource): Promise<void> {
    this.#sources.remove(source);
    if (this.#current === source) this.#current = undefined;
    await source.content.close().catch(() => undefined);
  }

  /** Whether the current source's file is the one under the path. */
  async #findOut(): Promise<void> {
    const current = this.#current?.content;
    const status = await stat(this.path).catch(() => undefined);
    this.#isUnderPath =
      current !== undefined &&
      status !== undefined &&
      isSameFile(current, { device: status.dev, inode: status.ino });
  }

  /** Opens what the path names, if that is another file than before. */
  async #lookAtPath(): Promise<void> {
    try {
      await this.#findOut();
      if (!this.#isUnderPath) await this.#openPath();
      if (this.#isMissing || this.#problem !== undefined) this.#tell('appeared', 'can be read');
      this.#isMissing = false;
      this.#problem = undefined;
    } catch (error) {
      await this.#missPath(error);
    }
  }

  async #missPath(error: unknown): Promise<void> {
    const code = codeOf(error);
    if (code !== 'ENOENT' && code !== 'ENOTDIR') {
      const why = whyUnreadable(error);
      this.counters.readErrors++;
      if (this.#problem !== why) this.#tell('unreadable', why);
      this.#problem = why;
      return;
    }
    if (!this.#isMissing) this.#tell('missing', 'is not there; waiting for it');
    this.#isMissing = true;
    this.#problem = undefined;
    if (this.#current !== undefined) return;
    // Until it is there again, its content may lie under a rotated name.
    await this.#markStart(this.path);
    await this.#openFiles(this.path, undefined);
  }

  /** Opens what the path names now, and whatever came in between. */
  async #openPath(): Promise<void> {
    const resolved = await realpath(this.path);
    const content = await openContent(resolved, false);
    this.#folder = dirname(resolved);
    const open = this.#sources.find(content);
    if (open !== undefined) {
      await content.close();
      this.#current = open;
      this.#isUnderPath = true;
      return;
    }
    await this.#markStart(resolved);
    if (this.#current !== undefined) {
      this.counters.rotations++;
      this.#tell('rotated', 'names another file; the old one is read to its end');
      this.#current.activeMs = this.#clock();
    }
    const { missing } = await this.#openFiles(resolved, content);
    for (const known of missing) {
      this.counters.lostLogs++;
      this.#tell('lost', `is gone, read up to byte ${known.offset}: what followed is unknown`);
      this.#known.finish(known);
    }
  }

  /** Rotated files that lie there at the first look were read by others, or by nobody. */
  async #markStart(path: string): Promise<void> {
    if (this.#sinceMs !== undefined) return;
    const files = this.#withRotated ? [] : await listRotated(path);
    this.#sinceMs = Math.max(-Infinity, ...files.map((file) => file.modifiedMs));
  }

  /** Opens the files that hold what is to be read, beside those that are open. */
  async #openFiles(
    path: string,
    current: LogContent | undefined,
    before?: FollowedSource,
  ): Promise<FoundLogs> {
    const known = [...this.#known.all, ...(await this.#sources.known())];
    const lastMs = newestMs(known);
    const found = await matchFiles({
      path,
      name: this.path,
      current,
      known,
      open: this.#sources.contents,
      begun: this.#sources.begun,
      // A successor can be written in the same tick of the clock.
      isNewer: (ms) => (lastMs === undefined ? ms > this.#sinceMs! : ms >= lastMs),
    });
    for (const { path: file, error } of found.unreadable) {
      this.counters.readErrors++;
      this.#tell('unreadable', `${file}: ${whyUnreadable(error)}`);
    }
    for (const log of found.ended) this.#known.finish(log);
    for (const log of found.logs) {
      const source = await this.#open(log, found.order, before);
      if (log.content !== current) continue;
      this.#current = source;
      this.#isUnderPath = source !== undefined;
    }
    return found;
  }

  async #open(
    log: FoundLog,
    order: readonly FilePlace[],
    before: FollowedSource | undefined,
  ): Promise<FollowedSource | undefined> {
    const source = this.#newSource(log.content);
    if (log.known !== undefined) {
      try {
        await source.resume(log.known);
      } catch (error) {
        // It stays wanted, and is looked for again.
        this.#problem = whyUnreadable(error);
        this.counters.readErrors++;
        await log.content.close();
        return undefined;
      }
      this.#known.open(log.known.sourceId);
      this.#tell('resumed', `goes on at byte ${log.known.offset} of ${log.path}`);
    }
    this.#sources.insert(source, order, log.known === undefined ? undefined : before);
    return source;
  }

  #newSource(content: LogContent): FollowedSource {
    const isTaken = (id: string): boolean => this.#known.has(id) || this.#sources.hasId(id);
    return new FollowedSource(content, this.path, this.#clock(), (id) => withNumber(id, isTaken));
  }

  /** The file was cut: what it held may lie in a copy, and what it holds now is new. */
  async #beginAnew(source: FollowedSource): Promise<void> {
    const fresh = this.#newSource(source.content);
    this.#sources.replace(source, fresh);
    if (this.#current === source) this.#current = fresh;
    this.counters.truncations++;
    this.#tell('truncated', `was cut after byte ${source.offset} had been read; reads it from 0`);
    const before = remembered(source);
    // The inode is the new content's.
    const known = before === undefined ? undefined : { ...before, device: 0, inode: 0 };
    if (known !== undefined) this.#known.want(known);
    const logs = await this.#openBefore(fresh);
    if (known === undefined || logs.some((log) => log.known === known)) return;
    this.#lose(source.seenBytes - known.offset);
    // In a copy that ends early it is known to its end by now.
    if (this.#known.wanted.includes(known)) this.#known.finish(known);
  }

  /** Whether a file not read yet may have held something else: copytruncate leaves but a copy. */
  #mayHideOthers(source: FollowedSource): boolean {
    return source === this.#current && source.offset === 0 && source.hasChanged();
  }

  /** Opens rotated files that came to be while a source's file was followed. */
  async #openBefore(source: FollowedSource): Promise<readonly FoundLog[]> {
    const path = await realpath(this.path).catch(() => this.path);
    const current = this.#isUnderPath ? this.#current?.content : undefined;
    const { logs } = await this.#openFiles(path, current, source);
    await this.#lookAtSources();
    return logs;
  }

  #lose(bytes: number): void {
    if (bytes <= 0) return;
    this.counters.lostBytes += bytes;
    this.#tell('lost', `${bytes} bytes that had been written were not read`);
  }

  async #closeDrained(): Promise<void> {
    for (const source of [...this.#sources.all]) {
      if (!source.isAtEnd || !this.#isOver(source)) continue;
      const known = remembered(source);
      if (known !== undefined) this.#known.finish(known);
      // Of a line that was never ended, the end is not to come any more.
      if (!source.content.isGzip) this.#lose(source.lagBytes);
      await this.#drop(source);
    }
  }

  /** Whether nobody will write to a source any more. */
  #isOver(source: FollowedSource): boolean {
    if (source.content.isGzip) return true;
    if (this.#clock() - source.activeMs < this.#graceMs) return false;
    if (source === this.#current) return this.#isMissing && source.links === 0;
    const newer = this.#sources.after(source);
    return source.links === 0 || newer.length > 1 || newer.some((other) => other.offset > 0);
  }

  #tell(kind: FollowNotice['kind'], message: string): void {
    this.#onNotice({ kind, path: this.path, message });
  }
}
