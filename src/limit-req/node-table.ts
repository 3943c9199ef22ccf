/**
 * Which key each node of a zone holds, and in which slab page it lies.
 *
 * nginx finds a node in a red-black tree by the key's checksum; here keys are dense integers that
 * the caller interned, so an array does: the caller's own where it keeps other things by key too.
 * Node ids are dense as well, and used again, the last one given back first.
 *
 * Not here: the order of use, excess and counts (zone-memory.ts, limit-conn.ts).
 */
const FIRST_KEYS = 1024;

/** Nodes in use, in JSON: four arrays, of which the first three run in parallel. */
export interface NodeTableSnapshot {
  readonly nodes: number[];
  /** The caller's key ids: map them before restoring if they were given out anew. */
  readonly keyIds: number[];
  readonly pages: number[];
  /** Node ids given back, in the order of giving back. */
  readonly freeNodes: number[];
}

/** Where a key's node stands: `nodeField` of the `recordLength` numbers of each key; -1 for none. */
export interface KeyRecords {
  /** Has room for every key that is given a node. Another array once there are more keys. */
  readonly records: Int32Array;
  readonly recordLength: number;
  readonly nodeField: number;
  /** Makes that room, where nobody else does. */
  readonly reserve?: (keyId: number) => void;
}

/** For keys of which nothing else is kept. */
class OwnRecords implements KeyRecords {
  records = new Int32Array(FIRST_KEYS).fill(-1);
  readonly recordLength = 1;
  readonly nodeField = 0;

  readonly reserve = (keyId: number): void => {
    const { length } = this.records;
    if (keyId < length) return;
    this.records = resized(this.records, Math.max(keyId + 1, length * 2));
    this.records.fill(-1, length);
  };
}

export class NodeTable {
  /** Nodes in use. */
  count = 0;
  /** Length of the per-node arrays; whoever keeps arrays by node grows them to this. */
  size: number;
  /** One more than the highest node id ever used. */
  #highest = 0;
  #freeCount = 0;
  #freeNodes: Int32Array;
  #keyOfNode: Int32Array;
  #pageOfNode: Int32Array;
  readonly #keys: KeyRecords;
  readonly #recordLength: number;
  readonly #nodeField: number;

  constructor(initialNodes: number, keys: KeyRecords = new OwnRecords()) {
    this.#keys = keys;
    this.#recordLength = keys.recordLength;
    this.#nodeField = keys.nodeField;
    this.size = Math.max(1, initialNodes);
    this.#freeNodes = new Int32Array(this.size);
    this.#keyOfNode = new Int32Array(this.size);
    this.#pageOfNode = new Int32Array(this.size);
  }

  /** The node that holds this key, or -1. */
  find(keyId: number): number {
    const { records } = this.#keys;
    const at = keyId * this.#recordLength + this.#nodeField;
    return at < records.length ? records[at]! : -1;
  }

  keyOf(node: number): number {
    return this.#keyOfNode[node]!;
  }

  pageOf(node: number): number {
    return this.#pageOfNode[node]!;
  }

  /** Gives the key a node in this page. */
  take(keyId: number, page: number): number {
    const node = this.#freeCount > 0 ? this.#freeNodes[--this.#freeCount]! : this.#highest++;
    if (node >= this.size) this.#grow(node);
    this.#bind(node, keyId, page);
    return node;
  }

  /** Takes the node away from its key. */
  drop(node: number): void {
    this.#keys.records[this.#keyOfNode[node]! * this.#recordLength + this.#nodeField] = -1;
    this.#freeNodes[this.#freeCount++] = node;
    this.count--;
  }

  /** @param nodes the nodes in use, in the order in which to list them */
  snapshot(nodes: number[]): NodeTableSnapshot {
    return {
      nodes,
      keyIds: nodes.map((node) => this.keyOf(node)),
      pages: nodes.map((node) => this.pageOf(node)),
      freeNodes: Array.from(this.#freeNodes.subarray(0, this.#freeCount)),
    };
  }

  static restore(snapshot: NodeTableSnapshot, keys?: KeyRecords): NodeTable {
    const highest = snapshot.nodes.length + snapshot.freeNodes.length;
    const table = new NodeTable(highest, keys);
    table.#highest = highest;
    table.#freeNodes.set(snapshot.freeNodes);
    table.#freeCount = snapshot.freeNodes.length;
    for (const [i, node] of snapshot.nodes.entries()) {
      table.#bind(node, snapshot.keyIds[i]!, snapshot.pages[i]!);
    }
    return table;
  }

  #bind(node: number, keyId: number, page: number): void {
    this.#keys.reserve?.(keyId);
    this.#keys.records[keyId * this.#recordLength + this.#nodeField] = node;
    this.#keyOfNode[node] = keyId;
    this.#pageOfNode[node] = page;
    this.count++;
  }

  #grow(node: number): void {
    this.size = Math.max(node + 1, this.size * 2);
    this.#freeNodes = resized(this.#freeNodes, this.size);
    this.#keyOfNode = resized(this.#keyOfNode, this.size);
    this.#pageOfNode = resized(this.#pageOfNode, this.size);
  }
}

/** A longer copy. */
export function resized<A extends Int32Array | Float64Array>(array: A, length: number): A {
  const copy = (
    array instanceof Int32Array ? new Int32Array(length) : new Float64Array(length)
  ) as A;
  copy.set(array);
  return copy;
}
