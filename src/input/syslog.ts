/**
 * Log lines that nginx sends by syslog, over UDP or to a unix datagram socket.
 *
 * A datagram is a line. It is received in a thread of its own (syslog-worker.ts) and waits here
 * until it is taken. What the kernel or the bounded queue had to drop is counted; nothing of it
 * comes back, and a restart loses what comes in between: files lose less.
 *
 * Units: bytes. Not here: telling access lines from error lines; prefixes of relaying daemons.
 */
import { Worker } from 'node:worker_threads';
import { EXIT, InputError } from '../errors.js';
import type { OnLine } from './follow-progress.js';
import type { LiveInput } from './live-lines.js';
import { syslogLineStart } from './syslog-message.js';
import type { FromWorker, SyslogAddress, ToWorker, WorkerOptions } from './syslog-worker.js';

const DEFAULT_BUFFER_BYTES = 8 << 20;
const DEFAULT_QUEUED_BYTES = 64 << 20;

export interface SyslogOptions {
  /** The socket's buffer in the kernel; without privileges net.core.rmem_max bounds it. */
  readonly bufferBytes?: number;
  /** Received and not taken: beyond it datagrams are dropped. */
  readonly mostQueuedBytes?: number;
  /** Called when there is something to take, and when the counts of drops have come anew. */
  readonly onReceived?: () => void;
  /** Called when receiving has ended by itself. */
  readonly onFailed?: (error: Error) => void;
}

export interface SyslogCounters {
  datagrams: number;
  /** Not as nginx writes them; given whole. */
  foreign: number;
  /** Dropped because the main thread did not keep up. */
  queueDrops: number;
  /** Dropped by the kernel; undefined where it does not count them, as for unix sockets. */
  kernelDrops: number | undefined;
}

interface Block {
  readonly bytes: Uint8Array;
  readonly ends: Uint32Array;
}

/** A listening receiver. Made by receiveSyslog(). */
export class SyslogReceiver implements LiveInput {
  /** The source of all its lines. */
  readonly sourceId: string;
  readonly counters: SyslogCounters = {
    datagrams: 0,
    foreign: 0,
    queueDrops: 0,
    kernelDrops: undefined,
  };
  port = 0;
  /** What the kernel granted of bufferBytes; Linux counts twice what is asked for. */
  grantedBytes = 0;
  /** Received and not taken. */
  queuedBytes = 0;
  readonly #worker: Worker;
  readonly #options: SyslogOptions;
  readonly #blocks: Block[] = [];
  #offset = 0;
  #isStopping = false;
  #onStopped: (() => void) | undefined;

  constructor(worker: Worker, sourceId: string, options: SyslogOptions) {
    this.#worker = worker;
    this.sourceId = sourceId;
    this.#options = options;
  }

  /**
   * Gives the lines received since the last call, without their headers. Offsets count the bytes
   * of the datagrams received since the start.
   *
   * @returns whether there were any
   */
  take(onLine: OnLine): boolean {
    const blocks = this.#blocks.splice(0);
    for (const { bytes, ends } of blocks) {
      let start = 0;
      for (const end of ends) {
        const line = syslogLineStart(bytes, start, end);
        if (line < 0) this.counters.foreign++;
        this.counters.datagrams++;
        const offset = this.#offset;
        this.#offset += end - start;
        onLine(bytes, line < 0 ? start : line, end, offset, this.#offset, this.sourceId);
        start = end;
      }
      this.queuedBytes -= bytes.length;
      this.#post({ kind: 'taken', bytes: bytes.length });
    }
    return blocks.length > 0;
  }

  /** Ends receiving; what has been received can still be taken. */
  async close(): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    const stopped = new Promise<void>((resolve) => (this.#onStopped = resolve));
    this.#post({ kind: 'stop' });
    await stopped;
  }

  get hasEnded(): boolean {
    return this.#isStopping;
  }

  handle(message: FromWorker): void {
    if (message.kind === 'block') {
      this.#blocks.push(message);
      this.queuedBytes += message.bytes.length;
      this.#options.onReceived?.();
    } else if (message.kind === 'drops') {
      this.counters.queueDrops = message.queue;
      this.counters.kernelDrops = message.kernel;
      this.#options.onReceived?.();
    } else if (message.kind === 'stopped') this.#onStopped?.();
  }

  fail(error: Error): void {
    this.#onStopped?.();
    if (!this.#isStopping) this.#options.onFailed?.(error);
    this.#isStopping = true;
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message);
  }
}

/**
 * Listens for nginx's syslog messages.
 *
 * @throws InputError 74 when the address cannot be listened on
 */
export async function receiveSyslog(
  address: SyslogAddress,
  options: SyslogOptions = {},
): Promise<SyslogReceiver> {
  const workerData: WorkerOptions = {
    address,
    bufferBytes: options.bufferBytes ?? DEFAULT_BUFFER_BYTES,
    mostQueuedBytes: options.mostQueuedBytes ?? DEFAULT_QUEUED_BYTES,
  };
  const where = addressText(address);
  const worker = new Worker(new URL('./syslog-worker.js', import.meta.url), { workerData });
  const receiver = new SyslogReceiver(worker, where, options);
  return new Promise((resolve, reject) => {
    worker.on('message', (message: FromWorker) => {
      if (message.kind === 'failed') reject(cannotListen(where, message.reason));
      else if (message.kind === 'listening') {
        receiver.port = message.port;
        receiver.grantedBytes = message.grantedBytes;
        resolve(receiver);
      } else receiver.handle(message);
    });
    worker.on('error', (error) => {
      reject(error);
      receiver.fail(error);
    });
  });
}

function addressText(address: SyslogAddress): string {
  if (address.kind === 'path') return `syslog:unix:${address.path}`;
  if (address.kind === 'descriptor') return `syslog:descriptor:${address.fd}`;
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return `syslog:${host}:${address.port}`;
}

function cannotListen(where: string, reason: string): InputError {
  return new InputError(
    `${where}: cannot be listened on (${reason})\n` +
      '  Is another program there already? A port below 1024 needs a privilege, a path a folder that we may write to.',
    EXIT.io,
  );
}
