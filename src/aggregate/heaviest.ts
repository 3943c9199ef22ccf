/**
 * The largest few of many counts, in one pass and with memory for the few alone.
 *
 * A heap whose root is the first to go: the smallest count, and among equals the one that came last.
 */

/**
 * @param totals counts by position; a negative one takes no part
 * @returns the positions of the `keep` largest, ascending; of equal ones the earlier
 */
export function selectHeaviest(totals: Int32Array, count: number, keep: number): Int32Array {
  const heap = new Int32Array(Math.max(0, Math.min(keep, count)));
  let size = 0;
  for (let i = 0; i < count; i++) {
    if (totals[i]! < 0) continue;
    if (size < heap.length) {
      heap[size] = i;
      siftUp(heap, size++, totals);
    } else if (size > 0 && totals[i]! > totals[heap[0]!]!) {
      heap[0] = i;
      siftDown(heap, size, totals);
    }
  }
  return heap.subarray(0, size).sort();
}

function goesFirst(a: number, b: number, totals: Int32Array): boolean {
  return totals[a]! < totals[b]! || (totals[a] === totals[b] && a > b);
}

function siftUp(heap: Int32Array, from: number, totals: Int32Array): void {
  const item = heap[from]!;
  let at = from;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (!goesFirst(item, heap[parent]!, totals)) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = item;
}

function siftDown(heap: Int32Array, size: number, totals: Int32Array): void {
  const item = heap[0]!;
  let at = 0;
  for (let child = 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && goesFirst(heap[child + 1]!, heap[child]!, totals)) child++;
    if (!goesFirst(heap[child]!, item, totals)) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = item;
}
