/**
 * What a replay has to remember between two imports: each zone with its keys, and the error-log
 * lines whose requests may still be logged.
 *
 * Plain JSON. A zone is taken up again only under the same name, key and size, as nginx itself does
 * at a reload; its rate may have changed.
 */
import { KeyTable, type KeyTableSnapshot } from '../keys/key-table.js';
import { ZoneMemory, type ZoneMemorySnapshot } from '../limit-req/zone-memory.js';
import type { WaitingLine } from './line-join.js';
import type { Ghost, Shadow, ZoneReplay } from './zone-replay.js';

export interface ZoneState {
  readonly name: string;
  readonly keyExpression: string;
  readonly sizeBytes: number;
  readonly keys: KeyTableSnapshot;
  readonly memory: ZoneMemorySnapshot;
  /** By node, in the order of the memory's nodes. */
  readonly low: readonly number[];
  readonly high: readonly number[];
  readonly rate: readonly number[];
  readonly shadows: readonly (readonly [keyId: number, shadow: Shadow])[];
  readonly ghosts: readonly Ghost[];
  readonly evictions: number;
}

export interface SessionState {
  readonly version: 1;
  /** Everything decided before this moment is counted. */
  readonly cursorMs: number;
  readonly masterPid: number;
  readonly zones: readonly ZoneState[];
  readonly lines: readonly WaitingLine[];
}

/** The zone as it stands; only when no request is waiting. */
export function snapshotZone(zone: ZoneReplay, keyExpression: string): ZoneState {
  const memory = zone.memory.snapshot();
  const nodes = memory.table.nodes.map((number) => ZoneMemory.nodeOf(number));
  return {
    name: zone.name,
    keyExpression,
    sizeBytes: zone.sizeBytes,
    keys: zone.keys.snapshot(),
    memory,
    low: nodes.map((node) => zone.low[node]!),
    high: nodes.map((node) => zone.high[node]!),
    rate: nodes.map((node) => zone.rate[node]!),
    shadows: zone.shadowEntries(),
    ghosts: zone.ghostEntries(),
    evictions: zone.counts.evictions,
  };
}

/** Puts the state into a zone that has seen no request yet. */
export function restoreZone(zone: ZoneReplay, state: ZoneState, rateMilliRps: number): void {
  zone.keys = KeyTable.restore(state.keys);
  zone.memory = ZoneMemory.restore(state.memory, zone.keys);
  zone.memory.rateMilliRps = rateMilliRps;
  const { nodes } = state.memory.table;
  for (const [i, number] of nodes.entries()) {
    const node = ZoneMemory.nodeOf(number);
    zone.low[node] = state.low[i]!;
    zone.high[node] = state.high[i]!;
    zone.rate[node] = state.rate[i]!;
  }
  zone.adopt(state.shadows, state.ghosts, state.evictions);
}
