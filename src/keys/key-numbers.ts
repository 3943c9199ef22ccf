/**
 * Keys on their way between threads: told once by their bytes, then by a number.
 *
 * Looking a key up by its bytes is a good part of what a line costs, so the reading thread does it,
 * and the replaying one finds its own id in an array. A numbering is one zone's keys as one field
 * spells them (two spellings of a key have two numbers), or as they are put together. It is bounded:
 * when it is full it begins anew.
 *
 * Not here: the records that carry numbers (src/pipeline/line-records.ts).
 */
import { KeyTable } from './key-table.js';

const MOST_KEYS = 1 << 17;
const MOST_BYTES = 1 << 25;
const NO_NUMBER = -1;

/** A zone; its table of keys may be replaced while none is held here. */
interface KeyHolder {
  readonly keys: KeyTable;
}

/** The reading side of one numbering. */
export class KeyNumbering {
  /** Among all numberings. */
  readonly index: number;
  readonly zoneIndex: number;
  readonly #spellings = new KeyTable();
  readonly #mostKeys: number;

  constructor(index: number, zoneIndex: number, mostKeys = MOST_KEYS) {
    this.index = index;
    this.zoneIndex = zoneIndex;
    this.#mostKeys = mostKeys;
  }

  /** The number of a spelling, -1 for a new one. */
  find(bytes: Uint8Array, start: number, length: number): number {
    return this.#spellings.find(bytes, start, length);
  }

  /** Whether the next add() has to begin anew. */
  get isFull(): boolean {
    const { size, memoryBytes } = this.#spellings;
    return size >= this.#mostKeys || memoryBytes >= MOST_BYTES;
  }

  /** Begins anew: no spelling has a number. */
  clear(): void {
    this.#spellings.clear();
  }

  /** Numbers a new spelling: one more than the last, 0 for the first. */
  add(bytes: Uint8Array, start: number, length: number): number {
    const number = this.#spellings.intern(bytes, start, length);
    this.#spellings.retain(number);
    return number;
  }
}

/** The replaying side of all numberings. Holds every key that has a number. */
export class NumberedKeys {
  readonly #zones: readonly KeyHolder[];
  readonly #zoneOf: KeyHolder[] = [];
  /** By numbering, by number: the zone's id for the key, and the length of its node's. */
  readonly #ids: Int32Array[] = [];
  readonly #nodeLengths: Int32Array[] = [];
  readonly #counts: number[] = [];

  constructor(zones: readonly KeyHolder[]) {
    this.#zones = zones;
  }

  /** The next number of a numbering stands for this key. */
  add(
    numbering: number,
    zoneIndex: number,
    bytes: Uint8Array,
    start: number,
    length: number,
    nodeLengthBytes: number,
  ): void {
    const zone = (this.#zoneOf[numbering] ??= this.#zones[zoneIndex]!);
    const number = (this.#counts[numbering] ??= 0);
    const ids = this.#roomFor(this.#ids, numbering, number);
    const id = zone.keys.intern(bytes, start, length);
    zone.keys.retain(id);
    ids[number] = id;
    this.#roomFor(this.#nodeLengths, numbering, number)[number] = nodeLengthBytes;
    this.#counts[numbering] = number + 1;
  }

  idOf(numbering: number, number: number): number {
    const ids = this.#ids[numbering];
    return ids === undefined ? NO_NUMBER : ids[number]!;
  }

  nodeLengthOf(numbering: number, number: number): number {
    return this.#nodeLengths[numbering]![number]!;
  }

  /** The numbering begins anew. */
  clear(numbering: number): void {
    const ids = this.#ids[numbering];
    if (ids === undefined) return;
    const { keys } = this.#zoneOf[numbering]!;
    for (let number = 0; number < this.#counts[numbering]!; number++) keys.release(ids[number]!);
    this.#counts[numbering] = 0;
  }

  /** Gives all keys back. */
  clearAll(): void {
    for (let numbering = 0; numbering < this.#ids.length; numbering++) this.clear(numbering);
  }

  #roomFor(arrays: Int32Array[], numbering: number, number: number): Int32Array {
    const array = (arrays[numbering] ??= new Int32Array(1024));
    if (number < array.length) return array;
    const longer = new Int32Array(array.length * 2);
    longer.set(array);
    arrays[numbering] = longer;
    return longer;
  }
}
