/**
 * The daemon at work: steps as lines come, records in time, SIGHUP, and a drain in the end.
 *
 * Not here: what is opened before (tail.ts), what a step does (../daemon/tailer.ts).
 */
import type { NginxConf } from '../../parsers/conf/model.js';
import { holdMsOf } from '../daemon/buffered-logs.js';
import type { JsonLog } from '../daemon/json-log.js';
import type { LiveInputs } from '../daemon/live-inputs.js';
import type { ReloadResult } from '../daemon/reload.js';
import type { TailLogs } from '../daemon/tail-logs.js';
import { latenessFor, type Start } from '../daemon/tail-start.js';
import type { TailStore } from '../daemon/tail-store.js';
import { EXIT } from '../errors.js';
import type { TimedWaker } from '../input/watch.js';
import type { TailMetrics } from '../metrics/tail-metrics.js';
import type { GenerationInput } from '../replay/generations.js';
import { privacyOf } from './privacy-options.js';
import { TailAlerts } from './tail-alerts.js';
import { hangUp } from './tail-hang-up.js';
import type { TailHttp } from './tail-http.js';
import type { TailSignals } from './tail-signals.js';
import { TailSite } from './tail-site.js';
import type { TailSettings } from './tail.js';

/** Long enough for the bytes of a few seconds, shorter than what service managers wait. */
const LONGEST_DRAIN_MS = 60_000;
const LONGEST_SEND_MS = 15_000;
/** A record of the spool is closed early rather than hold more. */
const MOST_ROWS_PER_RECORD = 50_000;

/** What is there from the beginning. */
export interface TailBase {
  readonly settings: TailSettings;
  readonly log: JsonLog;
  readonly signals: TailSignals;
  readonly metrics: TailMetrics;
  readonly waker: TimedWaker;
  readonly inputs: LiveInputs;
}

/** What was opened for it. */
export interface TailServed {
  readonly tailStore: TailStore;
  readonly start: Start;
  readonly http: TailHttp;
  /** To be called when the last state has been taken up. */
  readonly begun: () => void;
  /** Folder of the alerts' state. */
  readonly stateFolder: string;
}

export class TailRun {
  readonly #parts: TailBase & TailServed;
  readonly #closing: (() => unknown)[];
  #settings: TailSettings;

  /** @param closing gets what is to be closed, in order of opening */
  constructor(parts: TailBase & TailServed, closing: (() => unknown)[]) {
    this.#parts = parts;
    this.#closing = closing;
    this.#settings = parts.settings;
  }

  /** Until it is asked to end, or live inputs are all there is and have ended. */
  async run(given: {
    readonly generations: readonly GenerationInput[];
    readonly logs: TailLogs;
  }): Promise<void> {
    const { log, tailStore } = this.#parts;
    tailStore.run();
    const site = await this.#begin(given);
    const { access, errors } = given.logs;
    log.info('follows', { logs: [...access, ...errors].map(({ path }) => path) });
    const alerts = await this.#openAlerts(site);
    await this.#follow(site, alerts);
    await this.#end(site);
  }

