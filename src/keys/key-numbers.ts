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
  /** By numbering, by number, side by side: the zone's id for the key, the length of its node's. */
  readonly #keys: Int32Array[] = [];
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
    const keys = this.#roomFor(numbering, number);
    const id = zone.keys.intern(bytes, start, length);
    zone.keys.retain(id);
    keys[2 * number] = id;
    keys[2 * number + 1] = nodeLengthBytes;
    this.#counts[numbering] = number + 1;
  }

  idOf(numbering: number, number: number): number {
    const keys = this.#keys[numbering];
    return keys === undefined ? NO_NUMBER : keys[2 * number]!;
  }

  nodeLengthOf(numbering: number, number: number): number {
    return this.#keys[numbering]![2 * number + 1]!;
  }

  /** The numbering begins anew. */
  clear(numbering: number): void {
    const numbered = this.#keys[numbering];
    if (numbered === undefined) return;
    const { keys } = this.#zoneOf[numbering]!;
    for (let number = 0; number < this.#counts[numbering]!; number++) {
      keys.release(numbered[2 * number]!);
    }
    this.#counts[numbering] = 0;
  }

  /** Gives all keys back. */
  clearAll(): void {
    for (let numbering = 0; numbering < this.#keys.length; numbering++) this.clear(numbering);
  }

  #roomFor(numbering: number, number: number): Int32Array {
    const keys = (this.#keys[numbering] ??= new Int32Array(2048));
    if (2 * number < keys.length) return keys;
    const longer = new Int32Array(keys.length * 2);
    longer.set(keys);
    this.#keys[numbering] = longer;
    return longer;
  }
}
