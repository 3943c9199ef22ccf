/**
 * Which page of a zone serves which allocation: nginx's slab allocator without its bytes.
 *
 * Follows ngx_slab_alloc_locked(), ngx_slab_free_locked(), ngx_slab_alloc_pages() and
 * ngx_slab_free_pages(): the order of the lists decides which page is used next, and so whether
 * an allocation succeeds once slot sizes mix. Within a page only the number of chunks in use
 * matters, so an allocation is known by its page alone. Sizes are bytes, pages count from 0.
 *
 * Not here: what is allocated (zone-memory.ts, limit-conn.ts).
 */
import { SLOT_COUNT, WHOLE_PAGES, chunksPerPage, pagesFor, slotOf, usablePages } from './layout.js';

const NONE = -1;

/** Page kinds: negative ones are not slot pages, the others are the number of their slot. */
const FREE = -1;
const RUN = -2;

const CHUNKS_PER_PAGE = Int32Array.from({ length: SLOT_COUNT }, (_, slot) => chunksPerPage(slot));

/** The exact state of a slab, in JSON. */
export interface SlabSnapshot {
  readonly sizeBytes: number;
  /** First page and length of each free run, flat, in the order of the free list. */
  readonly freeRuns: readonly number[];
  /** By slot: page and chunks in use, flat, those with room first and in the order of the list. */
  readonly slots: readonly (readonly number[])[];
  /** First page and length of each allocation of whole pages, flat. */
  readonly wholeRuns: readonly number[];
}

export class Slab {
  readonly sizeBytes: number;
  readonly pages: number;
  /** Pages in no use at all. */
  pagesFree: number;
  /** By slot: pages that hold its chunks. */
  readonly slotPages = new Int32Array(SLOT_COUNT);
  /** By slot: chunks in use. */
  readonly slotUsed = new Int32Array(SLOT_COUNT);

  readonly #kind: Int8Array;
  readonly #used: Uint16Array;
  /** Length of the run that begins at this page: free, or allocated as whole pages. */
  readonly #runPages: Int32Array;
  /** At the last page of a free run: where the run begins. */
  readonly #runStart: Int32Array;
  readonly #next: Int32Array;
  readonly #prev: Int32Array;
  readonly #slotHead = new Int32Array(SLOT_COUNT).fill(NONE);
  #freeHead = NONE;

  /** A pool of this size, all of it free. */
  constructor(sizeBytes: number) {
    this.sizeBytes = sizeBytes;
    this.pages = usablePages(sizeBytes);
    this.pagesFree = this.pages;
    this.#kind = new Int8Array(this.pages).fill(FREE);
    this.#used = new Uint16Array(this.pages);
    this.#runPages = new Int32Array(this.pages);
    this.#runStart = new Int32Array(this.pages);
    this.#next = new Int32Array(this.pages).fill(NONE);
    this.#prev = new Int32Array(this.pages).fill(NONE);
    if (this.pages > 0) this.#pushFreeRun(0, this.pages);
  }

  /** Takes a chunk or a run of pages. Returns its (first) page, or -1 when there is no memory. */
  alloc(sizeBytes: number): number {
    const slot = slotOf(sizeBytes);
    if (slot === WHOLE_PAGES) return this.#allocPages(pagesFor(sizeBytes));

    let page = this.#slotHead[slot]!;
    if (page === NONE) {
      page = this.#allocPages(1);
      if (page === NONE) return NONE;
      this.#kind[page] = slot;
      this.slotPages[slot] = this.slotPages[slot]! + 1;
      this.#pushSlotPage(slot, page);
    }
    this.slotUsed[slot] = this.slotUsed[slot]! + 1;
    const used = this.#used[page]! + 1;
    this.#used[page] = used;
    if (used === CHUNKS_PER_PAGE[slot]!) this.#unlinkSlotPage(slot, page);
    return page;
  }

