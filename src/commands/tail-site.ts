/**
 * The nginx that `limitlens tail` follows: its configurations, its logs, and the tailer in charge.
 *
 * When the configuration changes, one tailer leaves its state to another that knows both, the same
 * way as a process leaves it to the next: so a reload is a restart without an end. What the tailers
 * do is in ../daemon/tailer.ts, when to read a configuration in ../daemon/reload.ts.
 */
import type { NginxConf } from '../../parsers/conf/model.js';
import { tellBuffers } from '../daemon/buffered-logs.js';
import type { JsonLog } from '../daemon/json-log.js';
import type { LiveInputs } from '../daemon/live-inputs.js';
import type { LeftOutLog } from '../daemon/log-teller.js';
import { foundAtStart, readNext, type ReloadCause, type ReloadResult } from '../daemon/reload.js';
import {
  firstGenerations,
  restoredGeneration,
  tailGeneration,
  type TailGeneration,
} from '../daemon/tail-generations.js';
import { findTailLogs, type TailLogs } from '../daemon/tail-logs.js';
import type { Start } from '../daemon/tail-start.js';
import { tailOf } from '../daemon/tail-state.js';
import { Tailer, type TailerOptions } from '../daemon/tailer.js';
import { InputError } from '../errors.js';
import type { GenerationInput } from '../replay/generations.js';

/** Each costs memory for its rules; more than these are given up by deciding all that waits. */
const MOST_GENERATIONS = 8;

/** What of the options says which nginx and logs to follow. */
export interface SiteChoice {
  readonly conf: readonly string[];
  readonly errorLog: readonly string[];
  readonly logFormat?: string;
  readonly allLogs?: boolean;
  readonly syslog: readonly string[];
}

export interface SiteOptions extends Omit<TailerOptions, 'generations' | 'logs'> {
  readonly inputs: LiveInputs;
  /** Told what a reload came to, and of the configuration that is followed since. */
  readonly onReload: (result: ReloadResult, conf: NginxConf) => void;
}

export class TailSite {
  #files: readonly string[];
  #choice: SiteChoice;
  readonly #options: SiteOptions;
  #generations: readonly TailGeneration[];
  #logs: TailLogs;
  #tailer: Tailer;

  private constructor(
    files: readonly string[],
    choice: SiteChoice,
    options: SiteOptions,
    generations: readonly TailGeneration[],
    logs: TailLogs,
  ) {
    this.#files = files;
    this.#choice = choice;
    this.#options = options;
    this.#generations = generations;
    this.#logs = logs;
    this.#tailer = new Tailer({ ...options, generations, logs });
  }

  /**
   * Takes up the last state under the configurations that it was made with, then goes over to what
   * the files say now.
   *
   * @param given the configurations as the files say now, and the logs that these tell of
   * @throws InputError for a state that cannot be gone on from
   */
  static async begin(
    files: readonly string[],
    choice: SiteChoice,
    options: SiteOptions,
    start: Start,
    given: { readonly generations: readonly GenerationInput[]; readonly logs: TailLogs },
  ): Promise<TailSite> {
    const { checkpoint } = start;
    const state = checkpoint === undefined ? undefined : tailOf(checkpoint, options.seal);
    const kept = (state?.tail.generations ?? []).map(restoredGeneration);
    const isOver = state?.tail.isDrained === true && start.steps.length === 0;
    const known = isOver ? settled(kept, state.tail.engine.generations.sinceMs) : kept;
    const { first, later } = firstGenerations(given.generations.map(tailGeneration), known);
    const logs = later.length === 0 ? given.logs : await logsOf(files, choice, first, given.logs);
    const site = new TailSite(files, choice, options, first, logs);
    await site.#tailer.begin(start);
    if (later.length > 0) {
      const isFollowed = (path: string): boolean => given.logs.patterns.includes(path);
      options.log.info('the nginx configuration has changed since the last state');
      await site.#goOver(foundAtStart(later, isFollowed), given.logs);
    }
    site.#receive();
    tellBuffers(site.#logs, options.latenessMs, options.log);
    return site;
  }

  get tailer(): Tailer {
    return this.#tailer;
  }

  get logs(): TailLogs {
    return this.#logs;
  }

  /** The configuration read last. */
  get #current(): TailGeneration {
    return this.#generations[this.#generations.length - 1]!;
  }

