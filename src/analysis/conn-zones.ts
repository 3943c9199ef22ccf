/**
 * How full each limit_conn zone is, and what it refused.
 *
 * Such a zone forgets nothing: a node lives as long as its key has requests under way, and a full zone
 * refuses every new key (ngx_http_limit_conn_handler). How many are under way follows from when
 * requests were decided and ended, which access logs tell and the store does not keep.
 *
 * Sizes in bytes, times in epoch milliseconds. Not here: which key has how many requests under way
 * (concurrency.ts).
 */
import type { NginxConf } from '../../parsers/conf/model.js';
import { capacityTable } from '../check/zone-size.js';
import type { ZoneTotal } from '../store/queries.js';
import type { ModelledConnZone } from './configured-conns.js';
import type { NodesAt } from './conn-nodes.js';
import type { LowerBound } from './lower-bound.js';

export interface ConnZoneAnalysis {
  readonly kind: 'limit_conn';
  readonly zone: string;
  readonly instance: string;
  /** null where no configuration was given that would tell; so with the sizes. */
  readonly keyExpression: string | null;
  readonly sizeBytes: number | null;
  readonly capacityByKeyLength: readonly { keyLengthBytes: number; capacityNodes: number }[];
  /** Nodes held; null where no log was given that tells. */
  readonly occupancy: ConnOccupancy | null;
  /** As logged. */
  readonly passed: number;
  readonly rejected: number;
  /** Refused for want of memory. */
  readonly exhausted: number;
  readonly rejectedDryRun: number;
  readonly exhaustedDryRun: number;
  /** What the logs do not tell, each with the field or the option that would. */
  readonly unknowns: readonly string[];
  /** Why the true numbers may be higher; null when no configuration was given that would tell. */
  readonly lowerBound: readonly LowerBound[] | null;
}

export interface ConnOccupancy {
  readonly nodesMax: number;
  readonly nodesMaxAtMs: number;
  /** For keys of the length that came last. */
  readonly capacityNodes: number;
  readonly headroomNodes: number;
  readonly fullShare: number;
  /** As modelled from the same times. */
  readonly modelledRejected: number;
  readonly modelledExhausted: number;
  readonly stepSeconds: number;
  readonly steps: readonly NodesAt[];
}

export interface ConnZoneInputs {
  readonly confs: readonly NginxConf[];
  readonly instance: string;
  readonly outcomes: readonly Pick<ZoneTotal, 'instance' | 'zone' | 'outcome' | 'requests'>[];
  /** By zone; null where nothing was modelled, for the reason in `unknowns`. */
  readonly modelled: ReadonlyMap<string, ModelledConnZone> | null;
  readonly stepSeconds: number;
  readonly unknowns: readonly string[];
  readonly lowerBounds: ReadonlyMap<string, readonly LowerBound[]> | null;
}

/** Longest keys of each slot size (facts of ngx_slab.c): 64 to 512 bytes. */
const KEY_LENGTHS_BYTES = [28, 92, 220, 255] as const;

export function analyseConnZones(inputs: ConnZoneInputs): ConnZoneAnalysis[] {
  const zones = new Map<string, { instance: string; zone: string }>();
  for (const { instance, zone } of inputs.outcomes) {
    zones.set(JSON.stringify([instance, zone]), { instance, zone });
  }
  const known = new Set(inputs.outcomes.map(({ zone }) => zone));
  for (const zone of inputs.confs.flatMap(({ connZones }) => [...connZones.keys()])) {
    if (known.has(zone)) continue;
    zones.set(JSON.stringify([inputs.instance, zone]), { instance: inputs.instance, zone });
  }
  return Array.from(zones.values(), ({ instance, zone }) => analyse(instance, zone, inputs)).sort(
    (a, b) => compare(a.instance, b.instance) || compare(a.zone, b.zone),
  );
}

function analyse(instance: string, zone: string, inputs: ConnZoneInputs): ConnZoneAnalysis {
  const conf = inputs.confs.findLast(({ connZones }) => connZones.has(zone))?.connZones.get(zone);
  const requests = (outcome: string): number =>
    inputs.outcomes
      .filter((row) => row.instance === instance && row.zone === zone && row.outcome === outcome)
      .reduce((sum, row) => sum + row.requests, 0);
  return {
    kind: 'limit_conn',
    zone,
    instance,
    keyExpression: conf?.keyExpression ?? null,
    sizeBytes: conf?.sizeBytes ?? null,
    capacityByKeyLength: conf === undefined ? [] : capacities(conf.sizeBytes, zone),
    occupancy: occupancy(inputs.modelled?.get(zone), inputs.stepSeconds),
    passed: requests('passed'),
    rejected: requests('rejected'),
    exhausted: requests('exhausted'),
    rejectedDryRun: requests('rejected_dry_run'),
    exhaustedDryRun: requests('exhausted_dry_run'),
    unknowns: inputs.unknowns,
    lowerBound: inputs.lowerBounds === null ? null : (inputs.lowerBounds.get(zone) ?? []),
  };
}

function occupancy(
  modelled: ModelledConnZone | undefined,
  stepSeconds: number,
): ConnOccupancy | null {
  if (modelled === undefined) return null;
  const { nodes, rejected, exhausted } = modelled;
  const { nodesMax, nodesMaxAtMs, capacityNodes } = nodes;
  return {
    nodesMax,
    nodesMaxAtMs,
    capacityNodes,
    headroomNodes: Math.max(0, capacityNodes - nodesMax),
    fullShare: capacityNodes === 0 ? 0 : nodesMax / capacityNodes,
    modelledRejected: rejected,
    modelledExhausted: exhausted,
    stepSeconds,
    steps: nodes.steps(stepSeconds * 1000),
  };
}

function capacities(
  sizeBytes: number,
  zone: string,
): { keyLengthBytes: number; capacityNodes: number }[] {
  const rows = capacityTable([sizeBytes], KEY_LENGTHS_BYTES, Buffer.byteLength(zone), 'limit_conn');
  return rows.map(({ keyLengthBytes, capacityKeys }) => ({
    keyLengthBytes,
    capacityNodes: capacityKeys[0]!,
  }));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
