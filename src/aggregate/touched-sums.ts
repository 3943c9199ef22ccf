/**
 * Sums by small integers that are emptied often, most of them unused in between.
 *
 * Only cells that were counted since the last time are visited, so that a thousand locations cost
 * nothing while they are quiet. A cell is `fields` numbers side by side; the first is its count.
 */
export class TouchedSums {
  /** Field f of a cell is at cell · fields + f. Another array once a cell lies beyond it. */
  values: Float64Array;
  readonly fields: number;
  #touched = new Int32Array(64);
  #size = 0;

  constructor(fields: number, cells = 16) {
    this.fields = fields;
    this.values = new Float64Array(fields * Math.max(1, cells));
  }

  /** Adds to the cell's count. @returns where the cell's fields begin in `values` */
  count(cell: number, requests: number): number {
    const at = cell * this.fields;
    if (at >= this.values.length) this.#growTo(at + this.fields);
    const before = this.values[at]!;
    this.values[at] = before + requests;
    if (before === 0) this.#touch(cell);
    return at;
  }

  /** Cells with counts, ascending; a copy. */
  cells(): Int32Array {
    return this.#touched.slice(0, this.#size).sort();
  }

  /** The fields of a cell; a copy. */
  of(cell: number): number[] {
    const at = cell * this.fields;
    return Array.from(this.values.subarray(at, at + this.fields));
  }

  clear(): void {
    for (let i = 0; i < this.#size; i++) {
      const at = this.#touched[i]! * this.fields;
      this.values.fill(0, at, at + this.fields);
    }
    this.#size = 0;
  }

  #touch(cell: number): void {
    if (this.#size === this.#touched.length) {
      const longer = new Int32Array(this.#touched.length * 2);
      longer.set(this.#touched);
      this.#touched = longer;
    }
    this.#touched[this.#size++] = cell;
  }

  #growTo(length: number): void {
    const longer = new Float64Array(Math.max(length, this.values.length * 2));
    longer.set(this.values);
    this.values = longer;
  }
}