  async #begin(given: Parameters<typeof TailSite.begin>[4]): Promise<TailSite> {
    const { log, metrics, inputs, signals, tailStore, start, begun } = this.#parts;
    const { files, options } = this.#settings;
    const { privacy, seal } = privacyOf(options);
    const site = await TailSite.begin(
      files,
      options,
      {
        instance: options.instance,
        latenessMs: latenessFor(start, options.latenessMs, seal, log),
        zone: options.timezone === undefined ? undefined : { iana: options.timezone },
        ...(options.chunkBytes === undefined ? {} : { mostBytes: options.chunkBytes }),
        privacy,
        seal,
        log,
        spool: tailStore.spool,
        ending: signals.ending,
        onLate: () => metrics.add('lateRequests', {}, 1),
        inputs,
        onReload: (result, current) => {
          metrics.reloaded('nginx.conf', result, Date.now() / 1000);
          metrics.know(...zonesOf(current));
        },
      },
      start,
      given,
    );
    this.#closing.push(() => site.tailer.close());
    begun();
    return site;
  }

  async #openAlerts(site: TailSite): Promise<TailAlerts> {
    const { log, metrics, tailStore, http, stateFolder } = this.#parts;
    const { options } = this.#settings;
    const alerts = await TailAlerts.open(options, {
      ...{ store: tailStore, metrics, log, stateFolder },
      listens: http.server.url,
      holdMs: () => holdMsOf(site.logs, options.latenessMs),
      waiting: () => tailStore.spool.waiting,
    });
    this.#closing.push(() => alerts.stop());
    return alerts;
  }

  async #follow(site: TailSite, alerts: TailAlerts): Promise<void> {
    const { signals, tailStore, waker } = this.#parts;
    let committedMs = Date.now();
    while (!signals.isAsked && !site.tailer.hasEnded) {
      if (signals.takeHangUp()) await this.#hangUp(site, alerts);
      if (tailStore.isHeld) {
        this.#measure(site);
        await waker.wait();
        continue;
      }
      const { poll, commitIntervalMs } = this.#settings.options;
      if (!poll) waker.watch(site.tailer.folders);
      const beganMs = Date.now();
      const isMore = await site.tailer.step();
      alerts.stepped(isMore, beganMs);
      this.#measure(site);
      await goOver(site);
      const isDue = Date.now() - committedMs >= commitIntervalMs;
      if (isDue || site.tailer.openRows >= MOST_ROWS_PER_RECORD) {
        const isCommitted = await site.tailer.commit({ isWhole: false });
        if (isCommitted) {
          alerts.committed(site.tailer.reachedMs);
          committedMs = Date.now();
        }
      }
      if (!isMore) await waker.wait();
    }
  }

  async #hangUp(site: TailSite, alerts: TailAlerts): Promise<void> {
    const { http, log, metrics, tailStore } = this.#parts;
    const onRead = (result: ReloadResult): void => {
      metrics.reloaded('limitlens.yaml', result, Date.now() / 1000);
    };
    this.#settings = await hangUp(this.#settings, { site, http, alerts, log, onRead });
    tailStore.spool.resize(this.#settings.options.spoolMaxBytes);
  }

  #measure({ tailer }: TailSite): void {
    const { metrics, inputs } = this.#parts;
    metrics.sources(tailer.lagBytes, tailer.newestMs, Date.now());
    for (const { source, counters } of inputs.received) metrics.received(source, counters);
    inputs.tellDrops();
  }

  /** Decides and stores all that was read, within bounds. */
  async #end(site: TailSite): Promise<void> {
    const { log, tailStore } = this.#parts;
    const bound = setTimeout(() => {
      log.error('did not drain in time; the next start goes on from the last step stored');
      process.exit(EXIT.io);
    }, LONGEST_DRAIN_MS);
    if (await tailStore.hasRoom()) await drain(site);
    else {
      // All of the logs would have to be read to decide what waits.
      await site.tailer.commit({ isWhole: true });
      log.warn('ends without a drain, since the spool is full: the next start goes on');
    }
    clearTimeout(bound);
    // The spool has everything; a store that does not answer is not waited for.
    setTimeout(() => {
      log.warn('ends though the store has not answered: the next start sends again what waits');
      process.exit(EXIT.ok);
    }, LONGEST_SEND_MS).unref();
    await tailStore.end();
    log.info('drained');
  }
}

/** Reads the configuration where a step has found that nginx has. @returns whether one has */
async function goOver(site: TailSite): Promise<boolean> {
  const ms = site.tailer.takeReload();
  if (ms === undefined) return false;
  await site.reload({ kind: 'mark', ms });
  return true;
}

async function drain(site: TailSite): Promise<void> {
  do while (await site.tailer.step());
  while (await goOver(site));
  await site.tailer.drain();
}

export function zonesOf({ reqZones, ruleSets }: NginxConf): [zones: string[], connZones: string[]] {
  const connZones = ruleSets.flatMap((rules) => rules.connLimits.map(({ zone }) => zone));
  return [[...reqZones.keys()], [...new Set(connZones)]];
}
