/**
 * The ranges of `geo { ranges; }`, kept as ngx_http_geo_add_range() keeps them.
 *
 * nginx cuts a range at every 65536 addresses and compares the pieces one by one. A piece may lie
 * inside of an older one, which then gives way; any other overlap is refused.
 */
import type { GeoBlock } from './model.js';
import { formatIpv4 } from './network.js';

type GeoEntry = GeoBlock['entries'][number];

interface Piece {
  first: number;
  last: number;
  readonly entry: GeoEntry;
}

const BLOCK_ADDRESSES = 65536;

export class AddressRanges {
  /** By the upper 16 bits; sorted, without overlaps. */
  private readonly blocks = new Map<number, Piece[]>();

  /** @returns the network of an older range that forbids this one, as nginx names it */
  add(first: number, last: number, entry: GeoEntry): string | undefined {
    for (const [block, from, to] of cut(first, last)) {
      const pieces = this.blocks.get(block) ?? [];
      const clash = insert(pieces, { first: from, last: to, entry });
      if (clash !== undefined) {
        return `${formatIpv4(clash.first)}-${formatIpv4(clash.last)}`;
      }
      this.blocks.set(block, pieces);
    }
    return undefined;
  }

  /** @returns false when any piece of the range is not there */
  delete(first: number, last: number): boolean {
    let isComplete = true;
    for (const [block, from, to] of cut(first, last)) {
      const pieces = this.blocks.get(block) ?? [];
      const at = pieces.findIndex((piece) => piece.first === from && piece.last === to);
      if (at === -1) isComplete = false;
      else pieces.splice(at, 1);
    }
    return isComplete;
  }

  /** Ranges without overlaps, by address; neighbours that came from one line are joined. */
  entries(): readonly GeoEntry[] {
    const joined: Piece[] = [];
    for (const block of [...this.blocks.keys()].sort((a, b) => a - b)) {
      for (const piece of this.blocks.get(block)!) {
        const before = joined.at(-1);
        if (before?.entry === piece.entry && before.last + 1 === piece.first) {
          before.last = piece.last;
        } else joined.push({ ...piece });
      }
    }
    return joined.map(({ first, last, entry }) => ({
      network: `${formatIpv4(first)}-${formatIpv4(last)}`,
      value: entry.value,
      where: entry.where,
    }));
  }
}

function* cut(first: number, last: number): Generator<readonly [number, number, number]> {
  for (let from = first; from <= last;) {
    const block = Math.floor(from / BLOCK_ADDRESSES);
    const blockEnd = block * BLOCK_ADDRESSES + BLOCK_ADDRESSES - 1;
    yield [block, from, Math.min(blockEnd, last)];
    from = blockEnd + 1;
  }
}

/** @returns the piece that the new one overlaps in a way nginx does not allow */
function insert(pieces: Piece[], piece: Piece): Piece | undefined {
  const at = pieces.findIndex((old) => old.last >= piece.first);
  const old = at === -1 ? undefined : pieces[at]!;
  if (old === undefined || old.first > piece.last) {
    pieces.splice(at === -1 ? pieces.length : at, 0, piece);
    return undefined;
  }
  if (old.first > piece.first || old.last < piece.last) return lastOverlapping(pieces, piece);
  const rest: Piece[] = [];
  if (old.first < piece.first) rest.push({ ...old, last: piece.first - 1 });
  rest.push(piece);
  if (old.last > piece.last) rest.push({ ...old, first: piece.last + 1 });
  pieces.splice(at, 1, ...rest);
  return undefined;
}

/** nginx looks from the end, and so names the last one. */
function lastOverlapping(pieces: readonly Piece[], piece: Piece): Piece {
  return pieces.findLast((old) => old.first <= piece.last && old.last >= piece.first)!;
}
