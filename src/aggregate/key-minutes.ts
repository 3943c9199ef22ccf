/**
 * What one zone did with each key in one minute: the rows of `key_minutes`.
 *
 * Every key that was limited, under dry run too, comes out, and of the others the heaviest few. A key
 * is held here until its minute is out, so that its id still means it then. Memory is bounded: past
 * `most` keys in a minute only those that are being limited are added, and past twice as many none;
 * what was not added is counted.
 *
 * Excess in thousandths of a request; more than 2^31 of them count as that many.
 */
import type { ZoneReplay } from '../replay/zone-replay.js';
import { selectHeaviest } from './heaviest.js';
import { WORD } from './outcome-words.js';

/** passed, delayed, rejected, the latter two under dry run, exhausted; then the largest excess. */
const COLUMNS = 7;
const EXCESS = 6;
/** Beside its columns an entry holds its key. */
const FIELDS = 8;
const KEY = 7;
const MOST_EXCESS = 0x7fff_ffff;
/** Which column each WORD counts in. */
const COLUMN_OF = Uint8Array.from([0, 1, 2, 3, 4, 5, 5]);

/** A key's columns in one minute. */
export interface KeyMinute {
  /** The key's bytes in base64. */
  readonly key: string;
  readonly columns: readonly number[];
}

export class KeyMinutes {
  readonly #zone: Pick<ZoneReplay, 'keys'>;
  readonly #keep: number;
  readonly #most: number;
  /** By key, its entry and one; 0 for none. */
  #entryOf = new Int32Array(1024);
  #entries = new Int32Array(256 * FIELDS);
  #size = 0;
  /** Requests of keys that there was no room for, since the beginning. */
  untracked = 0;

  /**
   * @param zone whose keys are counted; another table of keys may take their place while none is held
   * @param keep keys that come out beside those that were limited
   */
  constructor(zone: Pick<ZoneReplay, 'keys'>, keep: number, most: number) {
    this.#zone = zone;
    this.#keep = keep;
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  /** Counts a request of a key. @param word WORD of what the zone did, up to exhausted_dry_run */
  count(keyId: number, word: number, excessMilliReq: number): void {
    let entry = keyId < this.#entryOf.length ? this.#entryOf[keyId]! : 0;
    if (entry === 0) {
      entry = this.#add(keyId, word !== WORD.passed);
      if (entry === 0) return;
    }
    const at = (entry - 1) * FIELDS;
    const entries = this.#entries;
    entries[at + COLUMN_OF[word]!]!++;
    if (excessMilliReq > entries[at + EXCESS]!) {
      entries[at + EXCESS] = excessMilliReq < MOST_EXCESS ? excessMilliReq : MOST_EXCESS;
    }
  }

  /** Hands over the keys that the minute is remembered by, in the order of their first requests. */
  emit(onKey: (text: string, columns: readonly number[]) => void): void {
    const chosen = this.#chosen();
    for (const entry of chosen) {
      onKey(this.#zone.keys.text(this.#entries[entry * FIELDS + KEY]!), this.#columns(entry));
    }
    this.clear();
  }

  /** Begins an empty minute; gives all keys back. */
  clear(): void {
    for (let entry = 0; entry < this.#size; entry++) {
      const keyId = this.#entries[entry * FIELDS + KEY]!;
      this.#entryOf[keyId] = 0;
      this.#zone.keys.release(keyId);
    }
    this.#entries.fill(0, 0, this.#size * FIELDS);
    this.#size = 0;
  }

  snapshot(): KeyMinute[] {
    return Array.from({ length: this.#size }, (_, entry) => {
      const bytes = this.#zone.keys.bytesOf(this.#entries[entry * FIELDS + KEY]!);
      return { key: Buffer.from(bytes).toString('base64'), columns: this.#columns(entry) };
    });
  }

  restore(minutes: readonly KeyMinute[]): void {
    this.clear();
    for (const { key, columns } of minutes) {
      const bytes = Buffer.from(key, 'base64');
      const entry = this.#add(this.#zone.keys.intern(bytes, 0, bytes.length), true);
      if (entry > 0) this.#entries.set(columns, (entry - 1) * FIELDS);
    }
  }

  #columns(entry: number): number[] {
    return Array.from(this.#entries.subarray(entry * FIELDS, entry * FIELDS + COLUMNS));
  }

  /** @returns the new entry and one, or 0 when there is no room */
  #add(keyId: number, isLimited: boolean): number {
    if (this.#size >= (isLimited ? 2 * this.#most : this.#most)) {
      this.untracked++;
      return 0;
    }
    if (keyId >= this.#entryOf.length) {
      const longer = new Int32Array(Math.max(keyId + 1, this.#entryOf.length * 2));
      longer.set(this.#entryOf);
      this.#entryOf = longer;
    }
    if ((this.#size + 1) * FIELDS > this.#entries.length) {
      const longer = new Int32Array(this.#entries.length * 2);
      longer.set(this.#entries);
      this.#entries = longer;
    }
    this.#zone.keys.retain(keyId);
    this.#entries[this.#size * FIELDS + KEY] = keyId;
    this.#size++;
    this.#entryOf[keyId] = this.#size;
    return this.#size;
  }

  /** Entries that were limited, and the heaviest of the others; ascending. */
  #chosen(): number[] {
    const totals = new Int32Array(this.#size);
    const limited: number[] = [];
    for (let entry = 0; entry < this.#size; entry++) {
      const at = entry * FIELDS;
      let others = 0;
      for (let column = 1; column < EXCESS; column++) others += this.#entries[at + column]!;
      totals[entry] = others > 0 ? -1 : this.#entries[at]!;
      if (others > 0) limited.push(entry);
    }
    const heaviest = selectHeaviest(totals, this.#size, this.#keep);
    return [...limited, ...heaviest].sort((a, b) => a - b);
  }
}
