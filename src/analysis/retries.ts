/**
 * How soon keys come back after a refusal, against how long an honest Retry-After would have asked
 * them to wait.
 *
 * A refused request is not charged (ngx_http_limit_req_lookup), so the debt drains at the rate and
 * the key would have been let through (excess − burst) / rate later; before that nothing but a
 * refusal was to be had. Under dry run nobody was refused, so nobody can have come back: those
 * requests are counted and left out.
 *
 * Times in epoch milliseconds, excess in thousandths of a request, rates in thousandths per second.
 *
 * Not here: storms (retry-storms.ts), which refusals wait for an answer (pending-rejects.ts).
 */
import { excessOf } from '../aggregate/limit-counter.js';
import { decidingLimit, effectiveStatus, outcomeOf, WORD } from '../aggregate/outcome-words.js';
import { FLAG } from '../replay/event-flags.js';
import type { LimitRow } from '../replay/limit-table.js';
import type { ReplaySession } from '../replay/session.js';
import { isAccepted, STATUS } from '../replay/status.js';
import { KeyTallies } from './key-tallies.js';
import { PendingRejects } from './pending-rejects.js';
import { RetryPlace, type PlaceRetries } from './retry-place.js';
import { RetryStorms, type RetryStorm } from './retry-storms.js';

export interface RetriesAnalysis {
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly zones: readonly ZoneRetries[];
  /** Requests that would have been refused, had there been no dry run. */
  readonly dryRunRejects: number;
  /** What these logs cannot tell, and what would; in whole sentences. */
  readonly unknowns: readonly string[];
}

export interface ZoneRetries {
  readonly zone: string;
  readonly keyExpression: string;
  /** A key that did not come back for so long is taken not to have come back. */
  readonly windowMs: number;
  readonly places: readonly PlaceRetries[];
  readonly storms: readonly RetryStorm[];
  readonly worstKeys: readonly KeyRetries[];
}

export interface KeyRetries {
  readonly key: string;
  readonly rejects: number;
  /** Refusals of a key that had been refused before. */
  readonly retries: number;
  readonly tooSoon: number;
}

export interface RetriesOptions {
  /** Worst keys per zone. */
  readonly top: number;
  /** Refusals in a minute below which there is no storm. */
  readonly minStormRejects: number;
}

const LEAST_WINDOW_MS = 60_000;
interface KeyTally {
  rejects: number;
  retries: number;
  tooSoon: number;
}

interface ZoneState {
  readonly name: string;
  readonly windowMs: number;
  readonly pending: PendingRejects<RetryPlace>;
  readonly storms: RetryStorms;
  readonly keys: KeyTallies<KeyTally>;
  readonly places: Map<string, RetryPlace>;
}

/** Takes the decisions of one replay, in their order. */
export class RetryTracker {
  readonly #session: ReplaySession;
  readonly #options: RetriesOptions;
  /** By zone of the replay. */
  readonly #zones: readonly ZoneState[];
  #fromMs = Infinity;
  #toMs = -Infinity;
  #dryRunRejects = 0;

