/**
 * nginx's limit_conn: how many requests of a key are under way.
 *
 * Follows ngx_http_limit_conn_handler() and ngx_http_limit_conn_cleanup(). A node lives as long
 * as its key has connections; nothing is ever evicted, so a full zone rejects every new key. Dry
 * run has the same effects on memory. Lengths are bytes.
 *
 * Not here: when requests end (the caller releases what they hold), and keys.
 */
import { limitConnCapacityNodes } from './capacity.js';
import { MAX_CONN_KEY_BYTES, limitConnNodeBytes, limitConnOverhead } from './layout.js';
import { NodeTable, resized, type NodeTableSnapshot } from './node-table.js';
import { Slab, type SlabSnapshot } from './slab.js';

const NONE = -1;
const FIRST_NODES = 256;

/** Results of ConnMemory.acquire() that are not a node. */
export const CONN_BUSY = -1;
export const CONN_NO_MEMORY = -2;

export interface ConnMemorySnapshot {
  readonly nameLength: number;
  readonly slab: SlabSnapshot;
  readonly table: NodeTableSnapshot;
  readonly connections: number[];
}

/** The memory of one limit_conn zone. */
export class ConnMemory {
  readonly sizeBytes: number;
  readonly nameLength: number;
  #slab: Slab;
  #table = new NodeTable(FIRST_NODES);
  #connections = new Int32Array(FIRST_NODES);

  /** @param options nameLength: that of the zone's name, in bytes */
  constructor(options: { readonly sizeBytes: number; readonly nameLength: number }) {
    this.sizeBytes = options.sizeBytes;
    this.nameLength = options.nameLength;
    this.#slab = new Slab(options.sizeBytes);
    for (const bytes of limitConnOverhead(options.nameLength)) this.#slab.alloc(bytes);
  }

  /** Nodes in use: keys with at least one connection. */
  get nodes(): number {
    return this.#table.count;
  }

  get pages(): number {
    return this.#slab.pages;
  }

  get pagesFree(): number {
    return this.#slab.pagesFree;
  }

  /** Nodes that fit when all keys have this length. */
  capacityNodes(keyLengthBytes: number): number {
    return limitConnCapacityNodes(this.sizeBytes, keyLengthBytes, this.nameLength);
  }

  /** The node that holds this key, or -1. */
  find(keyId: number): number {
    return this.#table.find(keyId);
  }

  connections(node: number): number {
    return this.#connections[node]!;
  }

  /**
   * Counts one more connection of the key.
   *
   * @param most the limit's number of connections
   * @returns the node to release later, CONN_BUSY or CONN_NO_MEMORY
   */
  acquire(keyId: number, keyLengthBytes: number, most: number): number {
    let node = this.#table.find(keyId);
    if (node === NONE) {
      const page = this.#slab.alloc(limitConnNodeBytes(keyLengthBytes));
      if (page === NONE) return CONN_NO_MEMORY;
      node = this.#table.take(keyId, page);
      if (node >= this.#connections.length) {
        this.#connections = resized(this.#connections, this.#table.size);
      }
      // A limit is at least 1, so a key's first connection is never compared with it.
      this.#connections[node] = 1;
      return node;
    }
    if (this.#connections[node]! >= most) return CONN_BUSY;
    this.#connections[node] = this.#connections[node]! + 1;
    return node;
  }

  /** Ends one connection; with the last one the key's node is freed. Returns how many are left. */
  release(node: number): number {
    const left = this.#connections[node]! - 1;
    this.#connections[node] = left;
    if (left === 0) {
      this.#slab.free(this.#table.pageOf(node));
      this.#table.drop(node);
    }
    return left;
  }

  snapshot(): ConnMemorySnapshot {
    const nodes: number[] = [];
    for (let node = 0; node < this.#connections.length; node++) {
      if (this.#connections[node]! > 0) nodes.push(node);
    }
    return {
      nameLength: this.nameLength,
      slab: this.#slab.snapshot(),
      table: this.#table.snapshot(nodes),
      connections: nodes.map((node) => this.#connections[node]!),
    };
  }

  static restore(snapshot: ConnMemorySnapshot): ConnMemory {
    const zone = new ConnMemory({
      sizeBytes: snapshot.slab.sizeBytes,
      nameLength: snapshot.nameLength,
    });
    zone.#slab = Slab.restore(snapshot.slab);
    zone.#table = NodeTable.restore(snapshot.table);
    zone.#connections = new Int32Array(zone.#table.size);
    for (const [i, node] of snapshot.table.nodes.entries()) {
      zone.#connections[node] = snapshot.connections[i]!;
    }
    return zone;
  }
}

/** One limit_conn line. */
export interface ModelConnLimit {
  /** Index into the model's zones. */
  readonly zone: number;
  readonly connections: number;
}

export const CONN_STATUS = { none: 0, passed: 1, rejected: 2, exhausted: 3 } as const;
export type ConnStatus = (typeof CONN_STATUS)[keyof typeof CONN_STATUS];

/** Several limit_conn lines on one request. */
export class LimitConnModel {
  readonly zones: readonly ConnMemory[];
  /** The limit that rejected the last request, as an index into its list; else -1. */
  decidedBy = NONE;

  constructor(zones: readonly ConnMemory[]) {
    this.zones = zones;
  }

  /**
   * Decides one request. `exhausted` is a rejection too, for want of memory.
   *
   * @param keyIds by limit; -1 for an empty key
   * @param keyLengths by limit, in bytes
   * @param held filled by limit: the node to release when the request ends, -1 for none; all -1
   *   after a rejection, since nginx then gives back what earlier limits took
   */
  decide(
    limits: readonly ModelConnLimit[],
    keyIds: ArrayLike<number>,
    keyLengths: ArrayLike<number>,
    held: Int32Array,
  ): ConnStatus {
    let status: ConnStatus = CONN_STATUS.none;
    held.fill(NONE);
    this.decidedBy = NONE;
    for (let i = 0; i < limits.length; i++) {
      if (keyIds[i]! < 0 || keyLengths[i]! > MAX_CONN_KEY_BYTES) continue;
      status = CONN_STATUS.passed;
      const limit = limits[i]!;
      const node = this.zones[limit.zone]!.acquire(keyIds[i]!, keyLengths[i]!, limit.connections);
      if (node < 0) {
        this.release(limits, held);
        this.decidedBy = i;
        return node === CONN_NO_MEMORY ? CONN_STATUS.exhausted : CONN_STATUS.rejected;
      }
      held[i] = node;
    }
    return status;
  }

  /** Gives back what a request holds, the last taken first. */
  release(limits: readonly ModelConnLimit[], held: Int32Array): void {
    for (let i = limits.length - 1; i >= 0; i--) {
      const node = held[i]!;
      if (node === NONE) continue;
      this.zones[limits[i]!.zone]!.release(node);
      held[i] = NONE;
    }
  }
}
