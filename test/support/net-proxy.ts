/**
 * A network between a client and a server, in which answers get lost or trickle.
 */
import { EventEmitter, once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Cleanup } from './temp-dir.js';

/** `hang`: connections are taken, and nothing ever comes back. `trickle`: a few bytes at a time. */
export type NetMode = 'pass' | 'hang' | 'trickle';

const TRICKLE_BYTES = 16;
const TRICKLE_MS = 200;

export class NetProxy {
  readonly url: string;
  mode: NetMode = 'pass';
  readonly #trickled = new EventEmitter();

  private constructor(url: string) {
    this.url = url;
  }

  /** @param target URL of the server behind it */
  static async open(t: Cleanup, target: string): Promise<NetProxy> {
    const { hostname, port } = new URL(target);
    const sockets = new Set<Socket>();
    const server = createServer((near) => {
      const far = connect(Number(port), hostname);
      for (const socket of [near, far]) {
        sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => sockets.delete(socket));
      }
      near.on('close', () => far.destroy());
      near.on('data', (bytes) => {
        if (proxy.mode !== 'hang') far.write(bytes);
      });
      let sent = Promise.resolve();
      far.on('data', (bytes) => {
        sent = sent.then(() => proxy.#back(near, bytes));
      });
      // What is still on its way arrives first.
      far.on('close', () => {
        void sent.then(() => near.end());
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    const proxy = new NetProxy(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return proxy;
  }

  /** Waits for an answer that took so long from its first piece to its last one. */
  async trickledFor(ms: number): Promise<void> {
    for (let tookMs = 0; tookMs < ms;) {
      [tookMs] = (await once(this.#trickled, 'answer')) as [number];
    }
  }

  async #back(near: Socket, bytes: Buffer): Promise<void> {
    if (this.mode === 'hang' || near.destroyed) return;
    if (this.mode === 'pass') {
      near.write(bytes);
      return;
    }
    const beganMs = performance.now();
    for (let at = 0; at < bytes.length && !near.destroyed; at += TRICKLE_BYTES) {
      near.write(bytes.subarray(at, at + TRICKLE_BYTES));
      await new Promise((resolve) => setTimeout(resolve, TRICKLE_MS));
    }
    if (!near.destroyed) this.#trickled.emit('answer', performance.now() - beganMs);
  }
}
