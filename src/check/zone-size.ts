/**
 * How large a zone has to be for so many keys, and how many keys the usual sizes hold.
 *
 * A thin layer over src/limit-req/capacity.ts for people who write configurations. Sizes and
 * lengths are bytes; a key's length is that of nginx, where $binary_remote_addr has 4 or 16.
 */
import {
  limitConnCapacityNodes,
  limitConnSizeBytes,
  limitReqCapacityNodes,
  limitReqSizeBytes,
} from '../limit-req/capacity.js';

export type ZoneKind = 'limit_req' | 'limit_conn';

export interface ZoneSize {
  /** The smallest zone that holds the keys, in whole pages. */
  readonly sizeBytes: number;
  readonly sizeMebibytes: number;
  /** What to write in the configuration: whole KiB, or MiB above one. */
  readonly zoneSize: string;
  /** Keys that a zone of the size in `zoneSize` holds. */
  readonly capacityKeys: number;
}

export interface CapacityRow {
  readonly keyLengthBytes: number;
  /** One number for each size, in the order they were given in. */
  readonly capacityKeys: readonly number[];
}

const KIB = 1024;
const MIB = 1024 * KIB;

/** Keys of one length that a zone holds. `nameLength` is that of the zone's name. */
export function capacityKeys(
  kind: ZoneKind,
  sizeBytes: number,
  keyLengthBytes: number,
  nameLength: number,
): number {
  return kind === 'limit_req'
    ? limitReqCapacityNodes(sizeBytes, keyLengthBytes, nameLength)
    : limitConnCapacityNodes(sizeBytes, keyLengthBytes, nameLength);
}

/**
 * The size for a number of keys of one length.
 *
 * @param keys at least 1
 * @param nameLength of the zone's name: names of 43 characters and more cost one key
 */
export function sizeForKeys(
  keys: number,
  keyLengthBytes: number,
  nameLength: number,
  kind: ZoneKind,
): ZoneSize {
  const sizeBytes =
    kind === 'limit_req'
      ? limitReqSizeBytes(keys, keyLengthBytes, nameLength)
      : limitConnSizeBytes(keys, keyLengthBytes, nameLength);
  const roundBytes = roundedSizeBytes(sizeBytes);
  return {
    sizeBytes,
    sizeMebibytes: Math.round((sizeBytes / MIB) * 1000) / 1000,
    zoneSize: sizeText(roundBytes),
    capacityKeys: capacityKeys(kind, roundBytes, keyLengthBytes, nameLength),
  };
}

/** Keys by length and zone size: one row a length. */
export function capacityTable(
  sizesBytes: readonly number[],
  keyLengthsBytes: readonly number[],
  nameLength: number,
  kind: ZoneKind,
): readonly CapacityRow[] {
  return keyLengthsBytes.map((keyLengthBytes) => ({
    keyLengthBytes,
    capacityKeys: sizesBytes.map((sizeBytes) =>
      capacityKeys(kind, sizeBytes, keyLengthBytes, nameLength),
    ),
  }));
}

/** `10m`, `32k` or plain bytes, whichever is exact. */
export function sizeText(sizeBytes: number): string {
  if (sizeBytes % MIB === 0) return `${sizeBytes / MIB}m`;
  return sizeBytes % KIB === 0 ? `${sizeBytes / KIB}k` : `${sizeBytes}`;
}

/** A whole number of MiB above one MiB, else of KiB: a size that a person would write. */
export function roundedSizeBytes(sizeBytes: number): number {
  const unit = sizeBytes > MIB ? MIB : KIB;
  return Math.ceil(sizeBytes / unit) * unit;
}
