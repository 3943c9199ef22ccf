/**
 * The slab model against a transliteration of ngx_slab.c that keeps nginx's own page headers and
 * lists, and what holds of any slab. Capacities are in limit-req-capacity.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { chunksPerPage, slotOf } from '../src/limit-req/layout.js';
import { Slab, type SlabSnapshot } from '../src/limit-req/slab.js';

const KIB = 1024;

/** ngx_slab_page_t: `slab` is a length, a mark or a bitmap; `prev` carries the type as well. */
interface PageHeader {
  slab: number | bigint;
  next: PageHeader | null;
  prev: PageHeader | null;
  type: 'PAGE' | 'SLOT';
  /** Of a slot page: which slot. */
  slot: number;
}

const PAGE_FREE = 0;
const PAGE_BUSY = -1;

/**
 * ngx_slab.c with its page headers, circular slot lists and bitmaps. Chunks under 64 bytes keep
 * their bitmap in the page there, here in the header; a run's mark START is a negative length.
 */
class SlabInC {
  readonly pages: PageHeader[];
  readonly free: PageHeader = header();
  readonly slots: PageHeader[];

  constructor(count: number) {
    this.pages = Array.from({ length: count }, header);
    this.slots = Array.from({ length: 9 }, () => {
      const slot = header();
      slot.next = slot;
      return slot;
    });
    const first = this.pages[0]!;
    this.free.next = first;
    this.free.prev = first;
    first.slab = count;
    first.next = this.free;
    first.prev = this.free;
  }

  /** Address of the allocation as page and chunk, or null. */
  alloc(size: number): { page: number; chunk: number } | null {
    if (size > 2048) {
      const page = this.allocPages(Math.floor(size / 4096) + (size % 4096 > 0 ? 1 : 0));
      return page === null ? null : { page: this.pages.indexOf(page), chunk: 0 };
    }
    let shift = 3;
    while (1 << shift < size) shift++;
    const slot = shift - 3;
    const { all, reserved } = bitmapOf(shift);
    let page = this.slots[slot]!.next!;
    if (page.next === page) {
      const fresh = this.allocPages(1);
      if (fresh === null) return null;
      fresh.slab = reserved;
      fresh.slot = slot;
      fresh.type = 'SLOT';
      fresh.next = this.slots[slot]!;
      fresh.prev = this.slots[slot]!;
      this.slots[slot]!.next = fresh;
      page = fresh;
    }
    let chunk = 0;
    while (((page.slab as bigint) >> BigInt(chunk)) & 1n) chunk++;
    page.slab = (page.slab as bigint) | (1n << BigInt(chunk));
    if (page.slab === all) {
      page.prev!.next = page.next;
      page.next!.prev = page.prev;
      page.next = null;
      page.prev = null;
    }
    return { page: this.pages.indexOf(page), chunk };
  }

  release(at: { page: number; chunk: number }): void {
    const page = this.pages[at.page]!;
    if (page.type === 'PAGE') {
      this.freePages(page, -(page.slab as number) - 1);
      return;
    }
    const slot = this.slots[page.slot]!;
    if (page.next === null) {
      page.next = slot.next;
      slot.next = page;
      page.prev = slot;
      page.next!.prev = page;
    }
    page.slab = (page.slab as bigint) & ~(1n << BigInt(at.chunk));
    if (page.slab === bitmapOf(page.slot + 3).reserved) this.freePages(page, 1);
  }

  private allocPages(count: number): PageHeader | null {
    for (let page = this.free.next!; page !== this.free; page = page.next!) {
      const length = page.slab as number;
      if (length < count) continue;
      const at = this.pages.indexOf(page);
      if (length > count) {
        const rest = this.pages[at + count]!;
        this.pages[at + length - 1]!.prev = rest;
        rest.slab = length - count;
        rest.next = page.next;
        rest.prev = page.prev;
        page.prev!.next = rest;
        page.next!.prev = rest;
      } else {
        page.prev!.next = page.next;
        page.next!.prev = page.prev;
      }
      // A length of n is marked -n-1, to differ from PAGE_FREE and PAGE_BUSY.
      Object.assign(page, { slab: -count - 1, next: null, prev: null, type: 'PAGE' });
      for (let i = 1; i < count; i++) {
        const inside = { slab: PAGE_BUSY, next: null, prev: null, type: 'PAGE' };
        Object.assign(this.pages[at + i]!, inside);
      }
      return page;
    }
    return null;
  }

  private freePages(freed: PageHeader, count: number): void {
    let page = freed;
    const at = this.pages.indexOf(page);
    let more = count - 1;
    page.slab = count;
    for (let i = 1; i < count; i++) Object.assign(this.pages[at + i]!, header());
    if (page.next !== null) {
      page.prev!.next = page.next;
      page.next.prev = page.prev;
    }
    page.type = 'PAGE';
    const after = this.pages[at + count];
    if (after?.type === 'PAGE' && after.next !== null) {
      more += after.slab as number;
      page.slab += after.slab as number;
      after.prev!.next = after.next;
      after.next.prev = after.prev;
      Object.assign(after, header());
    }
    let before = this.pages[at - 1];
    if (before?.type === 'PAGE') {
      if (before.slab === PAGE_FREE) before = before.prev!;
      if (before.next !== null) {
        more += before.slab as number;
        before.slab = (before.slab as number) + page.slab;
        before.prev!.next = before.next;
        before.next.prev = before.prev;
        Object.assign(page, header());
        page = before;
      }
    }
    if (more > 0) this.pages[this.pages.indexOf(page) + more]!.prev = page;
    page.prev = this.free;
    page.next = this.free.next;
    page.next!.prev = page;
    this.free.next = page;
  }
}

