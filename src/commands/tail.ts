/**
 * `limitlens tail`: follows logs, replays and stores as they grow, and serves metrics.
 *
 * Here is when things happen; what happens is in ../daemon. SIGTERM and SIGINT read what is there,
 * decide all that waits and end with 0; a second signal ends at once, and the next start goes on
 * from the last step stored.
 */
import { TailMetrics } from '../metrics/tail-metrics.js';
import { parseListen, serve } from '../metrics/http.js';
import { JsonLog } from '../daemon/json-log.js';
import type { LeftOutLog } from '../daemon/log-teller.js';
import { findTailLogs } from '../daemon/tail-logs.js';
import { Tailer } from '../daemon/tailer.js';
import { EXIT, type ExitCode } from '../errors.js';
import { checkTimezone, readConfs } from '../pipeline/confs.js';
import { openStore } from '../store/store.js';
import { parseRetention } from './retention.js';
import { checkStoreChoice, storeOptions, type StoreChoice } from './store-choice.js';

/** Long enough for the bytes of a few seconds, shorter than what service managers wait. */
const LONGEST_DRAIN_MS = 60_000;

export interface TailCommandOptions extends StoreChoice {
  readonly conf: readonly string[];
  readonly errorLog: readonly string[];
  readonly instance: string;
  readonly latenessMs: number;
  readonly timezone?: string;
  readonly logFormat?: string;
  readonly allLogs?: boolean;
  readonly chunkBytes?: number;
  readonly listen: string;
  readonly commitIntervalMs: number;
  readonly retention: readonly string[];
  readonly version: string;
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
  parseListen(options.listen);
  parseRetention(options.retention);
  checkStoreChoice(options);
  const confs = readConfs(options.conf).map(({ conf }) => conf);
  await findTailLogs(files, options.errorLog, confs);
}

/** @returns 0 after a drain, 74 when it did not end in time */
export async function tailCommand(
  files: readonly string[],
  options: TailCommandOptions,
): Promise<ExitCode> {
  checkTimezone(options.timezone);
  const log = new JsonLog(process.stderr);
  const stop = new StopSignal(log);
  const generations = readConfs(options.conf);
  const confs = generations.map((input) => input.conf);
  const logs = await findTailLogs(files, options.errorLog, confs, options);
  const sayLeftOut = ({ path, reason }: LeftOutLog): void => {
    log.info('not followed', { path, reason });
  };
  logs.leftOut.forEach(sayLeftOut);
  logs.teller.onLeftOut = sayLeftOut;
  const conf = confs[confs.length - 1]!;
  const metrics = new TailMetrics({
    instance: options.instance,
    version: options.version,
    zones: [...conf.reqZones.keys()],
    connZones: [...new Set(conf.ruleSets.flatMap((rules) => rules.connLimits.map((l) => l.zone)))],
  });
  let isReady = false;
  const retention = parseRetention(options.retention);
  const store = await openStore({
    ...storeOptions(options),
    ...(retention === undefined ? {} : { retention }),
    createIfMissing: true,
  });
  const tailer = new Tailer(store, {
    instance: options.instance,
    generations,
    logs,
    latenessMs: options.latenessMs,
    zone: options.timezone === undefined ? undefined : { iana: options.timezone },
    ...(options.chunkBytes === undefined ? {} : { mostBytes: options.chunkBytes }),
    log,
    onStored: (table, row) => metrics.stored(table, row),
    onStoreError: () => {
      isReady = false;
      metrics.storeFailed();
    },
  });
  const { server, address } = await serve(options.listen, {
    isReady: () => isReady,
    metrics: async () => ({ type: metrics.contentType, text: await metrics.text() }),
  });
  log.info('listens', { address: address.address, port: address.port });
  try {
    await tailer.begin();
    log.info('follows', { logs: [...logs.access, ...logs.errors].map(({ path }) => path) });
    while (!stop.isAsked) {
      const isMore = await tailer.step();
      if (!isReady) log.info('stored', { newestMs: tailer.newestMs });
      isReady = true;
      metrics.stepStored();
      for (const [source, lagBytes] of tailer.lagBytes) {
        metrics.source(source, tailer.newestMs, lagBytes, Date.now());
      }
      if (!isMore) await stop.wait(options.commitIntervalMs);
    }
    const bound = setTimeout(() => {
      log.error('did not drain in time; the next start goes on from the last step stored');
      process.exit(EXIT.io);
    }, LONGEST_DRAIN_MS);
    await tailer.drain();
    clearTimeout(bound);
    log.info('drained');
  } finally {
    server.close();
    server.closeAllConnections();
    await tailer.close();
    await store.close();
    stop.close();
  }
  return EXIT.ok;
}

class StopSignal {
  isAsked = false;
  readonly #log: JsonLog;
  #wake: (() => void) | undefined;

  constructor(log: JsonLog) {
    this.#log = log;
    process.on('SIGTERM', this.#take);
    process.on('SIGINT', this.#take);
  }

  async wait(ms: number): Promise<void> {
    if (this.isAsked) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }

  close(): void {
    process.off('SIGTERM', this.#take);
    process.off('SIGINT', this.#take);
  }

  readonly #take = (signal: NodeJS.Signals): void => {
    if (this.isAsked) process.exit(signal === 'SIGINT' ? 130 : 143);
    this.isAsked = true;
    this.#log.info('drains', { signal });
    this.#wake?.();
  };
}
