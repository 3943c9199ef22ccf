/**
 * How a zone's bytes are laid out, on 64-bit machines with pages of 4096 bytes.
 *
 * Sizes are those of ngx_slab.h and of the structures of ngx_http_limit_req_module.c and
 * ngx_http_limit_conn_module.c; the page count is that of ngx_slab_init(). All in bytes.
 *
 * Not here: who holds which page (slab.ts), how many keys fit (capacity.ts).
 */
export const PAGE_BYTES = 4096;
/** nginx refuses a zone smaller than eight pages. */
export const MIN_ZONE_BYTES = 8 * PAGE_BYTES;

const POOL_BYTES = 200;
/** A slot's list head and its statistics. */
const SLOT_HEADER_BYTES = 24 + 32;
const PAGE_HEADER_BYTES = 24;

const PAGE_SHIFT = 12;
const MIN_SHIFT = 3;
const MAX_SLOT_BYTES = PAGE_BYTES / 2;

/** Slots hold chunks of 8, 16, … 2048 bytes. */
export const SLOT_COUNT = PAGE_SHIFT - MIN_SHIFT;
/** What slotOf() says of a size that takes whole pages. */
export const WHOLE_PAGES = -1;

/** Red-black tree node up to its colour, then the limit_req node up to its key. */
const REQ_NODE_BYTES = 80;
const CONN_NODE_BYTES = 36;
/** The tree, its sentinel and, for limit_req, the queue. */
const REQ_CONTEXT_BYTES = 80;
const CONN_CONTEXT_BYTES = 64;
/** ` in limit_req zone ""` and ` in limit_conn_zone ""`, with their terminating zero. */
const REQ_LOG_CONTEXT_BYTES = 22;
const CONN_LOG_CONTEXT_BYTES = 23;

export const MAX_REQ_KEY_BYTES = 65_535;
export const MAX_CONN_KEY_BYTES = 255;

export function limitReqNodeBytes(keyLengthBytes: number): number {
  return REQ_NODE_BYTES + keyLengthBytes;
}

export function limitConnNodeBytes(keyLengthBytes: number): number {
  return CONN_NODE_BYTES + keyLengthBytes;
}

/** What a limit_req zone allocates for itself, in order, when it is made. */
export function limitReqOverhead(nameLength: number): readonly [number, number] {
  return [REQ_CONTEXT_BYTES, REQ_LOG_CONTEXT_BYTES + nameLength];
}

/** What a limit_conn zone allocates for itself, in order, when it is made. */
export function limitConnOverhead(nameLength: number): readonly [number, number] {
  return [CONN_CONTEXT_BYTES, CONN_LOG_CONTEXT_BYTES + nameLength];
}

/** Pages that a zone of this size can hand out: what its own tables and alignment leave. */
export function usablePages(sizeBytes: number): number {
  const headerBytes = POOL_BYTES + SLOT_COUNT * SLOT_HEADER_BYTES;
  const pages = Math.floor((sizeBytes - headerBytes) / (PAGE_BYTES + PAGE_HEADER_BYTES));
  const startPage = Math.ceil((headerBytes + pages * PAGE_HEADER_BYTES) / PAGE_BYTES);
  return Math.max(0, Math.min(pages, Math.floor(sizeBytes / PAGE_BYTES) - startPage));
}

/** The slot that serves an allocation, from 0 for 8 bytes, or WHOLE_PAGES. */
export function slotOf(sizeBytes: number): number {
  if (sizeBytes > MAX_SLOT_BYTES) return WHOLE_PAGES;
  const shift = 32 - Math.clz32(sizeBytes - 1);
  return sizeBytes <= 1 << MIN_SHIFT ? 0 : shift - MIN_SHIFT;
}

/** Chunks that one page of a slot can hand out; chunks under 64 bytes pay for their bitmap. */
export function chunksPerPage(slot: number): number {
  const shift = slot + MIN_SHIFT;
  const chunks = PAGE_BYTES >> shift;
  // From 64 bytes on, the bitmap fits into the page's header.
  if (chunks <= 64) return chunks;
  return chunks - Math.max(1, chunks / 8 / (1 << shift));
}

/** Pages of an allocation that takes whole ones. */
export function pagesFor(sizeBytes: number): number {
  return Math.ceil(sizeBytes / PAGE_BYTES);
}
