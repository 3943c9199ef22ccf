/**
 * What one zone did with each key in one minute: the rows of `key_minutes`, and how many keys it had.
 *
 * Every key that was limited, under dry run too, comes out, and of the others the heaviest few. A key
 * is held here until its minute is out, so that its id still means it then. Memory is bounded: past
 * `most` keys in a minute only those that are being limited are added, and past twice as many none;
 * what was not added is counted.
 *
 * The largest excess of the minute lies between the largest lower bound and the largest upper one.
 * Excess in thousandths of a request; more than 2^31 of them count as that many.
 */
import { KEY_FIELD, KEY_FIELDS } from '../keys/key-table.js';
import type { ZoneReplay } from '../replay/zone-replay.js';
import { selectHeaviest } from './heaviest.js';
import { WORD } from './outcome-words.js';

/** What a passed request touches, which nearly all are: side by side, four keys to a cache line. */
const HOT_FIELDS = 4;
const PASSED = 0;
const EXCESS = 1;
const LOW = 2;
const HIGH = 3;
/** Delayed, rejected, the same under dry run, exhausted; then the key. */
const COLD_FIELDS = 6;
const KEY = 5;
const NO_ENTRY = -1;
const MOST_EXCESS = 0x7fff_ffff;
/** Which cold field each WORD counts in, passed apart. */
const COLD_OF = Uint8Array.from([0, 0, 1, 2, 3, 4, 4]);
/** Columns of a state that was written before there were bounds. */
const COLUMNS_WITHOUT_BOUNDS = 7;

/** A key's columns in one minute. */
export interface KeyMinute {
  /** The key's bytes in base64. */
  readonly key: string;
  /** As those of a row, from passed on; 2^31 - 1 for an upper bound that is not known. */
  readonly columns: readonly number[];
}

/** What of a minute's number of keys is in rows. */
export interface KeysTold {
  readonly told: number;
  /** Requests of keys that there was no room for, in this minute. */
  readonly untracked: number;
}

export class KeyMinutes {
  readonly #zone: Pick<ZoneReplay, 'keys'>;
  readonly #keep: number;
  readonly #most: number;
  #hot = new Int32Array(256 * HOT_FIELDS);
  #cold = new Int32Array(256 * COLD_FIELDS);
  #size = 0;
  /** Requests of keys that there was no room for, since the beginning. */
  untracked = 0;
  #untrackedBefore = 0;
  #told = 0;

  /**
   * @param zone whose keys are counted, by nobody else at the same time; another table of keys may
   *   take their place while none is held
   * @param keep keys that come out beside those that were limited
   */
  constructor(zone: Pick<ZoneReplay, 'keys'>, keep: number, most: number) {
    this.#zone = zone;
    this.#keep = keep;
    this.#most = most;
  }

  /** Distinct keys of the minute so far, those without room apart. */
  get size(): number {
    return this.#size;
  }

  /**
   * Keys that the minute did not have when this was last asked; at most, where there was no room for
   * all: a request of a key without room counts as a key.
   */
  takeNew(): number {
    const all = this.#size + this.untracked - this.#untrackedBefore;
    const fresh = all - this.#told;
    this.#told = all;
    return fresh;
  }

  /**
   * Counts a request of a key.
   *
   * @param word WORD of what the zone did, up to exhausted_dry_run
   * @param excessMilliReq whole; 0, as its bounds, where none was measured
   */
  count(
    keyId: number,
    word: number,
    excessMilliReq: number,
    lowMilliReq: number,
    highMilliReq: number,
  ): void {
    let entry = this.#zone.keys.records[keyId * KEY_FIELDS + KEY_FIELD.minute]!;
    if (entry < 0) {
      entry = this.#add(keyId, word !== WORD.passed);
      if (entry < 0) return;
    }
    const hot = this.#hot;
    const at = entry * HOT_FIELDS;
    if (word === WORD.passed) hot[at + PASSED]!++;
    else this.#cold[entry * COLD_FIELDS + COLD_OF[word]!]!++;
    if (excessMilliReq > hot[at + EXCESS]!) {
      hot[at + EXCESS] = excessMilliReq < MOST_EXCESS ? excessMilliReq : MOST_EXCESS;
    }
    // Stored without the fraction, on the safe side.
    if (lowMilliReq > hot[at + LOW]!) {
      hot[at + LOW] = lowMilliReq < MOST_EXCESS ? lowMilliReq : MOST_EXCESS;
    }
    if (highMilliReq > hot[at + HIGH]!) {
      hot[at + HIGH] = highMilliReq < MOST_EXCESS ? Math.ceil(highMilliReq) : MOST_EXCESS;
    }
  }

