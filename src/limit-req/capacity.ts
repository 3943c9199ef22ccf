/**
 * How many keys a zone holds, and how large a zone must be for so many keys.
 *
 * The count is what ngx_slab.c hands out for nodes of one size after the zone's own two
 * allocations. With keys of several slot sizes no single number holds: slab.ts replays those.
 * Sizes and lengths are bytes.
 */
import {
  MIN_ZONE_BYTES,
  PAGE_BYTES,
  WHOLE_PAGES,
  chunksPerPage,
  limitConnNodeBytes,
  limitConnOverhead,
  limitReqNodeBytes,
  limitReqOverhead,
  pagesFor,
  slotOf,
  usablePages,
} from './layout.js';

/** Nodes that a limit_req zone holds when all keys have this length. */
export function limitReqCapacityNodes(
  sizeBytes: number,
  keyLengthBytes: number,
  zoneNameLength: number,
): number {
  return capacity(sizeBytes, limitReqNodeBytes(keyLengthBytes), limitReqOverhead(zoneNameLength));
}

/** Nodes that a limit_conn zone holds when all keys have this length. */
export function limitConnCapacityNodes(
  sizeBytes: number,
  keyLengthBytes: number,
  zoneNameLength: number,
): number {
  return capacity(sizeBytes, limitConnNodeBytes(keyLengthBytes), limitConnOverhead(zoneNameLength));
}

/** The smallest limit_req zone, in whole pages, that holds this many keys of this length. */
export function limitReqSizeBytes(
  nodes: number,
  keyLengthBytes: number,
  zoneNameLength: number,
): number {
  return smallestZone(
    (sizeBytes) => limitReqCapacityNodes(sizeBytes, keyLengthBytes, zoneNameLength) >= nodes,
  );
}

/** The smallest limit_conn zone, in whole pages, that holds this many keys of this length. */
export function limitConnSizeBytes(
  nodes: number,
  keyLengthBytes: number,
  zoneNameLength: number,
): number {
  return smallestZone(
    (sizeBytes) => limitConnCapacityNodes(sizeBytes, keyLengthBytes, zoneNameLength) >= nodes,
  );
}

function capacity(sizeBytes: number, nodeBytes: number, overhead: readonly number[]): number {
  let pages = usablePages(sizeBytes);
  const slot = slotOf(nodeBytes);
  const roomBySlot = new Map<number, number>();
  for (const bytes of overhead) {
    const overheadSlot = slotOf(bytes);
    const room = roomBySlot.get(overheadSlot) ?? 0;
    if (overheadSlot === WHOLE_PAGES) {
      pages -= pagesFor(bytes);
    } else if (room > 0) {
      roomBySlot.set(overheadSlot, room - 1);
    } else {
      pages -= 1;
      roomBySlot.set(overheadSlot, chunksPerPage(overheadSlot) - 1);
    }
  }
  if (slot === WHOLE_PAGES) return Math.max(0, Math.floor(pages / pagesFor(nodeBytes)));
  return Math.max(0, pages * chunksPerPage(slot)) + (roomBySlot.get(slot) ?? 0);
}

function smallestZone(isEnough: (sizeBytes: number) => boolean): number {
  let low = MIN_ZONE_BYTES / PAGE_BYTES;
  if (isEnough(low * PAGE_BYTES)) return low * PAGE_BYTES;
  let high = low * 2;
  while (!isEnough(high * PAGE_BYTES)) {
    low = high;
    high *= 2;
  }
  // Invariant: low pages are too few, high pages are enough.
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (isEnough(middle * PAGE_BYTES)) high = middle;
    else low = middle;
  }
  return high * PAGE_BYTES;
}
