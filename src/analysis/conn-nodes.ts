/**
 * How many nodes a limit_conn zone holds over time: one for each key that has requests under way.
 *
 * A node comes with a request and goes with one, so the most of a step is among what it holds when
 * one begins and before one ends. Times in epoch milliseconds, in order.
 *
 * Not here: the zone's memory itself (src/limit-req/limit-conn.ts).
 */
import type { ConnMemory } from '../limit-req/limit-conn.js';

const BUCKET_MS = 10_000;

export interface NodesAt {
  /** Begin of the step. */
  readonly timeMs: number;
  /** The most in the step. */
  readonly nodes: number;
}

export class ConnNodes {
  readonly #memory: ConnMemory;
  /** The most by begin of the bucket. */
  readonly #most = new Map<number, number>();
  nodesMax = 0;
  nodesMaxAtMs = 0;
  /** Of the key that came last. */
  keyLengthBytes = 0;

  constructor(memory: ConnMemory) {
    this.#memory = memory;
  }

  /** What the zone holds at this moment. */
  note(atMs: number): void {
    const { nodes } = this.#memory;
    const bucketMs = Math.floor(atMs / BUCKET_MS) * BUCKET_MS;
    if (nodes > (this.#most.get(bucketMs) ?? -1)) this.#most.set(bucketMs, nodes);
    if (nodes <= this.nodesMax) return;
    this.nodesMax = nodes;
    this.nodesMaxAtMs = atMs;
  }

  get capacityNodes(): number {
    return this.#memory.capacityNodes(this.keyLengthBytes);
  }

  /** @param stepMs a multiple of 10 s */
  steps(stepMs: number): NodesAt[] {
    const steps = new Map<number, number>();
    for (const [bucketMs, nodes] of this.#most) {
      const timeMs = Math.floor(bucketMs / stepMs) * stepMs;
      steps.set(timeMs, Math.max(nodes, steps.get(timeMs) ?? 0));
    }
    return Array.from(steps, ([timeMs, nodes]) => ({ timeMs, nodes })).sort(
      (a, b) => a.timeMs - b.timeMs,
    );
  }
}