  constructor(session: ReplaySession, options: RetriesOptions) {
    this.#session = session;
    this.#options = options;
    this.#zones = session.generations.zones.map((zone, index) => {
      const windowMs = windowOf(session, index);
      return {
        name: zone.name,
        windowMs,
        pending: new PendingRejects<RetryPlace>(
          zone.keys,
          windowMs,
          ({ place }) => place.notReturned++,
        ),
        storms: new RetryStorms(options.minStormRejects),
        keys: freshTallies(),
        places: new Map(),
      };
    });
  }

  /** One decision, while its event and its details are there. */
  decide(event: number): void {
    const { engine } = this.#session;
    const { pool } = engine;
    const atMs = pool.estMs[event]!;
    if (atMs < this.#fromMs) this.#fromMs = atMs;
    if (atMs > this.#toMs) this.#toMs = atMs;
    const rules = pool.rules[event]!;
    if (rules < 0) return;
    const { limits } = engine.rules[rules]!;
    const status = effectiveStatus(pool, event);
    if (status <= STATUS.none || limits.length === 0) return;
    if (status === STATUS.rejectedDryRun) this.#dryRunRejects++;
    const position = status === STATUS.rejected ? decidingLimit(pool, event, status, limits) : -1;
    let wasReturn = false;
    let wasTooSoon = false;
    for (const [i, limit] of limits.entries()) {
      const isTooSoon = this.#takeReturn(event, limit, event + i, status);
      if (isTooSoon === undefined) continue;
      wasReturn = true;
      if (isTooSoon) wasTooSoon = true;
    }
    if (position >= 0) this.#reject(event, limits, position, wasReturn, wasTooSoon);
  }

  finish(unknowns: readonly string[]): RetriesAnalysis {
    for (const { pending } of this.#zones) {
      pending.expire(this.#toMs);
      for (const { place } of pending.rest()) place.open++;
    }
    const keys = new Map(
      this.#session.generations.currentZones().map(({ zone, key }) => [zone.name, key]),
    );
    const hasAny = this.#toMs >= this.#fromMs;
    return {
      fromMs: hasAny ? this.#fromMs : null,
      toMs: hasAny ? this.#toMs : null,
      zones: this.#zones
        .filter(({ places }) => places.size > 0)
        .map((zone) => describe(zone, keys.get(zone.name) ?? '', this.#options.top)),
      dryRunRejects: this.#dryRunRejects,
      unknowns,
    };
  }

  /** @returns whether it came back too soon; undefined for a request that answers no refusal */
  #takeReturn(event: number, limit: LimitRow, slot: number, status: number): boolean | undefined {
    const { pending } = this.#zones[limit.zoneIndex]!;
    if (pending.size === 0) return undefined;
    const { pool } = this.#session.engine;
    const keyId = pool.keyId[slot]!;
    if (keyId < 0) return undefined;
    const atMs = pool.estMs[event]!;
    const reject = pending.take(keyId, atMs);
    if (reject === undefined) return undefined;
    const isAgain = status === STATUS.rejected;
    return reject.place.countReturn({
      gapMs: atMs - reject.atMs,
      waitMs: reject.waitMs,
      isLetThrough: isAccepted(status),
      isRejectedAgain: isAgain,
      isSameRequest: isAgain && reject.request !== '' && reject.request === this.#requestOf(event),
      isCoarse: (pool.flags[event]! & FLAG.coarse) !== 0,
    });
  }

  #reject(
    event: number,
    limits: readonly LimitRow[],
    position: number,
    isRetry: boolean,
    isTooSoon: boolean,
  ): void {
    const { pool } = this.#session.engine;
    const limit = limits[position]!;
    const zone = this.#zones[limit.zoneIndex]!;
    const atMs = pool.estMs[event]!;
    const keyId = pool.keyId[event + position]!;
    const place = this.#placeOf(zone, pool.rules[event]!, position);
    const waitMs = this.#waitOf(event, limits, position);
    place.countReject(waitMs);
    zone.pending.expire(atMs);
    if (keyId < 0) {
      place.withoutKey++;
      zone.storms.reject(atMs, null);
      return;
    }
    const key = limit.zone.keys.text(keyId);
    const tally = zone.keys.of(key);
    tally.rejects++;
    if (isRetry) tally.retries++;
    if (isTooSoon) tally.tooSoon++;
    zone.storms.reject(atMs, isRetry ? key : null);
    const endMs = Math.max(atMs, pool.endMs[event]!);
    zone.pending.add(keyId, { atMs, endMs, waitMs, request: this.#requestOf(event), place });
  }

  /** How long the key would have had to wait; nginx's own excess, where a line tells it. */
  #waitOf(event: number, limits: readonly LimitRow[], position: number): number {
    const { pool } = this.#session.engine;
    if (outcomeOf(pool, event, position, STATUS.rejected, position) !== WORD.rejected) return NaN;
    const anchor = pool.anchorSlot[event] === position ? pool.anchorMilliReq[event]! : NaN;
    const excess = Number.isNaN(anchor)
      ? excessOf(pool, event, event + position, position)
      : anchor;
    const { burstMilliReq, rateMilliRps } = limits[position]!;
    return honestWaitMs(excess, burstMilliReq, rateMilliRps);
  }

  #requestOf(event: number): string {
    const details = this.#session.detailsOf.get(event);
    if (details === undefined || details.path === '') return '';
    return `${details.method} ${details.path}`;
  }

  #placeOf(zone: ZoneState, rules: number, position: number): RetryPlace {
    const ruleSet = this.#session.generations.ruleSets[rules]!;
    const { serverName, location } = ruleSet;
    const { path, line } = ruleSet.limits[position]!.where;
    const where = `${path}:${line}`;
    const name = JSON.stringify([serverName, location, where]);
    let place = zone.places.get(name);
    if (place === undefined)
      zone.places.set(name, (place = new RetryPlace(serverName, location, where)));
    return place;
  }
}

/**
 * The wait after which a refused key would have been let through, if nobody else used it.
 *
 * @returns NaN for an excess that is not above the burst: then it is not what nginx found
 */
export function honestWaitMs(
  excessMilliReq: number,
  burstMilliReq: number,
  rateMilliRps: number,
): number {
  const over = excessMilliReq - burstMilliReq;
  return over > 0 ? Math.ceil((over * 1000) / rateMilliRps) : NaN;
}

/** Who has not come back within twice the longest wait, and a minute, has gone. */
function windowOf(session: ReplaySession, zoneIndex: number): number {
  const limits = session.engine.rules.flatMap((rule) => rule.limits);
  const rates = limits.filter((limit) => limit.zoneIndex === zoneIndex).map((l) => l.rateMilliRps);
  return Math.max(LEAST_WINDOW_MS, ...rates.map((rate) => Math.ceil(2e6 / rate)));
}

function freshTallies(): KeyTallies<KeyTally> {
  return new KeyTallies(
    () => ({ rejects: 0, retries: 0, tooSoon: 0 }),
    ({ retries }) => retries,
  );
}

function describe(zone: ZoneState, keyExpression: string, top: number): ZoneRetries {
  return {
    zone: zone.name,
    keyExpression,
    windowMs: zone.windowMs,
    places: [...zone.places.values()]
      .map((place) => place.describe())
      .sort((a, b) => b.rejects - a.rejects),
    storms: zone.storms.finish(),
    worstKeys: zone.keys.heaviest(top).map(([key, tally]) => ({ key, ...tally })),
  };
}
