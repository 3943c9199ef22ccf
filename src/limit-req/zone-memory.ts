/**
 * The memory of one limit_req zone: its nodes, their order of use, and who is forgotten when.
 *
 * Follows ngx_http_limit_req_lookup() where it finds, moves and makes nodes, and
 * ngx_http_limit_req_expire(). Lookup, arithmetic and storing are separate steps, so that a
 * replay can judge a request before it decides what to store. Nodes and keys are small dense
 * integers; milliReq, milliRps, ms and bytes as everywhere.
 *
 * Not here: the judgement of a request (limits.ts), sums (arithmetic.ts), pages (slab.ts).
 */
import { decayedExcess, isIdle } from './arithmetic.js';
import { limitReqCapacityNodes } from './capacity.js';
import { limitReqNodeBytes, limitReqOverhead } from './layout.js';
import { NodeTable, resized, type NodeTableSnapshot } from './node-table.js';
import { Slab, type SlabSnapshot } from './slab.js';

const NONE = -1;
const DEFAULT_INITIAL_NODES = 1024;
/** expire(1) frees two at most, expire(0) one by force and two more. */
const MOST_EVICTED = 5;

export interface ZoneMemoryOptions {
  readonly sizeBytes: number;
  /** Length of the zone's name in bytes: the zone stores it in its own memory. */
  readonly nameLength: number;
  readonly rateMilliRps: number;
  /** Nodes to make room for at once; the arrays grow on demand. */
  readonly initialNodes?: number;
}

/** The exact state of a zone, in JSON. Nodes run from the oldest to the newest. */
export interface ZoneMemorySnapshot {
  readonly nameLength: number;
  readonly rateMilliRps: number;
  readonly slab: SlabSnapshot;
  readonly table: NodeTableSnapshot;
  readonly excessMilliReq: number[];
  readonly lastMs: number[];
  readonly counts: number[];
}

export class ZoneMemory {
  readonly sizeBytes: number;
  readonly nameLength: number;
  /** May change at a reload that keeps the state; nginx then decays all time since at the new rate. */
  rateMilliRps: number;

  /** By node, for the caller to read and write. Another array once the nodes outgrow it. */
  excessMilliReq: Float64Array;
  /** By node, for the caller to read and write. Another array once the nodes outgrow it. */
  lastMs: Float64Array;

  /** Keys that the last create() forgot, in that order. */
  readonly evictedKeys = new Int32Array(MOST_EVICTED);
  /** What they still owed: excess decayed to that moment, zero or less for none. */
  readonly evictedExcessMilliReq = new Float64Array(MOST_EVICTED);
  /** 1 where the node was freed by force, not for being idle. */
  readonly evictedForced = new Uint8Array(MOST_EVICTED);
  evictedCount = 0;
  /** Slab calls of the last create() that failed: 0, 1 (a forced eviction helped) or 2 (no node). */
  allocFailures = 0;

  #slab: Slab;
  #table: NodeTable;
  #counts: Int32Array;
  #newer: Int32Array;
  #older: Int32Array;
  #newest = NONE;
  #oldest = NONE;

  constructor(options: ZoneMemoryOptions) {
    this.sizeBytes = options.sizeBytes;
    this.nameLength = options.nameLength;
    this.rateMilliRps = options.rateMilliRps;
    this.#slab = new Slab(options.sizeBytes);
    for (const bytes of limitReqOverhead(options.nameLength)) this.#slab.alloc(bytes);
    this.#table = new NodeTable(options.initialNodes ?? DEFAULT_INITIAL_NODES);
    const size = this.#table.size;
    this.excessMilliReq = new Float64Array(size);
    this.lastMs = new Float64Array(size);
    this.#counts = new Int32Array(size);
    this.#newer = new Int32Array(size);
    this.#older = new Int32Array(size);
  }

  /** Nodes in use. */
  get nodes(): number {
    return this.#table.count;
  }

  /** Pages that the zone can hand out at most. */
  get pages(): number {
    return this.#slab.pages;
  }

  /** Pages in no use at all. */
  get pagesFree(): number {
    return this.#slab.pagesFree;
  }

  /** Nodes that fit when all keys have this length. */
  capacityNodes(keyLengthBytes: number): number {
    return limitReqCapacityNodes(this.sizeBytes, keyLengthBytes, this.nameLength);
  }

