/**
 * `limitlens tail`: follows logs, replays and stores as they grow, and serves metrics.
 *
 * Here is when things happen; what happens is in ../daemon. SIGTERM and SIGINT read what is there,
 * decide all that waits and end with 0; a second signal ends at once, and the next start goes on
 * from the last step stored.
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { NginxConf } from '../../parsers/conf/model.js';
import type { RowTable } from '../aggregate/rows.js';
import type { AlertChoice } from '../alerting/alert-options.js';
import { TailMetrics } from '../metrics/tail-metrics.js';
import { JsonLog } from '../daemon/json-log.js';
import { LiveInputs } from '../daemon/live-inputs.js';
import type { ReloadResult } from '../daemon/reload.js';
import { findTailLogs } from '../daemon/tail-logs.js';
import { TailStore } from '../daemon/tail-store.js';
import { EXIT, type ExitCode } from '../errors.js';
import { parseSyslogAddress } from '../input/syslog-address.js';
import { TimedWaker } from '../input/watch.js';
import { checkTimezone, readConfs } from '../pipeline/confs.js';
import { openStore, type Store } from '../store/store.js';
import { privacyOf, type PrivacyChoice } from './privacy-options.js';
import { parseRetention } from './retention.js';
import { checkAlertChoice, TailAlerts } from './tail-alerts.js';
import { hangUp } from './tail-hang-up.js';
import { TailSignals } from './tail-signals.js';
import { sayLeftOut, TailSite } from './tail-site.js';
import { checkHttpChoice, TailHttp, type TailHttpChoice } from './tail-http.js';
import { DEFAULT_STORE } from './defaults.js';
import { checkStoreChoice, storeOptions, type StoreChoice } from './store-choice.js';

/** Long enough for the bytes of a few seconds, shorter than what service managers wait. */
const LONGEST_DRAIN_MS = 60_000;
const LONGEST_SEND_MS = 15_000;
const DEFAULT_SPOOL = './limitlens-spool';
/** How often to look for new lines. */
const READ_INTERVAL_MS = 500;
/** The least time between two looks, however often the kernel tells of changes. */
const READ_PAUSE_MS = 100;
/** A record of the spool is closed early rather than hold more. */
const MOST_ROWS_PER_RECORD = 50_000;
/** What fails is kept in the spool anyway, and sent again from there. */
const STORE_ATTEMPTS = 3;
/** A server that does not answer is given up sooner than by an import, since the spool waits. */
const WRITE_SECONDS = 60;

export interface TailCommandOptions
  extends StoreChoice, PrivacyChoice, AlertChoice, TailHttpChoice {
  readonly conf: readonly string[];
  readonly errorLog: readonly string[];
  readonly instance: string;
  readonly latenessMs: number;
  readonly timezone?: string;
  readonly logFormat?: string;
  readonly allLogs?: boolean;
  /** Where to receive what nginx sends by syslog. */
  readonly syslog: readonly string[];
  /** Look for new lines at a steady pace only: file systems that tell of no change. */
  readonly poll: boolean;
  readonly chunkBytes?: number;
  readonly commitIntervalMs: number;
  readonly retention: readonly string[];
  /** Folder for what the store does not have yet; beside an embedded store by default. */
  readonly spool?: string;
  readonly spoolMaxBytes: number;
  readonly version: string;
  /** Reads command line, environment and limitlens.yaml again; undefined without a file. */
  readonly reread?: () => Promise<TailSettings>;
}

export interface TailSettings {
  readonly files: readonly string[];
  readonly options: TailCommandOptions;
}

/**
 * Everything that can be wrong in the options without opening store or port.
 *
 * @throws InputError as tailCommand() does
 */
export async function checkTailOptions(
  files: readonly string[],
  options: TailCommandOptions,
): Promise<void> {
  checkTimezone(options.timezone);
  checkHttpChoice(options);
  parseRetention(options.retention);
  privacyOf(options);
  checkStoreChoice(options);
  checkAlertChoice(options);
  options.syslog.forEach(parseSyslogAddress);
  const confs = readConfs(options.conf).map(({ conf }) => conf);
  await findTailLogs(files, options.errorLog, confs, options);
}

