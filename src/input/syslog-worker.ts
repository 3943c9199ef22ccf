/**
 * The thread that receives syslog datagrams, so that a busy main thread loses none.
 *
 * Datagrams are packed into blocks and handed over; what the main thread has not taken yet is
 * bounded, and beyond that datagrams are dropped and counted here.
 *
 * Not here: what is in them (syslog-message.ts), the other end (syslog.ts).
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { kernelDrops } from './syslog-drops.js';
import { startPump, type DatagramSocket } from './syslog-pump.js';

export type SyslogAddress =
  { readonly kind: 'udp'; readonly host: string; readonly port: number } | DatagramSocket;

export interface WorkerOptions {
  readonly address: SyslogAddress;
  /** Of the socket, in the kernel; it may grant less. */
  readonly bufferBytes: number;
  /** Handed over and not taken yet. */
  readonly mostQueuedBytes: number;
}

/** To the main thread. A block is datagrams one after the other, with where each ends. */
export type FromWorker =
  | { readonly kind: 'listening'; readonly port: number; readonly grantedBytes: number }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'block'; readonly bytes: Uint8Array; readonly ends: Uint32Array }
  | {
      readonly kind: 'drops';
      readonly queue: number;
      /** undefined where the kernel does not count. */
      readonly kernel: number | undefined;
    }
  | { readonly kind: 'stopped' };

/** From the main thread. */
export type ToWorker =
  { readonly kind: 'taken'; readonly bytes: number } | { readonly kind: 'stop' };

const BLOCK_BYTES = 1 << 16;
const MOST_IN_BLOCK = 1 << 12;
const LONGEST_WAIT_MS = 20;
const DROPS_EVERY_MS = 1000;

/** Packs datagrams into blocks. */
class BlockWriter {
  readonly #mostQueuedBytes: number;
  readonly #send: (bytes: Uint8Array, ends: Uint32Array) => void;
  #bytes = new Uint8Array(BLOCK_BYTES);
  #ends = new Uint32Array(MOST_IN_BLOCK);
  #filled = 0;
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  queuedBytes = 0;
  dropped = 0;
  onDrop: () => void = () => undefined;

  constructor(mostQueuedBytes: number, send: (bytes: Uint8Array, ends: Uint32Array) => void) {
    this.#mostQueuedBytes = mostQueuedBytes;
    this.#send = send;
  }

  add(datagram: Uint8Array): void {
    if (this.queuedBytes + datagram.length > this.#mostQueuedBytes) {
      this.dropped++;
      this.onDrop();
      return;
    }
    if (this.#filled + datagram.length > BLOCK_BYTES || this.#count === MOST_IN_BLOCK) this.flush();
    this.#bytes.set(datagram, this.#filled);
    this.#filled += datagram.length;
    this.queuedBytes += datagram.length;
    this.#ends[this.#count++] = this.#filled;
    this.#timer ??= setTimeout(() => {
      this.flush();
    }, LONGEST_WAIT_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#count === 0) return;
    this.#send(this.#bytes.slice(0, this.#filled), this.#ends.slice(0, this.#count));
    this.#filled = 0;
    this.#count = 0;
  }
}

interface Receiver {
  readonly port: number;
  readonly grantedBytes: number;
  kernelDrops(): number | undefined;
  stop(): Promise<void>;
}

async function receiveUdp(
  address: SyslogAddress & { kind: 'udp' },
  bufferBytes: number,
  writer: BlockWriter,
): Promise<Receiver> {
  const type = address.host.includes(':') ? 'udp6' : 'udp4';
  const socket: Socket = createSocket({ type, recvBufferSize: bufferBytes });
  socket.on('message', (message) => {
    writer.add(message);
  });
  socket.bind(address.port, address.host);
  // A failure before this rejects; one after it has no listener and ends the thread.
  await once(socket, 'listening');
  const bound = socket.address();
  return {
    port: bound.port,
    grantedBytes: socket.getRecvBufferSize(),
    kernelDrops: () => kernelDrops(bound.address, bound.port),
    stop: async () => {
      const closed = once(socket, 'close');
      socket.close();
      await closed;
    },
  };
}

async function receivePumped(
  socket: DatagramSocket,
  bufferBytes: number,
  writer: BlockWriter,
): Promise<Receiver> {
  let isStopping = false;
  const onEnd = (reason: string): void => {
    // The thread ends with it, and the main thread hears why.
    if (!isStopping) throw new Error(`the receiving program ended: ${reason}`);
  };
  const pump = await startPump(
    socket,
    bufferBytes,
    (bytes) => {
      writer.add(bytes);
    },
    onEnd,
  );
  return {
    port: 0,
    grantedBytes: bufferBytes,
    kernelDrops: () => undefined,
    stop: () => {
      isStopping = true;
      return pump.stop();
    },
  };
}

async function run(options: WorkerOptions): Promise<void> {
  const port = parentPort!;
  const post = (message: FromWorker): void => {
    port.postMessage(message);
  };
  const writer = new BlockWriter(options.mostQueuedBytes, (bytes, ends) => {
    const message: FromWorker = { kind: 'block', bytes, ends };
    port.postMessage(message, [bytes.buffer as ArrayBuffer, ends.buffer as ArrayBuffer]);
  });
  const { address, bufferBytes } = options;
  let receiver: Receiver;
  try {
    receiver =
      address.kind === 'udp'
        ? await receiveUdp(address, bufferBytes, writer)
        : await receivePumped(address, bufferBytes, writer);
  } catch (error) {
    post({ kind: 'failed', reason: (error as Error).message });
    port.close();
    return;
  }
  post({ kind: 'listening', port: receiver.port, grantedBytes: receiver.grantedBytes });
  let isTold = false;
  const tellDrops = (): void => {
    post({ kind: 'drops', queue: writer.dropped, kernel: receiver.kernelDrops() });
  };
  const timer = setInterval(() => {
    isTold = false;
    tellDrops();
  }, DROPS_EVERY_MS);
  // The first of a second is told at once.
  writer.onDrop = () => {
    if (!isTold) tellDrops();
    isTold = true;
  };
  const stop = async (): Promise<void> => {
    clearInterval(timer);
    tellDrops();
    await receiver.stop();
    writer.flush();
    post({ kind: 'stopped' });
    port.close();
  };
  port.on('message', (message: ToWorker) => {
    if (message.kind === 'taken') writer.queuedBytes -= message.bytes;
    else void stop();
  });
}

await run(workerData as WorkerOptions);