function header(): PageHeader {
  return { slab: PAGE_FREE, next: null, prev: null, type: 'PAGE', slot: -1 };
}

/** Bitmap of a full page and of an empty one, where small chunks give up some for the bitmap. */
function bitmapOf(shift: number): { all: bigint; reserved: bigint } {
  const chunks = 4096 >> shift;
  const bitmapChunks = shift < 6 ? Math.max(1, Math.floor(chunks / ((1 << shift) * 8))) : 0;
  return { all: (1n << BigInt(chunks)) - 1n, reserved: (1n << BigInt(bitmapChunks)) - 1n };
}

/** An allocation of this size, or the release of the n-th live one (modulo how many there are). */
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(8, 16, 30, 64, 100, 128, 200, 500, 1000, 2048, 2049, 9000),
  },
  { weight: 2, arbitrary: fc.nat(1000).map((n) => -n - 1) },
);

interface Live {
  readonly page: number;
  readonly inC: { page: number; chunk: number };
}

test('every allocation lands in the page where ngx_slab.c puts it', () => {
  const steps = fc.array(step, { minLength: 50, maxLength: 600, size: 'max' });
  fc.assert(
    fc.property(steps, (sequence) => {
      const slab = new Slab(64 * KIB);
      const reference = new SlabInC(slab.pages);
      const live: Live[] = [];
      for (const n of sequence) {
        if (n > 0) {
          const page = slab.alloc(n);
          const inC = reference.alloc(n);
          assert.equal(page, inC?.page ?? -1);
          if (inC !== null) live.push({ page, inC });
        } else if (live.length > 0) {
          const [victim] = live.splice(-n % live.length, 1);
          slab.free(victim!.page);
          reference.release(victim!.inC);
        }
      }
    }),
    { numRuns: 150 },
  );
});

/** Pages that slots and whole-page allocations hold, and those that are free, make up the zone. */
function checkPages(slab: Slab, wholePages: number): void {
  const slotPages = slab.slotPages.reduce((sum, pages) => sum + pages, 0);
  const inRuns = slab.freeRuns().reduce((sum, pages) => sum + pages, 0);
  assert.equal(inRuns, slab.pagesFree);
  assert.equal(slotPages + wholePages + slab.pagesFree, slab.pages);
  for (const [slot, used] of slab.slotUsed.entries()) {
    assert.ok(used <= slab.slotPages[slot]! * chunksPerPage(slot));
  }
}

test('a slab never exceeds its pages, and is whole again once all is freed', () => {
  const steps = fc.array(step, { maxLength: 300, size: 'max' });
  fc.assert(
    fc.property(steps, (sequence) => {
      const slab = new Slab(64 * KIB);
      const live: { page: number; wholePages: number }[] = [];
      const free = (i: number): void => {
        slab.free(live.splice(i, 1)[0]!.page);
      };
      for (const n of sequence) {
        if (n > 0) {
          const page = slab.alloc(n);
          const wholePages = slotOf(n) < 0 ? Math.ceil(n / 4096) : 0;
          if (page >= 0) live.push({ page, wholePages });
        } else if (live.length > 0) {
          free(-n % live.length);
        }
        checkPages(
          slab,
          live.reduce((sum, { wholePages }) => sum + wholePages, 0),
        );
      }
      while (live.length > 0) free(0);
      assert.deepEqual(slab.freeRuns(), [slab.pages]);
    }),
    { numRuns: 60 },
  );
});

test('freeing a page that is not in use is a bug, and said', () => {
  const slab = new Slab(32 * KIB);
  const page = slab.alloc(100);
  slab.free(page);
  assert.throws(() => {
    slab.free(page);
  }, /not in use/);
});

test('a restored slab goes on like the one it was taken from', () => {
  const steps = fc.array(step, { maxLength: 300, size: 'max' });
  fc.assert(
    fc.property(steps, steps, (before, after) => {
      const run = (slab: Slab, live: number[], sequence: readonly number[]): number[] =>
        sequence.map((n) => {
          if (n < 0 && live.length > 0) {
            const [page] = live.splice(-n % live.length, 1);
            slab.free(page!);
            return -2;
          }
          const page = n > 0 ? slab.alloc(n) : -1;
          if (page >= 0) live.push(page);
          return page;
        });
      const slab = new Slab(64 * KIB);
      const live: number[] = [];
      run(slab, live, before);
      const json = JSON.stringify(slab.snapshot());
      const restored = Slab.restore(JSON.parse(json) as SlabSnapshot);
      assert.deepEqual(run(restored, [...live], after), run(slab, live, after));
      assert.deepEqual(restored.snapshot(), slab.snapshot());
    }),
    { numRuns: 60 },
  );
});
