/**
 * `limitlens tail`: follows logs, replays and stores as they grow, and serves metrics.
 *
 * SIGTERM and SIGINT read what is there, decide all that waits and end with 0; a second signal ends at
 * once, and the next start goes on from the last step stored.
 *
 * Here is what is opened and closed; when things happen is in tail-run.ts, what happens in ../daemon.
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { RowTable } from '../aggregate/rows.js';
import type { AlertChoice } from '../alerting/alert-options.js';
import { TailMetrics } from '../metrics/tail-metrics.js';
import { JsonLog } from '../daemon/json-log.js';
import { LiveInputs } from '../daemon/live-inputs.js';
import { findTailLogs } from '../daemon/tail-logs.js';
import { TailStore } from '../daemon/tail-store.js';
import { EXIT, type ExitCode } from '../errors.js';
import { parseSyslogAddress } from '../input/syslog-address.js';
import { TimedWaker } from '../input/watch.js';
import { checkTimezone, readConfs } from '../pipeline/confs.js';
import { openStore, type Store } from '../store/store.js';
import { privacyOf, type PrivacyChoice } from './privacy-options.js';
import { parseRetention } from './retention.js';
import { checkAlertChoice } from './tail-alerts.js';
import { TailSignals } from './tail-signals.js';
import { TailRun, zonesOf, type TailBase, type TailServed } from './tail-run.js';
import { sayLeftOut } from './tail-site.js';
import { checkHttpChoice, TailHttp, type TailHttpChoice } from './tail-http.js';
import { DEFAULT_STORE } from './defaults.js';
import { checkStoreChoice, storeOptions, type StoreChoice } from './store-choice.js';

const DEFAULT_SPOOL = './limitlens-spool';
/** How often to look for new lines. */
const READ_INTERVAL_MS = 500;
/** The least time between two looks, however often the kernel tells of changes. */
const READ_PAUSE_MS = 100;
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
  /** A server that sends nothing for so long is away; 0 to wait as long as a statement may take. */
  readonly storeTimeoutMs: number;
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
  const { instance, version } = options;
  const [zones, connZones] = zonesOf(confs[confs.length - 1]!);
  const metrics = new TailMetrics({ instance, version, zones, connZones });
  const readMs = Math.min(READ_INTERVAL_MS, options.commitIntervalMs);
  const pauseMs = Math.min(READ_PAUSE_MS, readMs);
  const waker = new TimedWaker({ intervalMs: readMs, pauseMs });
  signals.onAsked = () => {
    waker.wake();
  };
  const closing: (() => unknown)[] = [() => signals.close(), () => waker.close()];
  try {
    const inputs = await LiveInputs.open(logs, log, signals.onAsked);
    closing.push(() => inputs.close());
    const base = { settings: { files, options }, log, signals, metrics, waker, inputs };
    const served = await openServed(base, closing);
    if (served === undefined) {
      log.info('ends before it has begun');
      return EXIT.ok;
    }
    await new TailRun({ ...base, ...served }, closing).run({ generations, logs });
  } finally {
    for (const close of closing.reverse()) await close();
  }
  return EXIT.ok;
}

/**
 * Opens the store, and listens. A server can be away: then metrics and health are there before it.
 *
 * @param closing gets what is to be closed, in order of opening
 * @returns undefined when it was asked to end while it waited for the store
 */
async function openServed(
  { settings, log, signals, metrics }: TailBase,
  closing: (() => unknown)[],
): Promise<TailServed | undefined> {
  const { options } = settings;
  const state: { tailStore?: TailStore; isBegun: boolean } = { isBegun: false };
  const listen = async (): Promise<TailHttp> => {
    const http = await TailHttp.open(options, {
      folder: options.store ?? DEFAULT_STORE,
      isReady: () => state.isBegun && state.tailStore?.isTaking === true,
      metrics: async () => {
        const spool = state.tailStore?.spool;
        const isUp = state.tailStore?.isAway === false;
        const maxBytes = spool?.maxBytes ?? options.spoolMaxBytes;
        const isHeld = spool !== undefined && (spool.isFull || spool.isRefused);
        metrics.spool(spool?.waitingBytes ?? 0, maxBytes, isHeld, isUp);
        return { type: metrics.contentType, text: await metrics.text() };
      },
      log,
    });
    closing.push(() => http.close());
    return http;
  };
  let http = options.clickhouse === undefined ? undefined : await listen();
  const opened = await openTailStore(options, { log, metrics, signals }, (store) => {
    // Later on; the first one has its turn below.
    if (state.tailStore !== undefined) http?.serve(store);
  });
  if (opened === undefined) return undefined;
  const { tailStore, start } = opened;
  closing.push(() => tailStore.close());
  state.tailStore = tailStore;
  if (http === undefined) {
    http = await listen();
    await http.offer(tailStore.store!);
  } else if (tailStore.store !== undefined) http.serve(tailStore.store);
  const begun = (): void => {
    state.isBegun = true;
  };
  return { tailStore, start, http, begun, stateFolder: spoolPath(options) };
}

/** @param onOpened told of each store that is opened, whether it is of use in the end or not */
async function openTailStore(
  options: TailCommandOptions,
  { log, metrics, signals }: Pick<TailBase, 'log' | 'metrics' | 'signals'>,
  onOpened: (store: Store) => void,
): ReturnType<typeof TailStore.open> {
  const retention = parseRetention(options.retention);
  const wait = async (ms: number): Promise<void> => {
    metrics.storeRetried();
    await pause(ms);
  };
  return TailStore.open({
    instance: options.instance,
    spoolPath: spoolPath(options),
    isEmbedded: options.clickhouse === undefined,
    spoolMaxBytes: options.spoolMaxBytes,
    open: async () => {
      const store = await openStore({
        ...storeOptions(options),
        ...(retention === undefined ? {} : { retention }),
        createIfMissing: true,
        retryPolicy: { attempts: STORE_ATTEMPTS, wait },
        writeSeconds: WRITE_SECONDS,
        silenceMs: options.storeTimeoutMs === 0 ? undefined : options.storeTimeoutMs,
      });
      onOpened(store);
      return store;
    },
    log,
    ending: signals.ending,
    events: {
      onStored: (table, row) => metrics.stored(table as RowTable, row),
      onInsert: (seconds) => metrics.inserted(seconds),
      onFailure: () => metrics.storeFailed(),
      onFirst: () => log.info('stored'),
    },
  });
}

/** Within the folder of an embedded store, so that the two stay together. */
function spoolPath({ spool, store, clickhouse }: TailCommandOptions): string {
  if (spool !== undefined) return spool;
  return clickhouse === undefined ? join(store ?? DEFAULT_STORE, 'spool') : DEFAULT_SPOOL;
}
