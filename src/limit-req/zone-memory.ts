/**
 * The memory of one limit_req zone: its nodes, their order of use, and who is forgotten when.
 *
 * Follows ngx_http_limit_req_lookup() where it finds, moves and makes nodes, and
 * ngx_http_limit_req_expire(). Lookup, arithmetic and storing are separate steps, so that a
 * replay can judge a request before it decides what to store. Keys are small dense integers;
 * milliReq, milliRps, ms and bytes as everywhere.
 *
 * What is known of a node lies side by side, in one cache line: a node is the place of its first
 * number, and every field is a view of the whole memory, shifted by the field's place.
 *
 * Not here: the judgement of a request (limits.ts), sums (arithmetic.ts), pages (slab.ts).
 */
import { decayedExcess, isIdle } from './arithmetic.js';
import { limitReqCapacityNodes } from './capacity.js';
import { limitReqNodeBytes, limitReqOverhead } from './layout.js';
import { type KeyRecords, NodeTable, type NodeTableSnapshot } from './node-table.js';
import { Slab, type SlabSnapshot } from './slab.js';
import { UseOrder } from './use-order.js';

const NONE = -1;
const DEFAULT_INITIAL_NODES = 1024;
/** expire(1) frees two at most, expire(0) one by force and two more. */
const MOST_EVICTED = 5;
/** Numbers of a node: excess, last, the caller's three, its place in the order of use, its count. */
const NODE_LENGTH = 8;
const BYTES = Float64Array.BYTES_PER_ELEMENT;

export interface ZoneMemoryOptions {
  readonly sizeBytes: number;
  /** Length of the zone's name in bytes: the zone stores it in its own memory. */
  readonly nameLength: number;
  readonly rateMilliRps: number;
  /** Nodes to make room for at once; the arrays grow on demand. */
  readonly initialNodes?: number;
  /** Where the caller keeps the node of each key, beside what else it keeps by key. */
  readonly keys?: KeyRecords;
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
  excessMilliReq!: Float64Array;
  /** By node, for the caller to read and write. Another array once the nodes outgrow it. */
  lastMs!: Float64Array;
  /** By node, for whoever keeps bounds of the excess. Another array once the nodes outgrow it. */
  low!: Float64Array;
  high!: Float64Array;
  /** By node: the rate that they are of. */
  boundsRate!: Float64Array;

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
  #order = new UseOrder();
  #memory = new Float64Array(0);
  #places!: Float64Array;
  #counts!: Float64Array;