  /**
   * Hands over the keys that the minute is remembered by, in the order of their first requests.
   *
   * @param onKey takes a row's columns from passed on; the upper bound, the last, is null where it
   *   is not known
   */
  emit(onKey: (text: string, columns: readonly (number | null)[]) => void): void {
    for (const entry of this.#chosen()) {
      const columns = this.#columns(entry);
      const high = columns.at(-1)!;
      const row = high === MOST_EXCESS ? [...columns.slice(0, -1), null] : columns;
      onKey(this.#zone.keys.text(this.#cold[entry * COLD_FIELDS + KEY]!), row);
    }
    this.clear();
  }

  /** Begins an empty minute; gives all keys back. */
  clear(): void {
    for (let entry = 0; entry < this.#size; entry++) {
      const keyId = this.#cold[entry * COLD_FIELDS + KEY]!;
      this.#zone.keys.records[keyId * KEY_FIELDS + KEY_FIELD.minute] = NO_ENTRY;
      this.#zone.keys.release(keyId);
    }
    this.#hot.fill(0, 0, this.#size * HOT_FIELDS);
    this.#cold.fill(0, 0, this.#size * COLD_FIELDS);
    this.#size = 0;
    this.#told = 0;
    this.#untrackedBefore = this.untracked;
  }

  snapshot(): KeyMinute[] {
    return Array.from({ length: this.#size }, (_, entry) => {
      const bytes = this.#zone.keys.bytesOf(this.#cold[entry * COLD_FIELDS + KEY]!);
      return { key: Buffer.from(bytes).toString('base64'), columns: this.#columns(entry) };
    });
  }

  told(): KeysTold {
    return { told: this.#told, untracked: this.untracked - this.#untrackedBefore };
  }

  /** @param counted told() at the same moment; absent in older states */
  restore(minutes: readonly KeyMinute[], counted: KeysTold = { told: 0, untracked: 0 }): void {
    this.clear();
    for (const { key, columns } of minutes) {
      const bytes = Buffer.from(key, 'base64');
      const entry = this.#add(this.#zone.keys.intern(bytes, 0, bytes.length), true);
      if (entry >= 0) this.#setColumns(entry, columns);
    }
    this.#told = counted.told;
    this.#untrackedBefore = this.untracked - counted.untracked;
  }

  #columns(entry: number): number[] {
    const hot = this.#hot.subarray(entry * HOT_FIELDS, (entry + 1) * HOT_FIELDS);
    const cold = this.#cold.subarray(entry * COLD_FIELDS, entry * COLD_FIELDS + KEY);
    return [hot[PASSED]!, ...cold, ...hot.subarray(EXCESS)];
  }

  #setColumns(entry: number, columns: readonly number[]): void {
    const [passed, ...others] = columns;
    const hot = [passed!, ...others.slice(KEY)];
    if (columns.length === COLUMNS_WITHOUT_BOUNDS) hot.push(0, MOST_EXCESS);
    this.#hot.set(hot, entry * HOT_FIELDS);
    this.#cold.set(others.slice(0, KEY), entry * COLD_FIELDS);
  }

  /** @returns the new entry, or NO_ENTRY when there is no room */
  #add(keyId: number, isLimited: boolean): number {
    if (this.#size >= (isLimited ? 2 * this.#most : this.#most)) {
      this.untracked++;
      return NO_ENTRY;
    }
    if ((this.#size + 1) * HOT_FIELDS > this.#hot.length) {
      this.#hot = twiceAsLong(this.#hot);
      this.#cold = twiceAsLong(this.#cold);
    }
    this.#zone.keys.retain(keyId);
    const entry = this.#size++;
    this.#cold[entry * COLD_FIELDS + KEY] = keyId;
    this.#zone.keys.records[keyId * KEY_FIELDS + KEY_FIELD.minute] = entry;
    return entry;
  }

  /** Entries that were limited, and the heaviest of the others; ascending. */
  #chosen(): number[] {
    const totals = new Int32Array(this.#size);
    const limited: number[] = [];
    for (let entry = 0; entry < this.#size; entry++) {
      const at = entry * COLD_FIELDS;
      let others = 0;
      for (let field = 0; field < KEY; field++) others += this.#cold[at + field]!;
      totals[entry] = others > 0 ? -1 : this.#hot[entry * HOT_FIELDS + PASSED]!;
      if (others > 0) limited.push(entry);
    }
    const heaviest = selectHeaviest(totals, this.#size, this.#keep);
    return [...limited, ...heaviest].sort((a, b) => a - b);
  }
}

function twiceAsLong(array: Int32Array): Int32Array<ArrayBuffer> {
  const longer = new Int32Array(array.length * 2);
  longer.set(array);
  return longer;
}