/** @returns 0 after a drain, 74 when it did not end in time */
export async function tailCommand(
  files: readonly string[],
  options: TailCommandOptions,
): Promise<ExitCode> {
  checkTimezone(options.timezone);
  checkAlertChoice(options);
  checkHttpChoice(options);
  const log = new JsonLog(process.stderr);
  const signals = new TailSignals(log);
  const generations = readConfs(options.conf);
  const confs = generations.map((input) => input.conf);
  const logs = await findTailLogs(files, options.errorLog, confs, options);
  sayLeftOut(logs, log);
  const [zones, connZones] = zonesOf(confs[confs.length - 1]!);
  const metrics = new TailMetrics({
    instance: options.instance,
    version: options.version,
    zones,
    connZones,
  });
  let hasBegun = false;
  const readMs = Math.min(READ_INTERVAL_MS, options.commitIntervalMs);
  const pauseMs = Math.min(READ_PAUSE_MS, readMs);
  const waker = new TimedWaker({ intervalMs: readMs, pauseMs });
  const wake = (): void => {
    waker.wake();
  };
  signals.onAsked = wake;
  const inputs = await LiveInputs.open(logs, log, wake);
  const { tailStore, start, store } = await openTailStore(options, log, metrics).catch(
    async (error: unknown) => {
      await inputs.close();
      throw error;
    },
  );
  const { spool } = tailStore;
  const http = await TailHttp.open(options, {
    store,
    folder: options.store ?? DEFAULT_STORE,
    isReady: () => hasBegun && !tailStore.isAway,
    metrics: async () => {
      metrics.spool(spool.waitingBytes, spool.maxBytes, spool.isFull, !tailStore.isAway);
      return { type: metrics.contentType, text: await metrics.text() };
    },
    log,
  });
  let alerts: TailAlerts | undefined;
  let begun: TailSite | undefined;
  try {
    tailStore.run();
    const site = await TailSite.begin(
      files,
      options,
      {
        instance: options.instance,
        latenessMs: options.latenessMs,
        zone: options.timezone === undefined ? undefined : { iana: options.timezone },
        ...(options.chunkBytes === undefined ? {} : { mostBytes: options.chunkBytes }),
        ...privacyOf(options),
        log,
        spool,
        onLate: () => metrics.add('lateRequests', {}, 1),
        inputs,
        onReload: (result, current) => {
          metrics.reloaded('nginx.conf', result, Date.now() / 1000);
          metrics.know(...zonesOf(current));
        },
      },
      start,
      { generations, logs },
    );
    begun = site;
    hasBegun = true;
    log.info('follows', { logs: [...logs.access, ...logs.errors].map(({ path }) => path) });
    alerts = await TailAlerts.open(options, {
      store: tailStore,
      metrics,
      log,
      stateFolder: spoolPath(options),
      listens: http.server.url,
      waiting: () => spool.waiting,
    });
    let settings: TailSettings = { files, options };
    let committedMs = Date.now();
    while (!signals.isAsked && !site.tailer.hasEnded) {
      if (tailStore.isHeld) {
        await waker.wait();
        continue;
      }
      if (signals.takeHangUp()) {
        const onRead = (result: ReloadResult): void => {
          metrics.reloaded('limitlens.yaml', result, Date.now() / 1000);
        };
        settings = await hangUp(settings, { site, http, alerts, log, onRead });
        spool.resize(settings.options.spoolMaxBytes);
      }
      if (!settings.options.poll) waker.watch(site.tailer.folders);
      const beganMs = Date.now();
      const isMore = await site.tailer.step();
      alerts.stepped(isMore, beganMs);
      metrics.sources(site.tailer.lagBytes, site.tailer.newestMs, Date.now());
      for (const { source, counters } of inputs.received) metrics.received(source, counters);
      await goOver(site);
      const isDue = Date.now() - committedMs >= settings.options.commitIntervalMs;
      if (isDue || site.tailer.openRows >= MOST_ROWS_PER_RECORD) {
        await site.tailer.commit({ isWhole: false });
        alerts.committed(site.tailer.reachedMs);
        committedMs = Date.now();
      }
      inputs.tellDrops();
      if (!isMore) await waker.wait();
    }
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
  } finally {
    await alerts?.stop();
    await http.close();
    waker.close();
    await inputs.close();
    await begun?.tailer.close();
    await tailStore.close();
    signals.close();
  }
  return EXIT.ok;
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

function zonesOf({ reqZones, ruleSets }: NginxConf): [zones: string[], connZones: string[]] {
  const connZones = ruleSets.flatMap((rules) => rules.connLimits.map(({ zone }) => zone));
  return [[...reqZones.keys()], [...new Set(connZones)]];
}

async function openTailStore(
  options: TailCommandOptions,
  log: JsonLog,
  metrics: TailMetrics,
): Promise<Awaited<ReturnType<typeof TailStore.open>> & { readonly store: Store | undefined }> {
  const retention = parseRetention(options.retention);
  const wait = async (ms: number): Promise<void> => {
    metrics.storeRetried();
    await pause(ms);
  };
  let store: Store | undefined;
  const opened = await TailStore.open({
    instance: options.instance,
    spoolPath: spoolPath(options),
    isEmbedded: options.clickhouse === undefined,
    spoolMaxBytes: options.spoolMaxBytes,
    open: async () => {
      store = await openStore({
        ...storeOptions(options),
        ...(retention === undefined ? {} : { retention }),
        createIfMissing: true,
        retryPolicy: { attempts: STORE_ATTEMPTS, wait },
        writeSeconds: WRITE_SECONDS,
      });
      return store;
    },
    log,
    events: {
      onStored: (table, row) => metrics.stored(table as RowTable, row),
      onInsert: (seconds) => metrics.inserted(seconds),
      onFailure: () => metrics.storeFailed(),
      onFirst: () => log.info('stored'),
    },
  });
  return { ...opened, store };
}

/** Within the folder of an embedded store, so that the two stay together. */
function spoolPath({ spool, store, clickhouse }: TailCommandOptions): string {
  if (spool !== undefined) return spool;
  return clickhouse === undefined ? join(store ?? DEFAULT_STORE, 'spool') : DEFAULT_SPOOL;
}
