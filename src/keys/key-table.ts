/**
 * Key bytes to small integers and back: what every zone, counter and top list indexes by.
 *
 * Ids are dense and reused. A key lives for as long as somebody holds a reference to it, so that
 * the memory follows what nginx's zones hold and not what the log has ever named.
 *
 * Open addressing over typed arrays, at most half full, one arena for all the bytes; a lookup
 * makes no object. Keys come from clients, so the hash is seeded anew in every process: nobody
 * can choose keys that all land in one place. Ids do not depend on the hash.
 *
 * Lengths are bytes. Not here: which key a request has (key-plan.ts), and what a zone knows of
 * it (src/limit-req).
 */
import { randomInt } from 'node:crypto';

/** A table as plain JSON. Ids stay what they were, those to be given next included. */
export interface KeyTableSnapshot {
  readonly ids: readonly number[];
  readonly refs: readonly number[];
  readonly lengths: readonly number[];
  /** Ids to be reused, the next one last. */
  readonly free: readonly number[];
  /** The keys of `ids`, one after the other, in base64. */
  readonly bytes: string;
}

const NO_KEY = -1;
const FREE = -1;

/**
 * What is kept of a key, side by side: whoever follows a request through a zone fetches one cache
 * line for all of it. Each field but `refs` is its writer's, who sets it back to -1, which stands
 * for none, before giving the key back.
 */
export const KEY_FIELD = { refs: 0, node: 1, minute: 2, chainEnd: 3 } as const;
export const KEY_FIELDS = 4;
const MIN_SLOTS = 1024;
const MIN_ARENA_BYTES = 1 << 14;

const SEED = randomInt(0x1_0000_0000) | 0;
// Odd and large: each step of the hash can be undone, so that words differing anywhere differ.
const MULTIPLIER = randomInt(0x4000_0000, 0x8000_0000) | 1;

// A lookup of a rare key pays for cache lines most of all. So a slot holds all that comparing
// needs, though every entry holds most of it as well.
const SLOT_ID = 0;
const SLOT_HASH = 1;
const SLOT_OFFSET = 2;
const SLOT_LENGTH = 3;
const SLOT_FIELDS = 4;

const OFFSET = 0;
const LENGTH = 1;
const HASH = 2;
const FIELDS = 4;

export class KeyTable {
  private slots = new Int32Array(MIN_SLOTS * SLOT_FIELDS).fill(NO_KEY);
  private mask = MIN_SLOTS - 1;
  private arena = new Uint8Array(MIN_ARENA_BYTES);
  private arenaEnd = 0;
  private liveBytes = 0;

  private entries = new Int32Array((MIN_SLOTS >> 1) * FIELDS);
  /**
   * KEY_FIELDS of each id, apart from the rest as they change with every request; another array
   * once there are more ids. The references of an id in no use are FREE.
   */
  records = new Int32Array((MIN_SLOTS >> 1) * KEY_FIELDS).fill(FREE);
  /** Where a zone's memory finds the node of a key (src/limit-req/node-table.ts). */
  readonly recordLength = KEY_FIELDS;
  readonly nodeField = KEY_FIELD.node;
  private freeIds = new Int32Array(MIN_SLOTS >> 1);
  private freeCount = 0;
  private nextId = 0;

  /** Keys held now. */
  get size(): number {
    return this.nextId - this.freeCount;
  }

  /** Ids are below this; arrays indexed by id need as many places. */
  get idLimit(): number {
    return this.nextId;
  }

  /** Bytes of the arena and of all arrays. */
  get memoryBytes(): number {
    return (
      this.arena.length +
      4 * (this.slots.length + this.entries.length + this.records.length + this.freeIds.length)
    );
  }

  /** The id of a key, or -1 when the table does not hold it. */
  find(bytes: Uint8Array, start: number, length: number): number {
    return this.slots[this.probe(bytes, start, length, hashBytes(bytes, start, length))]!;
  }

  /** The id of a key. A key that is new gets one without references: retain() or discard() it. */
  intern(bytes: Uint8Array, start: number, length: number): number {
    const hash = hashBytes(bytes, start, length);
    const known = this.slots[this.probe(bytes, start, length, hash)]!;
    return known === NO_KEY ? this.add(bytes, start, length, hash) : known;
  }

  retain(id: number): void {
    this.assertLive(id);
    this.records[id * KEY_FIELDS]!++;
  }

  /** Gives a reference back; with the last one the key is forgotten and its id is free. */
  release(id: number): void {
    this.assertLive(id);
    const at = id * KEY_FIELDS;
    if (this.records[at] === 0) throw new Error(`key ${id} is released more often than retained`);
    if (--this.records[at]! === 0) this.remove(id);
  }

