/**
 * Opens standard input and the sockets that nginx's syslog is received on, and says what they can't
 * promise.
 */
import { receiveStdin, type LiveInput } from '../input/live-lines.js';
import { receiveSyslog, type SyslogCounters, type SyslogReceiver } from '../input/syslog.js';
import { unixQueueDatagrams } from '../input/syslog-drops.js';
import { addressFor, parseSyslogAddress } from '../input/syslog-address.js';
import type { JsonLog } from './json-log.js';
import { syslogServers, type LivePlan } from './live-logs.js';
import type { TailLogs } from './tail-logs.js';

/** What comes while a reader of the socket is kept waiting for a tenth of a second. */
const ENOUGH_DATAGRAMS = 512;

/** Counted by one socket since its start. */
export interface Received {
  /** `syslog:udp://127.0.0.1:5514`. */
  readonly source: string;
  readonly counters: Readonly<SyslogCounters>;
}

export class LiveInputs {
  readonly #log: JsonLog;
  readonly #inputs: { readonly plan: LivePlan; readonly input: LiveInput }[] = [];
  readonly #receivers = new Map<string, SyslogReceiver>();
  /** Drops that have been told of. */
  readonly #told = new Map<string, number>();

  private constructor(log: JsonLog) {
    this.#log = log;
  }

  /**
   * To be called before an embedded store is opened (receiveStdin).
   *
   * @param onReceived called when there is something to take
   * @throws InputError 64 for a bad address, 74 for one that cannot be listened on
   */
  static async open(logs: TailLogs, log: JsonLog, onReceived: () => void): Promise<LiveInputs> {
    const opened = new LiveInputs(log);
    try {
      for (const plan of logs.live) await opened.#open(plan, onReceived);
    } catch (error) {
      await opened.close();
      throw error;
    }
    for (const { path } of logs.liveLeftOut) {
      log.info('not counted', { path, reason: 'another log holds the same requests' });
    }
    opened.#sayWhatIsMissing(logs);
    return opened;
  }

  get all(): readonly { readonly plan: LivePlan; readonly input: LiveInput }[] {
    return this.#inputs;
  }

  get received(): readonly Received[] {
    return [...this.#receivers].map(([source, { counters }]) => ({ source, counters }));
  }

  /** Says so when datagrams have been dropped since the last call. */
  tellDrops(): void {
    for (const { source, counters } of this.received) {
      const { kernelDrops = 0, queueDrops } = counters;
      const drops = kernelDrops + queueDrops;
      const before = this.#told.get(source) ?? 0;
      if (drops === before) continue;
      this.#told.set(source, drops);
      this.#log.error('lines sent by syslog were dropped', {
        source,
        dropped: drops - before,
        byKernel: kernelDrops,
        byQueue: queueDrops,
      });
    }
  }

  async close(): Promise<void> {
    for (const { input } of this.#inputs) await input.close();
  }

  async #open(plan: LivePlan, onReceived: () => void): Promise<void> {
    const fail = (error: string): void => {
      this.#log.error('receives no more', { source: plan.name, error });
      onReceived();
    };
    if (plan.input.kind === 'stdin') {
      this.#inputs.push({ plan, input: receiveStdin(onReceived, fail) });
      return;
    }
    const address = parseSyslogAddress(plan.input.text);
    const receiver = await receiveSyslog(address, {
      onReceived,
      onFailed: (error) => {
        fail(error.message);
      },
    });
    this.#receivers.set(plan.name, receiver);
    this.#inputs.push({ plan, input: receiver });
    const { port, grantedBytes } = receiver;
    this.#log.info('receives', { source: plan.name, port, bufferBytes: grantedBytes });
    const datagrams = address.kind === 'udp' ? undefined : unixQueueDatagrams();
    if (datagrams === undefined || datagrams >= ENOUGH_DATAGRAMS) return;
    this.#log.warn('nginx does not wait for a unix socket, and this machine lets it hold little', {
      source: plan.name,
      datagrams,
      hint: `sysctl net.unix.max_dgram_qlen=${ENOUGH_DATAGRAMS} before the start, or UDP`,
    });
  }

  #sayWhatIsMissing({ live, confs }: TailLogs): void {
    if (live.length > 0) {
      this.#log.warn(
        'lines received are stored once, but come only once: what comes while this is not running ' +
          'is lost, and with a kill what came since the last state; files lose nothing',
        { sources: live.map(({ name }) => name) },
      );
    }
    if (live.some(({ input }) => input.kind === 'syslog')) return;
    for (const server of syslogServers(confs[confs.length - 1]!)) {
      this.#log.warn('nginx sends a log by syslog, which is not received', {
        server,
        hint: `give --syslog ${addressFor(server)} where nginx reaches this machine by that address`,
      });
    }
  }
}
