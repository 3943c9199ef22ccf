/**
 * What `limit_conn N` would have refused, for several N at once.
 *
 * Every N has a limit_conn zone of its own (src/limit-req/limit-conn.ts), since what one N refuses
 * holds no connection there. The caller says when requests begin and end, in order of time.
 */
import { ConnMemory } from '../limit-req/limit-conn.js';

const NONE = -1;

export class ConnCandidates {
  /** By candidate: N, and how many requests it would have refused. */
  readonly connections: readonly number[];
  readonly rejected: number[];
  readonly #memories: readonly ConnMemory[];

  /** @param connections at most 31 of them, ascending */
  constructor(connections: readonly number[], zone: { sizeBytes: number; nameLength: number }) {
    this.connections = connections;
    this.rejected = connections.map(() => 0);
    this.#memories = connections.map(() => new ConnMemory(zone));
  }

  /**
   * A request of the key begins.
   *
   * @param held filled: what to give back at its end, by candidate
   * @returns a bit for each candidate that refuses it
   */
  begin(keyId: number, keyLengthBytes: number, held: Int32Array): number {
    let refusedBy = 0;
    for (let i = 0; i < this.connections.length; i++) {
      const node = this.#memories[i]!.acquire(keyId, keyLengthBytes, this.connections[i]!);
      held[i] = node < 0 ? NONE : node;
      if (node >= 0) continue;
      refusedBy |= 1 << i;
      this.rejected[i]!++;
    }
    return refusedBy;
  }

  end(held: Int32Array): void {
    for (let i = 0; i < this.connections.length; i++) {
      if (held[i]! >= 0) this.#memories[i]!.release(held[i]!);
    }
  }
}