  /**
   * Reads the configuration again, and goes over to it if it says anything new.
   *
   * @param changed logs and paths of configurations to go by from now on, where those have changed
   */
  async reload(
    cause: ReloadCause,
    changed?: { readonly files: readonly string[]; readonly choice: SiteChoice },
  ): Promise<void> {
    const result = await this.#reload(cause, changed);
    this.#options.onReload(result, this.#current.conf);
  }

  async #reload(
    cause: ReloadCause,
    changed: { readonly files: readonly string[]; readonly choice: SiteChoice } | undefined,
  ): Promise<ReloadResult> {
    const { log } = this.#options;
    const { files, choice } = changed ?? { files: this.#files, choice: this.#choice };
    const next = readNext(choice.conf, this.#current, cause, log);
    if (next === 'refused') return next;
    if (next === 'unchanged' && changed === undefined) return next;
    const later = next === 'unchanged' ? [] : [next];
    let logs: TailLogs;
    try {
      const confs = [...this.#generations, ...later].map(({ conf }) => conf);
      logs = await findTailLogs(files, choice.errorLog, confs, choice);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      log.error('the logs of the new configuration are not taken: all stays as it was', {
        error: error.message,
      });
      return 'refused';
    }
    this.#files = files;
    this.#choice = choice;
    await this.#leaveFormats(logs, cause.kind === 'mark' ? cause.ms - 1 : undefined);
    await this.#goOver(later, logs);
    this.#receive();
    tellBuffers(logs, this.#options.latenessMs, log);
    log.info('goes by the new nginx configuration', {
      inForce: next === 'unchanged' || next.sinceMs === null ? 'by its reload mark' : 'now',
      logs: logs.patterns,
    });
    return 'taken';
  }

  /** What waits of a log that is read in another format from now on goes out in the old one. */
  async #leaveFormats(next: TailLogs, untilMs: number | undefined): Promise<void> {
    const changed = this.#logs.access.filter(({ path, file }) => {
      const other = next.access.find((log) => log.path === path)?.file.scanner.format;
      const { text, escape } = file.scanner.format;
      return other !== undefined && (other.text !== text || other.escape !== escape);
    });
    if (changed.length === 0) return;
    this.#options.log.warn(
      'the format of a log has changed: lines that workers of before still write are not read',
      { logs: changed.map(({ path }) => path) },
    );
    if (!Number.isNaN(untilMs)) await this.#tailer.handOnNow(untilMs);
  }

  async #goOver(later: readonly TailGeneration[], logs: TailLogs): Promise<void> {
    const isSettled = this.#generations.length + later.length > MOST_GENERATIONS;
    const start = await this.#tailer.handOver({ isSettled });
    this.#generations = [
      ...(isSettled ? this.#generations.slice(-1) : this.#generations),
      ...later,
    ];
    // Workers of before write to the logs of before until they have ended.
    const patterns = [...new Set([...logs.patterns, ...this.#logs.patterns])];
    this.#logs = { ...logs, patterns };
    sayLeftOut(logs, this.#options.log);
    this.#tailer = new Tailer({
      ...this.#options,
      generations: this.#generations,
      logs: this.#logs,
    });
    await this.#tailer.begin(start);
    await this.#tailer.keep();
  }

  /** Live inputs stay open; what is expected of them can have changed. */
  #receive(): void {
    const { live } = this.#logs;
    this.#tailer.receive(
      this.#options.inputs.all.map(({ plan, input }, i) => ({ plan: live[i] ?? plan, input })),
    );
  }
}

/** Says what is not followed, now and later. */
export function sayLeftOut(logs: TailLogs, log: JsonLog): void {
  const say = ({ path, reason }: LeftOutLog): void => {
    log.info('not followed', { path, reason });
  };
  logs.leftOut.forEach(say);
  logs.teller.onLeftOut = say;
}

/** When nothing waits, those before the one in force are of no use; a later one may still come. */
function settled(
  kept: readonly TailGeneration[],
  sinceMs: readonly (number | null)[],
): readonly TailGeneration[] {
  const isInForce = kept.length > 0 && (sinceMs[kept.length - 1] ?? null) !== null;
  return isInForce ? kept.slice(-1) : kept;
}

/** Logs as a configuration of before tells of them; it may name some that are gone. */
async function logsOf(
  files: readonly string[],
  choice: SiteChoice,
  generations: readonly TailGeneration[],
  now: TailLogs,
): Promise<TailLogs> {
  try {
    const confs = generations.map(({ conf }) => conf);
    const logs = await findTailLogs(files, choice.errorLog, confs, choice);
    return { ...logs, live: now.live, liveLeftOut: now.liveLeftOut };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return now;
  }
}
