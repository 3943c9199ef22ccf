/**
 * The short stretch of time behind the calendar: requests in decision order that are not judged yet,
 * so that each one is judged knowing the next ones of its key.
 *
 * A ring of members (events of the pool, and parked requests by their handles) with the millisecond
 * of each, so that waiting and leaving touch nothing else.
 */
const WRAP = 0x3fff_ffff;

export class DecisionWindow {
  #members = new Int32Array(256);
  #ms = new Float64Array(256);
  #mask = 255;
  /** Places count on and wrap; the ring's length divides that. */
  #first = 0;
  #end = 0;

  get size(): number {
    return (this.#end - this.#first) & WRAP;
  }

  /** When the first member was decided; Infinity when there is none. */
  get firstMs(): number {
    return this.#first === this.#end ? Infinity : this.#ms[this.#first & this.#mask]!;
  }

  /** @returns the member's place, until it leaves */
  push(member: number, ms: number): number {
    if (this.size > this.#mask) this.#grow();
    const place = this.#end;
    this.#members[place & this.#mask] = member;
    this.#ms[place & this.#mask] = ms;
    this.#end = (place + 1) & WRAP;
    return place;
  }

  /** Takes the first member out; there must be one. */
  shift(): number {
    const member = this.#members[this.#first & this.#mask]!;
    this.#first = (this.#first + 1) & WRAP;
    return member;
  }

  msAt(place: number): number {
    return this.#ms[place & this.#mask]!;
  }

  /** Puts another name of the same request in its place. */
  replace(place: number, member: number): void {
    this.#members[place & this.#mask] = member;
  }

  /** All members in order, each with its millisecond. */
  entries(): { readonly members: Int32Array; readonly ms: Float64Array } {
    const { size } = this;
    const members = new Int32Array(size);
    const times = new Float64Array(size);
    for (let i = 0; i < size; i++) {
      members[i] = this.#members[(this.#first + i) & this.#mask]!;
      times[i] = this.#ms[(this.#first + i) & this.#mask]!;
    }
    return { members, ms: times };
  }

  #grow(): void {
    const mask = this.#mask * 2 + 1;
    const found = this.entries();
    const members = new Int32Array(mask + 1);
    const ms = new Float64Array(mask + 1);
    for (let i = 0; i < found.members.length; i++) {
      members[(this.#first + i) & mask] = found.members[i]!;
      ms[(this.#first + i) & mask] = found.ms[i]!;
    }
    this.#members = members;
    this.#ms = ms;
    this.#mask = mask;
  }
}