  constructor(options: ZoneMemoryOptions) {
    this.sizeBytes = options.sizeBytes;
    this.nameLength = options.nameLength;
    this.rateMilliRps = options.rateMilliRps;
    this.#slab = new Slab(options.sizeBytes);
    for (const bytes of limitReqOverhead(options.nameLength)) this.#slab.alloc(bytes);
    this.#table = new NodeTable(options.initialNodes ?? DEFAULT_INITIAL_NODES, options.keys);
    this.#grow();
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

  /** Whether there is room for a node of a key of this length. */
  hasRoom(keyLengthBytes: number): boolean {
    return this.#slab.hasRoom(limitReqNodeBytes(keyLengthBytes));
  }

  /** Whether one of the oldest `count` nodes leaves a room that a key of this length cannot use. */
  hasOtherSizeAtTail(keyLengthBytes: number, count: number): boolean {
    const bytes = limitReqNodeBytes(keyLengthBytes);
    let node = this.tail();
    for (let i = 0; i < count && node !== NONE; i++) {
      if (!this.#slab.isOfSlot(this.#table.pageOf(node / NODE_LENGTH), bytes)) return true;
      node = this.nextNewer(node);
    }
    return false;
  }

  /** Nodes that fit when all keys have this length. */
  capacityNodes(keyLengthBytes: number): number {
    return limitReqCapacityNodes(this.sizeBytes, keyLengthBytes, this.nameLength);
  }

  /** Nodes that still owe something. Walks them all: for gauges, not for every request. */
  nodesInDebt(nowMs: number): number {
    let inDebt = 0;
    for (let node = this.tail(); node !== NONE; node = this.nextNewer(node)) {
      if (this.#decayed(node, nowMs) > 0) inDebt++;
    }
    return inDebt;
  }

  /** The node that holds this key, or -1. Changes nothing. */
  find(keyId: number): number {
    const number = this.#table.find(keyId);
    return number < 0 ? NONE : number * NODE_LENGTH;
  }

  keyOf(node: number): number {
    return this.#table.keyOf(node / NODE_LENGTH);
  }

  /** Makes the node the newest, as every lookup does, a rejected request's too. */
  touch(node: number): void {
    this.#order.use(node, this.#places);
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
    const node = this.#table.take(keyId, page) * NODE_LENGTH;
    if (node >= this.#memory.length) this.#grow();
    this.#memory.fill(0, node, node + NODE_LENGTH);
    this.lastMs[node] = nowMs;
    this.#order.add(node, this.#places);
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
    return this.#order.oldest(this.#places);
  }

  /** The newest node, or -1. */
  head(): number {
    return this.#order.newest(this.#places);
  }

  /** The next node towards the newest, or -1. */
  nextNewer(node: number): number {
    return this.#order.newer(node, this.#places);
  }

  /** The next node towards the oldest, or -1. */
  nextOlder(node: number): number {
    return this.#order.older(node, this.#places);
  }

  /** Frees a node outright. nginx never does; a replay corrects itself with it. */
  remove(node: number): void {
    const number = node / NODE_LENGTH;
    this.#order.remove(node, this.#places);
    this.#slab.free(this.#table.pageOf(number));
    this.#table.drop(number);
  }

  /** The node that a snapshot names by this number. */
  static nodeOf(number: number): number {
    return number * NODE_LENGTH;
  }

  snapshot(): ZoneMemorySnapshot {
    const nodes: number[] = [];
    for (let node = this.tail(); node !== NONE; node = this.nextNewer(node)) nodes.push(node);
    return {
      nameLength: this.nameLength,
      rateMilliRps: this.rateMilliRps,
      slab: this.#slab.snapshot(),
      table: this.#table.snapshot(nodes.map((node) => node / NODE_LENGTH)),
      excessMilliReq: nodes.map((node) => this.excessMilliReq[node]!),
      lastMs: nodes.map((node) => this.lastMs[node]!),
      counts: nodes.map((node) => this.#counts[node]!),
    };
  }

  /**
   * A zone that goes on exactly where the snapshot was taken, with the same node ids.
   *
   * @param keys as in ZoneMemoryOptions; holds no node yet
   */
  static restore(snapshot: ZoneMemorySnapshot, keys?: KeyRecords): ZoneMemory {
    const zone = new ZoneMemory({
      sizeBytes: snapshot.slab.sizeBytes,
      nameLength: snapshot.nameLength,
      rateMilliRps: snapshot.rateMilliRps,
    });
    zone.#slab = Slab.restore(snapshot.slab);
    zone.#table = NodeTable.restore(snapshot.table, keys);
    zone.#grow();
    for (const [i, number] of snapshot.table.nodes.entries()) {
      const node = number * NODE_LENGTH;
      zone.excessMilliReq[node] = snapshot.excessMilliReq[i]!;
      zone.lastMs[node] = snapshot.lastMs[i]!;
      zone.#counts[node] = snapshot.counts[i]!;
      zone.#order.add(node, zone.#places);
    }
    return zone;
  }

  /** @param first 1: one or two idle nodes; 0: the oldest by force, then one or two idle ones */
  #expire(first: 0 | 1, nowMs: number): void {
    for (let n: number = first; n < 3; n++) {
      const node = this.tail();
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
    this.evictedKeys[i] = this.keyOf(node);
    this.evictedExcessMilliReq[i] = this.#decayed(node, nowMs);
    this.evictedForced[i] = isForced ? 1 : 0;
    this.remove(node);
  }

  #decayed(node: number, nowMs: number): number {
    return decayedExcess(this.excessMilliReq[node]!, this.lastMs[node]!, this.rateMilliRps, nowMs);
  }

  #grow(): void {
    const length = this.#table.size * NODE_LENGTH;
    const memory = new Float64Array(Math.max(length, this.#memory.length));
    memory.set(this.#memory);
    this.#memory = memory;
    const field = (place: number): Float64Array => new Float64Array(memory.buffer, place * BYTES);
    this.excessMilliReq = field(0);
    this.lastMs = field(1);
    this.low = field(2);
    this.high = field(3);
    this.boundsRate = field(4);
    this.#places = field(5);
    this.#counts = field(6);
  }
}
