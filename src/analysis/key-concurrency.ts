/**
 * How many requests of each key are under way, and what `limit_conn N` would have made of it.
 *
 * What a key did is kept while it has requests under way, and then added to its tally. Times in
 * epoch milliseconds, in order.
 */
import type { KeyTable } from '../keys/key-table.js';
import { ConnCandidates } from './conn-candidates.js';
import { KeyTallies } from './key-tallies.js';
import { WeightedHistogram } from './weighted-histogram.js';

export interface KeyConcurrency {
  readonly key: string;
  readonly requests: number;
  readonly arrivalsPerSecond: number;
  readonly meanMs: number;
  /** L = λ·W over the time of the whole log. */
  readonly concurrency: number;
  readonly most: number;
  readonly mostAtMs: number;
}

/** What one N would have done. */
export interface ConnCandidate {
  readonly connections: number;
  readonly rejected: number;
  readonly rejectedShare: number;
  /** Keys of which a request would have been refused. */
  readonly keys: number;
}

export interface KeysConcurrency {
  readonly requests: number;
  /** Distinct keys; at least so many where there were too many to hold. */
  readonly keys: number;
  readonly isLowerBound: boolean;
  /** While a key has a request under way, it has so many or fewer in half, 90 %, 99 % of the time. */
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly most: number;
  readonly worstKeys: readonly KeyConcurrency[];
  readonly candidates: readonly ConnCandidate[];
}

interface Tally {
  requests: number;
  sumMs: number;
  most: number;
  mostAtMs: number;
  refusedBy: number;
}

interface Busy extends Tally {
  underWay: number;
  sinceMs: number;
}

/** A request under way. */
export interface HeldRequest {
  readonly keyId: number;
  readonly keyLengthBytes: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly held: Int32Array;
}

export class KeyConcurrencyMeter {
  readonly candidates: ConnCandidates;
  readonly #keys: KeyTable;
  readonly #busy = new Map<number, Busy>();
  readonly #tallies = new KeyTallies<Tally>(freshTally, weightOf);
  readonly #underWay = new WeightedHistogram();
  #requests = 0;

  constructor(keys: KeyTable, candidates: ConnCandidates) {
    this.#keys = keys;
    this.candidates = candidates;
  }

  begin({ keyId, keyLengthBytes, startMs, endMs, held }: HeldRequest): void {
    this.#requests++;
    let busy = this.#busy.get(keyId);
    if (busy === undefined) {
      busy = { ...freshTally(), underWay: 0, sinceMs: startMs };
      this.#busy.set(keyId, busy);
    }
    this.#pass(busy, startMs);
    busy.underWay++;
    busy.requests++;
    busy.sumMs += endMs - startMs;
    busy.refusedBy |= this.candidates.begin(keyId, keyLengthBytes, held);
    if (busy.underWay <= busy.most) return;
    busy.most = busy.underWay;
    busy.mostAtMs = startMs;
  }

  end({ keyId, endMs, held }: HeldRequest): void {
    this.candidates.end(held);
    const busy = this.#busy.get(keyId)!;
    this.#pass(busy, endMs);
    busy.underWay--;
    if (busy.underWay > 0) return;
    this.#busy.delete(keyId);
    addTo(this.#tallies.of(this.#keys.text(keyId)), busy);
  }

  /** @param spanMs the time of the whole log */
  finish(spanMs: number, top: number): KeysConcurrency {
    const all = this.#tallies.heaviest(Infinity);
    const { connections, rejected } = this.candidates;
    const of = (share: number): number =>
      this.#underWay.total === 0
        ? Math.max(0, ...all.map(([, { most }]) => most))
        : this.#underWay.quantile(share);
    return {
      requests: this.#requests,
      keys: this.#tallies.size,
      isLowerBound: this.#tallies.dropped > 0,
      p50: of(0.5),
      p90: of(0.9),
      p99: of(0.99),
      most: all[0]?.[1].most ?? 0,
      worstKeys: all.slice(0, top).map(([key, tally]) => describe(key, tally, spanMs)),
      candidates: connections.map((most, i) => ({
        connections: most,
        rejected: rejected[i]!,
        rejectedShare: this.#requests === 0 ? 0 : rejected[i]! / this.#requests,
        keys: all.filter(([, { refusedBy }]) => (refusedBy >> i) & 1).length,
      })),
    };
  }

  #pass(busy: Busy, toMs: number): void {
    if (busy.underWay > 0) this.#underWay.add(busy.underWay, toMs - busy.sinceMs);
    busy.sinceMs = toMs;
  }
}

function freshTally(): Tally {
  return { requests: 0, sumMs: 0, most: 0, mostAtMs: 0, refusedBy: 0 };
}

/** By the most at one time; of equal ones by the time spent. */
function weightOf({ most, sumMs }: Tally): number {
  return most + sumMs / (sumMs + 1e9) / 2;
}

function addTo(tally: Tally, busy: Busy): void {
  tally.requests += busy.requests;
  tally.sumMs += busy.sumMs;
  tally.refusedBy |= busy.refusedBy;
  if (busy.most <= tally.most) return;
  tally.most = busy.most;
  tally.mostAtMs = busy.mostAtMs;
}

function describe(key: string, tally: Tally, spanMs: number): KeyConcurrency {
  const { requests, sumMs, most, mostAtMs } = tally;
  return {
    key,
    requests,
    arrivalsPerSecond: spanMs > 0 ? (1000 * requests) / spanMs : 0,
    meanMs: sumMs / requests,
    concurrency: spanMs > 0 ? sumMs / spanMs : 0,
    most,
    mostAtMs,
  };
}