  /** Forgets a key that nobody retained; does nothing to one in use. */
  discard(id: number): void {
    this.assertLive(id);
    if (this.records[id * KEY_FIELDS] === 0) this.remove(id);
  }

  length(id: number): number {
    this.assertLive(id);
    return this.entries[id * FIELDS + LENGTH]!;
  }

  bytesOf(id: number): Uint8Array {
    this.assertLive(id);
    const offset = this.entries[id * FIELDS + OFFSET]!;
    return this.arena.slice(offset, offset + this.entries[id * FIELDS + LENGTH]!);
  }

  /** The key as text; bytes that are not UTF-8 become U+FFFD. */
  text(id: number): string {
    this.assertLive(id);
    const offset = this.entries[id * FIELDS + OFFSET]!;
    const length = this.entries[id * FIELDS + LENGTH]!;
    return Buffer.from(this.arena.buffer, offset, length).toString('utf8');
  }

  /** Forgets every key, whoever holds it. */
  clear(): void {
    this.slots.fill(NO_KEY);
    this.records.fill(FREE);
    this.arena = new Uint8Array(MIN_ARENA_BYTES);
    this.arenaEnd = 0;
    this.liveBytes = 0;
    this.freeCount = 0;
    this.nextId = 0;
  }

  snapshot(): KeyTableSnapshot {
    const ids: number[] = [];
    for (let id = 0; id < this.nextId; id++) if (this.isLive(id)) ids.push(id);
    const bytes = new Uint8Array(this.liveBytes);
    let end = 0;
    for (const id of ids) end = this.copyTo(bytes, end, id);
    return {
      ids,
      refs: ids.map((id) => this.records[id * KEY_FIELDS]!),
      lengths: ids.map((id) => this.length(id)),
      free: Array.from(this.freeIds.subarray(0, this.freeCount)),
      bytes: Buffer.from(bytes.buffer).toString('base64'),
    };
  }

  static restore(snapshot: KeyTableSnapshot): KeyTable {
    const table = new KeyTable();
    const bytes = Buffer.from(snapshot.bytes, 'base64');
    table.nextId = snapshot.ids.length + snapshot.free.length;
    while (table.freeIds.length < table.nextId) table.growIds();
    table.freeIds.set(snapshot.free);
    table.freeCount = snapshot.free.length;
    while (table.mask < table.nextId * 2) table.growSlots();
    let start = 0;
    snapshot.ids.forEach((id, index) => {
      const length = snapshot.lengths[index]!;
      const hash = hashBytes(bytes, start, length);
      table.place(id, bytes, start, length, hash);
      table.records[id * KEY_FIELDS] = snapshot.refs[index]!;
      start += length;
    });
    table.fillSlots();
    return table;
  }