  /** Nodes that still owe something. Walks them all: for gauges, not for every request. */
  nodesInDebt(nowMs: number): number {
    let inDebt = 0;
    for (let node = this.#oldest; node !== NONE; node = this.#newer[node]!) {
      if (this.#decayed(node, nowMs) > 0) inDebt++;
    }
    return inDebt;
  }

  /** The node that holds this key, or -1. Changes nothing. */
  find(keyId: number): number {
    return this.#table.find(keyId);
  }

  keyOf(node: number): number {
    return this.#table.keyOf(node);
  }

  /** Makes the node the newest, as every lookup does, a rejected request's too. */
  touch(node: number): void {
    if (node === this.#newest) return;
    this.#unlink(node);
    this.#linkNewest(node);
  }

  /**
   * Makes a node for a key that has none: frees up to two idle ones, allocates, and if that fails
   * frees the oldest by force (and up to two idle ones) and tries once more.
   *
   * The node starts unpinned with excess 0 and last = now, as for the last limit of a list; a
   * lookup that is accounted later sets last to 0 and pins it.
   *
   * @returns the node, or -1 when both allocations failed; what was freed is lost either way, and
   *   stands in evictedKeys[0..evictedCount)
   */
  create(keyId: number, keyLengthBytes: number, nowMs: number): number {
    const bytes = limitReqNodeBytes(keyLengthBytes);
    this.evictedCount = 0;
    this.allocFailures = 0;
    this.#expire(1, nowMs);
    let page = this.#slab.alloc(bytes);
    if (page === NONE) {
      this.allocFailures = 1;
      this.#expire(0, nowMs);
      page = this.#slab.alloc(bytes);
      if (page === NONE) {
        this.allocFailures = 2;
        return NONE;
      }
    }
    const node = this.#table.take(keyId, page);
    if (node >= this.lastMs.length) this.#grow();
    this.excessMilliReq[node] = 0;
    this.lastMs[node] = nowMs;
    this.#counts[node] = 0;
    this.#linkNewest(node);
    return node;
  }

  /** Keeps the node from being freed until unpin(): a request between lookup and accounting. */
  pin(node: number): void {
    this.#counts[node] = this.#counts[node]! + 1;
  }

  unpin(node: number): void {
    this.#counts[node] = this.#counts[node]! - 1;
  }

  isPinned(node: number): boolean {
    return this.#counts[node]! > 0;
  }

  /** The oldest node, the next one to be forgotten, or -1. */
  tail(): number {
    return this.#oldest;
  }

  /** The newest node, or -1. */
  head(): number {
    return this.#newest;
  }

  /** The next node towards the newest, or -1. */
  nextNewer(node: number): number {
    return this.#newer[node]!;
  }

  /** The next node towards the oldest, or -1. */
  nextOlder(node: number): number {
    return this.#older[node]!;
  }

  /** Frees a node outright. nginx never does; a replay corrects itself with it. */
  remove(node: number): void {
    this.#unlink(node);
    this.#slab.free(this.#table.pageOf(node));
    this.#table.drop(node);
  }

  snapshot(): ZoneMemorySnapshot {
    const nodes: number[] = [];
    for (let node = this.#oldest; node !== NONE; node = this.#newer[node]!) nodes.push(node);
    return {
      nameLength: this.nameLength,
      rateMilliRps: this.rateMilliRps,
      slab: this.#slab.snapshot(),
      table: this.#table.snapshot(nodes),
      excessMilliReq: nodes.map((node) => this.excessMilliReq[node]!),
      lastMs: nodes.map((node) => this.lastMs[node]!),
      counts: nodes.map((node) => this.#counts[node]!),
    };
  }

  /** A zone that goes on exactly where the snapshot was taken, with the same node ids. */
  static restore(snapshot: ZoneMemorySnapshot): ZoneMemory {
    const zone = new ZoneMemory({
      sizeBytes: snapshot.slab.sizeBytes,
      nameLength: snapshot.nameLength,
      rateMilliRps: snapshot.rateMilliRps,
    });
    zone.#slab = Slab.restore(snapshot.slab);
    zone.#table = NodeTable.restore(snapshot.table);
    zone.#grow();
    for (const [i, node] of snapshot.table.nodes.entries()) {
      zone.excessMilliReq[node] = snapshot.excessMilliReq[i]!;
      zone.lastMs[node] = snapshot.lastMs[i]!;
      zone.#counts[node] = snapshot.counts[i]!;
      zone.#linkNewest(node);
    }
    return zone;
  }

  /** @param first 1: one or two idle nodes; 0: the oldest by force, then one or two idle ones */
  #expire(first: 0 | 1, nowMs: number): void {
    for (let n: number = first; n < 3; n++) {
      const node = this.#oldest;
      // A pinned node at the tail ends the search, whatever lies beyond it.
      if (node === NONE || this.#counts[node]! > 0) return;
      if (
        n > 0 &&
        !isIdle(this.excessMilliReq[node]!, this.lastMs[node]!, this.rateMilliRps, nowMs)
      ) {
        return;
      }
      this.#evict(node, n === 0, nowMs);
    }
  }

  #evict(node: number, isForced: boolean, nowMs: number): void {
    const i = this.evictedCount++;
    this.evictedKeys[i] = this.#table.keyOf(node);
    this.evictedExcessMilliReq[i] = this.#decayed(node, nowMs);
    this.evictedForced[i] = isForced ? 1 : 0;
    this.remove(node);
  }

  #decayed(node: number, nowMs: number): number {
    return decayedExcess(this.excessMilliReq[node]!, this.lastMs[node]!, this.rateMilliRps, nowMs);
  }

  #linkNewest(node: number): void {
    this.#newer[node] = NONE;
    this.#older[node] = this.#newest;
    if (this.#newest === NONE) this.#oldest = node;
    else this.#newer[this.#newest] = node;
    this.#newest = node;
  }

  #unlink(node: number): void {
    const newer = this.#newer[node]!;
    const older = this.#older[node]!;
    if (newer === NONE) this.#newest = older;
    else this.#older[newer] = older;
    if (older === NONE) this.#oldest = newer;
    else this.#newer[older] = newer;
  }

  #grow(): void {
    const size = Math.max(this.#table.size, this.lastMs.length);
    this.excessMilliReq = resized(this.excessMilliReq, size);
    this.lastMs = resized(this.lastMs, size);
    this.#counts = resized(this.#counts, size);
    this.#newer = resized(this.#newer, size);
    this.#older = resized(this.#older, size);
  }
}
