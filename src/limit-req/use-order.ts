/**
 * The order in which a zone's nodes were last used, as nginx's queue has it.
 *
 * nginx links nodes to their neighbours, and so did this once; but moving a node then touches four
 * others' memory, and with a hundred thousand keys each of these is far away. Here each use is
 * written behind the last one, and a node knows the place of its own last use: what stands at other
 * places of it is past, and is passed over. When the places run out, those past are dropped.
 *
 * Nodes are whatever numbers the caller has; places count on.
 */
const NONE = -1;
const FIRST_PLACES = 1024;

export class UseOrder {
  #nodes = new Int32Array(FIRST_PLACES);
  #mask = FIRST_PLACES - 1;
  #first = 0;
  #end = 0;
  #count = 0;

  /** The node of the oldest use, or -1. @param places by node, the place of its last use */
  oldest(places: Float64Array): number {
    while (this.#first < this.#end && !this.#isLast(this.#first, places)) this.#first++;
    return this.#first < this.#end ? this.#nodes[this.#first & this.#mask]! : NONE;
  }

  /** The node of the newest use, or -1. */
  newest(places: Float64Array): number {
    while (this.#first < this.#end && !this.#isLast(this.#end - 1, places)) this.#end--;
    return this.#first < this.#end ? this.#nodes[(this.#end - 1) & this.#mask]! : NONE;
  }

  /** The node used next after this one, or -1. */
  newer(node: number, places: Float64Array): number {
    for (let place = places[node]! + 1; place < this.#end; place++) {
      if (this.#isLast(place, places)) return this.#nodes[place & this.#mask]!;
    }
    return NONE;
  }

  /** The node used last before this one, or -1. */
  older(node: number, places: Float64Array): number {
    for (let place = places[node]! - 1; place >= this.#first; place--) {
      if (this.#isLast(place, places)) return this.#nodes[place & this.#mask]!;
    }
    return NONE;
  }

  /** A node that was in no use is used. Writes its place. */
  add(node: number, places: Float64Array): void {
    this.#count++;
    this.#write(node, places);
  }

  /** A node is used once more. Writes its place. */
  use(node: number, places: Float64Array): void {
    if (places[node] !== this.#end - 1) this.#write(node, places);
  }

  /** Forgets a node. Writes its place. */
  remove(node: number, places: Float64Array): void {
    this.#count--;
    places[node] = NONE;
  }

  #write(node: number, places: Float64Array): void {
    if (this.#end - this.#first > this.#mask) this.#dropPast(places);
    this.#nodes[this.#end & this.#mask] = node;
    places[node] = this.#end++;
  }

  #isLast(place: number, places: Float64Array): boolean {
    return places[this.#nodes[place & this.#mask]!] === place;
  }

  /** Leaves at least half of the places free. */
  #dropPast(places: Float64Array): void {
    let size = this.#nodes.length;
    while (size < 2 * this.#count) size *= 2;
    const nodes = new Int32Array(size);
    let end = 0;
    for (let place = this.#first; place < this.#end; place++) {
      if (!this.#isLast(place, places)) continue;
      const node = this.#nodes[place & this.#mask]!;
      nodes[end] = node;
      // Places only get smaller, so none that is still to come can be taken for this one.
      places[node] = end++;
    }
    this.#nodes = nodes;
    this.#mask = size - 1;
    this.#first = 0;
    this.#end = end;
  }
}