  /** The place in `slots` of the key, or of the empty slot where it belongs. */
  private probe(bytes: Uint8Array, start: number, length: number, hash: number): number {
    const { slots, mask } = this;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const at = slot * SLOT_FIELDS;
      if (slots[at] === NO_KEY) return at;
      if (
        slots[at + SLOT_HASH] === hash &&
        slots[at + SLOT_LENGTH] === length &&
        this.equals(slots[at + SLOT_OFFSET]!, bytes, start, length)
      ) {
        return at;
      }
    }
  }

  private equals(offset: number, bytes: Uint8Array, start: number, length: number): boolean {
    const arena = this.arena;
    for (let i = 0; i < length; i++) if (arena[offset + i] !== bytes[start + i]) return false;
    return true;
  }

  private add(bytes: Uint8Array, start: number, length: number, hash: number): number {
    if ((this.size + 1) * 2 > this.mask) this.growSlots();
    if (this.freeCount === 0 && this.nextId === this.freeIds.length) this.growIds();
    const id = this.freeCount > 0 ? this.freeIds[--this.freeCount]! : this.nextId++;
    this.place(id, bytes, start, length, hash);
    this.records[id * KEY_FIELDS] = 0;
    this.fillSlot(this.emptySlot(hash), id);
    return id;
  }

  private place(id: number, bytes: Uint8Array, start: number, length: number, hash: number): void {
    if (this.arenaEnd + length > this.arena.length) this.makeRoom(length);
    const { arena, arenaEnd } = this;
    for (let i = 0; i < length; i++) arena[arenaEnd + i] = bytes[start + i]!;
    this.entries[id * FIELDS + OFFSET] = arenaEnd;
    this.entries[id * FIELDS + LENGTH] = length;
    this.entries[id * FIELDS + HASH] = hash;
    this.arenaEnd += length;
    this.liveBytes += length;
  }

  private remove(id: number): void {
    this.closeGap(this.slotOf(id));
    this.records[id * KEY_FIELDS] = FREE;
    this.liveBytes -= this.entries[id * FIELDS + LENGTH]!;
    this.freeIds[this.freeCount++] = id;
    if (this.size === 0) this.arenaEnd = 0;
  }

  private fillSlot(at: number, id: number): void {
    const { slots, entries } = this;
    slots[at + SLOT_ID] = id;
    slots[at + SLOT_HASH] = entries[id * FIELDS + HASH]!;
    slots[at + SLOT_OFFSET] = entries[id * FIELDS + OFFSET]!;
    slots[at + SLOT_LENGTH] = entries[id * FIELDS + LENGTH]!;
  }

  private slotOf(id: number): number {
    let slot = this.entries[id * FIELDS + HASH]! & this.mask;
    while (this.slots[slot * SLOT_FIELDS] !== id) slot = (slot + 1) & this.mask;
    return slot;
  }

  private emptySlot(hash: number): number {
    let slot = hash & this.mask;
    while (this.slots[slot * SLOT_FIELDS] !== NO_KEY) slot = (slot + 1) & this.mask;
    return slot * SLOT_FIELDS;
  }

  /** Moves later members of the probe sequence up, so that no search stops at the gap. */
  private closeGap(gap: number): void {
    const { slots, mask } = this;
    for (let slot = (gap + 1) & mask; ; slot = (slot + 1) & mask) {
      const at = slot * SLOT_FIELDS;
      if (slots[at] === NO_KEY) break;
      const home = slots[at + SLOT_HASH]! & mask;
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      const to = gap * SLOT_FIELDS;
      for (let i = 0; i < SLOT_FIELDS; i++) slots[to + i] = slots[at + i]!;
      gap = slot;
    }
    slots[gap * SLOT_FIELDS] = NO_KEY;
  }

  private growSlots(): void {
    this.slots = new Int32Array(this.slots.length * 2);
    this.mask = this.mask * 2 + 1;
    this.fillSlots();
  }

  private fillSlots(): void {
    this.slots.fill(NO_KEY);
    for (let id = 0; id < this.nextId; id++) {
      if (this.isLive(id)) this.fillSlot(this.emptySlot(this.entries[id * FIELDS + HASH]!), id);
    }
  }

  private growIds(): void {
    const entries = new Int32Array(this.entries.length * 2);
    entries.set(this.entries);
    this.entries = entries;
    const records = new Int32Array(this.records.length * 2).fill(FREE);
    records.set(this.records);
    this.records = records;
    const freeIds = new Int32Array(this.freeIds.length * 2);
    freeIds.set(this.freeIds);
    this.freeIds = freeIds;
  }

  /** Moves the live keys together, into an arena at most half full: larger or smaller than this. */
  private makeRoom(length: number): void {
    let capacity = MIN_ARENA_BYTES;
    while (capacity < (this.liveBytes + length) * 2) capacity *= 2;
    const arena = new Uint8Array(capacity);
    let end = 0;
    for (let id = 0; id < this.nextId; id++) {
      if (!this.isLive(id)) continue;
      const moved = end;
      end = this.copyTo(arena, end, id);
      this.entries[id * FIELDS + OFFSET] = moved;
    }
    this.arena = arena;
    this.arenaEnd = end;
    this.fillSlots();
  }

  private copyTo(target: Uint8Array, at: number, id: number): number {
    const offset = this.entries[id * FIELDS + OFFSET]!;
    const length = this.entries[id * FIELDS + LENGTH]!;
    target.set(this.arena.subarray(offset, offset + length), at);
    return at + length;
  }

  private isLive(id: number): boolean {
    return this.records[id * KEY_FIELDS]! >= 0;
  }

  private assertLive(id: number): void {
    if (!this.isLive(id)) throw new Error(`there is no key ${id}`);
  }
}

/** Four bytes at a time, then spread over all bits, as the low ones choose the slot. */
function hashBytes(bytes: Uint8Array, start: number, length: number): number {
  let hash = SEED ^ length;
  let at = start;
  for (const stop = start + length - 3; at < stop; at += 4) {
    const word =
      bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    hash = Math.imul(hash ^ word, MULTIPLIER);
    hash ^= hash >>> 15;
  }
  let rest = 0;
  for (const end = start + length; at < end; at++) rest = (rest << 8) | bytes[at]!;
  hash = Math.imul(hash ^ rest, MULTIPLIER);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x85ebca6b);
  return hash ^ (hash >>> 13);
}