  /** Gives back one chunk of this page, or the run of pages that begins at it. */
  free(page: number): void {
    const slot = this.#kind[page]!;
    if (slot === RUN) {
      this.#freePages(page, this.#runPages[page]!);
      return;
    }
    if (slot < 0 || this.#used[page] === 0) throw new Error(`page ${page} is not in use`);
    this.slotUsed[slot] = this.slotUsed[slot]! - 1;
    const used = this.#used[page]! - 1;
    this.#used[page] = used;
    // A full page is in no list; with room again it comes first.
    if (used === CHUNKS_PER_PAGE[slot]! - 1) this.#pushSlotPage(slot, page);
    if (used > 0) return;
    this.#unlinkSlotPage(slot, page);
    this.slotPages[slot] = this.slotPages[slot]! - 1;
    this.#freePages(page, 1);
  }

  /** Whether there is room for an allocation of this size, as far as a page at a time goes. */
  hasRoom(sizeBytes: number): boolean {
    const slot = slotOf(sizeBytes);
    if (this.pagesFree > 0) return true;
    return slot !== WHOLE_PAGES && this.#slotHead[slot] !== NONE;
  }

  /** Whether the allocation that begins in this page is of the slot that serves this size. */
  isOfSlot(page: number, sizeBytes: number): boolean {
    const kind = this.#kind[page]!;
    const slot = slotOf(sizeBytes);
    return slot === WHOLE_PAGES
      ? kind === RUN && this.#runPages[page] === pagesFor(sizeBytes)
      : kind === slot;
  }

  /** Length of each free run, in the order in which allocation tries them. */
  freeRuns(): number[] {
    const lengths: number[] = [];
    for (let run = this.#freeHead; run !== NONE; run = this.#next[run]!) {
      lengths.push(this.#runPages[run]!);
    }
    return lengths;
  }

  snapshot(): SlabSnapshot {
    const freeRuns: number[] = [];
    for (let run = this.#freeHead; run !== NONE; run = this.#next[run]!) {
      freeRuns.push(run, this.#runPages[run]!);
    }
    const slots = Array.from({ length: SLOT_COUNT }, (_, slot) => {
      const pages: number[] = [];
      for (let page = this.#slotHead[slot]!; page !== NONE; page = this.#next[page]!) {
        pages.push(page, this.#used[page]!);
      }
      return pages;
    });
    const wholeRuns: number[] = [];
    for (let page = 0; page < this.pages; page++) {
      const kind = this.#kind[page]!;
      if (kind === RUN) wholeRuns.push(page, this.#runPages[page]!);
      if (kind === RUN || kind === FREE) page += Math.max(0, this.#runPages[page]! - 1);
      else if (this.#used[page] === CHUNKS_PER_PAGE[kind]!)
        slots[kind]!.push(page, this.#used[page]!);
    }
    return { sizeBytes: this.sizeBytes, freeRuns, slots, wholeRuns };
  }

  static restore(snapshot: SlabSnapshot): Slab {
    const slab = new Slab(snapshot.sizeBytes);
    slab.#freeHead = NONE;
    slab.pagesFree = 0;
    // Lists are built from their ends, since each page is put first.
    for (let i = snapshot.freeRuns.length - 2; i >= 0; i -= 2) {
      const length = snapshot.freeRuns[i + 1]!;
      slab.#pushFreeRun(snapshot.freeRuns[i]!, length);
      slab.pagesFree += length;
    }
    for (const [slot, pages] of snapshot.slots.entries()) {
      for (let i = pages.length - 2; i >= 0; i -= 2) slab.#adopt(slot, pages[i]!, pages[i + 1]!);
    }
    for (let i = 0; i < snapshot.wholeRuns.length; i += 2) {
      slab.#markRun(snapshot.wholeRuns[i]!, snapshot.wholeRuns[i + 1]!);
    }
    return slab;
  }

  #adopt(slot: number, page: number, used: number): void {
    this.#kind[page] = slot;
    this.#used[page] = used;
    this.slotUsed[slot] = this.slotUsed[slot]! + used;
    this.slotPages[slot] = this.slotPages[slot]! + 1;
    if (used < CHUNKS_PER_PAGE[slot]!) this.#pushSlotPage(slot, page);
  }

  /** The first run that is long enough gives its beginning; what is left keeps its place. */
  #allocPages(count: number): number {
    for (let run = this.#freeHead; run !== NONE; run = this.#next[run]!) {
      const length = this.#runPages[run]!;
      if (length < count) continue;
      if (length === count) this.#unlinkFreeRun(run);
      else this.#replaceFreeRun(run, run + count, length - count);
      this.#markRun(run, count);
      this.pagesFree -= count;
      return run;
    }
    return NONE;
  }

  #markRun(page: number, count: number): void {
    this.#kind.fill(RUN, page, page + count);
    this.#runPages[page] = count;
  }

  /** Joins the pages with the free runs on both sides and puts the result first. */
  #freePages(page: number, count: number): void {
    this.pagesFree += count;
    this.#kind.fill(FREE, page, page + count);
    let start = page;
    let length = count;
    const after = page + count;
    if (after < this.pages && this.#kind[after] === FREE) {
      length += this.#runPages[after]!;
      this.#unlinkFreeRun(after);
    }
    if (page > 0 && this.#kind[page - 1] === FREE) {
      start = this.#runStart[page - 1]!;
      length += this.#runPages[start]!;
      this.#unlinkFreeRun(start);
    }
    this.#pushFreeRun(start, length);
  }

  #setRun(start: number, length: number): void {
    this.#runPages[start] = length;
    this.#runStart[start + length - 1] = start;
  }

  #pushFreeRun(start: number, length: number): void {
    this.#setRun(start, length);
    this.#prev[start] = NONE;
    this.#next[start] = this.#freeHead;
    if (this.#freeHead !== NONE) this.#prev[this.#freeHead] = start;
    this.#freeHead = start;
  }

  #unlinkFreeRun(run: number): void {
    const next = this.#next[run]!;
    const prev = this.#prev[run]!;
    if (prev === NONE) this.#freeHead = next;
    else this.#next[prev] = next;
    if (next !== NONE) this.#prev[next] = prev;
  }

  #replaceFreeRun(run: number, start: number, length: number): void {
    const next = this.#next[run]!;
    const prev = this.#prev[run]!;
    this.#setRun(start, length);
    this.#next[start] = next;
    this.#prev[start] = prev;
    if (prev === NONE) this.#freeHead = start;
    else this.#next[prev] = start;
    if (next !== NONE) this.#prev[next] = start;
  }

  #pushSlotPage(slot: number, page: number): void {
    const head = this.#slotHead[slot]!;
    this.#prev[page] = NONE;
    this.#next[page] = head;
    if (head !== NONE) this.#prev[head] = page;
    this.#slotHead[slot] = page;
  }

  #unlinkSlotPage(slot: number, page: number): void {
    const next = this.#next[page]!;
    const prev = this.#prev[page]!;
    if (prev === NONE) this.#slotHead[slot] = next;
    else this.#next[prev] = next;
    if (next !== NONE) this.#prev[next] = prev;
  }
}
